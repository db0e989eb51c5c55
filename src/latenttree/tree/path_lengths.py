"""Sums of edge lengths between all pairs of observed nodes, and sizes of branches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from latenttree.tree.rooting import IntArray, ParentEdges

FloatArray = NDArray[np.float64]


def branch_intervals(rooted: ParentEdges, n_observed: int) -> tuple[IntArray, list[int], list[int]]:
    """A depth-first order in which the observed nodes below ``v`` are ``begin[v]:end[v]``.

    Returns ``place`` (position of each observed node), ``begin`` and ``end``, for a tree that is
    hung from observed node 0.
    """
    parents, order = rooted.parents.tolist(), rooted.order.tolist()
    n_nodes = len(parents)
    size = [int(v < n_observed) for v in range(n_nodes)]
    for v in reversed(order[1:]):
        size[parents[v]] += size[v]
    begin, cursor = [0] * n_nodes, [0] * n_nodes
    for v in order:
        if v != 0:
            begin[v] = cursor[parents[v]]
            cursor[parents[v]] += size[v]
        cursor[v] = begin[v] + (v < n_observed)
    end = [b + s for b, s in zip(begin, size, strict=True)]
    return np.array(begin[:n_observed], dtype=np.int64), begin, end


def path_lengths(rooted: ParentEdges, lengths: FloatArray, n_observed: int) -> FloatArray:
    """``(p, p)`` sums of the lengths between observed nodes; see `Tree.path_lengths`."""
    place, begin, end = branch_intervals(rooted, n_observed)
    parents, order, parent_edges = (a.tolist() for a in rooted)
    height, half = np.zeros(n_observed), np.zeros((n_observed, n_observed))
    for v in _siblings_in_order(parents, order):
        u, b, e = parents[v], begin[v], end[v]
        height[b:e] += lengths[parent_edges[v]]
        start = begin[u]
        # Either triangle will do, so write along the longer side.
        if e - b <= b - start:
            np.add(height[b:e, None], height[None, start:b], out=half[b:e, start:b])
        else:
            np.add(height[start:b, None], height[None, b:e], out=half[start:b, b:e])
    _mirror(half)
    sums = np.empty((n_observed, n_observed))
    for i, row in enumerate(place.tolist()):
        np.take(half[row], place, out=sums[i], mode="clip")  # clip: writes unbuffered
    return sums


def _siblings_in_order(parents: list[int], order: list[int]) -> list[int]:
    """Nodes but the root, deepest first, and siblings in order of their intervals.

    Breadth-first order keeps siblings together, in order of ``begin``; so turn the order around
    family by family.
    """
    families: list[list[int]] = []
    for v in order[1:]:
        if families and parents[families[-1][-1]] == parents[v]:
            families[-1].append(v)
        else:
            families.append([v])
    return [v for family in reversed(families) for v in family]


def _mirror(half: FloatArray, tile: int = 256) -> None:
    """Add the transpose in place, by tiles that stay in cache. For each pair one side is 0."""
    p = len(half)
    for i in range(0, p, tile):
        for j in range(i, p, tile):
            both = half[i : i + tile, j : j + tile] + half[j : j + tile, i : i + tile].T
            half[i : i + tile, j : j + tile] = both
            half[j : j + tile, i : i + tile] = both.T
