"""Exact minimum spanning trees of a dense distance matrix.

Zero distances (duplicate variables) are real edges here; sparse-graph routines drop them.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def _prim(distances):  # type: ignore[no-untyped-def]
    """Prim's algorithm on a dense symmetric matrix, O(p^2) time, O(p) extra memory.

    Ties go to the smaller node index, and infinite distances are used last, so the result is a
    deterministic tree whatever the input.
    """
    p = distances.shape[0]
    best = np.full(p, np.inf)
    link = np.zeros(p, dtype=np.int64)
    outside = np.ones(p, dtype=np.bool_)
    edges = np.empty((max(p - 1, 0), 2), dtype=np.int64)
    node = 0
    outside[0] = False
    for step in range(p - 1):
        nearest = -1
        row = distances[node]
        for j in range(p):
            if outside[j]:
                if row[j] < best[j]:
                    best[j] = row[j]
                    link[j] = node
                if nearest < 0 or best[j] < best[nearest]:
                    nearest = j
        edges[step, 0] = link[nearest]
        edges[step, 1] = nearest
        outside[nearest] = False
        node = nearest
    return edges


def minimum_spanning_tree(distances: NDArray[np.floating]) -> NDArray[np.int64]:
    """Edges `(p - 1, 2)` of the minimum spanning tree, each as (lower, higher), sorted."""
    edges = np.sort(_prim(np.ascontiguousarray(distances)), axis=1)
    return edges[np.lexsort((edges[:, 1], edges[:, 0]))]
