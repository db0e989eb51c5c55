"""A tree as a linkage of SciPy: `Tree.to_linkage`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.tree.rooting import Adjacency, ParentEdges, breadth_first, children_of

FloatArray = NDArray[np.float64]


class Branch(NamedTuple):
    """The observed nodes of a branch as seen from a node: their cluster, by number; how many they
    are; the distance of the farthest; the smallest number."""

    cluster: int
    size: int
    depth: float
    smallest: int


@dataclass
class Merges:
    """Merges in the order in which they were found; the i-th makes cluster `n_observed + i`."""

    n_observed: int
    rows: list[tuple[float, int, int, int]]

    def of(self, branches: list[Branch]) -> Branch:
        """The branches that meet at a node, merged at one height."""
        if len(branches) == 1:
            return branches[0]
        branches = sorted(branches, key=lambda branch: branch.smallest)
        depth = max(branch.depth for branch in branches)
        cluster, size = branches[0].cluster, branches[0].size
        for branch in branches[1:]:
            size += branch.size
            self.rows.append((2 * depth, cluster, branch.cluster, size))
            cluster = self.n_observed + len(self.rows) - 1
        return Branch(cluster, size, depth, branches[0].smallest)

    def sorted(self) -> FloatArray:
        """The linkage: merges by height, clusters numbered in this order."""
        found = np.array(self.rows, dtype=np.float64).reshape(-1, 4)
        order = np.argsort(found[:, 0], kind="stable")  # a cluster comes before those it goes into
        number = np.arange(self.n_observed + len(order))
        number[self.n_observed + order] = self.n_observed + np.arange(len(order))
        height, first, second, size = found[order].T
        parts = (number[first.astype(np.int64)], number[second.astype(np.int64)])
        return np.column_stack([*parts, height, size]).astype(np.float64)


def linkage_of(adjacency: Adjacency, lengths: FloatArray, n_observed: int) -> FloatArray:
    """(p - 1, 4) merges from the leaves to the middle of the longest path between observed nodes,
    see `Tree.to_linkage`. ``O(n log n)``."""
    if n_observed == 1:
        return np.empty((0, 4))
    (top, below), middle = middle_edge(adjacency, lengths, n_observed)
    rooted = breadth_first(adjacency, top)
    children = children_of(rooted)
    children[top].remove(below)
    above = np.append(lengths, 0.0)[rooted.edges].tolist()
    merges = Merges(n_observed, [])
    known: dict[int, Branch] = {}
    for v in rooted.order[::-1].tolist():
        branches = [_moved(known.pop(c), above[c]) for c in children[v]]
        if v < n_observed:
            branches.append(Branch(v, 1, 0.0, v))
        known[v] = merges.of(branches)
    merges.of([known[top]._replace(depth=middle), known[below]._replace(depth=middle)])
    return merges.sorted()


def middle_edge(
    adjacency: Adjacency, lengths: FloatArray, n_observed: int
) -> tuple[tuple[int, int], float]:
    """The two ends of the edge in which the middle of the longest path between observed nodes
    lies, and half the length of this path."""
    start, _ = _distances(adjacency, lengths, 0)
    one = int(np.argmax(start[:n_observed]))
    distance, rooted = _distances(adjacency, lengths, one)
    v = int(np.argmax(distance[:n_observed]))
    if v == one:  # all lengths are zero
        v = int(rooted.order[1])
    middle = float(distance[v]) / 2
    while distance[rooted.parents[v]] > middle:
        v = int(rooted.parents[v])
    return (int(rooted.parents[v]), v), middle


def _distances(
    adjacency: Adjacency, lengths: FloatArray, root: int
) -> tuple[FloatArray, ParentEdges]:
    """Distance of every node from one of them."""
    rooted = breadth_first(adjacency, root)
    parents, edges = rooted.parents.tolist(), rooted.edges.tolist()
    distance, length = [0.0] * len(parents), lengths.tolist()
    for v in rooted.order[1:].tolist():
        distance[v] = distance[parents[v]] + length[edges[v]]
    return np.array(distance), rooted


def _moved(branch: Branch, length: float) -> Branch:
    """A branch as seen from the other end of an edge."""
    return branch._replace(depth=branch.depth + length)
