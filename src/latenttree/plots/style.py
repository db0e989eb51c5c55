"""Colours and line widths of a drawn tree.

Colour shows where in the tree a variable hangs: the hue follows the walk around the tree, so
neighbouring groups have similar hues, and lightness alternates, so that they can be told apart.
Observed nodes take the colour of their group, hidden nodes are grey; the width of an edge between
hidden nodes is its support.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from latenttree.engine.arrays import Floats, Ints
from latenttree.errors import DataError
from latenttree.plots.layout import RootedLayout, groups
from latenttree.tree import Tree

INK = "#2b2f36"
HIDDEN = "#59606b"
EDGE = "#a3aab5"
FAINT = "#eef0f3"

LEAST_WIDTH, MOST_WIDTH = 0.4, 3.4  # points, at support 0 and 1
NO_SUPPORT_WIDTH = 1.1


@dataclass(frozen=True)
class TreeStyle:
    """Colours and widths of every node and edge, and which names matter most."""

    node_colors: Floats  # (n_nodes, 3); the group's colour, grey for hidden nodes
    edge_colors: Floats  # (E, 3)
    edge_widths: Floats  # (E,) points, for a tree of moderate size
    priority: Ints  # observed nodes, the one to name first in front


def tree_style(tree: Tree, rooted: RootedLayout, support: ArrayLike | None) -> TreeStyle:
    """The style of a tree; edges between hidden nodes are as wide as their `support` (E,) says."""
    group = groups(tree, rooted)
    colors = _group_colors(group, rooted.slots)
    grey, ink = _rgb(HIDDEN), _rgb(EDGE)
    node_colors = np.vstack([colors, np.tile(grey, (tree.n_hidden, 1))])
    low, high = np.sort(tree.edges, axis=1).T
    # An edge between an observed and a hidden node takes the colour, softened.
    pendant = low < tree.n_observed
    edge_colors = np.tile(ink, (tree.n_edges, 1))
    edge_colors[pendant] = 0.75 * colors[low[pendant]] + 0.25
    inner = high[pendant] < tree.n_observed
    edge_colors[np.flatnonzero(pendant)[inner]] = ink
    widths = np.where(pendant, 1.1, 1.5) if support is None else _widths(tree, support)
    return TreeStyle(node_colors, edge_colors, widths, _naming_order(tree, group))


def support_width(support: ArrayLike) -> Floats:
    """Width in points of edges with the given support in [0, 1]."""
    share = np.clip(np.asarray(support, dtype=float), 0, 1)
    return np.asarray(LEAST_WIDTH + (MOST_WIDTH - LEAST_WIDTH) * share)


def _widths(tree: Tree, support: ArrayLike) -> Floats:
    """(E,) `support_width` of every edge; `NO_SUPPORT_WIDTH` where the support is NaN."""
    values = np.asarray(support, dtype=float)
    if values.shape != (tree.n_edges,):
        what = f"support has shape {values.shape} for {tree.n_edges} edges"
        remedy = "pass one value for each row of tree.edges"
        raise DataError(what, remedy, value=values.shape, option="support")
    return np.where(np.isnan(values), NO_SUPPORT_WIDTH, support_width(values))


def _group_colors(group: Ints, slots: Floats) -> Floats:
    """One colour for each observed node, hue by the mean slot of its group, ``(p, 3)``."""
    _, member = np.unique(group, return_inverse=True)
    counts = np.bincount(member)
    where = np.bincount(member, weights=slots[: len(group)]) / counts
    rank = np.argsort(np.argsort(where, kind="stable"))
    hue = 2 * np.pi * where / len(group) + 0.45
    light = np.where(rank % 2 == 0, 0.61, 0.72)
    return _oklch(light, np.full(len(hue), 0.135), hue)[member]


def _oklch(light: Floats, chroma: Floats, hue: Floats) -> Floats:
    """sRGB in [0, 1] from Oklab lightness, chroma and hue: even steps look even."""
    a, b = chroma * np.cos(hue), chroma * np.sin(hue)
    lms = np.stack(
        [
            light + 0.3963377774 * a + 0.2158037573 * b,
            light - 0.1055613458 * a - 0.0638541728 * b,
            light - 0.0894841775 * a - 1.2914855480 * b,
        ],
        axis=-1,
    )
    to_rgb = np.array(
        [
            [4.0767416621, -3.3077115913, 0.2309699292],
            [-1.2684380046, 2.6097574011, -0.3413193965],
            [-0.0041960863, -0.7034186147, 1.7076147010],
        ]
    )
    linear = np.clip(lms**3 @ to_rgb.T, 0, 1)
    return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)


def _rgb(color: str) -> Floats:
    return np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255


def _naming_order(tree: Tree, group: Ints) -> Ints:
    """Observed nodes, most typical (shortest edge) of every group first, large groups first."""
    p = tree.n_observed
    reach = np.full(tree.n_nodes, np.inf)
    np.minimum.at(reach, tree.edges.ravel(), np.repeat(tree.lengths, 2))
    order = np.lexsort((reach[:p], group))
    _, first, size = np.unique(group[order], return_index=True, return_counts=True)
    place = np.arange(p) - np.repeat(first, size)  # 0 for the most typical of its group
    sizes = np.repeat(size, size)
    return order[np.lexsort((-sizes, place))]
