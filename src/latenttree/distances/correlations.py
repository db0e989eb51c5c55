"""Correlations of pairs for compiled kernels, whether they are stored or counted.

Kernels take a `CorrelationSource` and call the functions here; how the numbers are obtained (read
from matrices, or counted on demand) is known to this module and `counted_pairs` alone.
"""

from __future__ import annotations

import numpy as np

from latenttree.distances.counted_pairs import block_on_demand, cross_on_demand, pair_on_demand
from latenttree.engine.kernels import kernel, subroutine
from latenttree.moments.binary import binary_pair

MIN_EFFECTIVE_SAMPLES = 4.0

MIN_SQUARE = 0.05
"""Squared correlations are raised to this in weights: the variances of smaller ones are noise."""

MAX_INFLATION = 6e4

CORRELATION, KURTOSIS_RATIO, VARIANCE_INFLATION = range(3)
"""Kinds of values of `pair_values`."""


@subroutine
def _stored_binary_pair(rho, one, other, inverse_sd_a, inverse_sd_b, n):  # type: ignore[no-untyped-def]
    """Relative error and kurtosis ratio of two 0/1 variables from their stored correlation, rounded
    as in a matrix of single precision."""
    covariance = np.float64(rho) / (inverse_sd_a * inverse_sd_b)
    _, error, kurtosis = binary_pair(covariance, one, other, inverse_sd_a, inverse_sd_b, n)
    return np.float64(np.float32(error)), np.float64(np.float32(kurtosis))


@subroutine
def _inflation(rho, error, kurtosis, n, n_directions):  # type: ignore[no-untyped-def]
    """Measured variance of a pair's distance over that of a Gaussian correlation `rho` from as many
    effective samples, `n_directions (1 - rho^2)^2 kurtosis / (n rho^2)`; at least 1."""
    square = rho * rho
    gap = (1 - square) ** 2
    if gap == 0.0:
        return 1.0
    inflation = error * error * square * (n / n_directions) / gap / kurtosis
    if not np.isfinite(inflation):
        return 1.0
    return min(max(inflation, 1.0), MAX_INFLATION)


@kernel
def correlation(source, a, b):  # type: ignore[no-untyped-def]
    """Oriented correlation of variables a and b."""
    if a == b:
        return 1.0
    i, j = source.rows[a], source.rows[b]
    sign = np.float64(source.sign[a]) * np.float64(source.sign[b])
    if source.dense.shape[0] > 0:
        return sign * min(max(np.float64(source.dense[i, j]), -1.0), 1.0)
    return sign * pair_on_demand(source, i, j)[0]


@subroutine
def kurtosis_ratio(source, a, b):  # type: ignore[no-untyped-def]
    """Fourth moment of a pair over that of a Gaussian pair; 1 if the source does not use it."""
    if not source.use_kurtosis:
        return 1.0
    i, j = source.rows[a], source.rows[b]
    if source.kurtosis.shape[0] > 0:
        return np.float64(source.kurtosis[i, j])
    if source.dense.shape[0] > 0:
        mean, inverse_sd = source.mean, source.inverse_sd
        return _stored_binary_pair(
            source.dense[i, j], mean[i], mean[j], inverse_sd[i], inverse_sd[j], source.n
        )[1]
    return pair_on_demand(source, i, j)[2]


@subroutine
def variance_inflation(source, a, b):  # type: ignore[no-untyped-def]
    """Measured variance of a pair's distance over that of a Gaussian one, at least 1; 1 if the
    source does not use it."""
    if not source.use_inflation:
        return 1.0
    i, j = source.rows[a], source.rows[b]
    if source.dense.shape[0] == 0:
        rho, error, kurtosis = pair_on_demand(source, i, j)
        return _inflation(rho, error, kurtosis, source.n, source.n_directions)
    rho = min(abs(np.float64(source.dense[i, j])), 1.0)
    if len(source.mean) > 0:
        mean, inverse_sd = source.mean, source.inverse_sd
        error, kurtosis = _stored_binary_pair(
            source.dense[i, j], mean[i], mean[j], inverse_sd[i], inverse_sd[j], source.n
        )
        return _inflation(rho, error, kurtosis, source.n, source.n_directions)
    kurtosis = 1.0 if source.kurtosis.shape[0] == 0 else np.float64(source.kurtosis[i, j])
    error = np.float64(source.errors[i, j])
    return _inflation(rho, error, kurtosis, source.n, source.n_directions)


