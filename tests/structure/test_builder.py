"""A tree under construction: arrays against an adjacency that is walked, and against `Tree`."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from tests.reference.adjacency import Adjacency, builder_of, edges_of
from tests.reference.features import behind
from tests.reference.random_trees import random_tree, trees

from latenttree.structure.builder import REMOVED, TreeBuilder
from latenttree.tree import Tree


def quartet() -> TreeBuilder:
    """
    0           2
     \\1   3   3/
      4 ----- 5
     /2       4\\
    1           3
    """
    edges = [(0, 4), (1, 4), (2, 5), (3, 5), (4, 5)]
    return TreeBuilder(4, edges, [1.0, 2.0, 3.0, 4.0, 3.0])


def shuffled(tree: Tree, rng: np.random.Generator) -> TreeBuilder:
    """The same tree with other numbers of hidden nodes, gaps between them, and edges and their
    ends in another order; every edge has another standard error and support."""
    hidden = tree.n_observed + rng.permutation(3 * tree.n_hidden)[: tree.n_hidden]
    number = np.concatenate([np.arange(tree.n_observed), hidden])
    order = rng.permutation(tree.n_edges)
    ends = rng.permuted(number[tree.edges], axis=1)[order]
    errors, support = rng.random((2, tree.n_edges))
    return TreeBuilder(tree.n_observed, ends, tree.lengths[order], errors[order], support[order])


def attributes(builder: TreeBuilder) -> dict[frozenset[int], tuple[float, ...]]:
    """Length, standard error and support of every edge, by its two nodes."""
    columns = (builder.length, builder.standard_error, builder.support)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return dict(zip(map(frozenset, builder.ends.tolist()), rows, strict=True))


@settings(deadline=None, derandomize=True)
@given(trees(min_observed=1, max_observed=25))
def test_a_tree_goes_in_and_comes_out(tree: Tree) -> None:
    builder = shuffled(tree, np.random.default_rng(tree.n_nodes))
    back = builder.tree(tree.observed_names)
    assert back == tree.canonical()
    builder.sort()
    assert builder.tree(tree.observed_names) == back


@settings(deadline=None, derandomize=True)
@given(trees(min_observed=1, max_observed=25))
def test_attributes_follow_their_edges(tree: Tree) -> None:
    """Every edge of the canonical tree has the number of the edge with its split here."""
    builder = shuffled(tree, np.random.default_rng(tree.n_nodes))
    before = attributes(builder)
    builder.sort()
    assert attributes(builder) == before
    canonical, edge = builder.canonical(tree.observed_names)
    np.testing.assert_array_equal(canonical.lengths, builder.length[edge])
    assert sorted(edge.tolist()) == list(range(tree.n_edges))


def test_lengths_of_the_canonical_tree_tell_edges_apart() -> None:
    """All lengths differ, so equal lengths are the same edge; removed edges are left out."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        tree = random_tree(rng, 15, max_degree=5, length_range=(0.1, 1.0))
        builder = shuffled(tree, rng)
        builder.support = 2 * builder.length
        row = int(np.flatnonzero(builder.ends.min(axis=1) >= 15)[0])
        keep, drop = builder.ends[row].tolist()
        builder.ends[row] = REMOVED
        builder.ends[builder.ends == drop] = keep
        found, edge = builder.canonical(tree.observed_names)
        assert found == builder.tree(tree.observed_names)
        assert row not in edge
        np.testing.assert_array_equal(builder.support[edge], 2 * found.lengths)


def test_sorting_puts_the_lower_end_first_and_deletes_removed_edges() -> None:
    builder = TreeBuilder(4, [(5, 4), (3, 5), (-1, -1), (4, 0), (1, 4), (5, 2)], np.arange(6.0))
    builder.sort()
    assert builder.ends.tolist() == [[0, 4], [1, 4], [2, 5], [3, 5], [4, 5]]
    assert builder.length.tolist() == [3.0, 4.0, 5.0, 1.0, 0.0]
    assert len(builder.support) == len(builder.standard_error) == 5


