"""`QueryMixin`: every question in the words of the data, against the whole joint distribution."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from tests.reference.enumeration import joint, onto

import latenttree.queries.evidence as evidence_module
from latenttree.data import DataError, Schema, as_table
from latenttree.model.inference import Evidence
from latenttree.model.tree_model import TreeModel
from latenttree.queries import QueryMixin
from latenttree.tree import Tree

#       fruit   colour       size   ripe
#          \      |            |    /
#           +---- h0 -------- h1 --+----- shop
NAMES = ("fruit", "colour", "size", "ripe", "shop")
EDGES = [(0, 5), (1, 5), (2, 6), (3, 6), (4, 6), (5, 6)]
FRAME = pd.DataFrame(
    {
        "fruit": ["apple", "fig", "pear", "apple"],
        "colour": pd.Categorical(["red", "green", "red", "green"], ["red", "green"]),
        "size": [10, 20, 30, 20],
        "ripe": [True, False, False, True],
        "shop": [3, 1, 1, 3],
    }
)
DIMS = (3, 2, 3, 2, 2, 2, 2)


class Fitted(QueryMixin, BaseEstimator):
    """An estimator that is given its model."""

    tree_: Tree

    def __init__(self, n_jobs: int | None = 1, random_state: Any = 0) -> None:
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Fitted:
        return self


def make_model(names: tuple[str, ...], dims: tuple[int, ...], seed: int = 0) -> TreeModel:
    rng = np.random.default_rng(seed)
    tree = Tree.build(names, EDGES, np.ones(6))
    parents = tree.rooted(5).parents
    tables = [
        rng.dirichlet(np.ones(dims[v]) * 0.7, size=1 if u < 0 else dims[u]).T
        for v, u in enumerate(parents.tolist())
    ]
    return TreeModel(tree, 5, tuple(tables))


def fitted(X: Any = FRAME, dims: tuple[int, ...] = DIMS, seed: int = 0, **options: Any) -> Fitted:
    estimator = Fitted(**options)
    table = as_table(X)
    estimator.schema_ = Schema.of(X, table)
    estimator.model_ = make_model(table.names, dims, seed)
    estimator.n_features_in_ = estimator.schema_.n_features
    if isinstance(X, pd.DataFrame):
        estimator.feature_names_in_ = np.asarray(X.columns, dtype=object)
    return estimator


def answer(model: TreeModel, codes: Any, node: int, soft: Any = None) -> NDArray[np.float64]:
    """(n, d) by enumeration."""
    evidence = Evidence(np.atleast_2d(codes), soft or {})
    found = [onto(joint(model, evidence, s), node) for s in range(len(evidence))]
    return np.array([x / x.sum() for x in found])


def gapped(frame: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    mask = np.random.default_rng(seed).random(frame.shape) < 0.4
    return frame.astype(object).where(~mask, None)


@pytest.fixture
def model() -> Fitted:
    return fitted()


BIG = FRAME.sample(200, replace=True, random_state=0, ignore_index=True)
close = {"rtol": 0, "atol": 1e-10}  # exact inference: rounding of a few dozen operations


# --- hidden nodes ----------------------------------------------------------------------


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


# --- any conditional -------------------------------------------------------------------


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


# --- integers as names -----------------------------------------------------------------

NUMBERS = [5, 3, 1, 0, 2]


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


# --- likelihood ------------------------------------------------------------------------


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


# --- samples and gaps ------------------------------------------------------------------


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


def test_gaps_are_filled_with_the_most_probable_value(model: Fitted) -> None:
    X = gapped(BIG).set_index(np.arange(200)[::-1])[["ripe", "shop", "size", "colour", "fruit"]]
    result = model.impute(X)
    assert list(result.columns) == list(X.columns)
    assert (result.index == X.index).all()
    assert (result.dtypes == FRAME.dtypes[X.columns]).all()
    known = X.notna().to_numpy()
    assert (result.to_numpy(dtype=object)[known] == X.to_numpy()[known]).all()
    codes, filled = model.schema_.encode(X), model.schema_.encode(result)
    for v in range(5):
        best = answer(model.model_, codes, v).argmax(axis=1)
        np.testing.assert_array_equal(filled[:, v], best)
    pd.testing.assert_frame_equal(model.impute(result), result)  # nothing is left to do
    with pytest.raises(DataError, match="method='mean' is unknown"):
        model.impute(X, "mean")


def test_gaps_are_filled_by_draws_of_the_whole_row(model: Fitted) -> None:
    """Draws of two gaps together have their joint distribution, not the product."""
    n = 4000
    X = pd.DataFrame({"fruit": ["fig"] * n, "colour": ["red"] * n, "size": [10] * n})
    X = X.assign(ripe=None, shop=None)
    result = model.impute(X, "sample", random_state=3)
    codes = model.schema_.encode(X[:1])
    whole = joint(model.model_, Evidence(codes), 0)
    expected = onto(whole, 3, 4) / whole.sum()
    pairs = model.schema_.encode(result)[:, 3:]
    counts = np.bincount(pairs[:, 0] * 2 + pairs[:, 1], minlength=4) / n
    error = np.sqrt(expected.ravel() * (1 - expected.ravel()) / n)
    # 4 shares within 5 standard errors: fails with probability below 1e-5
    assert (np.abs(counts - expected.ravel()) <= 5 * error + 1e-12).all()
    pd.testing.assert_frame_equal(model.impute(X, "sample", random_state=3), result)


@pytest.mark.parametrize("form", ["array", "strings", "sparse", "polars", "blocks"])
def test_other_containers(form: str) -> None:
    rng = np.random.default_rng(0)
    base = rng.integers(0, 2, (50, 5))
    gaps = base.astype(float)
    gaps[rng.random(base.shape) < 0.3] = np.nan
    X, Y = {
        "array": (base, gaps),
        "strings": (
            np.array(["n", "y"])[base],
            np.where(np.isnan(gaps), None, np.array(["n", "y"], dtype=object)[base]),
        ),
        "sparse": (sparse.csr_array(base), sparse.csr_array(gaps)),
        "polars": (
            pl.DataFrame(base, schema=list("abcde")),
            pl.DataFrame(gaps, schema=list("abcde")),
        ),
        "blocks": (
            [np.eye(2)[base[:, j]] for j in range(5)],
            [np.eye(2)[base[:, j]] * ~np.isnan(gaps[:, [j]]) for j in range(5)],
        ),
    }[form]
    model = fitted(X, dims=(2,) * 7)
    codes = np.where(np.isnan(gaps), -1, base)
    np.testing.assert_allclose(model.transform(Y)[:, :2], answer(model.model_, codes, 5), **close)
    result = model.impute(Y)
    assert type(result) is type(X)
    filled = model.schema_.encode(result)
    np.testing.assert_array_equal(filled[codes >= 0], base[codes >= 0])
    assert type(model.sample(3)[0]) is type(X)
    one = model.predict_proba(Y, model.schema_.names[2], evidence=[model.schema_.names[0]])
    only = np.full_like(codes, -1)
    only[:, 0] = codes[:, 0]
    np.testing.assert_allclose(one, answer(model.model_, only, 2), **close)


def test_presence_in_records() -> None:
    X = sparse.csr_array(np.random.default_rng(0).integers(0, 2, (50, 5)))
    model = fitted(X, dims=(2,) * 7)
    assert model.classes_of("x0").tolist() == [0, 1]
    forms: list[Any] = [{"x0": 1, "x1": 0}, {"x0": True, "x1": False}, {"x0": 3.0, "x1": 0}]
    for record in forms:
        expected = answer(model.model_, [1, 0, -1, -1, -1], 2)
        np.testing.assert_allclose(model.predict_proba(record, "x2"), expected, **close)


# --- the same answer, however it is computed ---------------------------------------------


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


# --- bad questions ---------------------------------------------------------------------


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
