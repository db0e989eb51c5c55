"""Votes of several optima: splits, the likelihood of a whole tree, agreement."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from tests.reference import joining as reference
from tests.reference.adjacency import builder_of, edges_of
from tests.reference.random_trees import random_tree, trees

from latenttree.distances.similarity import similarity_from_matrix
from latenttree.structure.consensus import best_tree, edge_splits, tree_log_likelihood
from latenttree.tree import Tree


@settings(max_examples=60, deadline=None, derandomize=True)
@given(trees(min_observed=2, max_observed=30))
def test_splits_of_edges_are_those_of_the_tree(tree: Tree) -> None:
    found = edge_splits(builder_of(tree))
    bits = np.unpackbits(tree.splits(), axis=1, count=tree.n_observed)
    assert len(found) == len(tree.edges)
    for row, (a, b) in zip(bits.tolist(), tree.edges.tolist(), strict=True):
        assert [found[(a, b)] >> i & 1 for i in range(tree.n_observed)] == row


def test_likelihood_of_the_whole_tree_is_that_of_a_star() -> None:
    """The same formula over all leaves: the slow version of a star is the slow version here."""
    rng = np.random.default_rng(0)
    tree = random_tree(rng, 9)
    rho = reference.sampled_correlations(rng, np.exp(-tree.path_lengths()), 300)
    expected = reference.log_likelihood(np.abs(rho), 300.0, tree.edges, tree.lengths)
    part = similarity_from_matrix(rho, 300.0)
    # log det and trace of a 9 x 9 matrix of condition below 1e3, times n / 2
    assert tree_log_likelihood(builder_of(tree), part) == pytest.approx(expected, rel=1e-8)


def test_starts_that_agree_leave_no_doubt() -> None:
    tree = random_tree(np.random.default_rng(2), 15, length_range=(0.2, 1.0))
    part = reference.with_samples(tree.path_lengths(), 1e6)
    best, agreement = best_tree(part, builder_of(tree), 1)
    assert best.tree.tree(tree.observed_names).same_topology(tree)
    assert [tuple(e) for e in best.tree.ends.tolist()] == edges_of(best.tree)
    assert agreement.tolist() == [1.0] * len(best.tree.ends)
    assert best.changes[-1] == 0


def test_agreement_is_a_share_of_votes() -> None:
    """A star with noise: optima differ, and each edge has the share of those that have it."""
    rng = np.random.default_rng(5)
    sigma = np.exp(-1.5 * (1 - np.eye(12)))
    rho = reference.sampled_correlations(rng, sigma, 200)
    tree = Tree.build(
        [str(i) for i in range(12)], reference.random_binary(rng, 12), np.full(21, 0.5)
    )
    part = similarity_from_matrix(rho, 200.0)
    best, agreement = best_tree(part, builder_of(tree), 1)
    assert len(agreement) == len(best.tree.ends)
    assert ((agreement > 0) & (agreement <= 1 + 1e-12)).all()  # sums of up to five shares
    pendant = best.tree.ends[:, 0] < 12
    np.testing.assert_allclose(agreement[pendant], 1.0, atol=1e-12)
    assert agreement.min() < 1
