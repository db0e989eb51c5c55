"""Correlations of 0/1 variables with exact errors and kurtosis ratios: a pair is four counts."""

from __future__ import annotations

import numpy as np

from latenttree.data import Table
from latenttree.engine import parallel
from latenttree.engine.arrays import Float32, Floats
from latenttree.engine.kernels import kernel, subroutine
from latenttree.moments.available_cases import available_moments, own_share
from latenttree.moments.cooccurrence import Packed, packed, tile_counts
from latenttree.moments.coordinates import coordinate_moments
from latenttree.moments.gram import second_moments
from latenttree.moments.mirror import STRIP, mirrored

BINARY_DAMPING = 4.0
"""Pseudo-occurrences added to a 0/1 variable's variance. It lengthens the pendant edge of a rare
variable and changes no other distance: a pair that occurs together three times does not outrank one
that does so three thousand times."""

MAX_KURTOSIS = 6e4
"""Largest kurtosis ratio."""

Matrices = tuple[Float32, ...]


def damped_inverse_sd(mean: Floats, n: float) -> Floats:
    """`1 / sqrt(P (1 - P) + BINARY_DAMPING / n)` of 0/1 variables with means P."""
    return np.asarray(1 / np.sqrt(mean * (1 - mean) + BINARY_DAMPING / n))


@subroutine
def binary_pair(covariance, one, other, inverse_sd_a, inverse_sd_b, n):  # type: ignore[no-untyped-def]
    """Correlation, relative error and kurtosis ratio of two 0/1 variables with means `one` and
    `other`.

    With `z = (x - mean) inverse_sd`, the influence of a sample on `-log rho` is
    `psi = z_a z_b / rho - (z_a^2 + z_b^2) / 2`; its variance over the four cells of the 2 x 2 table
    is exact. The kurtosis ratio is `E[z_a^2 z_b^2] / (1 + 2 rho^2)`. No branches, so that loops
    over pairs are vectorised: 3 ns a pair.
    """
    rho = covariance * inverse_sd_a * inverse_sd_b
    both = min(max(covariance + one * other, 0.0), min(one, other))
    inverse = 1 / rho
    high_a, low_a = (1 - one) * inverse_sd_a, -one * inverse_sd_a
    high_b, low_b = (1 - other) * inverse_sd_b, -other * inverse_sd_b
    hh, hl, lh, ll = high_a * high_b, high_a * low_b, low_a * high_b, low_a * low_b
    half_ha, half_la = 0.5 * high_a * high_a, 0.5 * low_a * low_a
    half_hb, half_lb = 0.5 * high_b * high_b, 0.5 * low_b * low_b
    q1, q2, q3 = both, one - both, other - both
    q4 = 1 - one - q3
    p1 = hh * inverse - half_ha - half_hb
    p2 = hl * inverse - half_ha - half_lb
    p3 = lh * inverse - half_la - half_hb
    p4 = ll * inverse - half_la - half_lb
    first = q1 * p1 + q2 * p2 + q3 * p3 + q4 * p4
    spread = q1 * p1 * p1 + q2 * p2 * p2 + q3 * p3 * p3 + q4 * p4 * p4 - first * first
    spread = spread if spread > 0.0 else 0.0
    fourth = q1 * hh * hh + q2 * hl * hl + q3 * lh * lh + q4 * ll * ll
    kurtosis = min(max(fourth / (1 + 2 * rho * rho), 1.0), MAX_KURTOSIS)
    error = np.sqrt(spread / n)
    return rho, error if rho != 0.0 else np.inf, kurtosis if rho != 0.0 else 1.0


@subroutine
def _row_from_counts(counts, one, inverse_sd_a, mean, inverse_sd, n, out):  # type: ignore[no-untyped-def]
    """Correlation, error and kurtosis ratio of one variable with others into `out`, `(3, m)`."""
    rho, error, kurtosis = out[0], out[1], out[2]
    for b in range(len(counts)):
        rho[b], error[b], kurtosis[b] = binary_pair(
            counts[b] / n - one * mean[b], one, mean[b], inverse_sd_a, inverse_sd[b], n
        )


@kernel
def _strip_from_counts(counts, order, mean, inverse_sd, n, max_error, out, start):  # type: ignore[no-untyped-def]
    """Pairs of ranks start <= a < stop with all b < a, into both triangles of the matrices of
    `out`, from their counts `(stop - start, stop)`: correlations or, of three, errors and kurtosis
    ratios too. Returns how many pairs have an error of `max_error` or more.

    `order`, `mean` and `inverse_sd` are by rank; `start` is a multiple of `STRIP`."""
    stop, n_above = counts.shape[1], 0
    block = np.empty((STRIP, 3, STRIP), np.float32)
    for low in range(0, stop, STRIP):
        high = min(low + STRIP, stop)
        means, sds = mean[low:high], inverse_sd[low:high]
        for a in range(start, stop):
            i = a - start
            row = counts[i, low:high]
            _row_from_counts(row, mean[a], inverse_sd[a], means, sds, n, block[i])
            for j in range(min(high, a) - low):
                n_above += block[i, 1, j] >= max_error
        rows, columns = order[start:stop], order[low:high]
        for q in range(len(out)):
            mirrored(block[:, q], rows, columns, low == start, out[q])
    return n_above


