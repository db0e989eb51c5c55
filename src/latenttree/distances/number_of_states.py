"""The number of hidden states: canonical correlations that are significant on held-out samples."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from latenttree.data import Table
from latenttree.data.checks import free_dimensions
from latenttree.data.chunk import Chunk
from latenttree.data.storage import Storage
from latenttree.data.subsets import halves
from latenttree.engine import Summed, resolve_jobs, single_threaded_blas
from latenttree.engine.arrays import Bools, Float32, Floats, Ints
from latenttree.moments import pooled_subspaces
from latenttree.moments.coordinates import (
    coordinate_moments,
    feature_means,
    known_weights,
    weighted_features,
)
from latenttree.moments.subspace import first_coordinates, nearest_variables

MAX_DIRECTIONS = 7
MAX_ROWS = 20_000

TAIL = 3.27
"""Quantile 0.999 of the Tracy-Widom distribution of real matrices."""

HALF = 0.5
"""Share of variables in which a direction must show for distances to use it. A
determinant is zero across a node with fewer states, so a direction that few variables have makes
pairs unmeasurable; leaving out one that most have costs accuracy. In simulated trees of nodes with
two and three states, three are better from about here on."""

SOME = 0.1
"""Share of variables in which a direction must show for hidden nodes to start with a state for it;
unneeded states are merged later, so a direction too many only costs time."""


class StatesEvidence(NamedTuple):
    """`n_states` to learn a tree with, and one row `(correlation, share)` for each direction beyond
    the mean: the held-out canonical correlation (median over variables), and the share of variables
    in which it is significant."""

    n_states: int
    directions: Floats

    @property
    def most_states(self) -> int:
        """States that some part of the tree needs: parameters start from these, and hidden nodes
        that need fewer lose the others. Not bounded by the narrowest variable."""
        return max(self.n_states, 1 + _leading(self.directions[:, 1] >= SOME))


@single_threaded_blas()
def choose_states(
    table: Table, random_state: int | None = None, n_jobs: int | None = None
) -> StatesEvidence:
    """States = 1 + directions that are significant, on held-out samples, in half the variables.

    Directions come from one half of the samples, correlations with each variable's nearest
    neighbour from the other half. Every variable must have as many free dimensions."""
    jobs = resolve_jobs(n_jobs)
    # halves first: those of a part in which equal rows are evenly spread depend on each other
    learn, test = (half.thinned(MAX_ROWS // 2) for half in halves(table))
    free = free_dimensions(table)
    m = int(min(MAX_DIRECTIONS, np.sort(free)[-2:].min()))  # a direction takes two variables
    if (free > m).any() or (table.widths > free + 1).any():
        basis = pooled_subspaces(learn, m, np.random.default_rng(random_state), jobs).basis
    else:
        basis = first_coordinates(learn, m)
    s, n = _held_out_correlations(learn, test, basis, jobs)
    share = (s > _noise(n)).mean(axis=0)
    directions = np.column_stack([np.median(s, axis=0), share])
    kept = min(states_shown(directions) - 1, int(free.min()))
    return StatesEvidence(max(kept, 1) + 1, directions)


def states_shown(directions: Floats) -> int:
    """1 + directions (see `StatesEvidence`) that show in half the variables, even where the
    narrowest variable has fewer."""
    return 1 + _leading(directions[:, 1] >= HALF)


def _leading(holds: Bools) -> int:
    """Number of leading True values."""
    return int(np.argmin(holds)) if not holds.all() else len(holds)


def _noise(n: Floats) -> Floats:
    """Threshold `(p, m)` that the r-th of `m` correlations in `n[:, r]` samples exceeds by chance
    with probability 0.001, given that those before it are real.

    `n` times the square of the largest of `q = m - r` correlations of noise is the largest
    eigenvalue of a `q x q` Wishart matrix with `q` degrees of freedom (Johnstone 2001)."""
    m = n.shape[1]
    root = np.sqrt(m - np.arange(m) - 0.5)
    largest = 4 * root**2 + TAIL * 2 * root * (2 / root) ** (1 / 3)
    return np.asarray(np.sqrt(largest / n))


def _held_out_correlations(
    learn: Table, test: Table, basis: Float32, n_jobs: int
) -> tuple[Floats, Floats]:
    """Canonical correlations `(p, m)` of every variable's features with its nearest neighbour's,
    and their effective samples `(p, m)`.

    The neighbour is chosen on the other half of the samples."""
    near = nearest_variables(_whitened(learn, basis, n_jobs).astype(np.float32), 1, n_jobs)[:, 0]
    z = _whitened(test, basis, n_jobs)
    both = _together(test, near)
    cross = np.einsum("nar,nas->ars", z, z[:, near], optimize=True) / both[:, None, None]
    left, s, right = np.linalg.svd(cross)
    one = np.einsum("nar,ars->nas", z, left, optimize=True)
    other = np.einsum("nar,asr->nas", z[:, near], right, optimize=True)
    return s, both[:, None] / _spread(one, other, test.weights, both)


def _spread(one: Floats, other: Floats, weights: Floats | None, both: Floats) -> Floats:
    """Variance `(p, m)` of a product of features `x, y` in the r-th direction, by which noise in
    correlations grows: the larger of `E[x_r^2 y_r^2]` and its mean over the directions from r on.

    One where variables are independent; more where both vary in the same hidden state."""
    if weights is not None:  # features have the roots of the weights
        other = other / np.sqrt(weights)[:, None, None]
    square = np.einsum("nar,nas->ars", one**2, other**2, optimize=True) / both[:, None, None]
    sums = square[:, ::-1, ::-1].cumsum(axis=1).cumsum(axis=2)[:, ::-1, ::-1]
    means = np.einsum("arr->ar", sums) / np.arange(square.shape[1], 0, -1) ** 2
    return np.maximum(np.maximum(means, np.einsum("arr->ar", square)), 1e-3)


def _together(table: Table, near: Ints) -> Floats:
    """Weight `(p,)` of the samples that have a variable and its neighbour, at least 1e-300."""
    if not table.has_missing:
        return np.full(table.n_vars, table.total_weight)
    both = Summed(partial(_weight_of_both, table.storage, near), table.n_vars)
    return np.maximum(table.run(both), 1e-300)


def _weight_of_both(storage: Storage, near: Ints, chunk: Chunk, n_jobs: int) -> Floats:
    """That of a chunk."""
    known = storage.known(chunk)
    assert known is not None
    weights = np.ones(len(chunk)) if chunk.weights is None else chunk.weights
    return np.asarray(weights @ (known & known[:, near]))


def _whitened(table: Table, basis: Float32, n_jobs: int) -> Floats:
    """Features `(n, p, m)` of unit covariance, times the roots of the weights; zero where missing.

    A direction that depends on the others of its variable is left with almost no variance."""
    offset = feature_means(table, basis, coordinate_moments(table)[0])
    z = weighted_features(table, basis, offset, n_jobs).astype(np.float64)
    total = known_weights(table)[:, None, None]
    own = np.einsum("nar,nas->ars", z, z, optimize=True) / total
    size = np.sqrt(np.einsum("arr->ar", own))
    size = np.where(size > 0, size, 1.0)
    own = own / size[:, :, None] / size[:, None, :] + 1e-6 * np.eye(z.shape[2])
    root = np.linalg.inv(np.linalg.cholesky(own)) / size[:, None, :]
    return np.asarray(np.einsum("nar,asr->nas", z, root, optimize=True))
