"""Tables that are written a range of samples at a time, and appear whole or not at all."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.cli.new_samples import NewData
from latenttree.engine.arrays import Floats
from latenttree.errors import DataError
from latenttree.io.atomic import check_target, replacing
from latenttree.io.tables import Workbook

Columns = Sequence[NDArray[Any]]
Write = Callable[[Columns], None]

DIGITS = 9  # of numbers in a text
TABLES = (".csv", ".tsv", ".parquet", ".xlsx")
NUMBER_TABLES = (*TABLES, ".npz")


def check_output(path: Path, suffixes: Sequence[str], source: Path | None = None) -> None:
    """Raise, before the work is done, where a table cannot be written."""
    problem = "the name {} does not tell how to write a table"
    check_target(path, suffixes, problem, f"end it in {' or '.join(suffixes)}")
    if source is not None and path.exists() and source.exists() and path.samefile(source):
        raise DataError(f"{path} is the file that is read", "write to another", path=str(path))


def refuse_impossible(log_likelihoods: Floats, start: int = 0) -> None:
    """Raise where a sample, the first of them number `start`, has probability zero."""
    impossible = np.flatnonzero(np.isneginf(log_likelihoods))
    if len(impossible):
        row = start + int(impossible[0])
        raise DataError(
            f"sample {row + 1} has probability zero under the model, so its hidden variables have "
            "no posterior",
            "correct it, or empty the cells that are in doubt",
            row=row,
        )


def identifier_columns(data: NewData, out: Path) -> tuple[list[str], list[NDArray[Any]]]:
    """Names and columns that identify the samples of events, where the file can hold them.

    Samples of other files are known by their order.
    """
    if data.samples is None or out.suffix.lower() == ".npz":
        return [], []
    return ["sample"], [data.samples]


@contextmanager
def table_writer(path: Path, names: Sequence[str]) -> Iterator[Write]:
    """A function that appends rows, given as columns; the suffix of `path` says in which form.

    ``.npz`` holds the arrays ``values`` (n, columns) and ``names``.
    """
    forms: dict[str, Callable[[Path, Sequence[str]], AbstractContextManager[Write]]] = {
        ".csv": partial(_text_writer, ","),
        ".tsv": partial(_text_writer, "\t"),
        ".npz": _npz_writer,
        ".parquet": _parquet_writer,
        ".xlsx": _xlsx_writer,
    }
    with replacing(path) as unfinished, forms[path.suffix.lower()](unfinished, names) as write:
        yield write


@contextmanager
def _text_writer(delimiter: str, path: Path, names: Sequence[str]) -> Iterator[Write]:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerow(names)

        def write(columns: Columns) -> None:
            writer.writerows(zip(*map(_texts, columns), strict=True))

        yield write


def _texts(column: NDArray[Any]) -> Iterator[Any]:
    if column.dtype.kind == "f":
        return (f"{value:.{DIGITS}g}" for value in column.tolist())
    return iter(column.tolist())


@contextmanager
def _npz_writer(path: Path, names: Sequence[str]) -> Iterator[Write]:
    parts: list[NDArray[Any]] = []
    yield lambda columns: parts.append(np.stack(columns, axis=1))
    np.savez_compressed(path, values=np.concatenate(parts), names=np.asarray(names, dtype=np.str_))


@contextmanager
def _parquet_writer(path: Path, names: Sequence[str]) -> Iterator[Write]:
    import pyarrow as arrow
    from pyarrow import parquet

    writers: list[Any] = []

    def write(columns: Columns) -> None:
        table = arrow.table([arrow.array(c.tolist()) for c in columns], names=list(names))
        if not writers:  # the types are those of the first rows
            writers.append(parquet.ParquetWriter(path, table.schema))
        writers[0].write_table(table)

    try:
        yield write
    finally:
        for writer in writers:
            writer.close()


@contextmanager
def _xlsx_writer(path: Path, names: Sequence[str]) -> Iterator[Write]:
    book = Workbook()
    append = book.add("table", names)
    yield lambda columns: append(zip(*(column.tolist() for column in columns), strict=True))
    book.save(path)
