"""Edges by what they part: a number for each split of the observed nodes.

Every observed node has a random number of 64 bits; a set of nodes has theirs, added without carry.
Two different splits of a tree of a million edges have the same number once in ten million trees.
"""

from __future__ import annotations

from functools import reduce
from operator import xor

import numpy as np
from numpy.typing import NDArray

from latenttree.tree import Tree

Keys = NDArray[np.uint64]


def split_keys(tree: Tree) -> Keys:
    """(E,) the number of the observed nodes that each edge cuts off from node 0. O(n)."""
    via = tree.parent_edges(0)
    keys = np.empty(tree.n_edges, dtype=np.uint64)
    below = np.array(Sides(tree).below, dtype=np.uint64)
    child = np.flatnonzero(via >= 0)
    keys[via[child]] = below[child]
    return keys


def signatures(tree: Tree) -> dict[int, int]:
    """Every hidden node by the splits of its edges, which renumbering does not change. O(n)."""
    mixed = split_keys(tree) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    total = np.zeros(tree.n_nodes, dtype=np.uint64)
    for ends in tree.edges.T:
        np.add.at(total, ends, mixed)
    p = tree.n_observed
    return dict(zip(range(p, tree.n_nodes), total[p:].tolist(), strict=True))


class Sides:
    """The numbers of the observed nodes behind every directed edge of a tree."""

    def __init__(self, tree: Tree) -> None:
        rng = np.random.default_rng(0)
        own = rng.integers(0, 2**64, tree.n_observed, dtype=np.uint64).tolist()
        parents, order = (a.tolist() for a in tree.rooted(0))
        below = own + [0] * tree.n_hidden
        for v in order[:0:-1]:
            below[parents[v]] ^= below[v]
        self.parents, self.below, self.everything = parents, below, below[0]

    def together(self, ends: list[tuple[int, int]]) -> int:
        """The split that parts what lies behind some edges `(v, u)`, on the side of `u`, from the
        rest: as `split_keys` has it."""
        away = reduce(xor, (self.behind(v, u) for v, u in ends), 0)
        holds_0 = any(self.parents[u] != v for v, u in ends)
        return self.everything ^ away if holds_0 else away

    def behind(self, v: int, u: int) -> int:
        return self.below[u] if self.parents[u] == v else self.everything ^ self.below[v]
