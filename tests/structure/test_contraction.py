"""Contraction: a few edges at a time, neighbours tested again, lengths fitted anew."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray
from tests.reference import joining as reference
from tests.reference.adjacency import Adjacency, builder_of, edges_of
from tests.reference.random_trees import SHAPES, random_tree, trees

from latenttree.distances.similarity import Similarity, similarity_from_matrix
from latenttree.structure.builder import TreeBuilder
from latenttree.structure.contraction import contract_unsupported, refit_lengths
from latenttree.structure.edge_evidence import EdgeTests, edge_tests
from latenttree.structure.learn import structure_of_similarities
from latenttree.structure.support import Mixture, SupportModel, fit_support
from latenttree.tree import Tree

QUARTET = np.array([[0, 4], [1, 4], [2, 5], [3, 5], [4, 5]])
NO_EDGES = np.empty((0, 2), dtype=np.int64)


Edge = tuple[int, int]


class FixedSupport:
    """A model with a given support by edge, 0.9 for others."""

    def __init__(self, known: dict[Edge, float]) -> None:
        self.known = known

    def supports(self, tests: EdgeTests) -> NDArray[np.float64]:
        return np.array([self.known.get((a, b), 0.9) for a, b in tests.ends.tolist()])


def exact(tree: TreeBuilder, n: float = 1e4) -> Similarity:
    p = tree.n_observed
    d = tree.tree([str(i) for i in range(p)]).path_lengths()
    return similarity_from_matrix(np.exp(-d), n, 1.0, NO_EDGES)


def contract(
    tree: TreeBuilder,
    known: dict[Edge, float],
    level: float = 0.5,
    agreement: dict[Edge, float] | None = None,
) -> dict[Edge, float]:
    """Contract by given supports; every edge but those between observed nodes is tested. Support by
    edge of what is left and was tested."""
    whole = exact(tree)
    model: Any = FixedSupport(known)
    tests = edge_tests(tree, whole)
    shares = np.array([(agreement or {}).get((a, b), 1.0) for a, b in tree.ends.tolist()])
    left = contract_unsupported(tree, whole, tests, model, level, shares)
    np.testing.assert_array_equal(left.ends, tree.ends[left.edge])
    np.testing.assert_array_equal(left.standard_error, tree.standard_error[left.edge])
    return {
        (a, b): s
        for (a, b), s in zip(left.ends.tolist(), tree.support[left.edge].tolist(), strict=True)
    }


def quartet(*lengths: float) -> TreeBuilder:
    """
    0           2
     \\         /
      4 ----- 5
     /         \\
    1           3
    """
    return TreeBuilder(4, QUARTET, lengths or (1.0, 1.0, 1.0, 1.0, 1.0))


def test_an_unsupported_internal_edge_is_contracted() -> None:
    builder = quartet()
    supports = contract(builder, {(4, 5): 0.3})
    assert edges_of(builder) == [(0, 4), (1, 4), (2, 4), (3, 4)]
    assert list(supports) == edges_of(builder)


def test_support_equal_to_the_level_is_kept() -> None:
    builder = quartet()
    contract(builder, {(4, 5): 0.5})
    assert len(edges_of(builder)) == 5
    contract(builder, {(4, 5): 0.3}, level=0.0)
    assert len(edges_of(builder)) == 5


def test_an_edge_that_joins_parts_stays() -> None:
    builder = quartet()
    supports = contract(builder, {(4, 5): 0.0})
    assert (4, 5) in edges_of(builder)
    assert supports[(4, 5)] == 0.0


def test_agreement_multiplies_support() -> None:
    builder = quartet()
    supports = contract(builder, {}, agreement={(4, 5): 0.5, (0, 4): 0.8})
    assert (4, 5) not in edges_of(builder)
    assert supports[(0, 4)] == pytest.approx(0.72)


def test_an_unsupported_pendant_edge_makes_an_observed_internal_node() -> None:
    builder = quartet()
    contract(builder, {(0, 4): 0.1})
    assert edges_of(builder) == [(0, 1), (0, 5), (2, 5), (3, 5)]


def test_a_hidden_node_goes_to_one_observed_node_at_most() -> None:
    """Edges 0 - 4 and 1 - 4 both lack support: 0, the weaker, takes node 4; 1 stays a leaf."""
    builder = quartet()
    contract(builder, {(0, 4): 0.1, (1, 4): 0.2})
    assert edges_of(builder) == [(0, 1), (0, 5), (2, 5), (3, 5)]


@settings(max_examples=40, deadline=None, derandomize=True)
@given(trees(min_observed=3, max_observed=20, internal=False))
def test_any_contraction_leaves_a_tree(tree: Tree) -> None:
    rng = np.random.default_rng(tree.n_nodes)
    for level in (0.2, 0.5, 1.0):
        builder = builder_of(tree)
        given_support = {e: float(rng.uniform(0.01, 1)) for e in edges_of(builder)}
        supports = contract(builder, given_support, level)
        found = builder.tree(tree.observed_names)  # the constructor checks that it is a tree
        assert found.n_hidden <= tree.n_hidden
        assert np.isfinite(found.lengths).all()
        assert list(supports) == edges_of(builder)
        weak = [e for e, s in supports.items() if s < level and e[1] >= tree.n_observed]
        assert not weak, "no weak edge is left, but for those between observed nodes"


# ---- the noise leaf ------------------------------------------------------------------


def noise_leaf(far: float) -> TreeBuilder:
    """A long edge 5 - 7 cut in two by leaf 4, which hardly knows where it belongs.

    0             2
     \\0.4  0.4  /
      5 -- 6 -- 7
     /     |     \\
    1     4       3
    """
    edges = [(0, 5), (1, 5), (5, 6), (6, 7), (4, 6), (2, 7), (3, 7)]
    return TreeBuilder(5, edges, [0.3, 0.3, 0.4, 0.4, far, 0.3, 0.3])


@pytest.mark.parametrize("far", [2.0, 3.0])
@pytest.mark.parametrize("n", [500, 1000])
def test_a_long_edge_survives_a_leaf_that_cuts_it_in_two(n: float, far: float) -> None:
    builder = noise_leaf(far)
    whole = exact(builder, n)
    internal, pendant = Mixture(0.5, np.log(0.5), 0.5, 2), Mixture(0.95, np.log(0.5), 0.5, 1)
    model = SupportModel(5, internal, pendant, 0.1)
    tests = edge_tests(builder, whole)
    halves = model.supports(tests)[(tests.ends >= 5).all(axis=1)]
    assert len(halves) == 2
    assert halves.max() < 0.5, "both halves are doubtful"
    tests = contract_unsupported(builder, whole, tests, model, 0.5)
    (inside,) = np.flatnonzero((builder.ends >= 5).all(axis=1))
    assert builder.support[inside] > 0.99
    (tested,) = tests.length[tests.edge == inside]
    assert tested == pytest.approx(0.8, abs=2e-3)  # fits end at moves below 1e-3
    # fitted anew between leaves of both ends; the far leaf, misplaced by 0.4, pulls a little
    assert builder.length[inside] == pytest.approx(0.8, abs=0.03)
    assert (builder.ends == 4).sum() == 1


def test_a_real_leaf_keeps_both_halves() -> None:
    builder = noise_leaf(0.3)
    whole = exact(builder, 5000)
    tests = edge_tests(builder, whole)
    contract_unsupported(builder, whole, tests, fit_support(tests, 5), 0.5)
    assert edges_of(builder) == edges_of(noise_leaf(0.3))


# ---- what is known about edges -------------------------------------------------------


def by_split(tree: TreeBuilder, known: dict[Edge, Any]) -> dict[frozenset[int], Any]:
    """Values by the observed nodes on the side of the edge away from node 0."""
    found, links = {}, Adjacency.of(tree).links
    for edge, value in known.items():
        reach, stack = set(edge), [edge[1]]
        while stack:
            for u in links[stack.pop()]:
                if u not in reach:
                    reach.add(u)
                    stack.append(u)
        side = frozenset(v for v in reach - {edge[0]} if v < tree.n_observed)
        everything = frozenset(range(tree.n_observed))
        found[side if 0 not in side else everything - side] = value
    return found


def values_by_edge(tests: EdgeTests, support: NDArray[np.float64]) -> dict[Edge, Any]:
    """Support, length, standard error and dependence by edge."""
    columns = (support, tests.length, tests.standard_error, tests.dependence)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return {(a, b): row for (a, b), row in zip(tests.ends.tolist(), rows, strict=True)}


def test_what_is_known_about_strong_edges_does_not_change() -> None:
    """Edges above the level keep test and support, whatever is contracted next to them."""
    n_contracted = 0
    for seed in range(10):
        tree = random_tree(np.random.default_rng(seed), 15, length_range=(0.02, 0.5))
        builder = builder_of(tree)
        whole = exact(builder, 300)
        tests = edge_tests(builder, whole)
        model = fit_support(tests, 15)
        support = model.supports(tests)
        strong = support >= 0.6
        before = by_split(builder, values_by_edge(tests.take(strong), support[strong]))
        kept = contract_unsupported(builder, whole, tests, model, 0.6)
        n_contracted += len(tests.edge) - len(builder.ends)
        after = by_split(builder, values_by_edge(kept, builder.support[kept.edge]))
        for side, values in before.items():
            assert after[side] == values
    assert n_contracted > 10


def test_what_is_known_survives_at_an_observed_node() -> None:
    """Node 4 goes to observed node 0, and 1 - 4, which joins an independent part, with it."""
    builder = quartet()
    supports = contract(builder, {(0, 4): 0.1, (1, 4): 0.0})
    assert edges_of(builder)[0] == (0, 1)
    assert supports[(0, 1)] == 0.0


# ---- lengths -------------------------------------------------------------------------


@pytest.mark.parametrize("inside", [0.0, 0.5])
@pytest.mark.parametrize("shape", SHAPES)
def test_exact_lengths_come_back(shape: str, inside: float) -> None:
    """Polytomies and observed nodes inside: lengths follow from the similarities alone."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        tree = random_tree(
            rng,
            25,
            shape=shape,
            max_degree=8,
            internal_observed_fraction=inside,
            length_range=(0.1, 0.8),
        )
        builder = builder_of(tree)
        whole = exact(builder, 1e12)
        refit_lengths(builder, whole)
        found = builder.tree(tree.observed_names)
        # least squares ends when no length moves by 1e-7
        np.testing.assert_allclose(found.lengths, tree.lengths, atol=1e-4)


