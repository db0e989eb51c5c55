"""Passes over the data against the same sums on dense one-hot matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from tests.reference import moments as slow

from latenttree.data import Table, as_table
from latenttree.data.subsets import halves
from latenttree.data.values import Values
from latenttree.engine import BLOCK
from latenttree.evaluation.datasets import make_latent_tree
from latenttree.moments import cross_moments as scatter
from latenttree.moments import full_subspaces, gram, pooled_subspaces, project
from latenttree.moments import subspace as passes
from latenttree.moments.available_cases import available_moments, whiten_pairs
from latenttree.moments.pairs import second_moments
from latenttree.moments.projection import features, weighted_features

N = BLOCK + 700  # more than one block
FLOAT32 = {"rtol": 0, "atol": 2e-5}
"""Sums of N float32 terms of size 1, over N: the error is about sqrt(N) 6e-8, far below this."""


def codes_table() -> Table:
    """Columns of 2, 3, 5 and 9 categories, dependent through a common one."""
    rng = np.random.default_rng(0)
    common = rng.integers(0, 3, N)
    return as_table(
        np.column_stack([(common + rng.integers(0, d, N)) % d for d in (2, 3, 5, 9, 3, 4)])
    )


def sparse_binary_table() -> Table:
    rng = np.random.default_rng(1)
    common = rng.random(N) < 0.4
    rate = np.where(common[:, None], [0.7, 0.3, 0.5, 0.2, 0.1], [0.2, 0.1, 0.6, 0.05, 0.02])
    return as_table(sparse.csr_array((rng.random((N, 5)) < rate).astype(float)))


def blocks_table() -> Table:
    """Blocks of 1, 4 and 3 columns, numbers in bins and counts as they are, and categories."""
    rng = np.random.default_rng(2)
    common = rng.integers(0, 2, N)
    return as_table(
        [
            rng.standard_normal((N, 1)) + common[:, None],
            sparse.csr_array(rng.poisson(0.3 + common[:, None], (N, 4))),
            common ^ (rng.random(N) < 0.2),
            rng.standard_normal((N, 3)) - 2 * common[:, None],
        ],
        family={"x1": "poisson"},
    )


# the same with gaps, where the kind allows them, and with weights, some of them zero


def weights(seed: int) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    return np.where(rng.random(N) < 0.1, 0.0, rng.uniform(0.0, 3.0, N))


def with_gaps(x: NDArray[Any], share: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Whole rows of a block, or values of a column, are missing."""
    gaps = rng.random(len(x)) < share
    return np.where(gaps if x.ndim == 1 else gaps[:, None], np.nan, x)


def gappy_codes() -> Table:
    rng = np.random.default_rng(0)
    codes = codes_table().codes
    assert codes is not None
    columns = [with_gaps(x, share, rng) for x, share in zip(codes.T, np.arange(6) / 8, strict=True)]
    return as_table(np.column_stack(columns), sample_weight=weights(0))


def weighted_sparse_binary() -> Table:
    table = sparse_binary_table()
    return as_table(table.matrix, sample_weight=weights(1))


def gappy_blocks() -> Table:
    """Real, wide real, bag and multi-hot blocks; empty bags and lone codes are gaps too."""
    rng = np.random.default_rng(2)
    common = rng.integers(0, 2, N)[:, None]
    hot = (rng.random((N, 4)) < 0.2 + 0.3 * common).astype(float)
    hot[rng.random(hot.shape) < 0.1] = np.nan
    return as_table(
        {
            "real": with_gaps(rng.standard_normal((N, 2)) - 2 * common, 0.3, rng),
            "wide": with_gaps(rng.standard_normal((N, 17)) + common, 0.5, rng),
            "bag": rng.poisson(0.3 + common, (N, 3)),
            "hot": hot,
            "rates": rng.poisson(1 + common, (N, 2)),
        },
        family={"rates": "poisson"},
        sample_weight=weights(2),
    )


