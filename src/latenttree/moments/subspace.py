"""Pooled subspaces: for every variable the few directions through which it meets all others.

`Cov(x_a, x_b)` has, over all b, the same column space: that of `A_a`, of rank `k - 1` once means
are removed. It is found once for each variable from everything else pooled (a sparse sign sketch
of the other variables, then power rounds against the features of the nearest ones), instead of
once for each pair.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from latenttree.data import Table
from latenttree.data.checks import free_dimensions
from latenttree.engine import BLOCK, blocks, parallel
from latenttree.moments.project import features, owners, weighted_features

DAMPING = 10.0
"""Pseudo-samples added to a coordinate's variance, so that a category seen once does not weigh like
a factor: scale 1 / sqrt(P + 10 / N)."""

CROWDED = 100
"""Samples for each category below which single pairs show too little to start from."""

MAX_POOLED_ROUNDS = 60
N_NEAR = 8
SKETCH = 16
CHUNK_FLOATS = 16_000_000


@dataclass(frozen=True)
class Subspaces:
    """`basis[offsets[a]:offsets[a + 1]]` spans the directions of variable a, shape `(., rank)`."""

    basis: NDArray[np.float32]
    strengths: NDArray[np.float64]  # (p, rank) singular values of the pooled moments
    n_rounds: int


def full_subspaces(table: Table, rank: int) -> Subspaces | None:
    """The whole space of every variable, when none has more than `rank` free dimensions.

    Ordinal variables have the first `rank` powers of their scores, whatever their categories."""
    scored = np.array([family == "ordinal" for family in table.families])
    if ((free_dimensions(table) > rank) & ~scored).any():
        return None
    basis = np.zeros((int(table.offsets[-1]), rank), dtype=np.float32)
    for start, width in zip(table.offsets[:-1], table.widths, strict=True):
        for q in range(min(rank, int(width))):
            basis[start + q, q] = 1.0
    set_scores(basis, table)
    return Subspaces(basis, np.full((table.n_vars, rank), np.nan), 0)


def set_scores(basis: NDArray[np.float32], table: Table) -> None:
    """Directions of ordinal variables, in place: powers 1, 2, ... of scores from -1 to 1."""
    for a, family in enumerate(table.families):
        if family == "ordinal":
            scores = np.linspace(-1, 1, int(table.widths[a]))[:, None]
            rows = slice(table.offsets[a], table.offsets[a + 1])
            basis[rows] = scores ** np.arange(1, basis.shape[1] + 1)


def coordinate_moments(table: Table) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and variance of every stored coordinate, over the samples that have its variable."""
    width = int(table.offsets[-1])
    total = np.repeat(known_weights(table), table.widths)
    if table.kind == "codes":
        assert table.codes is not None
        counts = np.zeros(width)
        for a in range(table.n_vars):
            low, high = table.offsets[a], table.offsets[a + 1]
            counts[low:high] = _code_counts(table, a, high - low)
        mean = counts / total
        return mean, mean * (1 - mean)
    matrix: Any = table.matrix
    stored = np.ones(matrix.nnz)
    if table.weights is not None:
        stored = np.repeat(table.weights, np.diff(matrix.indptr))
    mean = np.bincount(matrix.indices, matrix.data * stored, width) / total
    apart = np.bincount(matrix.indices, stored * (matrix.data - mean[matrix.indices]) ** 2, width)
    stored = np.bincount(matrix.indices, stored, width)
    return mean, (apart + (total - stored) * mean**2) / total


def _code_counts(table: Table, a: int, d: int) -> NDArray[np.float64]:
    """Weight of every category of a variable; missing ones are not counted."""
    assert table.codes is not None
    codes, weights = table.codes[:, a], table.weights
    if table.has_missing:
        known = codes >= 0
        codes, weights = codes[known], None if weights is None else weights[known]
    return np.bincount(codes, weights, d).astype(np.float64)


def known_weights(table: Table) -> NDArray[np.float64]:
    """Weight `(p,)` of the samples that have each variable; a trifle where none has."""
    total = np.full(table.n_vars, table.total_weight)
    if table.has_missing:
        weights = np.ones(table.n_samples) if table.weights is None else table.weights
        total = np.zeros(table.n_vars)
        for start, stop in blocks(table.n_samples):
            total += weights[start:stop] @ np.asarray(table.known(start, stop))
    return np.maximum(total, 1e-300)


