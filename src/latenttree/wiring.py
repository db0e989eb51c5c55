"""A tree under construction: adjacency with lengths that can be cut open and rewired."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.tree import Tree


class Slots(NamedTuple):
    """Adjacency as flat arrays: slot e leads from its node to `nbr[e]`, `back[e]` is the way back.

    `number[v][u]` is the slot from node v to its neighbour u, in the wiring's own numbers.
    """

    indptr: NDArray[np.int64]
    nbr: NDArray[np.int64]
    length: NDArray[np.float64]
    back: NDArray[np.int64]
    order: NDArray[np.int64]  # nodes, parents first
    parent_slot: NDArray[np.int64]  # slot to the parent, -1 at the root
    number: dict[int, dict[int, int]]


class Wiring:
    """Nodes 0..p-1 are observed, the others hidden; `links[v]` maps neighbours to lengths."""

    def __init__(self, n_observed: int) -> None:
        self.n_observed = n_observed
        self.links: dict[int, dict[int, float]] = {v: {} for v in range(n_observed)}
        self.fresh = n_observed

    @classmethod
    def from_edges(
        cls, n_observed: int, edges: NDArray[np.int64], lengths: NDArray[np.float64]
    ) -> Wiring:
        wiring = cls(n_observed)
        for (a, b), length in zip(edges.tolist(), lengths.tolist(), strict=True):
            wiring.links.setdefault(a, {})
            wiring.links.setdefault(b, {})
            wiring.connect(a, b, length)
        wiring.fresh = max(wiring.links, default=-1) + 1
        return wiring

    def new(self) -> int:
        self.links[self.fresh] = {}
        self.fresh += 1
        return self.fresh - 1

    def connect(self, a: int, b: int, length: float) -> None:
        self.links[a][b] = length
        self.links[b][a] = length

    def cut(self, a: int, b: int) -> float:
        del self.links[b][a]
        return self.links[a].pop(b)

    def remove(self, v: int) -> None:
        for u in list(self.links[v]):
            self.cut(v, u)
        del self.links[v]

    def contract(self, keep: int, drop: int) -> None:
        """Merge hidden node `drop` into its neighbour `keep`."""
        self.cut(keep, drop)
        for u, length in list(self.links[drop].items()):
            self.cut(drop, u)
            self.connect(keep, u, length)
        del self.links[drop]

    def is_hidden(self, v: int) -> bool:
        return v >= self.n_observed

    def hidden(self) -> list[int]:
        return sorted(v for v in self.links if v >= self.n_observed)

    def edges(self) -> list[tuple[int, int]]:
        """All edges `(a, b)` with a < b, sorted."""
        return sorted((a, b) for a, near in self.links.items() for b in near if a < b)

    def tree(self, names: Sequence[str], scale: float = 1.0) -> Tree:
        """The canonical `Tree`, lengths in units of `scale`."""
        pairs = self.edges()
        edges = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        lengths = np.array([self.links[a][b] for a, b in pairs]) * scale
        return Tree.build(tuple(names), edges, lengths)

    def slots(self) -> Slots:
        """Flat adjacency; slots of a node stand together, nodes in ascending order."""
        nodes = list(range(self.n_observed)) + self.hidden()
        number = {v: i for i, v in enumerate(nodes)}
        index: dict[int, dict[int, int]] = {}
        nbr: list[int] = []
        length: list[float] = []
        indptr = [0]
        for v in nodes:
            index[v] = {u: len(nbr) + q for q, u in enumerate(self.links[v])}
            nbr.extend(number[u] for u in self.links[v])
            length.extend(self.links[v].values())
            indptr.append(len(nbr))
        back = [index[u][v] for v in nodes for u in self.links[v]]
        arrays: list[Any] = [np.array(x, dtype=np.int64) for x in (indptr, nbr, back)]
        order, parent_slot = _breadth_first(indptr, nbr, back)
        return Slots(
            arrays[0],
            arrays[1],
            np.array(length, dtype=np.float64),
            arrays[2],
            np.array(order, dtype=np.int64),
            np.array(parent_slot, dtype=np.int64),
            index,
        )


def _breadth_first(
    indptr: list[int], nbr: list[int], back: list[int]
) -> tuple[list[int], list[int]]:
    """Nodes with parents first, from node 0, and every node's slot to its parent."""
    parent_slot = [-1] * (len(indptr) - 1)
    order = [0]
    for v in order:
        for e in range(indptr[v], indptr[v + 1]):
            if e != parent_slot[v]:
                parent_slot[nbr[e]] = back[e]
                order.append(nbr[e])
    return order, parent_slot
