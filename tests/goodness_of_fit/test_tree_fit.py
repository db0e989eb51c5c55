"""Data from a tree fit it, data from crossed factors do not, and files keep what was found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import latenttree as lt
from latenttree.data import as_table
from latenttree.evaluation.datasets import make_latent_tree
from latenttree.goodness_of_fit import TreeFit
from latenttree.goodness_of_fit.nodes import n_correlation_parameters, nearest_by_branch
from latenttree.goodness_of_fit.observed import pair_correlations
from latenttree.goodness_of_fit.scores import Scores, score_of
from latenttree.goodness_of_fit.stage import tree_fit
from latenttree.tree import Tree


def crossed_factors(n: int = 2000, seed: int = 0) -> Any:
    """16 numbers, each the sum of one of four row factors, one of four column factors, and noise:
    no tree has these correlations."""
    rng = np.random.default_rng(seed)
    rows, columns = rng.standard_normal((2, n, 4, 1))
    both = rows + columns.swapaxes(1, 2)
    return (both + 0.7 * rng.standard_normal((n, 4, 4))).reshape(n, 16)


@pytest.mark.parametrize(
    ("family", "n_states"),
    [("binary", 2), ("gaussian", 2), ("poisson", 2), ("categorical", 3), ("multinomial", 2)],
)
def test_data_drawn_from_a_tree(family: str, n_states: int) -> None:
    """The true model on its own data: 20 seeds. Shares have a deviation of about 0.01, and excess
    one of about 2, so that a bound is broken by chance in fewer than 1 of 1,000 runs."""
    found = []
    for seed in range(20):
        data = make_latent_tree(12, n_states, family=family, n_samples=2000, random_state=seed)
        table = as_table(data.X, family="auto" if family == "categorical" else family)
        fit = tree_fit(data.model, table)
        assert fit is not None
        assert not fit.poor
        found.append((fit.explained, 0.0 if np.isnan(fit.rmsea) else fit.rmsea))
    explained, rmsea = np.array(found).T
    assert abs(explained.mean() - 1) < 0.03
    assert explained.min() > 0.9
    assert rmsea.mean() < 0.02


@pytest.mark.parametrize("hidden", ["gaussian", "categorical"])
def test_crossed_factors_are_no_tree(hidden: Any) -> None:
    n_states = 1 if hidden == "gaussian" else 2
    model = lt.LatentTree(n_states, hidden=hidden, random_state=0).fit(crossed_factors())
    fit = model.diagnostics_.fit
    assert fit is not None
    assert fit.poor
    assert fit.explained < 0.9
    assert fit.cfi < 0.9
    assert fit.rmsea > 0.08
    assert abs(fit.worst[0].z) > 4
    assert fit.node_explained.shape == (model.tree_.n_hidden,)
    assert sum("poor picture" in message for message in model.diagnostics_.messages) == 1


def test_a_tree_fits_without_a_sentence(tmp_path: Path) -> None:
    data = make_latent_tree(12, 2, family="binary", n_samples=2000, random_state=1)
    model = lt.LatentTree(2, random_state=0).fit(data.X)
    fit = model.diagnostics_.fit
    assert fit is not None
    assert fit.explained > 0.95
    assert not any("poor" in message for message in model.diagnostics_.messages)
    model.save(tmp_path / "m.ltree")
    again = lt.load(tmp_path / "m.ltree").diagnostics_.fit
    assert again is not None
    assert str(again) == str(fit)
    np.testing.assert_array_equal(again.node_explained, fit.node_explained)
    assert again.worst == fit.worst


def test_independent_columns_have_nothing_to_explain() -> None:
    X = np.random.default_rng(0).integers(0, 2, (500, 6))
    fit = lt.LatentTree(2, random_state=0).fit(X).diagnostics_.fit
    assert fit is not None
    assert np.isnan(fit.explained)
    assert not fit.poor
    assert "no dependence" in str(fit)


@pytest.mark.parametrize("family", ["ordinal", "gaussian"])
@pytest.mark.parametrize("n_values", [2, 4])
def test_correlations_by_available_cases_and_weights(family: str, n_values: int) -> None:
    import pandas as pd

    rng = np.random.default_rng(0)
    data = make_latent_tree(6, 2, n_values, n_samples=400, random_state=0)
    X = pd.DataFrame(np.asarray(data.X, dtype=float))
    X = X.where(rng.random(X.shape) > 0.2)
    weights = rng.integers(1, 4, len(X)).astype(float)
    model = lt.LatentTree(2, family=family, random_state=0).fit(X, sample_weight=weights).model_
    table = as_table(X, family=family, sample_weight=weights)
    scores = [score_of(model, family, v) for v in range(6)]
    found = pair_correlations(table, Scores(tuple(s for s in scores if s)), 1)
    expected = X.loc[X.index.repeat(weights.astype(int))].corr().to_numpy()
    upper = np.triu_indices(6, 1)
    # single precision of sums over blocks
    np.testing.assert_allclose(found.correlation[upper], expected[upper], atol=1e-5)


@pytest.mark.parametrize("n_values", [2, 5])
def test_variances_are_those_of_resamples(n_values: int) -> None:
    """400 samples of 500: a variance over them is 7% off; the largest of 15 stays within 40%."""
    data = make_latent_tree(6, 2, n_values, n_samples=200_000, random_state=0)
    scores = Scores(tuple(s for v in range(6) if (s := score_of(data.model, "ordinal", v))))
    draws = [
        pair_correlations(as_table(np.asarray(data.X)[i::400], family="ordinal"), scores, 1)
        for i in range(400)
    ]
    upper = np.triu_indices(6, 1)
    spread = np.var([draw.correlation[upper] for draw in draws], axis=0)
    stated = np.mean([draw.variance[upper] for draw in draws], axis=0)
    np.testing.assert_allclose(stated / spread, 1, atol=0.4)


#   0   1 2   3
#    \ /   \ /
#     5 --- 6 --- 4
def small_tree() -> Tree:
    edges = [(0, 5), (1, 5), (2, 6), (3, 6), (4, 6), (5, 6)]
    return Tree(("a", "b", "c", "d", "e", "h0", "h1"), 5, np.array(edges), np.ones(6))


def test_parameters_are_the_edges_of_the_tree_of_the_variables() -> None:
    tree, one = small_tree(), np.ones(7, dtype=np.int64)
    assert n_correlation_parameters(tree, dict.fromkeys(range(5), 1), one) == 6
    assert n_correlation_parameters(tree, dict.fromkeys([0, 1, 2], 1), one) == 3
    assert n_correlation_parameters(tree, dict.fromkeys([0, 2], 1), one) == 1
    rich = n_correlation_parameters(tree, dict.fromkeys(range(5), 1), 63 * one)
    assert 6 <= rich <= 15


#  0 1 2     3 4 5
#   \|/       \|/
#    9 -- 12 -- 10
#          |
#         11
#         /|\
#        6 7 8
@pytest.mark.parametrize("wide", [1, 3, 63])
def test_parameters_of_nodes_with_many_and_few_states(wide: int) -> None:
    """A node of many states between nodes of two: it shows no more than these pass on."""
    leaves = [(v, 9 + v // 3) for v in range(9)]
    edges = np.array([*leaves, (9, 12), (10, 12), (11, 12)])
    tree = Tree((*"abcdefghi", "h0", "h1", "h2", "h3"), 9, edges, np.ones(12))
    directions = np.array([1] * 12 + [wide])
    found = n_correlation_parameters(tree, dict.fromkeys(range(9), 1), directions)
    assert found == (12 if wide == 1 else 14)  # 9 + 3 edges; then 9 + 3 x 2 less one rotation


def test_outliers_are_no_noise() -> None:
    """Columns of a tree with rare jumps of 20 standard deviations in single cells: a jump makes the
    correlations of its column smaller, all alike, and the variances of correlations stay those of
    the columns without jumps. One sample in 300 has a jump, of a random column."""
    rng = np.random.default_rng(0)
    data = make_latent_tree(8, 1, family="gaussian", hidden="gaussian", n_samples=3000)
    X = np.asarray(data.X, dtype=float)
    jumps = X.copy()
    rows = rng.choice(len(X), len(X) // 300, replace=False)
    jumps[rows, rng.integers(0, 8, len(rows))] += 20 * X.std()
    found = []
    for values in (X, jumps):
        parts = [score_of(data.model, "gaussian", v) for v in range(8)]
        table = as_table(values, family="gaussian")
        found.append(pair_correlations(table, Scores(tuple(s for s in parts if s)), 1).variance)
    upper = np.triu_indices(8, 1)
    ratio = found[1][upper] / found[0][upper]
    assert 0.7 < np.median(ratio) < 1.5


@pytest.mark.parametrize("hidden", ["categorical", "gaussian"])
def test_vectors_that_are_independent(hidden: Any) -> None:
    """Blocks without dependence have means that differ in no direction; each still has a score."""
    blocks = [np.random.default_rng(i).normal(size=(300, 2)) for i in range(3)]
    model = lt.LatentTree(1 + (hidden == "categorical"), hidden=hidden, random_state=0).fit(blocks)
    report = model.diagnostics_
    assert report.n_components == 3
    assert report.independent == [*model.tree_.observed_names]
    assert report.fit is not None
    assert np.isnan(report.fit.explained)


def test_nearest_variables_of_each_branch() -> None:
    near = nearest_by_branch(small_tree(), np.array([0, 2, 3]))
    assert sorted(near[0]) in ([0, 2], [0, 3])
    assert sorted(near[1]) == [0, 2, 3]


def test_a_damaged_record_is_left_out() -> None:
    record = TreeFit(0.5).to_record()
    assert TreeFit.restored(record | {"worst": [1]}) is None
    assert TreeFit.restored("nothing") is None
    restored = TreeFit.restored({"explained": 0.5})
    assert restored is not None
    assert restored.explained == 0.5
