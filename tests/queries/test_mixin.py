"""`QueryMixin`: queries in the words of the data, against the whole joint distribution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import NotFittedError
from tests.queries.categorical import (
    BIG,
    FRAME,
    NAMES,
    Fitted,
    answer,
    close,
    fitted,
    gapped,
)
from tests.reference.enumeration import joint

import latenttree.queries.evidence as evidence_module
from latenttree.data import DataError, Schema, as_table
from latenttree.model.inference import Evidence
from latenttree.model.tree_model import TreeModel
from latenttree.tree import Tree


@pytest.fixture
def model() -> Fitted:
    return fitted()


@pytest.mark.parametrize("seed", range(10))
def test_transform_is_the_posterior_of_the_hidden_nodes(seed: int) -> None:
    model, X = fitted(seed=seed), gapped(BIG, seed)
    codes = model.schema_.encode(X)
    expected = np.hstack([answer(model.model_, codes, v) for v in (5, 6)])
    found = model.transform(X)
    assert found.shape == (200, 4)
    np.testing.assert_allclose(found, expected, **close)
    np.testing.assert_allclose(model.predict_proba(X), expected, **close)
    states = np.column_stack([expected[:, :2].argmax(1), expected[:, 2:].argmax(1)])
    np.testing.assert_array_equal(model.predict(X), states)


@pytest.mark.parametrize("seed", range(10))
def test_joint_prediction_is_the_best_of_all_assignments(seed: int) -> None:
    model, X = fitted(seed=seed), gapped(BIG, seed)
    codes = model.schema_.encode(X)
    for s, states in enumerate(model.predict(X, joint=True)):
        whole = joint(model.model_, Evidence(codes), s)
        best = np.unravel_index(whole.argmax(), whole.shape)
        assert tuple(states) == tuple(int(b) for b in best[5:])


def test_names_and_containers_of_transform(model: Fitted) -> None:
    names = ["h0=0", "h0=1", "h1=0", "h1=1"]
    assert model.get_feature_names_out().tolist() == names
    assert model.get_feature_names_out(NAMES).tolist() == names
    with pytest.raises(ValueError, match="input_features should have length equal"):
        model.get_feature_names_out(["a"])
    with pytest.raises(ValueError, match="input_features is not equal to feature_names_in_"):
        model.get_feature_names_out(list("abcde"))
    plain = model.transform(FRAME)
    X = FRAME.set_index(np.array([7, 5, 3, 1]))
    frame = model.set_output(transform="pandas").transform(X)
    assert list(frame.columns) == names
    assert list(frame.index) == [7, 5, 3, 1]
    np.testing.assert_array_equal(frame.to_numpy(), plain)
    assert isinstance(model.set_output(transform="polars").transform(X), pl.DataFrame)
    assert isinstance(model.set_output(transform="default").fit_transform(X), np.ndarray)


@pytest.mark.parametrize("query", [*NAMES, "h0", "h1", 2, np.int64(6)])
def test_one_query(query: Any) -> None:
    model, X = fitted(), gapped(BIG)
    v = model.model_.tree.index(query)
    codes = model.schema_.encode(X)
    if v < 5:
        codes[:, v] = -1  # what is asked is not used
    found = model.predict_proba(X, query)
    np.testing.assert_allclose(found, answer(model.model_, codes, v), **close)
    assert found.shape[1] == len(model.classes_of(query))


def test_several_queries_hide_each_other(model: Fitted) -> None:
    codes = model.schema_.encode(BIG)
    codes[:, [0, 3]] = -1
    found = model.predict_proba(BIG, ["ripe", "h0", "fruit"])
    assert list(found) == ["ripe", "h0", "fruit"]
    for name, v in (("ripe", 3), ("h0", 5), ("fruit", 0)):
        np.testing.assert_allclose(found[name], answer(model.model_, codes, v), **close)
    assert list(model.predict_proba(BIG, ["ripe"])) == ["ripe"]
    # absent, unknown or garbage: a queried column is not read
    for X in (BIG.drop(columns=["ripe", "fruit"]), BIG.assign(ripe=7, fruit=None)):
        again = model.predict_proba(X, ["ripe", "h0", "fruit"])
        np.testing.assert_array_equal(again["ripe"], found["ripe"])


def test_evidence_is_restricted(model: Fitted) -> None:
    codes = np.full((200, 5), -1)
    codes[:, [1, 4]] = model.schema_.encode(BIG)[:, [1, 4]]
    expected = answer(model.model_, codes, 0)
    for X in (BIG, BIG[["shop", "colour"]], BIG.assign(size=-5)):
        found = model.predict_proba(X, "fruit", evidence=["colour", "shop"])
        np.testing.assert_allclose(found, expected, **close)
    both = model.predict_proba(BIG, evidence=["colour", "shop"])
    np.testing.assert_allclose(both[:, 2:], answer(model.model_, codes, 6), **close)
    # a node that is asked is not evidence, even where it is named
    one = model.predict_proba(BIG, "fruit", evidence=["colour", "shop", "fruit"])
    np.testing.assert_allclose(one, expected, **close)


def test_no_evidence_gives_marginals_when_that_is_said(model: Fitted) -> None:
    expected = model.marginal("fruit")
    np.testing.assert_allclose(model.model_.marginals[0], expected)
    for X in (None, {}):
        found = model.predict_proba(X, "fruit", evidence=[])
        np.testing.assert_allclose(found, expected[None], **close)
        with pytest.raises(DataError, match="there is no evidence") as caught:
            model.predict_proba(X, "fruit")
        assert caught.value.value == X
        assert "use marginal(node)" in caught.value.remedy
        with pytest.raises(DataError, match="there is no evidence"):
            model.transform(X)
    found = model.predict_proba(BIG, "fruit", evidence=[])
    np.testing.assert_allclose(found, np.tile(expected, (200, 1)), **close)


def test_classes_are_in_the_order_of_the_columns(model: Fitted) -> None:
    assert model.classes_of("fruit").tolist() == ["apple", "fig", "pear"]
    assert model.classes_of("size").tolist() == [10, 20, 30]
    assert model.classes_of("h1").tolist() == [0, 1]


def test_edges_and_marginals(model: Fitted) -> None:
    table = model.conditional("h1", "h0")
    np.testing.assert_allclose(table @ model.marginal("h0"), model.marginal("h1"), **close)
    np.testing.assert_array_equal(table, model.conditional(6, 5))
    message = r"'fruit' and 'ripe' are not the ends of an edge; .* predict_proba\(\{'ripe': label\}"
    with pytest.raises(DataError, match=message):
        model.conditional("fruit", "ripe")


def test_scores(model: Fitted) -> None:
    X = gapped(BIG)
    codes = model.schema_.encode(X)
    logs = np.log([joint(model.model_, Evidence(codes), s).sum() for s in range(200)])
    np.testing.assert_allclose(model.score_samples(X), logs, **close)
    assert model.score(X) == pytest.approx(logs.mean(), abs=1e-10)
    assert model.score(X, y=np.zeros(200)) == model.score(X)
    m = model.model_.n_parameters
    assert model.aic(X) == pytest.approx(-2 * logs.sum() + 2 * m)
    assert model.bic(X) == pytest.approx(-2 * logs.sum() + m * np.log(200))


def test_impossible_evidence_names_its_row() -> None:
    model = fitted()
    tables = list(model.model_.cpts)
    tables[4] = np.array([[1.0, 0.0], [0.0, 1.0]])  # shop shows h1
    tables[3] = np.array([[1.0, 0.0], [0.0, 1.0]])  # ripe shows it too
    model.model_ = TreeModel(model.model_.tree, 5, tuple(tables))
    X = BIG.assign(ripe=True, shop=3)
    X.loc[[17, 40], "ripe"] = False
    logs = model.score_samples(X)
    assert np.flatnonzero(np.isneginf(logs)).tolist() == [17, 40]
    X.loc[3, "size"] = np.nan  # so that there is something to impute
    X.loc[17, "size"] = np.nan
    asks: list[Any] = [
        model.transform,
        model.predict,
        lambda X: model.predict(X, joint=True),
        lambda X: model.predict_proba(X, ["fruit"]),
        model.impute,
        lambda X: model.impute(X, "sample"),
    ]
    for ask in asks:
        with pytest.raises(DataError, match=r"in row 17( .and 1 more.)? has probability zero"):
            ask(X)
    with pytest.raises(DataError, match="in row 0 has probability zero"):
        model.predict_proba({"h1": {0: 0.0, 1: 0.0}}, "fruit")


def test_samples_look_like_the_data(model: Fitted) -> None:
    X, y = model.sample(3000, random_state=1)
    assert isinstance(X, pd.DataFrame)
    assert (X.dtypes == FRAME.dtypes).all()
    assert y.shape == (3000, 2)
    for name in NAMES:
        share = X[name].value_counts(normalize=True).reindex(model.classes_of(name), fill_value=0)
        # 12 shares, each within 5 standard errors: fails with probability below 1e-5
        expected = model.marginal(name)
        error = np.sqrt(expected * (1 - expected) / 3000)
        assert (np.abs(share.to_numpy() - expected) <= 5 * error).all()
    again, states = model.sample(3000, random_state=1)
    pd.testing.assert_frame_equal(again, X)
    np.testing.assert_array_equal(states, y)
    first, _ = model.sample(5)
    pd.testing.assert_frame_equal(first, model.sample(5, random_state=0)[0])
    for state in (np.random.default_rng(0), np.random.RandomState(0)):
        assert len(model.sample(2, random_state=state)[0]) == 2
    for wrong in (0, -1, 2.5, "3"):
        with pytest.raises(DataError, match="pass a whole number from 1 on") as caught:
            model.sample(wrong)
        assert (caught.value.place.option, caught.value.value) == ("n_samples", wrong)
    with pytest.raises(DataError, match="random_state='seed'"):
        model.sample(2, random_state="seed")


def test_chunks_and_threads_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    X = gapped(BIG)
    one, two = fitted(n_jobs=1), fitted(n_jobs=2)
    whole = one.transform(X), one.predict(X), one.score_samples(X)
    filled = one.impute(X), one.impute(X, "sample")
    monkeypatch.setattr(evidence_module, "CHUNK_BYTES", 1)  # ranges of 64 samples
    for model in (one, two):
        np.testing.assert_array_equal(model.transform(X), whole[0])
        np.testing.assert_array_equal(model.predict(X), whole[1])
        np.testing.assert_array_equal(model.score_samples(X), whole[2])
        pd.testing.assert_frame_equal(model.impute(X), filled[0])
        pd.testing.assert_frame_equal(model.impute(X, "sample"), filled[1])


def test_the_row_of_an_error_counts_from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence_module, "CHUNK_BYTES", 1)
    records: list[Any] = [{"shop": 3}] * 150
    records[130] = {"h1": {0: 0}}
    with pytest.raises(DataError, match="in row 130 has probability zero"):
        fitted().transform(records)


def test_a_tree_without_hidden_nodes() -> None:
    X = np.array([[0, 0], [1, 1], [0, 1]])
    model = Fitted()
    model.schema_ = Schema.of(X, as_table(X))
    tree = Tree.build(["x0", "x1"], [(0, 1)], [1.0])
    tables = (np.array([[0.6], [0.4]]), np.array([[0.9, 0.2], [0.1, 0.8]]))
    model.model_ = TreeModel(tree, 0, tables)
    assert model.transform(X).shape == (3, 0)
    assert model.predict(X).shape == (3, 0)
    np.testing.assert_allclose(model.predict_proba(X, "x1")[0], [0.9, 0.1], **close)
    assert model.sample(4)[1].shape == (4, 0)


def test_nothing_to_ask_before_fit() -> None:
    asks: list[Any] = [
        lambda m: m.transform(FRAME),
        lambda m: m.predict(FRAME),
        lambda m: m.predict_proba(FRAME, "fruit"),
        lambda m: m.classes_of("fruit"),
        lambda m: m.score_samples(FRAME),
        lambda m: m.score(FRAME),
        lambda m: m.bic(FRAME),
        lambda m: m.aic(FRAME),
        lambda m: m.sample(2),
        lambda m: m.impute(FRAME),
        lambda m: m.marginal("fruit"),
        lambda m: m.conditional("fruit", "h0"),
        lambda m: m.get_feature_names_out(),
    ]
    for ask in asks:
        with pytest.raises(NotFittedError):
            ask(Fitted())


def test_a_tree_without_probabilities_says_so(model: Fitted) -> None:
    model.tree_ = model.model_.tree
    del model.model_
    for ask in (model.transform, model.score, model.impute):
        with pytest.raises(DataError, match="this tree has no probabilities"):
            ask(FRAME)
