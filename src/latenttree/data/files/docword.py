"""The UCI bag of words, docword.NAME.txt[.gz]: lines D, W, NNZ, then "document word count"."""

from __future__ import annotations

import re
import warnings
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.data.checks import check_shape, resolve_names
from latenttree.data.files.text import open_text
from latenttree.data.sparse_checks import check_size
from latenttree.errors import DataError, Option, Phrase, Text

DOCWORD = re.compile(r"docword\.(?P<name>.+)\.txt(\.gz)?$")
READ_BYTES = 1 << 20
"""Bytes of a file that are read at once."""


def read_vocabulary(path: Path) -> list[str]:
    """The names in a file, one on each line."""
    if not path.is_file():
        raise DataError(
            f"no vocabulary file {str(path)!r}", "check the path", path=str(path), option="vocab"
        )
    if not path.stat().st_size:
        return []
    with open_text(path) as file:
        return file.read().splitlines()


def word_names(path: Path, names: Sequence[Any] | None, n_words: int) -> list[str]:
    """The names given, else the lines of `vocab.NAME.txt` beside the file; as many as words."""
    match = DOCWORD.search(path.name)
    assert match is not None
    beside = path.with_name(f"vocab.{match['name']}.txt")
    if names is None:
        if not beside.is_file():
            raise DataError(
                f"no vocabulary {beside.name!r} beside {path.name!r}",
                Text("put it there, or pass ", Option("vocab"), Phrase("or names", " or names")),
                path=str(beside),
                option="vocab",
            )
        names = read_vocabulary(beside)
    if len(names) != n_words:
        raise DataError(
            f"the header of {path.name} says W={n_words} words, but the vocabulary has "
            f"{len(names)}",
            "pass the vocabulary that belongs to this file",
            value=len(names),
            option="vocab",
        )
    return resolve_names(names, n_words)


