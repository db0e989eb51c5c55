"""All pairs of variables at once: signed determinants, their relative errors, kurtosis ratios."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from latenttree.data import Table
from latenttree.data.storage import CodedFeatures
from latenttree.engine import parallel
from latenttree.engine.arrays import Float32, Floats, Ints
from latenttree.engine.kernels import kernel
from latenttree.moments.available_cases import available_moments, whiten_pairs
from latenttree.moments.binary import MAX_KURTOSIS, binary_pairs
from latenttree.moments.contingency import (
    Counts,
    contingency,
    projected,
    worth_counting,
)
from latenttree.moments.coordinates import coordinate_moments, feature_means
from latenttree.moments.fourth_moments import (
    CountedFourthMoments,
    FourthMoments,
    SampledFourthMoments,
)
from latenttree.moments.gram import second_moments
from latenttree.moments.mirror import STRIP, mirrored

Matrix = Float32


class PairDeterminants(NamedTuple):
    """Signed determinants of all pairs, their relative standard errors and kurtosis ratios, each
    `(p, p)`."""

    determinant: Matrix
    error: Matrix
    kurtosis: Matrix


def all_pairs(table: Table, basis: Float32, n_jobs: int) -> PairDeterminants:
    """Signed determinants, errors and kurtosis ratios of all pairs, by the cheapest way.

    `basis` is `(coordinates, n_directions)`. 0/1 variables are counted (`cooccurrence`), and so are
    few categories (`contingency`). Otherwise features are multiplied, in one pass over the samples,
    a second over some of them for kurtosis ratios, and a third where values are missing."""
    p = table.n_vars
    pairs = PairDeterminants(*(np.empty((p, p), np.float32) for _ in range(3)))
    for matrix, own in zip(pairs, (1.0, 0.0, 1.0), strict=True):
        np.fill_diagonal(matrix, own)
    if table.storage.is_binary:
        binary_pairs(table, basis, tuple(pairs), n_jobs)
    elif table.has_missing:
        _pairs_with_gaps(table, basis, pairs, n_jobs)
    else:
        count = worth_counting(table, basis.shape[1])
        _whole_pairs(table, basis, contingency(table, n_jobs) if count else None, pairs, n_jobs)
    return pairs


def _whole_pairs(
    table: Table, basis: Float32, counts: Counts | None, pairs: PairDeterminants, n_jobs: int
) -> None:
    """Fill `pairs`, in place, where nothing is missing, from `counts` or, if None, from the
    samples."""
    mean = coordinate_moments(table)[0] if counts is None else np.diagonal(counts) / table.n_samples
    offset = feature_means(table, basis, mean)
    if counts is None:
        second = second_moments(table, basis, offset, n_jobs)
    else:
        centred = table.storage.features(basis, offset)
        assert isinstance(centred, CodedFeatures)
        sums = projected(counts, table.offsets, centred.table)
        second = (sums / table.n_samples).astype(np.float32)
    root = _whitening(second, basis.shape[1])
    _fill_determinants(second, root, table.total_weight, pairs, n_jobs)
    white = table.storage.features(basis, offset, root)
    spread: FourthMoments = SampledFourthMoments(table, white)
    if counts is not None and isinstance(white, CodedFeatures):
        spread = CountedFourthMoments(counts, table, white)
    _fill_spread(pairs, spread, basis.shape[1], n_jobs)


def _pairs_with_gaps(table: Table, basis: Float32, pairs: PairDeterminants, n_jobs: int) -> None:
    """Fill `pairs`, in place, each from the samples that have both variables."""
    p, n_directions, n = table.n_vars, basis.shape[1], table.total_weight
    offset = feature_means(table, basis, coordinate_moments(table)[0])
    moments = available_moments(table, basis, offset, n_jobs)
    root = _whitening(moments.covariance, n_directions)
    white = table.storage.features(basis, offset, root)
    whiten_pairs(moments, table, basis, offset, n_jobs)
    identity = np.tile(np.eye(n_directions), (p, 1, 1))
    _fill_determinants(moments.covariance, identity, n, pairs, n_jobs)
    _fill_spread(pairs, SampledFourthMoments(table, white), n_directions, n_jobs)
    share = moments.both / np.float32(n)  # fewer samples have both
    np.fill_diagonal(share, 1.0)
    pairs.error[...] /= np.sqrt(share)
    pairs.kurtosis[...] = np.clip(pairs.kurtosis / share, 1.0, MAX_KURTOSIS)


def _whitening(second: Matrix, n_directions: int) -> Floats:
    """Inverse Cholesky roots `(p, n_directions, n_directions)` of the features' own covariances."""
    p = len(second) // n_directions
    index = np.arange(p)
    own = second.reshape(p, n_directions, p, n_directions)[index, :, index, :].astype(np.float64)
    trace = np.trace(own, axis1=1, axis2=2)
    # a variable that is constant in these samples has no correlation
    own[trace <= 0] = np.eye(n_directions)
    own += np.eye(n_directions) * (1e-6 * trace / n_directions)[:, None, None]
    return np.linalg.inv(np.linalg.cholesky(own))