def test_edges_are_appended_with_defaults() -> None:
    builder = quartet()
    builder.add([(4, 6), (6, 7)], [0.5, 0.7])
    assert builder.ends[5:].tolist() == [[4, 6], [6, 7]]
    assert builder.length[5:].tolist() == [0.5, 0.7]
    assert builder.support[5:].tolist() == [1.0, 1.0]
    assert builder.standard_error[5:].tolist() == [0.0, 0.0]


def test_the_arrays_given_are_copied() -> None:
    ends, lengths = np.array([[0, 3], [1, 3], [2, 3]]), np.ones(3)
    builder = TreeBuilder(3, ends, lengths)
    builder.ends[0] = REMOVED
    builder.length[0] = 7.0
    assert ends[0].tolist() == [0, 3]
    assert lengths[0] == 1.0


def test_scale_multiplies_lengths() -> None:
    tree = quartet().tree(["a", "b", "c", "d"], scale=2.0)
    assert tree.path_lengths()[0, 1] == pytest.approx(6.0, rel=1e-12)  # two sums, no more


@pytest.mark.parametrize("p", [1, 2])
def test_trees_without_hidden_nodes(p: int) -> None:
    builder = TreeBuilder(p, [(0, 1)][: p - 1], [0.5][: p - 1])
    assert builder.n_nodes == p
    tree, edge = builder.canonical(["a", "b"][:p])
    assert (tree.n_hidden, len(tree.edges), len(edge)) == (0, p - 1, p - 1)


# ---- incidence -----------------------------------------------------------------------


@settings(deadline=None, derandomize=True)
@given(trees(min_observed=1, max_observed=25, max_degree=6))
def test_every_node_has_the_directed_edges_to_its_neighbours(tree: Tree) -> None:
    """Parents come first on the walk, and the observed nodes behind a directed edge are those
    found by walking."""
    builder, adjacency = builder_of(tree), Adjacency.of(tree)
    incidence = builder.incidence()
    assert sorted(incidence.order.tolist()) == list(range(tree.n_nodes))
    position = np.argsort(incidence.order)
    for v, near in adjacency.links.items():
        leaving = incidence.edge[incidence.first[v] : incidence.first[v + 1]]
        assert (incidence.tail[leaving] == v).all()
        heads = incidence.tail[leaving ^ 1].tolist()
        assert dict(zip(heads, builder.length[leaving >> 1].tolist(), strict=True)) == near
        for d, u in zip(leaving.tolist(), heads, strict=True):
            assert incidence.n_behind[d] == len(behind(adjacency, v, u))
        if v == 0:
            assert incidence.parent_edge[v] == -1
        else:
            assert incidence.parent_edge[v] in leaving
            assert position[incidence.tail[incidence.parent_edge[v] ^ 1]] < position[v]


def test_split_hashes_are_equal_where_the_observed_nodes_behind_are() -> None:
    """Another numbering of the same tree has the same hashes; no two edges share one."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        tree = random_tree(rng, 30, max_degree=5)
        hashes = [
            np.sort(builder.incidence().split_hash)
            for builder in (builder_of(tree), shuffled(tree, rng))
        ]
        np.testing.assert_array_equal(*hashes)
        assert len(np.unique(hashes[0])) == 2 * tree.n_edges


def test_removed_edges_leave_no_node() -> None:
    """0 and 4 are one node: the edge between them keeps its number, and nothing else."""
    builder = quartet()
    builder.ends[0] = REMOVED
    builder.ends[builder.ends == 4] = 0
    incidence = builder.incidence()
    assert sorted(incidence.edge[incidence.first[0] : incidence.first[1]] >> 1) == [1, 4]
    assert incidence.first[4] == incidence.first[5]
    assert incidence.order.tolist() == [0, 1, 5, 2, 3]
    assert builder.hidden().tolist() == [5]
    assert edges_of(builder) == [(0, 1), (0, 5), (2, 5), (3, 5)]
