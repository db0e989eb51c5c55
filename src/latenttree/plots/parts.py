"""Parts of a tree without dependence between them, and trees without the smallest of these.

Edges of support 0 join parts between which the data show no dependence. Of large tables many
variables depend on no other; drawn, they would take most of the picture and say nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from latenttree.engine.arrays import Ints
from latenttree.tree import Tree

LEAST_PART = 3
"""Observed nodes of a part that is drawn in a large tree, at least."""

MOST_DRAWN = 200
"""Trees of up to so many variables are drawn with all of them."""


def parts_of(tree: Tree) -> Ints:
    """(n_nodes,) the part of each node; all one part where support is unknown.

    An edge between parts has no sign, other than one that no resample came back with."""
    joined = np.ones(tree.n_edges, dtype=np.bool_)
    if tree.support is not None:
        joined = (tree.support != 0) | (tree.signs != 0)
    ends, n = tree.edges[joined].T, tree.n_nodes
    graph = csr_array((np.ones(len(ends[0])), (ends[0], ends[1])), shape=(n, n))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


def without_small_parts(tree: Tree, most: int = MOST_DRAWN) -> Tree:
    """The tree without parts of less than `LEAST_PART` variables, where it has more than `most`;
    as it is where none would be left.

    The other parts are joined anew by edges of support 0, from the middle of the largest part to
    the middle of each other. O(n_nodes)."""
    if tree.n_observed <= most:
        return tree
    part = parts_of(tree)
    sizes = np.bincount(part[: tree.n_observed], minlength=int(part.max()) + 1)
    kept = sizes >= LEAST_PART
    if kept.all() or not kept.any():
        return tree
    one, other = part[tree.edges].T
    inside = np.flatnonzero(kept[one] & (one == other))
    assert tree.support is not None
    columns = (tree.edges, tree.lengths, tree.signs, tree.support)
    a_b, length, sign, support = (column[inside].tolist() for column in columns)
    edges = [_Edge(*ends, *rest) for ends, *rest in zip(a_b, length, sign, support, strict=True)]
    edges = _with_enough_neighbours(tree.n_observed, edges)
    middles = _middles(edges, part)
    hub = middles[int(sizes[kept].argmax())]
    far = float(tree.lengths.max())
    edges += [_Edge(hub, v, far, 0, 0.0) for v in middles if v != hub]
    return _tree_of(tree, edges)


class _Edge(NamedTuple):
    a: int
    b: int
    length: float
    sign: int
    support: float


def _with_enough_neighbours(n_observed: int, edges: list[_Edge]) -> list[_Edge]:
    """The edges without hidden leaves, and with every hidden node of two neighbours replaced by an
    edge between these: of the length of the path, the product of the signs, the larger support."""
    found = dict(enumerate(edges))
    near: dict[int, set[int]] = {}
    for i, edge in found.items():
        for v in edge[:2]:
            near.setdefault(v, set()).add(i)
    todo = [v for v in near if v >= n_observed]
    while todo:
        v = todo.pop()
        if len(near.get(v, ())) == 1:
            (i,) = near.pop(v)
            u = found[i].a + found[i].b - v
            del found[i]
            near[u].discard(i)
            todo += [u] if u >= n_observed else []
        elif len(near.get(v, ())) == 2:
            i, j = near.pop(v)
            one, other = found[i], found.pop(j)
            u, w = one.a + one.b - v, other.a + other.b - v
            length, sign = one.length + other.length, one.sign * other.sign
            found[i] = _Edge(u, w, length, sign, max(one.support, other.support))
            near[w] = near[w] - {j} | {i}
    return list(found.values())


def _tree_of(tree: Tree, edges: list[_Edge]) -> Tree:
    """A tree of some nodes of another, with their names."""
    a, b, length, sign, support = (np.array(column) for column in zip(*edges, strict=True))
    nodes, places = np.unique(np.column_stack([a, b]), return_inverse=True)
    names = tuple(tree.names[v] for v in nodes.tolist())
    n_observed = int((nodes < tree.n_observed).sum())
    return Tree(names, n_observed, places.reshape(-1, 2), length, sign, support)


def _middles(edges: list[_Edge], part: Ints) -> list[int]:
    """A node amid each part: of most neighbours in it, in the order of the parts."""
    ends = np.array([edge[:2] for edge in edges]).ravel()
    nodes, degree = np.unique(ends, return_counts=True)
    order = np.lexsort((-degree, part[nodes]))
    _, first = np.unique(part[nodes][order], return_index=True)
    return [int(v) for v in nodes[order][first]]
