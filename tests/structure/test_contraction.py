"""Contraction: a few edges at a time, neighbours tested again, lengths fitted anew."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from tests.reference import stars as reference
from tests.reference.random_trees import SHAPES, random_tree, trees

from latenttree.distances.similarity import Affinity, matrix_affinity
from latenttree.structure.builder import Wiring
from latenttree.structure.contraction import contract_unsupported, refit_lengths
from latenttree.structure.edge_evidence import Edge, EdgeTest, edge_tests
from latenttree.structure.learn import structure_of_similarities
from latenttree.structure.support import Judge, Mixture, fit_judge
from latenttree.tree import Tree

QUARTET = np.array([[0, 4], [1, 4], [2, 5], [3, 5], [4, 5]])
NO_EDGES = np.empty((0, 2), dtype=np.int64)


class Told:
    """A judge that has been told: support by edge, 0.9 for others."""

    def __init__(self, known: dict[Edge, float]) -> None:
        self.known = known

    def supports(self, tests: dict[Edge, EdgeTest]) -> dict[Edge, float]:
        return {e: self.known.get(e, 0.9) for e in tests}


def exact(wiring: Wiring, n: float = 1e4) -> Affinity:
    p = wiring.n_observed
    d = wiring.tree([str(i) for i in range(p)]).path_lengths()
    return matrix_affinity(np.exp(-d), n, 1.0, NO_EDGES)


def contract(wiring: Wiring, known: dict[Edge, float], level: float = 0.5, **options: Any) -> Any:
    """Contract by what a judge is told; every edge but those between observed nodes is tested."""
    whole = exact(wiring)
    judge: Any = Told(known)
    return contract_unsupported(
        wiring, whole, edge_tests(wiring, whole), judge, level, options.get("agreement")
    )


def quartet(*lengths: float) -> Wiring:
    """
    0           2
     \\         /
      4 ----- 5
     /         \\
    1           3
    """
    return Wiring.from_edges(4, QUARTET, np.array(lengths or (1.0, 1.0, 1.0, 1.0, 1.0)))


def test_an_unsupported_internal_edge_is_contracted() -> None:
    wiring = quartet()
    tests, supports = contract(wiring, {(4, 5): 0.3})
    assert wiring.edges() == [(0, 4), (1, 4), (2, 4), (3, 4)]
    assert sorted(tests) == sorted(supports) == wiring.edges()


def test_support_equal_to_the_level_is_kept() -> None:
    wiring = quartet()
    contract(wiring, {(4, 5): 0.5})
    assert len(wiring.edges()) == 5
    contract(wiring, {(4, 5): 0.3}, level=0.0)
    assert len(wiring.edges()) == 5


def test_an_edge_that_joins_parts_stays() -> None:
    wiring = quartet()
    _, supports = contract(wiring, {(4, 5): 0.0})
    assert (4, 5) in wiring.edges()
    assert supports[(4, 5)] == 0.0


def test_agreement_multiplies_support() -> None:
    wiring = quartet()
    _, supports = contract(wiring, {}, agreement={(4, 5): 0.5, (0, 4): 0.8})
    assert (4, 5) not in wiring.edges()
    assert supports[(0, 4)] == pytest.approx(0.72)


def test_an_unsupported_pendant_edge_makes_an_observed_internal_node() -> None:
    wiring = quartet()
    contract(wiring, {(0, 4): 0.1})
    assert wiring.edges() == [(0, 1), (0, 5), (2, 5), (3, 5)]


def test_a_hidden_node_goes_to_one_observed_node_at_most() -> None:
    """Edges 0 - 4 and 1 - 4 both lack support: 0, the weaker, takes node 4; 1 stays a leaf."""
    wiring = quartet()
    contract(wiring, {(0, 4): 0.1, (1, 4): 0.2})
    assert wiring.edges() == [(0, 1), (0, 5), (2, 5), (3, 5)]


@settings(max_examples=40, deadline=None, derandomize=True)
@given(trees(min_observed=3, max_observed=20, internal=False))
def test_any_contraction_leaves_a_tree(tree: Tree) -> None:
    rng = np.random.default_rng(tree.n_nodes)
    for level in (0.2, 0.5, 1.0):
        wiring = Wiring.from_edges(tree.n_observed, tree.edges, tree.lengths)
        told = {e: float(rng.uniform(0.01, 1)) for e in wiring.edges()}
        tests, supports = contract(wiring, told, level)
        found = wiring.tree(tree.observed_names)  # the constructor checks that it is a tree
        assert found.n_hidden <= tree.n_hidden
        assert np.isfinite(found.lengths).all()
        assert sorted(supports) == sorted(tests) == wiring.edges()
        weak = [e for e, s in supports.items() if s < level and wiring.is_hidden(e[1])]
        assert not weak, "no weak edge is left, but for those between observed nodes"


# ---- the noise leaf ------------------------------------------------------------------


def noise_leaf(far: float) -> Wiring:
    """A long edge 5 - 7 cut in two by leaf 4, which hardly knows where it belongs.

    0             2
     \\0.4  0.4  /
      5 -- 6 -- 7
     /     |     \\
    1     4       3
    """
    edges = [(0, 5), (1, 5), (5, 6), (6, 7), (4, 6), (2, 7), (3, 7)]
    return Wiring.from_edges(5, np.array(edges), np.array([0.3, 0.3, 0.4, 0.4, far, 0.3, 0.3]))


@pytest.mark.parametrize("far", [2.0, 3.0])
@pytest.mark.parametrize("n", [500, 1000])
def test_a_long_edge_survives_a_leaf_that_cuts_it_in_two(n: float, far: float) -> None:
    wiring = noise_leaf(far)
    whole = exact(wiring, n)
    judge = Judge(5, Mixture(0.5, np.log(0.5), 0.5, 2), Mixture(0.95, np.log(0.5), 0.5, 1), 0.1)
    tests = edge_tests(wiring, whole)
    before = judge.supports(tests)
    assert max(before[(5, 6)], before[(6, 7)]) < 0.5, "both halves are doubtful"
    tests, after = contract_unsupported(wiring, whole, tests, judge, 0.5)
    (inside,) = [(a, b) for a, b in wiring.edges() if wiring.is_hidden(a)]
    assert after[inside] > 0.99
    assert tests[inside].length == pytest.approx(0.8, abs=2e-3)  # fits end at moves below 1e-3
    # fitted anew between leaves of both ends; the far leaf, misplaced by 0.4, pulls a little
    assert wiring.links[inside[0]][inside[1]] == pytest.approx(0.8, abs=0.03)
    assert len(wiring.links[4]) == 1


def test_a_real_leaf_keeps_both_halves() -> None:
    wiring = noise_leaf(0.3)
    whole = exact(wiring, 5000)
    tests = edge_tests(wiring, whole)
    contract_unsupported(wiring, whole, tests, fit_judge(tests, 5), 0.5)
    assert sorted(wiring.edges()) == sorted(noise_leaf(0.3).edges())


# ---- what is known about edges -------------------------------------------------------


def support_of(wiring: Wiring, known: dict[Edge, Any]) -> dict[frozenset[int], Any]:
    """Values by the observed nodes on the side of the edge away from node 0."""
    found = {}
    for edge, value in known.items():
        reach, stack = set(edge), [edge[1]]
        while stack:
            for u in wiring.links[stack.pop()]:
                if u not in reach:
                    reach.add(u)
                    stack.append(u)
        side = frozenset(v for v in reach - {edge[0]} if v < wiring.n_observed)
        everything = frozenset(range(wiring.n_observed))
        found[side if 0 not in side else everything - side] = value
    return found


def test_what_is_known_about_strong_edges_does_not_change() -> None:
    """Edges above the level keep test and support, whatever is contracted next to them."""
    n_contracted = 0
    for seed in range(10):
        tree = random_tree(np.random.default_rng(seed), 15, length_range=(0.02, 0.5))
        wiring = Wiring.from_edges(15, tree.edges, tree.lengths)
        whole = exact(wiring, 300)
        tests = edge_tests(wiring, whole)
        judge = fit_judge(tests, 15)
        before = support_of(
            wiring, {e: (s, tests[e]) for e, s in judge.supports(tests).items() if s >= 0.6}
        )
        kept, supports = contract_unsupported(wiring, whole, tests, judge, 0.6)
        n_contracted += len(tests) - len(wiring.edges())
        after = support_of(wiring, {e: (s, kept[e]) for e, s in supports.items()})
        for side, (support, test) in before.items():
            assert after[side] == (support, test)
    assert n_contracted > 10


def test_what_is_known_survives_at_an_observed_node() -> None:
    """Node 4 goes to observed node 0, and 1 - 4, which joins an independent part, with it."""
    wiring = quartet()
    _, supports = contract(wiring, {(0, 4): 0.1, (1, 4): 0.0})
    assert wiring.edges()[0] == (0, 1)
    assert supports[(0, 1)] == 0.0


# ---- lengths -------------------------------------------------------------------------


@pytest.mark.parametrize("inside", [0.0, 0.5])
@pytest.mark.parametrize("shape", SHAPES)
def test_exact_lengths_come_back(shape: str, inside: float) -> None:
    """Polytomies and observed nodes inside: whatever the lengths were, the affinities know."""
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
        wiring = Wiring.from_edges(25, tree.edges, tree.lengths)
        whole = exact(wiring, 1e12)
        refit_lengths(wiring, whole)
        found = wiring.tree(tree.observed_names)
        # least squares ends when no length moves by 1e-7
        np.testing.assert_allclose(found.lengths, tree.lengths, atol=1e-4)


def test_only_wide_nodes_are_fitted_again() -> None:
    """A binary tree keeps its lengths, right or wrong: they are fits already."""
    wiring = quartet()
    whole = exact(quartet(0.5, 0.5, 0.5, 0.5, 0.5))
    refit_lengths(wiring, whole)
    assert {x for near in wiring.links.values() for x in near.values()} == {1.0}


def test_lengths_around_an_observed_node_are_measured_from_it() -> None:
    """0 and 4 become one node, whose distance to 1 was 2: the contracted length is not lost."""
    wiring = quartet()
    contract(wiring, {(0, 4): 0.1})
    assert wiring.links[0][1] == pytest.approx(2.0, abs=1e-6)
    assert wiring.links[0][5] == pytest.approx(2.0, abs=1e-6)


def test_lengths_are_fitted_again_where_no_hidden_node_is_left() -> None:
    """Three leaves of a hidden node, one of them the node: 0 - 1 is 1 + 0.1."""
    wiring = Wiring.from_edges(3, np.array([[0, 3], [1, 3], [2, 3]]), np.array([0.1, 1.0, 1.0]))
    contract(wiring, {(0, 3): 0.1})
    assert wiring.edges() == [(0, 1), (0, 2)]
    assert wiring.links[0][1] == pytest.approx(1.1, abs=1e-6)


# ---- stars ---------------------------------------------------------------------------


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
        whole = matrix_affinity(rho, 2000.0, 1.0, reference.with_samples(d, 2000).mst)
        hidden.append(structure_of_similarities(whole, [str(i) for i in range(12)]).tree.n_hidden)
    assert hidden.count(1) >= 16
    assert max(hidden) <= 2
