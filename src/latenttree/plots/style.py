"""Colours and line widths of the nodes and edges of a drawn tree.

Observed nodes have the colours of a `Coloring`, hidden nodes are grey. An edge takes the colour of
the branch beyond it, seen from the root, where that has one colour; its width is its support.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from latenttree.engine.arrays import Bools, Floats, Ints
from latenttree.errors import DataError
from latenttree.plots.colors import (
    EDGE,
    HIDDEN,
    Coloring,
    faded,
    naming_order,
    rgb,
    walk_color,
)
from latenttree.plots.layout import children_and_parents
from latenttree.tree import Tree
from latenttree.tree.layout import RootedLayout

LEAST_WIDTH, MOST_WIDTH = 0.4, 3.4  # points, at support 0 and 1
NO_SUPPORT_WIDTH = 1.1

WIDE_BRANCH = 0.25
"""Branches of a larger share of the variables have no hue of their own."""


@dataclass(frozen=True)
class TreeStyle:
    """Colours and widths of every node and edge, and which names matter most."""

    node_colors: Floats  # (n_nodes, 3); grey for hidden nodes
    edge_colors: Floats  # (E, 3)
    edge_widths: Floats  # (E,) points, for a tree of moderate size
    priority: Ints  # observed nodes, the one to name first in front
    highlight: frozenset[int] = frozenset()  # nodes that stand out


def tree_style(
    tree: Tree,
    rooted: RootedLayout,
    coloring: Coloring,
    support: ArrayLike | None,
    highlight: Collection[int] = (),
) -> TreeStyle:
    """The style of a tree; edges between hidden nodes are as wide as their `support` (E,) says.
    Everything but the nodes of `highlight` and the edges between them is faded, if there are any.
    """
    grey = np.tile(rgb(HIDDEN), (tree.n_hidden, 1))
    nodes = np.vstack([coloring.colors, grey])
    edges = _edge_colors(tree, rooted, coloring)
    if tree.support is not None:  # no dependence
        edges[tree.support == 0] = faded(rgb(EDGE), 0.4)
    pendant = (tree.edges < tree.n_observed).any(axis=1)
    widths = np.where(pendant, 1.1, 1.5) if support is None else _widths(tree, support)
    order = naming_order(tree, coloring.group)
    if highlight:
        chosen = np.zeros(tree.n_nodes, dtype=np.bool_)
        chosen[list(highlight)] = True
        nodes[~chosen] = faded(nodes[~chosen])
        beside = ~edges_between(tree, chosen)
        edges[beside] = faded(edges[beside])
        order = order[np.argsort(~chosen[order], kind="stable")]
    return TreeStyle(nodes, edges, widths, order, frozenset(highlight))


def edges_between(tree: Tree, chosen: Bools) -> Bools:
    """(E,) whether an edge lies between two chosen nodes, or, of a single one, at it."""
    if chosen.sum() == 1:
        return np.asarray(chosen[tree.edges].any(axis=1))
    parents, order = tree.rooted(0)
    below = chosen.astype(np.int64)
    for v in order[:0:-1].tolist():
        below[parents[v]] += below[v]
    child, _ = children_and_parents(tree, parents)
    return np.asarray((below[child] > 0) & (below[child] < below[order[0]]))


def support_width(support: ArrayLike) -> Floats:
    """Width in points of edges with the given support in [0, 1]."""
    share = np.clip(np.asarray(support, dtype=float), 0, 1)
    return np.asarray(LEAST_WIDTH + (MOST_WIDTH - LEAST_WIDTH) * share)


def _widths(tree: Tree, support: ArrayLike) -> Floats:
    """(E,) `support_width` of every edge; `NO_SUPPORT_WIDTH` where the support is NaN, and at
    leaves, which every tree has."""
    values = np.asarray(support, dtype=float)
    if values.shape != (tree.n_edges,):
        what = f"support has shape {values.shape} for {tree.n_edges} edges"
        remedy = "pass one value for each row of tree.edges"
        raise DataError(what, remedy, value=values.shape, option="support")
    leaf = (tree.degree() == 1)[tree.edges].any(axis=1)
    sure = leaf & (values == 1)
    return np.where(np.isnan(values) | sure, NO_SUPPORT_WIDTH, support_width(values))


def _edge_colors(tree: Tree, rooted: RootedLayout, coloring: Coloring) -> Floats:
    """(E, 3) the colour of the branch beyond each edge, softened; grey where it has several."""
    child, _ = children_and_parents(tree, rooted.parents)
    if coloring.entries or coloring.scale:
        group = _branch_groups(tree, rooted, coloring)
        own = np.where(child < tree.n_observed, child, group[child])
        uniform = group[child] >= 0
        colors = np.where(uniform[:, None], coloring.colors[np.maximum(own, 0)], rgb(EDGE))
        return np.asarray(0.8 * colors + 0.2)
    share = rooted.spans[child] / tree.n_observed
    place = rooted.slots[child] / tree.n_observed
    chroma = 0.12 * np.clip(1 - share / WIDE_BRANCH, 0.08, 1)
    colors = walk_color(place, np.full(len(child), 0.74), chroma)
    leaf = child < tree.n_observed
    colors[leaf] = 0.8 * coloring.colors[child[leaf]] + 0.2
    return colors


def _branch_groups(tree: Tree, rooted: RootedLayout, coloring: Coloring) -> Ints:
    """(n_nodes,) an observed node of the branch at each node whose colour all of it has; -1 where
    it has several, or colours are numbers and the node is hidden."""
    colors = [tuple(color) for color in coloring.colors.tolist()]
    found = [*range(tree.n_observed), *[-2] * tree.n_hidden]  # -2: nothing yet
    for v in rooted.order[:0:-1].tolist():
        u, here = int(rooted.parents[v]), found[v]
        if found[u] == -2:
            found[u] = here
        elif here < 0 or (found[u] >= 0 and colors[found[u]] != colors[here]):
            found[u] = -1
    return np.array(found, dtype=np.int64)
