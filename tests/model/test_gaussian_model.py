"""Gaussian trees as objects: moments, rootings, gauge, storage, number of parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.reference.gaussian import canonical, joint_covariance, random_case, random_gaussian
from tests.reference.random_trees import random_tree

from latenttree.model.gaussian import GaussianTreeModel
from latenttree.model.gaussian.gauge import canonical_gauge, posterior_covariances, turned
from latenttree.tree import Tree

SEEDS = range(40)


def scaled(model: GaussianTreeModel, covariance: Any) -> Any:
    """A covariance of all nodes in units of the model's deviations."""
    deviation = np.sqrt(np.diag(joint_covariance(model)[1]))
    return covariance / np.outer(deviation, deviation)


def star(k: int = 1, p: int = 4, d: int = 1) -> Tree:
    return Tree.build([f"x{i}" for i in range(p)], [(i, p) for i in range(p)], np.ones(p))


@pytest.mark.parametrize("seed", SEEDS)
def test_covariances_are_those_of_the_joint(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = random_case(rng, diagonal=bool(seed % 2))
    joint = joint_covariance(model)[1]
    np.testing.assert_allclose(
        scaled(model, model.covariance()), scaled(model, joint), atol=1e-12, rtol=0
    )
    at = np.concatenate([[0], np.cumsum(model.dims)])
    a, b = rng.integers(model.tree.n_nodes, size=2).tolist()
    rows, columns = slice(at[a], at[a + 1]), slice(at[b], at[b + 1])
    np.testing.assert_allclose(model.cross_covariance(a, b), joint[rows, columns], rtol=1e-9)
    np.testing.assert_allclose(model.variances(a), np.diag(joint[rows, rows]), rtol=1e-9)
    expected = joint[rows, columns] @ np.linalg.inv(joint[columns, columns])
    size = float(np.abs(expected).max())
    np.testing.assert_allclose(model.conditional(a, b), expected, rtol=1e-7, atol=1e-7 * size)


@pytest.mark.parametrize("seed", SEEDS)
def test_any_root_is_the_same_distribution(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = random_case(rng)
    other = model.rerooted(int(rng.integers(model.tree.n_nodes)))
    np.testing.assert_allclose(
        scaled(model, other.covariance()), scaled(model, model.covariance()), atol=1e-10, rtol=0
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_canonical_form(seed: int) -> None:
    """Hidden nodes of covariance I; one form for all gauges and rootings of a distribution."""
    rng = np.random.default_rng(seed)
    model = random_case(rng, p=int(rng.integers(3, 9)))
    first = canonical(model)
    hidden = range(model.tree.n_observed, model.tree.n_nodes)
    for v in hidden:
        k = int(first.dims[v])
        np.testing.assert_allclose(first.marginal_covariance(v), np.eye(k), atol=1e-9)
    # other units of the hidden nodes, another root: the same canonical arrays
    maps = {
        v: rng.standard_normal((int(model.dims[v]),) * 2) + 2 * np.eye(int(model.dims[v]))
        for v in hidden
    }
    other = canonical(turned(model, maps).rerooted(int(rng.integers(model.tree.n_nodes))))
    observed = range(model.tree.n_observed)
    for name in ("means", "loadings", "noise"):
        for a, b in zip(getattr(first, name), getattr(other, name), strict=True):
            size = float(np.abs(b).max(initial=0))
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-6 * size)
    np.testing.assert_allclose(
        first.covariance(observed), model.covariance(observed), rtol=1e-8, atol=1e-300
    )


def test_axes_are_ordered_by_what_is_known_of_them() -> None:
    rng = np.random.default_rng(3)
    model = random_case(rng, k=3, p=7)
    for spread in posterior_covariances(canonical_gauge(model)).values():
        variances = np.diag(spread)
        np.testing.assert_allclose(spread, np.diag(variances), atol=1e-9)
        assert (np.diff(variances) > 0).all()


def test_sign_of_a_scalar_hidden_node() -> None:
    """Two of three leaves load negatively; the sum of correlations becomes positive."""
    tree = star(p=3)
    loadings = [np.array([[x]]) for x in (-0.9, -0.5, 0.3)] + [np.empty((1, 0))]
    noise = [np.array([[1 - a[0, 0] ** 2]]) for a in loadings[:3]] + [np.eye(1)]
    model = GaussianTreeModel(tree, 3, (np.zeros(1),) * 4, tuple(loadings), tuple(noise))
    assert [float(a[0, 0]) for a in canonical(model).loadings[:3]] == [0.9, 0.5, -0.3]


def test_posterior_covariances_are_those_of_the_joint() -> None:
    for seed in SEEDS:
        model = random_case(np.random.default_rng(seed))
        joint, width = joint_covariance(model)[1], int(model.offsets[-1])
        seen = joint[:width, :width]
        left = joint[width:, width:] - joint[width:, :width] @ np.linalg.solve(
            seen, joint[:width, width:]
        )
        at = model.hidden_offsets
        for i, spread in enumerate(posterior_covariances(model).values()):
            here = slice(at[i], at[i + 1])
            np.testing.assert_allclose(spread, left[here, here], atol=1e-7)


def test_canonical_keeps_the_numbering_of_the_canonical_tree() -> None:
    rng = np.random.default_rng(0)
    tree = random_tree(rng, 8)
    order = tree.n_observed + rng.permutation(tree.n_hidden)
    number = np.concatenate([np.arange(tree.n_observed), order])
    shuffled = Tree(tree.names, tree.n_observed, number[tree.edges], tree.lengths)
    dims = np.ones(tree.n_nodes, dtype=np.int64)
    model = random_gaussian(rng, shuffled, dims)
    assert np.array_equal(canonical(model).tree.edges, tree.edges)


def test_storage_round_trip() -> None:
    for seed in SEEDS:
        model = random_case(np.random.default_rng(seed), diagonal=bool(seed % 2))
        again = GaussianTreeModel.from_arrays(model.tree, model.to_arrays())
        assert again.root == model.root
        for name in ("means", "loadings", "noise"):
            for a, b in zip(getattr(again, name), getattr(model, name), strict=True):
                assert a.shape == b.shape
                assert np.array_equal(a, b)


def test_number_of_parameters() -> None:
    """k = 1: a mean and a variance for each variable, a correlation for each edge."""
    rng = np.random.default_rng(0)
    for p in (1, 2, 3, 9):
        tree = random_tree(rng, p)
        model = random_gaussian(rng, tree, np.ones(tree.n_nodes, dtype=np.int64))
        assert model.n_parameters == 2 * p + tree.n_edges
    # factor analysis with k = 2 and 7 variables: 7 means, 7 noises, 7 x 2 loadings less a turn
    model = random_gaussian(rng, star(p=7), np.array([1] * 7 + [2]))
    assert model.n_parameters == 7 + 7 + 14 - 1
    # no more than there are means and covariances: 3 + 6
    model = random_gaussian(rng, star(p=3), np.array([1] * 3 + [2]))
    assert model.n_parameters == 9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"means": (np.zeros(1),) * 2}, "2 means for 4 nodes"),
        ({"loadings": (np.ones((1, 2)),) * 3 + (np.empty((1, 0)),)}, "loadings of shape"),
        ({"noise": (-np.eye(1),) * 4}, "not a covariance"),
        ({"noise": (np.ones(1),) * 4}, r"noise of 'h0' has shape \(1,\)"),
        ({"means": (np.array([np.nan]),) * 4}, "not finite"),
    ],
)
def test_wrong_arrays_are_refused(change: dict[str, Any], message: str) -> None:
    fine: dict[str, Any] = {
        "means": (np.zeros(1),) * 4,
        "loadings": (np.ones((1, 1)) / 2,) * 3 + (np.empty((1, 0)),),
        "noise": (np.eye(1),) * 4,
    }
    GaussianTreeModel(star(p=3), 3, **fine)
    with pytest.raises(ValueError, match=message):
        GaussianTreeModel(star(p=3), 3, **(fine | change))
