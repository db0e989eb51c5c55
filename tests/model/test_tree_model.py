"""`TreeModel`: one joint distribution, whatever the root and the direction of an edge."""

from __future__ import annotations

import numpy as np
import pytest
from tests.reference.enumeration import joint, onto, random_model

from latenttree.model.inference import Evidence
from latenttree.model.tree_model import TreeModel, default_root, normalised
from latenttree.tree import Tree

STAR = Tree.build(["a", "b", "c"], [(0, 3), (1, 3), (2, 3)], [1, 1, 1])
HALF = np.full((2, 2), 0.5)
PRIOR = np.array([[0.5], [0.5]])


def whole(model: TreeModel) -> np.ndarray:
    return joint(model, Evidence.nothing(model), 0)


@pytest.mark.parametrize("seed", range(50))
def test_marginals_joints_and_conditionals_are_those_of_the_joint(seed: int) -> None:
    model = random_model(np.random.default_rng(seed))
    array = whole(model)
    for v in range(model.tree.n_nodes):
        np.testing.assert_allclose(model.marginal(v), onto(array, v), atol=1e-12)
    for a, b in model.tree.edges.tolist():
        truth = onto(array, a, b)
        np.testing.assert_allclose(model.joint(a, b), truth, atol=1e-12)
        np.testing.assert_array_equal(model.joint(b, a), model.joint(a, b).T)
        for i, j in ((a, b), (b, a)):
            np.testing.assert_allclose(
                model.conditional(i, j) * model.marginal(j), model.joint(i, j), atol=1e-12
            )
            np.testing.assert_allclose(model.conditional(i, j).sum(axis=0), 1.0, atol=1e-12)


@pytest.mark.parametrize("seed", range(50))
def test_the_same_joint_from_any_root_and_from_its_own_joints(seed: int) -> None:
    model = random_model(np.random.default_rng(seed))
    array = whole(model)
    for root in range(model.tree.n_nodes):
        np.testing.assert_allclose(whole(model.rerooted(root)), array, atol=1e-12)
    joints = [model.joint(a, b) for a, b in model.tree.edges.tolist()]
    again = TreeModel.from_joints(model.tree, joints, prior=model.marginal(0))
    assert again.root == default_root(model.tree)
    np.testing.assert_allclose(whole(again), array, atol=1e-12)
    assert again.n_parameters == model.rerooted(again.root).n_parameters


def test_relabelled_permutes_the_axes_of_the_joint() -> None:
    rng = np.random.default_rng(0)
    model = random_model(rng, n_observed=5)
    orders = {v: rng.permutation(model.dims[v]) for v in (0, model.root, model.tree.n_nodes - 1)}
    array = whole(model)
    for v, order in orders.items():
        array = np.take(array, order, axis=v)
    np.testing.assert_allclose(whole(model.relabelled(orders)), array, atol=1e-12)


def test_nodes_by_name() -> None:
    model = TreeModel(STAR, 3, (HALF, HALF, HALF, PRIOR))
    np.testing.assert_array_equal(model.conditional("a", "h0"), HALF)
    assert model.n_parameters == 7
    with pytest.raises(ValueError, match="'a' and 'b' are not the ends of an edge"):
        model.joint("a", "b")


def test_cpts_cannot_be_written() -> None:
    model = TreeModel(STAR, 3, (HALF, HALF, HALF, PRIOR))
    with pytest.raises(ValueError, match="read-only"):
        model.cpts[0][0, 0] = 1.0


@pytest.mark.parametrize(
    ("cpts", "says"),
    [
        ((HALF, HALF, PRIOR), "3 CPTs for 4 nodes"),
        ((HALF, HALF, PRIOR, PRIOR), r"'c' has shape \(2, 1\); its parent needs 2 columns"),
        ((HALF, HALF, HALF * 1.1, PRIOR), "'c' are not distributions: smallest value 0.55"),
        ((HALF, HALF, HALF + np.array([[1], [-1]]), PRIOR), "smallest value -0.5"),
        ((HALF, HALF, HALF * np.nan, PRIOR), "smallest value nan"),
        ((HALF, np.empty((0, 2)), HALF, PRIOR), r"'b' has shape \(0, 2\)"),
    ],
)
def test_bad_cpts(cpts: tuple[np.ndarray, ...], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        TreeModel(STAR, 3, cpts)


def test_normalised_fills_empty_columns() -> None:
    cpt = np.array([[1.0, 0.0], [3.0, -1.0]])
    np.testing.assert_array_equal(normalised(cpt), [[0.25, 0.5], [0.75, 0.5]])
    filled = normalised(cpt, np.array([0.2, 0.8]))
    np.testing.assert_allclose(filled, [[0.25, 0.2], [0.75, 0.8]], rtol=1e-15)
