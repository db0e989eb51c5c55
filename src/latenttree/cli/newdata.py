"""New samples from files, read with the schema of a model: gaps are allowed, labels are known.

The same files that `latenttree.data.read_table` learns from. There a column decides by itself
what it holds and nothing may be missing; here the model has decided, and an empty cell is a gap.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.cli.words import Labels
from latenttree.data import readers
from latenttree.data.checks import check_shape, listing, resolve_names
from latenttree.data.lookup import MISSING
from latenttree.data.schema import Rows
from latenttree.data.table import presence_table
from latenttree.errors import DataError

if TYPE_CHECKING:
    from latenttree.data import Schema

Codes = NDArray[np.int32]
UNKNOWN = -2


@dataclass(frozen=True, eq=False)
class Cells:
    """A .csv as it stands: for each column its distinct texts, and which of them each row has."""

    header: tuple[str, ...]
    texts: Sequence[Sequence[str]]
    codes: Sequence[Codes]

    @property
    def n_samples(self) -> int:
        return len(self.codes[0])


@dataclass(frozen=True, eq=False)
class NewData:
    """Samples of a file in the codes of a model; `cells` where the file was a .csv."""

    rows: Rows
    cells: Cells | None = None

    def __len__(self) -> int:
        return self.rows.n_samples


def read_new(path: Path, schema: Schema, vocab: Path | None, delimiter: str) -> NewData:
    """The samples of a file; every name and every label must be known to the schema."""
    if not path.is_file():
        raise DataError(f"no file {str(path)!r}; check the path (current folder: {Path.cwd()})")
    names = None if vocab is None else readers.read_vocabulary(vocab)
    if readers._DOCWORD.search(path.name):
        return NewData(_read_docword(path, schema, names))
    if path.suffix == ".csv":
        cells = read_cells(path, delimiter)
        return NewData(_rows_of_cells(cells, schema, path.name), cells)
    if path.suffix == ".npz":
        return NewData(_read_npz(path, schema, names))
    raise DataError(f"do not know how to read {path.name!r}; known are {readers.KNOWN}")


# ---- comma-separated text --------------------------------------------------------------


def read_cells(path: Path, delimiter: str) -> Cells:
    """The texts of a .csv."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter=delimiter)
            header = readers._csv_header(next(reader, []), path.name, delimiter)
            texts, codes = readers._csv_columns(reader, len(header), path.name)
    except UnicodeDecodeError as error:
        raise readers._not_utf8(path, error) from error
    except csv.Error as error:
        message = f"{path.name}, line {reader.line_num}: {error}; correct the line"
        raise DataError(message) from error
    check_shape((len(codes[0]), len(header)), 1)
    return Cells(tuple(resolve_names(None, len(header), header)), texts, codes)


def _rows_of_cells(cells: Cells, schema: Schema, file: str) -> Rows:
    position = {name: j for j, name in enumerate(cells.header)}
    _check_names(cells.header, schema, file)
    codes = np.empty((cells.n_samples, schema.n_vars), dtype=schema.code_dtype)
    for i, column in enumerate(schema.index.tolist()):
        j = position[schema.columns[column].name]
        labels = Labels(schema.labels[i], schema.kind == "presence")
        codes[:, i] = _column_codes(cells, j, labels, file)
    return Rows(len(codes), codes)


def _check_names(header: Sequence[str], schema: Schema, file: str) -> None:
    wanted = [schema.columns[j].name for j in schema.index.tolist()]
    absent = [name for name in wanted if name not in set(header)]
    unknown = [name for name in header if name not in set(schema.input_names)]
    if absent:
        raise DataError(
            f"{file} lacks {listing(absent)}; the model needs all its {len(wanted)} columns, in "
            "any order: add a column of empty cells where nothing is known"
        )
    if unknown:
        raise DataError(f"{file} has columns that the model does not: {listing(unknown)}; drop")


def _column_codes(cells: Cells, j: int, labels: Labels, file: str) -> NDArray[np.int64]:
    """(n,) codes of a column, -1 where its cell is empty or says that it is missing."""
    table = np.array([_code(labels, text) for text in cells.texts[j]], dtype=np.int64)
    found = table[cells.codes[j]]
    bad = found == UNKNOWN
    if bad.any():
        row = int(bad.argmax())
        raise DataError(
            f"{file}, sample {row + 1}, column {cells.header[j]!r}: the value "
            f"{cells.texts[j][cells.codes[j][row]]!r} did not occur in training, where it was one "
            f"of {labels.listing()}; use one of these, or leave the cell empty"
        )
    return found


def _code(labels: Labels, text: str) -> int:
    code = labels.code(text)
    if code is not None:
        return code
    return MISSING if text.strip() in readers._MISSING else UNKNOWN


# ---- matrices --------------------------------------------------------------------------


def _read_npz(path: Path, schema: Schema, names: list[str] | None) -> Rows:
    content = readers._load_npz(path)
    check_shape(content.shape, 1)
    found = resolve_names(names, content.shape[1])
    if names is None and not {schema.columns[j].name for j in schema.index} <= set(found):
        raise DataError(
            f"{path.name} has no names of variables, but the model has; pass --vocab FILE with a "
            f"name on each line for its {content.shape[1]} columns"
        )
    if sparse.issparse(content):
        return schema.rows(presence_table(found, sparse.csr_array(content)))
    columns: dict[str, Any] = {name: content[:, j] for j, name in enumerate(found)}
    return schema.rows(columns)


def _read_docword(path: Path, schema: Schema, names: list[str] | None) -> Rows:
    lines = readers._Lines(path)
    n_docs, n_words, n_entries = (lines.header(name) for name in ("D", "W", "NNZ"))
    check_shape((n_docs, n_words), 1)
    words = readers._word_names(path, names, n_words)
    docs, entries = readers._entries(lines, n_docs, n_words, n_entries)
    ones = np.ones(len(docs), dtype=np.float32)
    matrix = sparse.csr_array((ones, (docs - 1, entries - 1)), shape=(n_docs, n_words))
    return schema.rows(presence_table(words, matrix))
