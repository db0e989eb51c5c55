"""For each format of files: memory that reading one at once would take, and the sizes of its table,
both known before the file is read."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from latenttree.data.files.csv_batches import rows_of_csv
from latenttree.data.files.docword import Lines
from latenttree.data.files.npy import Npz, is_sparse, opened_npy
from latenttree.data.files.parquet import parquet_columns, parquet_file
from latenttree.data.files.sparse_npz import shape_of
from latenttree.data.files.text import suffix_of
from latenttree.data.table import Table

_TEXT_TIMES, _ARRAY_TIMES, _SPARSE_TIMES = 6, 3, 6
"""Bytes in memory for a byte of a file that is read at once: rough upper estimates."""

_COMPRESSED = 4  # of text

_PREVIEW_ROWS = 32  # rows of text

COLUMN_BYTES = 24
"""Bytes for each value of a column while it is coded."""


# ---- the sizes that an input declares ------------------------------------------------------


class Sizes(NamedTuple):
    """Samples and variables of an input; stored values of sparse samples, None where samples are
    dense; bytes of memory that a copy of the input takes, 0 where it may lie in a scratch file."""

    n_samples: int
    n_vars: int
    n_stored: int | None = None
    n_copied: int = 0


def sizes_of_table(table: Table) -> Sizes:
    """The sizes of what is read already: nothing is copied."""
    return Sizes(table.n_samples, table.n_vars, table.n_stored)


def sizes_of_csv(path: Path, delimiter: str = ",") -> Sizes:
    """From the first lines of a .csv: rows are counted where these are all, else estimated, low
    enough if other lines are at most twice as long."""
    with rows_of_csv(path, delimiter) as (header, rows):
        lengths = [sum(map(len, row)) + len(row) for row in islice(rows, _PREVIEW_ROWS)]
    n = len(lengths)
    if n == _PREVIEW_ROWS:
        n = max(n, n * path.stat().st_size // (2 * sum(lengths)))
    return Sizes(n, len(header))


def sizes_of_parquet(path: Path, delimiter: str = ",") -> Sizes:
    """From the footer of a .parquet."""
    with parquet_file(path) as file:
        return Sizes(file.metadata.num_rows, len(parquet_columns(file)))


def sizes_of_npy(path: Path, delimiter: str = ",") -> Sizes:
    """From the header of a .npy."""
    with opened_npy(path) as (_, header):
        n, p = header.shape
    return Sizes(n, p)


def sizes_of_npz(path: Path, delimiter: str = ",") -> Sizes:
    """From the headers of the arrays of an .npz."""
    archive = Npz(path)
    sparse = is_sparse(archive.names)
    with archive.opened("data" if sparse else archive.only()) as (_, header):
        if not sparse:
            n, p = header.shape
            return Sizes(n, p)
    return Sizes(*shape_of(archive), header.n_values)


def sizes_of_docword(path: Path, delimiter: str = ",") -> Sizes:
    """From the first three lines of a docword file."""
    lines = Lines(path)
    n, p, stored = (lines.header(name) for name in ("D", "W", "NNZ"))
    return Sizes(n, p, stored)


# ---- memory that reading at once takes ------------------------------------------------------


def memory_of_text(path: Path) -> int:
    """Bytes, roughly, that reading a text file at once takes."""
    compressed = suffix_of(path) != path.suffix.lower()
    return path.stat().st_size * _TEXT_TIMES * (_COMPRESSED if compressed else 1)


def memory_of_npy(path: Path) -> int:
    """Bytes, roughly, that reading a .npy at once takes."""
    return path.stat().st_size * _ARRAY_TIMES + _of_column(path, sizes_of_npy)


def memory_of_npz(path: Path) -> int:
    """Bytes, roughly, that reading an .npz at once takes."""
    try:
        with zipfile.ZipFile(path) as archive:
            sizes = {info.filename: info.file_size for info in archive.infolist()}
    except (zipfile.BadZipFile, OSError):  # told where it is read
        return 0
    times = _SPARSE_TIMES if "shape.npy" in sizes else _ARRAY_TIMES
    return sum(sizes.values()) * times + _of_column(path, sizes_of_npz)


def memory_of_parquet(path: Path) -> int:
    """Bytes, roughly, that reading a .parquet at once takes: values take 8, texts 60; three times
    over."""
    with parquet_file(path) as file:
        widths = [60 if re.search("string|binary", str(t)) else 8 for t in file.schema_arrow.types]
        return int(3 * file.metadata.num_rows * sum(widths))


def _of_column(path: Path, sizes_of_file: Callable[[Path], Sizes]) -> int:
    """Bytes that one column of an array takes while it is coded."""
    with suppress(Exception):  # what is wrong with a file is told where it is read
        sizes = sizes_of_file(path)
        return 0 if sizes.n_stored is not None else COLUMN_BYTES * sizes.n_samples
    return 0
