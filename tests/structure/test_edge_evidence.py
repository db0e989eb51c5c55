"""Tests of single edges: lengths, errors and dependence, calibrated on draws."""

from __future__ import annotations

import numpy as np
import pytest
from tests.reference import joining as reference
from tests.reference.adjacency import builder_of
from tests.reference.random_trees import random_tree

from latenttree.data import as_table
from latenttree.distances.estimate import estimate_distances
from latenttree.distances.similarity import estimated_similarity, similarity_from_matrix
from latenttree.structure.builder import TreeBuilder
from latenttree.structure.edge_evidence import EdgeTester, EdgeTests, edge_tests

QUARTET = np.array([[0, 4], [1, 4], [2, 5], [3, 5], [4, 5]])


def quartet(*lengths: float) -> TreeBuilder:
    """
    0           2
     \\         /
      4 ----- 5
     /         \\
    1           3
    """
    return TreeBuilder(4, QUARTET, lengths or (1.0, 1.0, 1.0, 1.0, 1.0))


def sampled_tests(middle: float, n: int, draws: int) -> list[EdgeTests]:
    """Edge tests of a quartet, each from `n` Gaussian samples."""
    rng = np.random.default_rng(0)
    lengths = (0.5, 0.4, 0.6, 0.3, middle)
    sigma = np.exp(-reference.path_lengths(4, QUARTET, lengths))
    tree = quartet(*lengths)
    found = []
    for _ in range(draws):
        r = reference.sampled_correlations(rng, sigma, n)
        found.append(edge_tests(tree, similarity_from_matrix(r, float(n))))
    return found


def test_lengths_and_standard_errors_are_calibrated() -> None:
    """Over 500 draws of 5,000 samples z = (estimate - truth) / error is standard normal: its
    mean has a standard error of 0.045, its deviation one of 0.032. Four of them, plus 0.05
    for a bias of the order 1 / sqrt(n); a right estimator fails once in 10,000 seeds."""
    tests = sampled_tests(0.3, 5000, 500)
    for edge, truth in ((4, 0.3), (0, 0.5), (3, 0.3)):
        z = np.array([(t.length[edge] - truth) / t.standard_error[edge] for t in tests])
        assert abs(z.mean()) < 4 * 0.045 + 0.05
        assert abs(z.std() - 1) < 4 * 0.032 + 0.05


def test_an_edge_that_is_not_there_looks_so() -> None:
    """Length zero, held at or above zero: z is half a normal, so under 2.3% exceed 2. Of 500
    draws more than 25 (5%) are 4 standard deviations above."""
    tests = sampled_tests(0.0, 5000, 500)
    assert sum(t.length[4] > 2 * t.standard_error[4] for t in tests) <= 25


def test_every_edge_is_tested_once() -> None:
    tree = random_tree(np.random.default_rng(0), 12)
    tests = edge_tests(builder_of(tree), reference.with_samples(tree.path_lengths(), 1e6))
    np.testing.assert_array_equal(tests.edge, np.arange(tree.n_edges))
    np.testing.assert_array_equal(tests.ends, tree.edges)
    # exact correlations, but each fit ends when a step gains under 1e-3 at n = 1e6
    np.testing.assert_allclose(tests.length, tree.lengths, atol=5e-3)


def test_an_edge_between_observed_nodes_is_not_tested() -> None:
    """0 - 1 - (hidden 4) - 2, 3"""
    edges = np.array([[0, 1], [1, 4], [2, 4], [3, 4]])
    tree = TreeBuilder(4, edges, np.full(4, 0.5))
    whole = similarity_from_matrix(np.exp(-reference.path_lengths(4, edges, np.full(4, 0.5))), 1e4)
    assert len(EdgeTester(tree, whole).test(np.array([0])).edge) == 0
    assert edge_tests(tree, whole).ends.tolist() == [[1, 4], [2, 4], [3, 4]]


