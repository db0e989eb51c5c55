"""Families that do not go with their values, and numbers that are none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from tests.data.families import array, codes_of, rng

from latenttree.data import (
    CODED,
    DataError,
    as_table,
    check_identifiers,
    check_n_states,
)

REALS = {"age": np.array([0.5, 1.5, 2.25, 3.0]), "code": np.array([0, 1, 1, 0])}
TEXT = {"t": np.array(["a", "b", "a"])}
COUNTS = np.array([[1, 2], [0, 3], [4, 0]])

BAD: dict[str, tuple[Any, dict[str, Any], str]] = {
    "unknown family": (
        REALS,
        {"family": "gausian"},
        r"family 'gausian' is unknown \(did you mean 'gaussian'\?\); choose one of \['auto', 'cat",
    ),
    "unknown family of a column": (
        REALS,
        {"family": {"age": "normal"}},
        "family 'normal' of column 'age' is unknown.*choose one of",
    ),
    "family of no column": (
        REALS,
        {"family": {"agee": "gaussian"}},
        r"'agee', which the data do not have \(did you mean 'age'\?\); the columns are 'age', 'co",
    ),
    "family of a strange type": (REALS, {"family": 3}, "family=3 is neither a name"),
    "family None": (REALS, {"family": {"age": None}}, "family None of column 'age' is unknown"),
    "numbers of text": (
        TEXT,
        {"family": "gaussian"},
        r"'gaussian' needs numbers, but column 't' holds str values \(first 'a'\)",
    ),
    "counts of text": (TEXT, {"family": "poisson"}, "'poisson' needs numbers, but column 't'"),
    "negative count": (
        {"k": np.array([3, -2, 1])},
        {"family": "poisson"},
        "negative count -2 at row 1, column 'k': family 'poisson' holds whole numbers",
    ),
    "negative count after a gap": (
        {"k": np.array([np.nan, 3, -2, 1])},
        {"family": "poisson"},
        "negative count -2 at row 2, column 'k'",
    ),
    "half a count": (REALS, {"family": {"age": "poisson"}}, r"no whole number, 0.5 at row 0"),
    "negative count in a bag": (
        [COUNTS - 1, TEXT["t"]],
        {"family": {"x0": "multinomial"}},
        r"negative count -1 at row 1, column 'x0\[0\]': family 'multinomial'",
    ),
    "half a count in a block": (
        [COUNTS * 0.5, TEXT["t"]],
        {"family": {"x0": "poisson"}},
        r"no whole number, 0.5 at row 0, column 'x0\[0\]'",
    ),
    "half a count in a sparse group": (
        sparse.csr_array(COUNTS * 0.5),
        {"groups": ["u", "u"], "family": "multinomial"},
        "no whole number, 0.5 at row 0, column 'x0'",
    ),
    "counts are not codes": (
        [COUNTS, TEXT["t"]],
        {"family": {"x0": "multihot"}},
        r"value 2 at row 0, column 'x0\[1\]': family 'multihot' holds codes",
    ),
    "a block that is not one-hot": (
        [COUNTS, TEXT["t"]],
        {"family": {"x0": "categorical"}},
        "row 0 of block 'x0' is not one-hot",
    ),
    "a bag of one": (
        [COUNTS[:, :1], TEXT["t"]],
        {"family": {"x0": "multinomial"}},
        "use 'poisson'",
    ),
    "a binary block": ([COUNTS], {"family": "binary"}, "'multihot' reads it as a group"),
    "a binary column of three values": (
        {"k": np.array([0, 1, 2])},
        {"family": "binary"},
        r"allows two values, but it has 3 \(0, 1, 2, ...\)",
    ),
    "a bag of a column": (REALS, {"family": "multinomial"}, "'age' is a single one; pass a dict"),
    "full covariance of a sparse block": (
        [sparse.csr_array(COUNTS), TEXT["t"]],
        {"family": {"x0": "gaussian_full"}},
        "'gaussian_full' needs a dense block, but 'x0' is sparse",
    ),
    "numbers of a sparse matrix": (
        sparse.csr_array(COUNTS),
        {"family": "poisson"},
        r"'poisson': a sparse matrix without groups is read as binary variables.*X.toarray\(\)",
    ),
    "negative in a sparse block": (
        [sparse.csr_array(COUNTS - 1), TEXT["t"]],
        {},
        r"negative value -1 at row 1, column 'x0\[0\]'",
    ),
    "a coordinate that is always missing": (
        [np.array([[1.5, np.nan], [2.5, np.nan]])],
        {},
        r"column 'x0\[1\]' is missing .* in all 2 rows",
    ),
    "a bag that is always empty": (
        [np.zeros((3, 2)), TEXT["t"]],
        {"family": {"x0": "multinomial"}},
        "'x0' is missing .* in all 3 rows",
    ),
    "the same shares in every bag": (
        [np.outer([1, 2, 3], [2, 4]), TEXT["t"]],
        {},
        r"'x0' has one value \(\[0.333333 0.666667\]\)",
    ),
    "infinity in a block": ([np.array([[0.5], [np.inf]])], {}, r"inf.* row 1, column 'x0\[0\]'"),
    "text as scores": (TEXT, {"scores": True}, r"'t' holds text \(first 'a'\).*hidden='gaussian'"),
    "unordered labels as scores": (
        pd.DataFrame({"c": pd.Categorical(["u", "v"])}),
        {"scores": True},
        "'c' holds unordered labels",
    ),
    "categories as scores": (
        REALS,
        {"scores": True, "family": {"code": "categorical"}},
        "family 'categorical' of 'code' does not go with hidden='gaussian'",
    ),
    "negative codes": (
        {"k": np.array([0, -1])},
        {},
        r"code -1 at row 1.*NaN or None.*family=\{'k': 'gaussian'\}",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(case: str) -> None:
    data, options, match = BAD[case]
    with pytest.raises(DataError, match=match):
        as_table(data, **options)


def test_a_table_keeps_its_families() -> None:
    table = as_table(REALS)
    assert as_table(table) is table
    with pytest.raises(DataError, match="families; pass it alone"):
        as_table(table, family={"age": "gaussian"})


def test_labels_of_numbers_may_be_numbers() -> None:
    frame = pd.DataFrame({"c": pd.Categorical([2.5, -1.0, 2.5, None])})
    assert as_table(frame).families == ("categorical",)
    np.testing.assert_array_equal(
        array(as_table(frame, family="gaussian"), 0), [2.5, -1, 2.5, np.nan]
    )


def test_identifiers_are_categories() -> None:
    n = 50
    frame = pd.DataFrame({"id": np.arange(n), "y": codes_of(n)})
    with pytest.raises(DataError, match=r"'id' has 50 different values in 50 rows"):
        check_identifiers(as_table(frame))
    check_identifiers(as_table(frame, family={"id": "gaussian"}))
    with pytest.raises(DataError, match=r"'id' has 50 .*pass family={'id': 'gaussian'}"):
        check_identifiers(as_table(frame, family={"id": "ordinal"}))
    check_identifiers(as_table(frame.assign(id=rng().normal(size=n))))
    gappy = frame.assign(id=[f"row {i}" if i % 2 else None for i in range(n)])
    with pytest.raises(DataError, match=r"'id' has 25 different values in 25 rows"):
        check_identifiers(as_table(gappy))
    block = {"b": rng().normal(size=(n, 2)), "id": np.arange(n).astype(str)}
    with pytest.raises(DataError, match=r"'id' has 50 different"):
        check_identifiers(as_table(block))


def test_n_states_of_numbers() -> None:
    x = rng().normal(size=(100, 2))
    table = as_table(pd.DataFrame({"x": x[:, 0], "y": x[:, 1] > 0}), family={"y": "categorical"})
    with pytest.raises(DataError, match="variable 'y' has 2 categories, fewer than n_states=3"):
        check_n_states(table, 3)
    with pytest.raises(DataError, match=r"2 variables .* 'x0' has 4 bins of different values"):
        check_n_states(as_table(x), 5)
    assert check_n_states(as_table(x), 4) == 4


@pytest.mark.parametrize("family", [None, *CODED])
def test_polars_decimals(family: str | None) -> None:
    column = pl.Series(["0.5", None, "2.25"]).cast(pl.Decimal(scale=2))
    table = as_table(pl.DataFrame({"x": column}), family=family or "auto")
    read_as = "categorical" if family == "binary" else family
    assert table.families == (read_as or "gaussian",)
    assert table.codes[1, 0] == -1  # type: ignore[index]
