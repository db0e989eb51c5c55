"""Parquet files, read by pyarrow: as a whole, or some rows at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from latenttree.data.checks import resolve_names
from latenttree.data.files.boundary import reading

_INDEX = re.compile(r"__index_level_\d+__$")  # what pandas calls the rows' own names


def parquet_file(path: Path) -> Any:
    """The open file, as pyarrow has it; without a buffer, which would hold all that was read."""
    from pyarrow import parquet

    with reading(path):
        return parquet.ParquetFile(path, pre_buffer=False)


def parquet_columns(file: Any) -> list[str]:
    """The columns, all different, but for the names of the rows that pandas writes."""
    names = [name for name in file.schema_arrow.names if not _INDEX.match(name)]
    return resolve_names(None, len(names), names)


def parquet_header(path: Path, delimiter: str = ",") -> list[str]:
    """The columns of the file with this name."""
    with parquet_file(path) as file:
        return parquet_columns(file)


def parquet_batches(path: Path, columns: Sequence[str], n_rows: int) -> Iterator[Any]:
    """Tables of pyarrow with at most `n_rows` rows each."""
    import pyarrow as pa

    with reading(path), parquet_file(path) as file:
        for batch in file.iter_batches(n_rows, columns=list(columns)):
            yield pa.Table.from_batches([batch])


def parquet_frame(path: Path) -> Any:
    """All of a .parquet, as pyarrow has it."""
    with reading(path), parquet_file(path) as file:
        return file.read(columns=parquet_columns(file))
