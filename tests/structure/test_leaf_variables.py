"""Observed nodes that must be leaves: moved out of the tree's inside, everything else as it was."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference import tree as slow
from tests.reference.random_trees import random_tree, trees

from latenttree.structure.independence import parts_of
from latenttree.structure.leaf_variables import SHORT, as_leaves
from latenttree.structure.learn import Structure
from latenttree.tree import Tree

Values = tuple[float, float, float]


def structure_of(tree: Tree, seed: int = 0) -> Structure:
    """A tree whose edges all have another support and standard error, some of it infinite."""
    rng = np.random.default_rng(seed)
    n_edges = len(tree.edges)
    errors = np.where(rng.random(n_edges) < 0.1, np.inf, rng.random(n_edges))
    return Structure(tree, rng.random(n_edges), errors, np.empty(0, dtype=np.int64), [], 2, 1)


def by_split(structure: Structure) -> dict[slow.Split, Values]:
    """Length, support and standard error of every edge, by what it separates."""
    columns = (structure.tree.lengths, structure.support, structure.standard_errors)
    rows = zip(*(x.tolist() for x in columns), strict=True)
    found = dict(zip(slow.splits(structure.tree), rows, strict=True))
    assert len(found) == len(structure.tree.edges)
    return found


def alone(name: str, tree: Tree) -> slow.Split:
    return frozenset({frozenset({name}), frozenset(tree.observed_names) - {name}})


def check(structure: Structure, asked: set[int]) -> None:
    """Asked nodes are leaves of hidden nodes; every edge that was there is there with all it has;
    new are only the edges to nodes that were inside."""
    before, p = structure.tree, structure.tree.n_observed
    result = as_leaves(structure, asked)
    after = result.tree
    assert after.observed_names == before.observed_names
    for v in asked:
        near = after.neighbors(v).tolist()
        assert len(near) == 1
        assert near[0] >= p
    old, new = by_split(structure), by_split(result)
    for split, values in old.items():
        np.testing.assert_array_equal(new[split], values)
    moved = [v for v in range(p) if len(before.neighbors(v)) > len(after.neighbors(v))]
    added = {alone(before.names[v], before) for v in moved}
    assert set(new) - set(old) == added
    for split in added:
        assert new[split] == (SHORT, 1.0, 0.0)
    unasked = set(moved) - asked  # only what would have had an asked node as its neighbour
    assert all(asked.intersection(before.neighbors(v).tolist()) for v in unasked)
    assert after == after.canonical()
    assert (result.n_components, result.n_duplicates) == (2, 1)


@settings(max_examples=150, deadline=None)
@given(trees(min_observed=3, max_observed=16), st.data())
def test_asked_nodes_become_leaves_and_all_else_stays(tree: Tree, data: st.DataObject) -> None:
    check(structure_of(tree), data.draw(st.sets(st.integers(0, tree.n_observed - 1))))


def test_all_nodes_of_chains_of_observed_nodes() -> None:
    for seed in range(40):
        rng = np.random.default_rng(seed)
        p = int(rng.integers(3, 10))
        path = rng.permutation(p)
        tree = Tree.build(
            [f"x{i}" for i in range(p)], np.column_stack([path[:-1], path[1:]]), rng.random(p - 1)
        )
        check(structure_of(tree), set(range(p)))
        check(structure_of(tree), set(rng.choice(p, int(rng.integers(1, p)), False).tolist()))


def test_a_node_in_the_middle_by_hand() -> None:
    """a - x - b     becomes     a - h - b
    |
    x"""
    tree = Tree.build(["a", "x", "b"], np.array([[0, 1], [1, 2]]), [0.3, 0.7])
    found = as_leaves(Structure.of_tree(tree), [1]).tree
    assert (found.n_hidden, found.degree().tolist()) == (1, [1, 1, 1, 3])
    np.testing.assert_allclose(found.path_lengths()[0], [0.0, 0.3 + SHORT, 1.0])


def test_nothing_to_do_is_the_same_structure() -> None:
    for seed in range(20):
        tree = random_tree(np.random.default_rng(seed), 9, max_degree=5)
        structure = structure_of(tree)
        assert as_leaves(structure, range(9)) is structure  # all are leaves already
        inside = structure_of(
            random_tree(np.random.default_rng(seed), 9, internal_observed_fraction=0.5)
        )
        assert as_leaves(inside, []) is inside


def test_one_or_two_variables_are_left_alone() -> None:
    one = Structure.of_tree(Tree.build(["x"], np.empty((0, 2), int), np.empty(0)))
    two = Structure.of_tree(Tree.build(["x", "y"], np.array([[0, 1]]), [0.5]))
    assert as_leaves(one, [0]) is one
    assert as_leaves(two, [0, 1]) is two


@settings(max_examples=300, deadline=None)
@given(trees(min_observed=3, max_observed=14), st.integers(0, 2**32 - 1), st.floats(0, 1))
def test_parts_stay_whatever_joins_them(tree: Tree, seed: int, share: float) -> None:
    """Any edges may join parts, so that hidden nodes have any number of edges within theirs: the
    variables of a part stay together, and the splits of it stay."""
    rng = np.random.default_rng(seed)
    structure = structure_of(tree, seed)
    support = np.where(rng.random(tree.n_edges) < share, 0.0, structure.support)
    structure = replace(structure, support=support)
    result = as_leaves(structure, range(tree.n_observed))
    assert (result.tree.degree()[: tree.n_observed] == 1).all()
    assert (result.tree.degree()[tree.n_observed :] >= 3).all()
    before, after = parts_and_splits(structure), parts_and_splits(result)
    assert before.keys() == after.keys()
    for part, splits in before.items():
        assert splits <= after[part]


def parts_and_splits(structure: Structure) -> dict[frozenset[str], set[frozenset[str]]]:
    """For the variables of each part the sets of two or more that an edge within it cuts off."""
    tree, within = structure.tree, structure.support > 0
    part = parts_of(tree.edges[within], tree.n_nodes)[: tree.n_observed]
    found = {}
    for label in np.unique(part).tolist():
        members = frozenset(tree.names[v] for v in np.flatnonzero(part == label).tolist())
        splits: set[frozenset[str]] = set()
        for (one, other), real in zip(slow.splits(tree), within.tolist(), strict=True):
            sides = {one & members, other & members}
            if real and min(map(len, sides)) > 1:
                splits |= sides
        found[members] = splits
    return found


def test_a_node_that_only_joins_parts_goes() -> None:
    r"""The search may leave a hidden node in the middle of joins (dotted):

        a          e           a
         \         :            \
          h0 --- h1 --- d   =>    h0 --- d     and c, e, f joined to h0
         /  :      :             /
        b    c     f           b
    """
    tree = Tree.build(
        list("abcdef"),
        np.array([[0, 6], [1, 6], [2, 6], [3, 7], [4, 7], [5, 7], [6, 7]]),
        np.arange(1.0, 8.0),
    )
    support = np.array([1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.2])
    thin = replace(Structure.of_tree(tree), support=support)
    assert as_leaves(thin, range(6)).tree.n_hidden == 2  # three edges within the part at each
    found = as_leaves(replace(thin, support=support * [1, 1, 1, 1, 0, 1, 1]), range(6))
    assert found.tree.n_hidden == 1
    assert found.support.tolist() == [1.0, 1.0, 0.0, 1.0, 0.0, 0.0]
    assert found.tree.lengths[[0, 1, 3]].tolist() == [1.0, 2.0, 11.0]  # 4 and 7 are one edge
