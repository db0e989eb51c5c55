"""Belief propagation against the whole joint distribution, with values missing anywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.reference.gaussian import (
    conditional_moments,
    joint_covariance,
    log_density,
    random_case,
    random_gaussian,
    with_gaps,
)
from tests.reference.random_trees import random_tree

from latenttree.errors import DataError
from latenttree.model.gaussian import GaussianTreeModel

SEEDS = range(60)


def case(seed: int, n: int = 12) -> tuple[GaussianTreeModel, Any]:
    """A model of any kind and samples with gaps; half the time few patterns of them."""
    rng = np.random.default_rng(seed)
    model = random_case(rng, diagonal=bool(seed % 2))
    if rng.random() < 0.5:
        model = model.rerooted(int(rng.integers(model.tree.n_nodes)))
    X = model.sample(n, rng)[0]
    gaps = rng.random(X.shape) < rng.choice([0.0, 0.2, 0.6, 0.95])
    if rng.random() < 0.5:
        gaps = gaps[np.arange(n) % 3]
    return model, np.where(gaps, np.nan, X)


@pytest.mark.parametrize("seed", SEEDS)
def test_log_likelihood(seed: int) -> None:
    model, X = case(seed)
    # densities of a dozen coordinates: rounding of both sides, relative and absolute
    np.testing.assert_allclose(model.log_likelihood(X), log_density(model, X), rtol=1e-9, atol=1e-8)


@pytest.mark.parametrize("seed", SEEDS)
def test_posteriors_and_imputation(seed: int) -> None:
    model, X = case(seed)
    width, at = X.shape[1], model.hidden_offsets
    means, covariances = model.posteriors(X, covariances=True)
    assert covariances is not None
    filled, variances = model.impute(X), model.imputed_variances(X)
    deviation = np.sqrt(np.diag(joint_covariance(model)[1]))[:width]
    for i, x in enumerate(X):
        mean, spread = conditional_moments(model, x)
        np.testing.assert_allclose(filled[i] / deviation, mean[:width] / deviation, atol=1e-8)
        np.testing.assert_allclose(means[i], mean[width:], atol=1e-8)
        expected = np.diag(spread)[:width] / deviation**2
        np.testing.assert_allclose(variances[i] / deviation**2, expected, atol=1e-8)
        for j in range(model.tree.n_hidden):
            here = slice(width + at[j], width + at[j + 1])
            np.testing.assert_allclose(covariances[i, j], spread[here, here], atol=1e-8)
    assert np.array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])


def test_nothing_known() -> None:
    model, X = case(5)
    X = np.full_like(X, np.nan)
    np.testing.assert_allclose(model.log_likelihood(X), 0, atol=1e-12)
    observed = np.concatenate(model.means[: model.tree.n_observed])
    np.testing.assert_allclose(model.impute(X), np.tile(observed, (len(X), 1)))


def test_threads_blocks_and_order_of_samples_change_nothing() -> None:
    rng = np.random.default_rng(0)
    model = random_case(rng, k=2, p=8)
    X = with_gaps(rng, model.sample(10_000, rng)[0], 0.3)
    one, two = model.log_likelihood(X), model.log_likelihood(X, n_jobs=2)
    assert np.array_equal(one, two)
    assert np.array_equal(model.posterior_means(X), model.posterior_means(X, n_jobs=2))
    order = rng.permutation(len(X))
    np.testing.assert_allclose(model.log_likelihood(X[order]), one[order], rtol=1e-12, atol=1e-11)


def test_extreme_scales() -> None:
    """Columns in units from 1e-12 to 1e12: densities shift by the logarithm, nothing else."""
    rng = np.random.default_rng(1)
    tree = random_tree(rng, 9)
    model = random_gaussian(rng, tree, np.ones(tree.n_nodes, dtype=np.int64))
    X = with_gaps(rng, model.sample(50, rng)[0], 0.2)
    unit = 10.0 ** np.linspace(-12, 12, 9)
    parents = model.parents.tolist()
    every = [*unit.tolist(), *[1.0] * tree.n_hidden]
    other = GaussianTreeModel(
        tree,
        model.root,
        tuple(m * u for m, u in zip(model.means, every, strict=True)),
        tuple(
            a * every[v] / (every[parents[v]] if parents[v] >= 0 else 1.0)
            for v, a in enumerate(model.loadings)
        ),
        tuple(a * u**2 for a, u in zip(model.noise, every, strict=True)),
    )
    shift = (~np.isnan(X)) @ np.log(unit)
    expected = model.log_likelihood(X) - shift
    np.testing.assert_allclose(other.log_likelihood(X * unit), expected, rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(other.impute(X * unit), model.impute(X) * unit, rtol=1e-9)


def test_samples_have_the_moments_of_the_model() -> None:
    rng = np.random.default_rng(2)
    model = random_case(rng, k=2, p=5)
    n = 200_000
    X, hidden = model.sample(n, rng)
    mean, covariance = joint_covariance(model)
    deviation = np.sqrt(np.diag(covariance))
    z = (np.hstack([X, hidden]) - mean) / deviation
    # entries have deviation at most sqrt(2 / n) = 0.0032; six of them
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=0.02)
    np.testing.assert_allclose(z.T @ z / n, covariance / np.outer(deviation, deviation), atol=0.02)


def test_bic_is_by_weight() -> None:
    model, X = case(7)
    weights = np.arange(len(X), dtype=np.float64)
    repeated = X[np.repeat(np.arange(len(X)), weights.astype(int))]
    np.testing.assert_allclose(model.bic(X, weights), model.bic(repeated), rtol=1e-12)


def test_wrong_samples_are_refused() -> None:
    model, X = case(3)
    with pytest.raises(DataError, match="coordinates; pass") as wrong_width:
        model.log_likelihood(X[:, :-1])
    assert wrong_width.value.value == (len(X), X.shape[1] - 1)
    X[1, 0] = np.inf
    with pytest.raises(DataError, match="row 1, column 0 is inf") as infinite:
        model.impute(X)
    assert (infinite.value.place.row, infinite.value.place.column) == (1, "0")
    assert infinite.value.value == np.inf
