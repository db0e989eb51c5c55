"""Signs of variables: against a slow version that sums over all pairs of two clusters."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.reference.random_trees import random_tree

from latenttree.distances.correlation_source import dense_source
from latenttree.distances.orientation import NEAREST, orientation
from latenttree.distances.spanning_tree import strongest_tree

Matrix = NDArray[np.float64]


def slow_signs(rho: Matrix, mst: NDArray[np.int64]) -> Matrix:
    """Merge along the spanning tree, strongest edge first; a cluster turns as a whole where
    `sum rho |rho|` over all pairs between the two is negative. For p <= NEAREST."""
    sign, cluster = np.ones(len(rho)), [{v} for v in range(len(rho))]
    strength = np.abs(rho[mst[:, 0], mst[:, 1]])
    for a, b in mst[np.argsort(-strength, kind="stable")].tolist():
        one, other = cluster[a], cluster[b]
        total = sum(sign[i] * sign[j] * rho[i, j] * abs(rho[i, j]) for i in one for j in other)
        if total < 0:
            sign[list(other)] *= -1
        merged = one | other
        for v in merged:
            cluster[v] = merged
    return sign


def noisy(seed: int, p: int, n: int) -> Matrix:
    """Correlations of a tree with random signs of variables, and noise as of `n` samples."""
    rng = np.random.default_rng(seed)
    rho = np.exp(-random_tree(rng, p).path_lengths())
    flip = rng.choice([-1.0, 1.0], p)
    noise = np.triu(rng.standard_normal((p, p)), 1) / np.sqrt(n)
    rho = np.clip(np.outer(flip, flip) * rho + noise + noise.T, -1.0, 1.0)
    np.fill_diagonal(rho, 1.0)
    return rho


@pytest.mark.parametrize("n", [20, 500])
@pytest.mark.parametrize("seed", range(8))
def test_signs_are_those_of_the_slow_version(seed: int, n: int) -> None:
    """All of fewer than NEAREST variables vote; the sign of all together is free."""
    p = 3 + 7 * seed
    assert p <= NEAREST
    rho = noisy(seed, p, n)
    mst = strongest_tree(rho)
    found, expected = orientation(dense_source(rho), mst), slow_signs(rho, mst)
    assert set(np.abs(found)) == {1.0}
    np.testing.assert_array_equal(found * found[0], expected * expected[0])


def test_signs_that_come_from_variables_vanish() -> None:
    """More variables than NEAREST, and an exact tree: every correlation becomes positive."""
    p = 3 * NEAREST
    rng = np.random.default_rng(0)
    rho = np.exp(-random_tree(rng, p, length_range=(0.05, 0.3)).path_lengths())
    flip = rng.choice([-1.0, 1.0], p)
    rho = np.outer(flip, flip) * rho
    sign = orientation(dense_source(rho), strongest_tree(rho))
    assert (np.outer(sign, sign) * rho > 0).all()


def test_many_pairs_outvote_the_edge_between_two_clusters() -> None:
    """Two clusters of four: the strongest pair between them is negative by noise, the other fifteen
    are positive."""
    rho = np.full((8, 8), 0.2)
    rho[:4, :4] = rho[4:, 4:] = 0.8
    rho[3, 4] = rho[4, 3] = -0.25
    np.fill_diagonal(rho, 1.0)
    mst = strongest_tree(rho)
    assert [3, 4] in mst.tolist()
    assert len(set(orientation(dense_source(rho), mst).tolist())) == 1


def test_one_variable_and_none() -> None:
    no_edges = np.empty((0, 2), dtype=np.int64)
    assert orientation(dense_source(np.eye(1)), no_edges).tolist() == [1.0]
