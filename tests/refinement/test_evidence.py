"""Canonical states, and the effective number of samples against posteriors."""

from __future__ import annotations

import numpy as np
import pytest

from latenttree.data import as_table
from latenttree.evaluation.datasets import make_latent_tree
from latenttree.model.inference import Evidence
from latenttree.model.samples import Samples
from latenttree.model.tree_model import TreeModel
from latenttree.refinement.evidence import canonical_states, effective_samples
from latenttree.tree import Tree


def test_states_without_an_order_around_them_are_ordered_by_probability() -> None:
    for seed in range(5):
        truth = make_latent_tree(9, 4, n_samples=0, random_state=seed).model
        rng = np.random.default_rng(seed)
        shuffled = truth.relabelled({v: rng.permutation(4) for v in range(9, truth.tree.n_nodes)})
        one, two = canonical_states(truth), canonical_states(shuffled)
        for x, y in zip(one.cpts, two.cpts, strict=True):
            np.testing.assert_allclose(x, y, atol=1e-12)
        for w in one.marginals[9:]:
            assert (np.diff(w) <= 1e-12).all()


def test_states_are_in_the_order_of_ordered_neighbours() -> None:
    for seed in range(5):
        truth = make_latent_tree(9, 3, 4, n_samples=0, random_state=seed).model
        model = canonical_states(truth, np.ones(9, dtype=bool))
        for h in range(9, model.tree.n_nodes):
            near = [u for u in model.tree.neighbors(h).tolist() if u < 9]
            given = [np.arange(4) @ model.conditional(u, h) for u in near]
            assert not near or any((np.diff(x) >= -1e-12).all() for x in given)


def test_effective_samples_are_what_posteriors_say() -> None:
    truth = make_latent_tree(9, 3, 5, n_samples=700, random_state=0)
    model, samples = truth.model, Samples(as_table(truth.X))
    found = effective_samples(model, samples)
    for i in range(truth.tree.n_hidden):
        q = model.posteriors(Evidence(truth.X), [9 + i]).values[0]
        w = model.marginals[9 + i]
        expected = 700 * ((q**2).sum(axis=1).mean() - (w**2).sum()) / (1 - (w**2).sum())
        assert found[i] == pytest.approx(expected, rel=1e-9)
    assert (found > 0).all()
    assert (found <= 700).all()
    again = effective_samples(model, samples, n_jobs=2)
    np.testing.assert_allclose(again, found, rtol=1e-12)


def test_effective_samples_at_the_extremes() -> None:
    tree = Tree.build(list("abc"), [(0, 3), (1, 3), (2, 3)], np.ones(3))
    codes = np.random.default_rng(0).integers(0, 2, size=(50, 1)).repeat(3, axis=1)
    half = np.array([[0.5], [0.5]])
    sure = TreeModel(tree, 3, (np.eye(2), np.eye(2), np.eye(2), half))
    silent = TreeModel(tree, 3, (np.full((2, 2), 0.5),) * 3 + (half,))
    samples = Samples(as_table(codes))
    assert effective_samples(sure, samples)[0] == pytest.approx(50)
    assert effective_samples(silent, samples)[0] == pytest.approx(0, abs=1e-9)


def test_some_samples_determine_the_number() -> None:
    data = make_latent_tree(9, 3, 6, n_samples=3000, random_state=0)
    samples = Samples(as_table(data.X))
    whole = effective_samples(data.model, samples)
    some = effective_samples(data.model, samples, n_used=1000)
    # a mean of 1,000 values in [0, 1]: four standard errors are below 0.07
    np.testing.assert_allclose(some, whole, atol=0.07 * 3000)
