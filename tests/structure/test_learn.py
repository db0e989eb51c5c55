"""From distances to the tree: exact on exact distances or the test fails."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray
from tests.reference.joining import with_samples
from tests.reference.random_trees import SHAPES, random_tree, trees

import latenttree as lt
from latenttree.distances.similarity import similarity_from_distances
from latenttree.structure.learn import Structure, structure_of_similarities
from latenttree.tree import Tree

# Sums of up to 60 lengths, taken apart again: rounding is near 1e-13.
ROUNDING = 1e-9


def check_exact(tree: Tree, **options: Any) -> None:
    found = lt.tree_from_distances(tree.path_lengths(), names=tree.observed_names, **options)
    assert found.same_topology(tree)
    np.testing.assert_allclose(found.lengths, tree.lengths, atol=ROUNDING)


# ---- exact distances -----------------------------------------------------------------


@settings(max_examples=200, deadline=None, derandomize=True)
@given(trees(min_observed=1, max_observed=40, length_range=(0.003, 3.0)))
def test_any_tree_comes_back(tree: Tree) -> None:
    """All shapes, degrees to 20, chains to 30, observed inside, lengths over a factor 1,000."""
    check_exact(tree, n_jobs=1)


@pytest.mark.parametrize("inside", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_hundreds_of_trees_come_back(shape: str, inside: float) -> None:
    for seed in range(25):
        rng = np.random.default_rng(seed)
        # a chain of hidden nodes may be as deep as its leaves allow: 40 leaves, depth 30
        p = int(rng.integers(3, 40 if shape == "caterpillar" else 120))
        tree = random_tree(
            rng,
            p,
            shape=shape,
            max_degree=int(rng.integers(3, 21)),
            internal_observed_fraction=inside,
            length_range=(0.003, 3.0),
        )
        check_exact(tree, n_jobs=1)


@pytest.mark.parametrize("degree", [3, 4, 6])
@pytest.mark.parametrize("shape", SHAPES)
def test_ties_everywhere(shape: str, degree: int) -> None:
    """All edges 1: spanning trees are not unique, and any of them must do."""
    for p in (3, 4, 9, 27, 81):
        rng = np.random.default_rng(p)
        check_exact(random_tree(rng, p, shape=shape, max_degree=degree, length_range=(1, 1)))


def test_lengths_over_six_orders_of_magnitude() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        check_exact(random_tree(rng, 30, max_degree=5, length_range=(1e-5, 10.0)), n_jobs=1)


@pytest.mark.parametrize("factor", [1e-3, 1e3, 1e6])
def test_the_unit_of_length_does_not_matter(factor: float) -> None:
    tree = random_tree(np.random.default_rng(0), 30, max_degree=5)
    found = lt.tree_from_distances(tree.path_lengths() * factor, names=tree.observed_names)
    assert found.same_topology(tree)
    # exp(-d) is taken in units of at most 200, and its logarithm again: 1e-14 x 200
    np.testing.assert_allclose(found.lengths / factor, tree.lengths, rtol=1e-7)


def test_rounding_of_the_input_is_forgiven() -> None:
    """Noise of 1e-12, as from another program's arithmetic, makes no extra edges."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        tree = random_tree(rng, 40, max_degree=6)
        noise = np.triu(rng.uniform(-1e-12, 1e-12, (40, 40)), 1)
        found = lt.tree_from_distances(tree.path_lengths() + noise + noise.T)
        assert found.same_topology(tree)


def test_fixed_thresholds_are_exact_too() -> None:
    """The paper's epsilon: differences of exact distances agree to 1e-13, edges are 0.05 on."""
    for seed, shape in itertools.product(range(10), SHAPES):
        rng = np.random.default_rng(seed)
        check_exact(random_tree(rng, 25, shape=shape, max_degree=6), epsilon=1e-6)


def test_fixed_thresholds_are_exact_on_small_groups() -> None:
    """Groups of three members or of one family, which the paper's procedure takes at once."""
    for p in (3, 5, 12):
        rng = np.random.default_rng(p)
        check_exact(random_tree(rng, p, shape="star", length_range=(1, 1)), epsilon=1e-6)
    line = Tree.build(list("abcd"), [(0, 1), (1, 2), (2, 3)], [1.0, 0.5, 2.0])
    check_exact(line, epsilon=1e-6)


