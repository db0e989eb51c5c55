"""A .csv with a row for each sample: the distinct texts of a column decide what it holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.data.checks import check_shape, resolve_names
from latenttree.data.columns.builder import table_of_vectors
from latenttree.data.columns.vectors import Vector, vector_of_array
from latenttree.data.files.csv_cells import (
    MISSING_CELLS,
    Roles,
    check_header,
    number_of,
    numbers_or_texts,
)
from latenttree.data.files.text import read_cells
from latenttree.data.table import Table
from latenttree.data.weights import check_weights, numbering_all_rows
from latenttree.errors import DataError

Cells = tuple[list[str], NDArray[np.int32]]  # distinct texts of a column, and which each row has


def table_of_csv(
    path: Path,
    names: Sequence[Any] | None,
    delimiter: str,
    options: Mapping[str, Any],
    roles: Roles,
) -> Table:
    """The table of a .csv."""
    chosen: list[int] = []

    def choose(header: Sequence[str]) -> Sequence[int]:
        check_header(header, path)
        others = roles.variables(header)
        if len(others) < len(header):
            resolve_names(None, len(header), header)  # a role belongs to one column
        wanted = {*others, roles.weights}
        chosen.extend(j for j, name in enumerate(header) if name in wanted)
        return chosen

    all_names, cells = read_cells(path, choose, delimiter)
    header, all_weights, counts = [all_names[j] for j in chosen], None, None
    if roles.weights is not None:
        check_shape((len(cells[0][1]), len(header)))
        j = header.index(roles.weights)
        all_weights = weights_of_cells(*cells.pop(j), header.pop(j))
        keep = all_weights > 0
        counts, cells = all_weights[keep], [(texts, codes[keep]) for texts, codes in cells]
    n = len(cells[0][1]) if cells else 0
    check_shape((n, len(header)))
    labels = resolve_names(names, len(header), header)
    vectors = (_vector(*column, name) for column, name in zip(cells, labels, strict=True))
    with numbering_all_rows(lambda: all_weights):
        return table_of_vectors(vectors, labels, n, weights=counts, **options)


def csv_cells(path: Path, delimiter: str) -> tuple[list[str], list[Cells]]:
    """Names and texts of all columns."""
    header, cells = read_cells(path, lambda names: range(len(names)), delimiter)
    check_header(header, path)
    return header, cells


def weights_of_cells(
    texts: Sequence[str], codes: NDArray[np.int32], name: str
) -> NDArray[np.float64]:
    """(n,) how often each row counts, from the distinct texts of a column and those of the rows."""
    numbers = [number_of(text.strip()) for text in texts]
    if None in numbers:
        wrong = numbers.index(None)
        row = int((codes == wrong).argmax())
        raise DataError(
            f"column {name!r} of weights has {texts[wrong]!r} in row {row}, which is no number",
            "correct it",
            column=name,
            row=row,
            value=texts[wrong],
            option="weights",
        )
    return check_weights(np.asarray(numbers, dtype=np.float64)[codes], len(codes))


def _vector(texts: Sequence[str], codes: NDArray[np.int32], name: str) -> Vector:
    stripped = [text.strip() for text in texts]
    missing = np.asarray([text in MISSING_CELLS for text in stripped])
    filler = next((text for text in stripped if text not in MISSING_CELLS), "0")
    known = [filler if lost else text for text, lost in zip(stripped, missing, strict=True)]
    return vector_of_array(numbers_or_texts(known)[codes], name, missing[codes])
