"""The map: fixed lengths, no collisions, and sums over branches and paths against slow twins."""

from __future__ import annotations

import numpy as np
import pytest
from tests.reference.random_trees import random_tree

from latenttree.page.layout import depth_first_tour, edge_lengths, map_layout, repulsion
from latenttree.tree import Tree


@pytest.mark.parametrize("seed", range(5))
def test_sums_over_branches_and_paths(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 20, max_degree=5, internal_observed_fraction=0.3)
    tour = depth_first_tour(tree)
    values = rng.normal(size=(tree.n_nodes, 2))
    branch, path = values.copy(), values.copy()
    for i in range(tree.n_nodes - 1, 0, -1):
        branch[tour.above[i]] += branch[i]
    for i in range(1, tree.n_nodes):
        path[i] += path[tour.above[i]]
    # cumulative sums round at the scale of the total
    np.testing.assert_allclose(tour.branch_sums(values), branch, atol=1e-12)
    np.testing.assert_allclose(tour.path_sums(values), path, atol=1e-12)


def test_the_field_of_a_grid_is_that_of_all_pairs() -> None:
    rng = np.random.default_rng(0)
    places, charges = rng.normal(size=(60, 2)), rng.uniform(0.5, 1, 60)
    apart = places[:, None] - places[None]
    far = np.sqrt((apart**2).sum(axis=2)) + np.eye(60)
    exact = (charges[None, :, None] * apart / far[:, :, None] ** 3).sum(axis=1)
    alone = far.copy()
    np.fill_diagonal(alone, np.inf)
    lonely = alone.min(axis=1) > 0.25  # far from the softened centre of every charge
    found = repulsion(places, charges, 512)
    assert lonely.sum() > 20
    # a cell is 0.01 wide: within 2% of the force, at distances of 25 cells
    np.testing.assert_allclose(found[lonely], exact[lonely], atol=0.02 * np.abs(exact).max())


@pytest.mark.parametrize("n_observed", [3, 40, 400])
def test_edges_have_their_lengths_and_nodes_do_not_collide(n_observed: int) -> None:
    tree = random_tree(np.random.default_rng(1), n_observed, max_degree=6)
    places, tour = map_layout(tree), depth_first_tour(tree)
    order, above = tour.order, tour.order[tour.above]
    lengths = np.hypot(*(places[order] - places[above]).T)
    np.testing.assert_allclose(lengths, edge_lengths(tree, tour), atol=1e-9)
    observed = places[:n_observed]
    apart = np.hypot(*(observed[:, None] - observed[None]).transpose(2, 0, 1))
    np.fill_diagonal(apart, np.inf)
    assert np.mean(apart.min(axis=1) < 0.2) < 0.05  # of nodes that are closer than their radius


def test_the_map_is_wider_than_high_and_the_same_every_time() -> None:
    tree = random_tree(np.random.default_rng(2), 100)
    places = map_layout(tree)
    assert np.ptp(places[:, 0]) >= 0.8 * np.ptp(places[:, 1])
    np.testing.assert_array_equal(places, map_layout(tree))


def test_the_leaves_of_a_node_with_many_are_spread_over_a_disc() -> None:
    star = Tree.build([f"x{i}" for i in range(300)], [(i, 300) for i in range(300)], np.ones(300))
    places = map_layout(star)
    apart = np.hypot(*(places[:, None] - places[None]).transpose(2, 0, 1))
    np.fill_diagonal(apart, np.inf)
    assert np.median(apart.min(axis=1)) > 0.3


@pytest.mark.parametrize("n", [1, 2])
def test_trees_without_hidden_nodes(n: int) -> None:
    tree = Tree.build([f"x{i}" for i in range(n)], [(0, 1)][: n - 1], [0.5][: n - 1])
    places = map_layout(tree)
    assert places.shape == (n, 2)
    assert np.isfinite(places).all()
