"""Merging local trees: exact on exact distances, and the union of paths by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from tests.reference.adjacency import Adjacency, edges_of
from tests.reference.random_trees import SHAPES, random_tree, trees

from latenttree.distances.similarity import similarity_from_distances
from latenttree.structure.builder import TreeBuilder
from latenttree.structure.grouping import MSTGroup, group_all
from latenttree.structure.merging import contract_zero, merge
from latenttree.tree import Tree

# Sums and differences of a few logarithms near 1: rounding is near 1e-14.
ROUNDING = 1e-9


def check_merge(tree: Tree) -> None:
    whole = similarity_from_distances(tree.path_lengths())
    merged = merge(whole, group_all(whole))
    degree = np.bincount(merged.ends.ravel(), minlength=tree.n_observed)
    assert (degree[: tree.n_observed] <= 1).all(), "observed are leaves"
    contract_zero(merged)
    found = merged.tree(tree.observed_names, whole.distance_scale)
    assert found.same_topology(tree)
    np.testing.assert_allclose(found.lengths, tree.lengths, atol=ROUNDING)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(trees(min_observed=2, max_observed=40))
def test_merging_is_exact_on_exact_distances(tree: Tree) -> None:
    check_merge(tree)


@pytest.mark.parametrize("shape", SHAPES)
def test_merging_equal_edges_is_exact(shape: str) -> None:
    """All edges 1: the spanning tree is full of ties."""
    for p in (3, 8, 27, 60):
        check_merge(
            random_tree(np.random.default_rng(p), p, shape=shape, max_degree=4, length_range=(1, 1))
        )


def test_the_union_of_conflicting_paths() -> None:
    """
    0   1           3   4        leaders 1 and 3 are neighbours in the spanning tree;
     \\ |           |  /         group (1; 0, 3) found a with 0 and 1,
      a ---- + ---- b            group (3; 1, 4) found b with 3 and 4
    """
    edges = np.array([[0, 4], [1, 4], [2, 5], [3, 5], [4, 5]])
    lengths = np.array([2.0, 0.5, 0.5, 2.0, 1.0])
    truth = Tree.build(["0", "1", "3", "4"], edges, lengths)
    whole = similarity_from_distances(truth.path_lengths())
    np.testing.assert_array_equal(whole.mst, [[0, 1], [1, 2], [2, 3]])
    local = np.array([[0, 3], [1, 3], [2, 3]])
    groups = [
        MSTGroup(np.array([1, 0, 2]), local, np.array([0.5, 2.0, 1.5])),
        MSTGroup(np.array([2, 1, 3]), local, np.array([0.5, 1.5, 2.0])),
    ]
    merged = merge(whole, groups)
    assert len(merged.hidden()) == 2
    a, b = merged.hidden()
    # 2.0 between the leaders, less 0.5 to a and 0.5 to b
    assert Adjacency.of(merged).links[a][b] == pytest.approx(1.0, abs=ROUNDING)
    found = merged.tree(["0", "1", "3", "4"])
    assert found.same_topology(truth)
    np.testing.assert_allclose(found.lengths, lengths, atol=ROUNDING)


def test_a_node_found_twice_is_two_copies_at_distance_zero() -> None:
    """A star of four, spanned by the path 0 - 1 - 2 and 1 - 3 or so: every group finds the node."""
    lengths = np.array([1.0, 1.1, 1.2, 1.3])
    truth = Tree.build(list("abcd"), [(i, 4) for i in range(4)], lengths)
    whole = similarity_from_distances(truth.path_lengths())
    merged = merge(whole, group_all(whole))
    contract_zero(merged)
    assert len(merged.hidden()) == 1


def test_two_variables() -> None:
    whole = similarity_from_distances(np.array([[0.0, 0.7], [0.7, 0.0]]))
    merged = merge(whole, [])
    assert edges_of(merged) == [(0, 1)]
    assert merged.length[0] == pytest.approx(0.7, abs=ROUNDING)


def test_a_negative_link_between_copies_is_zero() -> None:
    """Groups that put their nodes too far out would leave a negative length between them."""
    d = np.array([[0, 1, 2, 3], [1, 0, 1, 2], [2, 1, 0, 1], [3, 2, 1, 0.0]])
    local = np.array([[0, 3], [1, 3], [2, 3]])
    groups = [
        MSTGroup(np.array([1, 0, 2]), local, np.array([0.8, 0.2, 0.2])),
        MSTGroup(np.array([2, 1, 3]), local, np.array([0.8, 0.2, 0.2])),
    ]
    merged = merge(similarity_from_distances(d), groups)
    a, b = merged.hidden()
    assert Adjacency.of(merged).links[a][b] == 0.0


# ---- contraction ---------------------------------------------------------------------


def test_zero_edges_are_contracted_into_the_observed_end() -> None:
    """
    0               2          0               2
     \\1   0       /                \\ 1    1 /
      4 ----- 5 --          ->          3 --
     /1       0\\               /  1
    1           3              1
    """
    edges = np.array([[0, 4], [1, 4], [2, 5], [3, 5], [4, 5]])
    merged = TreeBuilder(4, edges, np.array([1.0, 1.0, 1.0, 0.0, 0.0]))
    contract_zero(merged)
    assert edges_of(merged) == [(0, 3), (1, 3), (2, 3)]


def test_two_observed_nodes_at_distance_zero_stay_two() -> None:
    merged = TreeBuilder(3, np.array([[0, 3], [1, 3], [2, 3]]), np.array([0.0, 0.0, 1.0]))
    contract_zero(merged)
    assert edges_of(merged) == [(0, 1), (0, 2)]
    assert merged.length.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("p", [10, 20_000])
def test_a_chain_of_zero_edges_is_one_node(p: int) -> None:
    chain = [(i, i + 1) for i in range(p, 2 * p - 3)]
    leaves = [(i, min(max(i - 1, 0), p - 3) + p) for i in range(p)]
    lengths = np.concatenate([np.zeros(len(chain)), np.ones(p)])
    merged = TreeBuilder(p, np.array(chain + leaves), lengths)
    contract_zero(merged)
    assert len(merged.hidden()) == 1


def test_hidden_nodes_go_to_the_nearest_of_several_observed_ones() -> None:
    """0 - 4 - 5 - 6 - 1 of zeros, and 2 and 3 hang from 4 and 6: no link is lost."""
    edges = np.array([[0, 4], [4, 5], [5, 6], [6, 1], [2, 4], [3, 6]])
    merged = TreeBuilder(4, edges, np.array([0.0, 0.0, 0.0, 0.0, 1.0, 2.0]))
    contract_zero(merged)
    assert edges_of(merged) == [(0, 1), (0, 2), (1, 3)]


def test_edges_longer_than_the_tolerance_stay() -> None:
    edges = np.array([[0, 4], [1, 4], [2, 5], [3, 5], [4, 5]])
    for tolerance, n_hidden in ((0.05, 2), (0.2, 1)):
        merged = TreeBuilder(4, edges, np.array([1.0, 1.0, 1.0, 1.0, 0.1]))
        contract_zero(merged, tolerance)
        assert len(merged.hidden()) == n_hidden
