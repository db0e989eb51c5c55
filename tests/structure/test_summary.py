"""Depth and needed samples against definitions that look at one path and one edge at a time."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from tests.reference.random_trees import trees

from latenttree.structure.learn import Structure
from latenttree.structure.summary import (
    effective_depth,
    independent_variables,
    samples_needed,
)
from latenttree.tree import Tree


@given(trees())
def test_depth_is_the_farthest_nearest_leaf(tree: Tree) -> None:
    graph, p = tree.to_networkx(), tree.n_observed
    expected = 0.0
    for hidden in range(p, tree.n_nodes):
        lengths = nx.single_source_dijkstra_path_length(graph, hidden, weight="length")
        expected = max(expected, min(lengths[v] for v in range(p)))
    # every edge is longer by 1e-12 in the graph
    assert effective_depth(tree) == pytest.approx(expected, abs=1e-9)


def test_independent_variables_are_those_without_a_supported_edge() -> None:
    """
    a       d - e
     h0 --- |         - is an edge of support 1, the others have support 0
    b  |    f
       c
    """
    edges = [(0, 6), (1, 6), (2, 6), (3, 6), (3, 4), (3, 5)]
    tree = Tree.build(list("abcdef"), edges, np.ones(6))
    loose = {(2, 6), (3, 6), (3, 5)}
    support = np.array([0.0 if tuple(sorted(e)) in loose else 1.0 for e in tree.edges.tolist()])
    structure = replace(Structure.of_tree(tree), support=support)
    assert independent_variables(structure) == ["c", "f"]
    assert independent_variables(Structure.of_tree(tree)) == []
    assert independent_variables(Structure.of_tree(Tree.build(["only"], [], []))) == []


def quartet(inner: float, error: float) -> Structure:
    """
    a       c
     h0 - h1
    b       d
    """
    edges = [(0, 4), (1, 4), (2, 5), (3, 5), (4, 5)]
    tree = Tree.build(list("abcd"), edges, np.array([1.0, 1.0, 1.0, 1.0, inner]))
    errors = np.full(tree.n_edges, 0.1)
    errors[tree.internal_edges()] = error
    structure = Structure.of_tree(tree)
    return Structure(tree, structure.support, errors, structure.group_sizes, structure.sweeps)


def test_samples_needed_grow_with_the_square_of_what_is_missing() -> None:
    assert samples_needed(quartet(0.4, 0.1), 1000) == 1000  # z is 4 already
    assert samples_needed(quartet(0.2, 0.1), 1000) == 4000
    assert samples_needed(quartet(0.8, 0.1), 1000) == 250


@pytest.mark.parametrize("error", [0.0, np.inf])
def test_unknown_errors_ask_for_nothing(error: float) -> None:
    assert samples_needed(quartet(0.4, error), 1000) == 0
