"""Groups from a tree: hand-worked ones, and random trees against the matrix of all pairs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference import cutting as reference
from tests.reference.random_trees import random_tree

from latenttree.errors import DataError
from latenttree.tree import Tree


def test_two_clusters_apart() -> None:
    #  a  b   c        e  f  g
    #   \ | /           \ | /
    #     h0 ---- 3 ---- h1
    edges = [(0, 6), (1, 6), (2, 6), (3, 7), (4, 7), (5, 7), (6, 7)]
    tree = Tree.build("abcefg", edges, [0.5] * 6 + [3.0])
    assert tree.cut(1).tolist() == [0] * 6
    assert tree.cut(2).tolist() == [0, 0, 0, 1, 1, 1]
    assert sorted(tree.cut(6).tolist()) == list(range(6))


def test_a_hardly_measured_variable_is_no_group_of_its_own() -> None:
    edges = [(0, 6), (1, 6), (2, 6), (3, 7), (4, 7), (5, 7), (6, 7)]
    tree = Tree.build("abcefg", edges, [0.5, 0.5, 30.0, 0.5, 0.5, 0.5, 1.0])
    assert tree.cut(2).tolist() == [0, 0, 0, 1, 1, 1]


def test_opposite_parties_at_one_hidden_node() -> None:
    edges = [(i, 6) for i in range(6)]
    tree = Tree.build("abcdef", edges, np.ones(6), [1, -1, 1, -1, 1, -1])
    assert tree.cut(2).tolist() == [0, 1, 0, 1, 0, 1]
    turned = tree.with_evidence(signs=-tree.signs)
    assert turned.cut(2).tolist() == [0, 1, 0, 1, 0, 1]


@given(st.integers(0, 10_000), st.integers(2, 12), st.booleans())
@settings(max_examples=40, deadline=None)
def test_every_split_is_the_best_of_all(seed: int, p: int, signed: bool) -> None:
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, p, max_degree=5, internal_observed_fraction=0.2)
    tree = tree.with_evidence(signs=rng.integers(-1, 2, tree.n_edges))
    similarity = reference.similarities(tree, signed)
    before = tree.cut(1, signed=signed)
    for n_groups in range(2, p + 1):
        after = tree.cut(n_groups, signed=signed)
        assert len(np.unique(after)) == n_groups
        assert len(np.unique(np.column_stack([before, after]), axis=0)) == n_groups  # nested
        best = reference.best_next_score(tree, before, signed)
        # sums of the same products in another order
        assert reference.score(after, similarity) == pytest.approx(best, rel=1e-9, abs=1e-9)
        before = after


@given(st.integers(0, 10_000), st.integers(4, 12), st.integers(1, 4), st.booleans())
@settings(max_examples=40, deadline=None)
def test_no_group_is_smaller_than_asked(seed: int, p: int, size: int, signed: bool) -> None:
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, p, max_degree=5, internal_observed_fraction=0.2)
    tree = tree.with_evidence(signs=rng.integers(-1, 2, tree.n_edges))
    before = tree.cut(1, signed=signed)
    while True:
        after = tree.cut(min(int(before.max()) + 2, p), min_size=size, signed=signed)
        assert np.bincount(after).min() >= size
        best = reference.best_next_score(tree, before, signed, size)
        if after.max() == before.max():
            assert best == -np.inf
            return
        found = reference.score(after, reference.similarities(tree, signed))
        assert found == pytest.approx(best, rel=1e-9, abs=1e-9)  # sums in another order
        before = after


@pytest.mark.parametrize("wrong", [0, 4, 1.5, True, "2"])
def test_impossible_numbers_are_refused(wrong: object) -> None:
    tree = Tree.build("abc", [(0, 3), (1, 3), (2, 3)], np.ones(3))
    with pytest.raises(DataError, match="k="):
        tree.cut(wrong)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="min_size="):
        tree.cut(2, min_size=wrong)  # type: ignore[arg-type]


def test_a_deep_tree_of_many_variables() -> None:
    tree = random_tree(np.random.default_rng(0), 3_000, shape="caterpillar")
    assert len(np.unique(tree.cut(5))) == 5
