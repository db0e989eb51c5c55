"""Neighbour joining against its definition, and exact on exact distances."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.reference import joining as reference
from tests.reference.entries import entry
from tests.reference.random_trees import SHAPES, random_tree

from latenttree.distances.similarity import EXACT
from latenttree.structure import joining
from latenttree.structure.joining import best_predictor, neighbour_joining
from latenttree.tree import Tree

log_distances = entry(joining.log_distances)

Matrix = NDArray[np.float64]

# Sums of some ten logarithms near 1 in float64 err by about 1e-14.
ROUNDING = 1e-9


def noisy_correlations(seed: int, m: int, n: int) -> Matrix:
    """Correlations of `n` Gaussian samples from a random binary tree over `m` features."""
    rng = np.random.default_rng(seed)
    edges = reference.random_binary(rng, m)
    lengths = rng.uniform(0.1, 0.8, len(edges))
    sigma = np.exp(-reference.path_lengths(m, edges, lengths))
    return reference.sampled_correlations(rng, sigma, n)


def check_join(r: Matrix, n: float, caution: float, equal_weights: bool) -> None:
    edges, lengths = neighbour_joining(r, n, caution, equal_weights)
    expected, expected_lengths = reference.neighbour_joining(r, n, caution, equal_weights)
    if caution == 0 and equal_weights:
        # of the last four features, the two pairs of siblings tie: which is first is rounding
        names = [f"x{i}" for i in range(len(r))]
        found = Tree.build(names, edges, lengths)
        assert found.same_topology(Tree.build(names, expected, expected_lengths))
        return
    assert edges.tolist() == [list(e) for e in expected]
    np.testing.assert_allclose(lengths, expected_lengths, atol=ROUNDING)


@pytest.mark.parametrize("equal_weights", [False, True])
@pytest.mark.parametrize("caution", [0.0, 1.0, 4.0])
def test_joining_agrees_with_its_definition(caution: float, equal_weights: bool) -> None:
    for seed, m in itertools.product(range(6), (2, 3, 4, 6, 9)):
        check_join(noisy_correlations(seed, m, 2000), 2000.0, caution, equal_weights)


def test_joining_noise_agrees_with_its_definition() -> None:
    """Negative and tiny correlations are lifted to half a standard error."""
    for seed in range(5):
        r = reference.sampled_correlations(np.random.default_rng(seed), np.eye(6), 100)
        check_join(r, 100.0, 1.0, False)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("equal_weights", [True, False])
def test_joining_is_exact_on_exact_distances(shape: str, equal_weights: bool) -> None:
    """A tree is determined by its path lengths, so equal path lengths are the same tree."""
    for seed in range(15):
        rng = np.random.default_rng(seed)
        tree = random_tree(rng, int(rng.integers(3, 40)), shape=shape, max_degree=6)
        d = tree.path_lengths()
        edges, lengths = neighbour_joining(np.exp(-d), EXACT, 1.0, equal_weights)
        assert len(edges) == 2 * tree.n_observed - 3
        found = reference.path_lengths(tree.n_observed, edges, lengths)
        np.testing.assert_allclose(found, d, atol=ROUNDING)


def test_equal_distances_are_a_star_with_zero_edges() -> None:
    d = 2.0 * (1 - np.eye(7))
    edges, lengths = neighbour_joining(np.exp(-d), EXACT, 1.0, True)
    pendant = (edges < 7).any(axis=1)
    np.testing.assert_allclose(lengths[pendant], 1.0, atol=ROUNDING)
    np.testing.assert_allclose(lengths[~pendant], 0.0, atol=ROUNDING)


def test_a_feature_inside_the_star_is_a_leaf_at_distance_zero() -> None:
    """1 lies between 0 and 2: 0 -1- 1 -2- 2."""
    d = np.array([[0, 1, 3], [1, 0, 2], [3, 2, 0.0]])
    _, lengths = neighbour_joining(np.exp(-d), EXACT, 1.0, True)
    np.testing.assert_allclose(lengths, [1.0, 0.0, 2.0], atol=ROUNDING)


def test_lengths_are_never_negative() -> None:
    for seed in range(20):
        r = noisy_correlations(seed, 8, 30)
        _, lengths = neighbour_joining(r, 30.0, 1.0, False)
        assert (lengths >= 0).all()
        assert np.isfinite(lengths).all()


def test_the_correlations_are_left_alone() -> None:
    r = noisy_correlations(0, 8, 100)
    before = r.copy()
    neighbour_joining(r, 100.0, 1.0, False)
    np.testing.assert_array_equal(r, before)


def test_log_distances_and_their_variances() -> None:
    r = np.array([[1.0, 0.5, -0.2], [0.5, 1.0, 0.01], [-0.2, 0.01, 1.0]])
    d, v = log_distances(r, 100.0)
    for i, j in itertools.permutations(range(3), 2):
        expected = reference.log_distance(r[i, j], 100.0)
        np.testing.assert_allclose([d[i, j], v[i, j]], expected, rtol=ROUNDING)
    np.testing.assert_array_equal(np.diag(d), 0)


@pytest.mark.parametrize(("a", "b"), [(0.9, 0.3), (0.5, 0.5), (0.1, 0.99), (1e-6, 0.2)])
def test_the_predictor_is_the_best_linear_predictor(a: float, b: float) -> None:
    np.testing.assert_allclose(best_predictor(a, b), reference.best_predictor(a, b), rtol=ROUNDING)


def test_combine_follows_a_perfect_feature() -> None:
    assert best_predictor(1.0, 0.4) == (1.0, 0.0, 1.0)
    assert best_predictor(0.4, 1.0) == (0.0, 1.0, 1.0)


def test_predictor_beats_any_other_combination() -> None:
    """The claim behind the name: no other mix of two features correlates more with the node."""
    a, b = 0.7, 0.4
    _, _, best = best_predictor(a, b)
    for angle in np.linspace(0, np.pi / 2, 50):
        w = np.array([np.cos(angle), np.sin(angle)])
        norm = np.sqrt(w @ np.array([[1, a * b], [a * b, 1]]) @ w)
        assert (w @ [a, b]) / norm <= best + ROUNDING
