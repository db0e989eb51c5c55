"""Sample weights: what is refused, and that a weight counts as so many rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from tests.data.refusals import Refused, refused, refusing

from latenttree.data import DataError, as_table, check_n_states, check_weights
from latenttree.data.containers import container_of

RNG = np.random.default_rng(2)
CODES = RNG.integers(0, 3, (40, 3))
WEIGHTS = RNG.integers(0, 4, 40)
X = RNG.normal(size=(40, 3))

BAD: dict[str, tuple[Any, Refused]] = {
    "too few": (
        [1, 2],
        refused(
            "sample_weight has shape",
            option="sample_weight",
            value=(2,),
            options=("sample_weight",),
        ),
    ),
    "two dimensions": (
        np.ones((3, 1)),
        refused(
            "sample_weight has shape",
            option="sample_weight",
            value=(3, 1),
            options=("sample_weight",),
        ),
    ),
    "a number": (
        1.0,
        refused(
            r"shape \(\), but X has 3 rows",
            option="sample_weight",
            value=(),
            options=("sample_weight",),
        ),
    ),
    "negative": (
        [1, -0.5, 3],
        refused(
            "finite and >= 0", row=1, option="sample_weight", value=-0.5, options=("sample_weight",)
        ),
    ),
    "NaN": (
        [1, 2, np.nan],
        refused(
            "sample_weight of row",
            row=2,
            option="sample_weight",
            value=np.nan,
            options=("sample_weight",),
        ),
    ),
    "infinite": (
        [np.inf, 2, 3],
        refused(
            "sample_weight of row",
            row=0,
            option="sample_weight",
            value=np.inf,
            options=("sample_weight",),
        ),
    ),
    "all zero": ([0, 0, 0], refused("sample weights are zero", option="sample_weight", value=0.0)),
    "shares": (
        [0.2, 0.3, 0.5],
        refused("frequencies.*rescale them to counts", option="sample_weight", value=1.0),
    ),
    "text": (
        ["a", "b", "c"],
        refused(
            "sample_weight must hold numbers, got type <U",
            option="sample_weight",
            options=("sample_weight",),
        ),
    ),
    "objects": (
        [None, 1, 2],
        refused(
            "sample_weight must hold numbers, got type object",
            option="sample_weight",
            options=("sample_weight",),
        ),
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_weights_are_named(case: str) -> None:
    weights, expected = BAD[case]
    with refusing(expected):
        check_weights(weights, 3)
    with refusing(expected):
        as_table(CODES[:3], sample_weight=weights)


def test_weights_that_fit() -> None:
    for weights in ([1, 2, 0], (True, True, False), pd.Series([1.5, 0.5, 0.0]), np.ones(3, "f4")):
        found = check_weights(weights, 3)
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, np.asarray(weights, dtype=float))


FORMS: dict[str, Any] = {
    "array": CODES,
    "rows": CODES.tolist(),
    "masked": np.ma.masked_equal(CODES, 2),
    "pandas": pd.DataFrame(CODES),
    "polars": pl.DataFrame(CODES),
    "pyarrow": pa.table({f"x{j}": CODES[:, j] for j in range(3)}),
    "sparse": sparse.coo_matrix(CODES),
    "vectors": list(CODES.T),
    "lists": {f"x{j}": CODES[:, j].tolist() for j in range(3)},
    "series": {f"x{j}": pd.Series(CODES[:, j]) for j in range(3)},
    "blocks": [np.eye(3)[CODES[:, 0]], sparse.csr_array(CODES), X],
    "table": as_table(CODES),
    "real": X,
}


@pytest.mark.parametrize("form", FORMS)
def test_rows_of_weight_zero_are_left_out(form: str) -> None:
    table = as_table(FORMS[form], sample_weight=WEIGHTS)
    assert table.n_samples == (WEIGHTS > 0).sum()
    assert table.weights is not None
    np.testing.assert_array_equal(table.weights, WEIGHTS[WEIGHTS > 0])
    assert table.total_weight == WEIGHTS.sum()
    assert container_of(FORMS[form]).shape[0] == 40


@pytest.mark.parametrize("form", FORMS)
def test_weights_of_one_are_none(form: str) -> None:
    assert as_table(FORMS[form], sample_weight=np.ones(40)).weights is None


def test_what_only_rows_of_weight_zero_have_is_not_there() -> None:
    column = np.array([0, 1, 1, 9, 0])
    other = np.array([3.0, 3.0, 3.0, np.inf, 3.0])
    weights = [1, 2, 1, 0, 1]
    assert as_table(column[:, None], sample_weight=weights).dims.tolist() == [2]
    with pytest.raises(DataError, match="'r' has one value"):
        as_table({"c": column, "r": other}, sample_weight=weights)


NUMBERS = np.array([[0.5, 1], [1.5, 2], [2.5, 3], [np.inf, 4], [0.5, 5]])
NUMBERED = {
    "array": NUMBERS,
    "pandas": pd.DataFrame(NUMBERS, columns=["x0", "x1"]),
    "polars": pl.DataFrame(NUMBERS, schema=["x0", "x1"]),
    "pyarrow": pa.table({"x0": NUMBERS[:, 0], "x1": NUMBERS[:, 1]}),
    "blocks": {"x0": NUMBERS[:, 0], "x1": NUMBERS[:, 1]},
    "sparse": sparse.csr_array(NUMBERS),
}


@pytest.mark.parametrize("form", NUMBERED)
def test_errors_count_rows_of_weight_zero(form: str) -> None:
    with refusing(refused("at row 3, column 'x0'", column="x0", row=3, value=np.inf)):
        as_table(NUMBERED[form], sample_weight=[1, 0, 0, 2, 1])


def test_errors_of_several_columns_count_rows_of_weight_zero() -> None:
    X = np.array([[0, 1], [1, 2], [-1, 3], [2, -4], [0, 5]])
    words = "(?s)-1 at row 2, column 'x0'.*-4 at row 3, column 'x1'"
    with refusing(refused(words, column="x0", row=2, value=-1)) as caught:
        as_table(X, sample_weight=[1, 0, 2, 2, 1])
    assert [error.place.row for error in caught.value.errors] == [2, 3]


@pytest.mark.parametrize("scores", [False, True])
def test_integer_weights_are_repeated_rows(scores: bool) -> None:
    rng = np.random.default_rng(2)
    n = 500
    weights = rng.integers(0, 4, n)
    x = rng.normal(size=n)
    x[rng.random(n) < 0.2] = np.nan
    wide = rng.normal(size=(n, 20))
    wide[rng.random(wide.shape) < 0.1] = np.nan
    data = {
        "x": x,
        "c": rng.integers(0, 3, n),
        "real": wide[:, :3],
        "wide": wide,
        "bag": rng.poisson(1.0, (n, 4)),
        "hot": np.where(rng.random((n, 3)) < 0.1, np.nan, rng.random((n, 3)) < 0.4),
    }
    sparse_counts = {"s": sparse.csr_array(rng.poisson(0.3, (n, 5))), "x": x}
    for blocks in (data, sparse_counts):
        repeated = {
            name: sparse.csr_array(np.repeat(b.toarray(), weights, axis=0))
            if sparse.issparse(b)
            else np.repeat(b, weights, axis=0)
            for name, b in blocks.items()
        }
        found = as_table(blocks, sample_weight=weights, scores=scores)
        expected = as_table(repeated, scores=scores)
        assert found.dims.tolist() == expected.dims.tolist()
        rows = np.repeat(np.arange(found.n_samples), weights[weights > 0])
        assert found.matrix is not None
        assert expected.matrix is not None
        np.testing.assert_allclose(
            found.matrix.toarray()[rows], expected.matrix.toarray(), atol=1e-6
        )


def test_weights_count_as_samples() -> None:
    table = as_table(np.arange(3)[:, None], sample_weight=[1, 1, 2])
    assert check_n_states(table, 3) == 3
    with pytest.raises(DataError, match="4 samples are fewer than n_states=5"):
        check_n_states(table, 5)


def test_a_table_is_weighted_once() -> None:
    table = as_table(CODES, sample_weight=WEIGHTS)
    with pytest.raises(DataError, match="X is a Table that has weights"):
        as_table(table, sample_weight=np.ones(table.n_samples))


@pytest.mark.parametrize("times", [1, 2])
def test_integers_of_a_frame_are_categories_where_weights_say_so(times: int) -> None:
    """60 values in 600 rows are numbers; 20 rows for each, as many weights make, are categories."""
    X = pd.DataFrame({"a": np.arange(600) % 60, "b": np.arange(600) // 60 % 2})
    again = pd.concat([X] * times)
    found = as_table(X, sample_weight=np.full(600, times))
    assert found.families == as_table(again).families
    assert found.families[0] == ("gaussian" if times == 1 else "categorical")
