"""Pooled subspaces: for every variable the few directions in which it depends on the others.

`Cov(x_a, x_b)` has, over all b, the same column space: that of `A_a`, of rank `n_states - 1` once
means are removed. It is estimated once for each variable from all others pooled (a sparse sign
sketch of the other variables, then power rounds against the features of the nearest ones), instead
of once for each pair.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from latenttree.data import Table
from latenttree.data.checks import free_dimensions
from latenttree.data.storage.vectors import apply_roots
from latenttree.engine import BLOCK, parallel
from latenttree.engine.arrays import Float32, Floats, Ints
from latenttree.engine.kernels import kernel
from latenttree.moments.coordinates import (
    coordinate_moments,
    feature_means,
    known_weights,
    weighted_features,
)
from latenttree.moments.cross_moments import cross_moments, rest_moments
from latenttree.moments.krylov import leading_eigenvectors

DAMPING = 10.0
"""Pseudo-samples added to a coordinate's variance, so that a category that occurs once does not get
the weight of a real direction: scale 1 / sqrt(P + 10 / N)."""

CROWDED = 100
"""Samples for each category below which single pairs are too noisy to start from."""

N_NEAR = 8
"""Nearest variables whose features a variable's moments are taken with."""

SKETCH = 16
"""Columns of moments of the first round."""

PROBE = BLOCK // 2
"""Samples on which features are scaled and neighbours chosen."""

MAX_ROUNDS, LEAST_GROWTH = 12, 5e-3
"""Power rounds end where strengths grow by a smaller share."""

SEARCHES = 3
"""Rounds after which the neighbours stay."""

N_TASKS = 64
"""Batches of variables that threads share, at least."""

BATCH_FLOATS = 1_000_000
"""Moments in a batch of variables."""


@dataclass(frozen=True)
class Subspaces:
    """Directions of every variable: columns of `basis[offsets[a]:offsets[a + 1]]`."""

    basis: Float32  # (coordinates, n_directions)
    strengths: Floats  # (p, n_directions) singular values of the pooled moments
    n_rounds: int


def full_subspaces(table: Table, n_directions: int) -> Subspaces | None:
    """The whole space of every variable, or None if one has more than `n_directions` free
    dimensions.

    Ordinal variables have the first `n_directions` powers of their scores, however many categories
    they have."""
    scored = np.array([family == "ordinal" for family in table.families])
    if ((free_dimensions(table) > n_directions) & ~scored).any():
        return None
    basis = first_coordinates(table, n_directions)
    set_scores(basis, table)
    return Subspaces(basis, np.full((table.n_vars, n_directions), np.nan), 0)


def first_coordinates(table: Table, n_directions: int) -> Float32:
    """A basis `(coordinates, n_directions)` of the first coordinates of every variable, with zero
    directions where it has fewer."""
    basis = np.zeros((int(table.offsets[-1]), n_directions), dtype=np.float32)
    for q in range(n_directions):
        basis[table.offsets[:-1][table.widths > q] + q, q] = 1.0
    return basis


def set_scores(basis: Float32, table: Table) -> None:
    """Directions of ordinal variables, in place: powers 1, 2, ... of scores from -1 to 1."""
    for a, family in enumerate(table.families):
        if family == "ordinal":
            scores = np.linspace(-1, 1, int(table.widths[a]))[:, None]
            rows = slice(table.offsets[a], table.offsets[a + 1])
            basis[rows] = scores ** np.arange(1, basis.shape[1] + 1)


