"""Tree: hand-worked answers, then random trees against walking and against scikit-bio."""

from __future__ import annotations

import pickle
from io import StringIO
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from skbio import TreeNode
from tests.reference import tree as reference
from tests.reference.random_trees import SHAPES, random_tree, trees

from latenttree.tree import Tree, hidden_names

#   a        c
#    \1    3/
#     h0--h1      e is observed and internal
#    /2  5 \4
#   b       e--6--d
PAIRS = [(0, 5), (1, 5), (2, 6), (4, 6), (5, 6), (3, 4)]
LENGTHS = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
NAMES = ("a", "b", "c", "d", "e")


@pytest.fixture
def tree() -> Tree:
    return Tree.build(NAMES, PAIRS, LENGTHS)


# ---- hand-worked answers ----------------------------------------------------------------


def test_sizes_and_names(tree: Tree) -> None:
    assert (tree.n_nodes, tree.n_observed, tree.n_hidden, tree.n_edges) == (7, 5, 2, 6)
    assert tree.observed_names == NAMES
    assert tree.hidden_names == ("h0", "h1")
    assert repr(tree) == "Tree(5 observed (a, b, c, ...), 2 hidden)"


def test_edges_are_sorted_pairs_with_their_lengths(tree: Tree) -> None:
    assert tree.edges.tolist() == [[0, 5], [1, 5], [2, 6], [3, 4], [4, 6], [5, 6]]
    assert tree.lengths.tolist() == [1.0, 2.0, 3.0, 6.0, 4.0, 5.0]
    assert tree.edges.dtype == np.int64
    assert tree.lengths.dtype == np.float64


def test_neighbours_degrees_and_adjacency(tree: Tree) -> None:
    assert tree.neighbors("h1").tolist() == [2, 4, 5]
    assert tree.neighbors(4).tolist() == [3, 6]
    assert tree.degree().tolist() == [1, 1, 1, 1, 2, 3, 3]
    indptr, indices, edge_ids = tree.adjacency()
    at_h1 = slice(indptr[6], indptr[7])
    assert tree.edges[edge_ids[at_h1]].tolist() == [[2, 6], [4, 6], [5, 6]]
    assert indices[at_h1].tolist() == [2, 4, 5]


def test_rooted(tree: Tree) -> None:
    parents, order = tree.rooted("d")
    assert parents.tolist() == [5, 5, 6, -1, 3, 6, 4]
    assert order.tolist() == [3, 4, 6, 2, 5, 0, 1]
    assert tree.parent_edges("d").tolist() == [0, 1, 2, -1, 3, 5, 4]


@pytest.mark.parametrize(
    ("a", "b", "nodes"),
    [
        ("a", "d", [0, 5, 6, 4, 3]),
        ("d", "a", [3, 4, 6, 5, 0]),
        ("a", "b", [0, 5, 1]),
        ("b", "c", [1, 5, 6, 2]),
        ("e", "d", [4, 3]),
        ("h0", "h0", [5]),
    ],
)
def test_path(tree: Tree, a: str, b: str, nodes: list[int]) -> None:
    assert tree.path(a, b) == nodes


def test_path_lengths(tree: Tree) -> None:
    expected = [
        [0, 3, 9, 16, 10],
        [3, 0, 10, 17, 11],
        [9, 10, 0, 13, 7],
        [16, 17, 13, 0, 6],
        [10, 11, 7, 6, 0],
    ]
    np.testing.assert_array_equal(tree.path_lengths(), expected)


def test_splits(tree: Tree) -> None:
    columns = np.unpackbits(tree.splits(), axis=1, count=5)
    expected = [
        [0, 1, 1, 1, 1],  # a | bcde
        [0, 1, 0, 0, 0],  # b
        [0, 0, 1, 0, 0],  # c
        [0, 0, 0, 1, 0],  # d
        [0, 0, 0, 1, 1],  # de: e lies on the side of d
        [0, 0, 1, 1, 1],  # ab | cde
    ]
    np.testing.assert_array_equal(columns, expected)
    assert tree.split_sizes().tolist() == [4, 1, 1, 1, 2, 3]
    assert tree.internal_edges().tolist() == [4, 5]


