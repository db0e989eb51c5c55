"""Sweeps: damage is repaired, the truth is left alone, likelihood never falls."""

from __future__ import annotations

import numpy as np
import pytest
from tests.reference import joining as reference
from tests.reference.adjacency import Adjacency, builder_of, interchange, steps_from
from tests.reference.random_trees import random_tree

from latenttree.distances.similarity import similarity_from_matrix
from latenttree.structure.builder import TreeBuilder
from latenttree.structure.consensus import tree_log_likelihood
from latenttree.structure.sweeps import SplitCounts, sweep
from latenttree.tree import Tree

N = 1e6
SHAPES = ("uniform", "caterpillar", "balanced")
# Edges from 0.2 to 1.0: at n = 1e6 the worst quartet of a binary tree of these is decided by
# hundreds of standard errors, so anything but the truth is a failure of the search.
LENGTHS = (0.2, 1.0)


def binary_tree(seed: int) -> Tree:
    rng = np.random.default_rng(seed)
    p = int(rng.integers(5, 40))
    return random_tree(rng, p, shape=SHAPES[seed % 3], max_degree=3, length_range=LENGTHS)


def damaged(tree: Tree, n: int, seed: int) -> tuple[TreeBuilder, np.random.Generator]:
    """A tree after `n` interchanges, and the generator that chose them."""
    adjacency, rng = Adjacency.of(tree), np.random.default_rng(seed)
    for _ in range(n):
        interchange(adjacency, rng)
    return adjacency.builder(), rng


def move_leaf(adjacency: Adjacency, rng: np.random.Generator, reach: int = 6) -> None:
    """Prune a leaf with its parent and put it on an edge up to `reach` steps away."""
    leaf = int(rng.integers(adjacency.n_observed))
    (parent,) = adjacency.links[leaf]
    a, b = (u for u in adjacency.links[parent] if u != leaf)
    adjacency.connect(a, b, adjacency.cut(parent, a) + adjacency.cut(parent, b))
    steps = steps_from(adjacency, a)
    near = [e for e in adjacency.edges() if e != (leaf, parent) and steps[e[0]] < reach]
    c, d = near[int(rng.integers(len(near)))]
    length = adjacency.cut(c, d)
    adjacency.connect(c, parent, length / 2)
    adjacency.connect(parent, d, length / 2)


@pytest.mark.parametrize("damage", [interchange, move_leaf])
def test_damage_is_repaired(damage: object) -> None:
    for seed in range(100):
        tree = binary_tree(seed)
        adjacency, rng = Adjacency.of(tree), np.random.default_rng(seed)
        for _ in range(int(rng.integers(1, 5))):
            damage(adjacency, rng)  # type: ignore[operator]
        builder = adjacency.builder()
        changes = sweep(builder, reference.with_samples(tree.path_lengths(), N))
        assert changes[-1] == 0, "sweeps end when nothing changes"
        found = builder.tree(tree.observed_names)
        assert found.same_topology(tree), f"seed {seed}: {changes}"


def test_the_truth_is_left_alone() -> None:
    for seed in range(30):
        tree = binary_tree(seed)
        builder = builder_of(tree)
        assert sweep(builder, reference.with_samples(tree.path_lengths(), N)) == [0]
        found = builder.tree(tree.observed_names)
        assert found.same_topology(tree)
        # A fit ends when a step gains under 1e-3 log-likelihood, sqrt(2e-3) = 0.045 standard
        # errors. At n = 1e6 those are below 0.01 here: the farthest leaves of a feature are
        # e^-3 away.
        np.testing.assert_allclose(found.lengths, tree.lengths, atol=1e-3)


def test_likelihood_of_the_whole_tree_rises_when_sweeping_samples() -> None:
    for seed in range(15):
        tree = binary_tree(seed)
        builder, rng = damaged(tree, 4, seed)
        rho = reference.sampled_correlations(rng, np.exp(-tree.path_lengths()), 2000)
        whole = similarity_from_matrix(rho, 2000.0, 1.0, np.empty((0, 2), dtype=np.int64))
        before = tree_log_likelihood(builder, whole)
        sweep(builder, whole)
        assert tree_log_likelihood(builder, whole) > before


def test_an_unresolved_node_is_resolved() -> None:
    """A region that is not binary is always joined: all hidden nodes collapsed into one."""
    tree = random_tree(np.random.default_rng(3), 9, length_range=LENGTHS)
    adjacency = Adjacency.of(tree)
    first, *others = adjacency.hidden()
    while others:
        drop = next(v for v in adjacency.links[first] if v in others)
        adjacency.contract(first, drop)
        others.remove(drop)
    assert len(adjacency.hidden()) == 1
    builder = adjacency.builder()
    sweep(builder, reference.with_samples(tree.path_lengths(), N))
    assert builder.tree(tree.observed_names).same_topology(tree)


def test_threads_do_not_matter() -> None:
    tree = binary_tree(4)
    whole = reference.with_samples(tree.path_lengths(), N)
    found = []
    for n_jobs in (1, 2):
        builder, _ = damaged(tree, 6, 0)
        changes = sweep(builder, whole, n_jobs)
        found.append((changes, builder.ends.tolist(), builder.length.tolist()))
    assert found[0] == found[1]


def test_the_number_of_sweeps_is_bounded() -> None:
    tree = binary_tree(4)
    builder, _ = damaged(tree, 6, 0)
    assert len(sweep(builder, reference.with_samples(tree.path_lengths(), N), max_sweeps=1)) == 1
    assert sweep(builder, reference.with_samples(tree.path_lengths(), N), max_sweeps=0) == []


def test_nothing_to_sweep_without_hidden_nodes() -> None:
    builder = TreeBuilder(2, [(0, 1)], [0.5])
    assert sweep(builder, reference.with_samples(np.array([[0, 0.5], [0.5, 0]]), N)) == []


def test_splits_are_counted_when_they_come_again() -> None:
    tree = binary_tree(7)
    incidence = builder_of(tree).incidence()
    splits = SplitCounts.of_tree(incidence)
    assert len(splits.hash) == tree.n_edges, "every edge is a split of its own"
    totals = incidence.split_hash[::2] + incidence.split_hash[1::2]
    assert len(np.unique(totals)) == 1, "the two sides are all observed nodes"
    again = splits.add(np.array([splits.hash[3], 12345], dtype=np.uint64))
    assert again.times[np.searchsorted(again.hash, splits.hash[3])] == 2
    assert again.times.sum() == tree.n_edges + 2


def test_sweeps_of_what_fits_no_tree_come_to_an_end() -> None:
    """Correlations of nine factors at once: many trees are as good, none is right. The likelihood
    of the whole rises all the same, and nothing goes in circles."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        loads = rng.uniform(0.1, 1.0, (60, 9)) ** 2
        cover = loads @ loads.T + np.diag(rng.uniform(0.5, 2.0, 60))
        root = np.sqrt(np.diag(cover))
        whole = similarity_from_matrix(cover / np.outer(root, root), 1e5)
        builder = builder_of(random_tree(rng, 60, max_degree=3, length_range=LENGTHS))
        before = tree_log_likelihood(builder, whole)
        assert sweep(builder, whole, max_sweeps=200)[-1] == 0
        assert tree_log_likelihood(builder, whole) > before
