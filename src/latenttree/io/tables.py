"""Trees and models as tables: edges, and the entries of all conditional distributions."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import BytesIO, StringIO
from itertools import count
from typing import Any

import numpy as np

from latenttree.errors import DataError
from latenttree.io.exported import Exported, distributions


def edge_columns(exported: Exported) -> dict[str, list[Any]]:
    """A row for each edge: both ends, the parent first where there is a model, its length, its sign
    (null: none) and its support (null: unknown)."""
    tree, model = exported.tree, exported.model
    ends = tree.edges
    if model is not None:
        turned = model.parents[ends[:, 0]] == ends[:, 1]
        ends = np.where(turned[:, None], ends[:, ::-1], ends)
    support = np.full(tree.n_edges, np.nan) if exported.support is None else exported.support
    return {
        "node_a": [tree.names[v] for v in ends[:, 0].tolist()],
        "node_b": [tree.names[v] for v in ends[:, 1].tolist()],
        "length": tree.lengths.tolist(),
        "sign": [sign or None for sign in tree.signs.tolist()],
        "support": [None if x != x else x for x in support.tolist()],
    }


def conditional_columns(exported: Exported) -> dict[str, list[Any]]:
    """A row for each entry of each conditional distribution: `quantity` is "probability" of `label`
    given state `parent_state`, or "mean", "variance", "loading" or "noise" of a coordinate."""
    columns: dict[str, list[Any]] = {
        name: [] for name in ("node", "label", "parent", "parent_state", "quantity", "value")
    }
    for record in distributions(exported):
        labels = list(map(str, record["labels"]))
        for name in ("probabilities", "mean", "variance", "loading", "noise"):
            if name not in record:
                continue
            quantity = "probability" if name == "probabilities" else name
            given = record["parent"] is not None and np.ndim(record[name]) == 2
            for (i, j), value in np.ndenumerate(np.asarray(record[name]).reshape(len(labels), -1)):
                state = str(j) if given or quantity == "noise" else None
                row = (record["node"], labels[i], record["parent"], state, quantity, float(value))
                for column, cell in zip(columns.values(), row, strict=True):
                    column.append(cell)
    return columns


def to_parquet(columns: dict[str, list[Any]]) -> bytes:
    """The content of a .parquet file with these columns."""
    import pyarrow as pa
    from pyarrow import parquet

    content = BytesIO()
    parquet.write_table(pa.table(columns), content)
    return content.getvalue()


def to_delimited(columns: dict[str, list[Any]], delimiter: str) -> bytes:
    """The content of a .csv or .tsv file with these columns; None is an empty cell."""
    text = StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue().encode()


MOST_ROWS = (1 << 20) - 1
"""Rows of a sheet below its names."""


class Workbook:
    """An Excel workbook whose sheets are written a few rows at a time, by openpyxl."""

    def __init__(self) -> None:
        try:
            import openpyxl
        except ImportError as error:
            raise ImportError(
                '.xlsx needs openpyxl; run: pip install "latenttree[xlsx]"'
            ) from error
        self._book = openpyxl.Workbook(write_only=True)

    def add(self, title: str, names: Iterable[str]) -> Callable[[Iterable[Sequence[Any]]], None]:
        """A function that appends rows to a new sheet, below these names."""
        sheet, n_rows = self._book.create_sheet(title), count(1)
        sheet.append(list(names))

        def append(rows: Iterable[Sequence[Any]]) -> None:
            for row in rows:
                if next(n_rows) > MOST_ROWS:
                    what = f"an .xlsx holds at most {MOST_ROWS:,} rows"
                    raise DataError(what, "write .csv or .parquet", value=MOST_ROWS + 1)
                sheet.append(row)

        return append

    def save(self, target: Any) -> None:
        """Write the workbook to a path or a binary file."""
        self._book.save(target)


def to_xlsx(tables: Mapping[str, dict[str, list[Any]]]) -> bytes:
    """The content of a workbook with a sheet for each table."""
    content, book = BytesIO(), Workbook()
    for title, columns in tables.items():
        book.add(title, columns)(zip(*columns.values(), strict=True))
    book.save(content)
    return content.getvalue()
