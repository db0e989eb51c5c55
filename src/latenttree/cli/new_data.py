"""New samples from files, read with the schema of a model.

The same files that `latenttree.data.read_table` learns from. The schema decides what a column
holds, only its labels are allowed, and an empty cell is a missing value.
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

from latenttree.cli.excluded_columns import check_excluded, column_of_weights
from latenttree.cli.labels import StateLabels, parse_number
from latenttree.cli.options import NewEvents, TableOptions
from latenttree.cli.training_data import event_delimiter, recorded
from latenttree.data.checks import N_SHOWN, check_shape, listing, resolve_names
from latenttree.data.files import docword
from latenttree.data.files.boundary import reading
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
    from latenttree.estimator import LatentTree

Codes = NDArray[np.int32]
UNKNOWN = -2
MOST_UNKNOWN = 0.1  # share of the occurrences whose codes a model may not know


class UnknownCodes(DataError):
    """Too many events have codes that the model does not know: a command ends with exit code 1."""

    exit_code = 1


@dataclass(frozen=True, eq=False)
class CsvCells:
    """A .csv as it stands: for each column its distinct texts, and the code of each row's text."""

    header: tuple[str, ...]
    texts: Sequence[Sequence[str]]
    codes: Sequence[Codes]

    @property
    def n_samples(self) -> int:
        """Number of rows below the header."""
        return len(self.codes[0])


@dataclass(frozen=True, eq=False)
class NewData:
    """Samples of a file in the codes of a model.

    Attributes
    ----------
    rows : codes and numbers of the samples.
    cells : the texts of a .csv, else None.
    samples : identifiers of the samples of events, else None.
    notes : what was left out.
    weights : (n,) how often each row counts, where asked for.
    """

    rows: Rows
    cells: CsvCells | None = None
    samples: NDArray[Any] | None = None
    notes: tuple[str, ...] = ()
    weights: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return self.rows.n_samples


def read_new_data(
    path: Path,
    model: LatentTree,
    table: TableOptions,
    events: NewEvents | None = None,
    weights: str | None = None,
) -> NewData:
    """The samples of a file; every name and every label must be known to the model.

    `weights` names the column that says how often each row counts.
    """
    check_file(path)
    is_events = events is not None and events.events
    is_csv = suffix_of(path) == ".csv" and not is_events
    if (table.ignore or weights) and not is_csv:
        name = "ignore" if table.ignore else "weights"
        raise DataError(
            f"--{name} names a column of a .csv with a row for each sample",
            "leave it out",
            path=path.name,
            option=name,
        )
    if events is not None and is_events:
        return _read_events(path, model, events, table.separator)
    with reading(path):
        return _read_samples(path, model.schema_, table, weights)


def _read_samples(path: Path, schema: Schema, table: TableOptions, weights: str | None) -> NewData:
    """A row for each sample."""
    if suffix_of(path) == ".csv":
        return _read_csv(path, schema, table, weights)
    if is_fasta(path):
        return NewData(schema.rows(read_fasta(path, learning=False)))
    names = None if table.vocab is None else docword.read_vocabulary(table.vocab)
    if docword.DOCWORD.search(path.name):
        return NewData(_read_docword(path, schema, names))
    if suffix_of(path) in (".npy", ".npz"):
        return NewData(_read_arrays(path, schema, names))
    if suffix_of(path) == ".parquet":
        return NewData(schema.rows(parquet_frame(path)))
    raise DataError(f"do not know how to read {path.name!r}", f"known are {KNOWN}", path=path.name)


# ---- comma-separated text --------------------------------------------------------------


def _read_cells(path: Path, delimiter: str) -> CsvCells:
    header, cells = csv_cells(path, delimiter)
    check_shape((len(cells[0][1]), len(header)), 1)
    names = tuple(resolve_names(None, len(header), header))
    return CsvCells(names, *zip(*cells, strict=True))


def _read_csv(path: Path, schema: Schema, table: TableOptions, weights: str | None) -> NewData:
    cells = _read_cells(path, table.separator)
    check_excluded(cells.header, table.ignored, path.name, schema.input_names)
    excluded, counts = {*table.ignored}, None
    if weights is not None:
        counts = _weights(cells, weights)
        excluded.add(weights)
    _check_names([name for name in cells.header if name not in excluded], schema, path.name)
    return NewData(_rows_of_cells(cells, schema, path.name), cells, weights=counts)


