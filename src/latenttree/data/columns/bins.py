"""Numbers for the structure: quantile bins, normal scores and standardised coordinates. None of
them depends on the unit of a column.

Weights are frequencies: a row of weight 3 gives the bins of three such rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import ndtri

Floats = NDArray[np.float64]

SAMPLES_PER_BIN = 40
MIN_BINS, MAX_BINS = 4, 16

NEGLIGIBLE = 1e-12
"""A standard deviation below this share of the largest value is rounding."""


def number_of_bins(total: float) -> int:
    """Bins for values of this total weight: 40 in each, from 4 to 16 bins."""
    return int(np.clip(total // SAMPLES_PER_BIN, MIN_BINS, MAX_BINS))


def quantile_edges(values: NDArray[Any], weights: Floats | None = None) -> NDArray[Any]:
    """Sorted upper edges of all bins but the last; `(bins - 1,)`, empty for a single value.

    Edge j of b bins is the smallest value `u` with `W(x <= u) >= j W / b`, so edges are values of
    the data and no bin is empty. Equal edges collapse. Where one value fills every bin there are
    two: it, and the rest. Cost O(n log n)."""
    if weights is None:
        ranked = np.sort(values)
        cumulative = np.arange(1.0, len(ranked) + 1)
    else:
        order = np.lexsort((weights, values))  # sums round the same whatever the order of rows
        ranked, cumulative = values[order], np.cumsum(weights[order])
    b = number_of_bins(cumulative[-1])
    targets = np.arange(1, b) * cumulative[-1] / b
    edges = np.unique(ranked[np.searchsorted(cumulative[:-1], targets)])
    below = ranked[: np.searchsorted(ranked, ranked[-1])]
    edges = edges[edges < ranked[-1]]
    return edges if edges.size else below[-1:]


def bin_codes(values: NDArray[Any], edges: NDArray[Any]) -> NDArray[np.int64]:
    """The bin of each value: how many edges lie below it. O(n log bins)."""
    return np.searchsorted(edges, values)


def varies(values: NDArray[Any], weights: Floats | None = None) -> bool:
    """Whether known numbers differ by more than rounding."""
    return bool(mean_and_deviation(values[:, None], weights)[1][0] > 0)


def mean_and_deviation(x: Any, weights: Floats | None = None) -> tuple[Floats, Floats]:
    """Mean and standard deviation of the columns of `(n, d)` numbers, dense or CSR, NaN left out; a
    negligible deviation is 0. In units of the largest value, so that no scale over- or underflows.
    """
    if sparse.issparse(x):
        return sparse_spread(x, weights)
    with np.errstate(invalid="ignore"):
        unit = np.fmax.reduce(np.abs(x), axis=0, initial=0.0).astype(np.float64)
    unit[~(unit > 0)] = 1.0
    y = x / unit
    gaps = np.isnan(y)
    mass = ~gaps * (1.0 if weights is None else weights[:, None])
    total = np.maximum(mass.sum(axis=0), np.finfo(float).tiny)
    y[gaps] = 0.0
    mean = (mass * y).sum(axis=0) / total
    y -= mean
    deviation = np.sqrt((mass * y**2).sum(axis=0) / total)
    deviation[deviation <= NEGLIGIBLE] = 0.0
    return mean * unit, deviation * unit


def sparse_spread(matrix: sparse.csr_array, weights: Floats | None = None) -> tuple[Floats, Floats]:
    """The same for the columns of a CSR matrix without gaps. O(nnz)."""
    n, width = matrix.shape
    mass = np.ones(n) if weights is None else weights
    stored = np.repeat(mass, np.diff(matrix.indptr))
    unit = np.zeros(width)
    np.maximum.at(unit, matrix.indices, np.abs(matrix.data))
    unit[unit == 0] = 1.0
    y = matrix.data / unit[matrix.indices]
    total = mass.sum()
    mean = np.bincount(matrix.indices, stored * y, width) / total
    apart = np.bincount(matrix.indices, stored * (y - mean[matrix.indices]) ** 2, width)
    zeros = total - np.bincount(matrix.indices, stored, width)
    deviation = np.sqrt((apart + np.maximum(zeros, 0) * mean**2) / total)
    deviation[deviation <= NEGLIGIBLE] = 0.0
    return mean * unit, deviation * unit


def standardised(x: NDArray[Any], weights: Floats | None = None) -> NDArray[np.float32]:
    """Columns centred and divided by their standard deviation; 0 where a value is missing or a
    column does not vary."""
    mean, deviation = mean_and_deviation(x, weights)
    still = deviation == 0
    z = (x - mean) / np.where(still, 1.0, deviation)
    z[np.isnan(z)] = 0.0
    z[:, still] = 0.0
    return z.astype(np.float32)


def normal_scores(x: NDArray[Any], weights: Floats | None = None) -> NDArray[np.float32]:
    """Columns as the normal quantiles of their ranks, standardised; ties share the middle of their
    ranks, missing values are 0.

    Correlations of normal scores are as good as those of Gaussian numbers, and outliers do not
    decide them (van der Waerden; the nonparanormal of Liu, Lafferty and Wasserman 2009)."""
    mass = np.ones(len(x)) if weights is None else weights
    scores = np.full(x.shape, np.nan)
    for j in range(x.shape[1]):
        known = ~np.isnan(x[:, j])
        _, rank = np.unique(x[known, j], return_inverse=True)
        if rank.size:
            counts = np.bincount(rank, mass[known])
            middle = np.cumsum(counts) - counts / 2
            scores[known, j] = ndtri(middle / counts.sum())[rank]
    scores[:, mean_and_deviation(x, weights)[1] == 0] = 0.0
    return standardised(scores, weights)
