"""Distances between trees: hand-worked answers, slow versions, dendropy and scikit-bio."""

from __future__ import annotations

from io import StringIO

import dendropy
import numpy as np
import pytest
from dendropy.calculate import treecompare
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from skbio import TreeNode
from tests.reference import tree as reference
from tests.reference.random_trees import SHAPES, random_tree, trees

from latenttree.metrics import group_rand_index, robinson_foulds, split_errors, structure_error
from latenttree.tree import Tree

#   a       c          a       b         a b c d
#    \     /            \     /           \| |/
#     h0-h1              h0-h1             h0
#    /     \            /     \
#   b       d          c       d
AB_CD = Tree.from_newick("((a,b)h0,c,d)h1;")
AC_BD = Tree.from_newick("((a,c)h0,b,d)h1;")
STAR = Tree.from_newick("(a,b,c,d)h0;")


@pytest.mark.parametrize(
    ("a", "b", "missing", "false", "normalized"),
    [
        (AB_CD, AB_CD, 0, 0, 0.0),
        (AB_CD, AC_BD, 1, 1, 1.0),
        (AB_CD, STAR, 1, 0, 1.0),
        (STAR, AB_CD, 0, 1, 1.0),
        (STAR, STAR, 0, 0, 0.0),
    ],
)
def test_four_leaves(a: Tree, b: Tree, missing: int, false: int, normalized: float) -> None:
    assert split_errors(a, b) == (missing, false)
    assert robinson_foulds(a, b) == missing + false
    assert robinson_foulds(a, b, normalized=True) == normalized


def test_an_observed_node_inside_counts_by_its_missing_pendant_split() -> None:
    #   a       d        a       d
    #    \     /          \     /
    #     h0--e            h0-h1--e
    #    /     \          /     \
    #   b       c        b       c
    inside = Tree.from_newick("((a,b)h0,c,d)e;")
    outside = Tree.from_newick("((a,b)h0,c,d,e)h1;")
    # The splits are the same but for {e} | abcd, which only the second has.
    assert robinson_foulds(inside, outside) == 1
    assert split_errors(inside, outside) == (0, 1)
    # Splits with two on both sides: ab | cde in either tree; one pendant difference.
    assert robinson_foulds(inside, outside, normalized=True) == pytest.approx(1 / 3)


def test_three_nodes() -> None:
    #  a--b--c   against a star with a hidden middle: it lacks {b} | ac
    chain, star = Tree.from_newick("(a,c)b;"), Tree.from_newick("(a,b,c);")
    assert robinson_foulds(chain, star) == 1
    assert robinson_foulds(chain, star, normalized=True) == 1.0
    # a--b--c against a--c--b: {c} only here, {b} only there
    other = Tree.from_newick("(a,b)c;")
    assert robinson_foulds(chain, other) == 2
    assert robinson_foulds(chain, other, normalized=True) == 1.0


@pytest.mark.parametrize("text", ["a;", "(a)b;"])
def test_smallest_trees(text: str) -> None:
    tree = Tree.from_newick(text)
    assert robinson_foulds(tree, tree) == 0
    assert robinson_foulds(tree, tree, normalized=True) == 0.0
    assert structure_error(tree, tree) == 0.0
    assert group_rand_index(tree, tree) == 1.0


same_names = st.integers(3, 15).flatmap(
    lambda p: st.tuples(trees(p, p, max_degree=8), trees(p, p, max_degree=8))
)


@settings(max_examples=200, deadline=None)
@given(same_names)
def test_against_split_sets(pair: tuple[Tree, Tree]) -> None:
    a, b = pair
    expected = reference.split_errors(a, b)
    assert split_errors(a, b) == expected
    assert robinson_foulds(a, b) == sum(expected)
    normalized = robinson_foulds(a, b, normalized=True)
    assert normalized == reference.normalized_robinson_foulds(a, b)
    assert 0 <= normalized <= 1
    assert (normalized == 0) == a.same_topology(b)
    assert robinson_foulds(b, a) == robinson_foulds(a, b)


@settings(max_examples=200, deadline=None)
@given(trees(min_observed=4, max_observed=30), st.integers(0, 2**32 - 1))
def test_near_trees(tree: Tree, seed: int) -> None:
    """Contract k edges between hidden nodes: k splits are missing, none is false."""
    rng = np.random.default_rng(seed)
    between_hidden = np.flatnonzero((tree.edges >= tree.n_observed).all(axis=1))
    chosen = between_hidden[rng.random(between_hidden.size) < 0.5]
    coarse = tree.contract(chosen).reorder(rng.permutation(tree.observed_names).tolist())
    assert split_errors(tree, coarse) == (chosen.size, 0)
    assert split_errors(coarse, tree) == (0, chosen.size)


leafy_pairs = st.integers(4, 20).flatmap(
    lambda p: st.tuples(trees(p, p, internal=False), trees(p, p, internal=False))
)


