"""Pieces of a drawing: edges, nodes and names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from latenttree.engine.arrays import Floats
from latenttree.plots.canvas import literal
from latenttree.plots.colors import HIDDEN, INK
from latenttree.plots.legends import DASHES
from latenttree.plots.style import TreeStyle
from latenttree.tree import Tree
from latenttree.tree.layout import polar_to_xy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAST_SLOT = 2.0
"""Points of a slot below which hidden nodes have no dots."""


def draw_edges(ax: Axes, tree: Tree, style: TreeStyle, curves: Floats, reach: float) -> None:
    """Edges along ``curves`` (E, m, 2), negative ones dashed; finer where many share a circle of
    radius ``reach``."""
    from matplotlib.collections import LineCollection

    crowd = float(np.clip(3 * reach / tree.n_observed / 4, 0.2, 1.0))
    for chosen, line in ((tree.signs >= 0, "-"), (tree.signs < 0, DASHES)):
        if chosen.any():
            ax.add_collection(
                LineCollection(
                    list(curves[chosen]),
                    colors=style.edge_colors[chosen],
                    linewidths=style.edge_widths[chosen] * crowd,
                    linestyles=[line],
                    capstyle="round" if line == "-" else "butt",
                    zorder=2,
                )
            )


def draw_nodes(ax: Axes, tree: Tree, xy: Floats, style: TreeStyle, slot: float) -> None:
    """Observed dots nearly as wide as their slot (in points), hidden ones half as wide; highlighted
    nodes larger, with a dark rim."""
    size = float(np.clip(0.55 * slot, 1.2, 7.0))
    p = tree.n_observed
    edge = 0.6 if size > 3 else 0.0
    if slot >= LEAST_SLOT:
        draw_dots(ax, xy[p:], style.node_colors[p:], size=0.7 * size, rim=edge, zorder=3)
    if style.highlight:
        some = sorted(style.highlight)
        colors = style.node_colors[some]
        size_there = max(1.3 * size, 4.0)
        draw_dots(ax, xy[some], colors, size=size_there, rim=1.0, rim_color=INK, zorder=5)
    draw_dots(ax, xy[:p], style.node_colors[:p], size=size, rim=edge, zorder=4)


def draw_dots(
    ax: Axes,
    xy: Floats,
    colors: Floats | str,
    *,
    size: float,
    rim: float,
    zorder: int,
    rim_color: str = "white",
) -> None:
    """Dots at ``xy`` (n, 2), ``size`` points wide."""
    x, y = xy.T
    ax.scatter(x, y, s=size**2, c=colors, edgecolors=rim_color, linewidths=rim, zorder=zorder)


def draw_leaders(ax: Axes, angle: Floats, radius: Floats, colors: Floats) -> None:
    """Fine lines from nodes inside the circle to their names on it."""
    from matplotlib.collections import LineCollection

    inside = radius < 0.995
    ends = [polar_to_xy(angle[inside], r) for r in (radius[inside], np.ones(inside.sum()))]
    ax.add_collection(
        LineCollection(
            list(np.stack(ends, axis=1)), colors=colors[inside], lw=0.5, ls=(0, (1, 2.5)), zorder=1
        )
    )


def draw_radial_names(
    ax: Axes,
    texts: Sequence[str],
    shown: Iterable[int],
    angle: Floats,
    font: float,
    gap: float,
    style: TreeStyle,
) -> None:
    """Names along the rays, turned on the left half so that none is upside down."""
    for node in shown:
        x, y = polar_to_xy(angle[node], np.asarray(1 + gap))
        degrees = float(np.degrees(angle[node])) % 360
        left = 90 < degrees < 270
        ax.text(
            x,
            y,
            literal(texts[node]),
            rotation=degrees - 180 if left else degrees,
            rotation_mode="anchor",
            ha="right" if left else "left",
            va="center",
            fontsize=font,
            **_emphasis(style, node),
        )


def draw_hanging_names(
    ax: Axes, texts: Sequence[str], shown: Iterable[int], xy: Floats, font: float, style: TreeStyle
) -> None:
    """Names downwards below their nodes, with a halo where an observed node has edges there."""
    for node in shown:
        ax.annotate(
            literal(texts[node]),
            xy[node],
            xytext=(0, -6),
            textcoords="offset points",
            rotation=90,
            ha="center",
            va="top",
            fontsize=font,
            path_effects=halo(),
            **_emphasis(style, node),
        )


def draw_inner_names(
    ax: Axes,
    texts: Sequence[str],
    shown: Iterable[int],
    xy: Floats,
    font: float,
    style: TreeStyle,
    n_observed: int,
) -> None:
    """Horizontal names above nodes inside the tree, those of hidden nodes grey."""
    for node in shown:
        look = _emphasis(style, node)
        if node >= n_observed and node not in style.highlight:
            look["color"] = HIDDEN
        ax.annotate(
            literal(texts[node]),
            xy[node],
            xytext=(0, 0.8 * font),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=font,
            path_effects=halo(),
            zorder=6,
            **look,
        )


def halo(width: float = 2.0) -> list[object]:
    """A white rim around text."""
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=width, foreground="white")]


def _emphasis(style: TreeStyle, node: int) -> dict[str, Any]:
    """Dark text; where some nodes are highlighted those are bold and the others pale."""
    if not style.highlight:
        return {"color": INK}
    return {"color": INK, "weight": "bold"} if node in style.highlight else {"color": "#a0a6b0"}