def same_widths(
    offsets: Ints, n_floats: int, most: int | None = None
) -> Iterator[tuple[Ints, Ints]]:
    """Batches of variables of one width, with the rows `(variables, width)` of their coordinates:
    up to `BATCH_FLOATS` floats if each row has `n_floats`, and up to `most` variables."""
    widths = np.diff(offsets)
    for width in np.unique(widths):
        variables = np.flatnonzero(widths == width)
        step = max(1, min(most or len(variables), BATCH_FLOATS // int(width * n_floats)))
        for start in range(0, len(variables), step):
            some = variables[start : start + step]
            yield some, offsets[some][:, None] + np.arange(width)


def leading_directions(
    moments: Float32, scale: Floats, offsets: Ints, n_directions: int, n_jobs: int
) -> tuple[Float32, Floats]:
    """Top left singular vectors of every variable's scaled moments, in unscaled coordinates.

    By the eigenvectors of the small `(s, s)` Gram matrix: O(d s^2) for each variable, never d x d.
    """
    p, s = len(offsets) - 1, moments.shape[1]
    basis = np.zeros((len(moments), n_directions), dtype=np.float32)
    strengths = np.zeros((p, n_directions))
    batches = list(same_widths(offsets, s, -(-p // N_TASKS)))

    def work(first: int, last: int) -> None:
        for variables, rows in batches[first:last]:
            m = moments[rows].astype(np.float64) * scale[rows, None]
            values, vectors = np.linalg.eigh(m.transpose(0, 2, 1) @ m)
            top = np.sqrt(np.maximum(values[:, ::-1][:, :n_directions], 1e-30))
            left = m @ vectors[:, :, ::-1][:, :, :n_directions] / top[:, None]
            basis[rows, : left.shape[2]] = left * scale[rows, None]
            strengths[variables, : top.shape[1]] = top

    parallel(work, len(batches), n_jobs, 1)
    return basis, strengths


def standardise(sample: Table, basis: Float32, mean: Floats, n_jobs: int) -> Float32:
    """Rescale the basis, in place, to unit covariance of the features over a sample; returns these
    features `(n, p, n_directions)`, centred, times the roots of the weights."""
    offset = feature_means(sample, basis, mean)
    z = weighted_features(sample, basis, offset, n_jobs)
    p, n_directions = sample.n_vars, basis.shape[1]
    own = np.zeros((p, n_directions, n_directions))
    parallel(lambda a, b: _own_moments(z, own, a, b), p, n_jobs, -(-p // 16))
    own *= (sample.n_samples / known_weights(sample))[:, None, None]
    trace = np.trace(own, axis1=1, axis2=2)[:, None, None] / n_directions
    own += np.eye(n_directions) * (1e-3 * trace + 1e-12)
    root = np.linalg.inv(np.linalg.cholesky(own))
    parallel(lambda a, b: apply_roots(z, root, a, b), len(z), n_jobs)
    turn = root.transpose(0, 2, 1).astype(np.float32)
    for variables, rows in same_widths(sample.offsets, n_directions):
        basis[rows] = basis[rows] @ turn[variables]
    return z


@kernel
def _own_moments(z, out, start, stop):  # type: ignore[no-untyped-def]
    """`out[a] = mean_n z_a z_a^T` for variables start:stop."""
    n, n_directions = z.shape[0], z.shape[2]
    for row in range(n):
        for a in range(start, stop):
            for i in range(n_directions):
                for j in range(n_directions):
                    out[a, i, j] += z[row, a, i] * z[row, a, j]
    for a in range(start, stop):
        for i in range(n_directions):
            for j in range(n_directions):
                out[a, i, j] /= n


def nearest_variables(features: Float32, n_near: int, n_jobs: int = 1) -> Ints:
    """The `n_near` others of largest squared cross-correlation for every variable, `(p, n_near)`,
    ascending. O(n (p r)^2) for r directions."""
    n, p, r = features.shape
    flat = features.reshape(n, p * r)
    near = np.empty((p, n_near), dtype=np.int64)

    def work(start: int, stop: int) -> None:
        cross = flat[:, start * r : stop * r].T @ flat
        strength = (cross.reshape(stop - start, r, p, r) ** 2).sum(axis=(1, 3))
        strength[np.arange(stop - start), np.arange(start, stop)] = -1.0
        near[start:stop] = np.argpartition(-strength, n_near - 1, axis=1)[:, :n_near]

    parallel(work, p, n_jobs, max(1, min(-(-p // 16), 4_000_000 // (p * r * r))))
    return np.sort(near, axis=1)


def crowded_start(
    table: Table, n_directions: int, rng: np.random.Generator, n_jobs: int
) -> tuple[Float32, Floats]:
    """Leading directions of all variables at once, from a sign sketch.

    Where a variable has many categories for its number of samples, no single pair shows a
    direction, but all pairs together do: the block matrix of all scaled cross-moments has, above
    its bulk of noise, the directions that many variables share. Returns the basis `(coordinates,
    n_directions + 6)` and the eigenvalues; a gap after the first `n_directions` shows that these
    are above the bulk.
    """
    mean, scale = _scaling(table, n_jobs)
    column = scale.astype(np.float32)[:, None]

    def apply(block: Float32) -> Float32:
        return rest_moments(table, block * column, mean, n_jobs) * column

    signs = rng.choice(np.array([-1, 1], dtype=np.float32), (len(mean), n_directions + 2))
    block, values = leading_eigenvectors(apply, signs, n_directions, n_directions + 6, n_jobs)
    return block * column, values


def _scaling(table: Table, n_jobs: int) -> tuple[Floats, Floats]:
    """Mean of every coordinate, and its scale `1 / sqrt(variance + DAMPING / n)`."""
    mean, variance = coordinate_moments(table, n_jobs)
    return mean, 1.0 / np.sqrt(variance + DAMPING / table.total_weight)


def pooled_subspaces(
    table: Table, n_directions: int, rng: np.random.Generator, n_jobs: int
) -> Subspaces:
    """Sign sketch, then power rounds against the nearest variables until strengths stop growing.

    Rounds run on a part of the samples, which is enough to converge, and the last one on all.
    """
    widest = int(table.widths.max())
    crowded = widest * CROWDED > table.total_weight
    part = table if crowded else table.thinned(max(2 * BLOCK, CROWDED * widest))
    probe = part.thinned(PROBE)
    mean, scale = _scaling(part, n_jobs)
    n_near = min(N_NEAR, table.n_vars - 1)
    if crowded:
        basis, _ = crowded_start(table, n_directions, rng, n_jobs)
        features = standardise(probe, basis, mean, n_jobs)
    else:
        # a random sign for every coordinate: features to which all of a variable's categories add
        width = int(np.clip(SKETCH // n_near, n_directions, SKETCH))
        basis = (rng.choice([-1.0, 1.0], (len(mean), width)) * scale[:, None]).astype(np.float32)
        features = standardise(part, basis, mean, n_jobs)
    before, n_rounds = 0.0, 0
    for n_rounds in range(1, MAX_ROUNDS + 1):
        if n_rounds <= SEARCHES:
            near = nearest_variables(features, n_near, n_jobs)
        basis, strengths, features = _power_round(
            part, probe, basis, near, (mean, scale), n_directions, n_jobs
        )
        now = float(np.sqrt((strengths**2).mean()))
        if n_rounds > 2 and now - before < LEAST_GROWTH * now:
            break
        before = now
    if part is not table:
        mean, scale = _scaling(table, n_jobs)
        basis, strengths, _ = _power_round(
            table, probe, basis, near, (mean, scale), n_directions, n_jobs
        )
        n_rounds += 1
    return Subspaces(basis, strengths, n_rounds)


def continued_subspaces(table: Table, start: Float32, n_directions: int, n_jobs: int) -> Subspaces:
    """One power round from the directions `start` of a larger sample, which are near already."""
    probe = table.thinned(PROBE)
    mean, scale = _scaling(table, n_jobs)
    basis = start.copy()
    features = standardise(probe, basis, mean, n_jobs)
    near = nearest_variables(features, min(N_NEAR, table.n_vars - 1), n_jobs)
    basis, strengths, _ = _power_round(
        table, probe, basis, near, (mean, scale), n_directions, n_jobs
    )
    return Subspaces(basis, strengths, 1)


def _power_round(
    table: Table,
    probe: Table,
    basis: Float32,
    near: Ints,
    scaling: tuple[Floats, Floats],
    n_directions: int,
    n_jobs: int,
) -> tuple[Float32, Floats, Float32]:
    """Directions from the moments with the features of near variables: the new basis, its
    strengths, and its standardised features of `probe`. `scaling` are means and scales of the
    coordinates."""
    mean, scale = scaling
    moments = cross_moments(table, basis, near, mean, n_jobs)
    basis, strengths = leading_directions(moments, scale, table.offsets, n_directions, n_jobs)
    set_scores(basis, table)
    return basis, strengths, standardise(probe, basis, mean, n_jobs)