# ---- determinants --------------------------------------------------------------------------


@kernel(inline="always")
def _invert_general(work, r):  # type: ignore[no-untyped-def]
    """Gauss-Jordan on `[C | I]` in place, leaving `[I | C^-1]`; returns det C, 0 if singular."""
    value = 1.0
    for i in range(r):
        pivot = i
        for u in range(i + 1, r):
            if abs(work[u, i]) > abs(work[pivot, i]):
                pivot = u
        x = work[pivot, i]
        if x == 0.0:
            return 0.0
        if pivot != i:
            value = -value
            for j in range(2 * r):
                work[i, j], work[pivot, j] = work[pivot, j], work[i, j]
        value *= x
        for j in range(2 * r):
            work[i, j] /= x
        for u in range(r):
            f = work[u, i]
            if u != i and f != 0.0:
                for j in range(2 * r):
                    work[u, j] -= f * work[i, j]
    return value


@kernel(inline="always")
def _determinant(work, r, square):  # type: ignore[no-untyped-def]
    """`det C` and `|C^-1|_F^2` of `C = work[:, :r]`, whose `|C|_F^2` is `square`.

    Closed forms for r <= 2: `|C^-1|_F = |C|_F / |det C|`. Else Gauss-Jordan, O(r^3)."""
    if r == 1:
        return work[0, 0], 1 / square
    if r == 2:
        value = work[0, 0] * work[1, 1] - work[0, 1] * work[1, 0]
        return value, square / (value * value)
    for i in range(r):
        for j in range(r):
            work[i, r + j] = 1.0 if i == j else 0.0
    value = _invert_general(work, r)
    inverse = 0.0
    for i in range(r):
        for j in range(r):
            inverse += work[i, r + j] ** 2
    return value, inverse


@kernel(inline="always")
def _whiten_block(second, root, r, a, b, half, work):  # type: ignore[no-untyped-def]
    """`C = root_a second_ab root_b^T` in `work[:, :r]`, for lower triangular roots; returns
    `|C|_F^2`."""
    for i in range(r):
        for v in range(r):
            t = 0.0
            for u in range(i + 1):
                t += root[a, i, u] * second[a * r + u, b * r + v]
            half[i, v] = t
    square = 0.0
    for i in range(r):
        for j in range(r):
            t = 0.0
            for v in range(j + 1):
                t += half[i, v] * root[b, j, v]
            work[i, j] = t
            square += t * t
    return square


