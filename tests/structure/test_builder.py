"""A tree that can be cut open and rewired: bookkeeping against `Tree`."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from tests.reference.random_trees import trees

from latenttree.structure.builder import Wiring
from latenttree.tree import Tree


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
