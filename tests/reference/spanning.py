"""Spanning trees by Kruskal's rule and by trying all of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Edges = list[tuple[int, int]]


def kruskal(distances: NDArray[np.float64]) -> Edges:
    """Edges from short to long, each taken if it joins two pieces."""
    p = len(distances)
    piece = list(range(p))
    chosen = []
    for a, b in sorted(itertools.combinations(range(p), 2), key=lambda e: distances[e]):
        if piece[a] != piece[b]:
            chosen.append((a, b))
            old, new = piece[b], piece[a]
            piece = [new if x == old else x for x in piece]
    return sorted(chosen)


def all_spanning_trees(p: int) -> Iterator[Edges]:
    """All `p^(p - 2)` labelled trees, decoded from their Prüfer sequences."""
    for sequence in itertools.product(range(p), repeat=p - 2):
        degree = [1 + sequence.count(v) for v in range(p)]
        edges = []
        for v in sequence:
            leaf = degree.index(1)
            edges.append((leaf, v))
            degree[leaf] = 0
            degree[v] -= 1
        a, b = (v for v in range(p) if degree[v] == 1)
        yield [*edges, (a, b)]


def total_weight(distances: NDArray[np.float64], edges: Edges | NDArray[np.int64]) -> float:
    return float(sum(distances[a, b] for a, b in edges))


def is_spanning_tree(p: int, edges: Edges | NDArray[np.int64]) -> bool:
    reached = {0}
    for _ in range(p):
        for a, b in edges:
            if a in reached or b in reached:
                reached |= {int(a), int(b)}
    return len(edges) == p - 1 and len(reached) == p
