"""Support by resampling: splits are counted within parts, frequencies smoothed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm
from tests.reference.resampling import slow_split_counts

import latenttree as lt
from latenttree.config import FitConfig
from latenttree.data import Table, as_table
from latenttree.distances.stage import States, count_states, measure
from latenttree.evaluation.datasets import make_latent_tree
from latenttree.search.growth import grow_shapes
from latenttree.structure import resampling
from latenttree.structure.copies import hidden_chow_liu
from latenttree.structure.learn import Structure
from latenttree.structure.resampling import (
    estimate_support,
    inner_splits,
    learn_chow_liu,
    part_splits,
    replication_probabilities,
    resamples,
    smoothed_frequencies,
    splits_found,
)
from latenttree.tree import Tree

DATA = make_latent_tree(9, n_samples=2_000, random_state=0)


def test_counts_of_splits_are_those_of_sets() -> None:
    trees = [
        make_latent_tree(12, shape="random", n_samples=2, random_state=i).tree for i in range(20)
    ]
    structure = Structure.of_tree(trees[0])
    parts = inner_splits(structure)
    found = sum(splits_found(parts, tree, trees[0].n_edges).astype(int) for tree in trees)
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


@pytest.mark.parametrize(("n_samples", "n_trees"), [(5_000, 8), (300, 25)])
def test_where_no_edge_is_in_doubt_fewer_trees_are_learned(n_samples: int, n_trees: int) -> None:
    data = make_latent_tree(27, n_samples=n_samples, random_state=0)
    model = lt.LatentTree(n_states=2, random_state=0, refine=None, support="subsample")
    report = model.fit(data.X).diagnostics_
    assert report.n_resamples == n_trees
    all_of_them = lt.LatentTree(n_states=2, random_state=0, refine=None, n_resamples=25)
    support = all_of_them.fit(data.X).diagnostics_.support
    # with 8 of 8 and 25 of 25 trees it is at the upper bound; else nothing differs
    np.testing.assert_allclose(report.support, support, atol=0.02)


def test_the_same_seed_gives_the_same_support() -> None:
    one, other = (
        lt.LatentTree(n_states=2, random_state=0, n_resamples=4, n_jobs=n).fit(DATA.X)
        for n in (1, 2)
    )
    np.testing.assert_array_equal(one.diagnostics_.support, other.diagnostics_.support)


# ---- the hidden Chow-Liu tree --------------------------------------------------------------------


def chain(n: int, p: int = 8, seed: int = 0) -> Any:
    """A chain of binary variables, each equal to the one before with probability 0.9: its
    Chow-Liu tree is the chain, and a hidden copy of it at every inner variable."""
    rng = np.random.default_rng(seed)
    flips = rng.random((n, p)) < 0.1
    flips[:, 0] = rng.random(n) < 0.5
    return np.cumsum(flips, axis=1) % 2


def chow_liu_of(X: Any, **options: Any) -> tuple[Structure, Table, States, FitConfig]:
    config = FitConfig(seed=0, n_jobs=1, n_states=2, **options)
    table = as_table(X)
    states = count_states(table, config)
    similarity = measure(table, states, config).similarity
    assert similarity is not None
    return hidden_chow_liu(similarity, table, resolved=True), table, states, config


@pytest.mark.parametrize("support", ["subsample", "bootstrap"])
def test_a_hidden_chow_liu_tree_is_learned_again_as_one(
    support: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
        x0 - h - h - h - h - h - h - x7
             |   |   |   |   |   |
             x1  x2  x3  x4  x5  x6

    Every resample of a strong chain has this tree: inner edges have 6 of 7 by the uniform prior.
    """
    structure, table, states, config = chow_liu_of(chain(500), support=support, n_resamples=5)
    assert structure.shape == "hidden Chow-Liu"
    seen: list[Tree] = []

    def learned(*arguments: Any) -> Tree:
        seen.append(learn_chow_liu(*arguments))
        return seen[-1]

    monkeypatch.setattr(resampling, "learn_chow_liu", learned)
    monkeypatch.setattr(resampling, "learn_uncontracted", None)
    found = estimate_support(structure, table, states, config)
    assert len(seen) == found.n_resamples == 5
    assert all(tree.same_topology(structure.tree) for tree in seen)
    inner = structure.tree.internal_edges()
    expected = np.ones(structure.tree.n_edges)
    expected[inner] = 6 / 7
    np.testing.assert_allclose(found.values, expected)


