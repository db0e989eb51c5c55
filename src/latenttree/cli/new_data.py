"""New samples from files, read with the schema of a model.

The same files that `latenttree.data.read_table` learns from. The schema decides what a column
holds, an empty cell is a missing value, and other labels than those of training are too, with a
warning, or are refused (``--handle-unknown``).
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from latenttree.cli.options import NewEvents, NewTable
from latenttree.cli.training_data import check_excluded, recorded
from latenttree.data import Schema
from latenttree.data.checks import N_SHOWN, listing
from latenttree.data.files import docword
from latenttree.data.files.boundary import reading
from latenttree.data.files.csv_batches import (
    coded_texts,
    text_array,
)
from latenttree.data.files.csv_cells import Roles, weights_of_texts
from latenttree.data.files.formats import COLUMN_FILES, FileFormat, cell_delimiter, known_format
from latenttree.data.files.standard_input import stored
from latenttree.data.files.text import check_file
from latenttree.data.schema.new_files import CsvCells, read_cells, rows_of_cells
from latenttree.data.schema.rows import Rows
from latenttree.data.schema.unseen import HandleUnknown, Unseen
from latenttree.data.table import Table, sparse_binary_table
from latenttree.data.weights import check_weights
from latenttree.engine.arrays import Floats
from latenttree.errors import DataError

if TYPE_CHECKING:
    from latenttree.estimator import LatentTree

MOST_UNKNOWN = 0.1  # share of the occurrences whose codes a model may not know


class UnknownCodes(DataError):
    """Too many events have codes that the model does not know: a command ends with exit code 1."""

    exit_code = 1


@dataclass(frozen=True, eq=False)
class NewData:
    """Samples of a file in the codes of a model.

    Attributes
    ----------
    rows : codes and numbers of the samples.
    cells : the texts of a .csv, else None.
    frame : the columns of a file like a .parquet, else None.
    samples : identifiers of the samples of events, else None.
    notes : what was left out.
    weights : (n,) how often each row counts, where asked for.
    """

    rows: Rows
    cells: CsvCells | None = None
    frame: Any = None
    samples: NDArray[Any] | None = None
    notes: tuple[str, ...] = ()
    weights: Floats | None = None

    def __len__(self) -> int:
        return self.rows.n_samples

    def texts(self) -> CsvCells | None:
        """The cells of a file with named columns, None of others."""
        return self.cells if self.frame is None else _cells_of_frame(self.frame)


def read_new_data(
    path: Path,
    model: LatentTree,
    table: NewTable,
    events: NewEvents | None = None,
    weights: str | None = None,
) -> NewData:
    """The samples of a file; every name must be known to the model.

    `weights` names the column that says how often each row counts.
    """
    path = stored(path)
    check_file(path)
    is_events = events is not None and events.events
    file_format = None if is_events else known_format(path)
    if (table.ignore or weights) and not (file_format and file_format.has_columns):
        name = "ignore" if table.ignore else "weights"
        what = f"--{name} names a column of a {COLUMN_FILES} with a row for each sample"
        raise DataError(what, "leave it out", path=path.name, option=name)
    if file_format is None:
        assert events is not None
        return _read_events(path, model, events, table.separator)
    roles = Roles(weights, table.ignored)
    with reading(path), roles.naming_weights():
        known = model.handle_unknown if table.handle_unknown is None else table.handle_unknown
        return _read_samples(path, file_format, model.schema_, table, roles, known)


def _read_samples(
    path: Path,
    file_format: FileFormat,
    schema: Schema,
    table: NewTable,
    roles: Roles,
    handle_unknown: HandleUnknown,
) -> NewData:
    """A row for each sample."""
    if file_format.frame is not None:
        return _read_frame(file_format.frame(path), schema, path.name, roles, handle_unknown)
    if file_format.has_columns:
        return _read_csv(
            path, schema, cell_delimiter(path, table.separator), roles, Unseen(handle_unknown)
        )
    assert file_format.samples is not None
    names = None if table.vocab is None else docword.read_vocabulary(table.vocab)
    samples = file_format.samples(path, names)
    if file_format.needs_names and names is None:
        _check_positions(samples.names if isinstance(samples, Table) else samples, schema, path)
    return NewData(schema.rows(samples, handle_unknown=handle_unknown))


def _check_positions(columns: Collection[str], schema: Schema, path: Path) -> None:
    """Raise if the model has names, but the columns of the file are only numbered."""
    if not {schema.columns[j].name for j in schema.index} <= set(columns):
        what = f"{path.name} has no names of variables, but the model has"
        remedy = f"pass --vocab FILE with a name on each line for its {len(columns)} columns"
        raise DataError(what, remedy, path=path.name, option="vocab")


# ---- named columns ---------------------------------------------------------------------


def _variables(header: Sequence[str], schema: Schema, file: str, roles: Roles) -> list[str]:
    """The columns that are variables, which must be those of the model."""
    check_excluded(header, roles.ignore, file, schema.input_names)
    variables = roles.variables(header)
    _check_names(variables, schema, file)
    return variables


def _read_frame(
    frame: Any, schema: Schema, file: str, roles: Roles, handle_unknown: HandleUnknown
) -> NewData:
    """The samples of a pyarrow table."""
    variables, counts = _variables(frame.column_names, schema, file, roles), None
    if roles.weights is not None:
        counts = check_weights(frame.column(roles.weights).to_numpy(), len(frame))
    rows = schema.rows(frame.select(variables), handle_unknown=handle_unknown)
    return NewData(rows, frame=frame, weights=counts)


def _cells_of_frame(frame: Any) -> CsvCells:
    """The texts that a .csv of the same table would have."""

    def text(value: Any) -> str:
        return "" if value is None or value != value else str(value)

    columns = (text_array(list(map(text, column.to_pylist()))) for column in frame.columns)
    return CsvCells(tuple(frame.column_names), *zip(*map(coded_texts, columns), strict=True))


# ---- comma-separated text --------------------------------------------------------------


def _read_csv(path: Path, schema: Schema, delimiter: str, roles: Roles, unseen: Unseen) -> NewData:
    cells = read_cells(path, delimiter)
    _variables(cells.header, schema, path.name, roles)
    counts = None
    if roles.weights is not None:
        j = cells.header.index(roles.weights)
        counts = weights_of_texts(cells.texts[j], cells.codes[j], roles.weights)
        counts = check_weights(counts, cells.n_samples)
    rows = rows_of_cells(cells, schema, path.name, unseen)
    unseen.warn()
    return NewData(rows, cells, weights=counts)


def _check_names(header: Sequence[str], schema: Schema, file: str) -> None:
    wanted = [schema.columns[j].name for j in schema.index.tolist()]
    present, known = set(header), set(schema.input_names)
    absent = [name for name in wanted if name not in present]
    unknown = [name for name in header if name not in known]
    if absent:
        remedy = (
            f"the model needs all its {len(wanted)} columns, in any order: add a column of empty "
            "cells where nothing is known"
        )
        raise DataError(f"{file} lacks {listing(absent)}", remedy, column=absent[0], path=file)
    if unknown:
        options = " ".join(f"--ignore {shlex.quote(name)}" for name in unknown[:N_SHOWN])
        what = f"{file} has columns that the model does not know: {listing(unknown)}"
        remedy = f"drop them, or leave them out here: {options}"
        raise DataError(what, remedy, column=unknown[0], path=file)


# ---- events ----------------------------------------------------------------------------


def _read_events(
    path: Path, model: LatentTree, options: NewEvents, separator: str | None
) -> NewData:
    """Events in the codes of a model; codes that it does not know are counted and left out."""
    from latenttree.data.events.read import read_events  # loads much
    from latenttree.data.events.report import NothingLeft

    schema = model.schema_
    codes, groups = _codes(schema)
    arguments = options.arguments() | {"delimiter": separator}
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
    found = schema.event_codes()
    if found is not None:
        return found
    names = (name for v, name in enumerate(schema.names) if not schema.codes_of(v))
    name = next(names)
    raise DataError(
        "--events is for models that were learned with --events, of codes that are there "
        f"or not; in this one {name!r} is something else",
        "name a file with a row for each sample",
        node=name,
    )