def _weights(cells: CsvCells, name: str) -> NDArray[np.float64]:
    if name not in cells.header:
        raise DataError(
            f"no column {name!r} of weights",
            f"the columns are {listing(cells.header)}",
            value=name,
            option="weights",
        )
    j = cells.header.index(name)
    return column_of_weights(cells.texts[j], cells.codes[j], name)


def _rows_of_cells(cells: CsvCells, schema: Schema, file: str) -> Rows:
    position = {name: j for j, name in enumerate(cells.header)}
    codes = np.full((cells.n_samples, schema.n_vars), MISSING, dtype=schema.code_dtype)
    arrays: dict[int, Any] = {}
    for i, column in enumerate(schema.index.tolist()):
        j = position[schema.columns[column].name]
        if schema.coded[i]:
            labels = StateLabels(schema.labels[i], schema.kind == "sparse_binary")
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
            f"{file} lacks {listing(absent)}",
            f"the model needs all its {len(wanted)} columns, in any order: add a column of empty "
            "cells where nothing is known",
            column=absent[0],
            path=file,
        )
    if unknown:
        options = " ".join(f"--ignore {shlex.quote(name)}" for name in unknown[:N_SHOWN])
        raise DataError(
            f"{file} has columns that the model does not know: {listing(unknown)}",
            f"drop them, or leave them out here: {options}",
            column=unknown[0],
            path=file,
        )


def _column_codes(cells: CsvCells, j: int, labels: StateLabels, file: str) -> NDArray[np.int64]:
    """(n,) codes of a column, -1 where its cell is empty or says that it is missing."""
    code_of_text = np.array([_code(labels, text) for text in cells.texts[j]], dtype=np.int64)
    codes = code_of_text[cells.codes[j]]
    unknown = codes == UNKNOWN
    if unknown.any():
        row = int(unknown.argmax())
        value = cells.texts[j][cells.codes[j][row]]
        raise DataError(
            f"{file}, sample {row + 1}, column {cells.header[j]!r}: the value {value!r} did not "
            f"occur in training, where it was one of {labels.listing()}",
            "use one of these, or leave the cell empty",
            value=value,
            column=cells.header[j],
            row=row,
            path=file,
        )
    return codes


def _code(labels: StateLabels, text: str) -> int:
    code = labels.code(text)
    if code is not None:
        return code
    return MISSING if text.strip() in MISSING_TEXTS else UNKNOWN


def _column_numbers(cells: CsvCells, j: int, schema: Schema, i: int, file: str) -> NDArray[Any]:
    """(n,) numbers of a column, NaN where its cell is empty; labels that stand for ranks stay
    texts, None where empty."""
    name, texts, codes = cells.header[j], cells.texts[j], cells.codes[j]
    if schema.form_of(i) != "vector":
        raise DataError(
            f"{file}: {name!r} is a group of {int(schema.dims[i])} numbers in the model, which a "
            ".csv with a row for each sample does not hold",
            "ask from Python",
            column=name,
            path=file,
        )
    missing = [text.strip() in MISSING_TEXTS for text in texts]
    if schema.ranked(i):
        pairs = zip(texts, missing, strict=True)
        labels = np.array([None if gap else text.strip() for text, gap in pairs], dtype=object)
        return labels[codes]
    pairs = zip(texts, missing, strict=True)
    numbers = [float("nan") if gap else parse_number(text) for text, gap in pairs]
    if None in numbers:
        wrong = numbers.index(None)
        row = int((codes == wrong).argmax())
        raise DataError(
            f"{file}, sample {row + 1}, column {name!r}: {texts[wrong]!r} is no number, as it was "
            "in training",
            "correct it, or leave the cell empty",
            value=texts[wrong],
            column=name,
            row=row,
            path=file,
        )
    return np.asarray(numbers, dtype=np.float64)[codes]


# ---- matrices --------------------------------------------------------------------------


