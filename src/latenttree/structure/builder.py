"""A tree under construction: adjacency with lengths that can be cut open and rewired."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from latenttree.tree import Tree


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
