"""Information distances between all pairs of variables, with signs and standard errors.

With `C_ab` the cross-covariance of the whitened features of two variables, `k - 1` dimensions each,
`d(a, b) = -log |det C_ab|`: additive along the tree, because a determinant of a product is a product
of determinants. The sign of `det C_ab` is multiplicative along the tree too, so that averages of
signed determinants cancel noise instead of piling it up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numba import njit
from numpy.typing import NDArray

from latenttree.data import Table, as_table, check_n_states
from latenttree.engine import parallel, resolve_jobs
from latenttree.errors import DataError
from latenttree.moments import Subspaces, full_subspaces, gram, pooled_subspaces, project

Method = Literal["pooled", "pairwise"]
UNMEASURABLE_ERROR = 0.5
"""Distances with a larger standard error are not measurable: two standard errors from no signal."""


@dataclass(frozen=True, eq=False)
class Distances:
    """Distances `(p, p)` with standard errors and the signs of the determinants behind them.

    `rank` is the number of dimensions a determinant is over (states less one), `n_samples` the
    samples behind a pair.
    """

    values: NDArray[Any]
    standard_errors: NDArray[Any]
    signs: NDArray[np.int8]
    rank: int
    n_samples: int
    strengths: NDArray[np.float64] | None = None
    n_rounds: int = 0

    @property
    def measurable(self) -> NDArray[np.bool_]:
        """Pairs whose distance stands out of its noise."""
        return np.asarray(self.standard_errors < UNMEASURABLE_ERROR)


@njit(cache=True, nogil=True)
def _determinants(second, root, rank, n, det, error, start, stop):  # type: ignore[no-untyped-def]
    """Signed determinant of the whitened block of every pair (a, b), b < a, start <= a < stop.

    `C = root_a second_ab root_b^T`; relative variance of `det C`:
    `sum (1 - s^2)^2 / s^2 / n = (|C^-1|_F^2 - 2 r + |C|_F^2) / n`. Gauss-Jordan in place, O(r^3).
    """
    c = np.empty((rank, rank))
    work = np.empty((rank, 2 * rank))
    for a in range(start, stop):
        for b in range(a):
            norm = 0.0
            for i in range(rank):
                for j in range(rank):
                    t = 0.0
                    for u in range(rank):
                        for v in range(rank):
                            t += root[a, i, u] * second[a * rank + u, b * rank + v] * root[b, j, v]
                    c[i, j] = t
                    norm += t * t
            value = 1.0
            for i in range(rank):
                for j in range(rank):
                    work[i, j] = c[i, j]
                    work[i, rank + j] = 1.0 if i == j else 0.0
            for i in range(rank):
                pivot = i
                for u in range(i + 1, rank):
                    if abs(work[u, i]) > abs(work[pivot, i]):
                        pivot = u
                x = work[pivot, i]
                if x == 0.0:
                    value = 0.0
                    break
                if pivot != i:
                    value = -value
                    for j in range(2 * rank):
                        work[i, j], work[pivot, j] = work[pivot, j], work[i, j]
                value *= x
                for j in range(2 * rank):
                    work[i, j] /= x
                for u in range(rank):
                    if u != i and work[u, i] != 0.0:
                        f = work[u, i]
                        for j in range(2 * rank):
                            work[u, j] -= f * work[i, j]
            inverse = 0.0
            for i in range(rank):
                for j in range(rank):
                    inverse += work[i, rank + j] ** 2
            det[a, b] = value
            det[b, a] = value
            if value == 0.0:
                e = np.inf
            else:
                e = np.sqrt(max(inverse - 2 * rank + norm, 0.0) / n)
            error[a, b] = e
            error[b, a] = e


def _whitening(
    second: NDArray[np.float32], p: int, rank: int, n: int, names: tuple[str, ...]
) -> NDArray[np.float64]:
    """Inverse Cholesky roots `(p, rank, rank)` of the features' own covariances.

    `DAMPING / n` is added in units of the features' mean scale, which lengthens the pendant edge of
    a rare variable and changes no other distance.
    """
    index = np.arange(p)
    own = second.reshape(p, rank, p, rank)[index, :, index, :].astype(np.float64)
    trace = np.trace(own, axis1=1, axis2=2)
    if (trace <= 0).any():
        a = int(np.argmin(trace))
        raise DataError(
            f"variable {names[a]!r} carries no signal that it shares with the others "
            f"(its projected variance is {trace[a]:.3g}); drop it"
        )
    own += np.eye(rank) * (1e-6 * trace / rank)[:, None, None]
    return np.linalg.inv(np.linalg.cholesky(own))


def _signed_determinants(
    table: Table, basis: NDArray[np.float32], n_jobs: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Signed determinants of all pairs and their relative standard errors, in one pass."""
    p, rank, n = table.n_vars, basis.shape[1], table.n_samples

    def chunk(start: int, stop: int) -> NDArray[np.float32]:
        return project(table, basis, start, stop, n_jobs).reshape(stop - start, p * rank)

    _, second = gram(chunk, n, p * rank, n_jobs)
    root = _whitening(second, p, rank, n, table.names)
    det = np.eye(p, dtype=np.float32)
    error = np.zeros((p, p), dtype=np.float32)
    parallel(lambda a, b: _determinants(second, root, rank, float(n), det, error, a, b), p, n_jobs)
    return det, error


