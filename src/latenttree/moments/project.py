"""Every variable as a short vector: `z_a = U_a^T x_a` for all samples of a chunk."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from latenttree.data import Table
from latenttree.engine import parallel


@njit(cache=True, nogil=True)
def project_codes(codes, offsets, basis, out, start, stop):  # type: ignore[no-untyped-def]
    """`out[n, a, :] = basis[offsets[a] + codes[n, a]]` for variables start:stop; zero where the
    code is negative."""
    rank = basis.shape[1]
    for n in range(codes.shape[0]):
        for a in range(start, stop):
            if codes[n, a] < 0:
                for q in range(rank):
                    out[n, a, q] = 0.0
                continue
            row = offsets[a] + codes[n, a]
            for q in range(rank):
                out[n, a, q] = basis[row, q]


@njit(cache=True, nogil=True)
def project_sparse(indptr, indices, data, owner, basis, out, start, stop):  # type: ignore[no-untyped-def]
    """`out[n, owner[c], :] += x[n, c] * basis[c]` for samples start:stop; `out` starts at zero."""
    rank = basis.shape[1]
    for n in range(start, stop):
        for s in range(indptr[n], indptr[n + 1]):
            c = indices[s]
            for q in range(rank):
                out[n, owner[c], q] += data[s] * basis[c, q]


def owners(table: Table) -> NDArray[np.int64]:
    """Variable of every stored coordinate."""
    return np.repeat(np.arange(table.n_vars), table.widths)


def project(
    table: Table, basis: NDArray[np.float32], start: int, stop: int, n_jobs: int
) -> NDArray[np.float32]:
    """Features `(stop - start, p, rank)` of a chunk of samples; `basis` is `(coordinates, rank)`.

    Zero where a variable is missing."""
    rows: Any = table.rows(start, stop)
    shape = (stop - start, table.n_vars, basis.shape[1])
    if table.kind == "codes":
        out = np.empty(shape, dtype=np.float32)
        parallel(
            lambda a, b: project_codes(rows[a:b], table.offsets, basis, out[a:b], 0, shape[1]),
            shape[0],
            n_jobs,
            512,
        )
        return out
    out = np.zeros(shape, dtype=np.float32)
    owner = owners(table)
    parallel(
        lambda a, b: project_sparse(rows.indptr, rows.indices, rows.data, owner, basis, out, a, b),
        shape[0],
        n_jobs,
        512,
    )
    return out


def features(
    table: Table,
    basis: NDArray[np.float32],
    offset: NDArray[np.float32],
    start: int,
    stop: int,
    n_jobs: int,
) -> NDArray[np.float32]:
    """Features less their means `offset` `(p, rank)`, zero where a variable is missing."""
    z = project(table, basis, start, stop, n_jobs)
    z -= offset
    known = table.known(start, stop)
    if known is not None:
        z *= known[:, :, None]
    return z


def root_weights(table: Table, start: int, stop: int) -> NDArray[np.float32] | None:
    """Square roots of the weights of some samples: what features are multiplied by before products
    of two of them are summed."""
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
