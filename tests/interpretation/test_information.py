"""Mutual information along trees, against joint distributions that are written down."""

from __future__ import annotations

import numpy as np
import pytest
from tests.reference.enumeration import joint, onto
from tests.reference.random_trees import random_tree

from latenttree.evaluation.datasets import make_latent_tree
from latenttree.interpretation import channels_of, most_informative
from latenttree.interpretation.channels import Channels
from latenttree.interpretation.information import related_to_number
from latenttree.model.emissions import Gaussian, MultiHot, Poisson
from latenttree.model.inference import Evidence
from latenttree.model.tree_model import TreeModel
from latenttree.tree import Tree


def random_model(seed: int, p: int = 6, n_states: int = 2, dim: int = 2) -> TreeModel:
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


def bits_of(both: np.ndarray) -> float:
    """Mutual information by its definition."""
    apart = np.outer(both.sum(axis=1), both.sum(axis=0))
    return float((both * np.log2(both / apart)).sum())


def covariance_of_ranks(both: np.ndarray) -> float:
    x, y = np.arange(both.shape[0]), np.arange(both.shape[1])
    return float(x @ both @ y - (both.sum(axis=1) @ x) * (both.sum(axis=0) @ y))


def all_known(model: TreeModel) -> Evidence:
    """One sample without evidence."""
    return Evidence(np.full((1, model.tree.n_observed), -1, dtype=np.int8))


@pytest.mark.parametrize(("n_states", "dim"), [(2, 2), (3, 3), (3, 2)])
@pytest.mark.parametrize("seed", range(4))
def test_states_as_by_enumeration(seed: int, n_states: int, dim: int) -> None:
    model = random_model(seed, 5, n_states, dim)
    p, n = model.tree.n_observed, model.tree.n_nodes
    whole = joint(model, all_known(model), 0)
    channels = channels_of(model, np.ones(p, dtype=bool))
    found = most_informative(channels, range(n), n, np.ones(n, dtype=bool))
    for v in range(n):
        expected = {u: onto(whole, u, v) for u in range(n) if u != v}
        bits = np.array([bits_of(expected[u]) for u in found.nodes[v, : n - 1].tolist()])
        signs = [np.sign(covariance_of_ranks(expected[u])) for u in found.nodes[v, : n - 1]]
        assert set(found.nodes[v].tolist()) == {*expected, -1}
        np.testing.assert_allclose(found.bits[v, : n - 1], bits, atol=1e-12)
        assert (np.diff(found.bits[v]) <= 1e-12).all()
        assert found.directions[v, : n - 1].tolist() == signs


def test_the_best_few_are_the_first_of_all() -> None:
    model = random_model(0, 60)
    channels = channels_of(model, np.ones(60, dtype=bool))
    hidden = range(60, model.tree.n_nodes)
    few, everything = (most_informative(channels, hidden, n) for n in (5, 60))
    np.testing.assert_array_equal(few.nodes, everything.nodes[:, :5])
    np.testing.assert_array_equal(few.bits, everything.bits[:, :5])
    threads = most_informative(channels, hidden, 5, n_jobs=3)
    np.testing.assert_array_equal(few.nodes, threads.nodes)


def test_labels_without_order_have_no_direction() -> None:
    model = random_model(1, 8, 3, 3)
    channels = channels_of(model, np.zeros(8, dtype=bool))
    assert not most_informative(channels, [8], 8).directions.any()


# ---- numbers, counts and groups of codes ----------------------------------------------


WEIGHT = np.array([0.3, 0.7])
TO_G, TO_FAR = np.array([[0.9, 0.2], [0.1, 0.8]]), np.array([[0.8, 0.4], [0.2, 0.6]])


def model_of_families() -> TreeModel:
    """A number, a count and a group of two codes at a hidden node h, labels behind another g."""
    names = ["number", "count", "codes", "far", "other"]
    tree = Tree.build(names, [(0, 5), (1, 5), (2, 5), (5, 6), (3, 6), (4, 6)], np.ones(6))
    means, variances = np.array([[-1.0, 2.0]]), np.array([[1.0, 0.5]])
    emissions = {
        0: Gaussian(means, variances, shift=np.array([3.0]), scale=np.array([2.0])),
        1: Poisson(np.array([[4.0, 1.0]])),
        2: MultiHot(np.array([0.5, 0.1]), np.array([[0.2, 0.6], [0.5, 0.5]])),
    }
    one = np.ones((1, 2))
    return TreeModel(tree, 5, (one, one, one, TO_FAR, TO_FAR, WEIGHT[:, None], TO_G), emissions)