def _orientation(
    table: Table, one: NDArray[np.float32], other: NDArray[np.float32], n_jobs: int
) -> NDArray[np.int8]:
    """Sign of `det Cov(z, z')` for every variable, z and z' its features by two bases."""
    stop = min(table.n_samples, 4096)
    z = project(table, one, 0, stop, n_jobs)
    w = project(table, other, 0, stop, n_jobs)
    cross = np.einsum("nar,nas->ars", z - z.mean(0), w - w.mean(0), optimize=True)
    return np.where(np.linalg.det(cross.astype(np.float64)) < 0, -1, 1).astype(np.int8)


def estimate_distances(
    table: Table,
    n_states: int,
    *,
    random_state: int | np.random.Generator | None = None,
    n_jobs: int | None = None,
    cross_fit: bool = True,
) -> Distances:
    """Distances by pooled subspaces; cross-fitted unless every variable is used whole."""
    jobs, rank = resolve_jobs(n_jobs), n_states - 1
    rng = np.random.default_rng(random_state)
    whole = full_subspaces(table, rank)
    if whole is not None or not cross_fit:
        found = whole or pooled_subspaces(table, rank, rng, jobs)
        det, error = _signed_determinants(table, found.basis, jobs)
        return _distances(det, error, table.n_samples, rank, found)
    seed = int(rng.integers(2**63))
    halves = [table.subset_rows(slice(f, None, 2)) for f in range(2)]
    found_by = [pooled_subspaces(h, rank, np.random.default_rng(seed), jobs) for h in halves]
    # the subspace from one half, the moments from the other: neither fits the other's noise
    first, error = _signed_determinants(halves[1], found_by[0].basis, jobs)
    second, other = _signed_determinants(halves[0], found_by[1].basis, jobs)
    sign = _orientation(table, found_by[0].basis, found_by[1].basis, jobs)
    det, error = _average(first, error, second, other, sign)
    return _distances(det, error, table.n_samples, rank, found_by[0])


def _average(
    first: NDArray[np.float32],
    first_error: NDArray[np.float32],
    second: NDArray[np.float32],
    second_error: NDArray[np.float32],
    sign: NDArray[np.int8],
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Mean of two estimates of signed determinants; relative errors combined."""
    second *= sign[:, None] * sign[None, :]
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.sqrt((first * first_error) ** 2 + (second * second_error) ** 2)
        det = (first + second) / 2
        error = np.where(det != 0, error / (2 * np.abs(det)), np.inf)
    error[~np.isfinite(error)] = np.inf
    np.fill_diagonal(error, 0.0)
    return det, error.astype(np.float32)


def _distances(
    det: NDArray[np.float32],
    error: NDArray[np.float32],
    n_samples: int,
    rank: int,
    found: Subspaces,
) -> Distances:
    signs = np.where(det < 0, -1, 1).astype(np.int8)
    values = -np.log(np.clip(np.abs(det), 1e-30, 1.0))
    np.fill_diagonal(values, 0.0)
    return Distances(values, error, signs, rank, n_samples, found.strengths, found.n_rounds)


def pairwise_distances(table: Table, n_states: int) -> Distances:
    """The paper's estimator: a k-SVD of every pair's scaled moment, p^2 of them. Slow, in-sample."""
    p, rank, n = table.n_vars, n_states - 1, table.n_samples
    values = np.zeros((p, p))
    errors = np.zeros((p, p))
    columns = [_centred_block(table, a) for a in range(p)]
    for a in range(p):
        for b in range(a):
            s = np.linalg.svd(columns[a].T @ columns[b], compute_uv=False)[:rank]
            s = np.clip(s, 1e-15, 1.0)
            values[a, b] = values[b, a] = -np.log(s).sum()
            errors[a, b] = errors[b, a] = np.sqrt(((1 - s**2) ** 2 / s**2).sum() / n)
    return Distances(values, errors, np.ones((p, p), dtype=np.int8), rank, n)


def _centred_block(table: Table, a: int) -> NDArray[np.float64]:
    """Orthonormal columns that span a variable's centred samples, `(n, free dimensions)`."""
    rows: Any = table.rows(0, table.n_samples)
    if table.kind == "codes":
        x = np.eye(int(table.dims[a]))[rows[:, a]]
    else:
        x = rows[:, table.offsets[a] : table.offsets[a + 1]].toarray().astype(np.float64)
    u, s, _ = np.linalg.svd(x - x.mean(0), full_matrices=False)
    return np.asarray(u[:, s > 1e-9 * max(s[0], 1e-300)])


def information_distances(
    X: Any,
    n_states: int = 2,
    *,
    method: Method = "pooled",
    groups: Any = None,
    random_state: int | np.random.Generator | None = None,
    n_jobs: int | None = None,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Information distances between all variables of a table, and their standard errors.

    Parameters
    ----------
    X : anything `LatentTree.fit` takes.
    n_states : states of the hidden variables.
    method : "pooled" (one subspace for each variable, cross-fitted) or "pairwise" (the paper's SVD
        of every pair; slow, and biased where a variable has many categories).

    Returns
    -------
    distances, standard_errors : `(p, p)` arrays. Pairs with a standard error above 0.5 are not
        measurable: their distance is noise.
    """
    table = as_table(X, groups=groups)
    k = check_n_states(table, n_states)
    if k == "auto":
        raise DataError("n_states='auto' is for LatentTree; give information_distances a number")
    if method == "pairwise":
        found = pairwise_distances(table, k)
    elif method == "pooled":
        found = estimate_distances(table, k, random_state=random_state, n_jobs=n_jobs)
    else:
        raise DataError(f"method={method!r} is unknown; choose 'pooled' or 'pairwise'")
    return found.values, found.standard_errors
