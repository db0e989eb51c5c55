"""Branch features against the best linear predictor computed from the whole covariance."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from tests.reference import features as reference
from tests.reference.adjacency import Adjacency, builder_of
from tests.reference.entries import entry
from tests.reference.random_trees import random_tree, trees

from latenttree.distances.correlation_source import dense_source
from latenttree.structure import branch_features as kernels
from latenttree.structure.branch_features import (
    BranchFeatures,
    branch_features,
    update_features,
)
from latenttree.structure.builder import REMOVED, TreeBuilder
from latenttree.tree import Tree

feature_correlations = entry(kernels.feature_correlations)
signed_correlation = entry(kernels.signed_correlation)

# Weights come from solving systems of up to 15 leaves, whose condition is below 1e4 for edges
# of 0.1 and more.
SOLVED = 1e-9


def adjacency_of(n_observed: int, edges: list[tuple[int, int]], lengths: list[float]) -> Adjacency:
    return Adjacency.of(TreeBuilder(n_observed, edges, lengths))


def featured(adjacency: Adjacency, rho: np.ndarray, width: int = 32) -> BranchFeatures:
    tree = adjacency.builder()
    return branch_features(tree, tree.incidence(), dense_source(rho), width)


def numbers(adjacency: Adjacency) -> dict[int, dict[int, int]]:
    """The directed edge from every node to each of its neighbours."""
    number: dict[int, dict[int, int]] = {v: {} for v in adjacency.links}
    for e, (a, b) in enumerate(adjacency.edges()):
        number[a][b], number[b][a] = 2 * e, 2 * e + 1
    return number


def exact(adjacency: Adjacency) -> np.ndarray:
    """The correlations of the tree itself: no feature is scaled by them."""
    observed = list(range(adjacency.n_observed))
    return reference.covariance(adjacency, observed, observed)


def dense_weights(features: BranchFeatures, d: int, p: int) -> np.ndarray:
    weights = np.zeros(p)
    used = slice(0, features.size[d])
    weights[features.leaf[d, used]] = features.weight[d, used]
    return weights


@settings(max_examples=60, deadline=None, derandomize=True)
@given(trees(min_observed=2, max_observed=15, max_degree=6, length_range=(0.1, 2.0)))
def test_features_are_the_best_linear_predictors(tree: Tree) -> None:
    """Every directed edge of trees of all shapes, observed internal nodes included."""
    adjacency = Adjacency.of(tree)
    features = featured(adjacency, exact(adjacency))
    for u, near in numbers(adjacency).items():
        for v, d in near.items():
            weights, load = reference.best_predictor(adjacency, u, v)
            np.testing.assert_allclose(
                dense_weights(features, d, tree.n_observed), weights, atol=SOLVED
            )
            assert features.load[d] == pytest.approx(load, abs=SOLVED)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(trees(min_observed=4, max_observed=20, max_degree=6))
def test_branch_correlations_are_the_quadratic_form(tree: Tree) -> None:
    adjacency = Adjacency.of(tree)
    features = featured(adjacency, exact(adjacency))
    centre = max(adjacency.links, key=lambda v: len(adjacency.links[v]))
    branches = np.array(list(numbers(adjacency)[centre].values()))
    # any symmetric matrix will do: the kernel knows nothing about trees
    rho = np.random.default_rng(0).uniform(-1, 1, (tree.n_observed,) * 2)
    rho = (rho + rho.T) / 2
    found, _ = feature_correlations(branches, features, dense_source(rho), 100.0)
    weights = np.array([dense_weights(features, s, tree.n_observed) for s in branches])
    expected = weights @ np.abs(rho) @ weights.T
    np.fill_diagonal(expected, 1.0)
    # sums of at most 400 products below 2
    np.testing.assert_allclose(found, expected, atol=1e-10)
    signed, strongest = signed_correlation(branches[0], branches[1], features, dense_source(rho))
    assert signed == pytest.approx(weights[0] @ rho @ weights[1], abs=1e-10)
    pairs = rho[np.ix_(weights[0] != 0, weights[1] != 0)]
    assert strongest == np.abs(pairs).max()


@pytest.mark.parametrize("width", [1, 3, 8, 32])
def test_narrow_features_still_measure_distances(width: int) -> None:
    """With few of the leaves a feature has less load, and its correlation with any other
    branch is still the product of the loads and of the way between: lengths stay unbiased."""
    rng = np.random.default_rng(width)
    tree = random_tree(rng, 60, max_degree=5, length_range=(0.1, 1.0))
    adjacency = Adjacency.of(tree)
    rho = np.exp(-tree.path_lengths())
    features = featured(adjacency, rho, width)
    assert features.size.max() <= width
    for v in adjacency.hidden():
        near = numbers(adjacency)[v]
        branches = np.array(list(near.values()))
        r, _ = feature_correlations(branches, features, dense_source(rho), 100.0)
        reach = features.load[branches] * np.exp(-np.array([adjacency.links[v][u] for u in near]))
        expected = np.outer(reach, reach)
        np.fill_diagonal(expected, 1.0)
        np.testing.assert_allclose(r, expected, atol=1e-10)  # products of numbers below 1


def test_wider_features_carry_more() -> None:
    tree = random_tree(np.random.default_rng(1), 80, length_range=(0.1, 0.5))
    rho = np.exp(-tree.path_lengths())
    loads = [featured(Adjacency.of(tree), rho, width).load for width in (1, 4, 16, 80)]
    for narrow, wide in pairwise(loads):
        assert (wide >= narrow - 1e-12).all()


def test_a_feature_carries_more_than_its_best_leaf() -> None:
    """A hidden node with ten leaves at distance 1: one leaf correlates by exp(-1) = 0.37, all
    ten by 1 / sqrt(1 + (1 - a^2) / (10 a^2))."""
    p, a = 10, np.exp(-1.0)
    edges = [(i, p + 1) for i in range(p)] + [(p, p + 1)]
    adjacency = adjacency_of(p + 1, edges, [1.0] * (p + 1))
    features = featured(adjacency, exact(adjacency))
    load = features.load[numbers(adjacency)[p][p + 1]]
    assert load == pytest.approx(1 / np.sqrt(1 + (1 - a**2) / (p * a**2)), abs=1e-12)
    assert load > 2 * a


def test_a_leaf_at_distance_zero_is_the_node() -> None:
    """Leaf 0 sits on hidden node 3, so that node's branch is leaf 0 alone."""
    adjacency = adjacency_of(3, [(0, 3), (1, 3), (2, 3)], [0.0, 1.0, 1.0])
    features = featured(adjacency, exact(adjacency))
    d = numbers(adjacency)[2][3]
    assert features.load[d] == 1.0
    np.testing.assert_array_equal(dense_weights(features, d, 3), [1.0, 0.0, 0.0])


