"""A .csv as batches of texts, parsed by pyarrow; from a row that it refuses on, by Python.

Both parsers agree on every file that pyarrow accepts. Where it stops, Python's either names the
line and what is wrong there, or reads on: pyarrow knows no delimiters outside ASCII, and no quote
that only the end of the file closes. No types are guessed: every cell is text.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from latenttree.data.files.csv_cells import check_header, numbers_in
from latenttree.data.files.text import open_bytes, open_text
from latenttree.errors import DataError, Option, Text

BLOCK_BYTES = 1 << 24
"""Most bytes of text that pyarrow parses at once; it reads 32 times as many ahead."""

SLOW_ROWS = 1 << 12
"""Rows that Python parses at once."""


@contextmanager
def rows_of_csv(path: Path, delimiter: str) -> Iterator[tuple[list[str], Iterator[list[str]]]]:
    """The names of the columns, and the cells of each row, as Python's parser reads them."""
    with open_text(path) as file:
        reader = csv.reader(file, delimiter=delimiter)
        try:
            header = _header(next(reader, []), path, delimiter)
            yield header, _rows(reader, len(header), path)
        except csv.Error as error:
            line = reader.line_num
            raise DataError(
                f"{path.name}, line {line}: {error}", "correct the line", line=line
            ) from error


def _header(header: list[str], path: Path, delimiter: str) -> list[str]:
    if not header:
        raise DataError(
            f"{path.name} starts with an empty line",
            "its first line must name the columns",
            line=1,
        )
    other = next((mark for mark in ";\t|," if mark != delimiter and mark in header[0]), None)
    if len(header) == 1 and other is not None:
        raise DataError(
            f"{path.name} seems to be separated by {other!r}, not {delimiter!r}",
            Text("pass ", Option("delimiter", other)),
            value=delimiter,
            option="delimiter",
        )
    return header


def _rows(reader: Any, width: int, path: Path) -> Iterator[list[str]]:
    for row in reader:
        if len(row) == width:
            yield row
        elif row:  # an empty line is no row
            raise DataError(
                f"{path.name}, line {reader.line_num}: {len(row)} cells where the first line has "
                f"{width}",
                "correct or quote the line",
                value=len(row),
                line=reader.line_num,
            )


def csv_header(path: Path, delimiter: str) -> list[str]:
    """The names in the first line of a .csv; none where that is not valid, which the reader of the
    whole file reports."""
    try:
        with open_text(path) as file:
            return next(csv.reader(file, delimiter=delimiter), [])
    except csv.Error:
        return []


def checked_header(path: Path, delimiter: str) -> list[str]:
    """The same; raises where the first line names no columns."""
    with rows_of_csv(path, delimiter) as (header, _):
        check_header(header, path)
        return header


def csv_batches(
    path: Path, delimiter: str, wanted: Sequence[int], block_bytes: int = BLOCK_BYTES
) -> Iterator[Sequence[Any]]:
    """The wanted columns of some rows at a time: a pyarrow array of texts for each, stored as
    different texts in order of appearance, and the number of each row's."""
    done = 0
    try:
        for batch in _parsed(path, delimiter, wanted, block_bytes):
            yield batch.columns
            done += batch.num_rows
    except DataError:  # whatever pyarrow raised, see `boundary.reading`
        yield from _parsed_slowly(path, delimiter, wanted, done)


def _parsed(path: Path, delimiter: str, wanted: Sequence[int], block_bytes: int) -> Iterator[Any]:
    """Record batches of pyarrow."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    with open_text(path) as file:
        reader = csv.reader(file, delimiter=delimiter)
        names = [str(j) for j in range(len(next(reader, [])))]
        n_lines = reader.line_num
    chosen = [names[j] for j in wanted]
    block = min(block_bytes, BLOCK_BYTES) + 256 * len(names)  # at least one row
    with open_bytes(path) as (source, watched):
        options = (
            arrow_csv.ReadOptions(column_names=names, skip_rows=n_lines, block_size=block),
            arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            arrow_csv.ConvertOptions(
                include_columns=chosen,
                column_types=dict.fromkeys(chosen, pa.dictionary(pa.int32(), pa.string())),
            ),
        )
        with arrow_csv.open_csv(source, *options, pa.system_memory_pool()) as reader:
            for batch in reader:
                watched.tell_share()
                yield batch


def _parsed_slowly(
    path: Path, delimiter: str, wanted: Sequence[int], n_skipped: int
) -> Iterator[Sequence[Any]]:
    """The same without the first rows, by Python's parser."""
    with rows_of_csv(path, delimiter) as (_, rows):
        rest = islice(rows, n_skipped, None)
        while block := list(islice(rest, SLOW_ROWS)):
            yield [text_array([row[j] for row in block]) for j in wanted]


def text_array(texts: Sequence[str]) -> Any:
    """The pyarrow array of some texts, as in `csv_batches`."""
    import pyarrow as pa

    return pa.array(texts, pa.string()).dictionary_encode()


def coded_texts(texts: Any) -> tuple[list[str], Any]:
    """Different texts of such an array, in order of appearance, and the number of each row's."""
    return texts.dictionary.to_pylist(), numbers_in(texts.indices, np.int32)


def joined_texts(parts: Sequence[Any]) -> tuple[list[str], Any]:
    """The same of a column that came in several arrays, at least one."""
    import pyarrow as pa

    joined = pa.chunked_array(parts).unify_dictionaries().chunks
    codes = np.concatenate([numbers_in(chunk.indices, np.int32) for chunk in joined])
    return joined[0].dictionary.to_pylist(), codes
