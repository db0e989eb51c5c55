"""make_latent_tree: samples follow the stated distributions, edges have the stated lengths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from latenttree.errors import DataError
from latenttree.evaluation.datasets import make_latent_tree
from latenttree.evaluation.simulation import LatentTreeData, information_length
from latenttree.tree import Tree

Z_LIMIT = 5.0
"""A normal variable exceeds this once in 1.7 million; a few hundred are looked at below."""


def states(data: LatentTreeData) -> np.ndarray:
    return np.hstack([data.X, data.hidden])


def parent_and_child(data: LatentTreeData, edge: int) -> tuple[int, int]:
    parents, _ = data.tree.rooted(data.root)
    a, b = data.tree.edges[edge].tolist()
    return (a, b) if parents[b] == a else (b, a)


def check_frequencies(observed: np.ndarray, probability: np.ndarray) -> None:
    """Each category's count within `Z_LIMIT` binomial standard deviations of its mean."""
    n = len(observed)
    counts = np.bincount(observed, minlength=len(probability))
    assert (counts[probability == 0] == 0).all()
    spread = np.sqrt(n * probability * (1 - probability)) + 1e-9
    assert np.abs((counts - n * probability) / spread).max() < Z_LIMIT


CASES = [
    {},
    {"n_states": 3, "n_categories": 5, "marginal": "zipf"},
    {"n_states": 2, "n_categories": 8, "n_used": 4, "marginal": "uniform"},
    {"n_states": 3, "internal_observed": 0.5, "shape": "random"},
]


@pytest.mark.parametrize("options", CASES)
def test_samples_follow_marginals_and_conditionals(options: dict[str, Any]) -> None:
    data = make_latent_tree(9, n_samples=20_000, random_state=1, **options)
    drawn = states(data)
    for v, marginal in enumerate(data.marginals):
        check_frequencies(drawn[:, v], marginal)
    for e, conditional in enumerate(data.conditionals):
        parent, child = parent_and_child(data, e)
        for state in range(conditional.shape[1]):
            check_frequencies(drawn[drawn[:, parent] == state, child], conditional[:, state])


@pytest.mark.parametrize("options", CASES)
def test_parameters_are_distributions_that_fit_together(options: dict[str, Any]) -> None:
    data = make_latent_tree(9, n_samples=10, random_state=2, **options)
    for e, conditional in enumerate(data.conditionals):
        parent, child = parent_and_child(data, e)
        assert (conditional >= 0).all()
        # sums of at most 8 probabilities in float64
        np.testing.assert_allclose(conditional.sum(axis=0), 1.0, atol=1e-12)
        np.testing.assert_allclose(
            conditional @ data.marginals[parent], data.marginals[child], atol=1e-12
        )


@pytest.mark.parametrize("options", CASES)
@pytest.mark.parametrize("edge_length", [0.05, 0.5, (0.1, 2.0)])
def test_every_edge_has_its_information_length(options: dict[str, Any], edge_length: Any) -> None:
    data = make_latent_tree(9, edge_length=edge_length, n_samples=1, random_state=3, **options)
    for e, conditional in enumerate(data.conditionals):
        parent, _ = parent_and_child(data, e)
        joint = conditional * data.marginals[parent]
        # bisection ends at 2^-50; the slope of the length in t is moderate
        assert information_length(joint, conditional.shape[1]) == pytest.approx(
            data.tree.lengths[e], abs=1e-6
        )


def test_length_of_a_binary_joint_is_minus_log_correlation() -> None:
    joint = np.array([[0.3, 0.1], [0.2, 0.4]])
    row, column = joint.sum(1), joint.sum(0)
    correlation = (joint[1, 1] - row[1] * column[1]) / np.sqrt(row.prod() * column.prod())
    # rank 2: the trivial correlation 1 and this one
    assert information_length(joint, 2) == pytest.approx(-np.log(correlation), abs=1e-12)


def test_path_lengths_are_the_lengths_of_pairs() -> None:
    """Additivity: the joint of two leaves, summed over all between, has the path's length."""
    data = make_latent_tree(6, 3, shape="caterpillar", n_samples=1, random_state=0)
    tree, parents = data.tree, data.tree.rooted(data.root)[0]
    edge_of = {frozenset(e): i for i, e in enumerate(tree.edges.tolist())}

    def from_root(v: int) -> np.ndarray:
        u = int(parents[v])
        if u < 0:
            return np.eye(3)
        return data.conditionals[edge_of[frozenset((u, v))]] @ from_root(u)

    root = np.diag(data.marginals[data.root])
    expected = tree.path_lengths()
    assert data.root in tree.path(0, 5)  # the two end leaves meet at the root of the chain
    joint = from_root(0) @ root @ from_root(5).T
    # 1e-6 for each of the 4 edges between them
    assert information_length(joint, 3) == pytest.approx(expected[0, 5], abs=1e-5)


