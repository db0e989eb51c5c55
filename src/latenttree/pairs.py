"""All pairs of variables at once: signed determinants, their relative errors, and tails."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from latenttree.data import Table
from latenttree.engine import blocks, parallel
from latenttree.moments import gram
from latenttree.moments.available import available_moments, own_share, whiten_pairs
from latenttree.moments.project import features, root_weights, weighted_features
from latenttree.moments.subspace import apply_roots, coordinate_moments, feature_means

Floats = NDArray[np.float64]

BINARY_DAMPING = 4.0
"""Pseudo-occurrences added to a 0/1 variable."""

CALIBRATION_SAMPLES = 8192
TAIL_SAMPLES = 16_384


class Pairs(NamedTuple):
    """Signed determinants of all pairs, relative standard errors and tails, each `(p, p)`."""

    det: NDArray[np.float32]
    error: NDArray[np.float32]
    tails: NDArray[np.float32]


@njit(cache=True, nogil=True)
def _determinants(second, root, rank, n, det, error, norm, start, stop):  # type: ignore[no-untyped-def]
    """Signed determinant of the whitened block of every pair (a, b), b < a, start <= a < stop.

    `C = root_a second_ab root_b^T`; relative variance of `det C` for Gaussian features:
    `sum (1 - s^2)^2 / s^2 / n = (|C^-1|_F^2 - 2 r + |C|_F^2) / n`. Gauss-Jordan in place, O(r^3).
    Fills the lower triangles of `det`, `error` and `norm = |C|_F^2`.
    """
    work = np.empty((rank, 2 * rank))
    half = np.empty((rank, rank))
    for a in range(start, stop):
        for b in range(a):
            square = 0.0
            for i in range(rank):
                for v in range(rank):
                    t = 0.0
                    for u in range(rank):
                        t += root[a, i, u] * second[a * rank + u, b * rank + v]
                    half[i, v] = t
            for i in range(rank):
                for j in range(rank):
                    t = 0.0
                    for v in range(rank):
                        t += half[i, v] * root[b, j, v]
                    work[i, j] = t
                    work[i, rank + j] = 1.0 if i == j else 0.0
                    square += t * t
            value = _invert_general(work, rank)
            inverse = 0.0
            for i in range(rank):
                for j in range(rank):
                    inverse += work[i, rank + j] ** 2
            det[a, b] = value
            norm[a, b] = square
            error[a, b] = (
                np.inf if value == 0.0 else np.sqrt(max(inverse - 2 * rank + square, 0.0) / n)
            )


@njit(cache=True, nogil=True)
def _invert_general(work, rank):  # type: ignore[no-untyped-def]
    """Gauss-Jordan on `[C | I]` in place, leaving `[I | C^-1]`; returns det C, 0 if singular."""
    value = 1.0
    for i in range(rank):
        pivot = i
        for u in range(i + 1, rank):
            if abs(work[u, i]) > abs(work[pivot, i]):
                pivot = u
        x = work[pivot, i]
        if x == 0.0:
            return 0.0
        if pivot != i:
            value = -value
            for j in range(2 * rank):
                work[i, j], work[pivot, j] = work[pivot, j], work[i, j]
        value *= x
        for j in range(2 * rank):
            work[i, j] /= x
        for u in range(rank):
            f = work[u, i]
            if u != i and f != 0.0:
                for j in range(2 * rank):
                    work[u, j] -= f * work[i, j]
    return value


@njit(cache=True, nogil=True)
def _binary_pairs(second, mean, root, n, det, error, tails, start, stop):  # type: ignore[no-untyped-def]
    """Correlations of 0/1 variables with exact delta-method errors, lower triangle."""
    for a in range(start, stop):
        for b in range(a):
            det[a, b], error[a, b], tails[a, b] = _binary_pair(
                second[a, b], mean[a], mean[b], root[a], root[b], n
            )


@njit(cache=True, nogil=True)
def _binary_available(second, both, beside, mean, n, det, error, tails, start, stop):  # type: ignore[no-untyped-def]
    """The same where values are missing: means and variances too are those of the samples that have
    both, the variances mixed with those of all, see `moments.available`."""
    damping = BINARY_DAMPING / n
    for a in range(start, stop):
        for b in range(a):
            one, other = mean[a] + beside[a, b], mean[b] + beside[b, a]
            share = own_share(both[a, b], 1)
            var_a = share * one * (1 - one) + (1 - share) * second[a, a] + damping
            var_b = share * other * (1 - other) + (1 - share) * second[b, b] + damping
            root_a, root_b = np.sqrt(share / var_a), np.sqrt(share / var_b)
            det[a, b], error[a, b], tails[a, b] = _binary_pair(
                second[a, b], one, other, root_a, root_b, n
            )


@njit(cache=True, nogil=True)
def _binary_pair(second, one, other, root_a, root_b, n):  # type: ignore[no-untyped-def]
    """Correlation, error and tail of two 0/1 variables with covariance `second`, from counts.

    With `z = (x - mean) root`, the influence of a sample on `-log rho` is
    `z_a z_b / rho - (z_a^2 + z_b^2) / 2`; its variance over the four cells of the 2 x 2 table is
    exact. Tails: `E[z_a^2 z_b^2] / (1 + 2 rho^2)`.
    """
    high_a, low_a = (1 - one) * root_a, -one * root_a
    high_b, low_b = (1 - other) * root_b, -other * root_b
    rho = second * root_a * root_b
    both = second + one * other
    both = min(max(both, 0.0), min(one, other))
    if rho == 0.0:
        return rho, np.inf, 1.0
    first = 0.0
    square = 0.0
    fourth = 0.0
    for cell in range(4):
        if cell == 0:
            q, za, zb = both, high_a, high_b
        elif cell == 1:
            q, za, zb = one - both, high_a, low_b
        elif cell == 2:
            q, za, zb = other - both, low_a, high_b
        else:
            q, za, zb = 1 - one - other + both, low_a, low_b
        psi = za * zb / rho - 0.5 * (za * za + zb * zb)
        first += q * psi
        square += q * psi * psi
        fourth += q * za * za * zb * zb
    error = np.sqrt(max(square - first * first, 0.0) / n)
    return rho, error, min(max(fourth / (1 + 2 * rho * rho), 1.0), 6e4)


@njit(cache=True, nogil=True)
def _mirror(x, start, stop):  # type: ignore[no-untyped-def]
    """Copy the lower triangle to the upper one, rows start:stop of it, by narrow strips."""
    for low in range(0, stop, 32):
        for a in range(start, stop):
            for b in range(low, min(low + 32, a)):
                x[b, a] = x[a, b]


def _whitening(second: NDArray[np.float32], table: Table, rank: int) -> NDArray[np.float64]:
    """Inverse Cholesky roots `(p, rank, rank)` of the features' own covariances.

    `BINARY_DAMPING / n` is added to the variance of a 0/1 variable, which lengthens the pendant
    edge of a rare one and changes no other distance: a pair that occurs together three times does
    not outrank one that does so three thousand times.
    """
    p = table.n_vars
    index = np.arange(p)
    own = second.reshape(p, rank, p, rank)[index, :, index, :].astype(np.float64)
    trace = np.trace(own, axis1=1, axis2=2)
    # a variable that is constant in these samples (one half of few) has no correlation to show
    own[trace <= 0] = np.eye(rank)
    if _is_binary(table):
        own += BINARY_DAMPING / table.total_weight
    own += np.eye(rank) * (1e-6 * trace / rank)[:, None, None]
    return np.linalg.inv(np.linalg.cholesky(own))


def _is_binary(table: Table) -> bool:
    return table.kind == "presence" or (table.kind == "codes" and bool((table.dims == 2).all()))


class _Features(NamedTuple):
    """Directions of all variables, the means of the features, and the roots that whiten them."""

    basis: NDArray[np.float32]  # (coordinates, rank)
    offset: NDArray[np.float32]  # (p, rank)
    root: NDArray[np.float64]  # (p, rank, rank)


def second_moments(
    table: Table, basis: NDArray[np.float32], offset: NDArray[np.float32], n_jobs: int
) -> NDArray[np.float32]:
    """Covariances `(p rank, p rank)` of the features of all pairs, where nothing is missing."""
    width = table.n_vars * basis.shape[1]

    def chunk(start: int, stop: int) -> NDArray[np.float32]:
        z = weighted_features(table, basis, offset, start, stop, n_jobs)
        return z.reshape(-1, width)

    sums = gram(chunk, table.n_samples, width, n_jobs)
    sums /= np.float32(table.total_weight)
    return sums


def all_pairs(table: Table, basis: NDArray[np.float32], n_jobs: int) -> Pairs:
    """Signed determinants, errors and tails of all pairs, in one pass over the data (two passes
    where tails need their own moments, one more where values are missing)."""
    p, rank, n = table.n_vars, basis.shape[1], table.total_weight
    offset = feature_means(table, basis, coordinate_moments(table)[0])
    found = available_moments(table, basis, offset, n_jobs) if table.has_missing else None
    second = second_moments(table, basis, offset, n_jobs) if found is None else found.covariance
    root = _whitening(second, table, rank)
    seen = _Features(basis, offset, root)
    pairs = Pairs(
        np.zeros((p, p), np.float32), np.zeros((p, p), np.float32), np.ones((p, p), np.float32)
    )
    np.fill_diagonal(pairs.det, 1.0)
    np.fill_diagonal(pairs.error, 0.0)
    if _is_binary(table):
        mean, scale = offset[:, 0].astype(np.float64), root[:, 0, 0].copy()
        if found is None:
            parallel(lambda a, b: _binary_pairs(second, mean, scale, n, *pairs, a, b), p, n_jobs)
        else:
            own = (found.both, found.beside, mean, n)
            parallel(lambda a, b: _binary_available(second, *own, *pairs, a, b), p, n_jobs)
    else:
        if found is not None:
            whiten_pairs(found, table, basis, offset, n_jobs)
            root = np.tile(np.eye(rank), (p, 1, 1))
        norm = np.zeros((p, p), np.float32)
        parallel(
            lambda a, b: _determinants(second, root, rank, n, pairs.det, pairs.error, norm, a, b),
            p,
            n_jobs,
        )
        pairs = pairs._replace(tails=_measured_tails(table, seen, norm, n_jobs))
        _calibrate(pairs, table, seen, n_jobs)
    if found is not None:  # fewer samples have both
        share = found.both / np.float32(n)
        pairs.error[...] /= np.sqrt(share)
        pairs.tails[...] = np.clip(pairs.tails / share, 1.0, 6e4)
    for triangle in pairs:
        parallel(partial(_mirror, triangle), p, n_jobs)
    return pairs


def _whitened(
    table: Table, seen: _Features, start: int, stop: int, n_jobs: int
) -> NDArray[np.float32]:
    """Features `(n, p, rank)` of unit covariance, zero where missing."""
    z = features(table, seen.basis, seen.offset, start, stop, n_jobs)
    parallel(lambda a, b: apply_roots(z, seen.root, a, b), len(z), n_jobs)
    return z


def _measured_tails(
    table: Table, seen: _Features, norm: NDArray[np.float32], n_jobs: int
) -> NDArray[np.float32]:
    """`E[|z_a|^2 |z_b|^2] / (r^2 + 2 |C_ab|^2)` over a part of the samples, at least 1.

    `norm = |C|^2`."""
    p, rank = table.n_vars, seen.basis.shape[1]
    part = table.spread_rows(TAIL_SAMPLES)

    def norms(start: int, stop: int) -> NDArray[np.float32]:
        squares = (_whitened(part, seen, start, stop, n_jobs) ** 2).sum(axis=2)
        known, roots = part.known(start, stop), root_weights(part, start, stop)
        if known is not None:
            squares = np.concatenate([squares, known], axis=1)
        return np.asarray(squares if roots is None else squares * roots[:, None], dtype=np.float32)

    width = 2 * p if part.has_missing else p
    sums = gram(norms, part.n_samples, width, n_jobs)
    fourth = sums[:p, :p] / np.float32(part.total_weight)
    if part.has_missing:
        fourth = sums[:p, :p] / np.maximum(sums[p:, p:], np.float32(1e-30))
    fourth /= rank**2 + 2 * norm
    return np.clip(fourth, 1.0, 6e4, out=fourth)


def _calibrate(pairs: Pairs, table: Table, seen: _Features, n_jobs: int) -> None:
    """Scale the errors, in place (lower triangle), to what the influence function says of a few.

    The influence of a sample on `-log |det C|` is `-z_a^T C^-T z_b + (|z_a|^2 + |z_b|^2) / 2`. Its
    spread is measured on some hundred pairs, each variable with its nearest and with others, and
    the ratio to the Gaussian formula is carried to all pairs as a function of their distance.
    """
    p = table.n_vars
    part = table.spread_rows(CALIBRATION_SAMPLES)
    z = _whitened(part, seen, 0, part.n_samples, n_jobs)
    known = part.known(0, part.n_samples)
    chosen = _spread_pairs(pairs, p)
    ratio, distance = np.ones(len(chosen)), np.zeros(len(chosen))
    for i, (a, b) in enumerate(chosen):
        rows = slice(None) if known is None else known[:, a] & known[:, b]
        weights = None if part.weights is None else part.weights[rows]
        one, other = (z[rows, v].astype(np.float64) for v in (a, b))
        if known is not None:
            one, other = _own_white(one, weights), _own_white(other, weights)
        ratio[i] = _error_ratio(one, other, weights)
        distance[i] = -np.log(max(abs(float(pairs.det[a, b])), 1e-30))
    if len(chosen) == p * (p - 1) // 2:
        rows, columns = np.array(chosen).T
        pairs.error[rows, columns] *= ratio.astype(np.float32)
        return
    order = np.argsort(distance)
    bins = np.array_split(order, min(12, max(1, len(order) // 8)))
    knots = [float(np.median(distance[x])) for x in bins]
    values = [float(np.clip(np.median(ratio[x]), 0.7, 10.0)) for x in bins]
    for start, stop in blocks(p, 256):
        d = -np.log(np.clip(np.abs(pairs.det[start:stop]), 1e-30, 1.0))
        pairs.error[start:stop] *= np.interp(d, knots, values).astype(np.float32)
    np.fill_diagonal(pairs.error, 0.0)


def _own_white(z: Floats, weights: Floats | None) -> Floats:
    """Features `(n, rank)` centred and of unit covariance over these samples, but for directions
    in which they do not vary."""
    w = np.ones(len(z)) if weights is None else weights
    w = w / max(float(w.sum()), 1e-300)
    z = z - w @ z
    values, vectors = np.linalg.eigh((z * w[:, None]).T @ z)
    scale = np.where(values > 1e-6 * max(float(values[-1]), 1e-12), values, np.inf)
    return np.asarray(z @ (vectors / np.sqrt(scale)))


def _error_ratio(za: Floats, zb: Floats, weights: Floats | None) -> float:
    """Standard error of a pair's distance by the influence function over that of the Gaussian
    formula; 1 where the pair is too noisy to tell."""
    w = np.full(len(za), 1 / max(len(za), 1)) if weights is None else weights / weights.sum()
    n = len(za) if weights is None else float(weights.sum())
    cross = (za * w[:, None]).T @ zb
    s = np.linalg.svd(cross, compute_uv=False)
    if not s[-1] * np.sqrt(n) >= 3:
        return 1.0  # the inverse of noise says nothing about errors
    influence = -((za @ np.linalg.inv(cross).T) * zb).sum(axis=1)
    influence += 0.5 * ((za**2).sum(1) + (zb**2).sum(1))
    spread = w @ influence**2 - (w @ influence) ** 2
    gaussian = ((1 - np.minimum(s, 1) ** 2) ** 2 / s**2).sum()
    return float(np.sqrt(max(spread, 0.0) / max(gaussian, 1e-12)))


def _spread_pairs(pairs: Pairs, p: int) -> list[tuple[int, int]]:
    """Some hundred pairs (a, b), b < a: all, or each variable with its nearest and a random one."""
    if p * (p - 1) // 2 <= 400:
        return [(a, b) for a in range(p) for b in range(a)]
    rng = np.random.default_rng(0)
    chosen = set()
    step = max(1, p // 200)
    for a in range(1, p, step):
        chosen.add((a, int(np.argmax(np.abs(pairs.det[a, :a])))))
        chosen.add((a, int(rng.integers(a))))
    return sorted(chosen)
