"""Local trees -> one tree, by the union of the paths on which neighbouring MST groups disagree.

The paper's Procedure "Merging and Alignment Correction". Leaders i and j that are neighbours in the
spanning tree have between them the hidden nodes that group i found and those that group j found:

    group i:   i - a1 - a2 - j            union:   i - a1 - a2 - b2 - b1 - j
    group j:   i - b2 - b1 - j

Each keeps the nodes it found itself; where both found the same node, the edge between the two
copies has length zero.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.distances.similarity import Similarity
from latenttree.structure.builder import REMOVED, TreeBuilder
from latenttree.structure.grouping import MSTGroup

ZERO_LENGTH = 1e-9
"""Edges up to this length are contracted."""


class _OpenEnd(NamedTuple):
    """Where a group's tree goes on towards another leader: the last node, and its distance from the
    group's own leader."""

    node: int
    distance: float


class _Edges:
    """Edges in the order in which they are found, and the next number of a hidden node."""

    def __init__(self, n_observed: int) -> None:
        self.n_observed = self.next_node = n_observed
        self.ends: list[tuple[int, int]] = []
        self.lengths: list[float] = []

    def new_node(self) -> int:
        """The number of a new hidden node."""
        self.next_node += 1
        return self.next_node - 1

    def connect(self, a: int, b: int, length: float) -> None:
        """Add an edge."""
        self.ends.append((a, b))
        self.lengths.append(length)


def merge(similarity: Similarity, groups: list[MSTGroup]) -> TreeBuilder:
    """Union of all local trees. Every observed node is a leaf, possibly at distance zero. O(p)."""
    p = similarity.n_variables
    edges = _Edges(p)
    if p == 2:
        (distance,) = _edge_lengths(similarity, [(0, 1)])
        edges.connect(0, 1, distance)
    leaders = {int(group.members[0]) for group in groups}
    open_ends: dict[tuple[int, int], _OpenEnd] = {}
    for group in groups:
        open_ends.update(_place(edges, group, leaders))
    pairs = [(i, j) for i, j in open_ends if i < j]
    for (i, j), distance in zip(pairs, _edge_lengths(similarity, pairs), strict=True):
        a, b = open_ends[(i, j)], open_ends[(j, i)]
        edges.connect(a.node, b.node, max(distance - a.distance - b.distance, 0.0))
    return TreeBuilder(p, edges.ends, edges.lengths)


def _edge_lengths(similarity: Similarity, pairs: list[tuple[int, int]]) -> list[float]:
    """Distances `-log |rho|` of pairs of variables."""
    rho = np.abs(similarity.of_pairs(np.array(pairs, dtype=np.int64).reshape(-1, 2)))
    lengths: list[float] = (-np.log(np.maximum(rho, 1e-300))).tolist()
    return lengths


def _place(edges: _Edges, group: MSTGroup, leaders: set[int]) -> dict[tuple[int, int], _OpenEnd]:
    """Add a group's tree, without the leaves that lead other groups.

    Returns for each of those, as `(leader, leaf)`, the end that was left open."""
    members = group.members.tolist()
    m, leader = len(members), members[0]
    near: dict[int, list[tuple[int, float]]] = {}
    for (a, b), length in zip(group.edges.tolist(), group.lengths.tolist(), strict=True):
        near.setdefault(a, []).append((b, length))
        near.setdefault(b, []).append((a, length))
    number = {i: edges.new_node() for i in near if i >= m}
    for i, v in enumerate(members):
        if i == 0 or v not in leaders:
            number[i] = v
    open_ends = {}
    distance, stack = {0: 0.0}, [0]
    while stack:
        a = stack.pop()
        for b, length in near[a]:
            if b in distance:
                continue
            distance[b] = distance[a] + length
            stack.append(b)
            if b in number:
                edges.connect(number[a], number[b], length)
            else:
                open_ends[(leader, members[b])] = _OpenEnd(number[a], distance[a])
    return open_ends


def contract_zero(tree: TreeBuilder, tolerance: float = ZERO_LENGTH) -> None:
    """Contract, in place, edges of length zero that have a hidden end; two observed nodes stay two.

    A hidden node becomes the observed node that is nearest to it over such edges, if there is one;
    else it becomes one with the hidden nodes there. Sorts the edges. O(n)."""
    becomes = _zero_components(tree, tolerance)
    tree.ends = becomes[tree.ends]
    tree.ends[tree.ends[:, 0] == tree.ends[:, 1]] = REMOVED
    tree.sort()


def _zero_components(tree: TreeBuilder, tolerance: float) -> NDArray[np.int64]:
    """The node that each node becomes, `(n_nodes,)`: breadth first over short edges, from all
    observed nodes together, then from every hidden node that was not reached."""
    incidence = tree.incidence()
    first, directed, tail = (x.tolist() for x in (incidence.first, incidence.edge, incidence.tail))
    short = (tree.length <= tolerance).tolist()
    becomes = list(range(tree.n_observed)) + [-1] * (tree.n_nodes - tree.n_observed)
    for start in (None, *tree.hidden().tolist()):
        queue = list(range(tree.n_observed)) if start is None else [start]
        if start is not None and becomes[start] >= 0:
            continue
        if start is not None:
            becomes[start] = start
        for v in queue:
            for d in directed[first[v] : first[v + 1]]:
                u = tail[d ^ 1]
                if short[d >> 1] and becomes[u] < 0:
                    becomes[u] = becomes[v]
                    queue.append(u)
    return np.array(becomes, dtype=np.int64)