def mixed() -> Table:
    """Columns of a data frame and a block: kind "blocks", every variable with gaps of its own."""
    rng = np.random.default_rng(3)
    common = rng.integers(0, 3, N)
    columns = {
        "text": np.array(["u", "v", "w"])[(common + rng.integers(0, 2, N)) % 3].astype(object),
        "real": with_gaps(rng.standard_normal(N) + common, 0.4, rng),
        "count": with_gaps(rng.poisson(1 + common).astype(float), 0.2, rng),
        "block": with_gaps(rng.standard_normal((N, 20)) + common[:, None], 0.3, rng),
    }
    columns["text"][rng.random(N) < 0.25] = None
    return as_table(columns, family={"count": "poisson"})


def scores() -> Table:
    """Normal scores, for Gaussian trees."""
    rng = np.random.default_rng(4)
    x = rng.standard_normal((N, 4)) + rng.standard_normal((N, 1))
    columns = [with_gaps(column, 0.3, rng) for column in x.T]
    return as_table(np.column_stack(columns), scores=True, sample_weight=weights(4))


GAPPY = pytest.mark.parametrize(
    "make", [gappy_codes, weighted_sparse_binary, gappy_blocks, mixed, scores]
)
KINDS = pytest.mark.parametrize("make", [codes_table, sparse_binary_table, blocks_table])
JOBS = pytest.mark.parametrize("n_jobs", [1, 2])


def random_basis(table: Table, n_directions: int) -> NDArray[np.float32]:
    return (
        np.random.default_rng(3).uniform(-1, 1, (int(table.offsets[-1]), n_directions)).astype("f4")
    )


@KINDS
@JOBS
@pytest.mark.parametrize("n_directions", [1, 3])
def test_project_is_a_product_with_one_hot(make, n_jobs: int, n_directions: int) -> None:  # type: ignore[no-untyped-def]
    table = make()
    basis = random_basis(table, n_directions)
    expected = slow.project(table, basis)
    found = project(table, basis, 0, N, n_jobs)
    assert found.dtype == np.float32
    # at most 4 products of size up to 10, in float32
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(project(table, basis, 100, 1700, n_jobs), found[100:1700])


@KINDS
def test_means_and_variances_of_coordinates(make) -> None:  # type: ignore[no-untyped-def]
    table = make()
    whole = np.hstack(slow.dense(table))
    mean, variance = passes.coordinate_moments(table)
    # float64 sums; blocks hold float32 values where these are exact
    np.testing.assert_allclose(mean, whole.mean(axis=0), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(variance, whole.var(axis=0), rtol=1e-6, atol=1e-9)


@KINDS
@JOBS
@pytest.mark.parametrize("n_directions", [1, 2])
def test_cross_moments_are_covariances(make, n_jobs: int, n_directions: int) -> None:  # type: ignore[no-untyped-def]
    table = make()
    basis = random_basis(table, n_directions)
    mean, _ = passes.coordinate_moments(table)
    rng = np.random.default_rng(4)
    others = [np.delete(np.arange(table.n_vars), a) for a in range(table.n_vars)]
    near = np.array([np.sort(rng.permutation(o)[:2]) for o in others])
    found = passes.cross_moments(table, basis, near, mean, n_jobs)
    np.testing.assert_allclose(found, slow.cross_moments(table, basis, near), **FLOAT32)


@KINDS
@JOBS
def test_rest_moments_are_covariances_with_all_others(make, n_jobs: int) -> None:  # type: ignore[no-untyped-def]
    table = make()
    basis = random_basis(table, 2)
    mean, _ = passes.coordinate_moments(table)
    found = passes.rest_moments(table, basis, mean, n_jobs)
    np.testing.assert_allclose(found, slow.rest_moments(table, basis), **FLOAT32)


# --- gaps and weights -----------------------------------------------------------------


def some_near(table: Table, n_near: int = 2) -> NDArray[np.int64]:
    rng = np.random.default_rng(4)
    others = [np.delete(np.arange(table.n_vars), a) for a in range(table.n_vars)]
    return np.array([np.sort(rng.permutation(o)[:n_near]) for o in others])


@GAPPY
def test_the_tables_have_what_they_are_for(make) -> None:  # type: ignore[no-untyped-def]
    table = make()
    assert table.has_missing == (make is not weighted_sparse_binary)
    assert (table.weights is None) == (make is mixed)
    if table.has_missing:  # pairs differ in how many samples have both
        known = slow.known_of(table).astype(float)
        assert len(np.unique((known.T @ known).round(6))) > table.n_vars


@GAPPY
def test_means_and_variances_where_values_are(make) -> None:  # type: ignore[no-untyped-def]
    table = make()
    known = slow.known_of(table)
    np.testing.assert_allclose(passes.known_weights(table), slow.weights_of(table) @ known)
    found, expected = passes.coordinate_moments(table), slow.coordinate_moments(table)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-9)  # float64 sums of float32 values


