"""Keys of splits: an integer for each bipartition of the observed nodes.

Every observed node has a random 64-bit number; the key of a set of nodes is the XOR of theirs.
Two different splits of a tree of a million edges have equal keys once in ten million trees.
"""

from __future__ import annotations

from functools import reduce
from operator import xor

import numpy as np
from numpy.typing import NDArray

from latenttree.tree.tree import Tree

Keys = NDArray[np.uint64]


def split_keys(tree: Tree) -> Keys:
    """(E,) the key of the observed nodes that each edge cuts off from node 0. O(n)."""
    via = tree.parent_edges(0)
    keys = np.empty(tree.n_edges, dtype=np.uint64)
    below = np.array(BranchKeys(tree).below, dtype=np.uint64)
    child = np.flatnonzero(via >= 0)
    keys[via[child]] = below[child]
    return keys


def signatures(tree: Tree) -> dict[int, int]:
    """An integer for each hidden node, from the splits of its edges; renumbering does not change
    it. O(n)."""
    mixed = split_keys(tree) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    total = np.zeros(tree.n_nodes, dtype=np.uint64)
    for ends in tree.edges.T:
        np.add.at(total, ends, mixed)
    p = tree.n_observed
    return dict(zip(range(p, tree.n_nodes), total[p:].tolist(), strict=True))


class BranchKeys:
    """Keys of the observed nodes behind every directed edge of a tree."""

    def __init__(self, tree: Tree) -> None:
        rng = np.random.default_rng(0)
        own = rng.integers(0, 2**64, tree.n_observed, dtype=np.uint64).tolist()
        parents, order = (a.tolist() for a in tree.rooted(0))
        below = own + [0] * tree.n_hidden
        for v in order[:0:-1]:
            below[parents[v]] ^= below[v]
        self.parents, self.below, self.all_nodes = parents, below, below[0]

    def together(self, ends: list[tuple[int, int]]) -> int:
        """The key, as in `split_keys`, of the split between the observed nodes behind some edges
        `(v, u)`, on the side of `u`, and the rest."""
        key = reduce(xor, (self.behind(v, u) for v, u in ends), 0)
        has_node_0 = any(self.parents[u] != v for v, u in ends)
        return self.all_nodes ^ key if has_node_0 else key

    def behind(self, v: int, u: int) -> int:
        """The key of the observed nodes behind the edge from `v` to `u`, on the side of `u`."""
        return self.below[u] if self.parents[u] == v else self.all_nodes ^ self.below[v]
