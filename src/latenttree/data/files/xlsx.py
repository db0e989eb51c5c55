"""Sheets of .xlsx workbooks, read by openpyxl."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from latenttree.data.checks import resolve_names
from latenttree.data.files.boundary import reading
from latenttree.data.files.csv_cells import MISSING_CELLS
from latenttree.errors import DataError


def xlsx_frame(path: Path) -> Any:
    """The first sheet of a workbook as pyarrow has it: a row of names, then a row for each sample.

    Formulas have the values that were saved with them. Rows without any value are none."""
    import pyarrow as pa

    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise ImportError('.xlsx needs openpyxl; run: pip install "latenttree[xlsx]"') from error
    with reading(path):
        book = load_workbook(path, read_only=True, data_only=True)
        try:
            rows = list(book.worksheets[0].iter_rows(values_only=True))
        finally:
            book.close()
        kept = [row for row in rows if any(cell is not None for cell in row)]
        names = _names(kept[0] if kept else (), path)
        columns = zip(*(row[: len(names)] for row in kept[1:]), strict=True)
        found = {name: _column(cells) for name, cells in zip(names, columns, strict=False)}
        return pa.table(found or {name: pa.array([], pa.string()) for name in names})


def _names(cells: Sequence[Any], path: Path) -> list[str]:
    """The names in the first row."""
    filled = list(cells)
    while filled and filled[-1] is None:
        filled.pop()
    if not filled or not any(isinstance(cell, str) for cell in filled):
        what = f"the first row of the first sheet of {path.name} holds no names"
        raise DataError(what, "add a row with the names of the columns", line=1)
    return resolve_names(None, len(filled), ["" if cell is None else str(cell) for cell in filled])


def _column(cells: Sequence[Any]) -> Any:
    """A column of one type; texts where cells are of several."""
    import pyarrow as pa

    known = [None if isinstance(cell, str) and _is_gap(cell) else cell for cell in cells]
    try:
        return pa.array(known)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError):
        return pa.array([None if cell is None else str(cell) for cell in known])


def _is_gap(text: str) -> bool:
    return text.strip() in MISSING_CELLS
