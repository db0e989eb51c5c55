"""Distances between trees: hand-worked answers, slow versions, dendropy and scikit-bio."""

from __future__ import annotations

from io import StringIO
from types import SimpleNamespace

import dendropy
import numpy as np
import pytest
from dendropy.calculate import treecompare
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from skbio import TreeNode
from tests.reference import metrics as slow
from tests.reference import tree as reference
from tests.reference.random_trees import SHAPES, random_tree, trees

from benchmarks.oracle import oracle
from latenttree.evaluation.datasets import make_latent_tree
from latenttree.evaluation.metrics import (
    group_rand_index,
    parameter_error,
    robinson_foulds,
    split_errors,
    structure_error,
)
from latenttree.model.tree_model import TreeModel
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


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_ten_thousand_observed(shape: str) -> None:
    """Linear after sorting: a quadratic version would hold 10^8 entries."""
    rng = np.random.default_rng(0)
    a = random_tree(rng, 10_000, shape=shape)
    b = random_tree(rng, 10_000, shape="uniform")
    assert robinson_foulds(a, a.reorder(a.observed_names[::-1])) == 0
    assert robinson_foulds(a, b) <= len(a.internal_edges()) + len(b.internal_edges())
    assert 0 <= structure_error(a, b) <= 1


# ---- parameters -------------------------------------------------------------------------


def star_model(*tables: list[list[float]], names: str = "abc", k: int = 2) -> TreeModel:
    """A star around h0 with uniform hidden states; rows of a table are states of the leaf."""
    tree = Tree.from_newick(f"({','.join(names)})h0;")
    prior = np.full((k, 1), 1 / k)
    return TreeModel(tree, len(names), (*map(np.array, tables), prior))


#    a    P(a|h) = .9 .2     P(b|h) = .6 .3     P(c|h) = 1  0
#    |             .1 .8              .4 .7              0  1
#    h
#   / \
#  b   c
STRONG, WEAK, COPY = [[0.9, 0.2], [0.1, 0.8]], [[0.6, 0.3], [0.4, 0.7]], [[1.0, 0.0], [0.0, 1.0]]
THREE = star_model(STRONG, WEAK, COPY)


def test_labels_do_not_matter() -> None:
    assert parameter_error(THREE, THREE) == 0
    assert parameter_error(THREE.relabelled({3: [1, 0]}), THREE) == 0
    assert parameter_error(THREE.rerooted("a").relabelled({3: [1, 0]}), THREE) < 1e-15  # rounding


def test_a_known_difference() -> None:
    # a moves by 0.1 in one column: ||.|| = sqrt(.01 + .01); the others stay.
    moved = star_model([[0.8, 0.2], [0.2, 0.8]], WEAK, COPY).relabelled({3: [1, 0]})
    expected = [np.sqrt(0.02), 0, 0]
    np.testing.assert_allclose(parameter_error(moved, THREE, per_leaf=True), expected, atol=1e-15)
    assert parameter_error(moved, THREE) == pytest.approx(np.sqrt(0.02) / 3, abs=1e-15)


def test_one_hidden_node_has_one_labelling() -> None:
    # b has its columns turned round. A labelling of its own would hide that; the strong leaves
    # fix the labels of h0, so b pays: both columns move by (.3, -.3), ||.|| = sqrt(4 * .09).
    turned = star_model(STRONG, [row[::-1] for row in WEAK], COPY)
    expected = [0, 0.6, 0]
    np.testing.assert_allclose(parameter_error(turned, THREE, per_leaf=True), expected, atol=1e-15)


def test_hidden_nodes_have_labels_of_their_own() -> None:
    data = make_latent_tree(9, 3, 5, n_samples=0, random_state=0)
    truth = data.model
    orders = {h: np.random.default_rng(h).permutation(3) for h in range(9, truth.tree.n_nodes)}
    # Models divide columns by their sums: rounding only.
    assert parameter_error(truth.relabelled(orders), data) < 1e-15


def test_numbers_of_nodes_do_not_matter() -> None:
    data = make_latent_tree(9, 3, 5, n_samples=0, random_state=0)
    truth, rng = data.model, np.random.default_rng(0)
    new = np.concatenate([rng.permutation(9), 9 + rng.permutation(truth.tree.n_hidden)])
    old = np.argsort(new)
    names = tuple(truth.tree.names[v] for v in old)
    tree = Tree(names, 9, new[truth.tree.edges], truth.tree.lengths)
    moved = TreeModel(tree, int(new[truth.root]), tuple(truth.cpts[v] for v in old))
    assert parameter_error(moved, data) < 1e-15  # rounding


