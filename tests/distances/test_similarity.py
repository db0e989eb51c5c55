"""Similarities: signed correlations of a distance matrix, and how noisy they are."""

from __future__ import annotations

import numpy as np
import pytest
from tests.reference.joining import with_samples
from tests.reference.random_trees import random_tree

from latenttree.data import as_table
from latenttree.distances.correlations import MIN_EFFECTIVE_SAMPLES
from latenttree.distances.estimate import Distances, estimate_distances
from latenttree.distances.similarity import (
    COPY_SAMPLES,
    EXACT,
    LONGEST,
    Similarity,
    component,
    estimated_similarity,
    mark_copies,
    similarity_from_distances,
    similarity_from_matrix,
)

# exp and log of numbers near 1, in float64: a few units in the last place
ROUNDING = 1e-12


def distances(seed: int, p: int = 20) -> np.ndarray:
    return random_tree(np.random.default_rng(seed), p).path_lengths()


def test_similarity_is_the_exponential_of_the_distance() -> None:
    d = distances(0)
    found = similarity_from_distances(d)
    np.testing.assert_allclose(found.rho, np.exp(-d), rtol=ROUNDING)
    assert found.distance_scale == 1
    assert len(found.mst) == len(d) - 1


def test_similarities_multiply_along_the_tree() -> None:
    """x1 lies between x0 and x2, so rho(0, 2) = rho(0, 1) rho(1, 2)."""
    found = similarity_from_distances(np.array([[0, 1, 3], [1, 0, 2], [3, 2, 0.0]]))
    np.testing.assert_allclose(found.rho[0, 2], found.rho[0, 1] * found.rho[1, 2], rtol=ROUNDING)


def test_without_errors_distances_are_exact() -> None:
    d = distances(1)
    assert similarity_from_distances(d).exact
    assert similarity_from_distances(d).n_effective == EXACT
    assert not similarity_from_distances(d, np.full_like(d, 1e-6)).exact


@pytest.mark.parametrize("n", [50.0, 5000.0])
def test_effective_samples_come_back_from_standard_errors(n: float) -> None:
    d = distances(2)
    rho = np.exp(-d)
    errors = (1 - rho**2) / np.sqrt(n) / rho
    # float64 throughout, and the median of equal numbers
    assert similarity_from_distances(d, errors).n_effective == pytest.approx(n, rel=1e-9)


# ---- estimated distances -------------------------------------------------------------


def estimated(determinants: np.ndarray, n_directions: int, n: int = 1000) -> Distances:
    errors = np.zeros_like(determinants)
    return Distances(determinants, errors, n_directions, n)


@pytest.mark.parametrize("n_directions", [1, 2, 5])
@pytest.mark.parametrize("seed", range(3))
def test_orientation_makes_the_spanning_tree_positive(seed: int, n_directions: int) -> None:
    """Signs that come from variables, as all do in a tree, vanish altogether."""
    d = distances(seed)
    flip = np.random.default_rng(seed).choice([-1, 1], size=len(d))
    found = estimated_similarity(estimated(np.outer(flip, flip) * np.exp(-d), n_directions))
    # the geometric mean of `n_directions` canonical correlations, and as many times the samples
    np.testing.assert_allclose(found.rho, np.exp(-d / n_directions), rtol=ROUNDING)
    assert (found.n_effective, found.distance_scale) == (1000 * n_directions, n_directions)
    np.testing.assert_array_equal(found.mst, similarity_from_distances(d).mst)


def test_a_sign_that_disagrees_stays_negative() -> None:
    """Signs of noise do not come from variables; the spanning tree 0 - 1 - 2 alone is positive."""
    strength = np.array([[1, 0.5, 0.25], [0.5, 1, 0.5], [0.25, 0.5, 1]])
    signs = np.array([[1, -1, 1], [-1, 1, 1], [1, 1, 1]])
    rho = estimated_similarity(estimated(strength * signs, 1)).rho
    assert rho[0, 1] > 0
    assert rho[1, 2] > 0
    assert rho[0, 2] < 0


@pytest.mark.parametrize("n_directions", [1, 2])
def test_single_precision_stays_and_determinants_are_left_alone(n_directions: int) -> None:
    determinants = np.exp(-distances(4)).astype(np.float32)
    determinants[0] *= -1
    determinants[:, 0] *= -1
    before = determinants.copy()
    source = estimated_similarity(estimated(determinants, n_directions)).source
    assert source.dense.dtype == np.float32
    assert (source.dense is determinants) is (n_directions == 1)  # no copy where none is needed
    np.testing.assert_array_equal(determinants, before)


def test_errors_that_say_nothing_give_the_fewest_samples() -> None:
    d = distances(3)
    assert similarity_from_distances(d, np.full_like(d, np.inf)).n_effective == 4.0
    assert similarity_from_distances(d, np.zeros_like(d)).n_effective > 1e10


