"""Where compiled kernels get a pair's correlation from, whether it is stored or not.

Kernels take a `Source` and call `correlation(source, a, b)`; nobody but this module knows how the
number is had.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

LEAST = 4.0
"""Effective samples behind anything that is there at all."""

FAINT = 0.05
"""Squared correlations below this weigh like it: their variances are noise."""


class Source(NamedTuple):
    """Correlations of p variables as plain arrays, for compiled kernels.

    `(0, 0)` stands for an array that is not there: factors are 1 then (see `Affinity`)."""

    dense: NDArray[Any]  # (p, p) correlations, oriented
    tails: NDArray[np.float32]  # (p, p) or (0, 0)
    excess: NDArray[np.float32]  # (p, p) or (0, 0)
    sign: NDArray[np.float32]  # (p,) orientation of correlations that are computed on demand


def dense_source(
    rho: NDArray[Any],
    tails: NDArray[np.float32] | None = None,
    excess: NDArray[np.float32] | None = None,
) -> Source:
    """A source that reads from matrices."""
    none = np.empty((0, 0), dtype=np.float32)
    sign = np.ones(len(rho), dtype=np.float32)
    return Source(
        np.ascontiguousarray(rho),
        none if tails is None else np.ascontiguousarray(tails),
        none if excess is None else np.ascontiguousarray(excess),
        sign,
    )


@njit(cache=True, nogil=True)
def correlation(source, a, b):  # type: ignore[no-untyped-def]
    """Signed correlation of variables a and b, oriented."""
    return np.float64(source.dense[a, b])


@njit(cache=True, nogil=True)
def tail(source, a, b):  # type: ignore[no-untyped-def]
    """How much heavier than Gaussian the fourth moment of a pair is."""
    if source.tails.shape[0] == 0:
        return 1.0
    return np.float64(source.tails[a, b])


@njit(cache=True, nogil=True)
def excess(source, a, b):  # type: ignore[no-untyped-def]
    """By how much the measured variance of a pair's distance exceeds a Gaussian one."""
    if source.excess.shape[0] == 0:
        return 1.0
    return np.float64(source.excess[a, b])


@njit(cache=True, nogil=True)
def effective_samples(source, n, variables):  # type: ignore[no-untyped-def]
    """Effective samples, of `n` in all, behind the correlations of some variables: over their
    pairs the geometric mean of `tail`, and the mean of `excess` weighted with the variances
    `(1 - rho^2)^2 / rho^2`, which are what a sum of distances adds up."""
    m = len(variables)
    heavy, measured = source.tails.shape[0] > 0, source.excess.shape[0] > 0
    if m < 2 or not (heavy or measured):
        return n
    logs = 0.0
    total, weight = 0.0, 1e-300
    for i in range(m):
        for j in range(i):
            a, b = variables[i], variables[j]
            if heavy:
                logs += np.log(tail(source, a, b))
            if measured:
                square = correlation(source, a, b) ** 2
                w = (1 - square) ** 2 / max(square, FAINT)
                total += w * excess(source, a, b)
                weight += w
    if heavy:
        n /= np.exp(2 * logs / (m * (m - 1)))
    if measured:
        n /= max(total / weight, 1.0)
    return max(n, LEAST)


@njit(cache=True, nogil=True)
def gather(source, members, out):  # type: ignore[no-untyped-def]
    """Correlations between all `members` into `out` `(m, m)`."""
    for i in range(len(members)):
        for j in range(i + 1):
            out[i, j] = correlation(source, members[i], members[j])
            out[j, i] = out[i, j]


@njit(cache=True, nogil=True)
def gather_pairs(source, pairs, kind, out):  # type: ignore[no-untyped-def]
    """For pairs `(m, 2)` into `out` `(m,)`: correlations (kind 0), tails (1), excesses (2)."""
    for i in range(len(pairs)):
        a, b = pairs[i, 0], pairs[i, 1]
        if kind == 0:
            out[i] = correlation(source, a, b)
        elif kind == 1:
            out[i] = tail(source, a, b)
        else:
            out[i] = excess(source, a, b)