@GAPPY
@JOBS
def test_projections_of_gaps_are_zero(make, n_jobs: int) -> None:  # type: ignore[no-untyped-def]
    table = make()
    basis = random_basis(table, 2)
    offset = passes.feature_means(table, basis, passes.coordinate_moments(table)[0])
    known, w = slow.known_of(table), slow.weights_of(table)
    z, n = slow.project(table, basis), table.n_samples
    # up to 20 products of size up to 5, in float32
    found = project(table, basis, 0, n, n_jobs)
    np.testing.assert_allclose(found, z, rtol=1e-5, atol=1e-5)
    assert (found[~known] == 0).all()
    away = (z - offset) * known[:, :, None]
    np.testing.assert_allclose(features(table, basis, offset, 0, n, n_jobs), away, atol=2e-5)
    weighted = weighted_features(table, basis, offset, 0, n, n_jobs)
    np.testing.assert_allclose(weighted, away * np.sqrt(w)[:, None, None], atol=5e-5)


@GAPPY
@JOBS
def test_cross_moments_over_samples_that_have_both(make, n_jobs: int) -> None:  # type: ignore[no-untyped-def]
    table = make()
    basis, near = random_basis(table, 2), some_near(table)
    found = passes.cross_moments(table, basis, near, passes.coordinate_moments(table)[0], n_jobs)
    expected = slow.available_cross_moments(table, basis, near)
    np.testing.assert_allclose(found, expected, **FLOAT32)


@GAPPY
@JOBS
def test_rest_moments_over_what_samples_have(make, n_jobs: int) -> None:  # type: ignore[no-untyped-def]
    table = make()
    basis = random_basis(table, 2)
    found = passes.rest_moments(table, basis, passes.coordinate_moments(table)[0], n_jobs)
    np.testing.assert_allclose(found, slow.available_rest_moments(table, basis), **FLOAT32)


def test_cross_moments_with_gaps_tend_to_those_without() -> None:
    """Half of each of three variables missing: entries err by less than five standard deviations
    of a mean of N / 4 products of size 1 or less, 0.07."""
    whole = codes_table()
    assert whole.codes is not None
    rng = np.random.default_rng(0)
    columns = [with_gaps(x, 0.5, rng) for x in whole.codes.T]
    table = as_table(np.column_stack(columns))
    basis, near = random_basis(whole, 2), some_near(whole)
    mean = passes.coordinate_moments(table)[0]
    found = passes.cross_moments(table, basis, near, mean, 1)
    np.testing.assert_allclose(found, slow.cross_moments(whole, basis, near), atol=0.07)


@GAPPY
def test_standardised_features_where_values_are(make) -> None:  # type: ignore[no-untyped-def]
    table = make()
    basis = random_basis(table, 1)
    known, w = slow.known_of(table), slow.weights_of(table)
    mean = passes.coordinate_moments(table)[0]
    seen = passes.standardise(table, basis, mean, 1)
    assert (seen[~known] == 0).all()
    z = slow.project(table, basis)
    for a in range(table.n_vars):
        own = slow.available_covariance(z[:, a], z[:, a], w, known[:, a])
        # the ridge is a thousandth of the trace
        np.testing.assert_allclose(own, np.eye(1), atol=2e-3)
        second = seen[:, a].T @ seen[:, a] / (w @ known[:, a])
        np.testing.assert_allclose(second, np.eye(1), atol=2e-3)


