"""The benchmarks' simulated data, parts of trees, and the interface of rivals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.reference.random_trees import random_tree

from benchmarks.data.rare import RareTree, draw, make_rare_tree, ones, zipf_frequencies
from benchmarks.data.rare_sources import RareCodes, RareGroups
from benchmarks.rivals import Task, rival, rivals
from benchmarks.trees import families, neighbourhood, restricted
from latenttree.data import as_table
from latenttree.errors import DataError
from latenttree.evaluation.datasets import make_latent_tree
from latenttree.evaluation.metrics import robinson_foulds
from latenttree.tree import Tree

# ---- rare things ---------------------------------------------------------------------------------


def rare_tree(p: int, seed: int = 0) -> RareTree:
    names = [f"x{i}" for i in range(p)]
    return make_rare_tree(zipf_frequencies(p, 3.0, 5.0), names, np.random.default_rng(seed))


@pytest.mark.parametrize("p", [3, 4, 5, 6, 7, 11, 40, 333])
def test_a_rare_tree_is_a_tree_of_chances(p: int) -> None:
    model = rare_tree(p)
    assert model.tree.n_observed == p
    assert ((model.high > model.low) | (model.parents < 0)).all()
    assert (model.high <= 1).all()
    for v in range(model.tree.n_nodes):
        u = int(model.parents[v])
        if u >= 0:  # the law of total probability
            whole = model.high[v] * model.frequency[u] + model.low[v] * (1 - model.frequency[u])
            assert whole == pytest.approx(model.frequency[v], rel=1e-12)
            np.testing.assert_allclose(model.conditional(v).sum(axis=0), 1.0, rtol=1e-12)


def test_frequencies_follow_zipf() -> None:
    found = zipf_frequencies(100, 2.0, 10.0)
    assert found.sum() == pytest.approx(2.0)
    assert found[0] / found[-1] == pytest.approx(110 / 11)


@pytest.mark.parametrize("chance", [0.0, 0.003, 0.1, 0.6, 1.0])
def test_ones_by_gaps_are_ones_by_chance(chance: float) -> None:
    """Counts of 400 draws of 1,000: their mean is 5 standard errors from `n chance` with a chance
    of 6e-7; positions are spread evenly."""
    rng = np.random.default_rng(1)
    drawn = [ones(1_000, chance, rng) for _ in range(400)]
    assert all(len(np.unique(x)) == len(x) and (x < 1_000).all() for x in drawn)
    error = np.sqrt(1_000 * chance * (1 - chance) / 400)
    assert np.mean([len(x) for x in drawn]) == pytest.approx(1_000 * chance, abs=5 * error + 1e-9)
    if chance:
        places = np.concatenate(drawn)
        assert places.mean() == pytest.approx(499.5, abs=5 * 289 / np.sqrt(len(places)))


def test_samples_have_the_frequencies_and_correlations_of_the_truth() -> None:
    """z-scores of all 55 frequencies: the largest of 55 is above 5 once in 30,000 times."""
    model, n = rare_tree(40, seed=3), 40_000
    present = dict(draw(model, n, np.random.default_rng(0)))
    counts = np.array([len(present[v]) for v in range(model.tree.n_nodes)])
    f = model.frequency
    z = (counts - n * f) / np.sqrt(n * f * (1 - f))
    assert np.abs(z).max() < 5
    states = np.zeros((model.tree.n_nodes, n))
    for v, samples in present.items():
        states[v, samples] = 1
    for (a, b), length in zip(model.tree.edges.tolist(), model.tree.lengths, strict=True):
        found = np.corrcoef(states[a], states[b])[0, 1]
        # correlations of rare pairs have errors of some sqrt(1 / (n f)) of themselves
        noise = 5 / np.sqrt(n * min(f[a], f[b]))
        assert found == pytest.approx(np.exp(-length), abs=noise)


def test_rare_codes_on_disk(tmp_path: Path) -> None:
    source = RareCodes(30, 2_000, per_sample=3.0)
    source.draw(tmp_path, 0)
    data, truth = source.load(tmp_path), source.truth(tmp_path)
    assert data.names == truth.known.tree.observed_names
    assert truth.known.X is None
    assert truth.oracle_error is not None
    assert truth.oracle_error > 0
    shape = source.shape(data, 2)
    held = np.asarray(data.rows(0, 2_000).sum(axis=1)).ravel()
    assert shape.present_pairs == (held * (held - 1) / 2).sum()
    assert shape.is_binary


def test_rare_groups_on_disk(tmp_path: Path) -> None:
    source = RareGroups(12, 3_000, per_sample=2.0, widest=6)
    source.draw(tmp_path, 0)
    data, truth = source.load(tmp_path), source.truth(tmp_path)
    assert data.n_vars == 12
    assert set(data.families) == {"multihot"}
    frequency = np.array([1 - truth.known.emissions[v].none for v in range(12)])
    assert (frequency[:, 1] > frequency[:, 0]).all()
    shape = source.shape(data, 2)
    assert shape.present_pairs is not None
    assert 0 < shape.present_pairs < 3_000 * 66


# ---- parts of trees ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_a_restricted_tree_keeps_the_paths(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 25, max_degree=5, internal_observed_fraction=0.2)
    kept = rng.permutation(tree.observed_names)[:9].tolist()
    part = restricted(tree, kept)
    index = [tree.index(name) for name in kept]
    assert part.observed_names == tuple(kept)
    # sums of the same lengths in another order
    whole = tree.path_lengths()[np.ix_(index, index)]
    np.testing.assert_allclose(part.path_lengths(), whole, rtol=0, atol=1e-12)


def test_the_neighbourhood_of_a_word() -> None:
    #  a   c   e
    #   \  |  /        from a: b is two edges away, c and d three, e and f four
    #   h0-h1-h2
    #   /  |  \
    #  b   d   f
    edges = [(0, 6), (1, 6), (2, 7), (3, 7), (4, 8), (5, 8), (6, 7), (7, 8)]
    tree = Tree.build("abcdef", np.array(edges), np.ones(8))
    assert neighbourhood(tree, "a", 4).observed_names == ("a", "b", "c", "d")
    assert families(tree) == [["a", "b"], ["c", "d"], ["e", "f"]]


# ---- rivals --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_our_own_baselines_are_rivals() -> None:
    """That answers have what they should; how good they are is tested with the baselines."""
    data = make_latent_tree(9, n_samples=2_000, edge_length=(0.3, 0.6), random_state=0)
    task = Task(as_table(data.X), n_states=2)
    known = rivals()
    own = (
        "latenttree",
        "Chow-Liu",
        "neighbour joining",
        "recursive grouping",
        "CLRG",
        "CLNJ",
        "CLRG-EM",
    )
    for name in own:
        assert known[name].available()
        answer = known[name].fit(task)
        assert answer.tree is not None
        assert answer.tree.observed_names == task.table.names
        assert robinson_foulds(answer.tree, data.tree, normalized=True) < 1
    assert answer.log_likelihood is not None
    whole = answer.more["log_likelihood_of_training"]
    # the sum over rows, not over different rows times their number
    assert answer.log_likelihood(task.table).sum() == pytest.approx(whole, rel=1e-9)


def test_unknown_rivals_are_refused() -> None:
    with pytest.raises(DataError, match="no rival is called 'nobody'"):
        rival("nobody")
