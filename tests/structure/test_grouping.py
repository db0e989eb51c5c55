"""Local grouping: the tree of one group, from exact distances and from the paper's thresholds."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.reference import joining as reference
from tests.reference.random_trees import SHAPES, random_tree

from latenttree.distances.similarity import similarity_from_distances
from latenttree.structure.grouping import (
    MSTGroup,
    group,
    group_all,
    mst_neighbourhoods,
    threshold_grouping,
)

# Lengths are sums and differences of a few logarithms near 1: rounding is near 1e-14.
ROUNDING = 1e-9
# Differences of exact distances agree to 1e-13; the shortest edge below is 0.05.
EPSILON = 1e-6


def check_group(g: MSTGroup, distances: NDArray[np.float64]) -> None:
    """A tree is determined by its path lengths: equal path lengths are the right local tree."""
    m = len(g.members)
    assert (g.lengths >= 0).all()
    found = reference.path_lengths(m, g.edges, g.lengths)
    np.testing.assert_allclose(found, distances[np.ix_(g.members, g.members)], atol=ROUNDING)
    degree = np.bincount(g.edges.ravel(), minlength=m)
    assert (degree[:m] == 1).all(), "every member is a leaf"
    assert (degree[m:] >= 3).all(), "every hidden node has three neighbours"


def test_neighbourhoods_are_closed_and_led_by_internal_nodes() -> None:
    """
    0 - 1 - 2 - 4
        |
        3
    """
    found = mst_neighbourhoods(np.array([[0, 1], [1, 2], [1, 3], [2, 4]]), 5)
    assert [g.tolist() for g in found] == [[1, 0, 2, 3], [2, 1, 4]]


def test_one_or_two_variables_have_no_group() -> None:
    assert mst_neighbourhoods(np.empty((0, 2), dtype=np.int64), 1) == []
    assert mst_neighbourhoods(np.array([[0, 1]]), 2) == []
    assert group_all(similarity_from_distances(np.array([[0.0, 1.0], [1.0, 0.0]]))) == []


@pytest.mark.parametrize("inside", [0.0, 0.5])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_group_is_exact_on_exact_distances(shape: str, inside: float) -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        tree = random_tree(
            rng,
            int(rng.integers(3, 50)),
            shape=shape,
            max_degree=8,
            internal_observed_fraction=inside,
        )
        d = tree.path_lengths()
        for g in group_all(similarity_from_distances(d)):
            check_group(g, d)


def test_a_group_of_hundreds() -> None:
    """A node of high degree: 300 leaves around one observed node."""
    lengths = np.exp(np.random.default_rng(0).uniform(-2, 1, 300))
    d = np.zeros((301, 301))
    d[1:, 1:] = lengths[:, None] + lengths[None, :]
    d[0, 1:] = d[1:, 0] = lengths
    np.fill_diagonal(d, 0)
    (g,) = group_all(similarity_from_distances(d))
    assert len(g.members) == 301
    assert g.lengths[(g.edges == 0).any(axis=1)].max() < ROUNDING  # the leader is the node itself
    leaf = g.edges.min(axis=1)
    found = g.lengths[leaf < 301][np.argsort(g.members[leaf[leaf < 301]])]
    np.testing.assert_allclose(found[1:], lengths, atol=ROUNDING)


@pytest.mark.parametrize("epsilon", [None, EPSILON])
def test_threads_do_not_matter(epsilon: float | None) -> None:
    tree = random_tree(np.random.default_rng(0), 80, max_degree=6)
    one, two = (
        group_all(similarity_from_distances(tree.path_lengths()), n, epsilon) for n in (1, 2)
    )
    assert len(one) == len(two)
    for a, b in zip(one, two, strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x, y)


# ---- the paper's thresholds ----------------------------------------------------------


def quartet(short: float = 1.0) -> NDArray[np.float64]:
    """
    0           2
     \\1 short 1/
      * ----- *
     /1       1\\
    1           3
    """
    edges = np.array([[0, 4], [1, 4], [2, 5], [3, 5], [4, 5]])
    return reference.path_lengths(4, edges, np.array([1.0, 1.0, 1.0, 1.0, short]))


def threshold_group(d: NDArray[np.float64], epsilon: float) -> MSTGroup:
    return MSTGroup(np.arange(len(d)), *threshold_grouping(d, epsilon))


def test_thresholds_are_exact_where_two_families_show_in_one_round() -> None:
    d = quartet()
    check_group(threshold_group(d, EPSILON), d)


def test_thresholds_see_one_family_of_any_size() -> None:
    d = 2.0 * (1 - np.eye(12))
    g = threshold_group(d, EPSILON)
    check_group(g, d)
    assert len(g.edges) == 12, "one hidden node, not a binary tree"


def test_thresholds_find_a_parent_among_the_members() -> None:
    """2 is the parent of 0 and 1: it shows as a leaf at distance zero."""
    d = np.array([[0, 3, 1], [3, 0, 2], [1, 2, 0.0]])
    g = threshold_group(d, EPSILON)
    check_group(g, d)
    assert g.lengths[(g.edges == 2).any(axis=1)].tolist() == [0.0]


def test_a_large_epsilon_takes_all_for_siblings() -> None:
    """Differences between cousins are 2 * short = 0.2 apart, below epsilon."""
    assert len(threshold_group(quartet(short=0.1), epsilon=0.3).edges) == 4


def test_without_a_family_the_nearest_pair_is_joined() -> None:
    """Distances off by 0.1: no pair passes at 1e-6, and joining goes on all the same."""
    rng = np.random.default_rng(0)
    for m in (4, 6, 9):
        edges = reference.random_binary(rng, m)
        d = reference.path_lengths(m, edges, rng.uniform(0.5, 1.0, len(edges)))
        noise = np.triu(rng.uniform(-0.1, 0.1, d.shape), 1)
        g = threshold_group(d + noise + noise.T, 1e-6)
        assert len(g.edges) == 2 * m - 3
        assert sorted(g.edges.ravel().tolist())[:m] == list(range(m))


def test_thresholds_are_exact_on_every_group() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        tree = random_tree(rng, 30, shape=SHAPES[seed % 4], max_degree=6)
        d = tree.path_lengths()
        for g in group_all(similarity_from_distances(d), epsilon=EPSILON):
            check_group(g, d)


def test_group_of_sampled_similarities_is_a_tree() -> None:
    """With noise any answer must still be a tree over the members."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        r = reference.sampled_correlations(rng, np.eye(8) * 0.5 + 0.5, 50)
        d = -np.log(np.clip(r, 1e-3, 1.0))
        np.fill_diagonal(d, 0)
        g = group(reference.with_samples(d, 50), np.arange(8))
        assert len(g.edges) == 13
        assert (np.bincount(g.edges.ravel())[8:] == 3).all()