@njit(cache=True, nogil=True)
def scatter_codes(codes, offsets, z, index, out, start, stop):  # type: ignore[no-untyped-def]
    """`out[offsets[a] + codes[n, a], j] += z[n, index[a, j]]` for variables start:stop.

    `z` is `(n, p * rank)`; negative codes count nothing. Samples go by 64, so that their features
    stay in the cache while the variables take turns."""
    width = index.shape[1]
    for low in range(0, codes.shape[0], 64):
        high = min(low + 64, codes.shape[0])
        for a in range(start, stop):
            columns = index[a]
            for n in range(low, high):
                if codes[n, a] < 0:
                    continue
                row = out[offsets[a] + codes[n, a]]
                features = z[n]
                for j in range(width):
                    row[j] += features[columns[j]]


@njit(cache=True, nogil=True)
def _scatter_sparse(indptr, indices, data, owner, z, index, out, first, last):  # type: ignore[no-untyped-def]
    """The same for sparse samples: `out[c] += x[n, c] z[n, index[owner[c]]]`, first <= c < last."""
    width = index.shape[1]
    for n in range(len(indptr) - 1):
        s = indptr[n] + np.searchsorted(indices[indptr[n] : indptr[n + 1]], first)
        while s < indptr[n + 1] and indices[s] < last:
            c = indices[s]
            row = out[c]
            columns = index[owner[c]]
            for j in range(width):
                row[j] += data[s] * z[n, columns[j]]
            s += 1


