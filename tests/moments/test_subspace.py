"""Directions of variables: eigenvectors, standardised features, pooled subspaces."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from tests.reference import moments as slow
from tests.reference.tables import (
    GAPPY,
    JOBS,
    KINDS,
    N,
    blocks_table,
    codes_table,
    random_basis,
    sparse_binary_table,
)

from latenttree.data import as_table
from latenttree.data.checks import free_dimensions
from latenttree.engine import BLOCK
from latenttree.evaluation.datasets import make_latent_tree
from latenttree.moments import (
    continued_subspaces,
    cross_moments,
    full_subspaces,
    pooled_subspaces,
    subspace,
)
from latenttree.moments.coordinates import coordinate_moments


@GAPPY
def test_standardised_features_where_values_are(make) -> None:  # type: ignore[no-untyped-def]
    table = make()
    basis = random_basis(table, 1)
    known, w = slow.known_of(table), slow.weights_of(table)
    mean = coordinate_moments(table)[0]
    seen = subspace.standardise(table, basis, mean, 1)
    assert (seen[~known] == 0).all()
    z = slow.project(table, basis)
    for a in range(table.n_vars):
        own = slow.available_covariance(z[:, a], z[:, a], w, known[:, a])
        # the ridge is a thousandth of the trace
        np.testing.assert_allclose(own, np.eye(1), atol=2e-3)
        second = seen[:, a].T @ seen[:, a] / (w @ known[:, a])
        np.testing.assert_allclose(second, np.eye(1), atol=2e-3)


@JOBS
@pytest.mark.parametrize("n_directions", [1, 2, 4])
def test_leading_directions_are_left_singular_vectors(n_directions: int, n_jobs: int) -> None:
    """By `m = scale * moments`: strengths are its singular values, `basis / scale` its vectors."""
    rng = np.random.default_rng(7)
    offsets = np.array([0, 5, 12, 40])
    moments = rng.standard_normal((40, 8)).astype(np.float32)
    scale = rng.uniform(0.5, 3.0, 40)
    basis, strengths = subspace.leading_directions(moments, scale, offsets, n_directions, n_jobs)
    for a in range(3):
        rows = slice(offsets[a], offsets[a + 1])
        left, values, _ = np.linalg.svd(moments[rows] * scale[rows, None])
        np.testing.assert_allclose(
            strengths[a], values[:n_directions], rtol=1e-6
        )  # eigh in float64
        vectors = basis[rows] / scale[rows, None]
        overlap = np.abs(vectors.T @ left[:, :n_directions])
        # one up to sign, zero elsewhere; float32 vectors, gaps of singular values above 0.1
        np.testing.assert_allclose(overlap, np.eye(n_directions), rtol=0, atol=1e-5)


def test_directions_beyond_the_rank_of_the_moments_are_finite() -> None:
    """A variable of 2 coordinates asked for 3 directions: the third does not exist."""
    moments = np.random.default_rng(8).standard_normal((6, 4)).astype(np.float32)
    basis, strengths = subspace.leading_directions(moments, np.ones(6), np.array([0, 2, 6]), 3, 1)
    assert np.isfinite(basis).all()
    # the square root of float64 noise in a Gram matrix of size 1
    assert strengths[0, 2] < 1e-6 * strengths[0, 0]


@KINDS
def test_standardised_features_have_unit_covariance(make) -> None:  # type: ignore[no-untyped-def]
    table = make()
    n_directions = int(free_dimensions(table).min())
    basis = random_basis(table, n_directions)
    features = subspace.standardise(table, basis, coordinate_moments(table)[0], 1)
    nothing = np.zeros((table.n_vars, n_directions), dtype=np.float32)
    z = table.storage.features(basis, nothing).of(table.chunk(0, N), 1)
    # float32 numbers of size 10 and less
    np.testing.assert_allclose(features, z - z.mean(axis=0, dtype=np.float64), rtol=0, atol=1e-5)
    for a in range(table.n_vars):
        # the ridge is a thousandth of the trace
        np.testing.assert_allclose(
            features[:, a].T @ features[:, a] / N, np.eye(n_directions), atol=2e-3
        )


def test_nearest_has_the_largest_cross_correlations() -> None:
    rng = np.random.default_rng(9)
    z = (rng.standard_normal((300, 12, 2)) + rng.standard_normal((300, 1, 2))).astype(np.float32)
    found = subspace.nearest_variables(z, 4)
    for a in range(12):
        strength = [
            -1.0 if b == a else float(((z[:, a].T @ z[:, b]) ** 2).sum()) for b in range(12)
        ]
        assert found[a].tolist() == sorted(np.argsort(strength)[-4:].tolist())


def test_the_whole_space_is_used_when_it_is_no_larger_than_the_rank() -> None:
    rng = np.random.default_rng(10)
    table = as_table(rng.integers(0, 3, (100, 4)))
    whole = full_subspaces(table, 2)
    assert whole is not None
    # one-hot without the last category
    expected = np.tile(np.eye(3)[:, :2], (4, 1))
    np.testing.assert_array_equal(whole.basis, expected)
    assert full_subspaces(table, 1) is None
    one_wider = as_table(np.column_stack([rng.integers(0, 3, (100, 3)), rng.integers(0, 4, 100)]))
    assert full_subspaces(one_wider, 2) is None


def test_free_dimensions_leave_out_what_the_mean_fixes() -> None:
    assert free_dimensions(codes_table()).tolist() == [1, 2, 4, 8, 2, 3]
    assert free_dimensions(sparse_binary_table()).tolist() == [1] * 5
    assert free_dimensions(blocks_table()).tolist() == [15, 4, 1, 45]


@pytest.mark.parametrize(("n_categories", "least"), [(6, 0.99), (60, 0.95)])
def test_pooled_subspaces_are_those_of_the_truth(n_categories: int, least: float) -> None:
    """The space is `scale^2 (A - P 1^T)`, A the conditional of a leaf given its parent.

    An estimated vector has, beside its signal, noise of squared length about d / (N s^2 m), with
    m = 8 others pooled: 0.001 at d = 6 and 0.01 at d = 60 for s^2 = 0.1, so the cosine of the
    largest angle is above 0.99 and 0.95 with room.
    """
    for seed in range(3):
        data = make_latent_tree(9, 3, n_categories, n_samples=20_000, random_state=seed)
        table = as_table(data.X)
        found = pooled_subspaces(table, 2, np.random.default_rng(0), 2)
        _, variance = coordinate_moments(table)
        scale = 1 / np.sqrt(variance + subspace.DAMPING / table.n_samples)
        for a, (low, high) in enumerate(slow.ranges(table)):
            (edge,) = np.flatnonzero((data.tree.edges == a).any(axis=1))
            signal = data.conditionals[edge] - data.marginals[a][:, None]
            truth = np.linalg.svd(scale[low:high, None] * signal)[0][:, :2]
            estimate = np.linalg.qr(found.basis[low:high] / scale[low:high, None])[0]
            assert np.linalg.svd(truth.T @ estimate, compute_uv=False).min() > least


def test_strengths_grow_with_the_dependence() -> None:
    weak, strong = (
        as_table(make_latent_tree(9, 3, 8, edge_length=e, n_samples=5_000, random_state=0).X)
        for e in (1.0, 0.2)
    )
    found = [pooled_subspaces(t, 2, np.random.default_rng(0), 1) for t in (weak, strong)]
    assert (found[1].strengths > found[0].strengths).all()
    assert (np.diff(found[0].strengths, axis=1) <= 0).all()


@pytest.mark.parametrize("n_categories", [8, 120])
@pytest.mark.parametrize("as_blocks", [False, True])
def test_chunks_and_threads_do_not_change_a_bit(
    n_categories: int, as_blocks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """120 categories over 10,000 samples are crowded: the other start, the same demand."""
    X = make_latent_tree(9, 3, n_categories, n_samples=10_000, random_state=0).X
    table = as_table([np.eye(n_categories)[x] for x in X.T] if as_blocks else X)
    results = []
    for chunk, n_jobs in [
        (cross_moments.CHUNK_FLOATS, 1),
        (1, 1),
        (9 * 2 * 2 * BLOCK, 2),
        (10**9, 2),
    ]:
        monkeypatch.setattr(cross_moments, "CHUNK_FLOATS", chunk)
        results.append(pooled_subspaces(table, 2, np.random.default_rng(0), n_jobs))
    for other in results[1:]:
        np.testing.assert_array_equal(results[0].basis, other.basis)
        np.testing.assert_array_equal(results[0].strengths, other.strengths)


@pytest.mark.parametrize("seed", range(3))
def test_one_round_from_directions_of_more_samples_is_enough(seed: int) -> None:
    """Directions of a third of the samples: those of a search of their own are as long, and span
    the same space, within the noise of its samples (a sine of the largest angle below 0.2)."""
    data = make_latent_tree(9, 3, 20, edge_length=0.5, n_samples=30_000, random_state=seed)
    table, part = as_table(data.X), as_table(data.X[:10_000])
    start = pooled_subspaces(table, 2, np.random.default_rng(0), 1).basis
    found = continued_subspaces(part, start, 2, 1).basis
    own = pooled_subspaces(part, 2, np.random.default_rng(0), 1).basis
    for a, b in pairwise(table.offsets.tolist()):
        one, other = np.linalg.qr(found[a:b])[0], np.linalg.qr(own[a:b])[0]
        assert np.linalg.norm(other - one @ (one.T @ other), 2) < 0.2
