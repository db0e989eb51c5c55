"""Canonical numbers of hidden nodes, and numbers after edges are contracted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from latenttree.errors import DataError
from latenttree.tree.rooting import IntArray, Rooted


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
    p, n_nodes = len(new_observed), len(rooted.parents)
    parents, order = rooted.parents.tolist(), rooted.order.tolist()
    smallest = new_observed.tolist() + [p] * (n_nodes - p)
    for v in reversed(order[1:]):
        if smallest[v] < smallest[parents[v]]:
            smallest[parents[v]] = smallest[v]
    # A branch is known by the smallest observed node in it: handing the nodes out in that
    # order leaves every list of children sorted.
    children: list[list[int]] = [[] for _ in range(n_nodes)]
    for v in sorted(order[1:], key=smallest.__getitem__):
        children[parents[v]].append(v)
    numbers = new_observed.tolist() + [0] * (n_nodes - p)
    queue, n_numbered = [order[0]], p
    for v in queue:
        if v >= p:
            numbers[v] = n_numbered
            n_numbered += 1
        queue.extend(children[v])
    return np.array(numbers, dtype=np.int64)


def merged_nodes(
    edges: IntArray, edge_ids: IntArray, names: Sequence[str], n_observed: int
) -> IntArray:
    """For each node, the node that it becomes when the given edges are contracted."""
    target = list(range(len(names)))

    def find(v: int) -> int:
        while target[v] != v:
            target[v] = target[target[v]]
            v = target[v]
        return v

    for e in edge_ids.tolist():
        low, high = sorted(find(v) for v in edges[e].tolist())
        if high < n_observed:
            raise DataError(
                f"contracting edge {e} would merge the observed nodes {names[low]!r} and "
                f"{names[high]!r}",
                "leave out one of the edges between them",
                value=e,
                node=names[high],
            )
        target[high] = low
    return np.array([find(v) for v in range(len(names))], dtype=np.int64)
