"""Nodes by name and number, where names are integers too, and nodes that do not exist."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.queries.categorical import (
    BIG,
    DIMS,
    FRAME,
    NAMES,
    Fitted,
    fitted,
    gapped,
    make_model,
)

from latenttree.data import DataError, Schema, as_table

NUMBERS = [5, 3, 1, 0, 2]


@pytest.fixture
def model() -> Fitted:
    return fitted()


def test_an_integer_that_names_a_column_is_that_column(model: Fitted) -> None:
    other = fitted(FRAME.set_axis(NUMBERS, axis=1))
    name = dict(zip(NUMBERS, NAMES, strict=True))
    for number in NUMBERS:
        v = NAMES.index(name[number])
        record = {name[u]: FRAME[name[u]][1] for u in NUMBERS if u != number}
        numbered = {u: FRAME[name[u]][1] for u in NUMBERS if u != number}
        expected = model.predict_proba(record, name[number])
        for query in (number, np.int64(number), str(number)):
            np.testing.assert_array_equal(other.predict_proba(numbered, query), expected)
        assert list(other.predict_proba(numbered, [number])) == [number]
        assert other.classes_of(number).tolist() == model.classes_of(name[number]).tolist()
        np.testing.assert_array_equal(other.marginal(number), model.marginal(v))
        np.testing.assert_array_equal(
            other.conditional(number, "h0" if v < 2 else "h1"),
            model.conditional(v, 5 if v < 2 else 6),
        )
    table = other.predict_proba(BIG.set_axis(NUMBERS, axis=1), 1, evidence=[3, 0])
    expected = model.predict_proba(BIG, "size", evidence=["colour", "ripe"])
    np.testing.assert_array_equal(table, expected)
    # other integers are numbers of nodes, and so are all where columns have words
    np.testing.assert_array_equal(other.marginal(6), model.marginal("h1"))
    with pytest.raises(DataError, match="query names a node twice"):
        other.predict_proba(BIG.set_axis(NUMBERS, axis=1), [3, "3"])
    again = Schema.from_json(other.schema_.to_json())
    assert [again.column_of(n) for n in NUMBERS] == [0, 1, 2, 3, 4]


def test_a_dropped_column_of_an_integer_name() -> None:
    X = (
        FRAME.set_axis(NUMBERS, axis=1)
        .assign(**{"7": 1})
        .rename(columns={"7": 7})[[5, 7, 3, 1, 0, 2]]
    )
    model = Fitted()
    table = as_table(X, drop_constant=True)
    model.schema_, model.model_ = Schema.of(X, table), make_model(table.names, DIMS)
    expected = fitted().predict_proba({"colour": "red"}, "fruit")
    np.testing.assert_array_equal(model.predict_proba({3: "red", 7: 1}, 5), expected)
    for ask in (model.classes_of, model.marginal, lambda v: model.predict_proba(X, v)):
        with pytest.raises(DataError, match="column 7 had a single value in training"):
            ask(7)


def test_gaps_of_columns_with_integer_names(model: Fitted) -> None:
    other, X = fitted(FRAME.set_axis(NUMBERS, axis=1)), gapped(BIG)
    expected = model.impute(X).set_axis(NUMBERS, axis=1)
    order = [2, 5, 0, 1, 3]
    numbered = X.set_axis(NUMBERS, axis=1).set_index(np.arange(200)[::-1])
    pd.testing.assert_frame_equal(other.impute(numbered), expected.set_index(numbered.index))
    found = other.impute(numbered[order])
    pd.testing.assert_frame_equal(found, expected.set_index(numbered.index)[order])


@pytest.mark.parametrize(
    ("X", "query", "evidence", "value"),
    [
        (FRAME, "taste", None, "taste"),
        (FRAME, 7, None, 7),
        (FRAME, "fruit", ["taste"], "taste"),
        ({"taste": "sweet"}, "fruit", None, "taste"),
    ],
)
def test_unknown_nodes(X: Any, query: Any, evidence: Any, value: Any) -> None:
    with pytest.raises(DataError, match="the model has no node") as caught:
        fitted().predict_proba(X, query, evidence)
    assert caught.value.value == value
    assert re.search("it has the variables 'fruit', .* 'h0', 'h1'", caught.value.remedy)


def test_a_similar_name_is_suggested() -> None:
    with pytest.raises(DataError, match=r"no node 'frut' \(did you mean 'fruit'\?\)"):
        fitted().predict_proba(FRAME, "frut")


@pytest.mark.parametrize(
    ("query", "evidence", "what"),
    [
        ([], None, "query is an empty list"),
        (["fruit", 0], None, "query names a node twice"),
        ("fruit", ["size", "size"], "evidence names a node twice"),
    ],
)
def test_bad_lists_of_nodes(query: Any, evidence: Any, what: str) -> None:
    with pytest.raises(DataError) as caught:
        fitted().predict_proba(FRAME, query, evidence)
    assert caught.value.what.startswith(what)
    assert caught.value.value == (query if evidence is None else evidence)
