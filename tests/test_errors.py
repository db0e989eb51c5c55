"""Errors: their text is made of their fields, and both change together."""

from __future__ import annotations

import pytest

from latenttree.errors import DataError, Option, Place, Text


def wrong_value(row: int) -> DataError:
    return DataError(
        Text(f"value -1 at row {row}, ", Option("family")),
        Text("pass ", Option("drop_constant", True)),
        value=-1,
        row=row,
        column="age",
    )


def test_text_and_fields() -> None:
    error = wrong_value(3)
    assert str(error) == "value -1 at row 3, family; pass drop_constant=True"
    assert error.place == Place(column="age", row=3)
    assert error.options == (Option("family"), Option("drop_constant", True))
    assert str(DataError("what alone")) == "what alone"


def test_a_context_adds_what_was_not_known() -> None:
    error = wrong_value(3).within("data.csv", path="folder/data.csv", row=9, line=5)
    assert error.place == Place(column="age", row=3, path="folder/data.csv", line=5)
    assert str(error).startswith("data.csv: value -1 at row 3")
    assert len(error.options) == 2


@pytest.mark.parametrize("row", [0, 1, 11])
def test_rows_are_renumbered_in_the_text_and_the_place(row: int) -> None:
    rows = [100 + i for i in range(12)]
    error = wrong_value(row).renumber(rows)
    assert error.place == Place(column="age", row=100 + row)
    assert str(error) == f"value -1 at row {100 + row}, family; pass drop_constant=True"
    assert len(error.options) == 2


def test_an_error_without_a_row_keeps_its_text() -> None:
    error = DataError("column 'row 3' has one value in all 5 rows", column="row 3")
    assert str(error.renumber([7] * 9)) == "column 'row 3' has one value in all 5 rows"
