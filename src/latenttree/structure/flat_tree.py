"""A tree under construction as arrays, for compiled kernels.

Edge e joins `ends[e, 0]` and `ends[e, 1]`. A slot is an edge seen from one end: slot `2 e + i`
leads from `ends[e, i]` to the other end, and slot `s ^ 1` is the way back. Edges keep their
numbers when the tree is rewired, so that what is known about them, and about the branches behind
them, stays in its place.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.engine.kernels import kernel
from latenttree.structure.builder import Wiring

GONE = -1
"""Both ends of an edge that is no more."""


class Around(NamedTuple):
    """Slots by node, and a walk: node v has the slots `slot[first[v]:first[v + 1]]`."""

    first: NDArray[np.int64]  # (nodes + 1,)
    slot: NDArray[np.int64]
    order: NDArray[np.int64]  # nodes from node 0, parents first
    up: NDArray[np.int64]  # (nodes,) slot to the parent, -1 at the root
    behind: NDArray[np.int64]  # (slots,) observed nodes behind a slot
    mark: NDArray[np.uint64]  # (slots,) a number for the set of observed nodes behind a slot


class Flat:
    """Nodes 0..p-1 are observed; numbers of hidden nodes may have gaps."""

    def __init__(
        self, n_observed: int, ends: NDArray[np.int64], length: NDArray[np.float64], n_nodes: int
    ) -> None:
        self.n_observed, self.n_nodes = n_observed, n_nodes
        self.ends, self.length = ends, length

    @classmethod
    def of(cls, wiring: Wiring) -> Flat:
        pairs = wiring.edges()
        length = np.array([wiring.links[a][b] for a, b in pairs], dtype=np.float64)
        ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        return cls(wiring.n_observed, ends, length, wiring.fresh)

    def into(self, wiring: Wiring) -> None:
        """Make a wiring this tree."""
        links: dict[int, dict[int, float]] = {v: {} for v in range(self.n_observed)}
        for (a, b), x in zip(self.ends.tolist(), self.length.tolist(), strict=True):
            if a != GONE:
                links.setdefault(a, {})[b] = x
                links.setdefault(b, {})[a] = x
        wiring.links, wiring.fresh = links, self.n_nodes

    def around(self) -> Around:
        """Slots by node as the tree is now."""
        tails = self.ends.ravel()
        slot = np.argsort(tails, kind="stable")
        first = np.searchsorted(tails[slot], np.arange(self.n_nodes + 1))
        return Around(first, slot, *_walk(first, slot, tails, self.n_observed))

    def hidden(self) -> NDArray[np.int64]:
        """Hidden nodes that are there, ascending."""
        found = np.unique(self.ends)
        return found[found >= self.n_observed]

    def pairs(self, rows: NDArray[np.int64]) -> list[tuple[int, int]]:
        """Ends of some edges, the lower first."""
        return [(a, b) for a, b in np.sort(self.ends[rows], axis=1).tolist()]

    def add(self, ends: list[tuple[int, int]], lengths: list[float]) -> None:
        """Further edges after all others."""
        self.ends = np.concatenate([self.ends, np.array(ends, dtype=np.int64).reshape(-1, 2)])
        self.length = np.concatenate([self.length, np.array(lengths, dtype=np.float64)])


@kernel(inline="always")
def mixed(x):  # type: ignore[no-untyped-def]
    """64 bits that look random, another number for another number."""
    x *= np.uint64(0x9E3779B97F4A7C15)
    x ^= x >> np.uint64(29)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    return x ^ (x >> np.uint64(32))


@kernel
def _walk(first, slot, tails, n_observed):  # type: ignore[no-untyped-def]
    """Nodes from node 0, parents first, each one's slot to its parent, and for every slot the
    number of observed nodes behind it and the sum of their 64-bit mixes. O(slots)."""
    n = len(first) - 1
    mark = np.zeros(len(tails), dtype=np.uint64)
    mixes = np.zeros(n, dtype=np.uint64)
    up = np.full(n, -1)
    order = np.empty(n, dtype=np.int64)
    behind = np.zeros(len(tails), dtype=np.int64)
    below = np.zeros(n, dtype=np.int64)
    order[0] = 0
    size = 1
    q = 0
    while q < size:
        v = order[q]
        q += 1
        below[v] = 1 if v < n_observed else 0
        mixes[v] = mixed(np.uint64(v + 1)) if v < n_observed else np.uint64(0)
        for i in range(first[v], first[v + 1]):
            s = slot[i]
            if s != up[v]:
                u = tails[s ^ 1]
                up[u] = s ^ 1
                order[size] = u
                size += 1
    for q in range(size - 1, 0, -1):
        v = order[q]
        behind[up[v] ^ 1] = below[v]
        behind[up[v]] = n_observed - below[v]
        below[tails[up[v] ^ 1]] += below[v]
        mixes[tails[up[v] ^ 1]] += mixes[v]
    for q in range(1, size):
        v = order[q]
        mark[up[v] ^ 1] = mixes[v]
        mark[up[v]] = mixes[order[0]] - mixes[v]
    return order[:size], up, behind, mark
