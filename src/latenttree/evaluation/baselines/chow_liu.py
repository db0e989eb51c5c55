"""Chow-Liu tree: the minimum spanning tree of the information distances, no hidden nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latenttree.evaluation.baselines._shared import EdgeList, as_edge_list, check_distances
from latenttree.tree import Tree


def chow_liu(D: ArrayLike, names: Sequence[str] | None = None) -> Tree:
    """Return the minimum spanning tree over the observed variables.

    Zero distances (duplicate variables) are edges of length zero, not missing edges.

    Parameters
    ----------
    D : (n_vars, n_vars) distances, finite and not negative.
    names : names of the variables; x0, x1, ... by default.
    """
    distances, names = check_distances(D, names)
    edges, lengths = spanning_edges(distances)
    return Tree.build(names, edges, lengths)


def spanning_edges(D: NDArray[np.float64]) -> EdgeList:
    """Prim's algorithm on a dense matrix, O(p^2); ties go to the lower index."""
    n_vars = len(D)
    nearest = np.zeros(n_vars, dtype=np.int64)
    distance = D[0].copy()
    distance[0] = np.inf
    edges: list[tuple[int, int]] = []
    lengths: list[float] = []
    outside = np.ones(n_vars, dtype=bool)
    outside[0] = False
    for _ in range(n_vars - 1):
        new = int(np.argmin(distance))
        edges.append((int(nearest[new]), new))
        lengths.append(float(D[nearest[new], new]))
        outside[new] = False
        closer = outside & (D[new] < distance)
        distance[closer] = D[new, closer]
        nearest[closer] = new
        distance[new] = np.inf
    return as_edge_list(edges, lengths)
