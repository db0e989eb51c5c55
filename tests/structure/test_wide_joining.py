"""Joining of many branches: exact on exact distances, and never all pairs at every join."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.reference.random_trees import SHAPES, random_tree

import latenttree as lt
from latenttree.distances.similarity import EXACT
from latenttree.evaluation.metrics import robinson_foulds
from latenttree.structure import wide_joining
from latenttree.structure.builder import TreeBuilder
from latenttree.structure.joining import neighbour_joining
from latenttree.structure.merging import contract_zero
from latenttree.structure.wide_joining import MAX_NARROW, resolve_node
from latenttree.tree import Tree

# Sums and differences of a few thousand logarithms near 1.
ROUNDING = 1e-9

Matrix = NDArray[np.float64]


def sampled(tree: Tree, n: int, seed: int) -> Matrix:
    """Absolute correlations of Gaussian leaves."""
    d = tree.path_lengths()
    root = np.linalg.cholesky(np.exp(-d) + 1e-9 * np.eye(len(d)))
    x = np.random.default_rng(seed).standard_normal((n, len(d))) @ root.T
    return np.abs(np.corrcoef(x.T))


def contracted(r: Matrix, names: Any, max_narrow: int = MAX_NARROW) -> Tree:
    tree = TreeBuilder(len(r), *resolve_node(r, EXACT, 1.0, True, max_narrow))
    contract_zero(tree)
    return tree.tree(names)


@pytest.mark.parametrize("shape", SHAPES)
def test_exact_trees_come_back(shape: str) -> None:
    for seed in range(15):
        rng = np.random.default_rng(seed)
        degree = int(rng.integers(3, 12))
        p = int(rng.integers(5, 40 if shape == "caterpillar" else 80))
        tree = random_tree(rng, p, shape=shape, max_degree=degree, length_range=(0.01, 1.0))
        found = contracted(np.exp(-tree.path_lengths()), tree.observed_names, max_narrow=4)
        assert found.same_topology(tree)
        np.testing.assert_allclose(found.lengths, tree.lengths, atol=ROUNDING)


def test_ties_everywhere() -> None:
    for shape in SHAPES:
        rng = np.random.default_rng(0)
        tree = random_tree(rng, 50, shape=shape, max_degree=6, length_range=(0.5, 0.5))
        found = contracted(np.exp(-tree.path_lengths()), tree.observed_names, max_narrow=4)
        assert found.same_topology(tree)


@pytest.mark.parametrize("inside", [0.0, 0.3])
def test_a_tree_wider_than_the_limit(inside: float) -> None:
    rng = np.random.default_rng(0)
    tree = random_tree(rng, 700, max_degree=5, internal_observed_fraction=inside)
    found = contracted(np.exp(-tree.path_lengths()), tree.observed_names)
    assert found.same_topology(tree)
    np.testing.assert_allclose(found.lengths, tree.lengths, atol=ROUNDING)


def test_a_star_of_equal_leaves() -> None:
    p = 2000
    tree = lt.tree_from_distances(2.0 * (1 - np.eye(p)))
    assert (tree.n_observed, tree.n_hidden) == (p, 1)
    np.testing.assert_allclose(tree.lengths, 1.0, atol=ROUNDING)


def test_stars_with_an_observed_centre_and_of_two_levels() -> None:
    p = 1200
    around = 2.0 * (1 - np.eye(p))
    around[0, 1:] = around[1:, 0] = 1.0
    tree = lt.tree_from_distances(around)
    assert tree.n_hidden == 0
    assert tree.degree()[0] == p - 1
    group = np.arange(p) % 2
    two = np.where(group[:, None] == group, 2.0, 5.0) * (1 - np.eye(p))
    tree = lt.tree_from_distances(two)
    assert tree.n_hidden == 2
    assert tree.lengths.max() == pytest.approx(3.0, abs=ROUNDING)


@pytest.mark.parametrize("noise", [1e-9, 1e-6, 1e-3])
def test_a_noisy_star_is_some_tree_near_the_star(noise: float) -> None:
    p = 700
    rng = np.random.default_rng(0)
    d = np.add.outer(x := rng.uniform(0.5, 1.0, p), x) * (1 - np.eye(p))
    e = np.triu(rng.uniform(-noise, noise, (p, p)), 1)
    found = lt.tree_from_distances(d + e + e.T)
    # lengths are means and differences of a few distances; joined in a chain, errors add up
    assert np.abs(found.path_lengths() - d).max() < 50 * noise + ROUNDING


def test_no_compiled_call_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C waits for a compiled call: it is only made for the few features that are left."""
    sizes = []

    def noted(r: Matrix, *rest: Any) -> Any:
        sizes.append(len(r))
        return neighbour_joining(r, *rest)

    monkeypatch.setattr(wide_joining, "neighbour_joining", noted)
    resolve_node(np.exp(-2.0 * (1 - np.eye(1100))), EXACT, 1.0, True)
    assert sizes == [MAX_NARROW]


@pytest.mark.parametrize("n", [300, 3000])
def test_samples_give_as_good_a_tree_as_all_pairs(n: int) -> None:
    tree = random_tree(
        np.random.default_rng(1), 600, shape="balanced", max_degree=3, length_range=(0.05, 0.3)
    )
    r = sampled(tree, n, 2)
    wrong = []
    for joining in (neighbour_joining, resolve_node):
        edges, lengths = joining(r, float(n), 1.0, False)
        assert (lengths >= 0).all()
        found = Tree.build(tree.observed_names, edges, lengths)
        wrong.append(robinson_foulds(found, tree))
    # both are greedy: where two pairs are as good, either may be luckier
    assert wrong[1] <= 1.1 * wrong[0] + 10


def test_independent_variables_and_copies_are_joined() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((50, 300))
    for columns in (np.hstack([x, x]), rng.standard_normal((50, 600))):
        r = np.abs(np.corrcoef(columns.T))
        before = r.copy()
        for equal_weights in (True, False):
            edges, lengths = resolve_node(r, 50.0, 1.0, equal_weights)
            assert np.isfinite(lengths).all()
            assert Tree.build([str(i) for i in range(600)], edges, lengths).n_hidden == 598
        np.testing.assert_array_equal(r, before)
