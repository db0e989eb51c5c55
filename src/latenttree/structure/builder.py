"""A tree under construction: arrays of edges, for compiled kernels.

Edge e joins `ends[e, 0]` and `ends[e, 1]`. Directed edge `2 e + i` leads from `ends[e, i]` to the
other end; `d ^ 1` is the opposite direction of directed edge d, and `d >> 1` its edge. Edges keep
their numbers when the tree is rewired, so that arrays by edge or by directed edge stay valid.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latenttree.engine.kernels import kernel
from latenttree.tree import Tree, hidden_names

REMOVED = -1
"""Both ends of an edge that was removed."""


class Incidence(NamedTuple):
    """Directed edges by node, and a breadth-first walk from node 0.

    Node v is the tail of the directed edges `edge[first[v]:first[v + 1]]`."""

    tail: NDArray[np.int64]  # (2E,) the node that a directed edge leaves
    first: NDArray[np.int64]  # (n_nodes + 1,)
    edge: NDArray[np.int64]  # (2E,) directed edges, sorted by tail
    order: NDArray[np.int64]  # nodes, parents first
    parent_edge: NDArray[np.int64]  # (n_nodes,) directed edge to the parent, -1 at the root
    n_behind: NDArray[np.int64]  # (2E,) observed nodes on the far side of a directed edge
    split_hash: NDArray[np.uint64]  # (2E,) hash of the set of those observed nodes


class TreeBuilder:
    """A tree whose edges can be given other ends, in place.

    Nodes 0..n_observed-1 are observed; numbers of hidden nodes may have gaps.

    Attributes
    ----------
    n_nodes : all node numbers are below it; new hidden nodes are numbered from here.
    ends : (E, 2) nodes that each edge joins, or `REMOVED`.
    length, standard_error, support : (E,) attributes of the edges. Edges that were never tested
        have standard error 0 and support 1.
    """

    def __init__(
        self,
        n_observed: int,
        ends: ArrayLike,
        length: ArrayLike,
        standard_error: ArrayLike = 0.0,
        support: ArrayLike = 1.0,
    ) -> None:
        self.n_observed = n_observed
        self.ends = np.array(ends, dtype=np.int64).reshape(-1, 2)
        self.n_nodes = max(n_observed, int(self.ends.max(initial=-1)) + 1)
        n_edges = len(self.ends)
        self.length = np.array(length, dtype=np.float64)
        self.standard_error = np.array(np.broadcast_to(standard_error, n_edges), dtype=np.float64)
        self.support = np.array(np.broadcast_to(support, n_edges), dtype=np.float64)

    def incidence(self) -> Incidence:
        """Directed edges by node as the tree is now. O(E log E)."""
        tail = self.ends.ravel()
        edge = np.argsort(tail, kind="stable")
        first = np.searchsorted(tail[edge], np.arange(self.n_nodes + 1))
        return Incidence(tail, first, edge, *_walk(first, edge, tail, self.n_observed))

    def hidden(self) -> NDArray[np.int64]:
        """Hidden nodes that have an edge, ascending."""
        nodes = np.unique(self.ends)
        return nodes[nodes >= self.n_observed]

    def sort(self) -> None:
        """Delete removed edges, and sort the others by (lower end, higher end), in place."""
        ends = np.sort(self.ends, axis=1)
        order = self._edges_left()
        order = order[np.lexsort((ends[order, 1], ends[order, 0]))]
        self.ends = ends[order]
        self.length = self.length[order]
        self.standard_error = self.standard_error[order]
        self.support = self.support[order]

    def add(self, ends: list[tuple[int, int]], lengths: list[float]) -> None:
        """Append edges."""
        self.ends = np.concatenate([self.ends, np.array(ends, dtype=np.int64).reshape(-1, 2)])
        self.length = np.concatenate([self.length, np.array(lengths, dtype=np.float64)])
        self.standard_error = np.concatenate([self.standard_error, np.zeros(len(ends))])
        self.support = np.concatenate([self.support, np.ones(len(ends))])

    def tree(self, names: Sequence[str], scale: float = 1.0) -> Tree:
        """The canonical `Tree`, lengths times `scale`."""
        left = self._edges_left()
        return Tree.build(tuple(names), self.ends[left], self.length[left] * scale)

    def canonical(self, names: Sequence[str], scale: float = 1.0) -> tuple[Tree, NDArray[np.int64]]:
        """The canonical tree, and for each of its edges the edge's index in this builder
        `(E,)`."""
        left, hidden = self._edges_left(), self.hidden()
        number = np.arange(self.n_nodes)
        number[hidden] = self.n_observed + np.arange(len(hidden))
        ends, observed = number[self.ends[left]], tuple(names)
        all_names = observed + hidden_names(observed, len(hidden))
        given = Tree(all_names, self.n_observed, ends, self.length[left] * scale)
        tree, new_number = given.renumbered()
        ends = np.sort(new_number[ends], axis=1)
        return tree, left[np.lexsort((ends[:, 1], ends[:, 0]))]

    def _edges_left(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.ends[:, 0] != REMOVED)


@kernel(inline="always")
def mix_bits(x):  # type: ignore[no-untyped-def]
    """A 64-bit hash of a 64-bit integer; a bijection."""
    x *= np.uint64(0x9E3779B97F4A7C15)
    x ^= x >> np.uint64(29)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    return x ^ (x >> np.uint64(32))


@kernel
def _walk(first, edge, tail, n_observed):  # type: ignore[no-untyped-def]
    """`order`, `parent_edge`, `n_behind` and `split_hash` of an `Incidence`. O(E).

    The hash of a set of observed nodes is the sum of the hashes of its members, so that the
    complement has the total less that."""
    n = len(first) - 1
    split_hash = np.zeros(len(tail), dtype=np.uint64)
    sums = np.zeros(n, dtype=np.uint64)
    parent_edge = np.full(n, -1)
    order = np.empty(n, dtype=np.int64)
    n_behind = np.zeros(len(tail), dtype=np.int64)
    below = np.zeros(n, dtype=np.int64)
    order[0] = 0
    size = 1
    q = 0
    while q < size:
        v = order[q]
        q += 1
        below[v] = 1 if v < n_observed else 0
        sums[v] = mix_bits(np.uint64(v + 1)) if v < n_observed else np.uint64(0)
        for i in range(first[v], first[v + 1]):
            d = edge[i]
            if d != parent_edge[v]:
                u = tail[d ^ 1]
                parent_edge[u] = d ^ 1
                order[size] = u
                size += 1
    for q in range(size - 1, 0, -1):
        v = order[q]
        n_behind[parent_edge[v] ^ 1] = below[v]
        n_behind[parent_edge[v]] = n_observed - below[v]
        below[tail[parent_edge[v] ^ 1]] += below[v]
        sums[tail[parent_edge[v] ^ 1]] += sums[v]
    for q in range(1, size):
        v = order[q]
        split_hash[parent_edge[v] ^ 1] = sums[v]
        split_hash[parent_edge[v]] = sums[order[0]] - sums[v]
    return order[:size], parent_edge, n_behind, split_hash
