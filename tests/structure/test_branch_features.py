"""Branch features against the best linear predictor computed from the whole covariance."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from tests.reference import features as reference
from tests.reference.random_trees import random_tree, trees

from latenttree.distances.correlations import dense_source
from latenttree.structure.branch_features import (
    Features,
    branch_features,
    signed_correlation,
    star_correlations,
    update_features,
)
from latenttree.structure.builder import Wiring
from latenttree.structure.flat_tree import Flat
from latenttree.tree import Tree

# Weights come from solving systems of up to 15 leaves, whose condition is below 1e4 for edges
# of 0.1 and more.
SOLVED = 1e-9


def wired(tree: Tree) -> Wiring:
    return Wiring.from_edges(tree.n_observed, tree.edges, tree.lengths)


def featured(wiring: Wiring, rho: np.ndarray, width: int = 32) -> Features:
    flat = Flat.of(wiring)
    return branch_features(flat, flat.around(), dense_source(rho), width)


def numbers(wiring: Wiring) -> dict[int, dict[int, int]]:
    """The slot from every node to each of its neighbours."""
    number: dict[int, dict[int, int]] = {v: {} for v in wiring.links}
    for e, (a, b) in enumerate(wiring.edges()):
        number[a][b], number[b][a] = 2 * e, 2 * e + 1
    return number


def exact(wiring: Wiring) -> np.ndarray:
    """The affinities of the tree itself: no feature is scaled by them."""
    observed = list(range(wiring.n_observed))
    return reference.covariance(wiring, observed, observed)


def dense_weights(features: Features, slot: int, p: int) -> np.ndarray:
    weights = np.zeros(p)
    used = slice(0, features.size[slot])
    weights[features.leaf[slot, used]] = features.weight[slot, used]
    return weights


@settings(max_examples=60, deadline=None, derandomize=True)
@given(trees(min_observed=2, max_observed=15, max_degree=6, length_range=(0.1, 2.0)))
def test_features_are_the_best_linear_predictors(tree: Tree) -> None:
    """Every directed edge of trees of all shapes, observed internal nodes included."""
    wiring = wired(tree)
    features = featured(wiring, exact(wiring))
    for u, near in numbers(wiring).items():
        for v, slot in near.items():
            weights, load = reference.best_predictor(wiring, u, v)
            np.testing.assert_allclose(
                dense_weights(features, slot, tree.n_observed), weights, atol=SOLVED
            )
            assert features.load[slot] == pytest.approx(load, abs=SOLVED)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(trees(min_observed=4, max_observed=20, max_degree=6))
def test_star_correlations_are_the_quadratic_form(tree: Tree) -> None:
    wiring = wired(tree)
    features = featured(wiring, exact(wiring))
    centre = max(wiring.links, key=lambda v: len(wiring.links[v]))
    slots = np.array(list(numbers(wiring)[centre].values()))
    # any symmetric matrix will do: the kernel knows nothing about trees
    rho = np.random.default_rng(0).uniform(-1, 1, (tree.n_observed,) * 2)
    rho = (rho + rho.T) / 2
    found = star_correlations(slots, features, dense_source(rho))
    weights = np.array([dense_weights(features, s, tree.n_observed) for s in slots])
    expected = weights @ np.abs(rho) @ weights.T
    np.fill_diagonal(expected, 1.0)
    # sums of at most 400 products below 2
    np.testing.assert_allclose(found, expected, atol=1e-10)
    signed, strongest = signed_correlation(slots[0], slots[1], features, dense_source(rho))
    assert signed == pytest.approx(weights[0] @ rho @ weights[1], abs=1e-10)
    pairs = rho[np.ix_(weights[0] != 0, weights[1] != 0)]
    assert strongest == np.abs(pairs).max()


@pytest.mark.parametrize("width", [1, 3, 8, 32])
def test_narrow_features_still_measure_distances(width: int) -> None:
    """With few of the leaves a feature has less load, and its correlation with any other
    branch is still the product of the loads and of the way between: lengths stay unbiased."""
    rng = np.random.default_rng(width)
    tree = random_tree(rng, 60, max_degree=5, length_range=(0.1, 1.0))
    wiring = wired(tree)
    rho = np.exp(-tree.path_lengths())
    features = featured(wiring, rho, width)
    assert features.size.max() <= width
    for v in wiring.hidden():
        near = numbers(wiring)[v]
        slots = np.array(list(near.values()))
        r = star_correlations(slots, features, dense_source(rho))
        reach = features.load[slots] * np.exp(-np.array([wiring.links[v][u] for u in near]))
        expected = np.outer(reach, reach)
        np.fill_diagonal(expected, 1.0)
        np.testing.assert_allclose(r, expected, atol=1e-10)  # products of numbers below 1


def test_wider_features_carry_more() -> None:
    tree = random_tree(np.random.default_rng(1), 80, length_range=(0.1, 0.5))
    rho = np.exp(-tree.path_lengths())
    loads = [featured(wired(tree), rho, width).load for width in (1, 4, 16, 80)]
    for narrow, wide in pairwise(loads):
        assert (wide >= narrow - 1e-12).all()


def test_a_feature_carries_more_than_its_best_leaf() -> None:
    """A hidden node with ten leaves at distance 1: one leaf correlates by exp(-1) = 0.37, all
    ten by 1 / sqrt(1 + (1 - a^2) / (10 a^2))."""
    p, a = 10, np.exp(-1.0)
    edges = [(i, p + 1) for i in range(p)] + [(p, p + 1)]
    wiring = Wiring.from_edges(p + 1, np.array(edges), np.full(p + 1, 1.0))
    features = featured(wiring, exact(wiring))
    load = features.load[numbers(wiring)[p][p + 1]]
    assert load == pytest.approx(1 / np.sqrt(1 + (1 - a**2) / (p * a**2)), abs=1e-12)
    assert load > 2 * a


def test_a_leaf_at_distance_zero_is_the_node() -> None:
    """Leaf 0 sits on hidden node 3, so that node's branch is leaf 0 alone."""
    edges, lengths = np.array([[0, 3], [1, 3], [2, 3]]), np.array([0.0, 1.0, 1.0])
    wiring = Wiring.from_edges(3, edges, lengths)
    features = featured(wiring, exact(wiring))
    slot = numbers(wiring)[2][3]
    assert features.load[slot] == 1.0
    np.testing.assert_array_equal(dense_weights(features, slot, 3), [1.0, 0.0, 0.0])