def test_only_wide_nodes_are_fitted_again() -> None:
    """A binary tree keeps its lengths, right or wrong: they are fits already."""
    builder = quartet()
    whole = exact(quartet(0.5, 0.5, 0.5, 0.5, 0.5))
    refit_lengths(builder, whole)
    assert set(builder.length.tolist()) == {1.0}


def test_exact_lengths_of_more_branches_than_are_fitted_together() -> None:
    """A hidden node, two pairs beyond hidden nodes of their own, and 600 leaves."""
    rng = np.random.default_rng(0)
    p = 604
    ends = [*((v, p) for v in range(600)), (600, p + 1), (601, p + 1), (602, p + 2), (603, p + 2)]
    ends += [(p, p + 1), (p, p + 2)]
    true = rng.uniform(0.2, 0.8, len(ends))
    whole = exact(TreeBuilder(p, ends, true.tolist()))
    builder = TreeBuilder(p, ends, [1.0] * len(ends))
    refit_lengths(builder, whole)
    found = builder.tree([str(v) for v in range(p)]).path_lengths()
    leaves = np.arange(600)
    expected = np.add.outer(true[:600], true[:600])
    np.fill_diagonal(expected, 0.0)
    np.testing.assert_allclose(found[np.ix_(leaves, leaves)], expected, atol=1e-3)


