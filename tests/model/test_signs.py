"""Signs of edges and the order of states, against correlations of the whole distribution."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tests.reference.random_trees import random_tree

from latenttree.evaluation.datasets import make_latent_tree
from latenttree.model.emissions import Gaussian, Poisson
from latenttree.model.gaussian import GaussianTreeModel
from latenttree.model.signs import edge_signs, ordered_variables, state_orders, state_scores
from latenttree.model.tree_model import TreeModel
from latenttree.tree import Tree


def random_model(seed: int, p: int, n_states: int, dim: int) -> TreeModel:
    """Random conditional distributions on a random tree; observed nodes inside it too."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, p, internal_observed_fraction=0.2)
    root = tree.n_observed if tree.n_hidden else 0
    dims = [dim if v < p else n_states for v in range(tree.n_nodes)]
    parents = tree.rooted(root).parents.tolist()
    cpts = [
        rng.dirichlet(np.ones(d), 1 if u < 0 else dims[u]).T
        for d, u in zip(dims, parents, strict=True)
    ]
    return TreeModel(tree, root, tuple(cpts))


def model_correlations(model: TreeModel) -> np.ndarray:
    """Correlations of the ranks of observed nodes, by matrices of joint probabilities."""
    p = model.tree.n_observed
    found = np.eye(p)
    for a in range(p):
        for b in range(a):
            joint, path = np.diag(model.marginals[a]), model.tree.path(a, b)
            for u, v in itertools.pairwise(path):
                joint = joint @ model.rerooted(u).conditional(v, u).T
            x, y = np.arange(joint.shape[0]), np.arange(joint.shape[1])
            rows, columns = joint.sum(1), joint.sum(0)
            shared = x @ joint @ y - (rows @ x) * (columns @ y)
            spread = np.sqrt(
                (rows @ x**2 - (rows @ x) ** 2) * (columns @ y**2 - (columns @ y) ** 2)
            )
            found[a, b] = found[b, a] = shared / spread
    return found


@pytest.mark.parametrize("seed", range(10))
def test_with_two_states_the_sign_of_a_path_is_that_of_the_correlation(seed: int) -> None:
    model = random_model(seed, 8, 2, 2)
    signs = model.tree.with_evidence(signs=edge_signs(model)).path_signs()
    expected = model_correlations(model)
    sure = np.abs(expected) > 1e-8  # of the size of rounding
    np.testing.assert_array_equal(signs[sure], np.sign(expected)[sure])


@pytest.mark.parametrize("seed", range(5))
def test_ordinal_leaves_of_hidden_nodes_with_two_states(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 8)
    parents = tree.rooted(8).parents.tolist()
    dims = [4 if v < 8 else 2 for v in range(tree.n_nodes)]
    cpts = [
        rng.dirichlet(np.ones(d), 1 if u < 0 else dims[u]).T
        for d, u in zip(dims, parents, strict=True)
    ]
    model = TreeModel(tree, 8, tuple(cpts))
    signs = tree.with_evidence(signs=edge_signs(model, np.ones(8, dtype=bool))).path_signs()
    expected = model_correlations(model)
    sure = np.abs(expected) > 1e-8
    np.testing.assert_array_equal(signs[sure], np.sign(expected)[sure])


def test_unordered_categories_have_no_sign_and_states_fall_back_to_probability() -> None:
    model = random_model(0, 8, 3, 3)
    assert not edge_signs(model).any()
    for v, order in state_orders(model).items():
        assert (np.diff(model.marginals[v][order]) <= 0).all()
    assert ordered_variables(["ordinal", "categorical", "categorical"], [4, 2, 3]).tolist() == [
        True,
        True,
        False,
    ]


def test_a_higher_state_has_more_of_the_strongest_neighbour() -> None:
    #  a, b, c are leaves of h0; b is the strongest
    tree = Tree.build("abc", [(0, 3), (1, 3), (2, 3)], np.ones(3))
    weak = np.array([[0.5, 0.4, 0.45], [0.5, 0.6, 0.55]])
    strong = np.array([[0.1, 0.9, 0.5], [0.9, 0.1, 0.5]])
    reversed_ = strong[::-1] * 0.5 + 0.25
    model = TreeModel(tree, 3, (weak, strong, reversed_, np.array([[0.5], [0.3], [0.2]])))
    assert state_orders(model)[3].tolist() == [1, 2, 0]
    ordered = model.relabelled(state_orders(model))
    assert state_orders(ordered)[3].tolist() == [0, 1, 2]
    assert edge_signs(ordered).tolist() == [-1, 1, -1]
    np.testing.assert_allclose(state_scores(ordered)[3], [0.1, 0.5, 0.9])


@pytest.mark.parametrize("seed", range(5))
def test_signs_and_order_do_not_depend_on_the_labels_of_states(seed: int) -> None:
    model = random_model(seed, 9, 3, 2)
    rng = np.random.default_rng(seed)
    p = model.tree.n_observed
    turned = model.relabelled({v: rng.permutation(3) for v in range(p, model.tree.n_nodes)})
    np.testing.assert_array_equal(edge_signs(turned), edge_signs(model))
    one, two = (m.relabelled(state_orders(m)) for m in (model, turned))
    for x, y in zip(one.cpts, two.cpts, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-12)  # the same numbers in another order


def test_numbers_have_the_sign_of_their_means() -> None:
    tree = Tree.build("abcd", [(0, 4), (1, 4), (2, 4), (3, 4)], np.ones(4))
    ones, column = np.ones((1, 2)), np.array([[0.5], [0.5]])
    unit = np.zeros(1), np.ones(1)
    emissions = {
        0: Gaussian(np.array([[3.0, -3.0]]), np.ones((1, 2)), *unit),
        1: Gaussian(np.array([[-1.0, 1.0]]), np.ones((1, 2)), *unit),
        2: Poisson(np.array([[5.0, 2.0]])),
        3: Gaussian(np.zeros((2, 2)), np.ones((2, 2)), np.zeros(2), np.ones(2), "dense"),
    }
    model = TreeModel(tree, 4, (ones, ones, ones, ones, column), emissions)
    assert edge_signs(model).tolist() == [1, -1, 1, 0]
    assert state_orders(model)[4].tolist() == [1, 0]


@pytest.mark.parametrize("n_dims", [1, 2])
def test_gaussian_trees(n_dims: int) -> None:
    agreeing = []
    for seed in range(5):
        data = make_latent_tree(9, n_dims, n_samples=0, hidden="gaussian", random_state=seed)
        model = data.model
        assert isinstance(model, GaussianTreeModel)
        signs = model.tree.with_evidence(signs=edge_signs(model)).path_signs()
        p = model.tree.n_observed
        if (model.dims[:p] > 1).any():
            assert not signs[~np.eye(p, dtype=bool)].any()
            continue
        agreeing.append((signs == np.sign(model.covariance(range(p)))).mean())
    assert n_dims > 1 or agreeing == [1.0] * 5