@kernel
def effective_pair_samples(source, n, variables):  # type: ignore[no-untyped-def]
    """Effective samples, of `n` in all, of the correlations between some variables.

    n over the geometric mean of the kurtosis ratios of their pairs, and over the mean of the
    variance inflations weighted with the variances `(1 - rho^2)^2 / rho^2`, which are what a sum of
    distances adds up. O(m^2)."""
    m = len(variables)
    if m < 2 or not (source.use_kurtosis or source.use_inflation):
        return n
    rows, ratios, stored = source.rows, source.kurtosis, source.kurtosis.shape[0] > 0
    dense, mean, inverse_sd = source.dense, source.mean, source.inverse_sd
    from_dense = not stored and dense.shape[0] > 0 and len(mean) > 0
    logs = 0.0
    total, weight = 0.0, 1e-300
    for i in range(m):
        for j in range(i):
            a, b = variables[i], variables[j]
            if source.use_kurtosis:
                s, t = rows[a], rows[b]
                if stored:
                    ratio = np.float64(ratios[s, t])
                elif from_dense:
                    ratio = _stored_binary_pair(
                        dense[s, t], mean[s], mean[t], inverse_sd[s], inverse_sd[t], source.n
                    )[1]
                else:
                    ratio = kurtosis_ratio(source, a, b)
                logs += np.log(ratio)
            if source.use_inflation:
                square = correlation(source, a, b) ** 2
                w = (1 - square) ** 2 / max(square, MIN_SQUARE)
                total += w * variance_inflation(source, a, b)
                weight += w
    if source.use_kurtosis:
        n /= np.exp(2 * logs / (m * (m - 1)))
    if source.use_inflation:
        n /= max(total / weight, 1.0)
    return max(n, MIN_EFFECTIVE_SAMPLES)


@kernel
def correlation_block(source, members, out):  # type: ignore[no-untyped-def]
    """Correlations between all `members` into `out` `(m, m)` or larger.

    A call that takes a whole source costs as much as a hundred numbers read from a matrix, so
    kernels ask for blocks."""
    rows, sign, dense = source.rows, source.sign, source.dense
    if dense.shape[0] == 0:
        block_on_demand(source, members, out)
        return
    for i in range(len(members)):
        a = members[i]
        for j in range(i):
            b = members[j]
            if a == b:
                value = 1.0
            else:
                value = min(max(np.float64(dense[rows[a], rows[b]]), -1.0), 1.0)
                value *= np.float64(sign[a]) * np.float64(sign[b])
            out[i, j] = value
            out[j, i] = value
        out[i, i] = 1.0


@subroutine
def cross_block(source, one, other, out):  # type: ignore[no-untyped-def]
    """Correlations of variables `one` `(m,)` with `other` `(q,)`, no variable in both, into `out`
    `(m, q)` or larger."""
    rows, sign, dense = source.rows, source.sign, source.dense
    if dense.shape[0] == 0:
        cross_on_demand(source, one, other, out)
        return
    for i in range(len(one)):
        a = one[i]
        row, own_sign = rows[a], np.float64(sign[a])
        for j in range(len(other)):
            b = other[j]
            value = min(max(np.float64(dense[row, rows[b]]), -1.0), 1.0)
            out[i, j] = own_sign * np.float64(sign[b]) * value


@kernel
def pair_values(source, pairs, kind, out):  # type: ignore[no-untyped-def]
    """For pairs `(m, 2)` into `out` `(m,)`: `CORRELATION`, `KURTOSIS_RATIO` or
    `VARIANCE_INFLATION`."""
    for i in range(len(pairs)):
        a, b = pairs[i, 0], pairs[i, 1]
        if kind == CORRELATION:
            out[i] = correlation(source, a, b)
        elif kind == KURTOSIS_RATIO:
            out[i] = kurtosis_ratio(source, a, b)
        else:
            out[i] = variance_inflation(source, a, b)
