"""New samples from files, read with the schema of a model.

The same files that `latenttree.data.read_table` learns from. The schema decides what a column
holds, an empty cell is a missing value, and other labels than those of training are too, with a
warning, or are refused (``--handle-unknown``).
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latenttree.cli.new_events import read_new_events
from latenttree.cli.new_samples import NewData
from latenttree.cli.reading_record import NewOptions, remembered
from latenttree.cli.training_data import check_excluded
from latenttree.data import Schema
from latenttree.data.checks import N_SHOWN, listing
from latenttree.data.files import docword
from latenttree.data.files.boundary import reading
from latenttree.data.files.csv_cells import Roles, weights_of_texts
from latenttree.data.files.formats import COLUMN_FILES, FileFormat, cell_delimiter, known_format
from latenttree.data.files.standard_input import stored
from latenttree.data.files.text import check_file, suffix_of
from latenttree.data.schema.new_files import CsvCells, read_cells, rows_of_cells
from latenttree.data.schema.rows import Rows
from latenttree.data.schema.unseen import HandleUnknown, Unseen
from latenttree.data.table import Table
from latenttree.data.weights import check_weights
from latenttree.errors import DataError

if TYPE_CHECKING:
    from latenttree.estimator import LatentTree


def read_new_data(
    path: Path, model: LatentTree, options: NewOptions, unused: Collection[str] = ()
) -> NewData:
    """The samples of a file; every name must be known to the model.

    What the options do not say is as it was in training. Variables that are `unused` are missing
    values.
    """
    path = stored(path)
    check_file(path)
    known = remembered(model.diagnostics_.messages)
    found = options.cells_as_in_training(known, suffix_of(path))
    file_format = None if found.are_events else known_format(path)
    _check_columns(options, file_format, path)
    if file_format is None:
        assert found.events is not None
        data = read_new_events(path, model, found.events, found.table.separator, unused)
    else:
        with reading(path):
            if file_format.header is not None:
                delimiter = cell_delimiter(path, found.table.separator)
                header = file_format.header(path, delimiter) if known else ()
                found = found.columns_as_in_training(known, header)
            data = _Samples(path, model, found, unused).read(file_format)
    return replace(data, notes=(*found.note(options), *data.notes))


def _check_columns(options: NewOptions, file_format: FileFormat | None, path: Path) -> None:
    """Raise where options name columns of a file that has none."""
    if options.table.ignore or options.weights:
        if file_format is not None and file_format.has_columns:
            return
        name = "ignore" if options.table.ignore else "weights"
        what = f"--{name} names a column of a {COLUMN_FILES} with a row for each sample"
        raise DataError(what, "leave it out", path=path.name, option=name)


@dataclass(frozen=True)
class _Samples:
    """Reads a file with a row for each sample."""

    path: Path
    model: LatentTree
    options: NewOptions
    unused: Collection[str]

    @property
    def schema(self) -> Schema:
        """Of the model."""
        return self.model.schema_

    @property
    def roles(self) -> Roles:
        """Columns that are no variables."""
        return Roles(self.options.weights, self.options.table.ignored)

    @property
    def handle_unknown(self) -> HandleUnknown:
        """What becomes of labels that training did not have."""
        return self.options.table.handle_unknown or self.model.handle_unknown

    def read(self, file_format: FileFormat) -> NewData:
        """The samples, by the format of the file."""
        table = self.options.table
        with self.roles.naming_weights():
            if file_format.frame is not None:
                return self._of_frame(file_format.frame(self.path))
            if file_format.has_columns:
                delimiter = cell_delimiter(self.path, table.separator)
                return self._of_cells(read_cells(self.path, delimiter))
        names = None if table.vocab is None else docword.read_vocabulary(table.vocab)
        return NewData(self._rows(self._of_matrix(file_format, names)))

    def _rows(self, X: Any) -> Rows:
        return self.schema.rows(X, unused=self.unused, handle_unknown=self.handle_unknown)

    def _of_matrix(self, file_format: FileFormat, names: list[str] | None) -> Any:
        """Samples of a matrix; where the file has no names, and as many columns as that of
        training, these are the same."""
        assert file_format.samples is not None
        samples = file_format.samples(self.path, names)
        columns = samples.names if isinstance(samples, Table) else samples
        if not file_format.needs_names or names is not None or self._has_names(columns):
            return samples
        if len(columns) == len(self.schema.input_names):
            return file_format.samples(self.path, list(self.schema.input_names))
        what = f"{self.path.name} has no names of variables, but the model has"
        remedy = f"pass --vocab FILE with a name on each line for its {len(columns)} columns"
        raise DataError(what, remedy, path=self.path.name, option="vocab")

    def _has_names(self, columns: Collection[str]) -> bool:
        schema = self.schema
        return {schema.columns[j].name for j in schema.index} <= set(columns)

    def _of_frame(self, frame: Any) -> NewData:
        """The samples of a pyarrow table."""
        variables, counts = self._variables(frame.column_names), None
        if self.roles.weights is not None:
            counts = check_weights(frame.column(self.roles.weights).to_numpy(), len(frame))
        return NewData(self._rows(frame.select(variables)), frame=frame, weights=counts)

    def _of_cells(self, cells: CsvCells) -> NewData:
        """The samples of a text."""
        self._variables(cells.header)
        counts, name = None, self.roles.weights
        if name is not None:
            j = cells.header.index(name)
            counts = weights_of_texts(cells.texts[j], cells.codes[j], name)
            counts = check_weights(counts, cells.n_samples)
        unseen = Unseen(self.handle_unknown)
        rows = rows_of_cells(cells, self.schema, self.path.name, unseen, self.unused)
        unseen.warn()
        return NewData(rows, cells, weights=counts)

    def _variables(self, header: Sequence[str]) -> list[str]:
        """The columns that are variables, which must be those of the model."""
        schema, file = self.schema, self.path.name
        check_excluded(header, self.roles.ignore, file, schema.input_names)
        variables = self.roles.variables(header)
        wanted = [schema.columns[j].name for j in schema.index.tolist()]
        _check_names(variables, [n for n in wanted if n not in self.unused], schema, file)
        return variables


def _check_names(header: Sequence[str], wanted: Sequence[str], schema: Schema, file: str) -> None:
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
