"""Distances against determinants and singular values of dense moments, and against the truth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy import sparse
from tests.reference import moments as slow
from threadpoolctl import threadpool_limits

import latenttree as lt
from latenttree.data import as_table
from latenttree.distances.estimate import Distances, estimate_distances, pairwise_distances
from latenttree.errors import DataError
from latenttree.evaluation.datasets import make_latent_tree
from latenttree.moments import cross_moments as scatter
from latenttree.moments import subspace as passes

PAIRS = np.triu_indices(9, 1)
QUARTETS = [(a, b, c, d) for a, b in ((0, 1), (1, 2)) for c, d in ((3, 4), (4, 5), (6, 7), (7, 8))]
"""Two siblings and two others in the balanced tree over 9: {0, 1, 2}, {3, 4, 5}, {6, 7, 8}."""


def estimate(X: Any, n_states: int, **options: Any) -> Distances:
    return estimate_distances(as_table(X), n_states, random_state=0, **options)


def one_hot(X: NDArray[Any]) -> list[NDArray[np.float64]]:
    return [np.eye(int(x.max()) + 1)[x] for x in X.T]


def internal_lengths(values: NDArray[Any]) -> NDArray[np.float64]:
    return np.array([slow.internal_length(values, *quartet) for quartet in QUARTETS])


# --- the slow, obvious twin ----------------------------------------------------------


def check_longer_by_pendants(values: NDArray[Any], expected: NDArray[Any], features: Any) -> None:
    """`values = expected + u_a + u_b`, u from nothing to what damped variances explain.

    1e-3 for float32 moments: 1e-6 over determinants down to 0.01, and 1e-6 of the variances added.
    """
    u, left = slow.pendant_parts(values - expected)
    np.testing.assert_allclose(left, 0.0, rtol=0, atol=1e-3)
    most = [slow.damping_length(x, passes.DAMPING / len(x)) for x in features]
    assert (u > -1e-3).all()
    assert (u < np.array(most) + 1e-3).all()


@pytest.mark.parametrize("n_states", [2, 3, 4, 5])
def test_as_many_categories_as_states_give_determinants(n_states: int) -> None:
    X = make_latent_tree(9, n_states, n_samples=5_000, random_state=n_states).X
    found = estimate(X, n_states)
    features = slow.without_last(as_table(X))
    values, signs = slow.determinant_distances(features)
    check_longer_by_pendants(found.values, values, features)
    strong = found.standard_errors < 0.2  # a determinant near zero may have either sign
    np.testing.assert_array_equal(found.signs[strong], signs[strong])
    assert found.n_samples == 5_000
    assert found.n_directions == n_states - 1


def test_binary_distance_is_minus_log_correlation() -> None:
    X = make_latent_tree(9, 2, n_samples=5_000, random_state=0).X
    X[:, ::2] = 1 - X[:, ::2]
    correlation = np.corrcoef(X.T)
    found = estimate(X, 2)
    expected = -np.log(np.abs(correlation))
    check_longer_by_pendants(found.values, expected, slow.without_last(as_table(X)))
    np.testing.assert_array_equal(found.signs, np.sign(correlation))


@pytest.mark.parametrize("n_states", [2, 3])
def test_standard_errors_are_of_the_size_of_the_gaussian_formula(n_states: int) -> None:
    """`(1 - s^2)^2 / s^2 / n` summed: exact for Gaussian features, to a half for categories."""
    X = make_latent_tree(9, n_states, n_samples=5_000, random_state=0).X
    features = slow.without_last(as_table(X))
    expected = slow.all_pairs(features, slow.gaussian_error)[PAIRS]
    np.testing.assert_allclose(estimate(X, n_states).standard_errors[PAIRS], expected, rtol=0.5)


@pytest.mark.parametrize("n_states", [2, 3])
def test_standard_errors_agree_with_the_influence_function(n_states: int) -> None:
    ratios = []
    for seed in range(5):
        X = make_latent_tree(9, n_states, n_samples=5_000, random_state=seed).X
        features = slow.without_last(as_table(X))
        expected = slow.all_pairs(features, slow.influence_error)[PAIRS]
        ratios.append(estimate(X, n_states).standard_errors[PAIRS] / expected)
    # an error that is a tenth off moves no decision
    assert np.median(ratios) == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize(("n_states", "n_categories"), [(2, 2), (2, 5), (3, 4)])
def test_pairwise_is_the_svd_of_every_pair(n_states: int, n_categories: int) -> None:
    X = make_latent_tree(9, n_states, n_categories, n_samples=2_000, random_state=0).X
    found = pairwise_distances(as_table(X), n_states)
    features = slow.without_last(as_table(X))
    for a, b in zip(*PAIRS, strict=True):
        s = slow.canonical_correlations(features[a], features[b])[: n_states - 1]
        # two ways to the same singular values, in float64
        assert found.values[a, b] == pytest.approx(-np.log(s).sum(), abs=1e-9)
        error = np.sqrt(((1 - s**2) ** 2 / s**2).sum() / 2_000)
        assert found.standard_errors[a, b] == pytest.approx(error, rel=1e-9)


@pytest.mark.parametrize(("n_states", "n_categories"), [(2, 3), (2, 6), (3, 5)])
def test_pooled_and_pairwise_agree_where_pairs_say_enough(n_states: int, n_categories: int) -> None:
    """N = 30,000 and d <= 6: in-sample SVDs shorten by about d^2 / N, pooling lengthens pendant
    edges by a per cent; together under 0.05 on distances of 1 and 2, and less on internal ones."""
    X = make_latent_tree(9, n_states, n_categories, n_samples=30_000, random_state=1).X
    pooled, _ = lt.information_distances(X, n_states, random_state=0)
    pairwise, _ = lt.information_distances(X, n_states, method="pairwise")
    np.testing.assert_allclose(pooled, pairwise, rtol=0, atol=0.05)
    np.testing.assert_allclose(
        internal_lengths(pooled), internal_lengths(pairwise), rtol=0, atol=0.03
    )


# --- the truth -----------------------------------------------------------------------


@pytest.mark.parametrize("n_states", [2, 3])
@pytest.mark.parametrize("shape", ["balanced", "caterpillar"])
def test_distances_are_the_path_lengths(n_states: int, shape: Any) -> None:
    """All 36 pairs of 6 seeds within 4.5 standard errors by the influence function: a normal
    variable is beyond once in 147,000, so a correct estimate fails with probability 0.002. Added to
    that: what damped variances lengthen, and 0.01 for what the linearisation leaves out."""
    for seed in range(6):
        data = make_latent_tree(
            9, n_states, shape=shape, edge_length=0.3, n_samples=8_000, random_state=seed
        )
        found = estimate(data.X, n_states)
        features = slow.without_last(as_table(data.X))
        allowed = 4.5 * slow.all_pairs(features, slow.influence_error) + 0.01
        longer = [slow.damping_length(x, passes.DAMPING / len(x)) for x in features]
        off = found.values - data.tree.path_lengths()
        assert (-allowed <= off).all()
        assert (off <= allowed + np.add.outer(longer, longer)).all()


def test_errors_fall_with_the_root_of_the_samples() -> None:
    """16 times the samples, a quarter of the error of internal lengths; 12 seeds with 3 independent
    lengths each give the ratio of two root mean squares to 17%: 2.4 to 6.7 is three of that."""
    rms = []
    for n in (1_500, 24_000):
        off = []
        for seed in range(12):
            data = make_latent_tree(9, 3, edge_length=0.3, n_samples=n, random_state=seed)
            off.append(internal_lengths(estimate(data.X, 3).values - data.tree.path_lengths()))
        rms.append(np.sqrt(np.mean(np.square(off))))
    assert 2.4 < rms[0] / rms[1] < 6.7


@pytest.mark.parametrize(("n_states", "n_categories"), [(2, 6), (3, 10), (3, 40)])
def test_internal_lengths_are_right_with_more_categories_than_states(
    n_states: int, n_categories: int
) -> None:
    """Between the groups lie two edges of 0.5. A seed's mean has a standard deviation of 0.02 at
    N = 20,000, so the mean of 6 one of 0.008: 0.04 is five of them. Pendant edges only grow."""
    internal, excess = [], []
    for seed in range(6):
        data = make_latent_tree(9, n_states, n_categories, n_samples=20_000, random_state=seed)
        values = estimate(data.X, n_states).values
        internal.append(internal_lengths(values).mean())
        excess.append((values - data.tree.path_lengths())[PAIRS].mean())
    assert np.mean(internal) == pytest.approx(1.0, abs=0.04)
    assert np.mean(excess) > -0.02  # five standard errors of this mean


@pytest.mark.parametrize("seed", [0, 1])
def test_many_categories_keep_the_gap_between_groups(seed: int) -> None:
    """5,000 Zipf categories, 20,000 samples: cross-fitted, the gap between cross-group and sibling
    distances is within a tenth of the truth (1.0); its noise is about 0.02. In-sample subspaces
    fit the noise of rare categories and lose the gap."""
    data = make_latent_tree(9, 3, 5_000, marginal="zipf", n_samples=20_000, random_state=seed)
    values = estimate(data.X, 3).values
    truth = data.tree.path_lengths()
    cross, siblings = truth > 1.5, (truth > 0.5) & (truth < 1.5)
    gap = values[cross].mean() - values[siblings].mean()
    assert gap == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize(("n_states", "n_categories"), [(2, 2), (3, 3), (3, 7), (4, 6)])
def test_signs_multiply_around_every_triple(n_states: int, n_categories: int) -> None:
    """Each edge between three variables is crossed twice, and each variable's own sign counts
    twice. Pairs with an error under 0.1 are ten of them from a determinant of zero."""
    rng = np.random.default_rng(0)
    for seed in range(3):
        data = make_latent_tree(
            9, n_states, n_categories, edge_length=0.3, n_samples=10_000, random_state=seed
        )
        # new labels for the categories: determinants change their signs, distances do not
        X = np.column_stack([rng.permutation(n_categories)[x] for x in data.X.T])
        found = estimate(X, n_states)
        s = np.where(found.standard_errors < 0.1, found.signs, 0).astype(int)
        np.fill_diagonal(s, 0)
        triples = s[:, :, None] * s[None, :, :] * s[:, None, :]
        assert (triples >= 0).all()
        assert (triples > 0).sum() > 200  # of 504
        if n_categories == n_states:
            assert (s < 0).any()


@pytest.mark.parametrize(("n_states", "n_categories"), [(2, 2), (3, 3), (3, 8)])
def test_independent_variables_are_unmeasurable(n_states: int, n_categories: int) -> None:
    """A correlation of pure noise has a standard error under 0.5 when it is beyond two of its own
    deviations: 4.6% of binary pairs, fewer for products of several. Of 190 pairs, 9 are expected;
    more than 10% happen with probability below 0.001."""
    X = np.random.default_rng(0).integers(0, n_categories, (4_000, 20))
    found = estimate(X, n_states)
    upper = np.triu_indices(20, 1)
    assert (found.standard_errors[upper] >= 0.5).mean() > 0.9
    np.testing.assert_array_equal(found.measurable, found.standard_errors < 0.5)


@pytest.mark.slow
@pytest.mark.parametrize(("n_states", "n_categories"), [(2, 2), (3, 3), (4, 4)])
def test_standard_errors_are_calibrated(n_states: int, n_categories: int) -> None:
    """z-scores over 50 seeds of 15 pairs: about 250 independent ones, whose standard deviation is
    known to 0.04; between 0.8 and 1.25 is four to six of those from 1."""
    upper = np.triu_indices(6, 1)
    z = []
    for seed in range(50):
        data = make_latent_tree(
            6, n_states, n_categories, edge_length=0.4, n_samples=4_000, random_state=seed
        )
        found = estimate(data.X, n_states)
        off = found.values - data.tree.path_lengths()
        z.append(off[upper] / found.standard_errors[upper])
    assert 0.8 < np.std(z) < 1.25


# --- kurtosis ---------------------------------------------------------------------------


def rare(rng: np.random.Generator, n: int, share: float = 0.01) -> NDArray[np.int64]:
    """Two pairs of rare variables, each of which occur together, and two frequent ones."""
    events = rng.random((n, 2)) < share
    seen = np.repeat(events, 2, axis=1) & (rng.random((n, 4)) < 0.8)
    common = rng.random((n, 1)) < 0.5
    return np.hstack([seen, common ^ (rng.random((n, 2)) < 0.1)]).astype(np.int64)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["codes", "sparse_binary"])
def test_rare_variables_that_occur_together_have_large_kurtosis_ratios(
    form: Callable[[Any], Any],
) -> None:
    """`E[z_a^2 z_b^2] / (1 + 2 rho^2)` from the samples: about 1 / 0.01 / 3 for the rare pairs."""
    X = rare(np.random.default_rng(0), 8_000)
    kurtosis = estimate(form(X), 2).kurtosis
    assert kurtosis is not None
    z = (X - X.mean(0)) / np.sqrt(X.var(0) + 4 / len(X))  # damped by four occurrences
    expected = np.maximum((z**2).T @ z**2 / len(X) / (1 + 2 * (z.T @ z / len(X)) ** 2), 1.0)
    off = ~np.eye(6, dtype=bool)
    np.testing.assert_allclose(kurtosis[off], expected[off], rtol=1e-3)  # float32 moments
    assert min(kurtosis[0, 1], kurtosis[2, 3]) > 10
    assert kurtosis[4, 5] == 1
    assert kurtosis[0, 4] == pytest.approx(1.0, abs=0.2), "independent: Gaussian, however rare"


def test_measured_kurtosis_ratios_of_rare_categories() -> None:
    """Three categories, so that kurtosis are measured on samples: rare ones occur together."""
    rng = np.random.default_rng(0)
    X = rare(rng, 8_000)
    X[:, :4] *= rng.integers(1, 3, (8_000, 1))
    X[:, 4:] *= rng.integers(1, 3, (8_000, 1))
    kurtosis = estimate(X, 3).kurtosis
    assert kurtosis is not None
    assert min(kurtosis[0, 1], kurtosis[2, 3]) > 5
    assert kurtosis[4, 5] < 2
    assert (kurtosis >= 1).all()
    np.testing.assert_array_equal(kurtosis, kurtosis.T)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.5, 0.05, 0.01])
def test_binary_errors_are_calibrated_however_rare(share: float) -> None:
    """z of the correlation's logarithm over 400 draws, whose deviation is known to 0.035; four of
    those and 0.06 for the curvature of the logarithm at 80 occurrences."""
    rng = np.random.default_rng(0)
    values, errors = [], []
    for _ in range(400):
        found = estimate(rare(rng, 8_000, share)[:, :3], 2)
        values.append(found.values[0, 1])
        errors.append(found.standard_errors[0, 1])
    assert np.std(values) / np.mean(errors) == pytest.approx(1.0, abs=0.2)


# --- any input -----------------------------------------------------------------------


def categories_of_different_counts() -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Three states observed through channels to 3, 4, 5, ... categories; and the path lengths."""
    data = make_latent_tree(9, 3, edge_length=0.3, n_samples=20_000, random_state=0)
    rng = np.random.default_rng(1)
    columns = []
    for a, x in enumerate(data.X.T):
        spread = rng.integers(0, 1 + (a + 2) // 3, len(x))  # splits a state, loses nothing
        columns.append(x + 3 * spread)
    return np.column_stack(columns), data.tree.path_lengths()


@pytest.mark.parametrize("form", [lambda X: X, one_hot], ids=["codes", "blocks"])
def test_variables_of_different_dimensions(form: Callable[[Any], Any]) -> None:
    """Splitting a category at random loses nothing: distances are still the path lengths, to five
    standard errors and 0.02 for the pendant edges."""
    X, truth = categories_of_different_counts()
    assert len({int(x.max()) for x in X.T}) > 2
    found = estimate(form(X), 3)
    assert (np.abs(found.values - truth) <= 5 * found.standard_errors + 0.02).all()


def test_all_forms_of_one_table_give_the_same_distances() -> None:
    X = make_latent_tree(9, 3, 6, n_samples=6_000, random_state=0).X
    names = [f"x{i}" for i in range(9)]
    words = np.array(["a", "b", "c", "d", "e", "f"])
    expected, errors = lt.information_distances(X, 3, random_state=0)
    for same in (
        X.astype(np.uint8),
        X.tolist(),
        words[X],
        pd.DataFrame(X, columns=names).astype("category"),
        pd.DataFrame(words[X], columns=names).astype("category"),
        pl.DataFrame(dict(zip(names, words[X].T, strict=True))),
        list(X.T),
    ):
        values, standard_errors = lt.information_distances(same, 3, random_state=0)
        np.testing.assert_array_equal(values, expected)
        np.testing.assert_array_equal(standard_errors, errors)


def test_one_hot_blocks_are_the_same_variables() -> None:
    X = make_latent_tree(9, 3, 6, n_samples=6_000, random_state=0).X
    blocks = one_hot(X)
    codes, _ = lt.information_distances(X, 3, random_state=0)
    dense, _ = lt.information_distances(blocks, 3, random_state=0)
    # other kernels, float32 sums in another order
    np.testing.assert_allclose(dense, codes, rtol=0, atol=1e-4)
    csr, _ = lt.information_distances([sparse.csr_array(b) for b in blocks], 3, random_state=0)
    np.testing.assert_array_equal(csr, dense)
    grouped, _ = lt.information_distances(
        sparse.csr_array(np.hstack(blocks)), 3, groups=np.repeat(np.arange(9), 6), random_state=0
    )
    np.testing.assert_array_equal(grouped, dense)


@pytest.mark.parametrize("n_states", [2, 3])
def test_one_hot_blocks_with_as_many_columns_as_states(n_states: int) -> None:
    """A block's columns are not known to add up to one, so it is cross-fitted: the mean of two
    halves' determinants is the whole's to a fraction of its error."""
    X = make_latent_tree(9, n_states, n_samples=20_000, random_state=0).X
    codes, blocks = estimate(X, n_states), estimate(one_hot(X), n_states)
    off = np.abs(codes.values - blocks.values)[PAIRS]
    assert (off < 0.5 * codes.standard_errors[PAIRS]).all()


def test_presence_or_absence_is_a_binary_variable() -> None:
    X = make_latent_tree(9, 2, n_samples=6_000, random_state=0).X
    codes, sparse_binary = estimate(X, 2), estimate(sparse.csr_array(X * 3.0), 2)
    # codes keep category 0, sparse_binary keeps 1: float32 sums of other numbers
    np.testing.assert_allclose(sparse_binary.values, codes.values, rtol=0, atol=1e-4)
    np.testing.assert_array_equal(sparse_binary.signs, codes.signs)


def test_linearly_dependent_columns_of_a_block_change_nothing_inside_the_tree() -> None:
    """Copies, sums, a constant and a zero column: the second moment is singular, the directions
    that meet other variables are the same. Pendant edges may grow with the change of scale."""
    data = make_latent_tree(9, 3, 4, n_samples=20_000, random_state=0)
    blocks = []
    for x in one_hot(data.X):
        extra = [x[:, :1], x[:, 1:3] @ [[1.0], [2.0]], np.ones((len(x), 1)), np.zeros((len(x), 1))]
        blocks.append(np.hstack([x, *extra]))
    found = estimate(blocks, 3)
    assert np.isfinite(found.values).all()
    # the noise of these lengths is 0.02 at this N
    np.testing.assert_allclose(internal_lengths(found.values).mean(), 1.0, rtol=0, atol=0.1)


def test_more_states_than_the_data_show_are_unmeasurable() -> None:
    """With two states in truth and four asked for, two of three correlations are noise."""
    X = make_latent_tree(9, 2, 5, n_samples=10_000, random_state=0).X
    found = estimate(X, 4)
    assert np.isfinite(found.values).all()
    assert not found.measurable[PAIRS].any()


def test_duplicate_variables_are_at_distance_zero() -> None:
    X = make_latent_tree(9, 2, n_samples=3_000, random_state=0).X
    X[:, 1] = 1 - X[:, 0]
    found = estimate(X, 2)
    # damped variances: 10 / 3,000 on about 0.24
    assert found.values[0, 1] == pytest.approx(0.0, abs=0.03)
    assert found.standard_errors[0, 1] < 1e-3
    assert found.signs[0, 1] == -1


# --- the same to the last bit --------------------------------------------------------


@pytest.mark.parametrize("n_categories", [3, 8, 120])
def test_threads_and_chunks_do_not_change_a_bit(
    n_categories: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole spaces, uncrowded and crowded subspaces; halves of 10,000 samples are three chunks."""
    X = make_latent_tree(9, 3, n_categories, n_samples=20_000, random_state=0).X
    expected = estimate(X, 3, n_jobs=1)
    monkeypatch.setattr(scatter, "CHUNK_FLOATS", 1)
    results = [estimate(X, 3, n_jobs=2)]
    monkeypatch.setattr(scatter, "CHUNK_FLOATS", 10**9)
    with threadpool_limits(limits=1):
        results.append(estimate(X, 3, n_jobs=2))
    for other in results:
        np.testing.assert_array_equal(other.values, expected.values)
        np.testing.assert_array_equal(other.standard_errors, expected.standard_errors)
        np.testing.assert_array_equal(other.signs, expected.signs)


def test_the_matrices_are_symmetric_with_a_zero_diagonal() -> None:
    X = make_latent_tree(9, 3, 5, n_samples=2_000, random_state=0).X
    for method in ("pooled", "pairwise"):
        for matrix in lt.information_distances(X, 3, method=method, random_state=0):  # type: ignore[arg-type]
            np.testing.assert_array_equal(matrix, matrix.T)
            assert (np.diag(matrix) == 0).all()
            assert (matrix >= 0).all()


# --- order and origin -----------------------------------------------------------------


def test_the_order_of_the_samples_does_not_matter() -> None:
    """Sorted by the first variable; halves and sketches differ, estimates agree to their errors."""
    X = make_latent_tree(9, 2, 3, n_samples=40_000, random_state=0).X
    plain, in_order = estimate(X, 2), estimate(X[np.argsort(X[:, 0], kind="stable")], 2)
    off = np.abs(plain.values - in_order.values)[PAIRS]
    assert (off <= 5 * plain.standard_errors[PAIRS] + 0.02).all()


@pytest.mark.parametrize("shift", [100.0, 1000.0])
def test_a_shift_of_a_block_does_not_matter(shift: float) -> None:
    blocks = [
        b + 0.5 for b in one_hot(make_latent_tree(9, 3, 20, n_samples=6_000, random_state=0).X)
    ]
    plain, shifted = estimate(blocks, 3), estimate([b + shift for b in blocks], 3)
    # float32 features, centred in time, lose a thousandth at most
    np.testing.assert_allclose(shifted.values, plain.values, rtol=0, atol=0.02)


# --- bad input -----------------------------------------------------------------------

X_SMALL = np.random.default_rng(0).integers(0, 3, (50, 4))


@pytest.mark.parametrize(
    ("X", "options", "message"),
    [
        (X_SMALL, {"n_states": 1}, "n_states must be an integer >= 2, 'auto' or 'bic', got 1"),
        (X_SMALL, {"n_states": 4}, "fewer than n_states=4"),
        (X_SMALL, {"n_states": "auto"}, "n_states='auto' is for LatentTree"),
        (X_SMALL, {"method": "fast"}, "method='fast' is unknown; choose 'pooled' or 'pairwise'"),
        (X_SMALL, {"n_jobs": 0}, "n_jobs=0"),
        (X_SMALL[:1], {}, "1"),
        (X_SMALL * [1, 0, 1, 1], {}, "'x1'"),
        (X_SMALL - 1, {}, "-1"),
        (np.where(X_SMALL > 1, np.inf, X_SMALL), {}, "infinity"),
    ],
)
def test_wrong_input_is_named(X: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        lt.information_distances(X, **options)