def random_model(tree: Tree, k: int, d: int, rng: np.random.Generator) -> TreeModel:
    dims = [d] * tree.n_observed + [k] * tree.n_hidden
    root = tree.n_observed if tree.n_hidden else 0
    parents = tree.rooted(root).parents.tolist()
    widths = [1 if u < 0 else dims[u] for u in parents]
    tables = [rng.dirichlet(np.ones(n), size=w).T for n, w in zip(dims, widths, strict=True)]
    return TreeModel(tree, root, tuple(tables))


leafy_models = st.integers(4, 12).flatmap(
    lambda p: st.tuples(
        trees(p, p, max_degree=6, internal=False),
        trees(p, p, max_degree=6, internal=False),
        st.integers(2, 4),
        st.integers(0, 2**32 - 1),
    )
)


@settings(max_examples=100, deadline=None)
@given(leafy_models)
def test_against_all_labellings(case: tuple[Tree, Tree, int, int]) -> None:
    one, other, k, seed = case
    rng = np.random.default_rng(seed)
    truth = random_model(one, k, 5, rng)
    for found in (random_model(one, k, 5, rng), random_model(other, k, 5, rng)):
        # Sums of squares in another order: rounding only.
        assert parameter_error(found, truth) == pytest.approx(
            slow.parameter_error(found, truth), abs=1e-12
        )


def test_states_that_only_one_model_has() -> None:
    # A third hidden state of the truth, in which a is (.5, .5), has no partner: its norm counts.
    wide = star_model(
        [[0.9, 0.2, 0.5], [0.1, 0.8, 0.5]],
        [[0.6, 0.3, 0.0], [0.4, 0.7, 1.0]],
        [[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]],
        k=3,
    )
    lone = [np.sqrt(0.5), 1.0, np.sqrt(0.5)]
    np.testing.assert_allclose(parameter_error(THREE, wide, per_leaf=True), lone, atol=1e-15)
    np.testing.assert_allclose(parameter_error(wide, THREE, per_leaf=True), lone, atol=1e-15)


def test_categories_that_never_occurred() -> None:
    # a has states 0, 1, 2 in the truth; the estimate saw 0 and 2 only.
    truth = star_model([[0.9, 0.2], [0.1, 0.1], [0.0, 0.7]], WEAK, COPY)
    seen = star_model([[0.9, 0.3], [0.1, 0.7]], WEAK, COPY)
    with pytest.raises(ValueError, match="'a' has 2 states in the estimate and 3 in the truth"):
        parameter_error(seen, truth)
    # Columns (.9, .0, .1) and (.3, .0, .7) against (.9, .1, .0) and (.2, .1, .7).
    expected = np.sqrt(0.01 + 0.01 + 0.01 + 0.01) / 3
    assert parameter_error(seen, truth, states={"a": [0, 2]}) == pytest.approx(expected, abs=1e-15)
    for wrong in ([0], [0, 0], [0.0, 2.0]):
        with pytest.raises(ValueError, match="2 different whole numbers"):
            parameter_error(seen, truth, states={"a": wrong})
    with pytest.raises(ValueError, match=r"values from 0 to 3; the truth has states 0\.\.2"):
        parameter_error(seen, truth, states={"a": [0, 3]})


def test_categories_of_a_fitted_estimator() -> None:
    truth = star_model([[0.9, 0.2], [0.1, 0.1], [0.0, 0.7]], WEAK, COPY)
    seen = star_model([[0.9, 0.3], [0.1, 0.7]], WEAK, COPY)

    def fitted(model: TreeModel, labels: list[str] | list[int] | None) -> SimpleNamespace:
        categories = (None if labels is None else np.array(labels), None, None)
        schema = SimpleNamespace(names=("a", "b", "c"), categories=categories)
        return SimpleNamespace(model_=model, schema_=schema)

    expected = np.sqrt(0.04) / 3  # as above
    assert parameter_error(fitted(seen, [0, 2]), truth) == pytest.approx(expected, abs=1e-15)
    labelled = fitted(truth, ["x", "y", "z"])
    assert parameter_error(labelled, labelled) == 0
    assert parameter_error(fitted(seen, ["x", "z"]), labelled) == pytest.approx(expected, abs=1e-15)
    assert parameter_error(fitted(THREE, None), THREE) == 0
    with pytest.raises(ValueError, match="a label that it does not have"):
        parameter_error(fitted(seen, ["x", "w"]), labelled)


