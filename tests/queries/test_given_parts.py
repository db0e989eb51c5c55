"""Evidence on parts of the model: hidden nodes, single codes of groups; against enumeration."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from tests.queries.categorical import Fitted
from tests.queries.mixed import make_data, make_model
from tests.queries.test_gaussian import GAUSS, conditioned, gaussian_model

from latenttree.errors import DataError

CODES = list(product([0, 1], repeat=4))


@pytest.fixture(params=[False, True], ids=["dense", "sparse"])
def model(request: Any) -> Fitted:
    return make_model(make_data(thin=request.param), family={"codes": "multihot"})


def joint(model: Fitted, record: dict[str, Any]) -> dict[tuple[int, ...], float]:
    """`P(codes, record)` of every value of the group."""
    values = (float(model.score_samples(record | {"codes": np.array(x)})[0]) for x in CODES)
    return dict(zip(CODES, np.exp(list(values)), strict=True))


# ---- codes of groups --------------------------------------------------------------------


@pytest.mark.parametrize("known", [{}, {0: 1}, {1: 0}, {0: 1, 2: 0}, {0: 0, 1: 0, 3: 0}])
def test_codes_are_asked_and_given_alone(model: Fitted, known: dict[int, int]) -> None:
    record = {"flag": True, "colour": "red"}
    every = joint(model, record)
    fits = {x: p for x, p in every.items() if all(x[j] == there for j, there in known.items())}
    given = record | {f"codes:{j}": there for j, there in known.items()}
    assert np.exp(model.score_samples(given)[0]) == pytest.approx(sum(fits.values()))
    expected = np.zeros(3)
    for x, p in fits.items():
        full = record | {"codes": np.array(x)}
        expected += p / sum(fits.values()) * model.predict_proba(full, "h0")[0]
    np.testing.assert_allclose(model.predict_proba(given, "h0")[0], expected)
    found = model.predict_proba(record, "codes:2")[0]
    chance = sum(p for x, p in every.items() if x[2]) / sum(every.values())
    np.testing.assert_allclose(found, [1 - chance, chance])


def test_a_set_of_codes_is_the_whole_group(model: Fitted) -> None:
    for present in ({"0", "3"}, {3, 0}):
        found = model.score_samples({"codes": present})
        assert found == model.score_samples({"codes": np.array([1, 0, 0, 1])})
    assert model.score_samples({"codes": set()}) == model.score_samples({"codes": np.zeros(4)})


def test_conditionals_of_codes(model: Fitted) -> None:
    table = model.conditional("codes:1", "h1")
    np.testing.assert_allclose(table[1], model.conditional("codes", "h1")[2])
    np.testing.assert_allclose(table.sum(axis=0), 1)
    np.testing.assert_allclose(table @ model.marginal("h1"), model.marginal("codes:1"))
    assert model.classes_of("codes:1").tolist() == [0, 1]
    several = model.predict_proba(make_data(), ["codes:0", "codes:1", "flag"])
    assert {name: p.shape for name, p in several.items()} == dict.fromkeys(several, (80, 2))


def test_codes_that_cannot_be_given(model: Fitted) -> None:
    for record, message in (
        ({"codes:0": 2}, "is a code, which is there or not"),
        ({"codes:0": 1, "codes": np.zeros(4)}, "gives 'codes' and codes of it"),
        ({"codes": {"9"}}, "'codes' has no code '9'"),
    ):
        with pytest.raises(DataError, match=message):
            model.transform(record)
    with pytest.raises(DataError, match="both given and asked"):
        model.predict_proba({"codes:0": 1}, "codes:1")
    with pytest.raises(DataError, match="no node 'codes:9'"):
        model.predict_proba({}, "codes:9", evidence=[])
    with pytest.raises(DataError, match=r"ask for one of its codes, as 'codes:0'"):
        model.predict_proba({"flag": True}, "codes")


# ---- hidden nodes -----------------------------------------------------------------------


def test_hidden_states_fill_gaps(model: Fitted) -> None:
    found, proba = model.impute({"h0": 2, "colour": "red"}, return_proba=True)
    assert found["age"] == pytest.approx(model.conditional("age", "h0")[0, 2])
    assert proba["age"].mean[0] == pytest.approx(found["age"])
    expected = model.predict_proba({"h0": 2, "colour": "red"}, "flag")[0]
    np.testing.assert_allclose(proba["flag"].proba[0], expected)
    drawn = model.impute([{"h0": 2}] * 3000, method="sample", random_state=0)
    mean = np.mean([row["age"] for row in drawn])
    spread = np.std([row["age"] for row in drawn]) / np.sqrt(3000)
    assert abs(mean - found["age"]) < 4 * spread


@pytest.mark.parametrize("k", [1, 2])
def test_hidden_values_of_a_gaussian_tree(k: int) -> None:
    model = gaussian_model(GAUSS, (1, 1, 1, 1), k)
    values = [0.7, -1.2][:k]
    records = [{"a": 0.5, "h0": values if k > 1 else values[0]}, {"b": 3.0}]
    X = np.full((2, 4 + k), np.nan)
    X[0, 0], X[0, 4:], X[1, 1] = 0.5, values, 3.0
    logs, means, spreads = conditioned(model.model_, X)
    np.testing.assert_allclose(model.score_samples(records), logs)
    np.testing.assert_allclose(model.transform(records), means[:, 4:])
    filled, proba = model.impute(records, return_proba=True)
    np.testing.assert_allclose([row["d"] for row in filled], means[:, 3])
    np.testing.assert_allclose(proba["d"].std, [np.sqrt(spread[2, 2]) for spread in spreads])


@pytest.mark.parametrize("value", ["x", [1, 2, 3], np.nan, {0: 1.0}])
def test_hidden_values_that_are_none(value: Any) -> None:
    model = gaussian_model(GAUSS, (1, 1, 1, 1), 1)
    if value is np.nan:
        found = model.transform({"h0": value, "a": 1})
        np.testing.assert_array_equal(found, model.transform({"a": 1}))
        return
    with pytest.raises(DataError, match="for 'h0'; give a number"):
        model.transform({"h0": value})


def test_the_advice_of_conditional_works(model: Fitted) -> None:
    for node, given, value in (("age", "h1", 0), ("codes", "h0", 0), ("flag", "h0", 0)):
        with pytest.raises(DataError, match="are not the ends of an edge") as caught:
            model.conditional(node, given)
        advice = str(caught.value).split("for any pair ask ")[1].split(", its")[0]
        advice = advice.replace("label", "value").replace("CODE", "1")
        assert eval(f"model.{advice}", {"model": model, "value": value}) is not None
    gaussian = gaussian_model(GAUSS, (1, 1, 1, 1), 1)
    with pytest.raises(DataError, match="are not the ends of an edge") as caught:
        gaussian.conditional("a", "b")
    advice = str(caught.value).split("for any pair ask ")[1].split(", its")[0]
    eval(f"model.{advice}", {"model": gaussian, "value": 1.0})
