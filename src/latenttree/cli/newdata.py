"""New samples from files, read with the schema of a model: gaps are allowed, labels are known.

The same files that `latenttree.data.read_table` learns from. There a column decides by itself
what it holds and nothing may be missing; here the model has decided, and an empty cell is a gap.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.cli.aside import check_aside, column_of_weights
from latenttree.cli.inputs import EventOptions, event_delimiter
from latenttree.cli.words import Labels, number
from latenttree.data.checks import N_SHOWN, check_shape, listing, resolve_names
from latenttree.data.files import docword
from latenttree.data.files.boundary import reading as reading_file
from latenttree.data.files.csv_cells import MISSING_TEXTS
from latenttree.data.files.csv_table import csv_cells
from latenttree.data.files.fasta import is_fasta, read_fasta
from latenttree.data.files.parquet import parquet_frame
from latenttree.data.files.sparse_npz import load_arrays
from latenttree.data.files.text import check_file, suffix_of
from latenttree.data.reader import KNOWN
from latenttree.data.schema.lookup import MISSING
from latenttree.data.schema.new_data import Rows
from latenttree.data.table import sparse_binary_table
from latenttree.errors import DataError

if TYPE_CHECKING:
    from latenttree.data import Schema

Codes = NDArray[np.int32]
UNKNOWN = -2
MOST_UNKNOWN = 0.1  # share of the occurrences whose codes a model may not know


class ManyUnknown(DataError):
    """Most likely the events are not coded as those of the fit: ends with a code of its own."""

    exit_code = 1


@dataclass(frozen=True)
class Reading:
    """How a file is read.

    Attributes
    ----------
    vocab : file with names of variables.
    delimiter : between cells.
    ignore : columns that are no variables.
    weights : None, or the column that says how often each row counts.
    events : None, or the options of a table of events.
    drop_unknown : go on with events whose codes the model does not know.
    fitted_with : None, or how the data of the model were read.
    """

    vocab: Path | None = None
    delimiter: str = ","
    ignore: Sequence[str] = ()
    weights: str | None = None
    events: EventOptions | None = None
    drop_unknown: bool = False
    fitted_with: str | None = None


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
    """Samples of a file in the codes of a model; `cells` where the file was a .csv; of events the
    identifiers of the `samples` and `notes` on what was left out; `weights` where asked for."""

    rows: Rows
    cells: Cells | None = None
    samples: NDArray[Any] | None = None
    notes: tuple[str, ...] = ()
    weights: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return self.rows.n_samples


def read_new(path: Path, schema: Schema, reading: Reading) -> NewData:
    """The samples of a file; every name and every label must be known to the schema."""
    check_file(path)
    is_csv = suffix_of(path) == ".csv" and reading.events is None
    if (reading.ignore or reading.weights) and not is_csv:
        option = "--ignore" if reading.ignore else "--weights"
        raise DataError(f"{option} names a column of a .csv with a row for each sample; leave out")
    if reading.events is not None:
        return _read_events(path, schema, reading.events, reading)
    with reading_file(path):
        return _read_samples(path, schema, reading)


def _read_samples(path: Path, schema: Schema, reading: Reading) -> NewData:
    """A row for each sample."""
    if suffix_of(path) == ".csv":
        return _read_csv(path, schema, reading)
    if is_fasta(path):
        return NewData(schema.rows(read_fasta(path, learning=False)))
    names = None if reading.vocab is None else docword.read_vocabulary(reading.vocab)
    if docword.DOCWORD.search(path.name):
        return NewData(_read_docword(path, schema, names))
    if suffix_of(path) in (".npy", ".npz"):
        return NewData(_read_arrays(path, schema, names))
    if suffix_of(path) == ".parquet":
        return NewData(schema.rows(parquet_frame(path)))
    raise DataError(f"do not know how to read {path.name!r}; known are {KNOWN}")


# ---- comma-separated text --------------------------------------------------------------


def read_cells(path: Path, delimiter: str) -> Cells:
    """The texts of a .csv."""
    header, cells = csv_cells(path, delimiter)
    check_shape((len(cells[0][1]), len(header)), 1)
    names = tuple(resolve_names(None, len(header), header))
    return Cells(names, *zip(*cells, strict=True))


def _read_csv(path: Path, schema: Schema, reading: Reading) -> NewData:
    cells = read_cells(path, reading.delimiter)
    check_aside(cells.header, reading.ignore, path.name, schema.input_names)
    aside, weights = {*reading.ignore}, None
    if reading.weights is not None:
        weights = _weights(cells, reading.weights)
        aside.add(reading.weights)
    _check_names([name for name in cells.header if name not in aside], schema, path.name)
    return NewData(_rows_of_cells(cells, schema, path.name), cells, weights=weights)


def _weights(cells: Cells, name: str) -> NDArray[np.float64]:
    if name not in cells.header:
        raise DataError(f"no column {name!r} of weights; the columns are {listing(cells.header)}")
    j = cells.header.index(name)
    return column_of_weights(cells.texts[j], cells.codes[j], name)


def _rows_of_cells(cells: Cells, schema: Schema, file: str) -> Rows:
    position = {name: j for j, name in enumerate(cells.header)}
    codes = np.full((cells.n_samples, schema.n_vars), MISSING, dtype=schema.code_dtype)
    arrays: dict[int, Any] = {}
    for i, column in enumerate(schema.index.tolist()):
        j = position[schema.columns[column].name]
        if schema.coded[i]:
            labels = Labels(schema.labels[i], schema.kind == "sparse_binary")
            codes[:, i] = _column_codes(cells, j, labels, file)
        else:
            arrays[i] = schema.numbers(i, _column_numbers(cells, j, schema, i, file))
    return Rows(len(codes), codes, arrays=arrays, n_vars=schema.n_vars)


def _check_names(header: Sequence[str], schema: Schema, file: str) -> None:
    wanted = [schema.columns[j].name for j in schema.index.tolist()]
    present, known = set(header), set(schema.input_names)
    absent = [name for name in wanted if name not in present]
    unknown = [name for name in header if name not in known]
    if absent:
        raise DataError(
            f"{file} lacks {listing(absent)}; the model needs all its {len(wanted)} columns, in "
            "any order: add a column of empty cells where nothing is known"
        )
    if unknown:
        options = " ".join(f"--ignore {shlex.quote(name)}" for name in unknown[:N_SHOWN])
        raise DataError(
            f"{file} has columns that the model does not know: {listing(unknown)}; drop them, or "
            f"leave them out here: {options}"
        )


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
    return MISSING if text.strip() in MISSING_TEXTS else UNKNOWN


def _column_numbers(cells: Cells, j: int, schema: Schema, i: int, file: str) -> NDArray[Any]:
    """(n,) numbers of a column, NaN where its cell is empty; labels that stand for ranks as they
    are written."""
    name = cells.header[j]
    if schema.form_of(i) != "vector":
        raise DataError(
            f"{file}: {name!r} is a group of {int(schema.dims[i])} numbers in the model, which a "
            ".csv with a row for each sample does not hold; ask from Python"
        )
    lost = [text.strip() in MISSING_TEXTS for text in cells.texts[j]]
    if schema.ranked(i):
        known = zip(cells.texts[j], lost, strict=True)
        labels = np.array([None if gap else text.strip() for text, gap in known], dtype=object)
        return labels[cells.codes[j]]
    found = [
        float("nan") if gap else number(t) for t, gap in zip(cells.texts[j], lost, strict=True)
    ]
    if None in found:
        wrong = found.index(None)
        row = int((cells.codes[j] == wrong).argmax())
        raise DataError(
            f"{file}, sample {row + 1}, column {name!r}: {cells.texts[j][wrong]!r} is no number, "
            "as it was in training; correct it, or leave the cell empty"
        )
    return np.asarray(found, dtype=np.float64)[cells.codes[j]]


# ---- matrices --------------------------------------------------------------------------


def _read_arrays(path: Path, schema: Schema, names: list[str] | None) -> Rows:
    content = load_arrays(path)
    check_shape(content.shape, 1)
    found = resolve_names(names, content.shape[1])
    if names is None and not {schema.columns[j].name for j in schema.index} <= set(found):
        raise DataError(
            f"{path.name} has no names of variables, but the model has; pass --vocab FILE with a "
            f"name on each line for its {content.shape[1]} columns"
        )
    if sparse.issparse(content):
        return schema.rows(sparse_binary_table(found, sparse.csr_array(content)))
    columns: dict[str, Any] = {name: content[:, j] for j, name in enumerate(found)}
    return schema.rows(columns)


def _read_docword(path: Path, schema: Schema, names: list[str] | None) -> Rows:
    lines = docword.Lines(path)
    n_docs, n_words, n_entries = lines.sizes(1)
    words = docword.word_names(path, names, n_words)
    docs, entries = docword.entries(lines, n_docs, n_words, n_entries)
    ones = np.ones(len(docs), dtype=np.float32)
    matrix = sparse.csr_array((ones, (docs, entries)), shape=(n_docs, n_words))
    return schema.rows(sparse_binary_table(words, matrix))


def _read_events(path: Path, schema: Schema, events: EventOptions, reading: Reading) -> NewData:
    """Events in the codes of a model; codes that it does not know are counted and left out."""
    from latenttree.data.events.read import read_events
    from latenttree.data.events.report import NothingLeft

    codes, groups = _codes(schema)
    options = events.arguments() | {"delimiter": event_delimiter(reading.delimiter)}
    try:
        found = read_events(path, codes=codes, **options)
    except NothingLeft as error:
        _check_unknown(error.report, reading)
        raise
    _check_unknown(found.report, reading)
    if groups is None:
        rows = schema.rows(sparse_binary_table(found.names, found.matrix))
    else:
        blocks = {name: found.matrix[:, columns] for name, columns in groups.items()}
        rows = schema.rows(blocks)
    return NewData(rows, samples=found.samples, notes=found.notes)


def _check_unknown(report: Mapping[str, Any], reading: Reading) -> None:
    """Most of the occurrences have codes of the model."""
    unknown = report["outside_codes"]
    total = unknown["pairs"] + report.get("pairs", 0)
    if reading.drop_unknown or unknown["pairs"] <= MOST_UNKNOWN * total:
        return
    most = ", ".join(f"{code!r} ({n:,})" for code, n in unknown["examples"].items())
    how = (
        "give --roll-up and --groups again as they were given to fit"
        if reading.fitted_with is None
        else f"the model was fitted with {reading.fitted_with}: give --roll-up and --groups again"
    )
    raise ManyUnknown(
        f"{unknown['pairs']:,} of {total:,} occurrences ({unknown['pairs'] / total:.0%}) have "
        f"codes that the model does not know, most often {most}; {how}, or go on without them by "
        "--unknown drop"
    )


def _codes(schema: Schema) -> tuple[list[str], dict[str, slice] | None]:
    """The codes that a model knows, and those of each group; None where it has no groups."""
    if schema.kind == "sparse_binary":
        return list(schema.names), None
    codes: list[str] = []
    groups = {}
    for v, name in enumerate(schema.names):
        levels = schema.labels[v] if schema.coded[v] else schema.columns[schema.index[v]].levels
        number = not schema.coded[v] and schema.form_of(v) == "vector"
        if number or levels is None or schema.kind != "blocks":
            raise DataError(
                "--events is for models that were learned with --events, of codes that are there "
                f"or not; in this one {name!r} is something else"
            )
        groups[name] = slice(len(codes), len(codes) + len(levels))
        codes += [str(level) for level in levels.tolist()]
    return codes, groups
