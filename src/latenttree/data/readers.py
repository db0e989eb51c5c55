"""Files to a `Table`: .csv, .npz, .fasta, and the UCI bag of words docword.NAME.txt[.gz]."""

from __future__ import annotations

import re
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.blocks import Groups, canonical_csr
from latenttree.data.checks import check_shape, resolve_names
from latenttree.data.csvtable import read_csv
from latenttree.data.encode import as_table
from latenttree.data.families import AUTO, Family, asked_families
from latenttree.data.fasta import is_fasta, read_fasta
from latenttree.data.table import Table, presence_table
from latenttree.data.textfile import check_file, open_text, suffix_of
from latenttree.errors import DataError

KNOWN = ".csv, .npz, docword.NAME.txt, .fasta (also .csv.gz, docword.NAME.txt.gz, ...)"

_DOCWORD = re.compile(r"docword\.(?P<name>.+)\.txt(\.gz)?$")
_READ = 1 << 20  # bytes read at once


def read_table(
    path: str | Path,
    *,
    vocab: str | Path | None = None,
    min_support: int = 2,
    groups: Groups | None = None,
    names: Sequence[Any] | None = None,
    drop_constant: bool = False,
    delimiter: str = ",",
    family: Family = AUTO,
    scores: bool = False,
    weights: str | None = None,
) -> Table:
    """The table in a file; its name says what it is.

    - ``.csv``, also ``.csv.gz`` and ``.csv.xz``: a line of names, then a line for each sample.
      Columns of integers and of text are categorical, columns with decimals real; empty cells,
      NA, N/A, NaN, null, None and ? are missing values.
    - ``.npz``: a SciPy sparse matrix (`scipy.sparse.save_npz`) or a single 2-D array.
    - ``docword.NAME.txt[.gz]``: lines D, W, NNZ, then "document word count", numbered from
      1; words are present or absent. Names come from ``vocab.NAME.txt`` beside it.
    - ``.fasta``, ``.fa``, ``.fas``: an alignment, see `read_fasta`.

    Parameters
    ----------
    vocab : file with a name on each line, for docword and .npz.
    min_support : of a presence table keep the variables that are present in at least this
        many samples, and absent in at least one; `Table.dropped` has the names of the
        others and `Table.notes` says how many.
    groups, names, drop_constant, family, scores : as in `as_table`. A docword file, and a sparse
        matrix without groups, are presence or absence whatever their counts.
    delimiter : between the cells of a .csv.
    weights : name of the column of a .csv that says how often each row counts.
    """
    path = Path(path)
    check_file(path)
    if min_support < 1:
        raise DataError(f"min_support must be >= 1, got {min_support}")
    if vocab is not None:
        if names is not None:
            raise DataError("vocab= and names= both give names; pass one of them")
        names = read_vocabulary(Path(vocab))
    options = {"drop_constant": drop_constant, "family": family, "scores": scores}
    if _DOCWORD.search(path.name):
        found = _read_docword(path, names, min_support)
        return _presence(found, family, scores)
    if weights is not None and suffix_of(path) != ".csv":
        raise DataError(f"weights= names a column of a .csv, but the file is {path.name!r}")
    if suffix_of(path) == ".csv":
        return read_csv(path, names, delimiter, options, weights)
    if is_fasta(path):
        return _alignment(path, family, scores)
    if path.suffix == ".npz":
        return _read_npz(path, groups, names, min_support, options)
    raise DataError(f"do not know how to read {path.name!r}; known are {KNOWN}")


def read_vocabulary(path: Path) -> list[str]:
    """A name on each line."""
    if not path.is_file():
        raise DataError(f"no vocabulary file {str(path)!r}; check the path")
    if not path.stat().st_size:
        return []
    with open_text(path) as file:
        return file.read().splitlines()


# --- presence tables -----------------------------------------------------------------


