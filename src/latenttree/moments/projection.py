"""Every variable as a short vector, its feature `z_a = basis_a^T x_a`, for a chunk of samples."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.data import Table
from latenttree.engine import parallel
from latenttree.engine.kernels import kernel

PIECE = 512
"""Samples that a thread takes at a time."""


@kernel
def project_codes(codes, offsets, basis, offset, out, start, stop):  # type: ignore[no-untyped-def]
    """`out[n, a] = basis[offsets[a] + codes[n, a]] - offset[a]` for samples start:stop; zero where
    the code is negative. One row of `basis` is read for each code."""
    n_directions = basis.shape[1]
    for n in range(start, stop):
        for a in range(codes.shape[1]):
            if codes[n, a] < 0:
                for q in range(n_directions):
                    out[n, a, q] = 0.0
                continue
            row = offsets[a] + codes[n, a]
            for q in range(n_directions):
                out[n, a, q] = basis[row, q] - offset[a, q]


@kernel
def project_sparse(indptr, indices, data, owner, basis, out, start, stop):  # type: ignore[no-untyped-def]
    """`out[n, owner[c]] += x[n, c] basis[c]` for samples start:stop. One row of `basis` is read for
    each stored value."""
    n_directions = basis.shape[1]
    for n in range(start, stop):
        for s in range(indptr[n], indptr[n + 1]):
            c = indices[s]
            own, value, towards = out[n, owner[c]], data[s], basis[c]
            for q in range(n_directions):
                own[q] += value * towards[q]


def owners(table: Table) -> NDArray[np.int64]:
    """Variable of every stored coordinate."""
    return np.repeat(np.arange(table.n_vars), table.widths)


def project(
    table: Table, basis: NDArray[np.float32], start: int, stop: int, n_jobs: int
) -> NDArray[np.float32]:
    """Features `(stop - start, p, n_directions)` of a chunk of samples, zero where a variable is
    missing; `basis` is `(coordinates, n_directions)`."""
    offset = np.zeros((table.n_vars, basis.shape[1]), dtype=np.float32)
    return features(table, basis, offset, start, stop, n_jobs)


def features(
    table: Table,
    basis: NDArray[np.float32],
    offset: NDArray[np.float32],
    start: int,
    stop: int,
    n_jobs: int,
) -> NDArray[np.float32]:
    """`project` less the means of the features, `offset` `(p, n_directions)`."""
    rows: Any = table.rows(start, stop)
    out = np.empty((stop - start, table.n_vars, basis.shape[1]), dtype=np.float32)
    if table.kind == "codes":
        parallel(
            lambda a, b: project_codes(rows, table.offsets, basis, offset, out, a, b),
            len(out),
            n_jobs,
            PIECE,
        )
        return out
    stored = (rows.indptr, rows.indices, rows.data, owners(table))
    known = table.known(start, stop)

    def work(a: int, b: int) -> None:
        out[a:b] = -offset
        project_sparse(*stored, basis, out, a, b)
        if known is not None:
            out[a:b] *= known[a:b, :, None]

    parallel(work, len(out), n_jobs, PIECE)
    return out


def root_weights(table: Table, start: int, stop: int) -> NDArray[np.float32] | None:
    """Square roots of the weights of some samples, None without weights: features are multiplied by
    them, so that sums of products of two are weighted."""
    if table.weights is None:
        return None
    return np.sqrt(table.weights[start:stop]).astype(np.float32)


def weighted_features(
    table: Table,
    basis: NDArray[np.float32],
    offset: NDArray[np.float32],
    start: int,
    stop: int,
    n_jobs: int,
) -> NDArray[np.float32]:
    """`features` times the square roots of the weights."""
    z = features(table, basis, offset, start, stop, n_jobs)
    roots = root_weights(table, start, stop)
    if roots is not None:
        z *= roots[:, None, None]
    return z