def test_an_observed_node_hides_what_is_behind_it() -> None:
    """0 - 1 - 2: seen from 2, the branch of 1 is 1 itself."""
    wiring = Wiring.from_edges(3, np.array([[0, 1], [1, 2]]), np.array([0.5, 0.7]))
    features = featured(wiring, exact(wiring))
    slot = numbers(wiring)[2][1]
    np.testing.assert_array_equal(dense_weights(features, slot, 3), [0.0, 1.0, 0.0])


@settings(max_examples=30, deadline=None, derandomize=True)
@given(trees(min_observed=4, max_observed=20, max_degree=6, length_range=(0.1, 1.0)))
def test_features_have_unit_variance_by_the_affinities(tree: Tree) -> None:
    """Affinities that fit no tree: every leaf shares a little more with every other."""
    rho = np.exp(-0.8 * tree.path_lengths())
    features = featured(wired(tree), rho)
    plain = featured(wired(tree), np.exp(-tree.path_lengths()))
    for slot in range(len(features.size)):
        weights = dense_weights(features, slot, tree.n_observed)
        assert weights @ rho @ weights == pytest.approx(1.0, abs=1e-10)  # sums of 400 products
    # what leaves share beyond the tree says nothing about the node
    assert (features.load <= plain.load + 1e-12).all()


# ---- updates -------------------------------------------------------------------------


@pytest.mark.parametrize("width", [3, 32])
def test_updated_features_are_those_of_the_new_tree(width: int) -> None:
    """Some edges get other lengths, and some are contracted: only what moved is said."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        tree = random_tree(rng, 60, max_degree=4, length_range=(0.1, 1.0))
        source = dense_source(np.exp(-0.9 * tree.path_lengths()))
        flat = Flat.of(wired(tree))
        features = branch_features(flat, flat.around(), source, width)
        moved = rng.random(len(flat.ends)) < 0.03
        flat.length[moved] *= rng.uniform(0.5, 2.0, moved.sum())
        row = int(rng.choice(np.flatnonzero(flat.ends.max(axis=1) >= 60)))
        keep, drop = sorted(flat.ends[row].tolist())
        flat.ends[row] = -1
        flat.ends[flat.ends == drop] = keep
        moved |= (flat.ends == keep).any(axis=1)
        update_features(features, flat, flat.around(), source, moved)
        new = branch_features(flat, flat.around(), source, width)
        there = np.repeat(flat.ends[:, 0] >= 0, 2)
        # what moves less than 1e-6 is not passed on, and adds up over a few steps at most
        np.testing.assert_allclose(features.load[there], new.load[there], atol=1e-5)
        for slot in np.flatnonzero(there).tolist():
            found, expected = (dense_weights(f, slot, 60) for f in (features, new))
            np.testing.assert_allclose(found, expected, atol=1e-5)


def test_threads_do_not_matter() -> None:
    """Subtrees side by side, and what is above them: the same bits."""
    for shape in ("uniform", "caterpillar", "balanced"):
        tree = random_tree(np.random.default_rng(5), 700, shape=shape, length_range=(0.1, 1.0))
        source = dense_source(np.exp(-0.9 * tree.path_lengths()))
        flat = Flat.of(wired(tree))
        one, two = (branch_features(flat, flat.around(), source, 8, n_jobs=n) for n in (1, 2))
        for a, b in zip(one, two, strict=True):
            assert (a == b).all()