def _scatter(
    table: Table,
    start: int,
    stop: int,
    z: NDArray[np.float32],
    near: NDArray[np.int64],
    out: NDArray[np.float32],
    n_jobs: int,
) -> None:
    """Add a chunk's `sum_n x_a z_b^T`, b in `near[a]`, to `out`; a variable is one thread's."""
    p, rank = table.n_vars, z.shape[2]
    rows: Any = table.rows(start, stop)
    piece = max(1, -(-p // 32))
    flat = z.reshape(len(z), p * rank)
    index = (near[:, :, None] * rank + np.arange(rank)).reshape(p, -1)
    if table.kind == "codes":
        parallel(
            lambda a, b: scatter_codes(rows, table.offsets, flat, index, out, a, b),
            p,
            n_jobs,
            piece,
        )
        return
    owner = owners(table)
    parallel(
        lambda a, b: _scatter_sparse(
            rows.indptr,
            rows.indices,
            rows.data,
            owner,
            flat,
            index,
            out,
            table.offsets[a],
            table.offsets[b],
        ),
        p,
        n_jobs,
        piece,
    )


def cross_moments(
    table: Table,
    basis: NDArray[np.float32],
    near: NDArray[np.int64],
    mean: NDArray[np.float64],
    n_jobs: int,
) -> NDArray[np.float32]:
    """`Cov(x_a, z_b)` for b in `near[a]`, stacked: `(coordinates, n_near * rank)`. One pass.

    Features are centred before the products, so that a mean far from zero costs no digits."""
    p, rank = table.n_vars, basis.shape[1]
    out = np.zeros((len(basis), near.shape[1] * rank), dtype=np.float32)
    offset = feature_means(table, basis, mean)
    total = np.zeros((p, near.shape[1], rank))
    for start, stop in _chunks(table, p * rank):
        z = features(table, basis, offset, start, stop, n_jobs)
        if table.weights is not None:
            z *= table.weights[start:stop].astype(np.float32)[:, None, None]
        total += _sums_beside(table.known(start, stop), z, near)
        _scatter(table, start, stop, z, near, out, n_jobs)
    share = known_weights(table) / table.total_weight
    pairs = np.repeat(share[:, None] * share[near], rank, axis=1)
    return _centred(out, table, mean, total.reshape(p, -1), pairs)


def _sums_beside(
    known: NDArray[np.bool_] | None, z: NDArray[np.float32], near: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Sums `(p, n_near, rank)` of the features of b in `near[a]` over samples that have a."""
    if known is None:
        return np.asarray(z.sum(axis=0, dtype=np.float64)[near])
    sums = known.astype(np.float32).T @ z.reshape(len(z), -1)
    p, rank = z.shape[1:]
    return np.asarray(sums.reshape(p, p, rank)[np.arange(p)[:, None], near], dtype=np.float64)


def _centred(
    sums: NDArray[np.float32],
    table: Table,
    mean: NDArray[np.float64],
    total: NDArray[np.float64],
    share: NDArray[np.float64],
) -> NDArray[np.float32]:
    """`(sums - mean x total) / (n share)`, in place: takes off what is left of the features' sums;
    `share` `(p, .)` of the samples have both variables."""
    step = 65_536
    owner = owners(table)
    for start, stop in blocks(len(sums), step):
        own = owner[start:stop]
        sums[start:stop] -= mean[start:stop, None] * total[own]
        sums[start:stop] /= table.total_weight * share[own]
    return sums


def feature_means(
    table: Table, basis: NDArray[np.float32], mean: NDArray[np.float64]
) -> NDArray[np.float32]:
    """Means `(p, rank)` of the features, from the coordinates' means."""
    products = basis.astype(np.float64) * mean[:, None]
    return np.asarray(np.add.reduceat(products, table.offsets[:-1], axis=0), dtype=np.float32)


def leading_directions(
    moments: NDArray[np.float32],
    scale: NDArray[np.float64],
    offsets: NDArray[np.int64],
    rank: int,
    n_jobs: int,
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Top left singular vectors of every variable's scaled moments, in unscaled coordinates.

    By the eigenvectors of the small `(s, s)` Gram matrix: O(d s^2) for each variable, never d x d.
    """
    p = len(offsets) - 1
    basis = np.zeros((len(moments), rank), dtype=np.float32)
    strengths = np.zeros((p, rank))

    def work(first: int, last: int) -> None:
        for a in range(first, last):
            low, high = offsets[a], offsets[a + 1]
            m = moments[low:high].astype(np.float64) * scale[low:high, None]
            values, vectors = np.linalg.eigh(m.T @ m)
            top = np.sqrt(np.maximum(values[::-1][:rank], 1e-30))
            left = m @ vectors[:, ::-1][:, :rank] / top
            basis[low:high, : left.shape[1]] = left * scale[low:high, None]
            strengths[a, : len(top)] = top

    parallel(work, p, n_jobs)
    return basis, strengths


def standardise(
    sample: Table, basis: NDArray[np.float32], mean: NDArray[np.float64], n_jobs: int
) -> NDArray[np.float32]:
    """Rescale the basis, in place, to unit covariance of the features over a sample; those
    features.

    Shape `(n, p, rank)`, centred, times the roots of the weights."""
    offset = feature_means(sample, basis, mean)
    z = weighted_features(sample, basis, offset, 0, sample.n_samples, n_jobs)
    p, rank = sample.n_vars, basis.shape[1]
    own = np.zeros((p, rank, rank))
    parallel(lambda a, b: _own_moments(z, own, a, b), p, n_jobs)
    own *= (sample.n_samples / known_weights(sample))[:, None, None]
    trace = np.trace(own, axis1=1, axis2=2)[:, None, None] / rank
    own += np.eye(rank) * (1e-3 * trace + 1e-12)
    root = np.linalg.inv(np.linalg.cholesky(own))
    parallel(lambda a, b: apply_roots(z, root, a, b), len(z), n_jobs)
    for a in range(p):
        low, high = sample.offsets[a], sample.offsets[a + 1]
        basis[low:high] = basis[low:high] @ root[a].T
    return z


@njit(cache=True, nogil=True)
def _own_moments(z, out, start, stop):  # type: ignore[no-untyped-def]
    """`out[a] = mean_n z_a z_a^T` for variables start:stop."""
    n, rank = z.shape[0], z.shape[2]
    for row in range(n):
        for a in range(start, stop):
            for i in range(rank):
                for j in range(rank):
                    out[a, i, j] += z[row, a, i] * z[row, a, j]
    for a in range(start, stop):
        for i in range(rank):
            for j in range(rank):
                out[a, i, j] /= n


@njit(cache=True, nogil=True)
def apply_roots(z, root, start, stop):  # type: ignore[no-untyped-def]
    """`z_a <- root_a z_a`, in place, for samples start:stop; roots are lower triangular."""
    rank = z.shape[2]
    for row in range(start, stop):
        for a in range(z.shape[1]):
            for i in range(rank - 1, -1, -1):
                t = 0.0
                for j in range(i + 1):
                    t += root[a, i, j] * z[row, a, j]
                z[row, a, i] = t


def nearest(features: NDArray[np.float32], n_near: int, n_jobs: int = 1) -> NDArray[np.int64]:
    """For every variable the `n_near` others of largest squared cross-correlation, `(p,
    n_near)`."""
    n, p, rank = features.shape
    flat = features.reshape(n, p * rank)
    near = np.empty((p, n_near), dtype=np.int64)

    def work(start: int, stop: int) -> None:
        cross = flat[:, start * rank : stop * rank].T @ flat
        strength = (cross.reshape(stop - start, rank, p, rank) ** 2).sum(axis=(1, 3))
        strength[np.arange(stop - start), np.arange(start, stop)] = -1.0
        near[start:stop] = np.argpartition(-strength, n_near - 1, axis=1)[:, :n_near]

    parallel(work, p, n_jobs, max(1, 4_000_000 // (p * rank * rank)))
    return np.sort(near, axis=1)


def rest_moments(
    table: Table, basis: NDArray[np.float32], mean: NDArray[np.float64], n_jobs: int
) -> NDArray[np.float32]:
    """`Cov(x_a, sum_{b != a} z_b)` for every variable: all the others pooled in one feature."""
    p, rank = table.n_vars, basis.shape[1]
    out = np.zeros((len(basis), rank), dtype=np.float32)
    offset = feature_means(table, basis, mean)
    own = np.arange(p)[:, None]
    total = np.zeros((p, 1, rank))
    for start, stop in _chunks(table, p * rank):
        z = features(table, basis, offset, start, stop, n_jobs)
        z = z.sum(axis=1, keepdims=True) - z
        if table.weights is not None:
            z *= table.weights[start:stop].astype(np.float32)[:, None, None]
        known = table.known(start, stop)
        if known is not None:
            z *= known[:, :, None]
        total += z.sum(axis=0, dtype=np.float64)[:, None]
        _scatter(table, start, stop, z, own, out, n_jobs)
    share = (known_weights(table) / table.total_weight)[:, None]
    return _centred(out, table, mean, total.reshape(p, -1), np.repeat(share, rank, axis=1))


def _chunks(table: Table, width: int) -> Iterator[tuple[int, int]]:
    """Chunks of samples whose features take a bounded amount of memory."""
    return blocks(table.n_samples, max(BLOCK, CHUNK_FLOATS // width // BLOCK * BLOCK))


def crowded_start(
    table: Table, rank: int, rng: np.random.Generator, n_jobs: int
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Leading directions of everything at once, by block power rounds from a sign sketch.

    Where a variable has many categories for its number of samples, no single pair shows a
    direction, but all pairs together do: the block matrix of all scaled cross-moments has, above
    its bulk of noise, the directions that many variables share. Returns the basis `(coordinates,
    rank + 6)` and the singular values, whose gap after `rank` says whether there was anything
    above the bulk.
    """
    mean, variance = coordinate_moments(table)
    scale = 1.0 / np.sqrt(variance + DAMPING / table.total_weight)
    block = rng.choice([-1.0, 1.0], (len(mean), rank + 6))
    before, values = 0.0, np.zeros(rank + 6)
    for round_ in range(MAX_POOLED_ROUNDS):
        block, triangle = np.linalg.qr(block)
        values = np.sort(np.abs(np.diag(triangle)))[::-1]
        if round_ > 8 and abs(values[:rank].mean() - before) < 5e-4 * before:
            break
        before = float(values[:rank].mean())
        basis = (block * scale[:, None]).astype(np.float32)
        block = rest_moments(table, basis, mean, n_jobs) * scale[:, None]
    return (block * scale[:, None]).astype(np.float32), values


def pooled_subspaces(
    table: Table,
    rank: int,
    rng: np.random.Generator,
    n_jobs: int,
    max_rounds: int = 12,
    tolerance: float = 5e-3,
) -> Subspaces:
    """Sign sketch, then power rounds against the nearest variables until strengths stop growing.

    Rounds run on a part of the samples, which is enough to converge, and the last one on all.
    """
    widest = int(table.widths.max())
    crowded = widest * CROWDED > table.total_weight
    part = table if crowded else table.spread_rows(max(2 * BLOCK, CROWDED * widest))
    probe = part.spread_rows(BLOCK)
    mean, variance = coordinate_moments(part)
    scale = 1.0 / np.sqrt(variance + DAMPING / part.total_weight)
    n_near = min(N_NEAR, table.n_vars - 1)
    if crowded:
        basis, _ = crowded_start(table, rank, rng, n_jobs)
        seen = standardise(probe, basis, mean, n_jobs)
    else:
        # a random sign for every coordinate: features that see all of a variable's categories
        width = int(np.clip(SKETCH // n_near, rank, SKETCH))
        basis = (rng.choice([-1.0, 1.0], (len(mean), width)) * scale[:, None]).astype(np.float32)
        seen = standardise(part, basis, mean, n_jobs)
    before, n_rounds = 0.0, 0
    for n_rounds in range(1, max_rounds + 1):
        near = nearest(seen, n_near, n_jobs)
        moments = cross_moments(part, basis, near, mean, n_jobs)
        basis, strengths = leading_directions(moments, scale, table.offsets, rank, n_jobs)
        set_scores(basis, table)
        seen = standardise(probe, basis, mean, n_jobs)
        now = float(np.sqrt((strengths**2).mean()))
        if n_rounds > 2 and now - before < tolerance * now:
            break
        before = now
    if part is not table:
        mean, variance = coordinate_moments(table)
        scale = 1.0 / np.sqrt(variance + DAMPING / table.total_weight)
        near = nearest(seen, n_near, n_jobs)
        moments = cross_moments(table, basis, near, mean, n_jobs)
        basis, strengths = leading_directions(moments, scale, table.offsets, rank, n_jobs)
        set_scores(basis, table)
        standardise(probe, basis, mean, n_jobs)
        n_rounds += 1
    return Subspaces(basis, strengths, n_rounds)