def entries(
    lines: Lines, n_docs: int, n_words: int, n_entries: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Documents and words, from 0, of all entries with a positive count."""
    empty = np.empty(0, dtype=np.int32)
    parts = [(empty, empty), *entry_blocks(lines, n_docs, n_words, n_entries)]
    docs, words = (np.concatenate(part) for part in zip(*parts, strict=True))
    return docs, words


def entry_blocks(
    lines: Lines, n_docs: int, n_words: int, n_entries: int
) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32]]]:
    """The same in blocks."""
    n_read = 0
    for triplets, line in lines.triplets(n_entries):
        n_read += len(triplets)
        _check_range(triplets[:, 0], n_docs, "document", "D", lines, line)
        _check_range(triplets[:, 1], n_words, "word", "W", lines, line)
        if triplets[:, 2].min() < 0:
            bad = int(triplets[:, 2].argmin())
            raise DataError(
                f"{lines.name}, line {line + bad}: negative count {triplets[bad, 2]}",
                "counts must be >= 0",
                value=int(triplets[bad, 2]),
                line=line + bad,
            )
        some = triplets[:, 2] > 0
        yield (triplets[some, 0] - 1).astype(np.int32), (triplets[some, 1] - 1).astype(np.int32)
    if n_read != n_entries:
        raise DataError(
            f"the header of {lines.name} says NNZ={n_entries} entries, but the file has {n_read}",
            "it is cut or its header is wrong: download it again, or correct the third line",
            value=n_read,
            line=3,
        )


def _check_range(
    values: NDArray[np.int64], high: int, what: str, symbol: str, lines: Lines, line: int
) -> None:
    if values.min() >= 1 and values.max() <= high:
        return
    bad = int(((values < 1) | (values > high)).argmax())
    raise DataError(
        f"{lines.name}, line {line + bad}: {what} {values[bad]} is out of range, the header "
        f"says {symbol}={high} (numbered from 1)",
        "correct the header or the line",
        value=int(values[bad]),
        line=line + bad,
    )


class Lines:
    """Lines of a text file, gzipped or not, in blocks; counts the lines read."""

    def __init__(self, path: Path, read_bytes: int = READ_BYTES) -> None:
        self.name = path.name
        self.n_lines = 0  # lines handed out
        self._bytes = _unzipped(path, read_bytes)
        self._rest = b""

    def header(self, symbol: str) -> int:
        """The next line as one whole number."""
        while b"\n" not in self._rest:
            more = self._read(0)
            if not more:
                break
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        self.n_lines += 1
        if not line.strip().isdigit():
            raise DataError(
                f"{self.name}, line {self.n_lines}: expected the whole number {symbol}, got "
                f"{_text(line)!r}",
                "a docword file starts with the lines D, W and NNZ",
                value=_text(line),
                line=self.n_lines,
            )
        return int(line)

    def sizes(self, n_min: int = 2) -> tuple[int, int, int]:
        """D, W and NNZ, the first three lines; at least `n_min` documents."""
        n_docs, n_words, n_entries = (self.header(name) for name in ("D", "W", "NNZ"))
        check_shape((n_docs, n_words), n_min)
        check_size((n_docs, n_words), n_entries)
        return n_docs, n_words, n_entries

    def triplets(self, n_expected: int) -> Iterator[tuple[NDArray[np.int64], int]]:
        """Blocks of (rows, 3) integers with the line number of their first row."""
        n_read = 0
        while True:
            more = self._read(n_expected, n_read)
            block, newline, rest = (self._rest + more).rpartition(b"\n")
            if not more:  # the end: the last line may lack its newline
                block, newline, rest = self._rest.rstrip(), b"", b""
            self._rest = rest
            if block.strip():
                entries = self._parse(block + newline)
                yield entries, self.n_lines + 1
                n_read += len(entries)
                self.n_lines += len(entries)
            if not more:
                return

    def _parse(self, block: bytes) -> NDArray[np.int64]:
        """(rows, 3) integers. The fast parser reads numbers and does not see lines, so the
        separators are counted too: two spaces on each line."""
        text = np.frombuffer(block, dtype=np.uint8)
        ends = np.flatnonzero(text == ord("\n"))
        spaces = np.cumsum(text == ord(" "), dtype=np.int32)
        n_rows = ends.size + (not block.endswith(b"\n"))
        regular = np.array_equal(spaces[ends], 2 * np.arange(1, ends.size + 1))
        values = _integers(block) if regular and spaces[-1] == 2 * n_rows else None
        if values is None or values.size != 3 * n_rows:
            values = self._parse_slowly(block)
        return values.reshape(-1, 3)

    def _parse_slowly(self, block: bytes) -> NDArray[np.int64]:
        rows = []
        for i, line in enumerate(block.splitlines()):
            try:
                doc, word, count = map(int, line.split())
            except ValueError as error:
                raise DataError(
                    f"{self.name}, line {self.n_lines + 1 + i}: expected three whole numbers "
                    f"'document word count', got {_text(line)!r}",
                    "correct or remove the line",
                    value=_text(line),
                    line=self.n_lines + 1 + i,
                ) from error
            rows.append((doc, word, count))
        return np.asarray(rows, dtype=np.int64).ravel()

    def _read(self, n_expected: int, n_read: int = 0) -> bytes:
        try:
            return next(self._bytes, b"")
        except (EOFError, zlib.error) as error:
            complete = n_read + self._rest.count(b"\n")
            raise DataError(
                f"{self.name} is cut or damaged: the gzip stream ends early ({error}), after "
                f"{complete} of {n_expected or 'unknown'} rows",
                "download it again",
                value=complete,
            ) from error


def _unzipped(path: Path, read_bytes: int) -> Iterator[bytes]:
    """Pieces of a file, decompressed where it starts with the mark of gzip."""
    with path.open("rb") as file:
        piece = file.read(read_bytes)
        if piece[:2] != b"\x1f\x8b":
            while piece:
                yield piece
                piece = file.read(read_bytes)
            return
        stream = zlib.decompressobj(wbits=31)
        while piece:
            if stream.eof:  # a gzip file may have several members
                stream = zlib.decompressobj(wbits=31)
            if text := stream.decompress(piece):
                yield text
            piece = stream.unused_data or file.read(read_bytes)
        if not stream.eof:
            raise EOFError("no end mark")


def _integers(block: bytes) -> NDArray[np.int64] | None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # NumPy < 2.3 warns, later raises
        try:
            return np.fromstring(block, dtype=np.int64, sep=" ")
        except (ValueError, DeprecationWarning):
            return None


def _text(line: bytes) -> str:
    """A line, cut short."""
    return line[:60].decode("utf-8", "replace") + ("..." if len(line) > 60 else "")
