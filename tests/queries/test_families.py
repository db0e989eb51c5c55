"""`Queries` of models with numbers, counts and groups of codes, and of Gaussian trees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import sparse
from tests.queries.test_queries import Fitted

import latenttree.queries.evidence as evidence_module
from latenttree.data import DataError, Schema, as_table
from latenttree.model.emissions import pooled, target_of
from latenttree.model.gaussian import GaussianTreeModel
from latenttree.model.tree_model import TreeModel
from latenttree.queries import SampleEvidence
from latenttree.queries.filling import medians
from latenttree.tree import Tree

Floats = NDArray[np.float64]

#      age  visits  real              bag  codes  colour
#        \    |    /                    \    |    /
#         +--- h0 ----------------------- h1 ----+
#         size /                             \ flag
NAMES = ("age", "visits", "real", "size", "bag", "codes", "colour", "flag")
EDGES = [(0, 8), (1, 8), (2, 8), (3, 8), (4, 9), (5, 9), (6, 9), (7, 9), (8, 9)]
FAMILY = {"visits": "poisson", "size": "gaussian", "real": "gaussian_full"}
N, K = 80, 3


def make_data(seed: int = 0, thin: bool = False) -> dict[str, Any]:
    """Values of every family that depend on two hidden states."""
    rng = np.random.default_rng(seed)
    h = rng.integers(0, K, (N, 2))
    bag = rng.poisson(np.array([[1, 2, 1, 1], [3, 1, 1, 1], [1, 1, 1, 4]])[h[:, 1]])
    codes = (rng.random((N, 4)) < np.array([0.2, 0.4, 0.6])[h[:, 1], None]).astype(int)
    return {
        "age": rng.normal(10.0 * h[:, 0], 5),
        "visits": rng.poisson(1 + 2 * h[:, 0]),
        "real": rng.normal(size=(N, 2)) + h[:, :1],
        "size": rng.integers(0, 50, N) + 10 * h[:, 0],
        "bag": sparse.csr_array(bag) if thin else bag,
        "codes": sparse.csr_array(codes) if thin else codes,
        "colour": np.array(["red", "green", "blue"])[(h[:, 1] + (rng.random(N) < 0.3)) % 3],
        "flag": (h[:, 1] > 0) ^ (rng.random(N) < 0.2),
    }


def make_model(X: Any, seed: int = 0, **options: Any) -> Fitted:
    """A model of random tables, and emissions fitted to random shares of the samples."""
    rng = np.random.default_rng(seed)
    table = as_table(X, **options)
    assert table.values is not None
    tree = Tree.build(table.names, EDGES, np.ones(9))
    emissions = {}
    for v, values in table.values.arrays.items():
        start = pooled(table.families[v], values, K)
        shares = rng.dirichlet(np.full(K, 0.3), N)
        emissions[v] = start.from_sums(start.sums(values, shares), 0.5, target_of(start, values))
    parents = tree.rooted(8).parents.tolist()
    dims = [1 if v in emissions else int(table.dims[v]) for v in range(8)] + [K, K]
    tables = [
        rng.dirichlet(np.ones(dims[v]), size=1 if u < 0 else dims[u]).T
        for v, u in enumerate(parents)
    ]
    estimator = Fitted()
    estimator.schema_ = Schema.of(X, table)
    estimator.model_ = TreeModel(tree, 8, tuple(tables), emissions)
    estimator.n_features_in_ = estimator.schema_.n_features
    return estimator


def log_joint(model: TreeModel, codes: Any, arrays: Mapping[int, Any]) -> Floats:
    """(n, K, K) `log P(h0, h1, sample)`, term by term."""
    with np.errstate(divide="ignore"):
        logs = [np.log(table) for table in model.cpts]
    found = np.zeros((len(codes), K, K)) + logs[8] + logs[9].T
    for v in range(8):
        side = found if v < 4 else found.transpose(0, 2, 1)  # a view: h0 or h1 second
        for s in range(len(codes)):
            if v in model.emissions and v in arrays:
                side[s] += model.emissions[v].log_likelihood(arrays[v][[s]])[0][:, None]
            elif v not in model.emissions and codes[s, v] >= 0:
                side[s] += logs[v][codes[s, v]][:, None]
    return found


def summed(logs: Floats, axis: Any = None) -> Floats:
    top = logs.max(axis=(1, 2), keepdims=True)
    shape = (
        len(logs),
        *[n for i, n in enumerate(logs.shape[1:], 1) if i not in np.atleast_1d(axis)],
    )
    total = np.exp(logs - top).sum(axis=axis)
    return np.asarray(np.log(total) + top.reshape(len(logs), *[1] * (len(shape) - 1)))


def posteriors(logs: Floats) -> tuple[Floats, Floats]:
    """Of h0 and of h1, `(n, K)` each."""
    whole = np.exp(logs - logs.max(axis=(1, 2), keepdims=True))
    whole /= whole.sum(axis=(1, 2), keepdims=True)
    return whole.sum(axis=2), whole.sum(axis=1)


def gapped(X: Mapping[str, Any], seed: int = 0) -> dict[str, Any]:
    """A third of all values, and of the coordinates of blocks, is missing; one row is empty."""
    rng = np.random.default_rng(seed)
    found = {}
    for name, values in X.items():
        dense = values.toarray() if sparse.issparse(values) else np.asarray(values)
        mask = rng.random(dense.shape) < 0.3
        mask[11] = True
        gap = None if dense.dtype.kind in "UOb" else np.nan
        found[name] = np.where(mask, gap, dense.astype(object if gap is None else float))
        if sparse.issparse(values):
            found[name] = sparse.csr_array(found[name])
    return found


close = {"rtol": 0, "atol": 1e-9}  # exact inference: rounding of a few dozen operations


@pytest.fixture(params=["dense", "sparse"])
def model(request: pytest.FixtureRequest) -> Fitted:
    return make_model(make_data(thin=request.param == "sparse"), family=FAMILY)


def data_of(model: Fitted, seed: int = 0) -> dict[str, Any]:
    return make_data(seed, model.schema_.form_of(4) == "sparse")


# --- against the whole joint distribution ------------------------------------------------


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


# --- samples and gaps --------------------------------------------------------------------


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


# --- tables, expectations and bad questions ----------------------------------------------


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
    message = f"{name!r} is of family '.*' and has no list of values, .*impute.* its expectation"
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


# --- weights -----------------------------------------------------------------------------


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


# --- Gaussian trees ----------------------------------------------------------------------

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
    for record in ({"h0": 0}, {"h0": {0: 1.0}}):
        with pytest.raises(DataError, match="'h0' of a Gaussian tree has no states that could be"):
            model.transform(record)
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
    with pytest.raises(DataError, match=r"weights or hidden states, of 'h0'"):
        model.impute({"h0": 1})


def test_gaussian_records_are_filled() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 4)), columns=list("abcd"))
    model = gaussian_model(frame, (1, 1, 1, 1), 1)
    found = model.impute({"a": 1.5})
    row = model.impute(frame[:1].assign(a=1.5, b=np.nan, c=np.nan, d=np.nan))
    np.testing.assert_allclose(list(found.values()), row.to_numpy()[0])


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
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 4)), columns=list("abcd"))
    found = gaussian_model(frame, (1, 1, 1, 1), 1).score_samples(frame[:2].assign(a=1e300))
    assert (found < -1e100).all()
