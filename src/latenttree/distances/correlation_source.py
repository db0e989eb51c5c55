"""The data from which compiled kernels take correlations of pairs: matrices, or packed samples."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.engine.arrays import Float32, Floats, Ints
from latenttree.moments.cooccurrence import Packed

COUNT_BITS = 26
"""Bits of a count in the cache of counts; 38 are left for the pair."""


NO_MATRIX = np.empty((0, 0), dtype=np.float32)
_NO_NUMBERS = np.empty(0)
_NO_CACHE = np.empty(0, dtype=np.uint64)


class CorrelationSource(NamedTuple):
    """Correlations of m variables as plain arrays, for the kernels of `correlations`.

    Variable a is row `rows[a]` of the arrays after it, so that a subset of the variables is a
    source without a copy. `(0, 0)` stands for a matrix that is not there. Without `dense`,
    correlations come from counts in `packed`, and `cache` keeps counts; without `packed`, kernels
    are compiled without the code that counts. With `mean`, errors and kurtosis ratios are computed
    from a correlation, and have no matrices."""

    sign: Float32  # (m,) orientation; 0 for an excluded variable
    rows: Ints  # (m,)
    dense: NDArray[Any] = NO_MATRIX  # (p, p) signed correlations
    errors: Float32 = NO_MATRIX  # (p, p) relative standard errors
    kurtosis: Float32 = NO_MATRIX  # (p, p) kurtosis ratios
    packed: Packed | None = None
    mean: Floats = _NO_NUMBERS  # (p,) of 0/1 variables
    inverse_sd: Floats = _NO_NUMBERS  # (p,) one over their (damped) standard deviations
    cache: NDArray[np.uint64] = _NO_CACHE  # a power of two of counts, or none
    n: float = 1.0  # samples
    n_directions: float = 1.0  # of a determinant
    use_kurtosis: bool = True  # whether kurtosis ratios reduce the effective samples
    use_inflation: bool = True  # whether measured variances do

    @classmethod
    def of(cls, p: int, **given: Any) -> CorrelationSource:
        """A source of p variables, oriented as they are."""
        return cls(np.ones(p, dtype=np.float32), np.arange(p), **given)


def dense_source(
    dense: NDArray[Any],
    kurtosis: Float32 | None = None,
    errors: Float32 | None = None,
    *,
    n: float = 1.0,
    n_directions: int = 1,
) -> CorrelationSource:
    """A source that reads from matrices `(p, p)`, which are not copied."""
    return CorrelationSource.of(
        len(dense),
        dense=np.ascontiguousarray(dense),
        errors=NO_MATRIX if errors is None else np.ascontiguousarray(errors, dtype=np.float32),
        kurtosis=NO_MATRIX
        if kurtosis is None
        else np.ascontiguousarray(kurtosis, dtype=np.float32),
        n=float(n),
        n_directions=float(n_directions),
        use_kurtosis=kurtosis is not None,
        use_inflation=errors is not None,
    )


def binary_source(dense: Float32, mean: Floats, inverse_sd: Floats, n: float) -> CorrelationSource:
    """A source of 0/1 variables that reads correlations from a matrix, which is not copied."""
    return CorrelationSource.of(len(dense), dense=dense, mean=mean, inverse_sd=inverse_sd, n=n)


def counted_source(
    packed: Packed, mean: Floats, inverse_sd: Floats, n: float, cache_size: int
) -> CorrelationSource:
    """A source of 0/1 variables that counts a pair when it is asked for, and caches about
    `cache_size` counts of 8 bytes."""
    p = len(mean)
    fits = p * p < 2 ** (64 - COUNT_BITS) and n < 2**COUNT_BITS and cache_size > 0
    size = 2 ** int(np.log2(cache_size)) if fits else 0
    cache = np.full(size, np.iinfo(np.uint64).max, dtype=np.uint64)
    return CorrelationSource.of(
        p, packed=packed, mean=mean, inverse_sd=inverse_sd, cache=cache, n=n
    )


def without_rows(packed: Packed) -> Packed:
    """The packed samples without the variables of each sample, which only sweeps over all pairs
    need."""
    return packed._replace(bounds=np.empty(0, dtype=np.int64), ranks=np.empty(0, dtype=np.uint32))
