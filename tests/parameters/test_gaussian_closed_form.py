"""Parameters from second moments: exact on exact moments, consistent on samples."""

from __future__ import annotations

import numpy as np
import pytest
from tests.reference.gaussian import canonical, joint_covariance, random_gaussian, with_gaps
from tests.reference.random_trees import random_tree

from latenttree.errors import DataError
from latenttree.model.gaussian import GaussianTreeModel
from latenttree.parameters.gaussian.closed_form import closed_form
from latenttree.parameters.gaussian.moments import PairMoments, pair_moments, standardisation
from latenttree.parameters.gaussian.reduction import reduced_moments
from latenttree.tree import Tree

SHAPES = ("uniform", "caterpillar", "star", "balanced")


def exact_moments(model: GaussianTreeModel) -> PairMoments:
    width = int(model.offsets[-1])
    mean, covariance = joint_covariance(model)
    return PairMoments.of(mean[:width], covariance[:width, :width], 1000.0)


def error(model: GaussianTreeModel, truth: GaussianTreeModel) -> float:
    """Largest error of a covariance of observed coordinates, in units of deviations."""
    observed = range(truth.tree.n_observed)
    covariance = truth.covariance(observed)
    deviation = np.sqrt(np.diag(covariance))
    return float(
        np.abs((model.covariance(observed) - covariance) / np.outer(deviation, deviation)).max()
    )


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("seed", range(40))
def test_exact_on_exact_moments(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    p = int(rng.integers(3, 40))
    tree = random_tree(
        rng,
        p,
        shape=SHAPES[seed % 4],
        max_degree=int(rng.integers(3, 8)),
        internal_observed_fraction=float(rng.choice([0.0, 0.3])),
    )
    dims = np.where(np.arange(tree.n_nodes) < p, rng.integers(k, k + 3, tree.n_nodes), k)
    truth = random_gaussian(rng, tree, dims)
    found = closed_form(tree, exact_moments(truth), truth.offsets, k)
    assert error(found.model, truth) < 1e-10
    # the loadings themselves, in the canonical gauge
    for a, b in zip(canonical(found.model).loadings, canonical(truth).loadings, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-8 * float(np.abs(b).max(initial=1e-300)))


def test_scalars_with_two_hidden_dimensions() -> None:
    """Factor analysis: no leaf has k coordinates, but three triplets of leaves have."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        tree = random_tree(rng, 8, shape="star")
        truth = random_gaussian(rng, tree, np.array([1] * 8 + [2]))
        assert error(closed_form(tree, exact_moments(truth), truth.offsets, 2).model, truth) < 1e-8


def test_the_formula_of_three() -> None:
    """rho_ah = sqrt(rho_ab rho_ac / rho_bc), signs as the correlations have them."""
    tree = Tree.build(["a", "b", "c"], [(0, 3), (1, 3), (2, 3)], [1, 1, 1])
    correlation = np.array([[1, -0.42, 0.56], [-0.42, 1, -0.48], [0.56, -0.48, 1]])
    moments = PairMoments.of(np.zeros(3), correlation, 100.0)
    found = canonical(closed_form(tree, moments, np.arange(4), 1).model)
    loadings = [float(found.loadings[v][0, 0]) for v in range(3)]
    np.testing.assert_allclose(loadings, [0.7, -0.6, 0.8], rtol=1e-12)


def test_too_few_coordinates_leave_directions_without_loadings() -> None:
    rng = np.random.default_rng(0)
    tree = random_tree(rng, 3)
    truth = random_gaussian(rng, tree, np.ones(4, dtype=np.int64))
    found = closed_form(tree, exact_moments(truth), truth.offsets, 2).model
    assert error(found, truth) < 1e-10
    assert all(np.abs(found.loadings[v]).min() < 1e-12 for v in range(3))


def test_correlations_that_no_tree_has_still_give_a_model() -> None:
    """Noise: any correlations at all, even of the wrong signs, give a valid model."""
    for seed in range(50):
        rng = np.random.default_rng(seed)
        p = int(rng.integers(3, 12))
        tree = random_tree(rng, p, internal_observed_fraction=0.2)
        X = rng.standard_normal((6, p))
        k = int(rng.integers(1, 3))
        model = closed_form(tree, pair_moments(with_gaps(rng, X, 0.1)), np.arange(p + 1), k).model
        for v in range(tree.n_nodes):
            assert np.linalg.eigvalsh(model.noise[v]).min() > 0
            share = (
                np.linalg.eigvalsh(model.noise[v])[0] / np.diag(model.marginal_covariance(v)).max()
            )
            assert share > 1e-7


# ---- moments from samples -------------------------------------------------------------


def test_pairwise_available_moments() -> None:
    rng = np.random.default_rng(0)
    X = with_gaps(rng, rng.standard_normal((60, 5)) @ rng.standard_normal((5, 5)) + 3, 0.3)
    weights = rng.integers(0, 4, 60).astype(np.float64)
    moments = pair_moments(X, weights)
    repeated = X[np.repeat(np.arange(60), weights.astype(int))]
    for i in range(5):
        for j in range(5):
            both = ~np.isnan(repeated[:, i]) & ~np.isnan(repeated[:, j])
            assert moments.counts[i, j] == both.sum()
            a, b = ((repeated[:, c] - np.nanmean(repeated[:, c])) for c in (i, j))
            expected = (a * b)[both].mean() / np.nanstd(repeated[:, i]) / np.nanstd(repeated[:, j])
            np.testing.assert_allclose(moments.correlation[i, j], expected, rtol=1e-10)


def test_standardisation_of_values_far_from_zero() -> None:
    rng = np.random.default_rng(0)
    z = rng.standard_normal(1000)
    X = np.column_stack([1e9 + 1e-3 * z, 1e-12 * z, 1e300 * z / 10])
    mean, deviation = standardisation(X)
    np.testing.assert_allclose(deviation, z.std() * np.array([1e-3, 1e-12, 1e299]), rtol=1e-3)
    np.testing.assert_allclose(mean[1:], z.mean() * np.array([1e-12, 1e299]), rtol=1e-9)


def test_columns_without_variation_are_refused() -> None:
    with pytest.raises(DataError, match="column 1 has one value in all rows"):
        standardisation(np.column_stack([np.arange(4.0), np.ones(4)]))
    with pytest.raises(DataError, match="column 0 has no values"):
        standardisation(np.column_stack([np.full(4, np.nan), np.arange(4.0)]))


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_wide_leaves_by_their_directions(share: float) -> None:
    """Six leaves of 40 coordinates: mean error of covariances about that of the samples' own."""
    rng = np.random.default_rng(4)
    tree = random_tree(rng, 6)
    dims = np.where(np.arange(tree.n_nodes) < 6, 40, 2)
    truth = random_gaussian(rng, tree, dims, diagonal=True)
    X = with_gaps(rng, truth.sample(4000, rng)[0], share)
    units = standardisation(X)
    moments, offsets, wide = reduced_moments(tree, X, truth.offsets, 2, None, units)
    assert moments.correlation.shape == (12, 12)
    found = closed_form(tree, moments, offsets, 2, wide).model
    expected = truth.covariance(range(6)) / np.outer(units[1], units[1])
    near = found.covariance(range(6)) / np.outer(units[1], units[1])
    # a sample correlation has deviation 1 / sqrt(4000 (1 - share)) = 0.016 or 0.019
    assert np.sqrt(((near - expected) ** 2).mean()) < 0.016
