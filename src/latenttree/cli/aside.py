"""Columns of a .csv that are no variables: numbers of rows, identifiers, weights."""

from __future__ import annotations

import csv
import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from latenttree.data import csvtable
from latenttree.data.checks import check_shape, listing, resolve_names
from latenttree.data.encode import table_of_vectors
from latenttree.data.textfile import open_text, read_cells
from latenttree.data.weights import check_weights
from latenttree.errors import DataError

if TYPE_CHECKING:
    from latenttree.data import Table


def header_of(path: Path, delimiter: str) -> list[str]:
    """The first line of a .csv; what is wrong with it is said where the whole is read."""
    try:
        with open_text(path) as file:
            return next(csv.reader(file, delimiter=delimiter), [])
    except csv.Error:
        return []


def check_aside(
    header: Sequence[str], ignore: Collection[str], file: str, known: Collection[str] = ()
) -> None:
    """The ignored columns are there, and a first column without a name is among them."""
    absent = [name for name in ignore if name not in header]
    if absent:
        raise DataError(
            f"--ignore {shlex.quote(absent[0])}: {file} has no such column; the columns are "
            f"{listing(header)}"
        )
    if len(header) > 1 and not header[0].strip() and header[0] not in {*ignore, *known}:
        raise DataError(
            f"{file}: the first column has no name and numbers the rows: write the table with "
            f"index=False, or pass --ignore {shlex.quote(header[0])} (if it is a variable, name it)"
        )


def read_csv_without(
    path: Path,
    ignore: Collection[str],
    delimiter: str,
    weights: str | None,
    options: Mapping[str, Any],
) -> Table:
    """The table of a .csv as `read_table` reads it, but for the ignored columns."""
    chosen: list[int] = []

    def others(names: Sequence[str]) -> Sequence[int]:
        chosen.extend(j for j, name in enumerate(names) if name not in ignore)
        if not chosen:
            raise DataError(f"--ignore leaves no column of {path.name}; name fewer")
        return chosen

    names, cells = read_cells(path, others, delimiter)
    header, counts = [names[j] for j in chosen], None
    check_shape((len(cells[0][1]), len(header)))
    if weights is not None:
        counts, cells = csvtable._weighed(header, cells, weights)
        header = [name for name in header if name != weights]
        check_shape((len(counts), len(header)))
    labels = resolve_names(None, len(header), header)
    vectors = (csvtable._vector(*column, name) for column, name in zip(cells, labels, strict=True))
    return table_of_vectors(vectors, labels, len(cells[0][1]), weights=counts, **options)


def column_of_weights(
    texts: Sequence[str], codes: NDArray[np.int32], name: str
) -> NDArray[np.float64]:
    """(n,) how often each row counts, also the rows that do not."""
    numbers = [csvtable.number_of(text.strip()) for text in texts]
    if None in numbers:
        wrong = numbers.index(None)
        raise DataError(
            f"column {name!r} of weights has {texts[wrong]!r} in row "
            f"{int((codes == wrong).argmax())}, which is no number; correct it"
        )
    return check_weights(np.asarray(numbers, dtype=np.float64)[codes], len(codes))
