"""Means and covariances of all coordinates, each from the samples in which they are known."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from latenttree.engine import BLOCK, parallel, single_threaded_blas
from latenttree.engine.arrays import Bools, Floats
from latenttree.errors import DataError


class PairMoments(NamedTuple):
    """Second moments by available pairs, in the units of the data.

    mean, deviation : (D,)
    correlation : (D, D), 0 where both values are known in no sample.
    counts : (D, D) total weight of the samples in which both values are known.
    """

    mean: Floats
    deviation: Floats
    correlation: Floats
    counts: Floats

    @classmethod
    def of(cls, mean: Floats, covariance: Floats, counts: Floats | float) -> PairMoments:
        """From a covariance matrix; `counts` may be one number for all pairs."""
        deviation = np.sqrt(np.diag(covariance))
        whole = np.broadcast_to(np.asarray(counts, dtype=np.float64), covariance.shape)
        return cls(mean, deviation, covariance / deviation / deviation[:, None], whole)


def standardisation(X: Floats, weights: Floats | None = None) -> tuple[Floats, Floats]:
    """Mean and standard deviation of the known values of each column; `(D,)` each."""
    known = ~np.isnan(X)
    w = np.ones(len(X)) if weights is None else weights
    count = w @ known
    _check_columns(count > 0, "has no values")
    # the middle of the range first: sums of values far from zero lose digits
    middle = np.nanmin(X, axis=0) / 2 + np.nanmax(X, axis=0) / 2
    size = np.nanmax(X, axis=0) / 2 - np.nanmin(X, axis=0) / 2
    _check_columns(size > 0, "has one value in all rows")
    z = np.where(known, (X - middle) / size, 0.0)
    mean = (w @ z) / count
    deviation = np.sqrt(w @ np.where(known, z - mean, 0.0) ** 2 / count)
    _check_columns(deviation > 0, "has one value in all rows of positive weight")
    return middle + size * mean, size * deviation


def _check_columns(usable: Bools, problem: str) -> None:
    """Refuse columns that are not usable."""
    if not usable.all():
        bad = np.flatnonzero(~usable)
        raise DataError(
            f"column {bad[0]} {problem} ({len(bad)} such columns)", "drop it", column=str(bad[0])
        )


def pair_moments(
    X: Floats,
    weights: Floats | None = None,
    units: tuple[Floats, Floats] | None = None,
    n_jobs: int = 1,
) -> PairMoments:
    """Moments of all pairs of columns of X, NaN where a value is missing. Cost `O(n D^2)`.

    Values are centred at the mean of all known values of their column, not of the pair."""
    mean, deviation = standardisation(X, weights) if units is None else units
    w = np.ones(len(X)) if weights is None else weights
    complete = not np.isnan(X).any()

    def part(start: int, stop: int) -> Any:
        some = w[start:stop, None]
        z = (X[start:stop] - mean) / deviation
        if complete:
            return np.array([z.T @ (z * some)])
        known = (~np.isnan(z)).astype(np.float64)
        z = np.nan_to_num(z, copy=False)
        return np.array([z.T @ (z * some), known.T @ (known * some)])

    with single_threaded_blas():
        sums = sum(parallel(part, len(X), n_jobs, BLOCK))
    counts = np.full(sums[0].shape, w.sum()) if complete else sums[1]
    both = (sums[0] + sums[0].T) / 2
    correlation = np.divide(both, counts, out=np.zeros_like(both), where=counts > 0)
    return PairMoments(mean, deviation, correlation, counts)
