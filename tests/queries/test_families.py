"""Queries of models with numbers, counts and groups of codes, against the joint distribution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from tests.queries.categorical import Fitted
from tests.queries.mixed import (
    FAMILY,
    NAMES,
    K,
    N,
    close,
    data_of,
    gapped,
    log_joint,
    make_data,
    make_model,
    posteriors,
    summed,
)

import latenttree.queries.evidence as evidence_module
from latenttree.data import DataError
from latenttree.model.tree_model import TreeModel
from latenttree.queries import SampleEvidence
from latenttree.queries.filling import medians


@pytest.fixture(params=["dense", "sparse"])
def model(request: pytest.FixtureRequest) -> Fitted:
    return make_model(make_data(thin=request.param == "sparse"), family=FAMILY)


@pytest.mark.parametrize("gaps", [False, True])
def test_hidden_nodes_and_likelihoods(model: Fitted, gaps: bool) -> None:
    X = gapped(data_of(model)) if gaps else data_of(model)
    rows = model.schema_.rows(X)
    logs = log_joint(model.model_, rows.take(0, N), rows.arrays)
    expected = np.hstack(posteriors(logs))
    np.testing.assert_allclose(model.transform(X), expected, **close)
    np.testing.assert_allclose(model.predict_proba(X), expected, **close)
    # of a row of which nothing is known it is zero
    np.testing.assert_allclose(model.score_samples(X), summed(logs, (1, 2)), rtol=1e-10, atol=1e-12)
    states = np.column_stack([expected[:, :K].argmax(1), expected[:, K:].argmax(1)])
    np.testing.assert_array_equal(model.predict(X), states)
    for v in (6, 7):  # the best of all nodes, so with the best category in a gap
        lost = rows.take(0, N)[:, v] < 0
        logs[lost] += np.log(model.model_.cpts[v].max(axis=0))
    best = np.array([np.unravel_index(x.argmax(), x.shape) for x in logs])
    np.testing.assert_array_equal(model.predict(X, joint=True), best)
    if gaps:
        assert model.score_samples(X)[11] == pytest.approx(0, abs=1e-12)


def test_any_category_given_any_numbers(model: Fitted) -> None:
    X = gapped(data_of(model))
    rows = model.schema_.rows(X)
    codes, chosen = np.full((N, 8), -1), (0, 2, 4)
    arrays = {v: rows.arrays[v] for v in chosen}
    states = posteriors(log_joint(model.model_, codes, arrays))
    found = model.predict_proba(X, ["colour", "h0"], evidence=["age", "real", "bag"])
    expected = states[1] @ model.conditional("colour", "h1").T
    np.testing.assert_allclose(found["colour"], expected, **close)
    np.testing.assert_allclose(found["h0"], states[0], **close)
    some = {name: X[name] for name in ("age", "real", "bag")}
    again = model.predict_proba(some, "colour", evidence=["age", "real", "bag"])
    np.testing.assert_array_equal(again, found["colour"])


def test_records_with_numbers(model: Fitted) -> None:
    records: list[dict[str, Any]] = [
        {"age": 12.5, "colour": "red", "real": [0.5, np.nan]},
        {"visits": np.int64(4), "codes": np.array([0, 1, 0, 0]), "size": True},
        {"h0": 1, "age": None, "bag": (0, 2, 0, 1)},
        {"flag": {True: 0.3, False: 0.7}, "age": 3},
        {},
    ]
    codes, arrays = (
        np.full((5, 8), -1),
        {
            0: np.array([12.5, np.nan, np.nan, 3, np.nan]),
            1: np.array([np.nan, 4, np.nan, np.nan, np.nan]),
            2: np.full((5, 2), np.nan),
            3: np.array([np.nan, 1, np.nan, np.nan, np.nan]),
            4: np.full((5, 4), np.nan),
            5: np.full((5, 4), np.nan),
        },
    )
    codes[0, 6] = 2  # blue, green, red
    arrays[2][0, 0], arrays[4][2], arrays[5][1] = 0.5, [0, 2, 0, 1], [0, 1, 0, 0]
    logs = log_joint(model.model_, codes, arrays)
    logs[2, [0, 2]] = -np.inf
    logs[3] += np.log(model.model_.cpts[7].T @ [0.7, 0.3])
    np.testing.assert_allclose(model.transform(records), np.hstack(posteriors(logs)), **close)
    np.testing.assert_allclose(model.score_samples(records), summed(logs, (1, 2)), **close)
    one = model.transform(records[0])
    np.testing.assert_allclose(one, model.transform(records)[:1], **close)


def test_a_state_that_a_number_all_but_excludes_can_be_given() -> None:
    """The likelihood ratio is e^-5000, far below the smallest float."""
    X = make_data()
    model = make_model(X, family=FAMILY)
    far = {"age": 1e4, "h0": 2}
    codes, arrays = np.full((1, 8), -1), {0: np.array([1e4])}
    logs = log_joint(model.model_, codes, arrays)
    assert np.ptp(logs) > 2000
    logs[0, :2] = -np.inf
    assert model.score_samples(far)[0] == pytest.approx(summed(logs, (1, 2))[0], rel=1e-10)
    np.testing.assert_allclose(model.predict_proba(far, "h1"), posteriors(logs)[1], **close)


def test_dicts_of_blocks_and_records_are_told_apart(model: Fitted) -> None:
    X = data_of(model)
    assert len(model.transform(X)) == N
    one = {name: value[:1] for name, value in X.items()}
    np.testing.assert_allclose(model.transform(one), model.transform(X)[:1], **close)
    blocks = {name: np.asarray(make_data()[name])[0] for name in ("real", "bag", "codes")}
    assert model.transform(blocks).shape == (1, 2 * K)
    asked = model.predict_proba(blocks, "colour", evidence=["real", "bag", "codes"])
    np.testing.assert_allclose(asked, model.predict_proba(blocks, "colour"), **close)


def test_samples_have_the_moments_of_the_model(model: Fitted) -> None:
    n = 4000
    X, y = model.sample(n, random_state=1)
    assert list(X) == list(NAMES)
    assert y.shape == (n, 2)
    rows = model.schema_.rows(X)  # all values are such as the families allow
    for v, name in enumerate(NAMES):
        expected = model.marginal(name)
        if v in model.model_.emissions:
            values = rows.arrays[v]
            x = np.asarray(values.toarray() if sparse.issparse(values) else values).reshape(n, -1)
            if name == "codes":
                x = np.column_stack([(x == 0).all(axis=1), x])
            if name == "bag":
                x = x / x.sum(axis=1, keepdims=True)
        else:
            x = np.eye(len(expected))[rows.take(0, n)[:, v]]
        # 17 means, each within 5 standard errors: fails with probability below 1e-4; a rounded
        # column ("size") is off by less than its error
        error = x.std(axis=0) / np.sqrt(n)
        assert (np.abs(x.mean(axis=0) - expected) <= 5 * error + 1e-12).all(), name
    again, states = model.sample(n, random_state=1)
    np.testing.assert_array_equal(states, y)
    np.testing.assert_array_equal(again["age"], X["age"])
    assert X["visits"].dtype == X["size"].dtype == np.int64
    assert X["flag"].dtype == bool


def test_gaps_are_filled_with_expectations(model: Fitted) -> None:
    X = gapped(data_of(model))
    result = model.impute(X)
    rows, after = model.schema_.rows(X), model.schema_.rows(result)
    logs = log_joint(model.model_, rows.take(0, N), rows.arrays)
    states = posteriors(logs)
    for v, emission in model.model_.emissions.items():
        guess = emission.impute(states[0 if v < 4 else 1])
        guess = guess.toarray() if sparse.issparse(guess) else guess
        found, known = after.arrays[v], rows.arrays[v]
        found = found.toarray() if sparse.issparse(found) else found
        gaps = np.isnan(known)
        guess = np.rint(guess) if NAMES[v] in ("size", "bag") else guess  # columns of integers
        np.testing.assert_allclose(found[gaps], guess[gaps], rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(found[~gaps], known[~gaps])
    for v in (6, 7):
        best = (states[1] @ model.model_.cpts[v].T).argmax(axis=1)
        before = rows.take(0, N)[:, v]
        np.testing.assert_array_equal(after.take(0, N)[:, v], np.where(before < 0, best, before))
    for name, value in data_of(model).items():
        assert type(result[name]) is type(value)
        assert result[name].dtype.kind == value.dtype.kind
    whole = model.impute(result)
    np.testing.assert_array_equal(whole["age"], result["age"])  # nothing is left to do


def test_frames_keep_their_types() -> None:
    rng = np.random.default_rng(0)
    data = make_data()
    frame = pd.DataFrame({name: data[name] for name in ("age", "visits", "size", "colour", "flag")})
    extra = {"a": rng.normal(size=N).astype(np.float32), "b": rng.normal(size=N), "c": frame.flag}
    frame = frame.assign(**extra)
    model = make_model(frame, family={"visits": "poisson", "size": "gaussian"})
    X = frame.astype(object).where(rng.random(frame.shape) < 0.7, None)
    X = X.set_index(np.arange(N)[::-1])[["c", "b", *frame.columns[:5], "a"]]
    for method in ("mode", "sample"):
        result = model.impute(X, method)
        assert (result.dtypes == frame.dtypes[X.columns]).all()
        assert (result.index == X.index).all()
        known = X.notna().to_numpy()
        assert (result.to_numpy(dtype=object)[known] == X.to_numpy()[known]).all()
    assert (model.sample(5)[0].dtypes == frame.dtypes).all()


def test_gaps_are_filled_by_draws_of_the_whole_row(model: Fitted) -> None:
    """Two numbers under one hidden node, given a third: their means and their covariance."""
    n = 4000
    base = {name: value[:1] for name, value in gapped(data_of(model)).items()}
    X: dict[str, Any] = {
        name: sparse.vstack([value] * n, format="csr")
        if sparse.issparse(value)
        else np.repeat(value, n, axis=0)
        for name, value in base.items()
    }
    X["age"], X["visits"] = np.full(n, np.nan), np.full(n, np.nan)
    result = model.impute(X, "sample", random_state=3)
    rows = model.schema_.rows({name: value[:1] for name, value in X.items()})
    state = posteriors(log_joint(model.model_, rows.take(0, 1), rows.arrays))[0][0]
    emissions = model.model_.emissions
    means = np.array([emissions[0].mean()[0], emissions[1].mean()[0]])
    drawn = np.array([result["age"], result["visits"]])
    # 2 means and a covariance within 5 standard errors: fails with probability below 1e-5
    error = drawn.std(axis=1) / np.sqrt(n)
    assert (np.abs(drawn.mean(axis=1) - means @ state) <= 5 * error).all()
    product = (drawn[0] - means[0] @ state) * (drawn[1] - means[1] @ state)
    expected = (means[0] * means[1]) @ state - (means[0] @ state) * (means[1] @ state)
    assert abs(product.mean() - expected) <= 5 * product.std() / np.sqrt(n)
    again = model.impute(X, "sample", random_state=3)
    np.testing.assert_array_equal(again["age"], result["age"])


def test_ranges_give_the_same_answers(model: Fitted, monkeypatch: pytest.MonkeyPatch) -> None:
    X = gapped(data_of(model))
    asks: list[Any] = [
        model.transform,
        model.predict,
        model.score_samples,
        lambda X: model.impute(X)["age"],
        lambda X: model.impute(X, "sample")["age"],
        lambda X: model.impute(X, "sample")["real"],
        lambda X: model.predict_proba(X, "colour"),
    ]
    whole = [ask(X) for ask in asks]
    monkeypatch.setattr(evidence_module, "CHUNK_BYTES", 1)
    for ask, expected in zip(asks, whole, strict=True):
        np.testing.assert_allclose(ask(X), expected, rtol=1e-12, atol=1e-12)


def test_expectations_of_edges(model: Fitted) -> None:
    for v, emission in model.model_.emissions.items():
        name, parent = NAMES[v], "h0" if v < 4 else "h1"
        found = model.conditional(name, parent)
        np.testing.assert_array_equal(found, emission.mean())
        np.testing.assert_allclose(model.marginal(name), found @ model.marginal(parent))
        with pytest.raises(DataError, match=f"{name!r} is of family .* no states to condition on"):
            model.conditional(parent, name)
    assert model.conditional("colour", "h1").shape == (3, K)


@pytest.mark.parametrize("name", ["age", "visits", "real", "bag", "codes"])
def test_numbers_have_no_probabilities(model: Fitted, name: str) -> None:
    instead = "ask for one of its codes" if name == "codes" else "impute.* its expectation"
    message = f"{name!r} is of family '.*' and has no list of values, .*{instead}"
    for ask in (model.classes_of, lambda v: model.predict_proba({"flag": True}, v)):
        with pytest.raises(DataError, match=message):
            ask(name)
    with pytest.raises(DataError, match=message):
        model.predict_proba({"flag": True}, ["colour", name])


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"age": {1.0: 0.5, 2.0: 0.5}}, "'age' is of family 'gaussian' and has no labels to weigh"),
        ({"age": [1.0, 2.0]}, "a list for 'age'; pass a single number"),
        ({"age": "old"}, "str 'old' at row 0, column 'age'"),
        ({"age": np.inf}, "infinity"),
        ({"visits": -1}, "value -1 at row 0, column 'visits', which holds counts"),
        ([{}, {"visits": 1.5}], "value 1.5 at row 1, column 'visits'"),
        ({"real": [1.0]}, r"value of shape \(1,\) for 'real', .*a vector of 2 numbers"),
        ({"real": 1.0}, r"value of shape \(\) for 'real'"),
        ({"codes": [0, 1, 2, 0]}, r"value 2 at row 0, column 'codes\[2\]', which holds codes"),
        ({"codes": [0, "x", 0, 0]}, r"str 'x' at row 0, column 'codes\[1\]'"),
        ({"colour": 3.5}, "number 3.5 at row 0, column 'colour'"),
    ],
)
def test_bad_records(model: Fitted, record: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        model.transform(record)


def test_weights_are_repetitions(model: Fitted) -> None:
    X = make_data()
    model = make_model(X, family=FAMILY)
    weights = np.random.default_rng(0).integers(0, 4, N)
    repeated = {name: np.repeat(value, weights, axis=0) for name, value in X.items()}
    for ask in (model.score, model.bic, model.aic):
        expected = ask(repeated)
        assert ask(X, sample_weight=weights) == pytest.approx(expected, rel=1e-12)
        assert ask(X, sample_weight=weights.tolist()) == pytest.approx(expected, rel=1e-12)
        assert ask(X, sample_weight=np.ones(N)) == pytest.approx(ask(X), rel=1e-12)
    assert model.score(X, None, weights) == model.score(X, sample_weight=weights)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(3), r"sample_weight has shape \(3,\), but X has 80 rows"),
        (np.ones((N, 1)), "as a vector"),
        (np.zeros(N), "all 80 sample weights are zero"),
        (np.where(np.arange(N) == 4, -1.0, 1.0), r"sample_weight of row 4 is -1.0"),
        (np.where(np.arange(N) == 4, np.nan, 1.0), r"sample_weight of row 4 is nan"),
        (["x"] * N, "sample_weight must hold numbers"),
    ],
)
def test_bad_weights(weights: Any, message: str) -> None:
    X = make_data()
    with pytest.raises(DataError, match=message):
        make_model(X, family=FAMILY).score(X, sample_weight=weights)


def test_an_impossible_sample_of_weight_zero_does_not_count() -> None:
    X = make_data()
    model = make_model(X, family=FAMILY)
    tables = list(model.model_.cpts)
    tables[6] = np.array([[0.0] * K, [0.5] * K, [0.5] * K])  # no blue
    model.model_ = TreeModel(model.model_.tree, 8, tuple(tables), model.model_.emissions)
    weights = X["colour"] != "blue"
    assert np.isneginf(model.score(X))
    assert np.isfinite(model.score(X, sample_weight=weights))


def test_a_model_without_its_emissions_is_refused() -> None:
    model = make_model(make_data(), family=FAMILY)
    model.model_ = TreeModel(model.model_.tree, 8, model.model_.cpts)
    with pytest.raises(DataError, match=r"have 6 variables that are not categorical, .* of 0"):
        model.score(make_data())


def test_length_of_evidence() -> None:
    rows = make_model(make_data(), family=FAMILY).schema_.rows(make_data())
    assert len(SampleEvidence(rows)) == N


def test_records_are_filled(model: Fitted) -> None:
    """A record is filled like a row of a table in which all else is missing."""
    X = data_of(model)
    known = {"age": float(X["age"][0]), "colour": "red"}
    found = model.impute(known)
    assert tuple(found) == NAMES
    assert {name: found[name] for name in known} == known
    assert model.impute([known, known])[1]["size"] == found["size"]
    table = {
        name: (
            np.full(1, known.get(name), dtype=object)
            if np.ndim(X[name]) == 1
            else np.full((1, X[name].shape[1]), np.nan)
        )
        for name in NAMES
    }
    row = model.impute(table)
    assert found["visits"] == row["visits"][0]
    assert found["flag"] == row["flag"][0]
    np.testing.assert_allclose(found["real"], row["real"][0])
    assert set(model.impute({})) == set(NAMES)
    drawn = model.impute(known, method="sample", random_state=0)
    assert drawn["age"] == known["age"]


def test_ordinal_gaps_hold_medians() -> None:
    posterior = np.array([[0.4, 0.25, 0.35], [0.5, 0.1, 0.4], [0.1, 0.2, 0.7], [0.49, 0.0, 0.51]])
    assert medians(posterior).tolist() == [1, 0, 2, 2]
    for row, chosen in zip(posterior, medians(posterior), strict=True):
        distance = [row @ np.abs(np.arange(3) - c) for c in range(3)]
        assert distance[chosen] <= min(distance) + 1e-12
    thirds = np.full((1, 3), 1 / 3)
    assert medians(np.hstack([thirds, thirds]) / 2).tolist() == [2]  # 0.5 up to rounding


@pytest.mark.filterwarnings("error")
def test_numbers_that_are_far_out_do_not_warn(model: Fitted) -> None:
    assert model.score_samples({"age": 1e300, "colour": "red"}).tolist() == [-np.inf]
    with pytest.raises(DataError, match="row 0 has probability zero"):
        model.impute({"age": 1e300})
