"""How many hidden states the data show: canonical correlations that hold up on other samples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.data import Table
from latenttree.engine import resolve_jobs, single_threaded_blas
from latenttree.moments import full_subspaces, pooled_subspaces, project
from latenttree.moments.subspace import free_dimensions, nearest

MAX_DIRECTIONS = 7
MAX_ROWS = 20_000


class StatesEvidence(NamedTuple):
    """`n_states` chosen, and one row `(correlation, share)` for each direction beyond the mean."""

    n_states: int
    table: NDArray[np.float64]


def choose_states(
    table: Table, random_state: int | None = None, n_jobs: int | None = None
) -> StatesEvidence:
    """States = 1 + directions that are significant, on held-out samples, in half the variables.

    Directions come from one half of the samples, correlations with each variable's nearest
    neighbour from the other half. `m` directions of pure noise correlate up to about
    `2 sqrt(m / n)`; a direction counts beyond that.
    """
    with single_threaded_blas():
        return _choose(table, random_state, resolve_jobs(n_jobs))


def _choose(table: Table, random_state: int | None, jobs: int) -> StatesEvidence:
    part = table.spread_rows(MAX_ROWS)
    learn, test = (part.subset_rows(slice(f, None, 2)) for f in range(2))
    m = int(min(MAX_DIRECTIONS, free_dimensions(table).min()))
    rng = np.random.default_rng(random_state)
    found = full_subspaces(learn, m) or pooled_subspaces(learn, m, rng, jobs)
    s = _held_out_correlations(learn, test, found.basis, jobs)
    share = (s > 1.1 * 2 * np.sqrt(m / test.n_samples)).mean(axis=0)
    kept = int(np.argmin(share >= 0.5)) if (share < 0.5).any() else m
    return StatesEvidence(max(kept, 1) + 1, np.column_stack([np.median(s, axis=0), share]))


def _held_out_correlations(
    learn: Table, test: Table, basis: NDArray[np.float32], n_jobs: int
) -> NDArray[np.float64]:
    """Canonical correlations `(p, m)` of every variable's features with its nearest neighbour's.

    The neighbour is chosen on the samples that are not tested."""
    near = nearest(_whitened(learn, basis, n_jobs).astype(np.float32), 1, n_jobs)[:, 0]
    z = _whitened(test, basis, n_jobs)
    cross = np.einsum("nar,nas->ars", z, z[:, near], optimize=True) / len(z)
    return np.asarray(np.linalg.svd(cross, compute_uv=False))


def _whitened(table: Table, basis: NDArray[np.float32], n_jobs: int) -> NDArray[np.float64]:
    """Features `(n, p, m)` of unit covariance."""
    z = project(table, basis, 0, table.n_samples, n_jobs).astype(np.float64)
    z -= z.mean(axis=0)
    n, _, m = z.shape
    own = np.einsum("nar,nas->ars", z, z, optimize=True) / n
    own += np.eye(m) * (1e-9 * np.trace(own, axis1=1, axis2=2) / m + 1e-15)[:, None, None]
    root = np.linalg.inv(np.linalg.cholesky(own))
    return np.asarray(np.einsum("nar,asr->nas", z, root, optimize=True))
