"""Neighbour lists and rootings of a tree, as integer arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


class Adjacency(NamedTuple):
    """Neighbours of node ``v``: ``indices[indptr[v]:indptr[v + 1]]``, in increasing order."""

    indptr: IntArray  # (n_nodes + 1,)
    indices: IntArray  # (2E,)
    edge_ids: IntArray  # (2E,): the edge that leads to indices[i]


class Rooted(NamedTuple):
    """A rooting: ``parents[root] == -1``; ``order`` is breadth first, so parents come first."""

    parents: IntArray  # (n_nodes,)
    order: IntArray  # (n_nodes,)


class ParentEdges(NamedTuple):
    """A rooting with ``edges[v]``, the edge from ``v`` to its parent; -1 at the root."""

    parents: IntArray  # (n_nodes,)
    order: IntArray  # (n_nodes,)
    edges: IntArray  # (n_nodes,)


def adjacency_of(edges: IntArray, n_nodes: int) -> Adjacency:
    """Neighbour lists of all nodes from the ``(E, 2)`` edges. ``O(n log n)``."""
    tails = np.concatenate([edges[:, 0], edges[:, 1]])
    heads = np.concatenate([edges[:, 1], edges[:, 0]])
    order = np.lexsort((heads, tails))
    indptr = np.zeros(n_nodes + 1, dtype=np.int64)
    np.cumsum(np.bincount(tails, minlength=n_nodes), out=indptr[1:])
    edge_ids = order % max(len(edges), 1)
    return Adjacency(frozen(indptr), frozen(heads[order]), frozen(edge_ids))


def breadth_first(adjacency: Adjacency, root: int) -> ParentEdges:
    """The nodes that ``root`` reaches, breadth first. ``O(n)``."""
    # Python lists: one array call for each of up to n levels would cost more.
    indptr, indices, edge_ids = (a.tolist() for a in adjacency)
    n_nodes = len(indptr) - 1
    parents, parent_edges = [-1] * n_nodes, [-1] * n_nodes
    order, seen = [root], bytearray(n_nodes)
    seen[root] = 1
    for v in order:
        for i in range(indptr[v], indptr[v + 1]):
            u = indices[i]
            if not seen[u]:
                seen[u] = 1
                parents[u], parent_edges[u] = v, edge_ids[i]
                order.append(u)
    arrays = (np.array(a, dtype=np.int64) for a in (parents, order, parent_edges))
    return ParentEdges(*(frozen(a) for a in arrays))


def path_to_root(parents: IntArray, node: int) -> list[int]:
    """The nodes from ``node`` up to the root."""
    path = [node]
    while parents[path[-1]] >= 0:
        path.append(int(parents[path[-1]]))
    return path


def children_of(rooted: Rooted | ParentEdges) -> list[list[int]]:
    """The children of each node, in breadth-first order."""
    parents, order = rooted.parents.tolist(), rooted.order.tolist()
    children: list[list[int]] = [[] for _ in parents]
    for v in order[1:]:
        children[parents[v]].append(v)
    return children


def children_by_smallest(rooted: Rooted | ParentEdges, smallest: list[int]) -> list[list[int]]:
    """The children of each node, in order of the smallest number in their branches; ``smallest``
    holds the number of each node, and is changed into the smallest of its branch."""
    parents, order = rooted.parents.tolist(), rooted.order.tolist()
    for v in reversed(order[1:]):
        smallest[parents[v]] = min(smallest[parents[v]], smallest[v])
    children: list[list[int]] = [[] for _ in parents]
    for v in sorted(order[1:], key=smallest.__getitem__):
        children[parents[v]].append(v)
    return children


def levels(rooted: Rooted | ParentEdges) -> list[int]:
    """The number of edges from the root to each node."""
    parents, level = rooted.parents.tolist(), [0] * len(rooted.order)
    for v in rooted.order[1:].tolist():
        level[v] = level[parents[v]] + 1
    return level


def frozen(array: NDArray[Any]) -> Any:
    """The array itself, made read-only."""
    array.flags.writeable = False
    return array
