"""Samples as records: labels, weights over labels, and values that are wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from tests.queries.categorical import (
    BIG,
    FRAME,
    NAMES,
    Fitted,
    answer,
    close,
    fitted,
)

from latenttree.data import DataError


@pytest.fixture
def model() -> Fitted:
    return fitted()


def test_records_are_samples(model: Fitted) -> None:
    record = {"colour": "green", "size": 20}
    codes = [-1, 0, 1, -1, -1]
    expected = answer(model.model_, codes, 0)
    np.testing.assert_allclose(model.predict_proba(record, "fruit"), expected, **close)
    np.testing.assert_allclose(model.predict_proba([record], "fruit"), expected, **close)
    several: list[Any] = [record, {"ripe": True, "shop": np.int64(1)}, {"size": None}, {}]
    codes = [codes, [-1, -1, -1, 1, 0], [-1] * 5, [-1] * 5]
    found = model.predict_proba(several, "fruit")
    np.testing.assert_allclose(found, answer(model.model_, codes, 0), **close)
    assert model.transform(several).shape == (4, 4)
    assert model.score_samples([{}])[0] == pytest.approx(0, abs=1e-12)
    as_records = model.predict_proba(BIG.drop(columns="ripe").to_dict("records"), "ripe")
    np.testing.assert_array_equal(as_records, model.predict_proba(BIG, "ripe"))


def test_soft_evidence_in_records(model: Fitted) -> None:
    weights = np.array([0.2, 0.5, 0.3])
    expected = answer(model.model_, [1, 1, -1, -1, -1], 3, {2: weights, 6: np.array([1.0, 0.25])})
    base = {"fruit": "fig", "colour": "red"}
    forms: list[Any] = [{10: 0.2, 20: 0.5, 30: 0.3}, {20: 5, 30: 3, 10.0: 2}]
    for form in forms:
        record = base | {"size": form, "h1": {0: 4.0, 1: 1.0}}
        np.testing.assert_allclose(model.predict_proba(record, "ripe"), expected, **close)
    # labels without a weight have none
    half = model.predict_proba(base | {"size": {10: 1}}, "ripe")
    np.testing.assert_allclose(half, model.predict_proba(base | {"size": 10}, "ripe"), **close)
    # a state of a hidden node
    known = model.predict_proba({"h0": 1}, "fruit")
    np.testing.assert_allclose(known[0], model.conditional("fruit", "h0")[:, 1], **close)
    # weights on what is asked are used
    weighed = {"fruit": {"apple": 1, "fig": 2, "pear": 3}, "colour": "red"}
    prior = model.predict_proba(weighed, "fruit")
    soft = {0: np.array([1.0, 2.0, 3.0])}
    np.testing.assert_allclose(prior, answer(model.model_, [-1, 1, -1, -1, -1], 0, soft), **close)
    only = model.predict_proba(weighed, "h0", evidence=["colour"])
    np.testing.assert_allclose(only, model.predict_proba({"colour": "red"}, "h0"), **close)


def test_a_dict_of_vectors_is_a_table(model: Fitted) -> None:
    columns = {name: BIG[name].to_numpy() for name in NAMES}
    np.testing.assert_array_equal(model.transform(columns), model.transform(BIG))
    del columns["ripe"]
    found = model.predict_proba(columns, "ripe")
    np.testing.assert_array_equal(found, model.predict_proba(BIG, "ripe"))


def test_presence_in_records() -> None:
    X = sparse.csr_array(np.random.default_rng(0).integers(0, 2, (50, 5)))
    model = fitted(X, dims=(2,) * 7)
    assert model.classes_of("x0").tolist() == [0, 1]
    forms: list[Any] = [{"x0": 1, "x1": 0}, {"x0": True, "x1": False}, {"x0": 3.0, "x1": 0}]
    for record in forms:
        expected = answer(model.model_, [1, 0, -1, -1, -1], 2)
        np.testing.assert_allclose(model.predict_proba(record, "x2"), expected, **close)


@pytest.mark.parametrize(
    ("X", "query", "evidence", "message"),
    [
        (FRAME, 1.5, None, "no node|not iterable"),
        (FRAME.drop(columns="size"), "fruit", None, "yet now missing:\n- size"),
        ({"size": 25}, "fruit", None, "unseen category 25 at row 0, column 'size'"),
        ([{"size": 10}, {"size": 25}], "fruit", None, "unseen category 25 at row 1"),
        ({"size": {10: 1, 25: 1}}, "fruit", None, "unseen category 25 at .*column 'size'"),
    ],
)
def test_bad_data(X: Any, query: Any, evidence: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        fitted().predict_proba(X, query, evidence)


@pytest.mark.parametrize(
    ("X", "query", "node", "row", "what"),
    [
        ({"size": [1, 1]}, "fruit", "size", None, "a list for 'size'"),
        ({"size": (10,)}, "fruit", "size", None, "a tuple for 'size'"),
        ({"size": np.ones(3)}, "fruit", "size", None, "an array for 'size'"),
        ([{"size": pd.Series([10])}], "fruit", "size", None, "a Series for 'size'"),
        ({"h0": [0.5, 0.5]}, "fruit", "h0", None, "a list for 'h0'"),
        ({"size": {10: 1, 20: -1}}, "fruit", "size", 0, "weights of 'size' in row 0"),
        ([{}, {"size": {10: np.nan}}], "fruit", "size", 1, "weights of 'size' in row 1"),
        ({"size": {10: "much"}}, "fruit", "size", 0, "weights of 'size' in row 0"),
        ({"size": 10, "fruit": "fig"}, "fruit", "fruit", None, "'fruit' is both given and asked"),
        ([{}, {"h0": 1}], ["fruit", "h0"], "h0", None, "'h0' is both given and asked"),
        ({"h0": 2}, "fruit", "h0", 0, "hidden node 'h0' has no state 2 (row 0)"),
    ],
)
def test_bad_values_in_records(X: Any, query: Any, node: str, row: int | None, what: str) -> None:
    with pytest.raises(DataError) as caught:
        fitted().predict_proba(X, query)
    assert (caught.value.place.node, caught.value.place.row) == (node, row)
    assert caught.value.what.startswith(what)
    assert caught.value.value is not None
    assert caught.value.remedy


def test_tables_have_no_hidden_evidence() -> None:
    with pytest.raises(DataError, match="give hidden evidence in records") as caught:
        fitted().predict_proba(FRAME, "fruit", ["size", "h0"])
    assert caught.value.place.node == "h0"
    assert caught.value.place.option == "evidence"


def test_a_value_that_evidence_leaves_out_may_be_asked(model: Fitted) -> None:
    record = {"fruit": "fig", "size": 10}
    found = model.predict_proba(record, "fruit", evidence=["size"])
    np.testing.assert_array_equal(found, model.predict_proba({"size": 10}, "fruit"))
    known = model.predict_proba({"h0": 1, "size": 10}, "fruit", evidence=["h0"])
    np.testing.assert_array_equal(known, model.predict_proba({"h0": 1}, "fruit"))