@pytest.mark.parametrize(
    ("shape", "n_hidden", "degrees"),
    [
        ("balanced", 4, {3, 4}),
        ("caterpillar", 7, {3}),
        ("star", 1, {9}),
        ("random", None, {3, 4}),
    ],
)
def test_shapes(shape: Any, n_hidden: int | None, degrees: set[int]) -> None:
    for seed in range(5):
        tree = make_latent_tree(9, shape=shape, arity=3, n_samples=1, random_state=seed).tree
        assert tree.n_observed == 9
        assert n_hidden is None or tree.n_hidden == n_hidden
        assert set(tree.degree()[9:].tolist()) <= degrees
        assert (tree.degree()[:9] == 1).all()


def test_sizes_and_types() -> None:
    data = make_latent_tree(9, 2, 5, n_samples=30, random_state=0)
    assert data.X.shape == (30, 9)
    assert data.hidden.shape == (30, data.tree.n_hidden)
    assert data.X.dtype == data.hidden.dtype == np.int32
    assert data.X.max() < 5
    assert data.hidden.max() < 2
    for e, conditional in enumerate(data.conditionals):
        parent, child = parent_and_child(data, e)
        assert conditional.shape == (len(data.marginals[child]), len(data.marginals[parent]))


def test_lengths_come_from_their_ranges() -> None:
    data = make_latent_tree(
        60, shape="random", edge_length=(0.1, 0.2), leaf_length=(1, 2), n_samples=1, random_state=0
    )
    leaf = (data.tree.edges < 60).any(axis=1)
    assert ((data.tree.lengths[leaf] >= 1) & (data.tree.lengths[leaf] <= 2)).all()
    inner = data.tree.lengths[~leaf]
    assert ((inner >= 0.1) & (inner <= 0.2)).all()
    assert len(np.unique(inner)) == len(inner)


def test_a_given_tree_keeps_its_lengths() -> None:
    edges = [[0, 4], [1, 4], [4, 5], [2, 5], [3, 5]]
    tree = Tree.build(("a", "b", "c", "d"), np.array(edges), np.array([0.1, 0.2, 0.3, 0.4, 0.5]))
    data = make_latent_tree(tree=tree, n_samples=5, random_state=0)
    assert data.tree == tree
    assert data.X.shape == (5, 4)


def test_internal_observed_nodes_follow_the_leaves() -> None:
    data = make_latent_tree(9, 2, internal_observed=0.5, n_samples=10, random_state=0)
    assert data.tree.n_observed == 11
    assert data.tree.n_hidden == 2
    assert (data.tree.degree()[9:] >= 3).all()


@pytest.mark.parametrize(("p", "n_edges"), [(1, 0), (2, 1), (3, 3), (4, 4)])
def test_small_trees(p: int, n_edges: int) -> None:
    data = make_latent_tree(p, n_samples=4, random_state=0)
    assert data.X.shape == (4, p)
    assert len(data.tree.edges) == n_edges


def test_unused_categories_never_occur_and_zipf_has_a_long_tail() -> None:
    data = make_latent_tree(3, 2, 50, n_used=20, marginal="zipf", n_samples=1, random_state=0)
    for marginal in data.marginals[:3]:
        assert (marginal > 0).sum() == 20
        # weights 1/i, each multiplied by at most 1.5 and divided by at least 0.5
        assert marginal.max() / marginal[marginal > 0].min() > 20 / 6


def test_the_seed_decides_everything() -> None:
    one, same, other = (make_latent_tree(6, n_samples=50, random_state=s) for s in (0, 0, 1))
    np.testing.assert_array_equal(one.X, same.X)
    np.testing.assert_array_equal(one.hidden, same.hidden)
    assert one.tree == same.tree
    assert not np.array_equal(one.X, other.X)


@pytest.mark.parametrize(
    ("options", "option", "value"),
    [
        ({"n_observed": 0}, "n_observed", 0),
        ({"n_states": 1}, "n_states", (1, 1, 1)),
        ({"n_states": 4, "n_categories": 3}, "n_states", (4, 3, 3)),
        ({"n_categories": 6, "n_used": 1}, "n_states", (2, 1, 6)),
        ({"n_categories": 6, "n_used": 9}, "n_states", (2, 9, 6)),
        ({"n_states": 3, "n_used": 2}, "n_states", (3, 2, 3)),
        ({"shape": "bush"}, "shape", "bush"),
        ({"edge_length": 0.0}, "edge_length", 0.0),
        ({"edge_length": (1.0, 0.5)}, "edge_length", (1.0, 0.5)),
        ({"edge_length": float("nan")}, "edge_length", None),
        ({"edge_length": float("inf")}, "edge_length", float("inf")),
        ({"leaf_length": -1.0}, "edge_length", -1.0),
        ({"marginal": "bell"}, "marginal", "bell"),
        ({"arity": 0}, "arity", 0),
        ({"arity": 1, "shape": "random"}, "arity", 1),
        ({"arity": 1}, "arity", 1),
        ({"n_samples": -1}, "n_samples", -1),
        ({"internal_observed": 2.0}, "internal_observed", 2.0),
        ({"internal_observed": 0.5, "n_categories": 5}, "internal_observed", 5),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], option: str, value: Any) -> None:
    with pytest.raises(DataError) as refused:
        make_latent_tree(**({"n_samples": 5, "random_state": 0} | options))
    error = refused.value
    assert error.place.option == option
    assert error.remedy
    if value is not None:  # NaN is not equal to itself
        assert error.value == value
