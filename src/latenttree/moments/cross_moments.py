"""Cross-moments of coordinates with features: one pass over the samples for all variables.

A coordinate in use adds the features of the sample to its own row: `N p s` additions for `s`
features of categorical variables, `nnz s` multiply-adds for vectors; no one-hot matrix, no product
of coordinates with coordinates.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.data import Table
from latenttree.engine import BLOCK, blocks, parallel
from latenttree.engine.kernels import kernel
from latenttree.moments.coordinates import chunk_weights, feature_means, known_weights
from latenttree.moments.projection import features, owners

Float32 = NDArray[np.float32]
Floats = NDArray[np.float64]

CHUNK_FLOATS = 4_000_000
"""Features held at once; at least those of a block of samples."""

N_PIECES = 64
TILE = 256
"""Samples whose rows of sums stay in the first cache for all features."""


def cross_moments(
    table: Table, basis: Float32, near: NDArray[np.int64], mean: Floats, n_jobs: int
) -> Float32:
    """`Cov(x_a, z_b)` for b in `near[a]`, side by side: `(coordinates, n_near n_directions)`. One
    pass.

    Features are centred before the products, so that a mean far from zero costs no digits."""
    p, n_directions = table.n_vars, basis.shape[1]
    offset = feature_means(table, basis, mean)
    index = (near[:, :, None] * n_directions + np.arange(n_directions)).reshape(p, -1)
    out = np.zeros((len(basis) + 1, index.shape[1]), dtype=np.float32)
    total: Floats | None = None
    if table.kind == "codes":
        for start, stop in _chunks(table, p * n_directions):
            z = _columns(table, basis, offset, start, stop, n_jobs)
            _scatter_codes(table, start, stop, z, index, out, n_jobs)
    else:
        total = np.zeros(index.shape)
        for start, stop in _chunks(table, p * n_directions):
            z = _weighed(features(table, basis, offset, start, stop, n_jobs), table, start, stop)
            total += _sums_beside(table.known(start, stop), z, near).reshape(p, -1)
            _scatter_vectors(table, start, stop, z, index, out, n_jobs)
    share = known_weights(table) / table.total_weight
    pairs = np.repeat(share[:, None] * share[near], n_directions, axis=1)
    return _centred(out[:-1], table, mean, total, pairs, n_jobs)


def rest_moments(table: Table, basis: Float32, mean: Floats, n_jobs: int) -> Float32:
    """`Cov(x_a, sum_{b != a} z_b)` for every variable: all the others pooled in one feature.

    `(coordinates, n_directions)`, in one pass.

    For categorical variables the sum over all b is added up, and a's own part subtracted
    afterwards: it is `P(c) (basis[c] - offset_a)`."""
    p, n_directions = table.n_vars, basis.shape[1]
    offset = feature_means(table, basis, mean)
    out = np.zeros((len(basis) + 1, n_directions), dtype=np.float32)
    known = known_weights(table)
    total: Floats | None = None
    if table.kind == "codes":
        index = np.tile(np.arange(n_directions), (p, 1))
        for start, stop in _chunks(table, p * n_directions):
            z = _pooled_columns(table, basis, offset, start, stop, n_jobs)
            _scatter_codes(table, start, stop, z, index, out, n_jobs)
        counts = mean * np.repeat(known, table.widths)
        parallel(
            lambda a, b: _subtract_own(out, table.offsets, basis, offset, counts, a, b),
            p,
            n_jobs,
            1,
        )
    else:
        index = np.arange(p * n_directions).reshape(p, n_directions)
        total = np.zeros((p, n_directions))
        for start, stop in _chunks(table, p * n_directions):
            z = features(table, basis, offset, start, stop, n_jobs)
            z = _weighed(z.sum(axis=1, keepdims=True) - z, table, start, stop)
            has_variable = table.known(start, stop)
            if has_variable is not None:
                z *= has_variable[:, :, None]
            total += z.sum(axis=0, dtype=np.float64)
            _scatter_vectors(table, start, stop, z, index, out, n_jobs)
    share = np.repeat((known / table.total_weight)[:, None], n_directions, axis=1)
    return _centred(out[:-1], table, mean, total, share, n_jobs)


def _chunks(table: Table, width: int) -> Iterator[tuple[int, int]]:
    """Chunks of samples whose features take a bounded amount of memory."""
    return blocks(table.n_samples, max(BLOCK, CHUNK_FLOATS // width // BLOCK * BLOCK))


def _weighed(z: Float32, table: Table, start: int, stop: int) -> Float32:
    """Features times the weights of their samples, in place."""
    if table.weights is not None:
        z *= table.weights[start:stop].astype(np.float32)[:, None, None]
    return z


def _columns(
    table: Table, basis: Float32, offset: Float32, start: int, stop: int, n_jobs: int
) -> Float32:
    """Centred and weighted features, `(p r, n)` for r directions, those of a variable together."""
    rows, weights = table.rows(start, stop), chunk_weights(table, start, stop)
    p, n_directions = offset.shape
    out = np.empty((p * n_directions, stop - start), dtype=np.float32)
    parallel(
        lambda a, b: _feature_columns(rows, table.offsets, basis, offset, weights, out, a, b),
        p,
        n_jobs,
        -(-p // N_PIECES),
    )
    return out


def _pooled_columns(
    table: Table, basis: Float32, offset: Float32, start: int, stop: int, n_jobs: int
) -> Float32:
    """Sums `(n_directions, n)` of the centred and weighted features of all variables."""
    rows, weights = table.rows(start, stop), chunk_weights(table, start, stop)
    out = np.empty((basis.shape[1], stop - start), dtype=np.float32)
    parallel(
        lambda a, b: _pool(rows, table.offsets, basis, offset, weights, out, a, b),
        stop - start,
        n_jobs,
        1024,
    )
    return out


def _scatter_codes(
    table: Table,
    start: int,
    stop: int,
    z: Float32,
    index: NDArray[np.int64],
    out: Float32,
    n_jobs: int,
) -> None:
    """Add a chunk's features `z[index[a]]` to the rows of `out`; a variable is one thread's."""
    rows, p = table.rows(start, stop), table.n_vars
    parallel(
        lambda a, b: add_columns(rows, table.offsets, z, index, out, a, b),
        p,
        n_jobs,
        -(-p // N_PIECES),
    )


def _scatter_vectors(
    table: Table,
    start: int,
    stop: int,
    z: Float32,
    index: NDArray[np.int64],
    out: Float32,
    n_jobs: int,
) -> None:
    """The same for vectors; `z` is `(n, p, n_directions)`."""
    rows: Any = table.rows(start, stop)
    stored = (rows.indptr, rows.indices, rows.data, owners(table), z.reshape(len(z), -1))
    p = table.n_vars
    parallel(
        lambda a, b: _add_sparse(*stored, index, out, table.offsets[a], table.offsets[b]),
        p,
        n_jobs,
        -(-p // N_PIECES),
    )


def _sums_beside(known: NDArray[np.bool_] | None, z: Float32, near: NDArray[np.int64]) -> Floats:
    """Sums `(p, n_near, r)` of the features of b in `near[a]` over samples that have a."""
    if known is None:
        return np.asarray(z.sum(axis=0, dtype=np.float64)[near])
    sums = known.astype(np.float32).T @ z.reshape(len(z), -1)
    p, r = z.shape[1:]
    return np.asarray(sums.reshape(p, p, r)[np.arange(p)[:, None], near], dtype=np.float64)


def _centred(
    sums: Float32, table: Table, mean: Floats, total: Floats | None, share: Floats, n_jobs: int
) -> Float32:
    """`(sums - mean x total) / (n share)`, in place: subtracts what is left of the features' sums;
    `share` `(p, s)` of the samples have both variables.

    `total` `(p, s)` are sums of the features over the samples that have a variable; None where they
    are the sums over the rows of the variable."""
    size = table.total_weight * share
    given = total if total is not None else np.empty((0, 0))
    parallel(
        lambda a, b: _centre(sums, table.offsets, mean, given, size, a, b), len(size), n_jobs, 1
    )
    return sums


@kernel
def _centre(sums, offsets, mean, given, size, start, stop):  # type: ignore[no-untyped-def]
    """`_centred` of variables start:stop; `given` is `total`, or `(0, 0)`."""
    width = sums.shape[1]
    total = np.zeros(width)
    for a in range(start, stop):
        for j in range(width):
            total[j] = given[a, j] if len(given) > 0 else 0.0
        if len(given) == 0:
            for c in range(offsets[a], offsets[a + 1]):
                for j in range(width):
                    total[j] += sums[c, j]
        for c in range(offsets[a], offsets[a + 1]):
            for j in range(width):
                sums[c, j] = (sums[c, j] - mean[c] * total[j]) / size[a, j]


@kernel
def _subtract_own(sums, offsets, basis, offset, counts, start, stop):  # type: ignore[no-untyped-def]
    """`sums[c] -= counts[c] (basis[c] - offset_a)` for the categories of variables start:stop: the
    part of their own features."""
    for a in range(start, stop):
        for c in range(offsets[a], offsets[a + 1]):
            count = np.float32(counts[c])
            for q in range(sums.shape[1]):
                sums[c, q] -= count * (basis[c, q] - offset[a, q])


@kernel
def _feature_columns(codes, offsets, basis, offset, weights, out, start, stop):  # type: ignore[no-untyped-def]
    """`out[a r + q, n] = weight (basis[offsets[a] + codes[n, a], q] - offset[a, q])` for variables
    start:stop in r directions; zero where the code is negative."""
    n_directions = basis.shape[1]
    one = len(weights) == 0
    for low in range(0, codes.shape[0], TILE):
        high = min(low + TILE, codes.shape[0])
        for a in range(start, stop):
            for n in range(low, high):
                weight = np.float32(1.0) if one else np.float32(weights[n])
                if codes[n, a] < 0:
                    weight = np.float32(0.0)
                row = basis[offsets[a] + max(codes[n, a], 0)]
                for q in range(n_directions):
                    out[a * n_directions + q, n] = weight * (row[q] - offset[a, q])


@kernel
def _pool(codes, offsets, basis, offset, weights, out, start, stop):  # type: ignore[no-untyped-def]
    """`out[q, n]`: the weighted sum over variables of those features, for samples start:stop."""
    n_directions = basis.shape[1]
    one = len(weights) == 0
    total = np.empty(n_directions, dtype=np.float32)
    for n in range(start, stop):
        total[:] = 0.0
        for a in range(codes.shape[1]):
            if codes[n, a] >= 0:
                row = basis[offsets[a] + codes[n, a]]
                for q in range(n_directions):
                    total[q] += row[q] - offset[a, q]
        weight = np.float32(1.0) if one else np.float32(weights[n])
        for q in range(n_directions):
            out[q, n] = weight * total[q]


@kernel
def add_columns(codes, offsets, z, index, out, start, stop):  # type: ignore[no-untyped-def]
    """`out[offsets[a] + codes[n, a], j] += z[index[a, j], n]` for variables start:stop.

    `z` is `(features, n)`; negative codes add to the last row of `out`, which is not used. By tiles
    of samples, two features at a time, so that their rows of `out` stay in the cache."""
    width = np.uint64(out.shape[1])
    flat = out.reshape(-1)
    place = np.empty(TILE, dtype=np.uint64)
    last = np.uint64(out.shape[0] - 1)
    one = np.uint64(1)
    for low in range(0, codes.shape[0], TILE):
        size = min(TILE, codes.shape[0] - low)
        for a in range(start, stop):
            for n in range(size):
                code = codes[low + n, a]
                place[n] = (last if code < 0 else np.uint64(offsets[a] + code)) * width
            for j in range(0, index.shape[1] - 1, 2):
                first, second, at = z[index[a, j]], z[index[a, j + 1]], np.uint64(j)
                for n in range(size):
                    cell = place[n] + at
                    flat[cell] += first[low + n]
                    flat[cell + one] += second[low + n]
            if index.shape[1] % 2 == 1:
                first, at = z[index[a, -1]], width - one
                for n in range(size):
                    flat[place[n] + at] += first[low + n]


@kernel
def _add_sparse(indptr, indices, data, owner, z, index, out, first, last):  # type: ignore[no-untyped-def]
    """`out[c, j] += x[n, c] z[n, index[owner[c], j]]` for coordinates first <= c < last."""
    width = index.shape[1]
    beside = np.empty(width, dtype=np.float32)
    for n in range(len(indptr) - 1):
        s = indptr[n] + np.searchsorted(indices[indptr[n] : indptr[n + 1]], first)
        before = -1
        while s < indptr[n + 1] and indices[s] < last:
            c = indices[s]
            if owner[c] != before:  # the features are the same for all of a variable's values
                before = owner[c]
                for j in range(width):
                    beside[j] = z[n, index[before, j]]
            value, row = np.float32(data[s]), out[c]
            for j in range(width):
                row[j] += value * beside[j]
            s += 1
