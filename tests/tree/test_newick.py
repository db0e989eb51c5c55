"""Newick text: what is written, what is read, what is refused and where."""

from __future__ import annotations

import dendropy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.random_trees import random_tree, trees

from latenttree.tree import Tree

#   a        c
#    \1    3/
#     h0--h1      e is observed and internal
#    /2  5 \4
#   b       e--6--d
TEXT = "(a:1.0,b:2.0,(c:3.0,(d:6.0)e:4.0)h1:5.0)h0;"


@pytest.fixture
def tree() -> Tree:
    pairs = [(0, 5), (1, 5), (2, 6), (4, 6), (5, 6), (3, 4)]
    return Tree.build("abcde", pairs, [1, 2, 3, 4, 5, 6])


def test_written_text(tree: Tree) -> None:
    assert tree.to_newick() == TEXT


def test_read_text(tree: Tree) -> None:
    read = Tree.from_newick(TEXT, observed=list("abcde"))
    assert read.names == tree.names
    assert read.edges.tolist() == tree.edges.tolist()
    assert read.lengths.tolist() == tree.lengths.tolist()
    assert Tree.from_newick(TEXT) == tree


def test_small_trees() -> None:
    assert Tree.build(["a"], [], []).to_newick() == "a;"
    assert Tree.from_newick("a;").names == ("a",)
    two = Tree.build(["h0", "h1"], [(0, 1)], [0.5])  # named like hidden nodes, but they cannot be
    assert Tree.from_newick(two.to_newick()) == two


@settings(max_examples=150, deadline=None)
@given(trees(max_observed=30))
def test_round_trip(tree: Tree) -> None:
    check_round_trip(tree)


def check_round_trip(tree: Tree) -> None:
    """Given the order of the names, everything comes back to the last bit."""
    again = Tree.from_newick(tree.to_newick(), observed=tree.observed_names)
    assert again.names == tree.names
    assert again.n_observed == tree.n_observed
    np.testing.assert_array_equal(again.edges, tree.edges)
    np.testing.assert_array_equal(again.lengths, tree.lengths)
    # Without it, only the order is new.
    assert Tree.from_newick(tree.to_newick()) == tree


odd_names = st.lists(st.text(max_size=6), min_size=4, max_size=4, unique=True)


@settings(max_examples=200, deadline=None)
@given(odd_names)
def test_any_name_survives(names: list[str]) -> None:
    #  0   2
    #   \ /
    #    1--3  and 1 is observed: an internal label
    tree = Tree.build(names, [(0, 1), (1, 2), (1, 3)], [1, 2, 3])
    again = Tree.from_newick(tree.to_newick(), observed=names)
    assert again.observed_names == tuple(names)
    assert again == tree


@pytest.mark.parametrize("name", ["it's", "a b", "a_b", "12", "1e3", "nan", "(x)", "[x]", "", "''"])
def test_names_that_need_quotes(name: str) -> None:
    tree = Tree.build(["p", name, "q", "r"], [(0, 1), (1, 2), (1, 3)], [1, 2, 3])
    assert "'" in tree.to_newick()
    assert Tree.from_newick(tree.to_newick()) == tree


def test_hidden_names_are_kept() -> None:
    read = Tree.from_newick("((a,b)left,(c,d)right)top;", observed=[*"abcd", "top"])
    assert read.hidden_names == ("left", "right")
    assert read.neighbors("top").tolist() == [read.index("left"), read.index("right")]


def test_labels_decide_what_is_observed() -> None:
    #  a   b   c
    #   \  |  /
    #    genre--h7--d
    #            |
    #            e
    read = Tree.from_newick("(a,b,c,(d,e)h7)genre;")
    assert read.observed_names == ("genre", "a", "b", "c", "d", "e")
    assert read.hidden_names == ("h7",)
    given_list = Tree.from_newick("(a,b,c,(d,e)h7)genre;", observed=list("abcde"))
    assert set(given_list.hidden_names) == {"genre", "h7"}


def test_unlabelled_hidden_nodes_get_free_names() -> None:
    read = Tree.from_newick("((a,b),(c,d),(e,f)h1);")
    assert sorted(read.hidden_names) == ["h0", "h1", "h2", "h3"]
    assert read.neighbors("h1").tolist()[:2] == [4, 5]


def test_numbers_inside_are_support_values() -> None:
    read = Tree.from_newick("((a:1,b:1)100:1,(c:1,d:1)100:2,e:1)95;")
    assert read.observed_names == tuple("abcde")
    assert read.n_hidden == 3
    quoted = Tree.from_newick("((a:1,b:1)'100':1,c:1,d:1);")
    assert "100" in quoted.observed_names
    listed = Tree.from_newick("((a:1,b:1)7:1,c:1,d:1)9;", observed=[*"abcd", "7"])
    assert listed.observed_names == ("a", "b", "c", "d", "7")


def test_unlabelled_root_of_two_is_suppressed() -> None:
    #  a           c            a         c
    #   \1       1/              \1     1/
    #    .--2-o-3-.      ->       h0-5-h1
    #   /1       1\              /1     1\
    #  b           d            b         d
    read = Tree.from_newick("((a:1,b:1):2,(c:1,d:1):3);")
    assert read.n_hidden == 2
    assert read.path_lengths()[0].tolist() == [0, 2, 7, 7]
    pair = Tree.from_newick("(a:1,b:2);")
    assert pair.edges.tolist() == [[0, 1]]
    assert pair.lengths.tolist() == [3.0]


