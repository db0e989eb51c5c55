"""Columns of a .csv that are no variables: numbers of rows, identifiers, weights."""

from __future__ import annotations

import csv
import shlex
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from latenttree.data.checks import listing
from latenttree.data.files.csv_cells import number_of
from latenttree.data.files.parquet import parquet_columns, parquet_file
from latenttree.data.files.text import open_text, suffix_of
from latenttree.data.weights import check_weights
from latenttree.errors import DataError


def header_of(path: Path, delimiter: str) -> list[str]:
    """The names of the columns of a .csv or .parquet; empty where the first line is not valid,
    which the reader of the whole file reports."""
    if suffix_of(path) == ".parquet":
        with parquet_file(path) as parquet:
            return parquet_columns(parquet)
    try:
        with open_text(path) as file:
            return next(csv.reader(file, delimiter=delimiter), [])
    except csv.Error:
        return []


def check_excluded(
    header: Sequence[str], ignore: Collection[str], file: str, known: Collection[str] = ()
) -> None:
    """The ignored columns exist, and a first column without a name is one of them or `known`."""
    absent = [name for name in ignore if name not in header]
    if absent:
        raise DataError(
            f"--ignore {shlex.quote(absent[0])}: {file} has no such column",
            f"the columns are {listing(header)}",
            value=absent[0],
            path=file,
            option="ignore",
        )
    if len(header) > 1 and not header[0].strip() and header[0] not in {*ignore, *known}:
        raise DataError(
            f"{file}: the first column has no name and numbers the rows",
            f"write the table with index=False, or pass --ignore {shlex.quote(header[0])} (if it "
            "is a variable, name it)",
            column=header[0],
            path=file,
        )


def column_of_weights(
    texts: Sequence[str], codes: NDArray[np.int32], name: str
) -> NDArray[np.float64]:
    """(n,) how often each row counts, from the distinct texts of a column and the code of each
    row."""
    numbers = [number_of(text.strip()) for text in texts]
    if None in numbers:
        wrong = numbers.index(None)
        row = int((codes == wrong).argmax())
        raise DataError(
            f"column {name!r} of weights has {texts[wrong]!r} in row {row}, which is no number",
            "correct it",
            value=texts[wrong],
            column=name,
            row=row,
        )
    return check_weights(np.asarray(numbers, dtype=np.float64)[codes], len(codes))