@kernel
def _determinants(second, root, r, n, out, start, stop):  # type: ignore[no-untyped-def]
    """`det C`, its relative error and `|C|_F^2` of pairs b < a, start <= a < stop, into both
    triangles of the three of `out` `(p, p)`; C is whitened, r directions, and `start` is a multiple
    of `STRIP`.

    Relative variance of `det C` for Gaussian features:
    `sum (1 - s^2)^2 / s^2 / n = (|C^-1|_F^2 - 2 r + |C|_F^2) / n`."""
    work, half = np.empty((r, 2 * r)), np.empty((r, r))
    block = np.empty((3, STRIP, STRIP), np.float32)
    variables = np.arange(stop)
    for low in range(0, stop, STRIP):
        high = min(low + STRIP, stop)
        for a in range(start, stop):
            for b in range(low, min(high, a)):
                square = _whiten_block(second, root, r, a, b, half, work)
                value, inverse = _determinant(work, r, square)
                i, j = a - start, b - low
                block[0, i, j] = value
                block[1, i, j] = np.sqrt(max(inverse - 2 * r + square, 0.0) / n)
                block[2, i, j] = square
                if value == 0.0:
                    block[1, i, j] = np.inf
        for q in range(3):
            mirrored(block[q], variables[start:], variables[low:high], low == start, out[q])


def _fill_determinants(
    second: Matrix, root: Floats, n: float, pairs: PairDeterminants, n_jobs: int
) -> None:
    """Fill determinants and Gaussian errors off the diagonal, in place; `|C|_F^2` goes where the
    kurtosis ratios will be."""
    p, n_directions = root.shape[:2]
    given = (second, root, n_directions, n, tuple(pairs))
    parallel(lambda a, b: _determinants(*given, a, b), p, n_jobs, STRIP)


# ---- kurtosis ratios and calibrated errors -------------------------------------------------


def _fill_spread(
    pairs: PairDeterminants, spread: FourthMoments, n_directions: int, n_jobs: int
) -> None:
    """Kurtosis ratios in the place of `|C|^2`: `E[|z_a|^2 |z_b|^2] / (r^2 + 2 |C_ab|^2)`, at least
    1, r directions; errors calibrated by the influence function."""
    fourth = spread.fourth(n_jobs)
    norm = pairs.kurtosis
    norm *= 2
    norm += n_directions**2
    np.divide(fourth, norm, out=norm)
    np.clip(norm, 1.0, MAX_KURTOSIS, out=norm)
    np.fill_diagonal(norm, 1.0)
    _calibrate(pairs, spread, n_jobs)


def _calibrate(pairs: PairDeterminants, spread: FourthMoments, n_jobs: int) -> None:
    """Scale the errors, in place, to those of the influence function.

    The influence function is evaluated for some hundred pairs, each variable with its nearest and
    with others; its ratio to the Gaussian formula is applied to all pairs as a function of their
    distance."""
    p = len(pairs.determinant)
    chosen = _calibration_pairs(pairs, p)
    rows, columns = chosen.T
    ratio = spread.ratios(chosen, n_jobs)
    if len(chosen) == p * (p - 1) // 2:
        pairs.error[rows, columns] *= ratio.astype(np.float32)
        pairs.error[columns, rows] = pairs.error[rows, columns]
        return
    determinant = np.abs(pairs.determinant[rows, columns]).astype(np.float64)
    distance = -np.log(np.maximum(determinant, 1e-30))
    order = np.argsort(distance)
    bins = np.array_split(order, min(12, max(1, len(order) // 8)))
    knots = [float(np.median(distance[x])) for x in bins]
    values = [float(np.clip(np.median(ratio[x]), 0.7, 10.0)) for x in bins]

    def scale(start: int, stop: int) -> None:
        d = -np.log(np.clip(np.abs(pairs.determinant[start:stop]), 1e-30, 1.0))
        pairs.error[start:stop] *= np.interp(d, knots, values).astype(np.float32)

    parallel(scale, p, n_jobs, STRIP)


def _calibration_pairs(pairs: PairDeterminants, p: int) -> Ints:
    """Some hundred pairs `(m, 2)`, b < a: all, or for some a the nearest and a random one."""
    if p * (p - 1) // 2 <= 400:
        return np.column_stack(np.tril_indices(p, -1)).astype(np.int64)
    rng = np.random.default_rng(0)
    chosen = set()
    for a in range(1, p, max(1, p // 200)):
        chosen.add((a, int(np.argmax(np.abs(pairs.determinant[a, :a])))))
        chosen.add((a, int(rng.integers(a))))
    return np.array(sorted(chosen), dtype=np.int64)
