"""Memory that reading a file at once would take, and the size of the table of an input."""

from __future__ import annotations

import os
import re
import zipfile
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from latenttree.data.files.docword import DOCWORD, Lines
from latenttree.data.files.npy import Npz, array_header, is_sparse
from latenttree.data.files.sparse_npz import shape_of
from latenttree.data.files.text import rows_of_csv, suffix_of

_TIMES = {".npy": 3, ".csv": 6, ".tsv": 6, ".txt": 6}
"""Bytes in memory for a byte of a file that is read at once: a rough upper estimate."""

_COMPRESSED = 4  # of text

_PREVIEW_ROWS = 32  # rows of text

COLUMN_BYTES = 24
"""Bytes for each value of a column while it is coded."""


def memory_needed(path: Path) -> int:
    """Bytes that reading a file at once takes, roughly; 0 where it is always read so."""
    size, suffix = path.stat().st_size, suffix_of(path)
    if suffix == ".npz":
        return _of_archive(path)
    if suffix == ".parquet":
        return _of_parquet(path)
    times = _TIMES.get(suffix, 0)
    return size * times * (_COMPRESSED if suffix != path.suffix.lower() else 1) + _of_column(path)


def _of_column(path: Path) -> int:
    """Bytes that one column of an array takes while it is coded."""
    sizes = sizes_of(path) if suffix_of(path) in (".npy", ".npz") else None
    return 0 if sizes is None or sizes.n_stored is not None else COLUMN_BYTES * sizes.n_samples


def _of_archive(path: Path) -> int:
    try:
        with zipfile.ZipFile(path) as archive:
            sizes = {info.filename: info.file_size for info in archive.infolist()}
    except (zipfile.BadZipFile, OSError):  # told where it is read
        return 0
    return sum(sizes.values()) * (6 if "shape.npy" in sizes else 3) + _of_column(path)


def _of_parquet(path: Path) -> int:
    """Values take 8 bytes, texts 60; three times over."""
    from latenttree.data.files.parquet import parquet_file

    with parquet_file(path) as file:
        widths = [60 if re.search("string|binary", str(t)) else 8 for t in file.schema_arrow.types]
        return int(3 * file.metadata.num_rows * sum(widths))


# ---- before anything is read --------------------------------------------------------------


class Sizes(NamedTuple):
    """Samples and variables of an input; stored values of sparse samples, None where samples are
    dense; bytes of memory that a copy of the input takes, 0 where it may lie in a scratch file."""

    n_samples: int
    n_vars: int
    n_stored: int | None = None
    n_copied: int = 0


def sizes_of(X: Any, delimiter: str = ",") -> Sizes | None:
    """The sizes that an input declares, without reading it; None where they are unknown
    or wrong."""
    if isinstance(X, str | os.PathLike):
        with suppress(Exception):  # what is wrong with a file is told where it is read
            return _sizes_of_file(Path(X), delimiter)
        return None
    shape = getattr(X, "shape", None)
    if not isinstance(shape, tuple) or len(shape) != 2:
        return None
    n, p = (int(x) for x in shape)
    stored = getattr(X, "nnz", None)
    if stored is not None:
        return Sizes(n, p, int(stored), 8 * int(stored))
    return Sizes(n, p, None, n * p)


def _sizes_of_file(path: Path, delimiter: str) -> Sizes | None:
    from latenttree.data.files.parquet import parquet_columns, parquet_file

    suffix = suffix_of(path)
    if DOCWORD.search(path.name):
        lines = Lines(path)
        n, p, stored = (lines.header(name) for name in ("D", "W", "NNZ"))
        return Sizes(n, p, stored)
    if suffix == ".npy":
        with path.open("rb") as file:
            n, p = array_header(file, path.stat().st_size).shape
        return Sizes(n, p)
    if suffix == ".npz":
        return _sizes_of_archive(path)
    if suffix == ".parquet":
        with parquet_file(path) as file:
            return Sizes(file.metadata.num_rows, len(parquet_columns(file)))
    return _sizes_of_text(path, delimiter) if suffix == ".csv" else None


def _sizes_of_text(path: Path, delimiter: str) -> Sizes:
    """From the first lines of a .csv: rows are counted where these are all, else estimated, low
    enough if other lines are at most twice as long."""
    with rows_of_csv(path, delimiter) as (header, rows):
        lengths = [sum(map(len, row)) + len(row) for row in islice(rows, _PREVIEW_ROWS)]
    n = len(lengths)
    if n == _PREVIEW_ROWS:
        n = max(n, n * path.stat().st_size // (2 * sum(lengths)))
    return Sizes(n, len(header))


def _sizes_of_archive(path: Path) -> Sizes | None:
    archive = Npz(path)
    sparse = is_sparse(archive.names)
    with archive.opened("data" if sparse else archive.only()) as (_, header):
        if not sparse:
            n, p = header.shape
            return Sizes(n, p)
    return Sizes(*shape_of(archive), header.n_values)
