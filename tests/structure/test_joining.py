"""Stars: joining against its definition, likelihood against a general optimiser."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import nnls
from tests.reference import stars as reference
from tests.reference.random_trees import SHAPES, random_tree

from latenttree.distances.similarity import EXACT
from latenttree.structure.joining import combine, join, log_distances
from latenttree.structure.lengths import fit_likelihood, fit_star, invert, path_matrix
from latenttree.tree import Tree

Matrix = NDArray[np.float64]

# Sums of some ten logarithms near 1 in float64 err by about 1e-14.
ROUNDING = 1e-9


def noisy_star(seed: int, m: int, n: int) -> Matrix:
    """Correlations of `n` Gaussian samples from a random binary tree over `m` features."""
    rng = np.random.default_rng(seed)
    edges = reference.random_binary(rng, m)
    lengths = rng.uniform(0.1, 0.8, len(edges))
    sigma = np.exp(-reference.path_lengths(m, edges, lengths))
    return reference.sampled_correlations(rng, sigma, n)


# ---- joining -------------------------------------------------------------------------


def check_join(r: Matrix, n: float, caution: float, flat: bool) -> None:
    edges, lengths = join(r, n, caution, flat)
    expected, expected_lengths = reference.join(r, n, caution, flat)
    if caution == 0 and flat:
        # of the last four features, the two pairs of siblings tie: which is first is rounding
        names = [f"x{i}" for i in range(len(r))]
        found = Tree.build(names, edges, lengths)
        assert found.same_topology(Tree.build(names, expected, expected_lengths))
        return
    assert edges.tolist() == [list(e) for e in expected]
    np.testing.assert_allclose(lengths, expected_lengths, atol=ROUNDING)


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("caution", [0.0, 1.0, 4.0])
def test_joining_agrees_with_its_definition(caution: float, flat: bool) -> None:
    for seed, m in itertools.product(range(6), (2, 3, 4, 6, 9)):
        check_join(noisy_star(seed, m, 2000), 2000.0, caution, flat)


def test_joining_noise_agrees_with_its_definition() -> None:
    """Negative and tiny correlations are lifted to half a standard error."""
    for seed in range(5):
        r = reference.sampled_correlations(np.random.default_rng(seed), np.eye(6), 100)
        check_join(r, 100.0, 1.0, False)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("flat", [True, False])
def test_joining_is_exact_on_exact_distances(shape: str, flat: bool) -> None:
    """A tree is determined by its path lengths, so equal path lengths are the same tree."""
    for seed in range(15):
        rng = np.random.default_rng(seed)
        tree = random_tree(rng, int(rng.integers(3, 40)), shape=shape, max_degree=6)
        d = tree.path_lengths()
        edges, lengths = join(np.exp(-d), EXACT, 1.0, flat)
        assert len(edges) == 2 * tree.n_observed - 3
        found = reference.path_lengths(tree.n_observed, edges, lengths)
        np.testing.assert_allclose(found, d, atol=ROUNDING)


def test_equal_distances_are_a_star_with_zero_edges() -> None:
    d = 2.0 * (1 - np.eye(7))
    edges, lengths = join(np.exp(-d), EXACT, 1.0, True)
    pendant = (edges < 7).any(axis=1)
    np.testing.assert_allclose(lengths[pendant], 1.0, atol=ROUNDING)
    np.testing.assert_allclose(lengths[~pendant], 0.0, atol=ROUNDING)


def test_a_feature_inside_the_star_is_a_leaf_at_distance_zero() -> None:
    """1 lies between 0 and 2: 0 -1- 1 -2- 2."""
    d = np.array([[0, 1, 3], [1, 0, 2], [3, 2, 0.0]])
    _, lengths = join(np.exp(-d), EXACT, 1.0, True)
    np.testing.assert_allclose(lengths, [1.0, 0.0, 2.0], atol=ROUNDING)


def test_lengths_are_never_negative() -> None:
    for seed in range(20):
        r = noisy_star(seed, 8, 30)
        _, lengths = join(r, 30.0, 1.0, False)
        assert (lengths >= 0).all()
        assert np.isfinite(lengths).all()


def test_the_correlations_are_left_alone() -> None:
    r = noisy_star(0, 8, 100)
    before = r.copy()
    join(r, 100.0, 1.0, False)
    np.testing.assert_array_equal(r, before)


def test_log_distances_and_their_variances() -> None:
    r = np.array([[1.0, 0.5, -0.2], [0.5, 1.0, 0.01], [-0.2, 0.01, 1.0]])
    d, v = log_distances(r, 100.0)
    for i, j in itertools.permutations(range(3), 2):
        expected = reference.log_distance(r[i, j], 100.0)
        np.testing.assert_allclose([d[i, j], v[i, j]], expected, rtol=ROUNDING)
    np.testing.assert_array_equal(np.diag(d), 0)


@pytest.mark.parametrize(("a", "b"), [(0.9, 0.3), (0.5, 0.5), (0.1, 0.99), (1e-6, 0.2)])
def test_combine_is_the_best_linear_predictor(a: float, b: float) -> None:
    np.testing.assert_allclose(combine(a, b), reference._predictor(a, b), rtol=ROUNDING)


def test_combine_follows_a_perfect_feature() -> None:
    assert combine(1.0, 0.4) == (1.0, 0.0, 1.0)
    assert combine(0.4, 1.0) == (0.0, 1.0, 1.0)


def test_predictor_beats_any_other_combination() -> None:
    """The claim behind the name: no other mix of two features correlates more with the node."""
    a, b = 0.7, 0.4
    _, _, best = combine(a, b)
    for angle in np.linspace(0, np.pi / 2, 50):
        w = np.array([np.cos(angle), np.sin(angle)])
        norm = np.sqrt(w @ np.array([[1, a * b], [a * b, 1]]) @ w)
        assert (w @ [a, b]) / norm <= best + ROUNDING


# ---- lengths by likelihood -----------------------------------------------------------


@pytest.mark.parametrize("m", [2, 3, 5, 8])
def test_paths_are_those_found_by_walking(m: int) -> None:
    edges = reference.random_binary(np.random.default_rng(m), m)
    paths = path_matrix(m, edges)
    for row, (i, j) in enumerate(itertools.combinations(range(m), 2)):
        assert np.flatnonzero(paths[row]).tolist() == reference.edges_between(edges, i, j)


def fitted(seed: int, m: int, n: int, steps: int = 100) -> tuple[Matrix, Matrix, Matrix, float]:
    rng = np.random.default_rng(seed)
    edges = reference.random_binary(rng, m)
    lengths = rng.uniform(0.1, 0.8, len(edges))
    sigma = np.exp(-reference.path_lengths(m, edges, lengths))
    r = reference.sampled_correlations(rng, sigma, n)
    start = np.full(len(edges), 0.3)
    found, value, _ = fit_likelihood(r, float(n), path_matrix(m, edges), start, steps)
    return r, edges, found, value


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("m", [3, 4, 6])
def test_likelihood_fit_agrees_with_a_general_optimiser(m: int, seed: int) -> None:
    n = 2000
    r, edges, found, value = fitted(seed, m, n)
    expected, best = reference.fit_likelihood(r, float(n), edges)
    # Scoring ends when a step gains under 1e-3 log-likelihood; it converges fast, so what is
    # left is less than that many times over. A standard error is 0.5 log-likelihood.
    assert value == pytest.approx(best, abs=1e-2)
    # 1e-2 log-likelihood is sqrt(2 * 1e-2) = 0.14 standard errors, which are below 0.1 here
    np.testing.assert_allclose(found, expected, atol=0.014)


@pytest.mark.parametrize("seed", range(6))
def test_the_value_is_the_likelihood_of_the_lengths(seed: int) -> None:
    r, edges, found, value = fitted(seed, 6, 500, steps=seed)
    # log det and trace of a well-conditioned 6 x 6 matrix, times n / 2
    assert value == pytest.approx(reference.log_likelihood(r, 500.0, edges, found), rel=1e-9)


def test_more_steps_never_lower_the_likelihood() -> None:
    for seed in range(10):
        values = [fitted(seed, 6, 100, steps)[3] for steps in (0, 1, 2, 5, 20)]
        assert (np.diff(values) >= -1e-6).all()  # the fit itself accepts losses of 1e-9


def test_lengths_stay_at_or_above_zero_where_the_truth_is_zero() -> None:
    """A star of four, fitted as each quartet: at most one of three can have a positive edge
    by chance, the others are held at zero."""
    sigma = np.exp(-1.0 * (1 - np.eye(4)))
    r = reference.sampled_correlations(np.random.default_rng(0), sigma, 5000)
    middle = []
    for a, b, c in ((1, 2, 3), (2, 1, 3), (3, 1, 2)):
        edges = np.array([[0, 4], [a, 4], [b, 5], [c, 5], [4, 5]])
        found, value, _ = fit_likelihood(r, 5000.0, path_matrix(4, edges), np.full(5, 0.3), 100)
        assert (found >= 0).all()
        _, best = reference.fit_likelihood(r, 5000.0, edges)
        assert value == pytest.approx(best, abs=1e-2)  # as above
        middle.append(found[4])
    # a positive edge beyond this would be 3 standard errors of 1 / sqrt(5000) e
    assert sorted(middle)[1] < 3 * np.e / np.sqrt(5000)
    assert min(middle) < 1e-6


def test_exact_correlations_give_back_the_lengths() -> None:
    rng = np.random.default_rng(3)
    edges = reference.random_binary(rng, 6)
    lengths = rng.uniform(0.1, 0.8, len(edges))
    r = reference.model_covariance(6, edges, lengths) - reference.RIDGE * np.eye(6)
    start = np.full(len(edges), 0.3)
    found, _, _ = fit_likelihood(r, 1e6, path_matrix(6, edges), start, 100)
    # a gain under 1e-3 at n = 1e6 is sqrt(2e-3) standard errors of about 1e-3; the ridge of
    # 1e-6 in the variances moves lengths as little
    np.testing.assert_allclose(found, lengths, atol=1e-4)


@pytest.mark.parametrize("m", [3, 5])
def test_information_is_that_of_a_gaussian(m: int) -> None:
    rng = np.random.default_rng(m)
    edges = reference.random_binary(rng, m)
    lengths = rng.uniform(0.2, 0.8, len(edges))
    r = np.exp(-reference.path_lengths(m, edges, lengths))
    found, _, info = fit_likelihood(r, 1e4, path_matrix(m, edges), lengths, 20)
    np.testing.assert_allclose(found, lengths, atol=1e-4)  # it starts at the optimum
    # slopes by central differences of 1e-6 are good to 1e-9, lengths to 1e-4
    np.testing.assert_allclose(
        info, reference.information(1e4, edges, m, lengths), rtol=1e-3, atol=1.0
    )


# ---- one node ------------------------------------------------------------------------


def least_squares(r: Matrix, n: float) -> Matrix:
    """`sum w_ij (d_ij - x_i - x_j)^2` over x >= 0, by SciPy."""
    pairs = list(itertools.combinations(range(len(r)), 2))
    c = np.array([np.clip(r[i, j], 0.5 / np.sqrt(n), 1.0) for i, j in pairs])
    root = np.sqrt(c**2 / ((1 - c**2) ** 2 + 1e-3))
    design = np.zeros((len(pairs), len(r)))
    for row, pair in enumerate(pairs):
        design[row, list(pair)] = root[row]
    return np.asarray(nnls(design, -np.log(c) * root)[0])


@pytest.mark.parametrize("m", [3, 4, 8, 20])
def test_stars_are_fitted_by_least_squares(m: int) -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        x = rng.uniform(0.0, 1.0, m)
        sigma = np.exp(-np.add.outer(x, x))
        np.fill_diagonal(sigma, 1.0)
        r = reference.sampled_correlations(rng, sigma, 500)
        # one length at a time until none moves by 1e-7: steps shrink by a constant factor
        np.testing.assert_allclose(fit_star(r, 500.0), least_squares(r, 500.0), atol=1e-5)


def test_a_star_of_noise_has_finite_lengths() -> None:
    r = reference.sampled_correlations(np.random.default_rng(0), np.eye(6), 100)
    found = fit_star(r, 100.0)
    assert ((found >= 0) & np.isfinite(found)).all()


def test_exact_stars_come_back() -> None:
    x = np.array([0.0, 0.2, 0.5, 1.5])
    r = np.exp(-np.add.outer(x, x))
    np.testing.assert_allclose(fit_star(r, EXACT), x, atol=1e-5)  # as above


@pytest.mark.parametrize("m", [1, 2, 7])
def test_inverse_and_determinant(m: int) -> None:
    x = np.random.default_rng(m).standard_normal((m, 2 * m))
    a, out = x @ x.T, np.empty((m, m))
    assert invert(a, out) == pytest.approx(np.linalg.slogdet(a)[1], abs=ROUNDING)
    np.testing.assert_allclose(out, np.linalg.inv(a), rtol=1e-6)
    assert np.isnan(invert(-a, out))
