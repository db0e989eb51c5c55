"""Support by resampling: splits are counted within parts, frequencies smoothed."""

from __future__ import annotations

import numpy as np
from tests.reference.resampling import slow_split_counts

import latenttree as lt
from latenttree.evaluation.datasets import make_latent_tree
from latenttree.structure.learn import Structure
from latenttree.structure.resampling import (
    count_splits,
    inner_splits,
    part_splits,
    smoothed_frequencies,
)
from latenttree.tree import Tree

DATA = make_latent_tree(9, n_samples=2_000, random_state=0)


def test_counts_of_splits_are_those_of_sets() -> None:
    trees = [
        make_latent_tree(12, shape="random", n_samples=2, random_state=i).tree for i in range(20)
    ]
    structure = Structure.of_tree(trees[0])
    parts = inner_splits(structure)
    found = count_splits(parts, trees, trees[0].n_edges)
    inner = np.concatenate([part.edges for part in parts])
    np.testing.assert_array_equal(found[inner], slow_split_counts(trees[0], trees)[inner])


def test_splits_of_members_only() -> None:
    """a, b | c, d is a split of both trees where e is left out."""
    one, other = (
        Tree.from_newick(text, observed=list("abcde"))
        for text in ("((a,b),(c,d),e);", "(a,b,((c,e),d));")
    )
    members = np.array([True] * 4 + [False])
    shared = np.intersect1d(part_splits(one, members)[0], part_splits(other, members)[0])
    assert len(shared) == 5 + 1  # four leaves, nothing at all (e), and a, b | c, d


def test_few_frequencies_are_pulled_to_a_uniform_prior() -> None:
    out = smoothed_frequencies(np.array([0, 5]), 5, np.ones(2))
    np.testing.assert_allclose(out, [1 / 7, 6 / 7])


def test_strong_edges_come_back() -> None:
    model = lt.LatentTree(n_states=2, random_state=0, n_resamples=5).fit(DATA.X)
    report = model.diagnostics_
    assert (report.support_method, report.n_resamples) == ("subsample", 5)
    assert (report.support > 0.7).all()


def test_the_same_seed_gives_the_same_support() -> None:
    one, other = (
        lt.LatentTree(n_states=2, random_state=0, n_resamples=4, n_jobs=n).fit(DATA.X)
        for n in (1, 2)
    )
    np.testing.assert_array_equal(one.diagnostics_.support, other.diagnostics_.support)
