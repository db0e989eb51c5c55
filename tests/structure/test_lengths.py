"""Lengths of small trees: likelihood against a general optimiser, least squares against SciPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import nnls
from tests.reference import joining as reference
from tests.reference.entries import entry

from latenttree.distances.similarity import EXACT
from latenttree.structure import lengths as kernels
from latenttree.structure.lengths import fit_likelihood

fit_unresolved_node = entry(kernels.fit_unresolved_node)
path_matrix = entry(kernels.path_matrix)

Matrix = NDArray[np.float64]


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
def test_unresolved_nodes_are_fitted_by_least_squares(m: int) -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        x = rng.uniform(0.0, 1.0, m)
        sigma = np.exp(-np.add.outer(x, x))
        np.fill_diagonal(sigma, 1.0)
        r = reference.sampled_correlations(rng, sigma, 500)
        # one length at a time until none moves by 1e-7: steps shrink by a constant factor
        np.testing.assert_allclose(
            fit_unresolved_node(r, 500.0), least_squares(r, 500.0), atol=1e-5
        )


def test_noise_has_finite_lengths() -> None:
    r = reference.sampled_correlations(np.random.default_rng(0), np.eye(6), 100)
    found = fit_unresolved_node(r, 100.0)
    assert ((found >= 0) & np.isfinite(found)).all()


def test_exact_lengths_around_a_node_come_back() -> None:
    x = np.array([0.0, 0.2, 0.5, 1.5])
    r = np.exp(-np.add.outer(x, x))
    np.testing.assert_allclose(fit_unresolved_node(r, EXACT), x, atol=1e-5)  # as above
