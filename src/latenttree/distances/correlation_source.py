"""The data from which compiled kernels take correlations of pairs: matrices, or packed samples."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.engine.arrays import Float32, Floats, Ints
from latenttree.moments.cooccurrence import Packed

COUNT_BITS = 26
"""Bits of a count in the cache of counts; 38 are left for the pair."""


class CorrelationSource(NamedTuple):
    """Correlations of m variables as plain arrays, for the kernels of `correlations`.

    Variable a is row `rows[a]` of the arrays after it, so that a subset of the variables is a
    source without a copy. `(0, 0)` stands for a matrix that is not there. Without `dense`,
    correlations come from counts in `packed`, and `cache` keeps counts; without `packed`, kernels
    are compiled without the code that counts. With `mean`, errors and kurtosis ratios are computed
    from a correlation, and have no matrices."""

    sign: Float32  # (m,) orientation; 0 for an excluded variable
    rows: Ints  # (m,)
    dense: NDArray[Any]  # (p, p) signed correlations
    errors: Float32  # (p, p) relative standard errors
    kurtosis: Float32  # (p, p) kurtosis ratios
    packed: Packed | None
    mean: Floats  # (p,) of 0/1 variables
    inverse_sd: Floats  # (p,) one over their (damped) standard deviations
    cache: NDArray[np.uint64]  # a power of two of counts, or none
    n: float  # samples
    n_directions: float  # of a determinant
    use_kurtosis: bool  # whether kurtosis ratios reduce the effective samples
    use_inflation: bool  # whether measured variances do


NO_MATRIX = np.empty((0, 0), dtype=np.float32)
_NO_NUMBERS = np.empty(0)
_NO_CACHE = np.empty(0, dtype=np.uint64)


def dense_source(
    dense: NDArray[Any],
    kurtosis: Float32 | None = None,
    errors: Float32 | None = None,
    *,
    n: float = 1.0,
    n_directions: int = 1,
) -> CorrelationSource:
    """A source that reads from matrices `(p, p)`, which are not copied."""
    return CorrelationSource(
        np.ones(len(dense), dtype=np.float32),
        np.arange(len(dense)),
        np.ascontiguousarray(dense),
        NO_MATRIX if errors is None else np.ascontiguousarray(errors, dtype=np.float32),
        NO_MATRIX if kurtosis is None else np.ascontiguousarray(kurtosis, dtype=np.float32),
        None,
        _NO_NUMBERS,
        _NO_NUMBERS,
        _NO_CACHE,
        float(n),
        float(n_directions),
        kurtosis is not None,
        errors is not None,
    )


def binary_source(dense: Float32, mean: Floats, inverse_sd: Floats, n: float) -> CorrelationSource:
    """A source of 0/1 variables that reads correlations from a matrix, which is not copied."""
    return dense_source(dense, n=n)._replace(
        mean=mean, inverse_sd=inverse_sd, use_kurtosis=True, use_inflation=True
    )


def counted_source(
    packed: Packed, mean: Floats, inverse_sd: Floats, n: float, cache_size: int = 0
) -> CorrelationSource:
    """A source of 0/1 variables that counts a pair when it is asked for, and caches about
    `cache_size` counts of 8 bytes."""
    p = len(mean)
    fits = p * p < 2 ** (64 - COUNT_BITS) and n < 2**COUNT_BITS and cache_size > 0
    size = 2 ** int(np.log2(cache_size)) if fits else 0
    return CorrelationSource(
        np.ones(p, dtype=np.float32),
        np.arange(p),
        NO_MATRIX,
        NO_MATRIX,
        NO_MATRIX,
        packed,
        mean,
        inverse_sd,
        np.full(size, np.iinfo(np.uint64).max, dtype=np.uint64),
        float(n),
        1.0,
        True,
        True,
    )


def without_rows(packed: Packed) -> Packed:
    """The packed samples without the variables of each sample, which only sweeps over all pairs
    need."""
    return packed._replace(bounds=np.empty(0, dtype=np.int64), ranks=np.empty(0, dtype=np.uint32))