def test_threads_do_not_matter() -> None:
    tree = random_tree(np.random.default_rng(0), 100, max_degree=6)
    one, two = (lt.tree_from_distances(tree.path_lengths(), n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(one.edges, two.edges)
    np.testing.assert_array_equal(one.lengths, two.lengths)


def test_the_order_of_variables_does_not_matter() -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        tree = random_tree(rng, 40, max_degree=6, internal_observed_fraction=0.3)
        order = rng.permutation(40)
        found = lt.tree_from_distances(
            tree.path_lengths()[np.ix_(order, order)],
            names=[tree.observed_names[i] for i in order],
        )
        assert found.same_topology(tree)


# ---- few variables, zeros, infinities ------------------------------------------------


def test_one_variable() -> None:
    tree = lt.tree_from_distances([[0.0]], names=["a"])
    assert (tree.n_observed, tree.n_hidden, len(tree.edges)) == (1, 0, 0)


@pytest.mark.parametrize("errors", [None, [[0, 0.1], [0.1, 0]]])
@pytest.mark.parametrize("distance", [0.0, 1.5])
def test_two_variables(distance: float, errors: Any) -> None:
    tree = lt.tree_from_distances([[0, distance], [distance, 0]], errors)
    assert (tree.n_observed, tree.n_hidden) == (2, 0)
    assert tree.lengths.tolist() == [distance]


def test_three_variables() -> None:
    r"""
    a       b
     \1   2/        d(a, b) = 3, d(a, c) = 4, d(b, c) = 5
       \ /
        |3
        c
    """
    tree = lt.tree_from_distances([[0, 3, 4], [3, 0, 5], [4, 5, 0]], names=list("abc"))
    assert tree.n_hidden == 1
    np.testing.assert_allclose(tree.lengths, [1, 2, 3], atol=ROUNDING)


def test_three_variables_in_a_line() -> None:
    tree = lt.tree_from_distances([[0, 1, 3], [1, 0, 2], [3, 2, 0]], names=list("abc"))
    assert tree.n_hidden == 0
    assert tree.edges.tolist() == [[0, 1], [1, 2]]
    np.testing.assert_allclose(tree.lengths, [1, 2], atol=ROUNDING)


@pytest.mark.parametrize("errors", [None, 0.01])
def test_copies_hang_from_the_first_at_distance_zero(errors: float | None) -> None:
    tree = random_tree(np.random.default_rng(3), 10, length_range=(0.2, 1.0))
    index = [*range(10), 0, 0, 7]
    d = tree.path_lengths()[np.ix_(index, index)]
    e = None if errors is None else np.full_like(d, errors)
    found = lt.tree_from_distances(d, e)
    assert found.same_topology(lt.tree_from_distances(d))
    for copy, first in ((10, 0), (11, 0), (12, 7)):
        assert found.neighbors(copy).tolist() == [first]
        assert found.lengths[(found.edges == copy).any(axis=1)].tolist() == [0.0]
    # without the copies it is the tree of the ten
    np.testing.assert_allclose(found.path_lengths()[:10, :10], d[:10, :10], atol=1e-3)


def test_all_variables_are_one() -> None:
    tree = lt.tree_from_distances(np.zeros((5, 5)))
    assert tree.n_hidden == 0
    assert tree.lengths.tolist() == [0.0] * 4


def two_parts(seed: int = 0) -> tuple[Tree, Tree, NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    a, b = (random_tree(rng, 8, length_range=(0.2, 1.0)) for _ in range(2))
    d = np.full((16, 16), np.inf)
    d[:8, :8], d[8:, 8:] = a.path_lengths(), b.path_lengths()
    return a, b, d


def check_parts(found: Structure, a: Tree, b: Tree, atol: float) -> None:
    """Both parts exact, one edge joins them, with support 0 and no hidden node of its own."""
    assert found.n_components == 2
    assert found.tree.n_hidden == a.n_hidden + b.n_hidden
    between = found.tree.path_lengths()
    np.testing.assert_allclose(between[:8, :8], a.path_lengths(), atol=atol)
    np.testing.assert_allclose(between[8:, 8:], b.path_lengths(), atol=atol)
    joins = np.flatnonzero(found.support == 0)
    assert len(joins) == 1
    assert found.tree.split_sizes()[joins[0]] == 8
    assert np.isinf(found.standard_errors[joins[0]])
    assert np.isfinite(found.tree.lengths).all()


def test_parts_without_dependence_are_joined_without_support() -> None:
    a, b, d = two_parts()
    whole = similarity_from_distances(d, np.where(np.isfinite(d), 0.01, np.inf))
    # lengths come from a fit that ridges variances by 1e-6 and ends at gains of 1e-3
    check_parts(structure_of_similarities(whole, [f"x{i}" for i in range(16)]), a, b, atol=1e-3)


def test_parts_at_infinite_exact_distance_are_joined_without_support() -> None:
    a, b, d = two_parts()
    found = structure_of_similarities(similarity_from_distances(d), [f"x{i}" for i in range(16)])
    check_parts(found, a, b, atol=ROUNDING)


def test_two_variables_without_dependence() -> None:
    tree = lt.tree_from_distances([[0, np.inf], [np.inf, 0]])
    assert np.isfinite(tree.lengths).all()


def test_no_dependence_at_all_has_no_hidden_node() -> None:
    d = np.full((6, 6), np.inf)
    np.fill_diagonal(d, 0)
    tree = lt.tree_from_distances(d, d)
    assert tree.n_hidden == 0
    assert np.isfinite(tree.lengths).all()


# ---- distances with errors -----------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_exact_distances_with_small_errors_come_back(shape: str) -> None:
    """Standard errors of 0.001 and edges from 0.2: every edge is 100 errors long."""
    for seed in range(5):
        tree = random_tree(
            np.random.default_rng(seed), 20, shape=shape, max_degree=5, length_range=(0.2, 0.6)
        )
        d = tree.path_lengths()
        rho = np.exp(-d)
        n = 1e6
        found = lt.tree_from_distances(d, (1 - rho**2) / rho / np.sqrt(n))
        assert found.same_topology(tree)
        # fits end at gains of 1e-3: 0.045 standard errors, each below 0.005 at this depth
        np.testing.assert_allclose(found.lengths, tree.lengths, atol=2e-3)


def test_min_support_contracts_more_and_more() -> None:
    tree = random_tree(np.random.default_rng(1), 30, length_range=(0.05, 0.6))
    whole = with_samples(tree.path_lengths(), 500)
    hidden = [
        structure_of_similarities(whole, tree.observed_names, min_support=level).tree.n_hidden
        for level in (0.0, 0.5, 0.9, 1.0)
    ]
    assert hidden == sorted(hidden, reverse=True)
    assert hidden[0] == 28, "with nothing contracted the tree is binary"
    assert hidden[0] > hidden[-1]


def test_without_sweeps_a_tree_comes_out_all_the_same() -> None:
    tree = random_tree(np.random.default_rng(1), 30, length_range=(0.2, 0.6))
    whole = with_samples(tree.path_lengths(), 1e6)
    plain = structure_of_similarities(whole, tree.observed_names, sweeps=False)
    assert plain.sweeps == []
    assert plain.tree.n_observed == 30
    swept = structure_of_similarities(whole, tree.observed_names)
    assert swept.sweeps[0][-1] == 0


def test_every_edge_has_a_support_and_an_error() -> None:
    tree = random_tree(np.random.default_rng(2), 20, length_range=(0.1, 0.6))
    found = structure_of_similarities(with_samples(tree.path_lengths(), 2000), tree.observed_names)
    n_edges = len(found.tree.edges)
    assert found.support.shape == found.standard_errors.shape == (n_edges,)
    assert ((found.support >= 0.5) & (found.support <= 1)).all()
    assert (np.diff(found.group_sizes) <= 0).all()


def test_exact_distances_are_never_in_doubt() -> None:
    tree = random_tree(np.random.default_rng(2), 20)
    found = structure_of_similarities(
        similarity_from_distances(tree.path_lengths()), tree.observed_names
    )
    np.testing.assert_array_equal(found.support, 1.0)
    np.testing.assert_array_equal(found.standard_errors, 0.0)
    assert (found.n_components, found.n_duplicates, found.sweeps) == (1, 0, [])


def support_by_split(found: Structure) -> dict[bytes, tuple[float, float]]:
    rows = zip(found.tree.splits(), found.support, found.standard_errors, strict=True)
    return {split.tobytes(): (float(s), float(e)) for split, s, e in rows}


def between_observed(found: Structure) -> set[bytes]:
    observed = (found.tree.edges < found.tree.n_observed).all(axis=1)
    return {split.tobytes() for split in found.tree.splits()[observed]}


def test_support_survives_the_contraction_of_a_neighbour() -> None:
    """What is said about an edge that is not in doubt does not depend on whether another one was
    contracted; a doubtful one stays only if it is surer once its neighbours are gone."""
    n_contracted = 0
    for seed in range(8):
        tree = random_tree(np.random.default_rng(seed), 12, length_range=(0.02, 0.5))
        whole = with_samples(tree.path_lengths(), 200)
        binary, contracted = (
            structure_of_similarities(whole, tree.observed_names, min_support=level)
            for level in (0.0, 0.8)
        )
        before, after = support_by_split(binary), support_by_split(contracted)
        n_contracted += len(before) - len(after)
        for split, values in after.items():
            assert values[0] >= 0.8 or split in between_observed(contracted)
            assert values[1] > 0
            if before[split][0] >= 0.8:
                assert values == pytest.approx(before[split], rel=1e-9)  # copied, not computed
    assert n_contracted > 5


def test_a_tree_without_evidence() -> None:
    tree = random_tree(np.random.default_rng(0), 6)
    found = Structure.of_tree(tree)
    assert found.tree is tree
    assert found.support.tolist() == [1.0] * len(tree.edges)


@pytest.mark.parametrize("n_states", [2, 3])
def test_several_columns_with_copies(n_states: int) -> None:
    """The spanning tree may reach a variable through a copy of its neighbour."""
    data = lt.datasets.make_latent_tree(9, 3, 6, n_samples=3000, random_state=0)
    X = np.repeat(data.X[:, :4], 2, axis=1)
    model = lt.LatentTree(n_states, random_state=0).fit(X)
    pairs = {tuple(e) for e in model.tree_.edges.tolist()}
    assert {(0, 1), (2, 3), (4, 5), (6, 7)} <= pairs