def supported_presence(matrix: sparse.csr_array, names: list[str], min_support: int) -> Table:
    """Presence table of the columns with enough support that do not cover every sample."""
    n, p = matrix.shape
    support = np.bincount(matrix.indices, minlength=p)
    rare, everywhere = support < min_support, support == n
    keep = ~(rare | everywhere)
    if not keep.any():
        raise DataError(
            f"none of {p} variables is present in at least min_support={min_support} of {n} "
            f"samples and absent in one (largest support {support.max()}); lower min_support"
        )
    if keep.all():
        return presence_table(names, matrix)
    note = (
        f"kept {keep.sum():,} of {p:,} variables: {rare.sum():,} are present in fewer than "
        f"{min_support} samples, {(everywhere & ~rare).sum():,} in all"
    )
    kept = sparse.csr_array(matrix[:, np.flatnonzero(keep)])
    kept.sort_indices()
    return presence_table(
        [name for name, k in zip(names, keep, strict=True) if k],
        kept,
        dropped=tuple(name for name, k in zip(names, keep, strict=True) if not k),
        notes=(note,),
    )


def _presence(table: Table, family: Family, scores: bool) -> Table:
    """A table of presence or absence, unless its numbers are asked for."""
    asked = asked_families(family, table.names)
    other = next((name for name in asked if name not in (AUTO, "presence", "categorical")), None)
    if other is not None:
        raise DataError(
            f"family {other!r}: this file is read as presence or absence; load the numbers with "
            "another library and pass them as a dense array"
        )
    return as_table(table, scores=scores)


def _alignment(path: Path, family: Family, scores: bool) -> Table:
    if family != AUTO or scores:
        asked = "scores=True" if scores else f"family={family!r}"
        raise DataError(f"the letters of {path.name} are categories; leave out {asked}")
    return read_fasta(path)


# --- UCI bag of words ----------------------------------------------------------------


def _read_docword(path: Path, names: Sequence[Any] | None, min_support: int) -> Table:
    lines = _Lines(path)
    n_docs, n_words, n_entries = (lines.header(name) for name in ("D", "W", "NNZ"))
    check_shape((n_docs, n_words))
    labels = _word_names(path, names, n_words)
    docs, words = _entries(lines, n_docs, n_words, n_entries)
    ones = np.ones(len(docs), dtype=np.float32)
    matrix = sparse.csr_array((ones, (docs - 1, words - 1)), shape=(n_docs, n_words))
    matrix.data[:] = 1  # a pair that the file lists twice was summed
    matrix.sort_indices()
    return supported_presence(matrix, labels, min_support)


def _word_names(path: Path, names: Sequence[Any] | None, n_words: int) -> list[str]:
    found = _DOCWORD.search(path.name)
    assert found is not None
    beside = path.with_name(f"vocab.{found['name']}.txt")
    if names is None:
        if not beside.is_file():
            raise DataError(
                f"no vocabulary {beside.name!r} beside {path.name!r}; put it there, or pass "
                "vocab= or names="
            )
        names = read_vocabulary(beside)
    if len(names) != n_words:
        raise DataError(
            f"the header of {path.name} says W={n_words} words, but the vocabulary has "
            f"{len(names)}; pass the vocabulary that belongs to this file"
        )
    return resolve_names(names, n_words)