def _read_arrays(path: Path, schema: Schema, names: list[str] | None) -> Rows:
    content = load_arrays(path)
    check_shape(content.shape, 1)
    columns_read = resolve_names(names, content.shape[1])
    if names is None and not {schema.columns[j].name for j in schema.index} <= set(columns_read):
        raise DataError(
            f"{path.name} has no names of variables, but the model has",
            f"pass --vocab FILE with a name on each line for its {content.shape[1]} columns",
            path=path.name,
            option="vocab",
        )
    if sparse.issparse(content):
        return schema.rows(sparse_binary_table(columns_read, sparse.csr_array(content)))
    columns: dict[str, Any] = {name: content[:, j] for j, name in enumerate(columns_read)}
    return schema.rows(columns)


def _read_docword(path: Path, schema: Schema, names: list[str] | None) -> Rows:
    lines = docword.Lines(path)
    n_docs, n_words, n_entries = lines.sizes(1)
    words = docword.word_names(path, names, n_words)
    docs, entries = docword.entries(lines, n_docs, n_words, n_entries)
    ones = np.ones(len(docs), dtype=np.float32)
    matrix = sparse.csr_array((ones, (docs, entries)), shape=(n_docs, n_words))
    return schema.rows(sparse_binary_table(words, matrix))


# ---- events ----------------------------------------------------------------------------


def _read_events(path: Path, model: LatentTree, options: NewEvents, separator: str) -> NewData:
    """Events in the codes of a model; codes that it does not know are counted and left out."""
    from latenttree.data.events.read import read_events
    from latenttree.data.events.report import NothingLeft

    schema = model.schema_
    codes, groups = _codes(schema)
    arguments = options.arguments() | {"delimiter": event_delimiter(separator)}
    try:
        events = read_events(path, codes=codes, **arguments)
    except NothingLeft as error:
        _check_unknown(error.report, model, options)
        raise
    _check_unknown(events.report, model, options)
    if groups is None:
        rows = schema.rows(sparse_binary_table(events.names, events.matrix))
    else:
        blocks = {name: events.matrix[:, columns] for name, columns in groups.items()}
        rows = schema.rows(blocks)
    return NewData(rows, samples=events.samples, notes=events.notes)


def _check_unknown(report: Mapping[str, Any], model: LatentTree, options: NewEvents) -> None:
    """Raise where more than `MOST_UNKNOWN` of the occurrences have codes outside the model."""
    unknown = report["outside_codes"]
    total = unknown["pairs"] + report.get("pairs", 0)
    if options.unknown == "drop" or unknown["pairs"] <= MOST_UNKNOWN * total:
        return
    most = ", ".join(f"{code!r} ({n:,})" for code, n in unknown["examples"].items())
    fitted_with = recorded(model.diagnostics_.messages)
    again = (
        "give --roll-up and --groups again as they were given to fit"
        if fitted_with is None
        else f"the model was fitted with {fitted_with}: give --roll-up and --groups again"
    )
    raise UnknownCodes(
        f"{unknown['pairs']:,} of {total:,} occurrences ({unknown['pairs'] / total:.0%}) have "
        f"codes that the model does not know, most often {most}",
        f"{again}, or go on without them by --unknown drop",
        value=next(iter(unknown["examples"]), None),
    )


def _codes(schema: Schema) -> tuple[list[str], dict[str, slice] | None]:
    """The codes that a model knows, and those of each group; None where it has no groups."""
    if schema.kind == "sparse_binary":
        return list(schema.names), None
    codes: list[str] = []
    groups = {}
    for v, name in enumerate(schema.names):
        levels = schema.labels[v] if schema.coded[v] else schema.columns[schema.index[v]].levels
        is_number = not schema.coded[v] and schema.form_of(v) == "vector"
        if is_number or levels is None or schema.kind != "blocks":
            raise DataError(
                "--events is for models that were learned with --events, of codes that are there "
                f"or not; in this one {name!r} is something else",
                "name a file with a row for each sample",
                node=name,
            )
        groups[name] = slice(len(codes), len(codes) + len(levels))
        codes += [str(level) for level in levels.tolist()]
    return codes, groups
