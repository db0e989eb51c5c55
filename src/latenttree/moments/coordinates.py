"""Means and variances of all stored coordinates, in one pass; cached as long as the table lives."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data import Table
from latenttree.data.table import VALUES_PER_RANGE
from latenttree.engine import BLOCK, blocks, parallel
from latenttree.engine.kernels import kernel

Floats = NDArray[np.float64]

N_PIECES = 32

_CACHE: WeakKeyDictionary[Table, tuple[Floats, Floats]] = WeakKeyDictionary()


def coordinate_moments(table: Table, n_jobs: int = 1) -> tuple[Floats, Floats]:
    """Mean and variance `(coordinates,)`, over the samples that have the coordinate's variable.

    One pass, an addition for each stored value (three for vectors); read-only, cached."""
    if table not in _CACHE:
        moments = {"codes": _code_moments, "sparse_binary": _sparse_binary_moments}
        _CACHE[table] = moments.get(table.kind, _vector_moments)(table, n_jobs)
        for array in _CACHE[table]:
            array.flags.writeable = False
    return _CACHE[table]


def known_weights(table: Table) -> Floats:
    """Weight `(p,)` of the samples that have each variable, at least 1e-300."""
    total = np.full(table.n_vars, table.total_weight)
    if table.has_missing:
        weights = np.ones(table.n_samples) if table.weights is None else table.weights
        total = np.zeros(table.n_vars)
        for start, stop in blocks(table.n_samples):
            total += weights[start:stop] @ np.asarray(table.known(start, stop))
    return np.maximum(total, 1e-300)


def feature_means(table: Table, basis: NDArray[np.float32], mean: Floats) -> NDArray[np.float32]:
    """Means `(p, n_directions)` of the features, from the coordinates' means."""
    out = np.zeros((table.n_vars, basis.shape[1]))
    _mean_features(np.asarray(basis, dtype=np.float32), table.offsets, mean, out)
    return out.astype(np.float32)


@kernel
def _mean_features(basis, offsets, mean, out):  # type: ignore[no-untyped-def]
    """`out[a] += sum_c mean[c] basis[c]` over the coordinates c of variable a."""
    for a in range(len(out)):
        for c in range(offsets[a], offsets[a + 1]):
            for q in range(out.shape[1]):
                out[a, q] += mean[c] * basis[c, q]


def without_unused(table: Table, n_directions: int) -> tuple[Table, NDArray[np.int64] | None]:
    """The table without coordinates that no sample has, and the numbers of those that are left; the
    table itself and None unless most coordinates go and every variable keeps more than
    `n_directions + 1`.

    With a million columns of which a sample has a hundred, work for every coordinate would take
    longer than work for every value. Only where there are fewer values than coordinates: their new
    numbers, the only copy, take less than a number for each coordinate."""
    matrix = table.matrix if table.kind == "blocks" else None
    width = int(table.offsets[-1])
    if matrix is None or matrix.nnz > width:
        return table, None
    is_used = np.zeros(width, dtype=bool)
    is_used[matrix.indices] = True
    ends = np.concatenate([[0], np.cumsum(is_used)])[table.offsets].astype(np.int64)
    if 2 * ends[-1] > width or (np.diff(ends) <= n_directions + 1).any():
        return table, None
    number = np.cumsum(is_used, dtype=matrix.indices.dtype) - 1
    stored = (matrix.data, number[matrix.indices], matrix.indptr)
    small = sparse.csr_array(stored, shape=(table.n_samples, int(ends[-1])))
    return table.replace(matrix=small, offsets=ends, dims=np.diff(ends)), np.flatnonzero(is_used)


def _code_moments(table: Table, n_jobs: int) -> tuple[Floats, Floats]:
    """Frequencies of categories, and their variances."""
    p = table.n_vars
    counts = np.zeros(int(table.offsets[-1]))
    for start, stop in table.row_ranges():
        codes, weights = table.rows(start, stop), chunk_weights(table, start, stop)
        parallel(
            lambda a, b, codes=codes, weights=weights: _count_codes(  # type: ignore[misc]
                codes, table.offsets, weights, counts, a, b
            ),
            p,
            n_jobs,
            -(-p // N_PIECES),
        )
    known = np.maximum(np.add.reduceat(counts, table.offsets[:-1]), 1e-300)
    mean = counts / np.repeat(known, table.widths)
    return mean, mean * (1 - mean)


def _sparse_binary_moments(table: Table, n_jobs: int) -> tuple[Floats, Floats]:
    """Stored values are ones: they are counted."""
    if table.has_missing:
        return _vector_moments(table, n_jobs)
    counts = np.zeros(table.n_vars)
    for start, stop in table.row_ranges(VALUES_PER_RANGE // 4):
        rows: Any = table.rows(start, stop)
        weights = None
        if table.weights is not None:
            weights = np.repeat(table.weights[start:stop], np.diff(rows.indptr))
        counts += np.bincount(rows.indices, weights, table.n_vars)
    mean = counts / max(table.total_weight, 1e-300)
    return mean, mean * (1 - mean)


def _vector_moments(table: Table, n_jobs: int) -> tuple[Floats, Floats]:
    """Squares are taken from `middle`, a mean over few samples: variances of numbers that lie far
    from zero keep their digits. Coordinates that are not stored are zeros."""
    p, width = table.n_vars, int(table.offsets[-1])
    first: Any = table.rows(0, BLOCK)
    middle = np.bincount(first.indices, first.data, width) / max(first.shape[0], 1)
    sums = np.zeros((width, 3))
    for start, stop in table.row_ranges():
        rows: Any = table.rows(start, stop)
        weights = chunk_weights(table, start, stop)
        parallel(
            lambda a, b, rows=rows, weights=weights: _sum_sparse(  # type: ignore[misc]
                rows.indptr,
                rows.indices,
                rows.data,
                weights,
                middle,
                sums,
                table.offsets[a],
                table.offsets[b],
            ),
            p,
            n_jobs,
            -(-p // N_PIECES),
        )
    total = np.repeat(known_weights(table), table.widths)
    mean = sums[:, 0] / total
    square = sums[:, 1] + (total - sums[:, 2]) * middle**2
    return mean, np.maximum(square / total - (mean - middle) ** 2, 0.0)


def chunk_weights(table: Table, start: int, stop: int) -> Floats:
    """Weights of some samples; none `(0,)` where each counts once."""
    if table.weights is None:
        return np.empty(0)
    return table.weights[start:stop]


@kernel
def _count_codes(codes, offsets, weights, out, start, stop):  # type: ignore[no-untyped-def]
    """`out[offsets[a] + codes[n, a]] += weight` for variables start:stop; negative codes count
    nothing."""
    one = len(weights) == 0
    for n in range(codes.shape[0]):
        weight = 1.0 if one else weights[n]
        for a in range(start, stop):
            if codes[n, a] >= 0:
                out[offsets[a] + codes[n, a]] += weight


@kernel
def _sum_sparse(indptr, indices, data, weights, middle, out, first, last):  # type: ignore[no-untyped-def]
    """`out[c] += w (x, (x - middle)^2, 1)` over stored x of coordinates first <= c < last."""
    one = len(weights) == 0
    for n in range(len(indptr) - 1):
        weight = 1.0 if one else weights[n]
        s = indptr[n] + np.searchsorted(indices[indptr[n] : indptr[n + 1]], first)
        while s < indptr[n + 1] and indices[s] < last:
            c = indices[s]
            out[c, 0] += weight * data[s]
            out[c, 1] += weight * (data[s] - middle[c]) ** 2
            out[c, 2] += weight
            s += 1
