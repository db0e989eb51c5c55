"""What the baselines have in common: the check of their input, and edits of plain edge lists.

An edge list is a pair of arrays, `edges` (E, 2) int64 and `lengths` (E,) float64. Nodes
below `n_observed` are observed, the others hidden; the numbers of hidden nodes may have gaps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from latenttree.engine.arrays import Floats, Ints
from latenttree.tree.numbering import merged_nodes

EdgeList = tuple[Ints, Floats]

# Neighbours of each node with the lengths of the edges to them.
Neighbors = dict[int, dict[int, float]]

# Distances that come out of a matrix product are symmetric up to rounding only.
SYMMETRY_TOLERANCE = 1e-8


def check_distances(
    D: ArrayLike, names: Sequence[str] | None = None
) -> tuple[Floats, tuple[str, ...]]:
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


def merge_short_edges(n_observed: int, edges: Ints, lengths: Floats, threshold: float) -> EdgeList:
    """Merge the two ends of every edge shorter than `threshold`, shortest first.

    A hidden node disappears into its hidden or observed neighbour; two observed nodes are
    never merged, also not through hidden nodes between them. Cost O(E log E).
    """
    n_nodes = max(n_observed, int(edges.max(initial=-1)) + 1)
    order = np.argsort(lengths, kind="stable")
    merged = merged_nodes(n_nodes, n_observed, edges[order[lengths[order] < threshold]])[edges]
    kept = merged[:, 0] != merged[:, 1]
    return merged[kept], lengths[kept]


def neighbors_of(edges: Ints, lengths: Floats, n_nodes: int = 0) -> Neighbors:
    """Neighbours of every node of an edge list, and of nodes 0..n_nodes-1 in any case."""
    neighbors: Neighbors = {node: {} for node in range(n_nodes)}
    for (a, b), length in zip(edges.tolist(), lengths.tolist(), strict=True):
        neighbors.setdefault(a, {})[b] = length
        neighbors.setdefault(b, {})[a] = length
    return neighbors


def edges_of(neighbors: Neighbors) -> EdgeList:
    """The edge list of neighbours."""
    ends = [(a, b) for a, row in neighbors.items() for b in row if a < b]
    return as_edge_list(ends, [neighbors[a][b] for a, b in ends])


def tidy_hidden(n_observed: int, edges: Ints, lengths: Floats) -> EdgeList:
    """Drop hidden leaves and join the two edges of every hidden node of degree 2.

    What is left has hidden nodes of degree 3 or more only, as a `Tree` requires. Cost O(E).
    """
    adjacency = neighbors_of(edges, lengths)
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
    return edges_of(adjacency)