def test_observed_root_of_two_stays() -> None:
    read = Tree.from_newick("(a:1,b:2)root;")
    assert read.observed_names == ("root", "a", "b")
    assert read.path_lengths()[1].tolist() == [1, 0, 3]


def test_no_lengths_at_all_means_one_each() -> None:
    assert Tree.from_newick("((a,b),(c,d));").lengths.tolist() == [1.0] * 5
    assert Tree.from_newick("(a,b)c;").lengths.tolist() == [1.0, 1.0]


def test_blanks_comments_and_a_length_at_the_root() -> None:
    text = "[&U] ( a [one] : 1.5e0 ,\n 'b''s' : 2 , c_d:.25 )[top] h0 : 7 ;\n[end]"
    read = Tree.from_newick(text)
    assert read.observed_names == ("a", "b's", "c_d")
    assert read.lengths.tolist() == [1.5, 2.0, 0.25]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "missing ';' at position 0"),
        ("(a,b,c)", "missing ';' at position 7"),
        ("(a,b", r"missing '\)' at position 4"),
        ("(a,b));", r"unexpected '\)' at position 5"),
        ("(a,b,c;", "unexpected ';' at position 6"),
        ("a,b;", "unexpected ',' at position 1"),
        ("(a,b)(c,d);", r"unexpected '\(' at position 5"),
        ("a(b,c);", r"unexpected '\(' at position 1"),
        ("(a b,c,d);", "unexpected 'b' at position 3"),
        ("(a:1 2,b:1,c:1);", "unexpected '2' at position 5"),
        ("(a:1:2,b:1,c:1);", "unexpected ':' at position 4"),
        ("(a:x,b:1,c:1);", "'x' in place of a length at position 3"),
        ("(a:,b:1,c:1);", "',' in place of a length at position 3"),
        ("(a:1,b:1,c:", "no length after ':' at position 11"),
        ("(a,,b);", "leaf without a name at position 3"),
        (";", "leaf without a name at position 0"),
        ("();", "leaf without a name at position 1"),
        ("('a,b,c);", "quote that is not closed at position 1"),
        ("(a,b[c,d);", "comment that is not closed at position 4"),
        ("(a,b]c,d);", r"unexpected '\]' at position 4"),
        ("(a,b,c); (d,e,f);", r"more text after the tree's ';' at position 9"),
        ("(a,b,(c,d)a);", "'a' twice, in the nodes that begin at positions 1 and 5"),
        ("(a:1,b:2,c);", "none for the node 'c' that begins at position 9"),
        ("(a:1,(b:1,c:1));", "none for the node  ?that begins at position 5"),
        ("(a:1,b:1,c:-1);", "length -1.0"),
        ("(a:1,b:1,c:nan);", "length nan"),
        ("((a,b));", "'h0' has 1 neighbours"),
        ("((a),b,c);", "has 2 neighbours"),
    ],
)
def test_malformed_text(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Tree.from_newick(text)


def test_observed_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="observed holds 'z', which is not in the Newick text"):
        Tree.from_newick("(a,b,c);", observed=["a", "b", "z"])
    with pytest.raises(ValueError, match="hidden node 'c' has 1 neighbours"):
        Tree.from_newick("(a,b,c);", observed=["a", "b"])
    with pytest.raises(ValueError, match="'a' is used more than once"):
        Tree.from_newick("(a,b,c);", observed=["a", "b", "c", "a"])


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="(),:;ab1' []", max_size=20))
def test_garbage_gives_a_tree_or_a_value_error(text: str) -> None:
    try:
        tree = Tree.from_newick(text)
    except ValueError:
        return
    check_round_trip(tree)


@pytest.mark.parametrize("nesting", ["chain of hidden nodes", "chain of observed nodes"])
def test_ten_thousand_levels(nesting: str) -> None:
    p = 10_000
    if nesting == "chain of hidden nodes":
        tree = random_tree(np.random.default_rng(0), p, shape="caterpillar")
    else:
        chain = np.column_stack([np.arange(p - 1), np.arange(1, p)])
        tree = Tree.build([f"x{i}" for i in range(p)], chain, np.ones(p - 1))
    check_round_trip(tree)


@settings(max_examples=50, deadline=None)
@given(trees(min_observed=3, max_observed=20))
def test_dendropy_reads_what_we_write(tree: Tree) -> None:
    other = dendropy.Tree.get(
        data=tree.to_newick(), schema="newick", suppress_internal_node_taxa=False
    )
    labels = {node.taxon.label for node in other.preorder_node_iter()}
    assert labels == set(tree.names)
    # Sums of the same lengths in another order.
    assert np.isclose(other.length(), tree.lengths.sum(), rtol=1e-13, atol=0)


@settings(max_examples=50, deadline=None)
@given(trees(min_observed=3, max_observed=20, internal=False))
def test_we_read_what_dendropy_writes(tree: Tree) -> None:
    other = dendropy.Tree.get(data=tree.to_newick(), schema="newick")
    assert Tree.from_newick(other.as_string(schema="newick")) == tree