def test_contract_merges_hidden_nodes(tree: Tree) -> None:
    star = tree.contract([5])  # h0--h1
    assert star.edges.tolist() == [[0, 5], [1, 5], [2, 5], [3, 4], [4, 5]]
    assert star.lengths.tolist() == [1.0, 2.0, 3.0, 6.0, 4.0]


def test_contract_merges_hidden_into_observed(tree: Tree) -> None:
    merged = tree.contract([4])  # h1--e: e takes the place of h1
    assert merged.hidden_names == ("h0",)
    assert merged.neighbors("e").tolist() == [2, 3, 5]


def test_contract_nothing_and_everything_between_hidden(tree: Tree) -> None:
    assert tree.contract([]) == tree
    assert tree.contract(np.array([4, 5])).edges.tolist() == [[0, 4], [1, 4], [2, 4], [3, 4]]


@pytest.mark.parametrize("edges", [[3], [0, 1], [4, 5, 2]])
def test_contract_refuses_to_merge_observed_nodes(tree: Tree, edges: list[int]) -> None:
    with pytest.raises(ValueError, match="merge the observed nodes"):
        tree.contract(edges)


def test_draw(tree: Tree) -> None:
    assert tree.draw().splitlines() == [  # the longest path is a, h0, h1, e, d
        "h1",
        "├── c",
        "├── e",
        "│   └── d",
        "└── h0",
        "    ├── a",
        "    └── b",
    ]
    assert tree.draw(lengths=True, root="c").splitlines() == [
        "c",
        "└── h1 3",
        "    ├── e 4",
        "    │   └── d 6",
        "    └── h0 5",
        "        ├── a 1",
        "        └── b 2",
    ]


def test_one_and_two_observed() -> None:
    one = Tree.build(["a"], [], [])
    assert one.edges.shape == (0, 2)
    assert one.path_lengths().tolist() == [[0.0]]
    assert one.splits().shape == (0, 1)
    assert one.internal_edges().size == 0
    assert one.draw() == "a"
    assert one.path("a", "a") == [0]
    two = Tree.build(["a", "b"], [(1, 0)], [0.5])
    assert two.edges.tolist() == [[0, 1]]
    assert two.path_lengths().tolist() == [[0.0, 0.5], [0.5, 0.0]]
    assert two.n_hidden == 0


def test_hidden_ids_may_have_gaps(tree: Tree) -> None:
    gaps = [(a if a < 5 else 100 - a, b if b < 5 else 100 - b) for a, b in PAIRS]
    again = Tree.build(NAMES, gaps, LENGTHS)
    assert again.edges.tolist() == tree.edges.tolist()


@pytest.mark.parametrize(
    ("observed", "expected"),
    [
        (["a", "b"], ("h0", "h1")),
        (["h", "hx", "ah1"], ("h0", "h1")),
        (["h7"], ("hidden0", "hidden1")),
        (["h7", "hidden3"], ("_hidden0", "_hidden1")),
    ],
)
def test_hidden_names_avoid_observed_ones(observed: list[str], expected: tuple[str, ...]) -> None:
    assert hidden_names(observed, 2) == expected


def test_hidden_names_when_all_prefixes_are_taken() -> None:
    observed = ["h1", "hidden0", "_hidden1", "_____0"]
    assert not set(hidden_names(observed, 20)) & set(observed)


def test_index(tree: Tree) -> None:
    assert tree.index("e") == tree.index(4) == tree.index(np.int64(4)) == 4
    with pytest.raises(KeyError, match="no node is named 'z'"):
        tree.index("z")
    with pytest.raises(IndexError, match=r"7 is outside 0\.\.6"):
        tree.index(7)
    with pytest.raises(IndexError, match="-1"):
        tree.index(-1)