def normal_bits(means: np.ndarray, within: np.ndarray, weight: np.ndarray) -> float:
    between = weight @ (means - weight @ means) ** 2
    return float(-0.5 * np.log2(1 - between / (between + weight @ within)))


def as_dict(channels: Channels, about: int) -> dict[tuple[int, int], tuple[float, int]]:
    """(variable, coordinate) -> (bits, direction)."""
    found = most_informative(channels, [about], 10)
    return {
        (int(channels.variables[v]), int(channels.coordinates[v])): (bits, int(direction))
        for v, bits, direction in zip(
            found.nodes[0].tolist(), found.bits[0].tolist(), found.directions[0], strict=True
        )
        if v >= 0
    }


def test_numbers_have_the_bits_of_a_normal_variable_and_codes_their_own() -> None:
    model = model_of_families()
    channels = channels_of(model, np.ones(5, dtype=bool))
    found = as_dict(channels, 5)
    entropy = float(-(WEIGHT * np.log2(WEIGHT)).sum())
    number = normal_bits(np.array([1.0, 7.0]), np.array([4.0, 2.0]), WEIGHT)
    count = normal_bits(np.array([4.0, 1.0]), np.array([4.0, 1.0]), WEIGHT)
    assert found[0, -1] == (pytest.approx(min(number, entropy)), 1)
    assert found[1, -1] == (pytest.approx(count), -1)
    present = model.emissions[2].mean()[1:]
    for c in range(2):
        both = np.array([1 - present[c], present[c]]) * WEIGHT
        assert found[2, c][0] == pytest.approx(bits_of(both))
    assert found[3, -1] == (pytest.approx(bits_of(TO_FAR @ TO_G * WEIGHT)), 1)
    assert set(found) == {(0, -1), (1, -1), (2, 0), (2, 1), (3, -1), (4, -1)}


def test_a_number_is_related_by_shares_of_variance() -> None:
    model = model_of_families()
    channels = channels_of(model, np.ones(5, dtype=bool))
    found = {node: (bits, direction) for node, bits, direction in related_to_number(channels, 0)}
    means, total = np.array([1.0, 7.0]), WEIGHT @ np.array([4.0, 2.0])
    between = WEIGHT @ (means - WEIGHT @ means) ** 2
    given_far = (TO_FAR @ TO_G * WEIGHT) @ means / (TO_FAR @ TO_G @ WEIGHT)
    of_far = (TO_FAR @ TO_G @ WEIGHT) @ (given_far - WEIGHT @ means) ** 2 / (between + total)
    shared = (WEIGHT * (means - WEIGHT @ means)) @ np.array([4.0, 1.0])
    counts = model.emissions[1].rates[0]
    variance = WEIGHT @ counts + WEIGHT @ (counts - WEIGHT @ counts) ** 2
    for node, share, direction in (
        (5, between / (between + total), 1),
        (3, of_far, 1),
        (1, shared**2 / (between + total) / variance, -1),
    ):
        assert found[node] == (pytest.approx(-0.5 * np.log2(1 - share)), direction)


@pytest.mark.parametrize(("n_states", "dim"), [(1, 1), (2, 3)])
def test_gaussian_trees_as_by_their_covariance(n_states: int, dim: int) -> None:
    data = make_latent_tree(
        9, n_states, dim, hidden="gaussian", dim=dim, n_samples=10, random_state=3
    )
    model = data.model
    tree, p = model.tree, model.tree.n_observed
    channels = channels_of(model, np.zeros(p, dtype=bool))
    whole = model.covariance()
    starts = np.concatenate([[0], np.cumsum(model.dims)])
    for h in range(p, tree.n_nodes):
        at = np.arange(starts[h], starts[h + 1])
        found = as_dict(channels, h)
        assert len(found) == min(10, p * dim)
        for (v, c), (bits, direction) in found.items():
            x = starts[v] + max(c, 0)
            cross = whole[x, at]
            share = cross @ np.linalg.solve(whole[np.ix_(at, at)], cross) / whole[x, x]
            assert bits == pytest.approx(-0.5 * np.log2(1 - share), rel=1e-9)
            if n_states == 1:
                assert direction == np.sign(cross[0])
