"""Columns by which variables are coloured, in every form that they may have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from latenttree.errors import DataError
from latenttree.page.columns import map_column, read_columns

NAMES = ["a", "b", "c", "d"]
GROUPS = {"a": "x", "c": "y", "d": "x"}
FRAME = pd.DataFrame({"group": ["x", "y", "x"], "mean": [0.5, 1.5, np.nan]}, index=["a", "c", "d"])
KEYED = {"who": ["a", "c", "d"], "group": ["x", "y", "x"], "mean": [0.5, 1.5, None]}


@pytest.mark.parametrize(
    "given",
    [
        GROUPS,
        pd.Series(GROUPS),
        pd.Series(GROUPS).astype("category"),
        ["x", None, "y", "x"],
        np.array(["x", None, "y", "x"], dtype=object),
        pl.Series(["x", None, "y", "x"]),
    ],
)
def test_one_column(given: Any) -> None:
    (column,) = read_columns(given, NAMES)
    assert (column.kind, column.labels, column.values) == ("labels", ["x", "y"], [0, None, 1, 0])


@pytest.mark.parametrize(
    "given",
    [
        FRAME,
        FRAME.reset_index(),
        pd.DataFrame(KEYED),
        pl.DataFrame(KEYED),
        pa.table(KEYED),
        {"group": GROUPS, "mean": {"a": 0.5, "c": 1.5}},
        {"group": ["x", None, "y", "x"], "mean": pd.Series({"a": 0.5, "c": 1.5})},
    ],
)
def test_several_columns(given: Any) -> None:
    group, mean = read_columns(given, NAMES)
    assert (group.name, group.values) == ("group", [0, None, 1, 0])
    assert (mean.name, mean.kind, mean.range) == ("mean", "numbers", (0.5, 1.5))
    assert mean.values == [0.5, None, 1.5, None]


def test_few_whole_numbers_are_labels_in_their_order() -> None:
    assert map_column("factor", [10, 2, 2, None]).labels == ["2", "10"]
    assert map_column("count", list(range(13))).kind == "numbers"
    assert map_column("flag", [True, False, True, True]).labels == ["True", "False"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"z": 1}, "has no value for any variable; it has values for 'z'"),
        ([1, 2], "columns has 2 values for 4 variables"),
        (3, "columns is 3"),
        (pd.DataFrame({"a": ["z"]}), "has no value for any variable"),
    ],
)
def test_what_does_not_fit_the_variables_is_refused(given: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_columns(given, NAMES)
