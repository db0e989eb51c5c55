"""Trees as linkages of SciPy: valid, with the clades of the tree and its path lengths."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import (
    average,
    cophenet,
    dendrogram,
    is_monotonic,
    is_valid_linkage,
    leaves_list,
)
from scipy.spatial.distance import squareform
from tests.reference.random_trees import random_tree

from latenttree.errors import DataError
from latenttree.tree import Tree


def ultrametric_tree(rng: np.random.Generator, p: int) -> Tree:
    """A tree whose root is as far from all leaves: clusters joined at random at rising heights."""
    clusters = [(v, 0.0) for v in range(p)]
    edges, lengths, node, height = [], [], p, 0.0
    while len(clusters) > 2:
        height += rng.exponential()
        n = min(int(rng.integers(2, 4)), len(clusters) - 1)
        for i in sorted(rng.choice(len(clusters), n, replace=False).tolist(), reverse=True):
            child, below = clusters.pop(i)
            edges.append((child, node))
            lengths.append(height - below)
        clusters.append((node, height))
        node += 1
    (one, low), (other, high) = clusters
    top = height + rng.exponential()
    edges.append((one, other))
    lengths.append(2 * top - low - high)
    return Tree.build([f"x{v}" for v in range(p)], edges, lengths)


def clades(linkage: np.ndarray, p: int) -> list[frozenset[int]]:
    found = [frozenset([v]) for v in range(p)]
    for a, b, *_ in linkage.tolist():
        found.append(found[int(a)] | found[int(b)])
    return found


def sides(tree: Tree) -> set[frozenset[int]]:
    """Both sides of every split."""
    p = tree.n_observed
    bits = np.unpackbits(tree.splits(), axis=1, count=p)
    one = {frozenset(np.flatnonzero(row).tolist()) for row in bits}
    return one | {frozenset(range(p)) - side for side in one}


@given(st.integers(0, 10_000), st.integers(3, 25))
@settings(max_examples=60, deadline=None)
def test_an_ultrametric_tree_has_its_splits_as_clades(seed: int, p: int) -> None:
    tree = ultrametric_tree(np.random.default_rng(seed), p)
    linkage = tree.to_linkage()
    assert is_valid_linkage(linkage, throw=True)
    found = cophenet(linkage)
    # sums of the same lengths in another order
    np.testing.assert_allclose(squareform(found), tree.path_lengths(), rtol=1e-9)
    heights = linkage[:, 2]
    resolved = np.append(np.diff(heights) > 1e-9, True)
    assert {c for c, real in zip(clades(linkage, p)[p:], resolved, strict=True) if real} <= (
        sides(tree) | {frozenset(range(p))}
    )
    assert sides(tree) <= {
        side for c in clades(linkage, p) for side in (c, frozenset(range(p)) - c)
    }


@given(st.integers(0, 10_000), st.integers(2, 30), st.floats(0, 0.5))
@settings(max_examples=60, deadline=None)
def test_any_tree_is_a_valid_monotone_linkage(seed: int, p: int, inside: float) -> None:
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, p, max_degree=5, internal_observed_fraction=inside)
    linkage = tree.to_linkage()
    assert is_valid_linkage(linkage, throw=True)
    assert is_monotonic(linkage)
    assert sorted(leaves_list(linkage).tolist()) == list(range(p))
    drawn = dendrogram(linkage, no_plot=True, labels=list(tree.observed_names))
    assert sorted(drawn["ivl"]) == sorted(tree.observed_names)
    near = tree.to_linkage("correlation")
    np.testing.assert_array_equal(near[:, [0, 1, 3]], linkage[:, [0, 1, 3]])
    np.testing.assert_allclose(near[:, 2], 1 - np.exp(-linkage[:, 2]), rtol=1e-12)


@given(st.integers(0, 10_000), st.integers(3, 15))
@settings(max_examples=30, deadline=None)
def test_heights_are_twice_the_distance_to_the_farthest_below(seed: int, p: int) -> None:
    tree = random_tree(np.random.default_rng(seed), p, max_degree=3)
    linkage, d = tree.to_linkage(), tree.path_lengths()
    found = clades(linkage, p)
    for i, (a, b, height, n) in enumerate(linkage.tolist()):
        sides = found[int(a)], found[int(b)]
        assert n == len(found[p + i])
        if n == p:
            assert height == pytest.approx(d.max(), rel=1e-9)
            continue
        out = min(frozenset(range(p)) - found[p + i])  # three points meet at the node of the clade
        pairs = [(x, y) for s, t in (sides, sides[::-1]) for x in s for y in t]
        depths = [(d[x, y] + d[x, out] - d[y, out]) / 2 for x, y in pairs]
        assert height == pytest.approx(2 * max(depths), rel=1e-9)


def test_an_observed_inner_node_is_a_leaf_at_its_place() -> None:
    #   a - 1 - b - 1.5 - c, hung from the middle between a and c
    tree = Tree.build("abc", [(0, 1), (1, 2)], [1.0, 1.5])
    assert tree.to_linkage().tolist() == [[0, 1, 2, 2], [3, 2, 2.5, 3]]


def test_the_tree_is_cut_first_in_the_middle_of_its_longest_path() -> None:
    edges = [(0, 6), (1, 6), (2, 7), (3, 7), (4, 8), (5, 8), (6, 7), (7, 8)]
    tree = Tree.build("abcdef", edges, [1, 1, 1, 1, 1, 1, 1, 5])
    top = clades(tree.to_linkage(), 6)
    first, second = (top[int(i)] for i in tree.to_linkage()[-1, :2])
    assert {first, second} == {frozenset([0, 1, 2, 3]), frozenset([4, 5])}


def test_it_is_the_tree_of_average_linkage() -> None:
    rng = np.random.default_rng(0)
    tree = ultrametric_tree(rng, 12)
    other = average(squareform(tree.path_lengths(), checks=False))
    np.testing.assert_allclose(cophenet(other), cophenet(tree.to_linkage()), rtol=1e-9)


@pytest.mark.parametrize("p", [1, 2])
def test_small_trees(p: int) -> None:
    tree = Tree.build("ab"[:p], [(0, 1)][: p - 1], [0.0][: p - 1])
    assert tree.to_linkage().shape == (p - 1, 4)


def test_lengths_of_zero_and_wrong_scales() -> None:
    edges = [(i, 4) for i in range(4)]
    tree = Tree.build("abcd", edges, np.zeros(4))
    assert is_valid_linkage(tree.to_linkage())
    assert not tree.to_linkage()[:, 2].any()
    with pytest.raises(DataError, match="scale"):
        tree.to_linkage("log")  # type: ignore[arg-type]
    assert len(list(combinations(range(4), 2))) == len(cophenet(tree.to_linkage()))


def test_many_variables_in_a_chain() -> None:
    tree = random_tree(np.random.default_rng(0), 3_000, shape="caterpillar")
    assert is_valid_linkage(tree.to_linkage())