def test_infinite_distances_are_similarity_zero() -> None:
    d = np.array([[0, 1, np.inf], [1, 0, np.inf], [np.inf, np.inf, 0]])
    found = similarity_from_distances(d)
    assert found.rho[0, 2] == 0
    assert found.mst.shape == (2, 2)


def test_long_paths_are_rescaled_instead_of_vanishing() -> None:
    found = similarity_from_distances(np.array([[0, 1e5], [1e5, 0]]))
    assert found.distance_scale == pytest.approx(1e5 / LONGEST, rel=ROUNDING)
    assert found.rho[0, 1] > 0


def test_the_input_is_left_alone() -> None:
    d = distances(5)
    before = d.copy()
    similarity_from_distances(d, np.ones_like(d))
    np.testing.assert_array_equal(d, before)


def test_component_keeps_the_spanning_tree_inside_it() -> None:
    """Spanning tree 0 - 1 - 2 - 3 - 4, of which 1, 2, 3 are kept as 0, 1, 2."""
    line = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))
    part = component(with_samples(line, 100.0), np.array([1, 2, 3]))
    np.testing.assert_array_equal(part.mst, [[0, 1], [1, 2]])
    np.testing.assert_allclose(part.rho, np.exp(-line[1:4, 1:4]), rtol=ROUNDING)
    assert part.n_effective == 100.0


def test_large_kurtosis_ratios_leave_fewer_samples() -> None:
    """A pair whose fourth moment is 10 times a Gaussian's counts a tenth of the samples."""
    d = distances(6, p=3)
    kurtosis = np.full((3, 3), 10, dtype=np.float32)
    whole = with_samples(d, 1000.0)
    heavy = similarity_from_matrix(
        whole.rho, whole.n_effective, whole.distance_scale, whole.mst, kurtosis
    )
    assert whole.effective_samples(np.arange(3)) == 1000.0
    # logarithms of single precision numbers are good to 1e-7
    assert heavy.effective_samples(np.arange(3)) == pytest.approx(100.0, rel=1e-6)
    assert heavy.typical_samples == pytest.approx(100.0, rel=1e-6)
    part = component(heavy, np.array([0, 1]))
    assert part.effective_samples(np.arange(2)) == pytest.approx(100.0, rel=1e-6)


def test_samples_are_those_of_the_typical_pair() -> None:
    """Geometric mean of the kurtosis ratios of pairs: 1, 10 and 100 count as 10."""
    kurtosis = np.ones((3, 3), dtype=np.float32)
    for i, j, ratio in ((0, 1, 1), (0, 2, 10), (1, 2, 100)):
        kurtosis[i, j] = kurtosis[j, i] = ratio
    found = similarity_from_matrix(np.eye(3), 1000.0, 1.0, np.array([[0, 1], [1, 2]]), kurtosis)
    assert found.effective_samples(np.arange(3)) == pytest.approx(100.0, rel=1e-6)
    assert found.effective_samples(np.array([1])) == 1000.0
    np.testing.assert_allclose(found.mst_samples(), [1000.0, 10.0])
    few = similarity_from_matrix(np.eye(3), 10.0, 1.0, np.array([[0, 1], [1, 2]]), kurtosis)
    assert few.effective_samples(np.array([1, 2])) == MIN_EFFECTIVE_SAMPLES


def test_small_kurtosis_ratios_are_not_used() -> None:
    d = distances(7, p=4)
    det = np.exp(-d)
    for ratio, used in ((1.9, False), (2.1, True)):
        kurtosis = np.full((4, 4), ratio, dtype=np.float32)
        found = estimated_similarity(Distances(det, np.zeros_like(d), 1, 1000, kurtosis))
        assert found.source.use_kurtosis is used


# ---- copies --------------------------------------------------------------------------


def marked(X: np.ndarray) -> Similarity:
    table = as_table(X)
    return mark_copies(estimated_similarity(estimate_distances(table, 2, random_state=0)), table)


def test_copies_have_similarity_one() -> None:
    """A copy of x0 with its values exchanged, and one with a single sample changed."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (500, 3))
    near = X[:, 1].copy()
    near[7] ^= 1
    rho = marked(np.column_stack([X, 1 - X[:, 0], near])).rho
    assert rho[0, 3] == rho[3, 0] == 1
    assert 0.9 < rho[1, 4] < 1
    np.testing.assert_array_equal(np.diag(rho), 1)


@pytest.mark.parametrize(
    ("n", "copies"),
    [
        (COPY_SAMPLES - 1, False),
        (COPY_SAMPLES, True),
        (40, True),
    ],
)
def test_rare_variables_that_coincide_are_no_copies(n: int, copies: bool) -> None:
    X = np.random.default_rng(0).integers(0, 2, (4000, 4))
    X[:, 2:] = 0
    X[:n, 2:] = 1
    assert bool(marked(X).rho[2, 3] == 1) is copies