def test_arrays_are_read_only_and_own_their_memory() -> None:
    edges, lengths = np.array(PAIRS), np.array(LENGTHS)
    tree = Tree.build(NAMES, edges, lengths)
    edges[:] = 0
    lengths[:] = 0
    assert tree.lengths.sum() == 21
    with pytest.raises(ValueError, match="read-only"):
        tree.edges[0, 0] = 3
    with pytest.raises(AttributeError):
        tree.n_observed = 2  # type: ignore[misc]


def test_constructor_keeps_the_order_given() -> None:
    tree = Tree((*NAMES, "top", "side"), 5, np.array(PAIRS), np.array(LENGTHS))
    assert tree.edges.tolist() == [list(pair) for pair in PAIRS]
    assert tree.hidden_names == ("top", "side")
    assert tree.canonical(keep_names=True).hidden_names == ("top", "side")
    assert tree.canonical().hidden_names == ("h0", "h1")


def test_reorder(tree: Tree) -> None:
    back = tree.reorder(NAMES[::-1])
    assert back.observed_names == NAMES[::-1]
    # Breadth first from e: its neighbours are d and h1, so what was h1 comes first.
    assert [back.names[v] for v in back.neighbors("h0")] == ["e", "c", "h1"]
    assert back.reorder(NAMES, keep_names=True).hidden_names == ("h1", "h0")
    assert back == tree
    with pytest.raises(ValueError, match=r"missing \['e'\], unknown \['z'\]"):
        tree.reorder(["a", "b", "c", "d", "z"])


def test_equality(tree: Tree) -> None:
    assert tree == tree.with_lengths(tree.lengths * (1 + 1e-12))
    assert tree != tree.with_lengths(tree.lengths * 2)
    assert tree.same_topology(tree.with_lengths(tree.lengths * 2))
    assert tree != tree.contract([5])
    assert not tree.same_topology(Tree.build("abcdf", PAIRS, LENGTHS))
    assert tree != "tree"


def test_pickle(tree: Tree) -> None:
    again = pickle.loads(pickle.dumps(tree))
    assert again == tree
    assert again.names == tree.names
    assert not again.edges.flags.writeable


def test_to_networkx(tree: Tree) -> None:
    graph = tree.to_networkx()
    assert graph.nodes[4] == {"name": "e", "observed": True}
    assert graph.nodes[6] == {"name": "h1", "observed": False}
    assert graph.edges[6, 5] == {"length": 5.0}
    assert graph.number_of_nodes() == 7
    assert graph.number_of_edges() == 6


