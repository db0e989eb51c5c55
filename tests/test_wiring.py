"""A tree that can be cut open and rewired: bookkeeping against `Tree`."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from tests.reference.random_trees import trees

from latenttree.tree import Tree
from latenttree.wiring import Wiring


def wired(tree: Tree) -> Wiring:
    return Wiring.from_edges(tree.n_observed, tree.edges, tree.lengths)


def quartet() -> Wiring:
    """
    0           2
     \\1   3   3/
      4 ----- 5
     /2       4\\
    1           3
    """
    edges = np.array([[0, 4], [1, 4], [2, 5], [3, 5], [4, 5]])
    return Wiring.from_edges(4, edges, np.array([1.0, 2.0, 3.0, 4.0, 3.0]))


@settings(deadline=None, derandomize=True)
@given(trees(min_observed=1, max_observed=25))
def test_a_tree_goes_in_and_comes_out(tree: Tree) -> None:
    back = wired(tree).tree(tree.observed_names)
    assert back.same_topology(tree)
    np.testing.assert_array_equal(back.lengths, tree.lengths)


@settings(deadline=None, derandomize=True)
@given(trees(min_observed=2, max_observed=25))
def test_slots_are_the_directed_edges(tree: Tree) -> None:
    wiring = wired(tree)
    s = wiring.slots()
    assert len(s.nbr) == 2 * len(tree.edges)
    source = np.repeat(np.arange(tree.n_nodes), np.diff(s.indptr))
    np.testing.assert_array_equal(s.back[s.back], np.arange(len(s.nbr)))
    np.testing.assert_array_equal(s.nbr[s.back], source)
    np.testing.assert_array_equal(s.length[s.back], s.length)
    # the tree numbers hidden nodes without gaps, so wiring numbers are slot numbers
    for v, near in wiring.links.items():
        for u, length in near.items():
            slot = s.number[v][u]
            assert (source[slot], s.nbr[slot], s.length[slot]) == (v, u, length)


@settings(deadline=None, derandomize=True)
@given(trees(min_observed=1, max_observed=25))
def test_order_has_parents_first(tree: Tree) -> None:
    s = wired(tree).slots()
    assert sorted(s.order.tolist()) == list(range(tree.n_nodes))
    position = np.argsort(s.order)
    for v in s.order[1:].tolist():
        slot = s.parent_slot[v]
        assert s.indptr[v] <= slot < s.indptr[v + 1]
        assert position[s.nbr[slot]] < position[v]
    assert s.parent_slot[s.order[0]] == -1


def test_gaps_in_the_numbers_of_hidden_nodes_are_closed() -> None:
    wiring = quartet()
    wiring.contract(0, 4)  # node 4 is gone, 5 stays
    s = wiring.slots()
    assert len(s.indptr) - 1 == 5
    assert s.nbr.max() == 4
    assert wiring.hidden() == [5]


def test_edges_are_sorted_and_ascending() -> None:
    assert quartet().edges() == [(0, 4), (1, 4), (2, 5), (3, 5), (4, 5)]


def test_contract_hands_over_the_neighbours_with_their_lengths() -> None:
    wiring = quartet()
    wiring.contract(4, 5)
    assert wiring.links[4] == {0: 1.0, 1: 2.0, 2: 3.0, 3: 4.0}
    assert wiring.links[2] == {4: 3.0}
    assert 5 not in wiring.links


def test_contract_into_an_observed_node_makes_it_internal() -> None:
    wiring = quartet()
    wiring.contract(0, 4)
    assert wiring.links[0] == {1: 2.0, 5: 3.0}
    tree = wiring.tree(["a", "b", "c", "d"])
    assert (tree.n_hidden, tree.degree()[0]) == (1, 2)


def test_cut_and_remove() -> None:
    wiring = quartet()
    assert wiring.cut(4, 5) == 3.0
    assert 5 not in wiring.links[4]
    assert 4 not in wiring.links[5]
    wiring.remove(5)
    assert wiring.links[2] == {}
    assert wiring.hidden() == [4]


def test_new_nodes_never_reuse_a_number() -> None:
    wiring = quartet()
    first = wiring.new()
    wiring.remove(first)
    assert wiring.new() == first + 1
    assert wiring.is_hidden(first)
    assert not wiring.is_hidden(3)


def test_scale_multiplies_lengths() -> None:
    tree = quartet().tree(["a", "b", "c", "d"], scale=2.0)
    assert tree.path_lengths()[0, 1] == pytest.approx(6.0, rel=1e-12)  # two sums, no more


@pytest.mark.parametrize("p", [1, 2])
def test_trees_without_hidden_nodes(p: int) -> None:
    wiring = Wiring(p)
    if p == 2:
        wiring.connect(0, 1, 0.5)
    tree = wiring.tree(["a", "b"][:p])
    assert (tree.n_hidden, len(tree.edges)) == (0, p - 1)
    assert len(wiring.slots().nbr) == 2 * (p - 1)