def _entries(
    lines: _Lines, n_docs: int, n_words: int, n_entries: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Documents and words, from 1, of the entries with a positive count."""
    parts: list[NDArray[np.int32]] = []
    n_read = 0
    for entries, line in lines.triplets(n_entries):
        n_read += len(entries)
        _check_range(entries[:, 0], n_docs, "document", "D", lines.name, line)
        _check_range(entries[:, 1], n_words, "word", "W", lines.name, line)
        if entries[:, 2].min() < 0:
            bad = int(entries[:, 2].argmin())
            raise DataError(
                f"{lines.name}, line {line + bad}: negative count {entries[bad, 2]}; counts must "
                "be >= 0"
            )
        parts.append(entries[entries[:, 2] > 0, :2].astype(np.int32))
    if n_read != n_entries:
        raise DataError(
            f"the header of {lines.name} says NNZ={n_entries} entries, but the file has {n_read}; "
            "it is cut or its header is wrong: download it again, or correct the third line"
        )
    pairs = np.concatenate(parts) if parts else np.empty((0, 2), dtype=np.int32)
    return pairs[:, 0], pairs[:, 1]


def _check_range(
    values: NDArray[np.int64], high: int, what: str, symbol: str, name: str, line: int
) -> None:
    if values.min() >= 1 and values.max() <= high:
        return
    bad = int(((values < 1) | (values > high)).argmax())
    raise DataError(
        f"{name}, line {line + bad}: {what} {values[bad]} is out of range, the header says "
        f"{symbol}={high} (numbered from 1); correct the header or the line"
    )


class _Lines:
    """Lines of a text file, gzipped or not, in blocks; knows how far it has read."""

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self.n_lines = 0  # lines handed out
        self._bytes = _unzipped(path)
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
                f"{_show(line)}; a docword file starts with the lines D, W and NNZ"
            )
        return int(line)

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
                    f"'document word count', got {_show(line)}; correct or remove the line"
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
                f"{complete} of {n_expected or 'unknown'} rows; download it again"
            ) from error


def _unzipped(path: Path) -> Iterator[bytes]:
    """Pieces of a file, decompressed where it starts with the mark of gzip."""
    with path.open("rb") as file:
        piece = file.read(_READ)
        if piece[:2] != b"\x1f\x8b":
            while piece:
                yield piece
                piece = file.read(_READ)
            return
        stream = zlib.decompressobj(wbits=31)
        while piece:
            if stream.eof:  # a gzip file may have several members
                stream = zlib.decompressobj(wbits=31)
            if text := stream.decompress(piece):
                yield text
            piece = stream.unused_data or file.read(_READ)
        if not stream.eof:
            raise EOFError("no end mark")


def _integers(block: bytes) -> NDArray[np.int64] | None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # NumPy < 2.3 warns, later raises
        try:
            return np.fromstring(block, dtype=np.int64, sep=" ")
        except (ValueError, DeprecationWarning):
            return None


def _show(line: bytes) -> str:
    text = line[:60].decode("utf-8", "replace")
    return repr(text + ("..." if len(line) > 60 else ""))


# --- NumPy and SciPy archives --------------------------------------------------------


def _read_npz(
    path: Path,
    groups: Groups | None,
    names: Sequence[Any] | None,
    min_support: int,
    options: Mapping[str, Any],
) -> Table:
    content = _load_npz(path)
    if not sparse.issparse(content) or groups is not None or options["scores"]:
        return as_table(content, groups=groups, names=names, **options)
    check_shape(content.shape)
    labels = resolve_names(names, content.shape[1])
    matrix = canonical_csr(content, labels)
    matrix = sparse.csr_array(
        (np.ones(matrix.nnz, dtype=np.float32), matrix.indices, matrix.indptr), shape=matrix.shape
    )
    found = supported_presence(matrix, labels, min_support)
    return _presence(found, options["family"], False)


def _load_npz(path: Path) -> Any:
    try:
        with np.load(path, allow_pickle=False) as archive:
            found = list(archive.files)
            if "format" in found and "shape" in found:
                return sparse.load_npz(path)
            if len(found) != 1:
                raise DataError(
                    f"{path.name} has {len(found)} arrays ({', '.join(found[:5])}); it must hold "
                    "one array, or a sparse matrix written by scipy.sparse.save_npz"
                )
            return archive[found[0]]
    except DataError:
        raise
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(
            f"cannot read {path.name}: {error}; it is cut, not an .npz archive, or holds Python "
            "objects: write it again with numpy.savez or scipy.sparse.save_npz"
        ) from error
