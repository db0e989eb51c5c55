"""Depth and needed samples against definitions that look at one path and one edge at a time."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from tests.reference.random_trees import trees

from latenttree.structure.learn import Structure
from latenttree.structure.summary import effective_depth, samples_needed
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
