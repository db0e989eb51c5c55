"""Exact minimum spanning trees of a dense matrix.

Edges are in one strict order: by distance (or similarity), ties by the lower node, then by the
higher. So the tree is the same however it is computed. Zero distances (duplicate variables)
are real edges here; sparse-graph routines drop them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.distances.estimate import UNMEASURABLE_ERROR
from latenttree.engine.arrays import Bools, Float32, Floats, Ints
from latenttree.engine.kernels import kernel, subroutine
from latenttree.moments.binary import binary_pair

MAX_PENALTY = 30.0
"""Largest exponent of the noise penalty."""

_NO_ERRORS = np.empty((0, 0), dtype=np.float32)
_NO_NUMBERS = np.empty(0)
_EXACT = (_NO_ERRORS, _NO_NUMBERS, _NO_NUMBERS, 1.0)
"""Errors, means, inverse standard deviations and samples of values without error."""


@subroutine
def noise_penalised(similarity, error):  # type: ignore[no-untyped-def]
    """Noise-penalised similarity, by which neighbours are chosen: `similarity * exp(-error)` where
    the distance is not measurable, as for a variable that few samples have."""
    if error < UNMEASURABLE_ERROR:
        return similarity
    return similarity * np.exp(-min(error, MAX_PENALTY))


@subroutine
def precedes(a, b, c, d):  # type: ignore[no-untyped-def]
    """Whether edge (a, b) comes before edge (c, d) where both are equally long."""
    low, other = min(a, b), min(c, d)
    return low < other or (low == other and max(a, b) < max(c, d))


@kernel
def _prim(values, errors, mean, inverse_sd, n, excluded, by_similarity):  # type: ignore[no-untyped-def]
    """Prim's algorithm on a dense symmetric matrix, O(p^2) time, O(p) extra memory.

    `values` are distances, or (`by_similarity`) determinants, of whose magnitudes, penalised by
    `errors`, the largest are taken; for 0/1 variables with means `mean` errors are computed. Nodes
    `excluded` have similarity zero to all. Infinite distances are used last. The loop stays whole:
    an error is computed only for a pair that may become the best of its node.
    """
    p = values.shape[0]
    best = np.full(p, np.inf)
    link = np.zeros(p, dtype=np.int64)
    outside = np.ones(p, dtype=np.bool_)
    edges = np.empty((max(p - 1, 0), 2), dtype=np.int64)
    node = 0
    outside[0] = False
    for step in range(p - 1):
        nearest = -1
        row = values[node]
        for j in range(p):
            if not outside[j]:
                continue
            x: float = row[j]
            if by_similarity:
                x = 0.0 if excluded[j] or excluded[node] else -abs(x)
            if x <= best[j] or step == 0:
                if by_similarity and errors.shape[0] > 0:
                    x = -noise_penalised(-x, np.float64(errors[node, j]))
                elif by_similarity and len(mean) > 0:
                    a, b = max(node, j), min(node, j)
                    covariance = np.float64(row[j]) / (inverse_sd[a] * inverse_sd[b])
                    _, error, _ = binary_pair(
                        covariance, mean[a], mean[b], inverse_sd[a], inverse_sd[b], n
                    )
                    x = -noise_penalised(-x, np.float64(np.float32(error)))
                if step == 0 or x < best[j] or (x == best[j] and precedes(node, j, link[j], j)):
                    best[j] = x
                    link[j] = node
            if (
                nearest < 0
                or best[j] < best[nearest]
                or (best[j] == best[nearest] and precedes(link[j], j, link[nearest], nearest))
            ):
                nearest = j
        edges[step, 0] = link[nearest]
        edges[step, 1] = nearest
        outside[nearest] = False
        node = nearest
    return edges


def minimum_spanning_tree(distances: NDArray[np.floating]) -> Ints:
    """Edges `(p - 1, 2)` of the minimum spanning tree, each as (lower, higher), sorted."""
    none = np.zeros(len(distances), dtype=np.bool_)
    return sorted_edges(_prim(np.ascontiguousarray(distances), *_EXACT, none, False))


def strongest_tree(
    determinants: NDArray[np.floating],
    errors: NDArray[Any] | None = None,
    excluded: Bools | None = None,
) -> Ints:
    """Edges of the spanning tree of largest `|determinants|`, penalised by their `errors`, in the
    form of `minimum_spanning_tree`. Variables `excluded` have similarity zero to all others."""
    if excluded is None:
        excluded = np.zeros(len(determinants), dtype=np.bool_)
    known = _NO_ERRORS if errors is None else np.ascontiguousarray(errors, dtype=np.float32)
    return sorted_edges(
        _prim(np.ascontiguousarray(determinants), known, *_EXACT[1:], excluded, True)
    )


def strongest_binary_tree(
    correlations: Float32, mean: Floats, inverse_sd: Floats, n: float
) -> Ints:
    """The same for 0/1 variables, from their correlations, means and damped inverse standard
    deviations."""
    none = np.zeros(len(correlations), dtype=np.bool_)
    return sorted_edges(_prim(correlations, _NO_ERRORS, mean, inverse_sd, n, none, True))


def sorted_edges(edges: Ints) -> Ints:
    """Edges as (lower, higher), sorted."""
    edges = np.sort(edges, axis=1)
    return edges[np.lexsort((edges[:, 1], edges[:, 0]))]
