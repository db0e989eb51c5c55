"""Items of scales against direct formulas, and loadings against samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from tests.tables.models import categories, mixture

import latenttree as lt
from latenttree.errors import DataError
from latenttree.tables.items import cronbach_alpha, mcdonald_omega, pair_covariance, scale_of


def answers(n: int = 3000, seed: int = 0) -> pd.DataFrame:
    """Two scales of four items of five levels, of correlated traits; one of each is reversed."""
    rng = np.random.default_rng(seed)
    trait = rng.multivariate_normal([0, 0], [[1, 0.3], [0.3, 1]], n)
    columns = {}
    for j in range(8):
        level = 0.8 * trait[:, j // 4] + 0.6 * rng.normal(size=n)
        level = -level if j % 4 == 3 else level
        columns[f"item{j}"] = np.digitize(level, [-1.2, -0.4, 0.4, 1.2]) + 1
    return pd.DataFrame(columns)


@pytest.fixture(scope="module")
def questionnaire() -> tuple[lt.LatentTree, pd.DataFrame]:
    X = answers()
    return lt.LatentTree(n_states=2, random_state=0, n_resamples=2).fit(X), X


def test_the_scale_of_complete_data_is_that_of_the_direct_formulas() -> None:
    X = answers(500).iloc[:, :4].to_numpy(dtype=float)
    found = scale_of(X, np.array([0.7, 0.6, 0.8, -0.7]))
    turned = X * [1, 1, 1, -1]
    assert found.turned.tolist() == [False, False, False, True]
    for i in range(4):
        rest = np.delete(turned, i, axis=1)
        direct = np.corrcoef(turned[:, i], rest.sum(axis=1))[0, 1]
        assert found.item_rest[i] == pytest.approx(direct, rel=1e-9)
        total = rest.sum(axis=1).var(ddof=1)
        alpha = 3 / 2 * (1 - rest.var(axis=0, ddof=1).sum() / total)
        assert found.alpha_without[i] == pytest.approx(alpha, rel=1e-9)
    np.testing.assert_allclose(found.deviation, X.std(axis=0, ddof=1), rtol=1e-9)
    np.testing.assert_allclose(found.mean, X.mean(axis=0), rtol=1e-12)
    assert not found.missing.any()


def test_covariances_of_pairs_are_those_of_pandas() -> None:
    rng = np.random.default_rng(0)
    X = answers(200).astype(float)
    X = X.mask(rng.random(X.shape) < 0.3)
    np.testing.assert_allclose(pair_covariance(X.to_numpy()), X.cov().to_numpy(), rtol=1e-9)


def test_alpha_and_omega_of_parallel_items_are_the_formula_of_spearman_and_brown() -> None:
    #  m items that correlate r each have reliability m r / (1 + (m - 1) r)
    m, r = 5, 0.4
    C = np.full((m, m), r) + (1 - r) * np.eye(m)
    expected = m * r / (1 + (m - 1) * r)
    assert cronbach_alpha(C) == pytest.approx(expected, rel=1e-12)
    assert mcdonald_omega(np.full(m, np.sqrt(r))) == pytest.approx(expected, rel=1e-12)
    assert np.isnan(cronbach_alpha(np.eye(1)))


def test_loadings_are_correlations_with_a_score_of_the_states() -> None:
    model = categories()
    X, hidden = model.sample(200_000, random_state=0)
    table = model.item_table(["colour", "ripe", "shop"], X.iloc[:1000], node="h1")
    code = {"colour": X["colour"] == "green", "ripe": X["ripe"], "shop": X["shop"]}
    for name, row in table.iterrows():
        r = np.corrcoef(np.asarray(code[name], dtype=float), hidden[:, 1])[0, 1]
        assert row["loading"] == pytest.approx(abs(r), abs=0.012)  # five standard errors


def test_a_questionnaire_is_read_as_scales(questionnaire: Any) -> None:
    model, X = questionnaire
    names = list(X.columns[:4])
    table = model.item_table(names, X)
    assert table.index.tolist() == names
    assert table["reversed"].sum() in (1, 3)
    assert (table["loading"] > 0.5).all()
    assert (table["item_rest"] > 0.5).all()
    reliable = model.reliability(X, model.variable_groups(2, signed=False))
    assert reliable["items"].tolist() == [4, 4]
    assert (reliable[["alpha", "standardized_alpha", "omega"]] > 0.75).all().all()
    around = model.reliability(X)
    assert set(around.index) <= set(model.tree_.hidden_names)
    assert (around.index == around["node"]).all()


def test_correlations_of_a_model_of_states_are_those_of_its_samples(questionnaire: Any) -> None:
    model, _ = questionnaire
    drawn, _ = model.sample(200_000, random_state=0)
    np.testing.assert_allclose(model.covariance_, drawn.cov(), atol=0.03)  # five errors
    np.testing.assert_allclose(model.correlation_, drawn.corr(), atol=0.012)
    assert model.correlation_.index.tolist() == list(drawn.columns)


def test_tables_of_a_gaussian_tree() -> None:
    X = load_wine(as_frame=True).data
    model = lt.LatentTree(hidden="gaussian", random_state=0, support="model").fit(X)
    covariance = model.covariance_
    assert covariance.index.tolist() == covariance.columns.tolist() == list(X.columns)
    np.testing.assert_allclose(covariance, model.model_.covariance(list(range(13))), rtol=1e-12)
    np.testing.assert_allclose(np.diag(model.correlation_), 1.0)
    h = model.tree_.hidden_names[0]
    near = [model.tree_.names[v] for v in model.tree_.neighbors(h).tolist() if v < 13]
    table = model.item_table(near, X, node=h)
    i = model.tree_.index(h)
    joint = model.model_.covariance([*near, i])
    unit = np.sqrt(np.diag(joint))
    direct = np.abs(joint[-1, :-1] / unit[:-1] / unit[-1])
    np.testing.assert_allclose(table["loading"], direct, rtol=1e-9)
    given = model.conditional_table("alcohol", "proline")
    assert given.columns.tolist() == ["intercept", "proline", "sd"]
    joint = model.model_.covariance(["alcohol", "proline"])
    assert given["proline"]["alcohol"] == pytest.approx(joint[0, 1] / joint[1, 1], rel=1e-9)
    left = joint[0, 0] - joint[0, 1] ** 2 / joint[1, 1]
    assert given["sd"]["alcohol"] == pytest.approx(np.sqrt(left), rel=1e-9)


def test_what_is_no_scale_is_refused() -> None:
    model = categories()
    X = model.sample(10, random_state=0)[0]
    with pytest.raises(DataError, match="'fruit' is of family 'categorical' and no single number"):
        model.item_table(["fruit", "ripe"], X)
    with pytest.raises(DataError, match="1 items are no scale"):
        model.item_table(["ripe"], X)
    with pytest.raises(DataError, match="'ripe' is not hidden"):
        model.item_table(["ripe", "shop"], X, node="ripe")
    with pytest.raises(DataError, match="groups is 3"):
        model.reliability(X, 3)
    with pytest.raises(AttributeError, match="no single number"):
        _ = mixture().covariance_
    assert "covariance_" not in dir(mixture())