@GAPPY
@JOBS
@pytest.mark.parametrize("n_directions", [1, 2])
def test_second_moments_of_pairs_are_over_samples_that_have_both(
    make,  # type: ignore[no-untyped-def]
    n_jobs: int,
    n_directions: int,
) -> None:
    table = make()
    basis = random_basis(table, n_directions)
    offset = passes.feature_means(table, basis, passes.coordinate_moments(table)[0])
    expected, both, means = slow.available_second(table, basis)
    width = table.n_vars * n_directions
    # features of blocks with 20 coordinates have variances up to 20
    close = {"rtol": 1e-5, "atol": 2e-4}
    if not table.has_missing:
        second = second_moments(table, basis, offset, n_jobs)
        np.testing.assert_allclose(second, expected.reshape(width, width), **close)
        return
    found = available_moments(table, basis, offset, n_jobs)
    np.testing.assert_allclose(found.covariance, expected.reshape(width, width), **close)
    np.testing.assert_allclose(found.both, both, rtol=1e-5)
    away = means - offset[:, :, None]
    np.testing.assert_allclose(found.means, away.reshape(width, -1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("make", "n_directions"),
    [(gappy_codes, 1), (gappy_codes, 2), (gappy_blocks, 2), (mixed, 1), (mixed, 2), (scores, 1)],
)
@JOBS
def test_pairs_are_whitened_by_their_own_samples(make, n_jobs: int, n_directions: int) -> None:  # type: ignore[no-untyped-def]
    """Canonical correlations of a pair are those of the samples that have both. The prior, six
    samples among a thousand or more, and the ridge change them by a part in a hundred."""
    table = make()
    table = table.select(np.flatnonzero(passes.free_dimensions(table) >= n_directions))
    basis = random_basis(table, n_directions)
    offset = passes.feature_means(table, basis, passes.coordinate_moments(table)[0])
    found = available_moments(table, basis, offset, n_jobs)
    whiten_pairs(found, table, basis, offset, n_jobs)
    z, known, w = slow.project(table, basis), slow.known_of(table), slow.weights_of(table)
    for a in range(table.n_vars):
        for b in range(a):
            both = known[:, a] & known[:, b]
            block = found.covariance[
                a * n_directions : (a + 1) * n_directions, b * n_directions : (b + 1) * n_directions
            ]
            s = np.linalg.svd(block, compute_uv=False)
            expected = slow.available_correlations(z[:, a], z[:, b], w, both)
            np.testing.assert_allclose(s, expected, rtol=0.01, atol=0.002)


def test_two_samples_are_not_a_perfect_correlation() -> None:
    """Independent columns that two samples have in common, whatever these are."""
    x = np.random.default_rng(0).standard_normal((200, 2))
    x[:99, 0] = x[101:, 1] = np.nan
    table = as_table(x, scores=True)
    basis, offset = np.ones((2, 1), np.float32), np.zeros((2, 1), np.float32)
    found = available_moments(table, basis, offset, 1)
    assert found.both[0, 1] == 2
    whiten_pairs(found, table, basis, offset, 1)
    assert abs(found.covariance[1, 0]) < 0.5


@GAPPY
@pytest.mark.parametrize("n", [50, 1000, 2 * N])
def test_parts_of_a_weighted_table_are_those_of_repeated_rows(make, n: int) -> None:  # type: ignore[no-untyped-def]
    """Integer weights: halves and spread rows hold each row as often as the repeated table's do."""
    table = make()
    rng = np.random.default_rng(n)
    table = table.replace(weights=rng.integers(1, 6, table.n_samples).astype(float))
    numbered = table.replace(values=numbers(table.n_samples))
    again = slow.repeated(numbered)
    pairs = [(numbered.thinned(n), again.thinned(n))]
    pairs += zip(halves(numbered), halves(again), strict=True)
    for weighted, plain in pairs:
        np.testing.assert_array_equal(counts(weighted, N), counts(plain, N))
        assert weighted.total_weight == plain.n_samples
    for x, y in zip(
        passes.coordinate_moments(table), passes.coordinate_moments(again), strict=True
    ):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12)


def numbers(n: int) -> Values:
    """Values that tell rows apart."""
    return Values(("categorical",), np.arange(n)[:, None], {})


def counts(table: Table, n: int) -> NDArray[np.float64]:
    """How often each numbered row is in a table."""
    assert table.values is not None
    return np.bincount(table.values.codes[:, 0], slow.weights_of(table), n)


