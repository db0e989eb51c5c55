"""Signs of edges: products along paths, and what keeps them."""

from __future__ import annotations

import copy
import itertools
import pickle

import dendropy
import numpy as np
import pytest
from dendropy.calculate import treecompare
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference import tree as reference
from tests.reference.random_trees import random_tree

from latenttree.errors import DataError
from latenttree.tree import Tree

#   a        c
#    \+    -/
#     h0--h1      h0--h1 is negative
#    /-    \+
#   b       d
EDGES = [(0, 4), (1, 4), (2, 5), (3, 5), (4, 5)]
TREE = Tree.build("abcd", EDGES, np.arange(1.0, 6.0), [1, -1, -1, 1, -1])


def signed_tree(seed: int, values: tuple[int, ...] = (-1, 1)) -> Tree:
    rng = np.random.default_rng(seed)
    p = int(rng.integers(2, 14))
    tree = random_tree(rng, p, max_degree=5, internal_observed_fraction=0.3)
    support = rng.random(tree.n_edges).round(3)
    return tree.with_evidence(signs=rng.choice(values, tree.n_edges), support=support)


def walked_signs(tree: Tree) -> np.ndarray:
    """Products along `Tree.path`."""
    sign = {
        frozenset(pair): int(s) for pair, s in zip(tree.edges.tolist(), tree.signs, strict=True)
    }
    p = tree.n_observed
    found = np.ones((p, p), dtype=int)
    for a in range(p):
        for b in range(p):
            path = tree.path(a, b)
            found[a, b] = np.prod([sign[frozenset(e)] for e in itertools.pairwise(path)])
    return found


def test_signs_of_paths_by_hand() -> None:
    expected = [[1, -1, 1, -1], [-1, 1, -1, 1], [1, -1, 1, -1], [-1, 1, -1, 1]]
    assert TREE.path_signs().tolist() == expected
    assert TREE.signs.dtype == np.int8
    assert Tree.build("ab", [(0, 1)], [1.0]).signs.tolist() == [0]
    assert Tree.build("ab", [(0, 1)], [1.0]).support is None


@given(st.integers(0, 10_000))
@settings(max_examples=50, deadline=None)
def test_signs_of_paths_are_products(seed: int) -> None:
    tree = signed_tree(seed, (-1, 0, 1))
    np.testing.assert_array_equal(tree.path_signs(), walked_signs(tree))


@given(st.integers(0, 10_000))
@settings(max_examples=50, deadline=None)
def test_paths_keep_their_signs(seed: int) -> None:
    tree, rng = signed_tree(seed), np.random.default_rng(seed)
    names = rng.permutation(tree.observed_names).tolist()
    there = [tree.observed_names.index(name) for name in names]
    expected = tree.path_signs()[np.ix_(there, there)]
    np.testing.assert_array_equal(tree.reorder(names).path_signs(), expected)
    for same in (pickle.loads(pickle.dumps(tree)), copy.deepcopy(tree), tree.canonical()):
        assert same == tree
        np.testing.assert_array_equal(same.signs, tree.signs)
        np.testing.assert_array_equal(same.support, tree.support)
    again = Tree.from_newick(tree.to_newick(signs=True), tree.observed_names)
    np.testing.assert_array_equal(again.path_signs(), tree.path_signs())


@given(st.integers(0, 10_000), st.floats(0, 1))
@settings(max_examples=100, deadline=None)
def test_collapsing_removes_unsupported_splits_and_keeps_signs(seed: int, bound: float) -> None:
    tree = signed_tree(seed)
    found = tree.collapse(bound)
    np.testing.assert_array_equal(found.path_signs(), tree.path_signs())
    inner = set(tree.internal_edges().tolist())
    weak = {e for e in inner if tree.support[e] < bound}
    splits, after = reference.splits(tree), reference.splits(found)
    left = set(after)
    strong = {split for e, split in enumerate(splits) if e not in weak}
    assert strong <= left <= set(splits)
    if tree.degree()[: tree.n_observed].max() == 1:
        assert left == strong
    for e in weak:  # what stays would have merged two observed nodes
        if splits[e] in left:
            assert (found.edges[after.index(splits[e])] < found.n_observed).all()
    kept = dict(zip(splits, tree.support, strict=True))
    assert [kept[split] for split in after] == found.support.tolist()


@given(st.integers(0, 10_000), st.floats(0, 1))
@settings(max_examples=40, deadline=None)
def test_collapsing_against_dendropy(seed: int, bound: float) -> None:
    """Of a tree whose observed nodes are leaves; dendropy collapses the same edges."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, int(rng.integers(4, 15)))
    support = rng.random(tree.n_edges).round(3)
    marked = tree.with_lengths(support).to_newick()  # the support stands where lengths do
    taxa = dendropy.TaxonNamespace()
    theirs = dendropy.Tree.get(data="[&U]" + marked, schema="newick", taxon_namespace=taxa)
    for edge in list(theirs.postorder_internal_edge_iter()):
        if edge.tail_node is not None and edge.length < bound:
            edge.collapse()
    theirs.update_bipartitions()
    ours = dendropy.Tree.get(
        data="[&U]" + tree.collapse(bound, support).to_newick(),
        schema="newick",
        taxon_namespace=taxa,
    )
    assert treecompare.symmetric_difference(theirs, ours) == 0


def test_collapse_by_hand() -> None:
    star = TREE.collapse(0.5, [1, 1, 1, 1, 0.2])
    assert star.n_hidden == 1
    assert star.path_signs().tolist() == TREE.path_signs().tolist()
    assert TREE.collapse(0.5, [0.1, 0.1, 0.1, 0.1, 0.9]).n_hidden == 2  # edges of leaves stay
    assert TREE.collapse(0.5, [1, 1, 1, 1, np.nan]).n_hidden == 2
    with pytest.raises(DataError, match="no support"):
        TREE.collapse(0.5)
    with pytest.raises(DataError, match="min_support"):
        TREE.collapse(2, np.ones(5))


def test_trees_are_equal_up_to_turned_hidden_nodes() -> None:
    turned = TREE.with_evidence(signs=[-1, 1, -1, 1, 1])  # h0 turned round
    assert turned == TREE
    assert TREE.with_evidence(signs=[-1, -1, -1, 1, -1]) != TREE
    assert TREE.with_evidence(signs=np.zeros(5)) == TREE  # nothing is said to the contrary


def test_negative_edges_are_marked_in_texts_and_graphs() -> None:
    drawing = "h0\n├── a\n├── b (-)\n└── h1 (-)\n    ├── c (-)\n    └── d"
    assert TREE.draw() == drawing
    assert "sign" not in TREE.to_newick()
    text = "(a[&sign=1]:1.0,b[&sign=-1]:2.0,(c[&sign=-1]:3.0,d[&sign=1]:4.0)h1[&sign=-1]:5.0)h0;"
    assert TREE.to_newick(signs=True) == text
    assert Tree.from_newick(text).signs.tolist() == TREE.signs.tolist()
    graph = TREE.to_networkx()
    assert [graph.edges[tuple(edge)]["sign"] for edge in TREE.edges.tolist()] == [1, -1, -1, 1, -1]
    assert "sign" not in TREE.with_evidence(signs=np.zeros(5)).to_networkx().edges[0, 4]


@pytest.mark.parametrize("signs", [[1, 1], [1, 1, 1, 1, 2], [1, 1, 1, 1, 0.5]])
def test_wrong_signs_are_refused(signs: list[float]) -> None:
    with pytest.raises(DataError, match="sign"):
        TREE.with_evidence(signs=signs)
