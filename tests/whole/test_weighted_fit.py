"""A sample of weight w counts as w samples: in the tree, its parameters and its scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from tests.reference.kinds import CASES, N, frame, parameters, rows_of, three_states

import latenttree as lt
from latenttree.evaluation.datasets import make_latent_tree


def learn(X: Any, weights: Any = None, **options: Any) -> lt.LatentTree:
    settings = {"random_state": 0, "n_jobs": 1} | options
    return lt.LatentTree(**settings).fit(X, sample_weight=weights)


def check_same(one: lt.LatentTree, other: lt.LatentTree, atol: float = 1e-6) -> None:
    assert one.tree_.same_topology(other.tree_)
    # sums in another order round differently: a few parts in 1e7 of float32 moments
    np.testing.assert_allclose(one.tree_.lengths, other.tree_.lengths, atol=1e-5)
    for x, y in zip(
        (one.diagnostics_.support, one.diagnostics_.standard_errors),
        (other.diagnostics_.support, other.diagnostics_.standard_errors),
        strict=True,
    ):
        np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-4)
    for x, y in zip(parameters(one.model_), parameters(other.model_), strict=True):
        np.testing.assert_allclose(x, y, rtol=atol, atol=atol)


@pytest.mark.parametrize("case", CASES)
def test_integer_weights_are_repeated_rows(case: str) -> None:
    X, options = CASES[case]()
    weights = np.random.default_rng(1).integers(0, 4, N)
    again = rows_of(X, np.repeat(np.arange(N), weights))
    one, other = learn(X, weights, **options), learn(again, **options)
    check_same(one, other)
    for ask in ("score", "bic", "aic"):
        weighted = getattr(one, ask)(X, sample_weight=weights)
        assert weighted == pytest.approx(getattr(other, ask)(again), rel=1e-6)
    np.testing.assert_allclose(
        one.diagnostics_.effective_samples, other.diagnostics_.effective_samples, rtol=1e-4
    )


@pytest.mark.slow
@pytest.mark.parametrize("case", ["three_states", "gaps", "frame", "gaussian_blocks"])
def test_large_weights(case: str) -> None:
    """Some 24,000 samples in 1,200 rows: subspaces, tails and errors come from a part of them."""
    X, options = CASES[case]()
    weights = np.random.default_rng(1).integers(0, 41, N)
    again = rows_of(X, np.repeat(np.arange(N), weights))
    options = options | {"tol": 1e-11}  # the start is from other samples
    check_same(learn(X, weights, **options), learn(again, **options), 2e-5)


@pytest.mark.parametrize("case", ["categories", "sparse_binary", "frame", "gaussian_tree"])
def test_rows_of_weight_zero_are_absent(case: str) -> None:
    """To the last bit: they are left out before anything is done."""
    X, options = CASES[case]()
    weights = np.random.default_rng(2).integers(0, 2, N)
    one = learn(X, weights, **options)
    other = learn(rows_of(X, np.flatnonzero(weights)), **options)
    assert one.tree_ == other.tree_
    for x, y in zip(parameters(one.model_), parameters(other.model_), strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("case", ["categories", "frame"])
def test_weights_of_one_are_no_weights(case: str) -> None:
    X, options = CASES[case]()
    one, other = learn(X, np.ones(N), **options), learn(X, **options)
    assert one.tree_ == other.tree_
    for x, y in zip(parameters(one.model_), parameters(other.model_), strict=True):
        np.testing.assert_array_equal(x, y)


def test_weights_that_are_no_integers() -> None:
    """Samples drawn with weights that undo a selection: the tree and its frequencies are those of
    the whole. 20,000 samples, of which those with x0 = 1 are kept half of the time."""
    data = make_latent_tree(9, n_samples=20_000, edge_length=0.4, random_state=0)
    rng = np.random.default_rng(0)
    keep = (data.X[:, 0] == 0) | (rng.random(len(data.X)) < 0.5)
    X = data.X[keep]
    model = learn(X, np.where(X[:, 0] == 1, 2.0, 1.0) * 0.75)
    assert model.tree_.same_topology(data.tree)
    # standard errors of frequencies below 0.005: five of them
    for v in range(9):
        np.testing.assert_allclose(model.marginal(v), data.marginals[v], atol=0.025)
    without = learn(X)
    assert abs(without.marginal(0)[1] - data.marginals[0][1]) > 0.05


@pytest.mark.parametrize("kind", ["numbers", "groups", "categories"])
def test_copies_are_found_by_their_weight(kind: str) -> None:
    """A copy counts as one where values have enough samples, however few the rows."""
    X, options = CASES[kind]()
    if kind == "groups":
        X = sparse.csr_array(sparse.hstack([X, X[:, :6]]))
        options["groups"] = [*options["groups"], *["copy"] * 6]
    else:
        X = np.column_stack([X, X[:, 0]])
    weights = np.random.default_rng(3).integers(0, 4, N)
    again = rows_of(X, np.repeat(np.arange(N), weights))
    one, other = learn(X, weights, **options), learn(again, **options)
    assert one.diagnostics_.n_duplicates == other.diagnostics_.n_duplicates == 1
    check_same(one, other)


def test_states_are_counted_by_weight() -> None:
    X, _ = three_states()
    weights = np.random.default_rng(1).integers(0, 4, N)
    one = learn(X, weights, n_states="auto")
    other = learn(rows_of(X, np.repeat(np.arange(N), weights)), n_states="auto")
    assert one.diagnostics_.n_states == other.diagnostics_.n_states
    np.testing.assert_allclose(
        one.diagnostics_.n_states_evidence, other.diagnostics_.n_states_evidence, atol=1e-5
    )


@pytest.mark.parametrize("refine", ["em", None])
def test_without_refinement_and_without_search(refine: Any) -> None:
    X, options = frame()
    weights = np.random.default_rng(1).integers(0, 4, N)
    options |= {"refine": refine, "search": False}
    again = rows_of(X, np.repeat(np.arange(N), weights))
    check_same(learn(X, weights, **options), learn(again, **options))
