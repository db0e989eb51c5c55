"""Queries of Gaussian trees, against the joint normal distribution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from tests.queries.categorical import Fitted
from tests.queries.mixed import (
    Floats,
    close,
)

import latenttree.queries.evidence as evidence_module
from latenttree.data import DataError, Schema, as_table
from latenttree.model.gaussian import GaussianTreeModel
from latenttree.tree import Tree

GAUSS = pd.DataFrame(
    {
        "a": np.random.default_rng(0).normal(size=50),
        "b": np.random.default_rng(1).integers(0, 40, 50),
        "c": pd.Categorical.from_codes(np.arange(50) % 3, ["low", "mid", "high"], ordered=True),
        "d": np.random.default_rng(2).normal(size=50) * 100,
    }
)


def gaussian_model(X: Any, dims: tuple[int, ...], k: int, seed: int = 0, **options: Any) -> Fitted:
    """A star over the variables of X, with random loadings and noise."""
    rng = np.random.default_rng(seed)
    table = as_table(X, scores=True, **options)
    p = len(dims)
    tree = Tree.build(table.names, [(v, p) for v in range(p)], np.ones(p))
    scale = [rng.uniform(0.5, 3.0, d) for d in dims]
    estimator = Fitted()
    estimator.schema_ = Schema.of(X, table, groups=options.get("groups"))
    estimator.model_ = GaussianTreeModel(
        tree,
        p,
        (*[rng.normal(size=d) + 1 for d in dims], np.zeros(k)),
        (*[rng.normal(size=(d, k)) for d in dims], np.empty((k, 0))),
        (*[np.diag(s) if len(s) > 1 else s[:, None] for s in scale], np.eye(k)),
    )
    estimator.n_features_in_ = estimator.schema_.n_features
    return estimator


def conditioned(model: GaussianTreeModel, X: Floats) -> tuple[Floats, Floats, list[Any]]:
    """Log-density of what is known, mean of all coordinates given it, and their covariance."""
    covariance, mean = model.covariance(), np.concatenate(model.means)
    wide = np.column_stack([X, np.full((len(X), len(mean) - X.shape[1]), np.nan)])
    logs, means, spreads = np.zeros(len(X)), wide.copy(), []
    for s, row in enumerate(wide):
        o, m = np.flatnonzero(~np.isnan(row)), np.flatnonzero(np.isnan(row))
        inner = covariance[np.ix_(o, o)]
        gain = np.linalg.solve(inner, covariance[np.ix_(o, m)]).T
        apart = row[o] - mean[o]
        logs[s] = -0.5 * (apart @ np.linalg.solve(inner, apart) + len(o) * np.log(2 * np.pi))
        logs[s] -= 0.5 * np.linalg.slogdet(inner)[1]
        means[s, m] = mean[m] + gain @ apart
        spreads.append(covariance[np.ix_(m, m)] - gain @ covariance[np.ix_(o, m)])
    return logs, means, spreads


def gaps_of(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.astype(object).where(np.random.default_rng(3).random(frame.shape) < 0.7, None)


@pytest.mark.parametrize("k", [1, 2])
def test_gaussian_trees_of_frames(k: int) -> None:
    model = gaussian_model(GAUSS, (1, 1, 1, 1), k)
    X = gaps_of(GAUSS)
    numbers = model.schema_.rows(X).arrays
    matrix = np.column_stack([numbers[v] for v in range(4)])
    logs, means, _ = conditioned(model.model_, matrix)
    np.testing.assert_allclose(model.transform(X), means[:, 4:], **close)
    np.testing.assert_allclose(model.predict(X), means[:, 4:], **close)
    np.testing.assert_allclose(model.score_samples(X), logs, rtol=1e-9, atol=1e-9)
    names = ["h0"] if k == 1 else ["h0[0]", "h0[1]"]
    assert model.get_feature_names_out().tolist() == names
    assert list(model.set_output(transform="pandas").transform(X).columns) == names
    m = model.model_.n_parameters
    weights = np.arange(50.0)
    expected = -2 * weights @ logs + m * np.log(weights.sum())
    assert model.bic(X, sample_weight=weights) == pytest.approx(expected)
    assert model.aic(X) == pytest.approx(-2 * logs.sum() + 2 * m)
    assert model.score(X) == pytest.approx(logs.mean())
    result = model.impute(X)
    assert (result.dtypes == GAUSS.dtypes).all()
    np.testing.assert_allclose(result["a"], means[:, 0], **close)
    np.testing.assert_allclose(result["b"], np.rint(means[:, 1]), **close)
    ranks = np.clip(np.rint(means[:, 2]), 0, 2).astype(int)
    assert result["c"].cat.codes.tolist() == ranks.tolist()
    known = X.notna().to_numpy()
    assert (result.to_numpy(dtype=object)[known] == X.to_numpy()[known]).all()
    record = {"a": 0.5, "c": "mid"}
    row = pd.DataFrame({"a": [0.5], "b": [None], "c": ["mid"], "d": [None]})
    np.testing.assert_allclose(model.transform(record), model.transform(row), **close)
    np.testing.assert_array_equal(model.marginal("a"), model.model_.means[0])
    np.testing.assert_array_equal(model.conditional("a", "h0"), model.model_.loadings[0])


def test_draws_of_gaussian_trees() -> None:
    n = 4000
    X = {"u": np.tile([0.3, np.nan], (n, 1)), "v": np.full(n, np.nan), "w": np.full(n, 1.5)}
    rng = np.random.default_rng(0)
    start = {"u": rng.normal(size=(50, 2)), "v": rng.normal(size=50), "w": rng.normal(size=50)}
    model = gaussian_model(start, (2, 1, 1), 1)
    result = model.impute(X, "sample", random_state=0)
    matrix = np.column_stack([X["u"], X["v"], X["w"]])[:1]
    _, means, spreads = conditioned(model.model_, matrix)
    drawn = np.column_stack([result["u"][:, 1], result["v"]])
    spread = spreads[0][:2, :2]
    # 2 means and 3 covariances within 5 standard errors: fails with probability below 1e-5
    error = np.sqrt(np.diag(spread) / n)
    assert (np.abs(drawn.mean(axis=0) - means[0, 1:3]) <= 5 * error).all()
    scale = np.sqrt((spread**2 + np.outer(np.diag(spread), np.diag(spread))) / n)
    assert (np.abs(np.cov(drawn.T) - spread) <= 5 * scale).all()
    np.testing.assert_array_equal(result["w"], X["w"])
    assert (result["u"][:, 0] == 0.3).all()
    drawn, hidden = model.sample(n, random_state=1)
    assert list(drawn) == ["u", "v", "w"]
    assert drawn["u"].shape == (n, 2)
    assert hidden.shape == (n, 1)
    error = np.sqrt(np.diag(model.model_.marginal_covariance("u")) / n)
    assert (np.abs(drawn["u"].mean(axis=0) - model.marginal("u")) <= 5 * error).all()
    again, _ = model.sample(n, random_state=1)
    np.testing.assert_array_equal(again["u"], drawn["u"])


def test_gaussian_trees_have_no_states() -> None:
    model = gaussian_model(GAUSS, (1, 1, 1, 1), 1)
    message = "node of a Gaussian tree, which has no states"
    for ask in (
        lambda: model.predict_proba(GAUSS),
        lambda: model.predict_proba(GAUSS, "a"),
        lambda: model.classes_of("h0"),
        lambda: model.classes_of("a"),
    ):
        with pytest.raises(DataError, match=message):
            ask()
    with pytest.raises(DataError, match="for 'h0'; give a number"):
        model.transform({"h0": {0: 1.0}})
    with pytest.raises(DataError, match="no labels to weigh"):
        model.transform({"a": {0: 1.0}})


def test_gaussian_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    model = gaussian_model(GAUSS, (1, 1, 1, 1), 2)
    X = pd.concat([gaps_of(GAUSS)] * 4, ignore_index=True)
    whole = model.transform(X), model.score_samples(X)
    monkeypatch.setattr(evidence_module, "CHUNK_BYTES", 1)
    np.testing.assert_allclose(model.transform(X), whole[0], **close)
    np.testing.assert_allclose(model.score_samples(X), whole[1], **close)


def test_grouped_gaussian_trees() -> None:
    X = np.random.default_rng(0).normal(size=(50, 5))
    groups = {"u": [3, 0], "v": [1], "w": [4, 2]}
    for data in (X, sparse.csr_array(X)):
        model = gaussian_model(data, (2, 1, 2), 1, groups=groups)
        order = [3, 0, 1, 4, 2]
        logs, means, _ = conditioned(model.model_, X[:, order])
        np.testing.assert_allclose(model.score_samples(data), logs, rtol=1e-9, atol=1e-12)
        gaps = X.copy()
        gaps[::3, 2] = np.nan
        logs, means, _ = conditioned(model.model_, gaps[:, order])
        filled = model.impute(sparse.csr_array(gaps) if sparse.issparse(data) else gaps)
        filled = filled.toarray() if sparse.issparse(data) else filled
        np.testing.assert_allclose(filled[:, order], means[:, :5], **close)
        assert type(model.sample(3)[0]) is type(data)


def test_gaussian_records_are_filled() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 4)), columns=list("abcd"))
    model = gaussian_model(frame, (1, 1, 1, 1), 1)
    found = model.impute({"a": 1.5})
    row = model.impute(frame[:1].assign(a=1.5, b=np.nan, c=np.nan, d=np.nan))
    np.testing.assert_allclose(list(found.values()), row.to_numpy()[0])


@pytest.mark.filterwarnings("error")
def test_numbers_that_are_far_out_do_not_warn() -> None:
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 4)), columns=list("abcd"))
    found = gaussian_model(frame, (1, 1, 1, 1), 1).score_samples(frame[:2].assign(a=1e300))
    assert (found < -1e100).all()
