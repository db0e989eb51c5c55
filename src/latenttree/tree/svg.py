"""A small picture of a tree as SVG text, for notebooks: no library draws it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from latenttree.tree.layout import RootedLayout, angles, polar_to_xy, radii
from latenttree.tree.rooting import IntArray
from latenttree.tree.signs import SignArray

SIDE = 440.0  # pixels of width and height
MOST_NAMES = 70
"""Observed nodes whose names are written; with more, names show under the pointer."""
MOST_NODES = 2000
"""Larger trees have no small picture."""

FONT = 10
MAX_NAME = 16


def tree_svg(
    rooted: RootedLayout,
    names: Sequence[str],
    n_observed: int,
    edges: IntArray,
    signs: SignArray,
) -> str:
    """The tree around its root, about 100 bytes for each node; negative edges are dashed."""
    named = n_observed <= MOST_NAMES
    room = 6 + (0.6 * FONT * min(max(map(len, names[:n_observed])), MAX_NAME) if named else 0)
    angle = angles(rooted.slots, n_observed)
    xy = SIDE / 2 + (SIDE / 2 - room) * polar_to_xy(angle, radii(rooted)) * [1, -1]
    hue = np.degrees(2 * np.pi * rooted.slots / n_observed)
    nodes = [_dot(xy[v], names[v], v < n_observed, hue[v]) for v in range(len(names))]
    texts = [_name(xy[v], angle[v], names[v]) for v in range(n_observed)] if named else []
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIDE:.0f} {SIDE:.0f}" '
            f'width="{SIDE:.0f}" height="{SIDE:.0f}" font-family="sans-serif" '
            f'font-size="{FONT}" role="img" aria-label="tree of {n_observed} variables">',
            *(_path(edges[signs >= 0], rooted, xy, "")),
            *(_path(edges[signs < 0], rooted, xy, ' stroke-dasharray="4 3"')),
            *nodes,
            *texts,
            "</svg>",
        ]
    )


def _path(edges: IntArray, rooted: RootedLayout, xy: NDArray[np.float64], dashes: str) -> list[str]:
    """Edges as one path of curves that leave the parent outwards."""
    if not len(edges):
        return []
    pieces = []
    middle = np.full(2, SIDE / 2)
    for a, b in edges.tolist():
        child, parent = (b, a) if rooted.parents[b] == a else (a, b)
        start, end = xy[parent], xy[child]
        bend = np.linalg.norm(start - middle) / max(float(np.linalg.norm(end - middle)), 1e-9)
        turn = middle + (end - middle) * min(1.0, (1 + bend) / 2)
        points = " ".join(f"{x:.0f} {y:.0f}" for x, y in (start, turn, end))
        pieces.append("M{} {}Q{} {} {} {}".format(*points.split()))
    return [f'<path d="{"".join(pieces)}" fill="none" stroke="#a3aab5"{dashes}/>']


def _dot(at: NDArray[np.float64], name: str, observed: bool, hue: float) -> str:
    color = f"hsl({hue:.0f} 55% 50%)" if observed else "#59606b"
    return (
        f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="{3 if observed else 2}" fill="{color}">'
        f"<title>{escape(name)}</title></circle>"
    )


def _name(at: NDArray[np.float64], angle: float, name: str) -> str:
    """A name outside of its node, along the ray, never upside down."""
    degrees = float(np.degrees(angle)) % 360
    left = 90 < degrees < 270
    turn = -(degrees - 180 if left else degrees)
    text = name if len(name) <= MAX_NAME else name[: MAX_NAME - 1] + "…"
    look = 'text-anchor="end" dx="-6"' if left else 'dx="6"'
    return (
        f'<text x="{at[0]:.1f}" y="{at[1]:.1f}" dy="3" {look} fill="currentColor" '
        f'transform="rotate({turn:.0f} {at[0]:.1f} {at[1]:.1f})">{escape(text)}</text>'
    )
