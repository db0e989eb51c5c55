"""A tree as a dictionary of neighbours that can be cut and reconnected: slow and obvious."""

from __future__ import annotations

import numpy as np

from latenttree.structure.builder import REMOVED, TreeBuilder
from latenttree.tree import Tree


class Adjacency:
    """Nodes 0..n_observed-1 are observed; `links[v]` maps the neighbours of v to lengths."""

    def __init__(self, n_observed: int) -> None:
        self.n_observed = n_observed
        self.links: dict[int, dict[int, float]] = {v: {} for v in range(n_observed)}

    @classmethod
    def of(cls, tree: TreeBuilder | Tree) -> Adjacency:
        """The adjacency of a tree."""
        adjacency = cls(tree.n_observed)
        ends, lengths = (
            (tree.edges, tree.lengths) if isinstance(tree, Tree) else (tree.ends, tree.length)
        )
        for (a, b), length in zip(ends.tolist(), lengths.tolist(), strict=True):
            if a != REMOVED:
                adjacency.connect(a, b, length)
        return adjacency

    def connect(self, a: int, b: int, length: float) -> None:
        self.links.setdefault(a, {})[b] = length
        self.links.setdefault(b, {})[a] = length

    def cut(self, a: int, b: int) -> float:
        """Remove an edge; its length."""
        del self.links[b][a]
        return self.links[a].pop(b)

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
        return sorted(v for v in self.links if self.is_hidden(v))

    def edges(self) -> list[tuple[int, int]]:
        """All edges `(a, b)` with a < b, sorted."""
        return sorted((a, b) for a, near in self.links.items() for b in near if a < b)

    def builder(self) -> TreeBuilder:
        """The tree as a builder, edges sorted."""
        pairs = self.edges()
        return TreeBuilder(self.n_observed, pairs, [self.links[a][b] for a, b in pairs])


def builder_of(tree: Tree) -> TreeBuilder:
    """A tree as a builder, with the numbers of its nodes and edges."""
    return TreeBuilder(tree.n_observed, tree.edges, tree.lengths)


def edges_of(tree: TreeBuilder) -> list[tuple[int, int]]:
    """All edges `(a, b)` with a < b, sorted."""
    return Adjacency.of(tree).edges()


def interchange(adjacency: Adjacency, rng: np.random.Generator) -> None:
    """Swap a branch on one side of an internal edge with one on the other side."""
    inner = [(a, b) for a, b in adjacency.edges() if adjacency.is_hidden(a)]
    a, b = inner[int(rng.integers(len(inner)))]
    x = int(rng.choice([u for u in adjacency.links[a] if u != b]))
    y = int(rng.choice([u for u in adjacency.links[b] if u != a]))
    to_x, to_y = adjacency.cut(a, x), adjacency.cut(b, y)
    adjacency.connect(a, y, to_y)
    adjacency.connect(b, x, to_x)


def steps_from(adjacency: Adjacency, start: int) -> dict[int, int]:
    """Edges from `start` to every node."""
    steps, queue = {start: 0}, [start]
    for v in queue:
        for u in adjacency.links[v]:
            if u not in steps:
                steps[u] = steps[v] + 1
                queue.append(u)
    return steps