# ---- what the constructor refuses -------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "edges", "lengths", "message"),
    [
        (["a", "b", "c"], [(0, 1)], [1], "3 nodes has 2 edges, got 1"),
        (["a", "b", "c", "d"], [(0, 1), (1, 2), (2, 0)], [1, 1, 1], "cycle: only 3 of 4"),
        (["a", "b", "c"], [(0, 1), (1, 1)], [1, 1], "cycle"),
        (["a", "b"], [(0, 2), (2, 1)], [1, 1], "'h0' has 2 neighbours"),
        (["a", "b"], [(0, 1), (0, 2)], [1, 1], "'h0' has 1 neighbours"),
        (["a", "b"], [(0, -1)], [1], "nodes -1..0"),
        (["a", "b"], [(0, 1)], [np.nan], "length nan of edge 0"),
        (["a", "b"], [(0, 1)], [np.inf], "length inf of edge 0"),
        (["a", "b"], [(0, 1)], [-0.5], "length -0.5 of edge 0"),
        (["a", "b"], [(0, 1)], [1, 2], r"shape \(2,\) for 1 edges"),
        (["a", "b"], [(0.0, 1.0)], [1], "float64"),
        (["a", "b"], [0, 1], [1], r"shape \(2,\)"),
        (["a", "a"], [(0, 1)], [1], "'a' is used more than once"),
        ([], [], [], "n_observed is 0"),
    ],
)
def test_what_is_refused(
    names: list[str], edges: list[tuple[int, int]], lengths: list[float], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Tree.build(names, edges, lengths)


def test_names_are_strings() -> None:
    with pytest.raises(TypeError, match="node name 1 is int"):
        Tree.build(["a", 1], [(0, 1)], [1])  # type: ignore[list-item]


# ---- random trees against the slow versions ---------------------------------------------


@settings(max_examples=150, deadline=None)
@given(trees(max_observed=20))
def test_against_walking(tree: Tree) -> None:
    check_against_walking(tree)


def check_against_walking(tree: Tree) -> None:
    # Sums of up to 40 lengths in another order: relative error below 40 * 2^-52 < 1e-13.
    lengths = tree.path_lengths()
    np.testing.assert_allclose(lengths, reference.path_lengths(tree), rtol=1e-13, atol=0)
    np.testing.assert_array_equal(lengths, lengths.T)
    expected = reference.splits(tree)
    assert split_sets(tree) == expected
    internal = [e for e, split in enumerate(expected) if not reference.is_trivial(split)]
    assert tree.internal_edges().tolist() == internal
    for v in range(tree.n_nodes):
        assert tree.neighbors(v).tolist() == reference.neighbours(tree, v)


def split_sets(tree: Tree) -> list[reference.Split]:
    columns = np.unpackbits(tree.splits(), axis=1, count=tree.n_observed).astype(bool)
    assert not columns[:, 0].any()
    names = np.array(tree.observed_names)
    return [frozenset({frozenset(names[~row]), frozenset(names[row])}) for row in columns]


@settings(max_examples=150, deadline=None)
@given(trees(max_observed=30), st.integers(0, 2**32 - 1))
def test_canonical_form_forgets_the_input_order(tree: Tree, seed: int) -> None:
    """Hidden nodes renumbered, edges shuffled and turned around: the same arrays come out."""
    again = scrambled(tree, np.random.default_rng(seed))
    np.testing.assert_array_equal(again.edges, tree.edges)
    np.testing.assert_array_equal(again.lengths, tree.lengths)
    assert again.names == tree.names


def scrambled(tree: Tree, rng: np.random.Generator) -> Tree:
    number = np.arange(tree.n_nodes)
    rng.shuffle(number[tree.n_observed :])
    order = rng.permutation(tree.n_edges)
    edges = rng.permuted(number[tree.edges[order]], axis=1)
    return Tree.build(tree.observed_names, edges, tree.lengths[order])


@settings(max_examples=150, deadline=None)
@given(trees(max_observed=20))
def test_hidden_nodes_are_numbered_breadth_first_by_smallest_observed(tree: Tree) -> None:
    met, queue, seen = [], [0], {0}
    while queue:
        v = queue.pop(0)
        met += [v] if v >= tree.n_observed else []
        branches = [u for u in reference.neighbours(tree, v) if u not in seen]
        behind = {smallest_observed_behind(tree, u, v): u for u in branches}
        queue += [behind[i] for i in sorted(behind)]
        seen.update(branches)
    assert met == list(range(tree.n_observed, tree.n_nodes))


def smallest_observed_behind(tree: Tree, node: int, before: int) -> int:
    cut = next(e for e, pair in enumerate(tree.edges.tolist()) if set(pair) == {node, before})
    return min(reference.walk(tree, node, cut=cut))


@settings(max_examples=150, deadline=None)
@given(trees(min_observed=4, max_observed=8), trees(min_observed=4, max_observed=8))
def test_same_topology_against_split_sets(a: Tree, b: Tree) -> None:
    assert a.same_topology(b) == reference.same_topology(a, b)
    assert a.reorder(a.observed_names[::-1]).same_topology(a)


@settings(max_examples=100, deadline=None)
@given(trees(min_observed=3, max_observed=20), st.data())
def test_contraction_drops_exactly_those_splits(tree: Tree, data: st.DataObject) -> None:
    between_hidden = np.flatnonzero((tree.edges >= tree.n_observed).all(axis=1)).tolist()
    chosen = data.draw(st.sets(st.sampled_from(between_hidden)) if between_hidden else st.just(()))
    expected = [s for e, s in enumerate(reference.splits(tree)) if e not in chosen]
    assert set(reference.splits(tree.contract(sorted(chosen)))) == set(expected)


@settings(max_examples=100, deadline=None)
@given(trees(max_observed=20), st.data())
def test_path_is_what_the_lengths_say(tree: Tree, data: st.DataObject) -> None:
    a, b = (data.draw(st.integers(0, tree.n_observed - 1)) for _ in range(2))
    path = tree.path(a, b)
    length = {frozenset(e): x for e, x in zip(tree.edges.tolist(), tree.lengths, strict=True)}
    steps = [length[frozenset(step)] for step in pairwise(path)]
    assert len(set(path)) == len(path)
    assert (path[0], path[-1]) == (a, b)
    # The same sums in another order: rounding only.
    assert np.isclose(sum(steps), tree.path_lengths()[a, b], rtol=1e-13, atol=0)


@settings(max_examples=50, deadline=None)
@given(trees(min_observed=3, max_observed=20, internal=False))
def test_path_lengths_against_scikit_bio(tree: Tree) -> None:
    other = TreeNode.read(StringIO(tree.to_newick())).cophenet()
    expected = other.filter(tree.observed_names).data
    np.testing.assert_allclose(tree.path_lengths(), expected, rtol=1e-13, atol=0)


# ---- the generator itself ---------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("max_degree", [3, 4, 20])
@pytest.mark.parametrize("n_observed", [1, 2, 3, 4, 7, 33])
def test_random_tree_keeps_its_bounds(shape: str, max_degree: int, n_observed: int) -> None:
    rng = np.random.default_rng(n_observed * max_degree)
    for fraction in (0.0, 0.4):
        tree = random_tree(
            rng,
            n_observed,
            shape=shape,
            max_degree=max_degree,
            internal_observed_fraction=fraction,
            length_range=(0.1, 0.2),
        )
        assert tree.n_observed == n_observed
        assert np.all((tree.lengths >= 0.1) & (tree.lengths <= 0.2))
        if shape != "star":
            assert tree.degree()[n_observed:].max(initial=3) <= max_degree
        if fraction == 0 and n_observed > 2:
            assert np.all(tree.degree()[:n_observed] == 1)


def test_random_trees_reach_deep_wide_and_inside() -> None:
    rng = np.random.default_rng(0)
    chain = random_tree(rng, 33, shape="caterpillar")
    assert chain.n_hidden == 31
    wide = random_tree(rng, 40, shape="balanced", max_degree=20)
    assert wide.degree().max() == 20
    inside = random_tree(rng, 40, internal_observed_fraction=0.5)
    assert np.sum(inside.degree()[:40] >= 2) >= 5


# ---- size -------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["uniform", "caterpillar", "star"])
def test_ten_thousand_observed(shape: str) -> None:
    """Nothing recursive, nothing quadratic but the distances, which are left out here."""
    tree = random_tree(np.random.default_rng(0), 10_000, shape=shape)
    assert tree.splits().shape == (tree.n_edges, 1250)
    assert tree.same_topology(scrambled(tree, np.random.default_rng(1)))
    assert len(tree.contract(tree.internal_edges()).edges) == 10_000


def test_path_lengths_of_a_long_chain() -> None:
    """A chain of unit edges: distances of leaves are differences of positions, plus 2."""
    p = 600
    tree = random_tree(
        np.random.default_rng(0), p, shape="caterpillar", length_range=(1, 1), shuffle=False
    )
    at = np.clip(np.arange(p), 1, p - 2)
    expected = np.abs(at[:, None] - at[None, :]) + 2.0
    np.fill_diagonal(expected, 0)
    np.testing.assert_array_equal(tree.path_lengths(), expected)