def test_lengths_around_an_observed_node_are_measured_from_it() -> None:
    """0 and 4 become one node, whose distance to 1 was 2: the contracted length is not lost."""
    builder = quartet()
    contract(builder, {(0, 4): 0.1})
    assert Adjacency.of(builder).links[0] == pytest.approx({1: 2.0, 5: 2.0}, abs=1e-6)


def test_lengths_are_fitted_again_where_no_hidden_node_is_left() -> None:
    """Three leaves of a hidden node, one of them the node: 0 - 1 is 1 + 0.1."""
    builder = TreeBuilder(3, [(0, 3), (1, 3), (2, 3)], [0.1, 1.0, 1.0])
    contract(builder, {(0, 3): 0.1})
    assert edges_of(builder) == [(0, 1), (0, 2)]
    assert builder.length[0] == pytest.approx(1.1, abs=1e-6)


# ---- unresolved nodes ---------------------------------------------------------------------------


def test_stars_of_gaussian_leaves_come_back_as_stars() -> None:
    """Twelve leaves around one node, 2,000 samples: binary trees over them have nine edges of noise
    each. Of 20 stars at least 16 are stars again, and none has more than two hidden nodes."""
    hidden = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = rng.uniform(0.3, 0.8, 12)
        sigma = np.exp(-np.add.outer(x, x))
        np.fill_diagonal(sigma, 1.0)
        rho = reference.sampled_correlations(rng, sigma, 2000)
        d = -np.log(np.clip(rho, 1e-3, 1.0))
        np.fill_diagonal(d, 0.0)
        whole = similarity_from_matrix(rho, 2000.0, 1.0, reference.with_samples(d, 2000).mst)
        hidden.append(structure_of_similarities(whole, [str(i) for i in range(12)]).tree.n_hidden)
    assert hidden.count(1) >= 16
    assert max(hidden) <= 2