def test_weights_that_are_no_integers_are_shared_out() -> None:
    table = codes_table().replace(weights=np.random.default_rng(0).uniform(0.1, 4.0, N))
    numbered = table.replace(values=numbers(N))
    even, odd = halves(numbered)
    np.testing.assert_allclose(counts(even, N) + counts(odd, N), table.weights)
    # a place of weight 1 goes to one half or is cut once: halves differ by less than 2
    assert abs(even.total_weight - odd.total_weight) < 2
    part = numbered.thinned(500)
    assert 250 <= part.total_weight <= 1001


# --- products -------------------------------------------------------------------------


@JOBS
@pytest.mark.parametrize(("n", "width"), [(50, 3), (BLOCK, 40), (BLOCK + 900, 600)])
def test_gram_sums_products(n: int, width: int, n_jobs: int) -> None:
    """600 columns are more than a tile of 512, 4,996 samples more than a block of 4,096."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal((n, width)) @ rng.standard_normal((width, width)) / np.sqrt(width) + 0.5
    x = x.astype(np.float32)
    second = gram(lambda start, stop: x[start:stop], n, width, n_jobs)
    expected = x.T.astype(np.float64) @ x
    np.testing.assert_allclose(second / n, expected / n, **FLOAT32)
    np.testing.assert_array_equal(second, second.T)


def test_gram_has_the_same_bits_on_any_number_of_threads() -> None:
    x = np.random.default_rng(6).standard_normal((BLOCK + 50, 700)).astype(np.float32)
    results = [gram(lambda a, b: x[a:b], len(x), 700, n_jobs) for n_jobs in (1, 2, 3)]
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


@JOBS
@pytest.mark.parametrize("n_directions", [1, 2, 4])
def test_leading_directions_are_left_singular_vectors(n_directions: int, n_jobs: int) -> None:
    """By `m = scale * moments`: strengths are its singular values, `basis / scale` its vectors."""
    rng = np.random.default_rng(7)
    offsets = np.array([0, 5, 12, 40])
    moments = rng.standard_normal((40, 8)).astype(np.float32)
    scale = rng.uniform(0.5, 3.0, 40)
    basis, strengths = passes.leading_directions(moments, scale, offsets, n_directions, n_jobs)
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
    basis, strengths = passes.leading_directions(moments, np.ones(6), np.array([0, 2, 6]), 3, 1)
    assert np.isfinite(basis).all()
    # the square root of float64 noise in a Gram matrix of size 1
    assert strengths[0, 2] < 1e-6 * strengths[0, 0]


@KINDS
def test_standardised_features_have_unit_covariance(make) -> None:  # type: ignore[no-untyped-def]
    table = make()
    n_directions = int(passes.free_dimensions(table).min())
    basis = random_basis(table, n_directions)
    features = passes.standardise(table, basis, passes.coordinate_moments(table)[0], 1)
    z = project(table, basis, 0, N, 1)
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
    found = passes.nearest(z, 4)
    for a in range(12):
        strength = [
            -1.0 if b == a else float(((z[:, a].T @ z[:, b]) ** 2).sum()) for b in range(12)
        ]
        assert found[a].tolist() == sorted(np.argsort(strength)[-4:].tolist())


# --- subspaces -----------------------------------------------------------------------


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
    assert passes.free_dimensions(codes_table()).tolist() == [1, 2, 4, 8, 2, 3]
    assert passes.free_dimensions(sparse_binary_table()).tolist() == [1] * 5
    assert passes.free_dimensions(blocks_table()).tolist() == [15, 4, 1, 45]


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
        _, variance = passes.coordinate_moments(table)
        scale = 1 / np.sqrt(variance + passes.DAMPING / table.n_samples)
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
    for chunk, n_jobs in [(scatter.CHUNK_FLOATS, 1), (1, 1), (9 * 2 * 2 * BLOCK, 2), (10**9, 2)]:
        monkeypatch.setattr(scatter, "CHUNK_FLOATS", chunk)
        results.append(pooled_subspaces(table, 2, np.random.default_rng(0), n_jobs))
    for other in results[1:]:
        np.testing.assert_array_equal(results[0].basis, other.basis)
        np.testing.assert_array_equal(results[0].strengths, other.strengths)
