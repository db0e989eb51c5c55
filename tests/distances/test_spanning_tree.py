"""Minimum spanning trees against SciPy, Kruskal and all trees."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse.csgraph import minimum_spanning_tree as scipy_tree
from tests.reference.spanning import all_spanning_trees, is_spanning_tree, kruskal, total_weight

from latenttree.distances.spanning_tree import minimum_spanning_tree, strongest_tree


def random_distances(p: int, seed: int, levels: int | None = None) -> NDArray[np.float64]:
    """Symmetric, zero diagonal; all distinct, or from a few levels (0 among them), full of ties."""
    rng = np.random.default_rng(seed)
    d = rng.uniform(0.1, 3.0, (p, p)) if levels is None else rng.integers(0, levels, (p, p)) * 0.5
    d = np.triu(d, 1)
    return d + d.T


@pytest.mark.parametrize("p", [2, 3, 10, 60])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_distinct_weights_give_the_tree_of_scipy(p: int, seed: int, dtype: type) -> None:
    d = random_distances(p, seed).astype(dtype)
    rows, columns = scipy_tree(d.astype(np.float64)).nonzero()
    expected = sorted((min(e), max(e)) for e in zip(rows.tolist(), columns.tolist(), strict=True))
    found = minimum_spanning_tree(d)
    assert found.dtype == np.int64
    assert [tuple(e) for e in found.tolist()] == expected == kruskal(d)


@pytest.mark.parametrize("levels", [None, 2, 4])
def test_no_tree_is_lighter(levels: int | None) -> None:
    trees = {p: list(all_spanning_trees(p)) for p in (3, 4, 5)}
    assert {p: len(all_) for p, all_ in trees.items()} == {3: 3, 4: 16, 5: 125}  # Cayley
    for seed in range(20):
        for p, candidates in trees.items():
            d = random_distances(p, seed, levels)
            found = minimum_spanning_tree(d)
            assert is_spanning_tree(p, found)
            lightest = min(total_weight(d, edges) for edges in candidates)
            # sums of at most 4 floats, in another order
            assert total_weight(d, found) == pytest.approx(lightest, abs=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_ties_and_zeros_give_one_tree_of_least_weight(seed: int) -> None:
    d = random_distances(30, seed, levels=3)
    found = minimum_spanning_tree(d)
    assert is_spanning_tree(30, found)
    # ties go to the lower node, then to the higher, as in Kruskal's rule on edges in that order
    assert [tuple(e) for e in found.tolist()] == kruskal(d)
    np.testing.assert_array_equal(found, minimum_spanning_tree(np.asfortranarray(d)))
    assert (found[:, 0] < found[:, 1]).all()
    assert sorted(map(tuple, found.tolist())) == [tuple(e) for e in found.tolist()]


def test_zero_distances_are_edges() -> None:
    d = random_distances(6, 0)
    d[2, 4] = d[4, 2] = 0.0  # SciPy drops this edge
    assert [2, 4] in minimum_spanning_tree(d).tolist()
    everything_equal = minimum_spanning_tree(np.zeros((4, 4)))
    assert everything_equal.tolist() == [[0, 1], [0, 2], [0, 3]]  # ties to the smaller index


def test_infinite_distances_come_last() -> None:
    d = random_distances(8, 0)
    d[:4, 4:] = d[4:, :4] = np.inf
    found = minimum_spanning_tree(d)
    assert is_spanning_tree(8, found)
    assert np.isinf(d[found[:, 0], found[:, 1]]).sum() == 1


@pytest.mark.parametrize(("p", "expected"), [(1, []), (2, [[0, 1]])])
def test_one_and_two_variables(p: int, expected: list[list[int]]) -> None:
    assert minimum_spanning_tree(np.ones((p, p))).tolist() == expected


# ---- by strength ---------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_strengths_that_do_not_stand_out_count_less(seed: int) -> None:
    """By exp(-error) for errors of 1/2 and more; magnitudes alone count."""
    rng = np.random.default_rng(seed)
    det = np.exp(-random_distances(20, seed, levels=6)).astype(np.float32)
    det *= np.sign(rng.normal(size=20))[:, None] * np.sign(rng.normal(size=20))
    det = np.triu(det, 1) + np.triu(det, 1).T
    errors = random_distances(20, seed + 100).astype(np.float32)
    errors[errors > 2.9] = np.inf
    doubt = np.where(errors < 0.5, 1.0, np.exp(-np.minimum(errors.astype(np.float64), 30)))
    strength = np.abs(det.astype(np.float64)) * doubt
    assert [tuple(e) for e in strongest_tree(det, errors).tolist()] == kruskal(-strength)
    excluded = rng.random(20) < 0.2
    strength[excluded], strength[:, excluded] = 0.0, 0.0
    found = strongest_tree(det, errors, excluded)
    assert [tuple(e) for e in found.tolist()] == kruskal(-strength)
