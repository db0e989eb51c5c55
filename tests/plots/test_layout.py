"""Layouts, checked by arithmetic."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plots.trees import INNER, ONE, STAR, TWO, random_tree, trees
from tests.reference import layouts

from latenttree.plots import layout
from latenttree.tree import Tree


@given(trees)
@settings(max_examples=40, deadline=None)
def test_centre_is_the_middle_of_a_longest_path(tree: Tree) -> None:
    hops = np.array(
        [[len(tree.path(a, b)) - 1 for b in range(tree.n_nodes)] for a in range(tree.n_nodes)]
    )
    assert hops[tree.centre()].max() == (hops.max() + 1) // 2


@given(trees)
@settings(max_examples=40, deadline=None)
def test_branches_take_slots_side_by_side(tree: Tree) -> None:
    """Every observed node has a slot, and the slots of a branch are consecutive."""
    rooted = layout.rooted_layout(tree)
    slots = rooted.slots[: tree.n_observed] - 0.5
    assert sorted(slots) == list(range(tree.n_observed))
    members = np.unpackbits(tree.splits(), axis=1, count=tree.n_observed).astype(bool)
    for row in members:
        runs = np.count_nonzero(np.diff(row[np.argsort(slots)].astype(int)))
        assert runs <= 2  # consecutive, or the complement is


@given(trees, st.booleans())
@settings(max_examples=40, deadline=None)
def test_radial_by_depth(tree: Tree, lengths: bool) -> None:
    xy = layouts.radial(tree, lengths=lengths)
    radius = np.hypot(*xy.T)
    rooted = layout.rooted_layout(tree, lengths=lengths)
    assert xy.shape == (tree.n_nodes, 2)
    assert radius.max() <= 1 + 1e-12  # rounding of cos and sin
    assert radius[rooted.root] == 0
    if lengths:
        np.testing.assert_allclose(radius * rooted.depths.max(), rooted.depths, atol=1e-12)
    else:
        np.testing.assert_allclose(radius[tree.degree() == 1], 1, atol=1e-12)
        child = rooted.order[1:]
        assert np.all(radius[child] > radius[rooted.parents[child]])


def test_angle_of_a_branch_is_in_proportion_to_its_leaves() -> None:
    #  h0 holds a, b; the centre holds c, d, e, f: six leaves at 60 degrees each
    edges = [(0, 6), (1, 6), (6, 7), (2, 7), (3, 7), (4, 7), (5, 7)]
    tree = Tree.build(list("abcdef"), edges, np.ones(7))
    xy = layouts.radial(tree)
    degrees = np.degrees(np.arctan2(*xy[:6].T)) % 360  # clockwise from the top
    np.testing.assert_allclose(degrees, [30, 90, 150, 210, 270, 330])
    h0 = xy[tree.index("a")] + xy[tree.index("b")]
    branch = xy[tree.neighbors("a")[0]]
    np.testing.assert_allclose(np.cross(np.append(h0, 0), np.append(branch, 0)), 0, atol=1e-12)


def test_top_down_by_hand() -> None:
    xy = layouts.top_down(STAR)
    np.testing.assert_allclose(xy[:5], [[i + 0.5, -1] for i in range(5)])
    np.testing.assert_allclose(xy[5], [2.5, 0])
    np.testing.assert_allclose(layouts.top_down(STAR, lengths=True)[:5, 1], [-1, -2, -3, -4, -5])


def test_layouts_of_the_smallest_trees() -> None:
    assert layouts.radial(ONE).tolist() == [[0, 0]]
    assert layouts.top_down(ONE).tolist() == [[0.5, 0]]
    assert layouts.radial(TWO).shape == (2, 2)
    assert np.all(np.isfinite(layouts.radial(TWO.with_lengths([0.0]), lengths=True)))


def test_groups_are_the_hidden_neighbours_of_leaves() -> None:
    tree = random_tree(30, 3)
    group = layout.groups(tree, layout.rooted_layout(tree))
    for node in range(tree.n_observed):
        assert group[node] == tree.neighbors(node)[0]  # every observed node is a leaf here


def test_groups_of_observed_nodes_inside() -> None:
    group = layout.groups(INNER, layout.rooted_layout(INNER))
    assert group[INNER.index("h")] == group[INNER.index("g")]
    assert np.all(group >= INNER.n_observed)
    assert layout.groups(TWO, layout.rooted_layout(TWO)).tolist() == [0, 0]


@given(trees, st.integers(0, 100))
@settings(max_examples=40, deadline=None)
def test_hidden_nodes_at_the_mean_of_their_neighbours(tree: Tree, seed: int) -> None:
    positions = np.random.default_rng(seed).uniform(0, 7, (tree.n_observed, 2))
    xy = layout.anchored(tree, positions)
    np.testing.assert_array_equal(xy[: tree.n_observed], positions)
    for node in range(tree.n_observed, tree.n_nodes):
        # The elimination is exact but for rounding.
        np.testing.assert_allclose(xy[node], xy[tree.neighbors(node)].mean(axis=0), atol=1e-10)


def test_hidden_nodes_around_observed_ones_inside() -> None:
    positions = np.arange(16.0).reshape(8, 2) ** 2
    xy = layout.anchored(INNER, positions)
    for node in range(8, INNER.n_nodes):
        np.testing.assert_allclose(xy[node], xy[INNER.neighbors(node)].mean(axis=0), atol=1e-10)
