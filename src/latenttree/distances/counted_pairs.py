"""Correlations of 0/1 variables counted when they are asked for, with a cache of counts.

Kernels call the `*_on_demand` functions. They are chosen when a kernel is compiled: for a source
without packed samples they do nothing, and the code that counts is not compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core.types import NoneType
from numba.extending import overload

from latenttree.distances.correlation_source import COUNT_BITS, CorrelationSource
from latenttree.engine.kernels import kernel, subroutine
from latenttree.moments.binary import binary_pair
from latenttree.moments.cooccurrence import pair_count


@kernel(inline="always")
def _count(cache, packed, p, a, b):  # type: ignore[no-untyped-def]
    """Samples that have both a and b of `p` rows, from the cache if it holds the pair.

    An entry of the cache holds the pair and the count in one word, so that threads that write the
    same entry at once cannot mix up two pairs."""
    size = np.uint64(len(cache))
    high, low = np.uint64(max(a, b)), np.uint64(min(a, b))
    pair = high * np.uint64(p) + low
    place = pair * np.uint64(0x9E3779B97F4A7C15)
    place = (place ^ (place >> np.uint64(31))) & (size - np.uint64(1))
    count = np.int64(-1)
    if size > 0:
        word = cache[place]
        if word >> np.uint64(COUNT_BITS) == pair:
            count = np.int64(word & np.uint64((1 << COUNT_BITS) - 1))
    if count < 0:
        count = np.int64(pair_count(packed, a, b))
        if size > 0:
            cache[place] = (pair << np.uint64(COUNT_BITS)) | np.uint64(count)
    return count


@kernel(inline="always")
def _counted_rho(cache, packed, rank, mean, inverse_sd, n, a, b):  # type: ignore[no-untyped-def]
    """Correlation of two rows as `counted_pair` computes it, without its error."""
    if a == b:
        return 1.0
    if rank[a] < rank[b]:
        a, b = b, a
    count = _count(cache, packed, len(mean), a, b)
    covariance = count / n - mean[a] * mean[b]
    return np.float64(np.float32(covariance * inverse_sd[a] * inverse_sd[b]))


@subroutine
def _counted_cross(source, one, other, out):  # type: ignore[no-untyped-def]
    """`correlations.cross_block` of a source that counts."""
    rows, sign, cache, packed = source.rows, source.sign, source.cache, source.packed
    rank, mean, inverse_sd, n = packed.rank, source.mean, source.inverse_sd, source.n
    for i in range(len(one)):
        a, own_sign = rows[one[i]], np.float64(sign[one[i]])
        for j in range(len(other)):
            rho = _counted_rho(cache, packed, rank, mean, inverse_sd, n, a, rows[other[j]])
            out[i, j] = own_sign * np.float64(sign[other[j]]) * rho


@subroutine
def counted_pair(source, a, b):  # type: ignore[no-untyped-def]
    """Correlation, relative error and kurtosis ratio of two rows from their count, rounded as in a
    matrix of single precision and with the pair in the same order."""
    if source.packed.rank[a] < source.packed.rank[b]:
        a, b = b, a
    one, other, n = source.mean[a], source.mean[b], source.n
    covariance = _count(source.cache, source.packed, len(source.mean), a, b) / n - one * other
    rho, error, kurtosis = binary_pair(
        covariance, one, other, source.inverse_sd[a], source.inverse_sd[b], n
    )
    return (
        np.float64(np.float32(rho)),
        np.float64(np.float32(error)),
        np.float64(np.float32(kurtosis)),
    )


def _has_packed(source: Any) -> bool:
    """Whether sources of a compiled type have packed samples."""
    return not isinstance(dict(zip(source.fields, source.types, strict=True))["packed"], NoneType)


def pair_on_demand(source: CorrelationSource, a: int, b: int) -> tuple[float, float, float]:
    """`counted_pair` of a source that has packed samples, for kernels."""
    raise NotImplementedError


def cross_on_demand(source: CorrelationSource, one: Any, other: Any, out: Any) -> None:
    """`cross_block` of a source that has packed samples, for kernels."""
    raise NotImplementedError


@overload(pair_on_demand)
def _pair_on_demand(source, a, b):  # type: ignore[no-untyped-def]
    if _has_packed(source):
        return lambda source, a, b: counted_pair(source, a, b)
    return lambda source, a, b: (0.0, 0.0, 1.0)


@overload(cross_on_demand)
def _cross_on_demand(source, one, other, out):  # type: ignore[no-untyped-def]
    if _has_packed(source):
        return lambda source, one, other, out: _counted_cross(source, one, other, out)
    return lambda source, one, other, out: None