def counted_correlations(
    packed_table: Packed, max_error: float, n_jobs: int
) -> tuple[Float32, int]:
    """Correlations `(p, p)` of 0/1 variables, and the number of pairs whose relative error is
    `max_error` or more. Lower bound of the cost: 4 p^2 bytes written, and the counts."""
    p = len(packed_table.order)
    out = np.empty((p, p), np.float32)
    np.fill_diagonal(out, 1.0)
    return out, _from_counts(packed_table, np.ones(p), max_error, (out,), n_jobs)


def counted_pairs(packed_table: Packed, sign: Floats, out: Matrices, n_jobs: int) -> None:
    """Fill correlations, errors and kurtosis ratios off the diagonal, in place; `sign` `(p,)` is -1
    for variables whose zeros are counted. Lower bound of the cost: 12 p^2 bytes written, and the
    counts."""
    _from_counts(packed_table, sign, np.inf, out, n_jobs)


def _from_counts(
    packed_table: Packed, sign: Floats, max_error: float, out: Matrices, n_jobs: int
) -> int:
    """Fill matrices strip by strip; returns how many pairs have an error of `max_error` or more."""
    n, p = float(packed_table.n_samples), len(packed_table.order)
    mean = packed_table.support / n
    inverse_sd = damped_inverse_sd(mean, n) * sign[packed_table.order]

    def work(start: int, stop: int) -> int:
        counts = np.empty((stop - start, stop), np.uint32)
        tile_counts(packed_table, start, stop, 0, stop, counts)
        given = (counts, packed_table.order, mean, inverse_sd, n, max_error, out, start)
        return int(_strip_from_counts(*given))

    return sum(parallel(work, p, n_jobs, STRIP))


@kernel
def _strip_from_moments(covariance, both, shift, gaps, mean, sign, n, out, start, stop):  # type: ignore[no-untyped-def]
    """The same from covariances `(p, p)`. With `gaps`, means and variances too are those of the
    samples that have both, the variances mixed with those of all, see `available_cases`;
    `shift[a, b]` is the mean of a over the samples that have b less that over all, `both` the
    weight of the samples that have both."""
    block = np.empty((3, STRIP, STRIP), np.float32)
    variables = np.arange(stop)
    damping = BINARY_DAMPING / n
    for low in range(0, stop, STRIP):
        high = min(low + STRIP, stop)
        for a in range(start, stop):
            for b in range(low, min(high, a)):
                one, other = mean[a] + shift[a, b], mean[b] + shift[b, a]
                share = own_share(both[a, b], 1) if gaps else 1.0
                var_a = share * one * (1 - one) + (1 - share) * covariance[a, a] + damping
                var_b = share * other * (1 - other) + (1 - share) * covariance[b, b] + damping
                sd_a, sd_b = np.sqrt(share / var_a), np.sqrt(share / var_b)  # inverse ones
                rho, error, kurtosis = binary_pair(covariance[a, b], one, other, sd_a, sd_b, n)
                share_both = both[a, b] / n
                block[0, a - start, b - low] = rho * sign[a] * sign[b]
                block[1, a - start, b - low] = error / np.sqrt(share_both)
                block[2, a - start, b - low] = min(max(kurtosis / share_both, 1.0), MAX_KURTOSIS)
        for q in range(3):
            mirrored(block[q], variables[start:], variables[low:high], low == start, out[q])


def binary_pairs(table: Table, basis: Float32, out: Matrices, n_jobs: int) -> None:
    """Fill correlations, errors and kurtosis ratios `(p, p)` of 0/1 variables off the diagonal, in
    place.

    `basis` only decides which of the two values is the higher one."""
    ones = table.storage.of_ones
    sign = np.where(table.storage.contrast(basis[:, 0]) < 0, -1.0, 1.0)
    if table.weights is None and not table.has_missing:
        counted_pairs(packed(table, n_jobs), sign, out, n_jobs)
        return
    p, n = table.n_vars, table.total_weight
    present = np.zeros((int(table.offsets[-1]), 1), dtype=np.float32)
    present[ones] = 1.0
    mean = coordinate_moments(table)[0][ones]
    offset = mean[:, None].astype(np.float32)
    if table.has_missing:
        covariance, both, shift = available_moments(table, present, offset, n_jobs)
    else:
        covariance = second_moments(table, present, offset, n_jobs)
        both = np.broadcast_to(np.float32(n), (p, p))
        shift = np.broadcast_to(np.float32(0), (p, p))
    own = (covariance, both, shift, table.has_missing, mean, sign, n, out)
    parallel(lambda a, b: _strip_from_moments(*own, a, b), p, n_jobs, STRIP)