def test_a_leaf_that_hangs_from_an_observed_node() -> None:
    #   a--c--b: c has taken the place of h0 in the estimate
    tree = Tree.from_newick("(a,b)c;").reorder("abc")
    chain = TreeModel(tree, 2, (np.array(STRONG), np.array(WEAK), np.full((2, 1), 0.5)))
    # The estimate has marginals a (.55, .45), b (.45, .55), c (.5, .5) and no hidden node:
    # a misses .9 .2 by .35 in all four cells, b .6 .3 by .15, c 1 0 by .5.
    expected = [0.7, 0.3, 1.0]
    np.testing.assert_allclose(parameter_error(chain, THREE, per_leaf=True), expected, atol=1e-15)
    # Against itself there are no labels to choose: c's states are known. c is no leaf.
    turned = TreeModel(tree, 2, (np.array(STRONG)[:, ::-1], np.array(WEAK), np.full((2, 1), 0.5)))
    np.testing.assert_allclose(parameter_error(turned, chain, per_leaf=True), [1.4, 0, np.nan])
    # The truth's leaves a and b hang from c, the estimate's from h0: marginals again.
    np.testing.assert_allclose(
        parameter_error(THREE, chain, per_leaf=True), [0.7, 0.3, np.nan], atol=1e-15
    )


def test_a_leaf_that_is_internal_in_the_estimate() -> None:
    #  a           c          a       c
    #   \         /            \     /
    #    h0--m--h1              h0-h1
    #   /         \            /  |  \
    #  b           d          b   m   d
    rng = np.random.default_rng(0)
    between = random_model(Tree.from_newick("((a,b)h0,(c,d)h1)m;").reorder("abcdm"), 2, 3, rng)
    for text, near in (("((a,b,m)h0,c,d)h1;", "a"), ("((a,b)h0,c,d,m)h1;", "c")):
        truth = random_model(Tree.from_newick(text).reorder("abcdm"), 2, 3, rng)
        near_m = int(between.tree.neighbors(near)[0])
        A = truth.conditional("m", int(truth.tree.neighbors("m")[0]))
        A_hat = between.conditional("m", near_m)
        error = parameter_error(between, truth, per_leaf=True)[4]
        tried = [np.linalg.norm(A - A_hat[:, order]) for order in ([0, 1], [1, 0])]
        # m shares the labels of the leaves beside it, so either order may be the group's best.
        assert np.isclose(error, tried).any()


def test_the_smallest_models() -> None:
    one = TreeModel(Tree.build(["a"], [], []), 0, (np.array([[0.25], [0.75]]),))
    other = TreeModel(one.tree, 0, (np.array([[0.5], [0.5]]),))
    assert parameter_error(one, one) == 0
    assert parameter_error(other, one) == pytest.approx(0.25 * np.sqrt(2))
    pair = TreeModel(Tree.build(["a", "b"], [(0, 1)], [1.0]), 0, (np.full((2, 1), 0.5), np.eye(2)))
    assert parameter_error(pair, pair) == 0
    assert parameter_error(pair.relabelled({0: [1, 0]}), pair) == pytest.approx(2)


def test_what_has_no_parameters_is_refused() -> None:
    with pytest.raises(TypeError, match="got Tree, which has no parameters"):
        parameter_error(AB_CD, THREE)
    with pytest.raises(ValueError, match="different observed nodes"):
        parameter_error(star_model(STRONG, WEAK, COPY, names="abd"), THREE)


def test_true_model_of_simulated_data() -> None:
    data = make_latent_tree(9, 2, 4, n_samples=0, internal_observed=0, random_state=1)
    truth = data.model
    for v, marginal in enumerate(data.marginals):
        np.testing.assert_allclose(truth.marginal(v), marginal, atol=1e-12)  # sums of products
    assert parameter_error(data, truth) == 0


def test_oracle_counts() -> None:
    data = make_latent_tree(4, 2, 3, shape="star", n_samples=500, random_state=0)
    found = oracle(data)
    for x in range(4):
        for j in range(2):
            rows = data.X[data.hidden[:, 0] == j, x]
            shares = [np.mean(rows == i) for i in range(3)]
            np.testing.assert_allclose(found.conditional(x, "h0")[:, j], shares, atol=1e-14)
    np.testing.assert_allclose(found.marginal("h0")[0], np.mean(data.hidden == 0), atol=1e-14)


def test_oracle_error_falls_with_the_root_of_n() -> None:
    """E ||A - A_hat||^2 = sum_j (1 - |a_j|^2) / n_j for counts of n_j samples in state j."""
    ratios = []
    for seed in range(20):
        data = make_latent_tree(9, 3, 10, n_samples=5_000, random_state=seed)
        truth = data.model
        squares = parameter_error(oracle(data), data, per_leaf=True) ** 2
        for x in range(9):
            (u,) = truth.tree.neighbors(x).tolist()
            A = truth.conditional(x, u)
            n_j = np.bincount(data.hidden[:, u - 9], minlength=3)
            ratios.append(squares[x] / np.sum((1 - (A**2).sum(0)) / n_j))
    # 180 ratios of mean 1 and standard deviation about sqrt(2 / (3 * 9)) = 0.27, so their mean has
    # standard error 0.02 (0.035 if the leaves of one hidden node were one): five of them.
    assert np.mean(ratios) == pytest.approx(1, abs=0.15)
