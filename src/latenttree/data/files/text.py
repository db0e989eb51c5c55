"""Text files, compressed or not, and the cells of a .csv as codes of distinct texts."""

from __future__ import annotations

import bz2
import csv
import gzip
import lzma
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import BufferedReader, FileIO, TextIOWrapper
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import IO, Any, TextIO, cast

import numpy as np
from numpy.typing import NDArray

from latenttree.data.files.boundary import reading
from latenttree.engine.progress import tell_share
from latenttree.errors import DataError, Option, Text

# How a compressed file starts, what opens it, and how its name ends.
_COMPRESSED: dict[bytes, tuple[Callable[..., Any], str]] = {
    b"\x1f\x8b": (gzip.open, ".gz"),
    b"\xfd7zXZ": (lzma.open, ".xz"),
    b"BZh": (bz2.open, ".bz2"),
}
BLOCK_ROWS, BLOCK_CELLS = 1 << 12, 1 << 22
"""Rows and cells held as Python strings at once: few, since the garbage collector visits them all,
and the cache holds them."""
_BUFFER = 1 << 18  # bytes


def suffix_of(path: Path) -> str:
    """The suffix of a name in lower case, without that of a compressed file."""
    endings = {ending for _, ending in _COMPRESSED.values()}
    suffix = path.suffix.lower()
    return Path(path.stem).suffix.lower() if suffix in endings else suffix


def check_file(path: Path) -> None:
    """The path is that of a file with content."""
    if not path.is_file():
        raise DataError(
            f"no file {str(path)!r}",
            f"check the path (current folder: {Path.cwd()})",
            path=str(path),
        )
    if path.stat().st_size == 0:
        raise DataError(
            f"file {str(path)!r} is empty (0 bytes)", "write or download it again", path=str(path)
        )


@contextmanager
def open_text(path: Path) -> Iterator[TextIO]:
    """The text of a UTF-8 file; gzip, xz and bzip2 are recognised by their first bytes."""
    check_file(path)
    with reading(path):
        try:
            with (
                BufferedReader(_Watched(path), _BUFFER) as source,
                TextIOWrapper(_uncompressed(source), encoding="utf-8-sig", newline="") as file,
            ):
                yield file
        except UnicodeDecodeError as error:
            raise DataError(
                f"{path.name} is not UTF-8 text (byte {error.object[error.start]:#x} at "
                f"position {error.start})",
                "save it as UTF-8",
                value=error.object[error.start],
                path=str(path),
            ) from error


class _Watched(FileIO):
    """A file that reports how much of it was read."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._total, self._done = path.stat().st_size, 0
        self._name = path.name

    def readinto(self, buffer: Any) -> int:
        n = super().readinto(buffer) or 0
        self._done += n
        tell_share(self._name, self._done, self._total)
        return n


def _uncompressed(source: Any) -> IO[bytes]:
    start = source.peek(8)
    for mark, (opener, _) in _COMPRESSED.items():
        if start.startswith(mark):
            return cast("IO[bytes]", opener(source, "rb"))
    return cast("IO[bytes]", source)


# ---- comma-separated text -------------------------------------------------------------


def read_cells(
    path: Path,
    choose: Callable[[Sequence[str]], Sequence[int]],
    delimiter: str,
    block_rows: int = BLOCK_ROWS,
) -> tuple[list[str], list[tuple[list[str], NDArray[np.int32]]]]:
    """The names of all columns, and the distinct texts and codes of the chosen ones.

    `choose` maps the names to the numbers of the columns to read; `block_rows` are read at once."""
    with rows_of_csv(path, delimiter) as (header, rows):
        return header, coded_cells(rows, list(choose(header)), block_rows)


@contextmanager
def rows_of_csv(path: Path, delimiter: str) -> Iterator[tuple[list[str], Iterator[list[str]]]]:
    """The names of the columns, and the cells of each row."""
    reader: Any = None
    try:
        with open_text(path) as file:
            reader = csv.reader(file, delimiter=delimiter)
            header = _header(next(reader, []), path, delimiter)
            yield header, _rows(reader, len(header), path)
    except csv.Error as error:
        raise DataError(
            f"{path.name}, line {reader.line_num}: {error}",
            "correct the line",
            path=str(path),
            line=reader.line_num,
        ) from error


def _header(header: list[str], path: Path, delimiter: str) -> list[str]:
    if not header:
        raise DataError(
            f"{path.name} starts with an empty line",
            "its first line must name the columns",
            path=str(path),
            line=1,
        )
    other = next((mark for mark in ";\t|," if mark != delimiter and mark in header[0]), None)
    if len(header) == 1 and other is not None:
        raise DataError(
            f"{path.name} seems to be separated by {other!r}, not {delimiter!r}",
            Text("pass ", Option("delimiter", other)),
            value=delimiter,
            path=str(path),
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
                path=str(path),
                line=reader.line_num,
            )


def coded_cells(
    rows: Iterator[list[str]], wanted: Sequence[int], block_rows: int = BLOCK_ROWS
) -> list[tuple[list[str], NDArray[np.int32]]]:
    """For each wanted column its distinct texts, in order of appearance, and their codes."""
    positions: list[defaultdict[str, int]] = [defaultdict() for _ in wanted]
    for position in positions:
        position.default_factory = position.__len__  # a new text gets the next code
    parts: list[list[NDArray[np.int32]]] = [[np.empty(0, dtype=np.int32)] for _ in wanted]
    step = max(1, min(block_rows, BLOCK_CELLS // max(len(wanted), 1)))
    while block := list(islice(rows, step)):
        for column, position, part in zip(wanted, positions, parts, strict=True):
            codes = map(position.__getitem__, map(itemgetter(column), block))
            part.append(np.fromiter(codes, np.int32, len(block)))
    texts = [list(position) for position in positions]
    return list(zip(texts, map(np.concatenate, parts), strict=True))
