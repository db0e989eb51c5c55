"""A .csv with a row for each sample: what a column holds is decided from its distinct texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.data.checks import check_shape, listing, resolve_names
from latenttree.data.encode import table_of_vectors
from latenttree.data.table import Table
from latenttree.data.textfile import read_cells
from latenttree.data.vectors import Vector, vector_of_array
from latenttree.data.weights import check_weights
from latenttree.errors import DataError

MISSING_TEXTS = frozenset(["", "NA", "N/A", "NaN", "nan", "null", "None", "?"])
"""What stands in a cell that is missing."""

Cells = tuple[list[str], NDArray[np.int32]]  # distinct texts of a column, and which each row has


class Roles(NamedTuple):
    """Columns that are no variables: that of the weights of the rows, and those to leave out."""

    weights: str | None = None
    ignore: Sequence[str] = ()

    def variables(self, header: Sequence[str]) -> list[str]:
        """The names of the other columns."""
        if self.weights is not None and self.weights not in header:
            raise DataError(
                f"no column {self.weights!r} of weights",
                f"the columns are {listing(header)}",
                column=self.weights,
                value=self.weights,
                option="weights",
            )
        absent = [name for name in self.ignore if name not in header]
        if absent:
            raise DataError(
                f"no column {absent[0]!r} to ignore",
                f"the columns are {listing(header)}",
                column=absent[0],
                value=absent[0],
                option="ignore",
            )
        return [name for name in header if name != self.weights and name not in self.ignore]


def read_csv(
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

    found, cells = read_cells(path, choose, delimiter)
    header, counts = [found[j] for j in chosen], None
    if roles.weights is not None:
        check_shape((len(cells[0][1]), len(header)))
        counts, cells = _weighed(header, cells, roles.weights)
        header = [name for name in header if name != roles.weights]
    n = len(cells[0][1]) if cells else 0
    check_shape((n, len(header)))
    labels = resolve_names(names, len(header), header)
    vectors = (_vector(*column, name) for column, name in zip(cells, labels, strict=True))
    return table_of_vectors(vectors, labels, n, weights=counts, **options)


def csv_cells(path: Path, delimiter: str) -> tuple[list[str], list[Cells]]:
    """Names and texts of all columns."""
    header, cells = read_cells(path, lambda names: range(len(names)), delimiter)
    check_header(header, path)
    return header, cells


def check_header(header: Sequence[str], path: Path) -> None:
    """The first line has names, not numbers."""
    if all(number_of(text) is not None for text in header):
        raise DataError(
            f"the first line of {path.name} holds numbers ({', '.join(header[:5])}), not names",
            "add a line with the names of the columns",
            value=tuple(header),
            path=str(path),
        )


def _weighed(
    header: Sequence[str], cells: Sequence[Cells], weights: str
) -> tuple[NDArray[np.float64], list[Cells]]:
    """The column of weights, and the others; rows of weight 0 are left out."""
    j = list(header).index(weights)
    texts, codes = cells[j]
    numbers = [number_of(text.strip()) for text in texts]
    if None in numbers:
        wrong = numbers.index(None)
        row = int((codes == wrong).argmax())
        raise DataError(
            f"column {weights!r} of weights has {texts[wrong]!r} in row {row}, which is no number",
            "correct it",
            column=weights,
            row=row,
            value=texts[wrong],
            option="weights",
        )
    found = check_weights(np.asarray(numbers, dtype=np.float64)[codes], len(codes))
    keep = found > 0
    others = [(column, rows[keep]) for i, (column, rows) in enumerate(cells) if i != j]
    return found[keep], others


def _vector(texts: Sequence[str], codes: NDArray[np.int32], name: str) -> Vector:
    stripped = [text.strip() for text in texts]
    missing = np.asarray([text in MISSING_TEXTS for text in stripped])
    filler = next((text for text in stripped if text not in MISSING_TEXTS), "0")
    known = [filler if lost else text for text, lost in zip(stripped, missing, strict=True)]
    return vector_of_array(numbers_or_texts(known)[codes], name, missing[codes])


def numbers_or_texts(texts: Sequence[str]) -> NDArray[Any]:
    """Numbers where all texts are, else the texts; also where two whole numbers, "01" and "1",
    would become one."""
    numbers = [number_of(text) for text in texts]
    whole = all(isinstance(number, int) for number in numbers)
    if None in numbers or (whole and len(set(numbers)) < len(set(texts))):
        return np.array(texts, dtype=object)
    found = np.asarray(numbers)
    # Whole numbers that no integer of NumPy holds would be rounded.
    return np.array(numbers, dtype=object) if whole and found.dtype.kind == "f" else found


def number_of(text: str) -> int | float | None:
    """The number that a text is written as; Python alone takes 1_000 for one."""
    if "_" in text:
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None