@settings(max_examples=100, deadline=None)
@given(leafy_pairs)
def test_against_dendropy_and_scikit_bio(pair: tuple[Tree, Tree]) -> None:
    ours = robinson_foulds(*pair)
    taxa = dendropy.TaxonNamespace()
    theirs = [
        dendropy.Tree.get(data="[&U]" + tree.to_newick(), schema="newick", taxon_namespace=taxa)
        for tree in pair
    ]
    assert ours == treecompare.symmetric_difference(*theirs)
    a, b = (TreeNode.read(StringIO(tree.to_newick())) for tree in pair)
    assert ours == a.compare_rfd(b, rooted=False)
    if len(pair[0].internal_edges()) + len(pair[1].internal_edges()):
        proportion = a.compare_rfd(b, rooted=False, proportion=True)
        assert robinson_foulds(*pair, normalized=True) == pytest.approx(proportion, abs=1e-12)


def test_different_names_are_refused() -> None:
    other = Tree.from_newick("(a,b,c,z);")
    for metric in (robinson_foulds, split_errors, structure_error, group_rand_index):
        with pytest.raises(ValueError, match=r"only the first has \['d'\].*second has \['z'\]"):
            metric(AB_CD, other)


# ---- groups -----------------------------------------------------------------------------


def test_structure_error_by_hand() -> None:
    # Truth: groups abc and def.
    #   a  b  c      d  e  f
    #    \ | /        \ | /
    #      h0 -------- h1
    truth = Tree.from_newick("((a,b,c)h0,d,e,f)h1;")
    assert structure_error(truth, truth) == 0
    # Estimate: abd and cef. abd \ abc = d: 1/3; cef \ def = c: 1/3.
    assert structure_error(truth, Tree.from_newick("((a,b,d)h0,c,e,f)h1;")) == pytest.approx(1 / 3)
    # One star: abcdef \ abc: 3/6. The other way round, pieces of a group cost nothing.
    star = Tree.from_newick("(a,b,c,d,e,f)h0;")
    assert structure_error(truth, star) == pytest.approx(1 / 2)
    assert structure_error(star, truth) == 0


def test_structure_error_without_groups() -> None:
    chain = Tree.from_newick("((a)b,d)c;")
    assert structure_error(AB_CD, chain) == 1.0
    assert structure_error(chain, AB_CD) == 1.0
    assert structure_error(chain, chain) == 0.0


@settings(max_examples=150, deadline=None)
@given(same_names)
def test_structure_error_against_the_formula(pair: tuple[Tree, Tree]) -> None:
    truth, estimate = pair
    assume(truth.n_hidden and estimate.n_hidden)
    assume(reference.groups(truth) and reference.groups(estimate))
    error = structure_error(truth, estimate)
    # The same fractions, added in the same order: rounding of 1 - x only.
    assert error == pytest.approx(reference.structure_error(truth, estimate), abs=1e-12)
    assert 0 <= error <= 1


def test_group_rand_index_by_hand() -> None:
    assert group_rand_index(AB_CD, AB_CD) == 1.0
    # ab, cd against ac, bd: no pair together in both. Index 0, expected 2 * 2 / 6 = 2/3,
    # largest 2: (0 - 2/3) / (2 - 2/3) = -1/2.
    assert group_rand_index(AB_CD, AC_BD) == pytest.approx(-0.5)
    assert group_rand_index(AB_CD, STAR) == 0.0


def test_group_rand_index_of_a_node_between_two_groups() -> None:
    #  a           c
    #   \         /
    #    h0--m--h1      m belongs with a and b, whose group comes first by name
    #   /         \
    #  b           d
    between = Tree.from_newick("((a,b)h0,(c,d)h1)m;")
    with_ab = Tree.from_newick("((a,b,m)h0,c,d)h1;")
    with_cd = Tree.from_newick("((a,b)h0,c,d,m)h1;")
    for order in ("abcdm", "dcbam", "mcdab"):
        assert group_rand_index(between.reorder(order), with_ab) == 1.0
        assert group_rand_index(between.reorder(order), with_cd) < 1.0


@settings(max_examples=100, deadline=None)
@given(same_names, st.integers(0, 2**32 - 1))
def test_group_rand_index_is_symmetric_and_blind_to_order(
    pair: tuple[Tree, Tree], seed: int
) -> None:
    a, b = pair
    shuffled = a.reorder(np.random.default_rng(seed).permutation(a.observed_names).tolist())
    assert group_rand_index(a, shuffled) == 1.0
    # Integer counts in another order: rounding only.
    assert group_rand_index(a, b) == pytest.approx(group_rand_index(b, a), abs=1e-12)
    assert group_rand_index(a, b) == group_rand_index(shuffled, b)


@pytest.mark.parametrize("shape", SHAPES)
def test_ten_thousand_observed(shape: str) -> None:
    """Linear after sorting: a quadratic version would hold 10^8 entries."""
    rng = np.random.default_rng(0)
    a = random_tree(rng, 10_000, shape=shape)
    b = random_tree(rng, 10_000, shape="uniform")
    assert robinson_foulds(a, a.reorder(a.observed_names[::-1])) == 0
    assert robinson_foulds(a, b) <= len(a.internal_edges()) + len(b.internal_edges())
    assert 0 <= structure_error(a, b) <= 1
