"""Levels of new data that training did not have."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from latenttree.data import DataError, DataWarning, Schema, as_table

TRAINING = pd.DataFrame(
    {
        "scale": np.resize([1, 2, 3, 4], 40),
        "colour": np.resize(["red", "blue"], 40),
        "order": pd.Categorical.from_codes(np.resize([0, 1, 2], 40), list("lmh"), ordered=True),
    }
)
NEW = pd.DataFrame(
    {
        "scale": [1, 9, 4],
        "colour": ["green", "red", None],
        "order": pd.Categorical(["l", "x", "h"], categories=list("lmhx"), ordered=True),
    }
)


def schema(scores: bool = False, columns: tuple[str, ...] = tuple(TRAINING)) -> Schema:
    X = TRAINING[list(columns)]
    return Schema.of(X, as_table(X, scores=scores))


def test_unseen_levels_are_missing_with_one_warning() -> None:
    own = schema()
    message = r"'scale' \(9\), 'colour' \('green'\), 'order' \('x'\); handle_unknown='error'"
    with pytest.warns(DataWarning, match=message) as found:
        codes = own.encode(NEW, handle_unknown="missing")
    assert len(found) == 1
    assert codes.tolist() == [[0, -1, 0], [-1, 1, -1], [3, -1, 2]]
    with pytest.raises(DataError, match="unseen category 9 at row 1, column 'scale'"):
        own.encode(NEW)
    with pytest.raises(DataError, match=r"handle_unknown='drop' is unknown; choose 'missing'"):
        own.encode(NEW, handle_unknown="drop")  # type: ignore[arg-type]


def test_unseen_ranks_of_a_gaussian_tree_are_missing() -> None:
    own = schema(scores=True, columns=("scale", "order"))
    with pytest.warns(DataWarning, match=r"'order' \('x'\)"):
        rows = own.rows(NEW[["scale", "order"]], handle_unknown="missing")
    np.testing.assert_array_equal(rows.arrays[1], [0, np.nan, 2])


@pytest.mark.parametrize("value", [np.inf, "two"])
def test_other_types_and_infinity_are_errors(value: object) -> None:
    X = NEW.assign(scale=pd.Series([1, value, 4], dtype=object))
    with pytest.raises(DataError, match="row 1, column 'scale'"):
        schema().encode(X, handle_unknown="missing")


@pytest.mark.parametrize("handle_unknown", ["missing", "error"])
def test_fractions_of_a_scale_are_rounded_as_in_training(handle_unknown: str) -> None:
    X = TRAINING[:3].assign(scale=[1.0, 2.6, 4.3])
    with pytest.warns(DataWarning, match="rounded to the nearest level of training: 'scale'"):
        codes = schema().encode(X, handle_unknown=handle_unknown)  # type: ignore[arg-type]
    assert codes[:, 0].tolist() == [0, 2, 3]
