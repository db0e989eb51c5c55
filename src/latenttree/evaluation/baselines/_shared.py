"""What the baselines have in common: the check of their input, and edits of plain edge lists.

An edge list is a pair of arrays, `edges` (E, 2) int64 and `lengths` (E,) float64. Nodes
below `n_observed` are observed, the others hidden; the numbers of hidden nodes may have gaps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

EdgeList = tuple[NDArray[np.int64], NDArray[np.float64]]

# Distances that come out of a matrix product are symmetric up to rounding only.
SYMMETRY_TOLERANCE = 1e-8


def check_distances(
    D: ArrayLike, names: Sequence[str] | None = None
) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Return `D` as a symmetric float64 matrix with zero diagonal (a copy), and the names.

    Names default to x0, x1, ...
    """
    distances = np.array(D, dtype=np.float64)
    if distances.ndim != 2 or distances.shape[0] != distances.shape[1] or not distances.size:
        raise ValueError(
            f"distances have shape {distances.shape}; pass a square matrix, one row for each "
            "observed variable"
        )
    bad = ~np.isfinite(distances) | (distances < 0)
    if bad.any():
        i, j = np.argwhere(bad)[0]
        raise ValueError(
            f"distance ({i}, {j}) is {distances[i, j]}; distances must be finite and not "
            "negative: replace unmeasurable ones by a large value first"
        )
    gap = np.abs(distances - distances.T)
    if gap.max() > SYMMETRY_TOLERANCE * max(1.0, distances.max()):
        i, j = np.unravel_index(int(gap.argmax()), gap.shape)
        raise ValueError(
            f"distances ({i}, {j}) and ({j}, {i}) are {distances[i, j]} and {distances[j, i]}; "
            "pass a symmetric matrix, for instance (D + D.T) / 2"
        )
    distances = 0.5 * (distances + distances.T)
    np.fill_diagonal(distances, 0.0)
    return distances, _check_names(names, len(distances))


def _check_names(names: Sequence[str] | None, n_observed: int) -> tuple[str, ...]:
    if names is None:
        return tuple(f"x{i}" for i in range(n_observed))
    if len(names) != n_observed:
        raise ValueError(
            f"{len(names)} names for {n_observed} variables; pass one name for each row of the "
            "distance matrix"
        )
    return tuple(str(name) for name in names)


def as_edge_list(edges: Sequence[tuple[int, int]], lengths: Sequence[float]) -> EdgeList:
    """Return Python lists as an edge list; an empty one keeps its shape (0, 2)."""
    return (
        np.array(edges, dtype=np.int64).reshape(-1, 2),
        np.array(lengths, dtype=np.float64).reshape(-1),
    )


def merge_short_edges(
    n_observed: int, edges: NDArray[np.int64], lengths: NDArray[np.float64], threshold: float
) -> EdgeList:
    """Merge the two ends of every edge shorter than `threshold`, shortest first.

    A hidden node disappears into its hidden or observed neighbour; two observed nodes are
    never merged, also not through hidden nodes between them. Cost O(E log E).
    """
    n_nodes = max(n_observed, int(edges.max(initial=-1)) + 1)
    parent = list(range(n_nodes))

    def find(node: int) -> int:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for edge in np.argsort(lengths, kind="stable"):
        if lengths[edge] >= threshold:
            break
        # The lower root stays, so that the root of a set with an observed node is that node.
        low, high = sorted((find(int(edges[edge, 0])), find(int(edges[edge, 1]))))
        if high >= n_observed:
            parent[high] = low
    roots = np.array([find(node) for node in range(n_nodes)], dtype=np.int64)
    merged = roots[edges]
    kept = merged[:, 0] != merged[:, 1]
    return merged[kept], lengths[kept]


def tidy_hidden(
    n_observed: int, edges: NDArray[np.int64], lengths: NDArray[np.float64]
) -> EdgeList:
    """Drop hidden leaves and join the two edges of every hidden node of degree 2.

    What is left has hidden nodes of degree 3 or more only, as a `Tree` requires. Cost O(E).
    """
    adjacency: dict[int, dict[int, float]] = {}
    for (a, b), length in zip(edges.tolist(), lengths.tolist(), strict=True):
        adjacency.setdefault(a, {})[b] = length
        adjacency.setdefault(b, {})[a] = length
    doubtful = [node for node in adjacency if node >= n_observed]
    while doubtful:
        node = doubtful.pop()
        if node not in adjacency or len(adjacency[node]) > 2:
            continue
        around = list(adjacency.pop(node).items())
        for neighbor, _ in around:
            del adjacency[neighbor][node]
        if len(around) == 2:
            (a, length_a), (b, length_b) = around
            adjacency[a][b] = adjacency[b][a] = length_a + length_b
        # Only the loss of a leaf changes a degree.
        elif around and around[0][0] >= n_observed:
            doubtful.append(around[0][0])
    left = [(a, b) for a, row in adjacency.items() for b in row if a < b]
    return as_edge_list(left, [adjacency[a][b] for a, b in left])
