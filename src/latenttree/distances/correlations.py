"""Correlations of pairs for compiled kernels, whether they are stored or counted.

Kernels take a `CorrelationSource` and call the functions here; how the numbers are obtained (read
from matrices, or counted on demand) is known to this module and `counted_pairs` alone.
"""

from __future__ import annotations

import numpy as np

from latenttree.distances.correlation_source import CorrelationSource
from latenttree.distances.counted_pairs import cross_on_demand, pair_on_demand
from latenttree.engine.arrays import Floats, Ints
from latenttree.engine.kernels import kernel, subroutine
from latenttree.moments.binary import binary_pair

MIN_EFFECTIVE_SAMPLES = 4.0

MIN_SQUARE = 0.05
"""Squared correlations are raised to this in weights: the variances of smaller ones are noise."""

MAX_INFLATION = 6e4

CORRELATION, KURTOSIS_RATIO, VARIANCE_INFLATION = range(3)
"""Kinds of values of `pair_values`."""


@kernel(inline="always")
def _stored_pair(dense, errors, kurtosis, mean, inverse_sd, n, i, j):  # type: ignore[no-untyped-def]
    """Correlation, relative error and kurtosis ratio of two rows from matrices; with `mean`, of 0/1
    variables from their correlation, rounded as in a matrix of single precision."""
    rho = min(max(np.float64(dense[i, j]), -1.0), 1.0)
    if len(mean) > 0:
        sd_a, sd_b = inverse_sd[i], inverse_sd[j]  # inverse ones
        covariance = np.float64(dense[i, j]) / (sd_a * sd_b)
        _, error, ratio = binary_pair(covariance, mean[i], mean[j], sd_a, sd_b, n)
        return rho, np.float64(np.float32(error)), np.float64(np.float32(ratio))
    error = np.float64(errors[i, j]) if errors.shape[0] > 0 else 0.0
    return rho, error, np.float64(kurtosis[i, j]) if kurtosis.shape[0] > 0 else 1.0


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
def effective_pair_samples(source, n, variables):  # type: ignore[no-untyped-def]
    """Effective samples, of `n` in all, of the correlations between some variables.

    n over the geometric mean of the kurtosis ratios of their pairs, and over the mean of the
    variance inflations weighted with the variances `(1 - rho^2)^2 / rho^2`, which are what a sum of
    distances adds up. O(m^2)."""
    m, use_kurtosis, use_inflation = len(variables), source.use_kurtosis, source.use_inflation
    if m < 2 or not (use_kurtosis or use_inflation):
        return n
    rows, sign, dense = source.rows, source.sign, source.dense
    errors, kurtosis = source.errors, source.kurtosis
    mean, inverse_sd = source.mean, source.inverse_sd
    n_samples, n_directions = source.n, source.n_directions
    only_ratios = not use_inflation and kurtosis.shape[0] > 0
    logs, total, weight = 0.0, 0.0, 1e-300
    for i in range(m):
        for j in range(i):
            a, b = variables[i], variables[j]
            if only_ratios:  # most often, and four times as fast alone
                logs += np.log(np.float64(kurtosis[rows[a], rows[b]]))
                continue
            if dense.shape[0] > 0:
                rho, error, ratio = _stored_pair(
                    dense, errors, kurtosis, mean, inverse_sd, n_samples, rows[a], rows[b]
                )
            else:
                rho, error, ratio = pair_on_demand(source, rows[a], rows[b])
            if use_kurtosis:
                logs += np.log(ratio)
            if use_inflation:
                square = (sign[a] * sign[b] * rho) ** 2
                w = (1 - square) ** 2 / max(square, MIN_SQUARE)
                total += w * _inflation(rho, error, ratio, n_samples, n_directions)
                weight += w
    if use_kurtosis:
        n /= np.exp(2 * logs / (m * (m - 1)))
    if use_inflation:
        n /= max(total / weight, 1.0)
    return max(n, MIN_EFFECTIVE_SAMPLES)


@kernel(inline="always")
def _read_row(rows, sign, dense, a, others, out):  # type: ignore[no-untyped-def]
    """Correlations of variable a with others, from a matrix."""
    row, own_sign = rows[a], np.float64(sign[a])
    for j in range(len(others)):
        b = others[j]
        value = min(max(np.float64(dense[row, rows[b]]), -1.0), 1.0)
        out[j] = own_sign * np.float64(sign[b]) * value


@subroutine
def cross_block(source, one, other, out):  # type: ignore[no-untyped-def]
    """Correlations of variables `one` `(m,)` with `other` `(q,)`, no variable in both, into `out`
    `(m, q)` or larger.

    A call that takes a whole source costs as much as a hundred numbers read from a matrix, so
    kernels ask for blocks."""
    rows, sign, dense = source.rows, source.sign, source.dense
    if dense.shape[0] == 0:
        cross_on_demand(source, one, other, out)
        return
    for i in range(len(one)):
        _read_row(rows, sign, dense, one[i], other, out[i])


@kernel
def correlation_block(source, members, out):  # type: ignore[no-untyped-def]
    """Correlations between all `members`, each of which is there once, into `out` `(m, m)` or
    larger."""
    rows, sign, dense = source.rows, source.sign, source.dense
    for i in range(len(members)):
        if dense.shape[0] == 0:
            cross_on_demand(source, members[i : i + 1], members[:i], out[i : i + 1])
        else:
            _read_row(rows, sign, dense, members[i], members[:i], out[i])
        for j in range(i):
            out[j, i] = out[i, j]
        out[i, i] = 1.0


@kernel
def pair_values(source, pairs, kind, out):  # type: ignore[no-untyped-def]
    """For pairs `(m, 2)` into `out` `(m,)`: oriented correlations (`CORRELATION`); fourth moments
    over those of Gaussian pairs (`KURTOSIS_RATIO`); or measured variances of distances over those
    of Gaussian ones, at least 1 (`VARIANCE_INFLATION`). Ratios that the source does not use are
    1."""
    for i in range(len(pairs)):
        a, b = pairs[i, 0], pairs[i, 1]
        s, t = source.rows[a], source.rows[b]
        if source.dense.shape[0] > 0:
            rho, error, ratio = _stored_pair(
                source.dense, source.errors, source.kurtosis, source.mean, source.inverse_sd,
                source.n, s, t,
            )  # fmt: skip
        else:
            rho, error, ratio = pair_on_demand(source, s, t)
        if kind == CORRELATION:
            out[i] = 1.0 if a == b else np.float64(source.sign[a]) * source.sign[b] * rho
        elif kind == KURTOSIS_RATIO:
            out[i] = ratio if source.use_kurtosis else 1.0
        elif source.use_inflation:
            out[i] = _inflation(rho, error, ratio, source.n, source.n_directions)
        else:
            out[i] = 1.0


def values_of_pairs(source: CorrelationSource, pairs: Ints, kind: int) -> Floats:
    """`pair_values` `(m,)` of one kind."""
    out = np.empty(len(pairs))
    pair_values(source, np.ascontiguousarray(pairs), kind, out)
    return out
