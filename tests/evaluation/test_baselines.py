"""Baselines against other libraries, brute force, and exact recovery from exact distances."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse.csgraph import minimum_spanning_tree
from skbio import DistanceMatrix
from skbio.tree import nj as skbio_nj
from tests.reference.random_trees import SHAPES, random_tree

import latenttree as lt
from latenttree.distances.estimate import estimate_distances
from latenttree.evaluation.baselines import (
    BASELINES,
    best_contraction,
    chow_liu,
    clnj,
    clrg,
    clrg_em,
    contract_short_edges,
    neighbor_joining,
    neighbor_joining_edges,
    random_em,
    recursive_grouping,
)
from latenttree.evaluation.baselines._shared import merge_short_edges, tidy_hidden
from latenttree.evaluation.metrics import parameter_error, robinson_foulds
from latenttree.tree import Tree

Matrix = NDArray[np.float64]

# Exact distances are sums of a few dozen lengths around 1: rounding is near 1e-14.
ROUNDING = 1e-9


def noisy(distances: Matrix, rng: np.random.Generator, scale: float) -> Matrix:
    noise = np.triu(rng.normal(scale=scale, size=distances.shape), 1)
    return np.maximum(distances + noise + noise.T, 0.0) * (1 - np.eye(len(distances)))


# ---- neighbour joining ---------------------------------------------------------------


def skbio_tree(distances: Matrix, names: tuple[str, ...]) -> Tree:
    root = skbio_nj(DistanceMatrix(distances, names))
    number = {name: i for i, name in enumerate(names)}
    ids: dict[int, int] = {}
    for node in root.traverse():
        ids[id(node)] = number[node.name] if node.is_tip() else len(names) + len(ids)
    edges = [(ids[id(node)], ids[id(node.parent)]) for node in root.traverse(include_self=False)]
    lengths = [max(node.length, 0.0) for node in root.traverse(include_self=False)]
    return Tree.build(names, edges, lengths)


@pytest.mark.parametrize("noise", [0.0, 0.02, 0.3])
@pytest.mark.parametrize("seed", range(10))
def test_neighbor_joining_agrees_with_scikit_bio(seed: int, noise: float) -> None:
    rng = np.random.default_rng(seed)
    # Binary, because what neighbour joining makes of a larger degree is a matter of ties.
    truth = random_tree(rng, int(rng.integers(4, 40)), max_degree=3)
    distances = noisy(truth.path_lengths(), rng, noise)
    ours = neighbor_joining(distances, truth.observed_names)
    theirs = skbio_tree(distances, truth.observed_names)
    assert ours.same_topology(theirs)
    # The two programs add in a different order; lengths go through some p^2 additions.
    np.testing.assert_allclose(ours.lengths, theirs.lengths, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("seed", range(20))
def test_neighbor_joining_is_exact_on_additive_distances(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = random_tree(rng, int(rng.integers(3, 60)), max_degree=8)
    tree = neighbor_joining(truth.path_lengths(), truth.observed_names)
    assert contract_short_edges(tree, ROUNDING) == truth


def test_signed_lengths_are_kept() -> None:
    #  x0 and x1 are 1 apart, but x2 is 5 from the one and 1 from the other: the triangle
    #  inequality fails, and (d01 + d12 - d02) / 2 = -1.5 is the length to x1.
    distances = np.array([[0.0, 1.0, 5.0], [1.0, 0.0, 1.0], [5.0, 1.0, 0.0]])
    edges, lengths = neighbor_joining_edges(distances)
    assert edges.tolist() == [[0, 3], [1, 3], [2, 3]]
    np.testing.assert_array_equal(lengths, [2.5, -1.5, 2.5])
    np.testing.assert_array_equal(neighbor_joining(distances).lengths, [2.5, 0.0, 2.5])


def test_contraction_leaves_pendant_edges() -> None:
    #  x0   0.1  x2        the inner edge (0.2) and the edge to x0 (0.1) are both short;
    #    \      /          only the inner one may go
    #     h0 - h1
    #    /  0.2  \
    #  x1         x3
    edges = [(0, 4), (1, 4), (4, 5), (2, 5), (3, 5)]
    tree = Tree.build("abcd", edges, [0.1, 1.0, 0.2, 1.0, 1.0])
    assert contract_short_edges(tree, 0.2).same_topology(tree)
    star = contract_short_edges(tree, 0.3)
    assert star.n_hidden == 1
    assert sorted(star.lengths) == [0.1, 1.0, 1.0, 1.0]


@pytest.mark.parametrize("seed", range(20))
def test_best_contraction_agrees_with_trying_every_threshold(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = random_tree(rng, int(rng.integers(4, 30)), max_degree=6, internal_observed_fraction=0.2)
    distances = noisy(truth.path_lengths(), rng, 0.3)
    tree = neighbor_joining(distances, truth.observed_names)

    def distance(estimate: Tree) -> float:
        return robinson_foulds(truth, estimate, normalized=True)

    thresholds = [*np.unique(tree.lengths), math.inf]
    brute_force = min(distance(contract_short_edges(tree, t)) for t in thresholds)

    shuffled = truth.reorder(rng.permutation(truth.observed_names).tolist())
    best, threshold, rf = best_contraction(tree, shuffled)
    assert rf == pytest.approx(brute_force, abs=1e-12)  # one and the same fraction
    assert distance(best) == pytest.approx(rf, abs=1e-12)
    assert contract_short_edges(tree, threshold) == best


def test_best_contraction_of_a_star_against_a_star() -> None:
    star = Tree.build("abc", [(0, 3), (1, 3), (2, 3)], [1.0, 1.0, 1.0])
    assert best_contraction(star, star) == (star, math.inf, 0.0)


def test_best_contraction_wants_the_same_variables() -> None:
    a = Tree.build("abc", [(0, 3), (1, 3), (2, 3)], [1.0, 1.0, 1.0])
    b = Tree.build("abd", [(0, 3), (1, 3), (2, 3)], [1.0, 1.0, 1.0])
    with pytest.raises(ValueError, match=r"missing \['d'\], unknown \['c'\]"):
        best_contraction(a, b)


# ---- Chow-Liu ------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_chow_liu_agrees_with_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = random_tree(rng, 30, max_degree=6)
    distances = noisy(truth.path_lengths(), rng, 0.2)
    # SciPy drops zeros, so for it all distances are moved up by 1: the same tree.
    theirs = minimum_spanning_tree(distances + 1.0 - np.eye(30)).tocoo()
    pairs = {tuple(sorted(pair)) for pair in zip(theirs.row, theirs.col, strict=True)}
    ours = chow_liu(distances)
    assert {tuple(edge) for edge in ours.edges.tolist()} == pairs
    np.testing.assert_array_equal(ours.lengths, distances[tuple(ours.edges.T)])


def test_zero_distances_are_edges() -> None:
    distances = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    tree = chow_liu(distances)
    assert tree.edges.tolist() == [[0, 1], [0, 2]]
    assert tree.lengths.tolist() == [0.0, 1.0]


# ---- recursive grouping and CLRG ---------------------------------------------------------


@pytest.mark.parametrize("method", [recursive_grouping, clrg, clnj])
@pytest.mark.parametrize("seed", range(100))
def test_grouping_is_exact_on_exact_distances(method: Callable[..., Tree], seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = random_tree(
        rng,
        int(rng.integers(3, 41)),
        max_degree=int(rng.integers(3, 12)),
        internal_observed_fraction=float(rng.choice([0.0, 0.3])),
        shape=str(rng.choice(SHAPES)),
        length_range=(0.001, 1.0),
    )
    assert method(truth.path_lengths(), math.inf, truth.observed_names) == truth


@pytest.mark.slow
@pytest.mark.parametrize("method", [recursive_grouping, clrg, clnj])
@pytest.mark.parametrize("noise", [0.05, 1.0])
@pytest.mark.parametrize("seed", range(15))
def test_grouping_always_ends_with_a_tree(
    method: Callable[..., Tree], seed: int, noise: float
) -> None:
    rng = np.random.default_rng(seed)
    truth = random_tree(rng, 40, max_degree=6, internal_observed_fraction=0.2)
    distances = noisy(truth.path_lengths(), rng, noise)
    for n_samples in (100, math.inf):
        tree = method(distances, n_samples, truth.observed_names)
        assert tree.observed_names == truth.observed_names
        assert method(distances, n_samples, truth.observed_names) == tree


@pytest.mark.parametrize("seed", range(20))
def test_grouping_on_noisy_distances(seed: int) -> None:
    """Nine leaves, three of them below each of three hidden nodes, around a fourth one.

    Noise 0.02 is that of a binary correlation of 0.35 from 20,000 samples. Phi spreads over
    1.2 or more (twice an inner edge) between families and over some 6 * 0.02 within them, so
    the silhouette (0.9) is far above that of one family (log 2 / 1.2 = 0.58); distances
    that compete for the spanning tree differ by 0.1 or more, 3.5 standard errors of their
    difference: all that fails for one seed in a thousand. (With equal lengths the spanning
    tree is a matter of ties, and CLRG, unlike recursive grouping, loses the middle node.)
    """
    rng = np.random.default_rng(seed)
    pendant = [(9 + i // 3, i) for i in range(9)]
    inner = [(12, 9), (12, 10), (12, 11)]
    lengths = [0.3, 0.6, 0.7] * 3 + [0.6, 0.7, 0.9]
    truth = Tree.build([f"x{i}" for i in range(9)], pendant + inner, lengths)
    distances = noisy(truth.path_lengths(), rng, 0.02)
    assert clrg(distances, 20_000).same_topology(truth)
    assert clnj(distances, 20_000).same_topology(truth)
    assert recursive_grouping(distances, 20_000).same_topology(truth)


@pytest.mark.parametrize("seed", range(3))
def test_clrg_em_is_the_tree_of_clrg_with_the_parameters_of_random_em(seed: int) -> None:
    data = lt.datasets.make_latent_tree(
        9, n_samples=5_000, edge_length=(0.3, 0.7), random_state=seed
    )
    found = clrg_em(data.X, 2, n_restarts=3, random_state=seed)
    distances = estimate_distances(lt.data.as_table(data.X), 2, random_state=seed)
    tree = clrg(distances.values.astype(np.float64), 5_000)
    again = random_em(tree, data.X, 2, n_restarts=3, random_state=seed)
    assert found.model.tree == tree
    assert found.log_likelihood == again.log_likelihood
    # a leaf's conditional has four entries, each off by some sqrt(1 / 5,000) = 0.014; labels
    # that are mixed up, or a start that went nowhere, would be off by 0.5
    assert parameter_error(found.model, data) < 0.2


def test_merging_never_joins_two_observed_nodes() -> None:
    #  a - h - b, c and d hang on h too; both a and b are near h, only a may take its place
    edges = np.array([[0, 4], [1, 4], [2, 4], [3, 4]])
    merged, lengths = merge_short_edges(4, edges, np.array([0.01, 0.02, 1.0, 1.0]), 0.1)
    assert merged.tolist() == [[1, 0], [2, 0], [3, 0]]
    assert lengths.tolist() == [0.02, 1.0, 1.0]


def test_tidying_removes_hidden_leaves_and_joins_paths() -> None:
    #  a - 3 - 4 - b with c on 3, and the hidden leaves 5, 6 on 4: 4 is left with two edges
    edges = np.array([[0, 3], [2, 3], [3, 4], [4, 1], [4, 5], [5, 6]])
    tidy, lengths = tidy_hidden(3, edges, np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0]))
    tree = Tree.build("abc", tidy, lengths)
    assert tree == Tree.build("abc", [(0, 3), (1, 3), (2, 3)], [1.0, 12.0, 2.0])


# ---- all of them -------------------------------------------------------------------------


@pytest.mark.parametrize("method", BASELINES)
@pytest.mark.parametrize("n_samples", [1_000, math.inf])
def test_small_and_degenerate_matrices(method: str, n_samples: float) -> None:
    learn = BASELINES[method]
    assert learn(np.zeros((1, 1)), n_samples).n_nodes == 1
    assert learn(np.array([[0.0, 2.0], [2.0, 0.0]]), n_samples).lengths.tolist() == [2.0]
    assert learn(np.zeros((6, 6)), n_samples).n_observed == 6
    assert learn(np.ones((6, 6)) - np.eye(6), n_samples, list("abcdef")).names[:2] == ("a", "b")
    assert learn(50.0 * (np.ones((9, 9)) - np.eye(9)), n_samples).n_observed == 9


@pytest.mark.parametrize("method", BASELINES)
@pytest.mark.parametrize(
    ("distances", "names", "message"),
    [
        (np.zeros((2, 3)), None, r"shape \(2, 3\)"),
        (np.zeros((0, 0)), None, r"shape \(0, 0\)"),
        (np.array([[0.0, np.inf], [np.inf, 0.0]]), None, r"distance \(0, 1\) is inf"),
        (np.array([[0.0, np.nan], [1.0, 0.0]]), None, r"distance \(0, 1\) is nan"),
        (np.array([[0.0, -1.0], [-1.0, 0.0]]), None, r"distance \(0, 1\) is -1"),
        (np.array([[0.0, 1.0], [2.0, 0.0]]), None, r"are 1.0 and 2.0"),
        (np.zeros((2, 2)), ["a"], "1 names for 2 variables"),
    ],
)
def test_bad_input(method: str, distances: Matrix, names: list[str] | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BASELINES[method](distances, 100, names)


@pytest.mark.parametrize("method", [recursive_grouping, clrg, clnj])
@pytest.mark.parametrize("n_samples", [0, -5, math.nan])
def test_bad_number_of_samples(method: Callable[..., Tree], n_samples: float) -> None:
    with pytest.raises(ValueError, match="n_samples is"):
        method(np.ones((3, 3)) - np.eye(3), n_samples)
