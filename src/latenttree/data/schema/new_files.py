"""New samples in files: the cells of a text, read as the schema of a model says.

Files of other formats are read to what `Schema.rows` takes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.data.checks import check_shape, resolve_names
from latenttree.data.columns.scales import on_levels
from latenttree.data.columns.vectors import Column
from latenttree.data.files.csv_batches import checked_header, csv_batches, joined_texts
from latenttree.data.files.csv_cells import MISSING_CELLS
from latenttree.data.files.formats import cell_delimiter, known_format
from latenttree.data.files.text import check_file
from latenttree.data.schema.fields import SchemaFields
from latenttree.data.schema.lookup import MISSING
from latenttree.data.schema.rows import Rows
from latenttree.data.schema.state_labels import StateLabels, parse_number
from latenttree.data.schema.unseen import Unseen
from latenttree.engine.arrays import Ints
from latenttree.errors import DataError

Codes = NDArray[np.int32]
UNKNOWN = -2


@dataclass(frozen=True, eq=False)
class CsvCells:
    """A .csv as it stands, or a table as a .csv would have it: for each column its distinct texts,
    and the code of each row's text."""

    header: tuple[str, ...]
    texts: Sequence[Sequence[str]]
    codes: Sequence[Codes]

    @property
    def n_samples(self) -> int:
        """Number of rows below the header."""
        return len(self.codes[0])


def samples_in(path: Path, names: Sequence[str]) -> Any:
    """The samples in a file: the cells of a text of columns, else what `Schema.rows` takes. Columns
    of arrays, which have no names in the file, are called by `names`."""
    check_file(path)
    file_format = known_format(path)
    if file_format.frame is not None:
        return file_format.frame(path)
    if file_format.has_columns:
        return read_cells(path, cell_delimiter(path))
    assert file_format.samples is not None
    return file_format.samples(path, list(names) if file_format.needs_names else None)


def read_cells(path: Path, delimiter: str) -> CsvCells:
    """All cells of a .csv."""
    header = checked_header(path, delimiter)
    batches = list(csv_batches(path, delimiter, range(len(header))))
    check_shape((sum(len(columns[0]) for columns in batches), len(header)), 1)
    names = tuple(resolve_names(None, len(header), header))
    columns = [joined_texts(parts) for parts in zip(*batches, strict=True)]
    return CsvCells(names, *zip(*columns, strict=True))


def rows_of_cells(
    cells: CsvCells,
    schema: SchemaFields,
    file: str,
    unseen: Unseen,
    unused: Collection[str] = (),
) -> Rows:
    """Codes and numbers of the variables, but for those that are not used."""
    position = {name: j for j, name in enumerate(cells.header)}
    codes = np.full((cells.n_samples, schema.n_vars), MISSING, dtype=schema.code_dtype)
    arrays: dict[int, Any] = {}
    for i, column in enumerate(schema.index.tolist()):
        if schema.names[i] in unused:
            continue
        j = position[schema.columns[column].name]
        if schema.coded[i]:
            labels = StateLabels(schema.labels[i], schema.is_sparse_binary)
            if schema.families[i] == "ordinal":
                cells = _rounded(cells, j, schema.labels[i], unseen)
            codes[:, i] = _column_codes(cells, j, labels, file, unseen)
        else:
            numbers = _column_numbers(cells, j, schema, i, file)
            arrays[i] = schema.variables[i].encode(Column(numbers), unseen)
    return Rows(len(codes), codes, arrays=arrays, n_vars=schema.n_vars)


def _rounded(cells: CsvCells, j: int, labels: NDArray[Any], unseen: Unseen) -> CsvCells:
    """Cells whose fractions in column j are rounded to the labels, as in training."""
    parsed = [parse_number(text.strip()) for text in cells.texts[j]]
    numbers = np.array([np.nan if x is None else x for x in parsed], dtype=np.float64)
    rounded = on_levels(numbers, labels)
    if rounded is None:
        return cells
    unseen.rounded.append(cells.header[j])
    pairs = zip(cells.texts[j], numbers.tolist(), rounded.tolist(), strict=True)
    texts = [text if x != x or x == y else str(y) for text, x, y in pairs]
    return replace(cells, texts=[*cells.texts[:j], texts, *cells.texts[j + 1 :]])


def _column_codes(cells: CsvCells, j: int, labels: StateLabels, file: str, unseen: Unseen) -> Ints:
    """(n,) codes of a column, -1 where its cell is empty or says that it is missing."""
    code_of_text = np.array([_code(labels, text) for text in cells.texts[j]], dtype=np.int64)
    codes = code_of_text[cells.codes[j]]
    unknown = codes == UNKNOWN
    if unknown.any() and unseen.missing:
        found = np.unique(cells.codes[j][unknown]).tolist()
        unseen.add(cells.header[j], [cells.texts[j][code] for code in found])
        codes[unknown] = MISSING
    elif unknown.any():
        problem = f"did not occur in training, where it was one of {labels.listing()}"
        remedy = "use one of these, or leave the cell empty"
        raise _wrong_cell(cells, j, int(unknown.argmax()), file, "the value ", problem, remedy)
    return codes


def _wrong_cell(
    cells: CsvCells, j: int, row: int, file: str, article: str, problem: str, remedy: str
) -> DataError:
    name, value = cells.header[j], cells.texts[j][cells.codes[j][row]]
    what = f"{file}, sample {row + 1}, column {name!r}: {article}{value!r} {problem}"
    return DataError(what, remedy, value=value, column=name, row=row, path=file)


def _code(labels: StateLabels, text: str) -> int:
    code = labels.code(text)
    if code is not None:
        return code
    return MISSING if text.strip() in MISSING_CELLS else UNKNOWN


def _column_numbers(
    cells: CsvCells, j: int, schema: SchemaFields, i: int, file: str
) -> NDArray[Any]:
    """(n,) numbers of a column, NaN where its cell is empty; labels that stand for ranks stay
    texts, None where empty."""
    name, texts, codes = cells.header[j], cells.texts[j], cells.codes[j]
    if schema.form_of(i) != "vector":
        what = (
            f"{file}: {name!r} is a group of {int(schema.dims[i])} numbers in the model, which a "
            ".csv with a row for each sample does not hold"
        )
        raise DataError(what, "ask from Python", column=name, path=file)
    missing = [text.strip() in MISSING_CELLS for text in texts]
    if schema.ranked(i):
        pairs = zip(texts, missing, strict=True)
        labels = np.array([None if gap else text.strip() for text, gap in pairs], dtype=object)
        return labels[codes]
    pairs = zip(texts, missing, strict=True)
    numbers = [float("nan") if gap else parse_number(text) for text, gap in pairs]
    if None in numbers:
        row = int((codes == numbers.index(None)).argmax())
        remedy = "correct it, or leave the cell empty"
        problem = "is no number, as it was in training"
        raise _wrong_cell(cells, j, row, file, "", problem, remedy)
    return np.asarray(numbers, dtype=np.float64)[codes]
