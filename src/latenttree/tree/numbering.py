"""Canonical numbers of hidden nodes, and numbers after edges are contracted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from latenttree.tree.rooting import IntArray, Rooted, children_by_smallest


def compact_hidden(edges: IntArray, n_observed: int) -> IntArray:
    """Renumber hidden nodes ``n_observed, n_observed + 1, ...`` keeping their order."""
    ids = np.unique(edges)
    ids = ids[ids >= n_observed]
    compact = edges.copy()
    is_hidden = edges >= n_observed
    compact[is_hidden] = n_observed + np.searchsorted(ids, edges[is_hidden])
    return compact


def canonical_numbers(rooted: Rooted, new_observed: IntArray) -> IntArray:
    """(n_nodes,) new numbers of all nodes, when observed node ``v`` is to be ``new_observed[v]``.

    ``rooted`` hangs from the observed node whose new number is 0. Hidden nodes are numbered breadth
    first, neighbours in order of the smallest new observed number in their branch.
    ``O(n log n)``.
    """
    p, n_hidden = len(new_observed), len(rooted.parents) - len(new_observed)
    children = children_by_smallest(rooted, new_observed.tolist() + [p] * n_hidden)
    numbers = new_observed.tolist() + [0] * n_hidden
    queue, n_numbered = [int(rooted.order[0])], p
    for v in queue:
        if v >= p:
            numbers[v] = n_numbered
            n_numbered += 1
        queue.extend(children[v])
    return np.array(numbers, dtype=np.int64)


def merged_nodes(
    n_nodes: int,
    n_observed: int,
    pairs: IntArray,
    refuse: Callable[[int, int, int], None] | None = None,
) -> IntArray:
    """For each node, the node that it becomes when pairs ``(m, 2)`` are merged one after another.

    The lowest node stays, so that a hidden node becomes an observed one. Two observed nodes are not
    merged; ``refuse`` is told the number of the pair and the two nodes.
    """
    target = list(range(n_nodes))

    def find(v: int) -> int:
        while target[v] != v:
            target[v] = target[target[v]]
            v = target[v]
        return v

    for i, pair in enumerate(pairs.tolist()):
        low, high = sorted(map(find, pair))
        if high >= n_observed:
            target[high] = low
        elif refuse is not None:
            refuse(i, low, high)
    return np.array([find(v) for v in range(n_nodes)], dtype=np.int64)