@pytest.mark.parametrize("seed", range(3))
def test_supports_of_doubtful_copies_are_shares_of_trees(seed: int) -> None:
    """40 samples of a weak chain: some edges come back, some do not."""
    X = chain(40, 10, seed) ^ (np.random.default_rng(seed + 100).random((40, 10)) < 0.15)
    structure, table, states, config = chow_liu_of(X, n_resamples=12)
    found = estimate_support(structure, table, states, config).values
    assert ((found >= 0) & (found <= 1)).all()
    inner = np.zeros(structure.tree.n_edges, dtype=bool)
    inner[structure.tree.internal_edges()] = True
    assert (found[~inner] == 1).all()
    assert found[inner].min() < 0.7
    trees = [
        learn_chow_liu(sample, states, config) for sample in resamples(table, "subsample", 12, 0)
    ]
    counts = slow_split_counts(structure.tree, trees)
    share = (counts + 1) / 14  # the uniform prior of few edges
    np.testing.assert_allclose(found[inner], share[inner], atol=1e-12)


def test_copies_that_grew_are_still_copies() -> None:
    """The shape is that of the structure, whatever became of its states."""
    structure, table, states, config = chow_liu_of(chain(500), n_resamples=3)
    states = replace(states, goal=3)
    learned = grow_shapes([structure], 3, table, states, None, config)
    assert learned.structure.shape == "hidden Chow-Liu"
    found = estimate_support(learned.structure, table, states, config)
    assert ((found.values > 0.7) & (found.values <= 1)).all()  # 4 of 5 by the uniform prior


def test_a_whole_fit_of_more_states_has_support() -> None:
    """Whichever shape is the best: every edge of a strong chain comes back."""
    model = lt.LatentTree(n_states=3, random_state=0, n_jobs=1, n_resamples=4).fit(chain(1_000))
    report = model.diagnostics_
    assert (report.support_method, report.n_resamples) == ("subsample", 4)
    assert report.support.shape == (model.tree_.n_edges,)
    assert ((report.support > 0.7) & (report.support <= 1)).all()


def test_joins_of_copies_have_no_support() -> None:
    """Two chains, independent of each other: the edge between them tells nothing, all others come
    back in the trees of thirds."""
    X = np.column_stack([chain(500, 6, 0), chain(500, 6, 1)])
    _, table, states, config = chow_liu_of(X, n_resamples=5)
    similarity = measure(table, states, config).similarity
    assert similarity is not None
    structure = hidden_chow_liu(similarity, table)
    found = estimate_support(structure, table, states, config).values
    assert structure.n_components == 2
    np.testing.assert_array_equal(found == 0, structure.support == 0)
    assert (found == 0).sum() == 1
    assert (found[found > 0] > 0.7).all()


# ---- from frequencies to other samples -----------------------------------------------------------


def slow_replication(frequency: list[float]) -> list[float]:
    """The same by one integral for each edge: over what all samples would say, the probability
    that other samples have the edge, weighted by its prior and by what these samples say."""
    z = [2**0.5 * float(norm.ppf(min(max(f, 0.002), 0.998))) for f in frequency]
    mean = sum(z) / len(z)
    trust = max(1 - 1 / (sum((x - mean) ** 2 for x in z) / len(z)), 0.5)
    prior = trust / (1 - trust)
    truth = np.linspace(-30, 30, 20_001)
    found = []
    for x in z:
        weight = norm.pdf(truth, mean, prior**0.5) * norm.pdf(x, truth, 1)
        found.append(float((weight * norm.cdf(truth)).sum() / weight.sum()))
    return found


@pytest.mark.parametrize("seed", range(4))
def test_replication_is_an_expectation_over_what_all_samples_would_say(seed: int) -> None:
    rng = np.random.default_rng(seed)
    frequency = rng.beta(0.6 + seed, 0.8, 40)
    expected = slow_replication(frequency.tolist())
    np.testing.assert_allclose(replication_probabilities(frequency), expected, atol=1e-6)


def test_replication_keeps_the_order_and_the_frequencies_of_few_edges() -> None:
    frequency = np.linspace(0.01, 0.99, 30)
    assert (np.diff(replication_probabilities(frequency)) > 0).all()
    few = np.array([0.1, 0.5, 0.9])
    np.testing.assert_array_equal(replication_probabilities(few), few)


@pytest.mark.parametrize("seed", range(3))
def test_replication_is_calibrated_for_normal_estimates(seed: int) -> None:
    """4,000 edges with a preference theta ~ N(0.5, 1.5^2), seen with noise 1 by these samples and
    by others, and through thirds of these as `Phi(z / sqrt 2)`: bins of stated probability are met
    by the others. A bin of 300 edges or more has a standard error of 0.03 at most; 4 of these."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(0.5, 1.5, 4000)
    z, others = theta + rng.normal(size=4000), theta + rng.normal(size=4000)
    stated = replication_probabilities(norm.cdf(z / np.sqrt(2)))
    for low in np.arange(0, 1, 0.2):
        inside = (stated >= low) & (stated < low + 0.2)
        if inside.sum() >= 300:
            assert abs(stated[inside].mean() - (others[inside] > 0).mean()) < 0.12
