"""The order of the rows changes nothing, nor does it matter whether a row comes w times or once
with weight w: all stages see one table, in the order of its content."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import sparse
from tests.reference.kinds import CASES, N, parameters, rows_of
from tests.reference.stages import fit_table

import latenttree as lt
from latenttree.data import as_table, read_table
from latenttree.data.content_order import in_content_order
from latenttree.data.streaming.scratch import map_of
from latenttree.evaluation.datasets import make_latent_tree
from latenttree.model.likelihood import total_log_likelihood
from latenttree.model.samples import InMemory
from latenttree.refinement.tree_em import MANY_SAMPLES
from latenttree.search.stage import tree_model

ROUNDED = ("gaussian_tree", "gaussian_blocks")
"""Kinds whose coordinates are divided by sums over the rows in the order in which they came: what
that rounds off, some parts in 1e16, is all that may differ."""


def learn(X: Any, weights: Any = None, **options: Any) -> lt.LatentTree:
    settings = {"random_state": 0, "n_jobs": 1} | options
    return lt.LatentTree(**settings).fit(X, sample_weight=weights)


def shuffled(n: int, seed: int = 0) -> NDArray[np.int64]:
    return np.random.default_rng(seed).permutation(n)


def check_same(one: lt.LatentTree, other: lt.LatentTree, exact: bool = True) -> None:
    assert one.tree_.same_topology(other.tree_)
    if exact:
        assert one.tree_ == other.tree_
    check_same_parameters(one.model_, other.model_, exact)


def check_same_parameters(one: Any, other: Any, exact: bool = True) -> None:
    tolerance = 0.0 if exact else 1e-6  # of parameters after EM, whose start may round differently
    for x, y in zip(parameters(one), parameters(other), strict=True):
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


# ---- all kinds of data ------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_rows_in_another_order(case: str) -> None:
    X, options = CASES[case]()
    one, other = learn(X, **options), learn(rows_of(X, shuffled(N)), **options)
    check_same(one, other, case not in ROUNDED)


@pytest.mark.parametrize("case", CASES)
def test_weights_and_repetitions_in_another_order(case: str) -> None:
    X, options = CASES[case]()
    weights = np.random.default_rng(1).integers(0, 4, N)
    again = np.random.default_rng(2).permutation(np.repeat(np.arange(N), weights))
    order = shuffled(N, 3)
    one = learn(rows_of(X, order), weights[order], **options)
    check_same(one, learn(rows_of(X, again), **options), case not in ROUNDED)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(15))
def test_trees_that_are_hard_to_tell(seed: int) -> None:
    """Few samples: any part of them taken otherwise gives another tree in many cases."""
    options = {"n_observed": 10, "n_states": 2, "n_categories": 4, "edge_length": 0.5}
    X = make_latent_tree(**options, n_samples=250, random_state=seed).X
    one = learn(X, min_support=0.2)
    for order in (shuffled(250, seed), np.lexsort(X.T), np.arange(250)[::-1]):
        check_same(one, learn(X[order], min_support=0.2))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_three_states_that_are_hard_to_tell(seed: int, missing: float) -> None:
    options = {"n_observed": 9, "n_states": 3, "n_categories": 6, "missing": missing}
    X = make_latent_tree(**options, n_samples=400, random_state=seed).X
    one, other = (learn(x, n_states=3, min_support=0.2) for x in (X, X[shuffled(400)]))
    check_same(one, other)


def test_ordered_grades_and_labels() -> None:
    drawn = make_latent_tree(8, n_categories=4, n_samples=500, random_state=0).X
    levels = ["never", "seldom", "often", "always"]
    X = pd.DataFrame({f"q{i}": pd.Categorical.from_codes(x, levels) for i, x in enumerate(drawn.T)})
    for name in ("q0", "q1", "q2"):
        X[name] = X[name].cat.as_ordered()
    check_same(learn(X), learn(rows_of(X, shuffled(500))))


# ---- all options ------------------------------------------------------------------------

OPTIONS: dict[str, dict[str, Any]] = {
    "states are counted": {"n_states": "auto"},
    "held-out samples": {"validation_fraction": 0.2},
    "moments alone": {"refine": None},
    "no search": {"search": False},
    "most probable": {"tree": "most_probable"},
    "paper": {"sweeps": False, "distances": "pairwise", "hidden_features": False},
    "other seed": {"random_state": 17},
    "two threads": {"n_jobs": 2},
    "baseline": {"structure": "clrg"},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options(name: str) -> None:
    X, options = CASES["three_states"]()
    weights = np.random.default_rng(1).integers(0, 3, N)
    again = np.random.default_rng(2).permutation(np.repeat(np.arange(N), weights))
    options = options | OPTIONS[name]
    one = learn(X, weights, **options)
    check_same(one, learn(X[again], **options))
    order = shuffled(N)
    check_same(one, learn(X[order], weights[order], **options))


def test_no_random_state() -> None:
    """The sketch is drawn anew for each fit; from the same numbers it is the same model."""
    X, options = CASES["categories"]()
    state = [np.random.RandomState(5) for _ in range(2)]
    one = learn(X, random_state=state[0], **options)
    check_same(one, learn(X[shuffled(N)], random_state=state[1], **options))
    free = learn(X[shuffled(N)], random_state=None, **options)
    assert free.tree_.same_topology(one.tree_)


@pytest.mark.parametrize("fraction", [0.0, 0.3])
def test_few_different_rows(fraction: float) -> None:
    """32 different rows among 3,000: one of each, with a weight. Held out are some of the copies
    of a row, not all: what is learned from is like what it is judged by."""
    X = make_latent_tree(5, n_samples=3_000, edge_length=0.4, random_state=0).X
    different, counts = np.unique(X, axis=0, return_counts=True)
    inputs = (X, None), (X[shuffled(3_000)], None), (different, counts)
    fits = []
    for rows, weights in inputs:
        table = in_content_order(as_table(rows, sample_weight=weights), small=0)
        assert table.n_samples == 32
        fits.append(fit_table(table, validation_fraction=fraction))
    one, *others = fits
    assert one.fitted is not None
    for other in others:
        assert other.fitted is not None
        assert one.structure.tree == other.structure.tree
        check_same_parameters(one.fitted.model, other.fitted.model)
    # the same model from rows as from weights: other sums, and other samples are held out
    separate = learn(X, validation_fraction=fraction)
    score = total_log_likelihood(tree_model(one.fitted), InMemory([X])) / len(X)
    assert score == pytest.approx(separate.score(X), abs=2e-3 if fraction else 1e-6)


def test_fractions_of_a_sample() -> None:
    X, options = CASES["categories"]()
    weights = np.random.default_rng(0).uniform(0.2, 2.0, N)
    order = shuffled(N)
    check_same(learn(X, weights, **options), learn(X[order], weights[order], **options))


# ---- batches, files, distances ----------------------------------------------------------


@pytest.mark.parametrize("case", ["categories", "sparse_binary", "frame"])
def test_batches_in_another_order(case: str) -> None:
    X, options = CASES[case]()
    batchwise = lt.LatentTree(random_state=0, n_jobs=1, **options)
    for part in np.array_split(shuffled(N), 7):
        batchwise.partial_fit(rows_of(X, part))
    check_same(learn(X, **options), batchwise)


def test_batches_with_weights() -> None:
    X, options = CASES["categories"]()
    weights = np.random.default_rng(1).integers(1, 4, N)
    batchwise = lt.LatentTree(random_state=0, n_jobs=1, **options)
    for part in np.array_split(shuffled(N), 3):
        batchwise.partial_fit(X[part], sample_weight=weights[part])
    check_same(learn(np.repeat(X, weights, axis=0), **options), batchwise)


def test_files_beyond_memory(tmp_path: Any) -> None:
    drawn = make_latent_tree(9, n_categories=4, n_samples=20_000, random_state=0).X
    expected = learn(drawn)
    for order in (np.arange(len(drawn)), shuffled(len(drawn))):
        np.save(tmp_path / "rows.npy", drawn[order])
        table = read_table(tmp_path / "rows.npy", memory_limit="64KB")
        assert map_of(table.codes) is not None
        check_same(expected, learn(table))


def test_sparse_binary_files_beyond_memory(tmp_path: Any) -> None:
    drawn = sparse.csr_array(make_latent_tree(9, n_samples=20_000, random_state=0).X)
    expected = learn(drawn)
    sparse.save_npz(tmp_path / "rows.npz", drawn[shuffled(20_000)])
    table = read_table(tmp_path / "rows.npz", memory_limit="64KB")
    assert table.matrix is not None
    assert map_of(table.matrix.indices) is not None
    check_same(expected, learn(table))


@pytest.mark.parametrize("method", ["pooled", "pairwise"])
def test_distances(method: Any) -> None:
    X, _ = CASES["three_states"]()
    weights = np.random.default_rng(1).integers(1, 4, N)
    again = np.random.default_rng(2).permutation(np.repeat(np.arange(N), weights))
    options = {"method": method, "random_state": 0}
    one = lt.information_distances(X, 3, sample_weight=weights, **options)
    for x, y in zip(one, lt.information_distances(X[again], 3, **options), strict=True):
        np.testing.assert_array_equal(x, y)


def test_many_samples_are_refined_in_batches() -> None:
    """A pass over small batches comes before EM, from `MANY_SAMPLES` samples on."""
    X = make_latent_tree(9, n_categories=8, n_samples=MANY_SAMPLES, random_state=0).X
    assert in_content_order(as_table(X)).n_samples == MANY_SAMPLES
    check_same(learn(X, search=False), learn(X[shuffled(len(X))], search=False))
