"""Forests that grow piece by piece against Kruskal's rule on everything at once."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.reference.entries import entry
from tests.reference.spanning import kruskal

from latenttree.distances import spanning_forest
from latenttree.distances.spanning_forest import extended, grown
from latenttree.distances.spanning_tree import strongest_tree

adds = entry(spanning_forest.adds)


def random_strengths(p: int, seed: int, levels: int) -> NDArray[np.float64]:
    """Symmetric strengths of a few levels, zero among them: full of ties."""
    x = np.triu(np.random.default_rng(seed).integers(0, levels, (p, p)) / levels, 1)
    return x + x.T


def all_edges(strength: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    edges = np.array(list(itertools.combinations(range(len(strength)), 2)), dtype=np.int64)
    return edges, strength[edges[:, 0], edges[:, 1]]


@pytest.mark.parametrize("levels", [3, 10, 10_000])
@pytest.mark.parametrize("seed", range(5))
def test_any_pieces_in_any_order_give_one_tree(seed: int, levels: int) -> None:
    strength = random_strengths(25, seed, levels)
    edges, values = all_edges(strength)
    expected = kruskal(-strength)
    rng = np.random.default_rng(seed)
    forest = grown(25, np.empty((0, 2), dtype=np.int64), np.empty(0))
    for piece in np.array_split(rng.permutation(len(edges)), 7):
        forest = extended(forest, edges[piece], values[piece])
    assert sorted(map(tuple, forest.edges.tolist())) == expected
    assert (np.diff(forest.strength) <= 0).all()
    # the matrix gives the same, whatever the ties
    assert [tuple(e) for e in strongest_tree(strength).tolist()] == expected


@pytest.mark.parametrize("seed", range(5))
def test_what_the_forest_drops_could_not_belong_to_it(seed: int) -> None:
    """An edge adds nothing exactly if the forest's path between its ends is stronger throughout."""
    p = 15
    edges, values = all_edges(random_strengths(p, seed, 20))
    some = np.random.default_rng(seed).random(len(edges)) < 0.3
    forest = grown(p, edges[some], values[some])
    for (a, b), value in zip(edges.tolist(), values.tolist(), strict=True):
        weakest = weakest_on_path(forest.edges, forest.strength, p, a, b)
        found = adds(forest.parent, forest.since, forest.strength, a, b, value)
        assert found is (not weakest > value)


def weakest_on_path(
    edges: NDArray[np.int64], strength: NDArray[np.float64], p: int, a: int, b: int
) -> float:
    """By widening from a; minus infinity where there is no path."""
    reach = {a: np.inf}
    for _ in range(p):
        for (u, v), s in zip(edges.tolist(), strength.tolist(), strict=True):
            for x, y in ((u, v), (v, u)):
                if x in reach and y not in reach:
                    reach[y] = min(reach[x], s)
    return reach.get(b, -np.inf)


def test_nodes_know_their_weakest_edge_to_the_root() -> None:
    """0 - 1 - 2 - 3 with strengths 3, 1, 2: pieces {0, 1} and {2, 3} meet last."""
    forest = grown(4, np.array([[0, 1], [1, 2], [2, 3]]), np.array([3.0, 1.0, 2.0]))
    root = int(np.flatnonzero(forest.parent == np.arange(4))[0])
    assert root == 0
    assert forest.core.tolist() == [np.inf, 3.0, 1.0, 1.0]