def test_quartets_and_triplets_are_the_likeliest_lengths() -> None:
    """Against a general optimiser, and errors against the information of the slow formula."""
    rng = np.random.default_rng(1)
    for edges, e in ((QUARTET, 4), (reference.random_binary(rng, 3), 0)):
        m = len(edges) // 2 + 2
        lengths = rng.uniform(0.3, 0.8, len(edges))
        sigma = np.exp(-reference.path_lengths(m, edges, lengths))
        r = reference.sampled_correlations(rng, sigma, 3000)
        tests = edge_tests(TreeBuilder(m, edges, lengths), similarity_from_matrix(r, 3000.0))
        (row,) = np.flatnonzero((tests.ends == edges[e]).all(axis=1))
        best, _ = reference.fit_likelihood(r, 3000.0, edges)
        # fits end when no length moves by 1e-3, and converge faster than that
        assert tests.length[row] == pytest.approx(best[e], abs=2e-3)
        information = reference.information(3000.0, edges, m, best)
        # the information is that of the step before the last
        expected = np.sqrt(np.linalg.inv(information)[e, e])
        assert tests.standard_error[row] == pytest.approx(expected, rel=0.02)


def test_dependence_is_the_correlation_of_the_two_sides() -> None:
    """Sides that share nothing rarely reach 1, the best of 2 x 2 pairs of either sign: a normal
    feature beyond 2.04 errors above zero (2%), or one of four pairs beyond 1.3 times that (3%).
    Over 300 draws 30 is five standard deviations above the mean of 13 or so."""
    rng = np.random.default_rng(0)
    half = np.array([[1, np.exp(-1.0)], [np.exp(-1.0), 1]])
    sigma = np.kron(np.eye(2), half)
    dependence = []
    for _ in range(300):
        r = reference.sampled_correlations(rng, sigma, 1000)
        tests = edge_tests(quartet(0.5, 0.5, 0.5, 0.5, 3.0), similarity_from_matrix(r, 1000.0))
        dependence.append(tests.dependence[4])
    assert np.sum(np.array(dependence) > 1) <= 30
    assert min(t.dependence[4] for t in sampled_tests(0.3, 5000, 20)) > 5


def test_threads_do_not_matter() -> None:
    tree = random_tree(np.random.default_rng(3), 150)
    whole = reference.with_samples(tree.path_lengths(), 1e4)
    one, two = (edge_tests(builder_of(tree), whole, n_jobs) for n_jobs in (1, 2))
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)


# ---- rare binary leaves --------------------------------------------------------------


def rare_star(rng: np.random.Generator, n: int) -> np.ndarray:
    """Four leaves of one hidden event of 1 in 100: each is seen in 60% of it, and rarely else."""
    event = rng.random((n, 1)) < 0.01
    return (rng.random((n, 4)) < np.where(event, 0.6, 0.002)).astype(np.int64)


@pytest.fixture(scope="module")
def rare_tests() -> tuple[list[float], list[float]]:
    """z-scores of an edge of length zero between rare leaves, with kurtosis ratios and without."""
    rng = np.random.default_rng(0)
    counted, naive = [], []
    for _ in range(300):
        found = estimate_distances(as_table(rare_star(rng, 4000)), 2, n_jobs=1)
        whole = estimated_similarity(found)
        assert whole.source.use_kurtosis
        tree = quartet(0.5, 0.5, 0.5, 0.5, 0.1)
        plain = similarity_from_matrix(
            whole.rho, whole.n_effective, whole.distance_scale, whole.mst
        )
        for scores, similarity in ((counted, whole), (naive, plain)):
            tests = edge_tests(tree, similarity)
            scores.append(float(tests.length[4] / tests.standard_error[4]))
    return counted, naive


def test_an_edge_that_is_not_there_looks_so_between_rare_leaves(
    rare_tests: tuple[list[float], list[float]],
) -> None:
    """As for Gaussian leaves: 2.3% of z beyond 2, more than 5.5% of 300 is 4 deviations above."""
    assert np.mean(np.array(rare_tests[0]) > 2) < 0.055


def test_without_kurtosis_ratios_rare_leaves_would_make_edges(
    rare_tests: tuple[list[float], list[float]],
) -> None:
    """The purpose of kurtosis ratios: counted as Gaussian, one in ten and more is beyond 2."""
    assert np.mean(np.array(rare_tests[1]) > 2) > 0.1