def test_an_observed_node_hides_what_is_behind_it() -> None:
    """0 - 1 - 2: seen from 2, the branch of 1 is 1 itself."""
    adjacency = adjacency_of(3, [(0, 1), (1, 2)], [0.5, 0.7])
    features = featured(adjacency, exact(adjacency))
    d = numbers(adjacency)[2][1]
    np.testing.assert_array_equal(dense_weights(features, d, 3), [0.0, 1.0, 0.0])


@settings(max_examples=30, deadline=None, derandomize=True)
@given(trees(min_observed=4, max_observed=20, max_degree=6, length_range=(0.1, 1.0)))
def test_features_have_unit_variance_by_the_correlations(tree: Tree) -> None:
    """Correlations that fit no tree: every leaf shares a little more with every other."""
    rho = np.exp(-0.8 * tree.path_lengths())
    features = featured(Adjacency.of(tree), rho)
    plain = featured(Adjacency.of(tree), np.exp(-tree.path_lengths()))
    for d in range(len(features.size)):
        weights = dense_weights(features, d, tree.n_observed)
        assert weights @ rho @ weights == pytest.approx(1.0, abs=1e-10)  # sums of 400 products
    # what leaves share beyond the tree says nothing about the node
    assert (features.load <= plain.load + 1e-12).all()


# ---- updates -------------------------------------------------------------------------


@pytest.mark.parametrize("width", [3, 32])
def test_updated_features_are_those_of_the_new_tree(width: int) -> None:
    """Some edges get other lengths, and some are contracted: only changed edges are named."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        tree = random_tree(rng, 60, max_degree=4, length_range=(0.1, 1.0))
        source = dense_source(np.exp(-0.9 * tree.path_lengths()))
        builder = builder_of(tree)
        features = branch_features(builder, builder.incidence(), source, width)
        moved = rng.random(len(builder.ends)) < 0.03
        builder.length[moved] *= rng.uniform(0.5, 2.0, moved.sum())
        row = int(rng.choice(np.flatnonzero(builder.ends.max(axis=1) >= 60)))
        keep, drop = sorted(builder.ends[row].tolist())
        builder.ends[row] = REMOVED
        builder.ends[builder.ends == drop] = keep
        moved |= (builder.ends == keep).any(axis=1)
        update_features(features, builder, builder.incidence(), source, moved)
        new = branch_features(builder, builder.incidence(), source, width)
        left = np.repeat(builder.ends[:, 0] != REMOVED, 2)
        # changes below 1e-6 are not passed on, and add up over a few steps at most
        np.testing.assert_allclose(features.load[left], new.load[left], atol=1e-5)
        for d in np.flatnonzero(left).tolist():
            found, expected = (dense_weights(f, d, 60) for f in (features, new))
            np.testing.assert_allclose(found, expected, atol=1e-5)


def test_threads_do_not_matter() -> None:
    """Subtrees side by side, and what is above them: the same bits."""
    for shape in ("uniform", "caterpillar", "balanced"):
        tree = random_tree(np.random.default_rng(5), 700, shape=shape, length_range=(0.1, 1.0))
        source = dense_source(np.exp(-0.9 * tree.path_lengths()))
        builder = builder_of(tree)
        one, two = (
            branch_features(builder, builder.incidence(), source, 8, n_jobs=n) for n in (1, 2)
        )
        for a, b in zip(one, two, strict=True):
            assert (a == b).all()
