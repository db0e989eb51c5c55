"""Cells of a .csv: which columns are variables, which texts are missing values or numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.data.checks import listing
from latenttree.errors import DataError

MISSING_CELLS = frozenset(["", "NA", "N/A", "NaN", "nan", "null", "None", "?"])
"""Texts of cells that are missing."""


class Roles(NamedTuple):
    """Columns that are not variables: the weights of the rows, and columns to ignore."""

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

    @contextmanager
    def naming_weights(self) -> Iterator[None]:
        """Errors of the weights inside name their column."""
        try:
            yield
        except DataError as error:
            if self.weights is not None and error.place.option == "sample_weight":
                error.within("", column=self.weights)
            raise


def check_header(header: Sequence[str], path: Path) -> None:
    """Raise if the first line holds numbers instead of names."""
    if all(number_of(text) is not None for text in header):
        raise DataError(
            f"the first line of {path.name} holds numbers ({', '.join(header[:5])}), not names",
            "add a line with the names of the columns",
            value=tuple(header),
            path=str(path),
            line=1,
        )


def numbers_or_texts(texts: Sequence[str]) -> NDArray[Any]:
    """Numbers where all texts are numbers, else the texts; texts too where two integers, "01" and
    "1", would become one."""
    numbers = [number_of(text) for text in texts]
    whole = all(isinstance(number, int) for number in numbers)
    if None in numbers or (whole and len(set(numbers)) < len(set(texts))):
        return np.array(texts, dtype=object)
    array = np.asarray(numbers)
    # Whole numbers that no integer of NumPy holds would be rounded.
    return np.array(numbers, dtype=object) if whole and array.dtype.kind == "f" else array


def number_of(text: str) -> int | float | None:
    """The number that a text is; None if it is none, also for 1_000, which only Python accepts."""
    if "_" in text:
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def weights_of_texts(
    texts: Sequence[str], codes: NDArray[Any], name: str, start: int = 0
) -> NDArray[np.float64]:
    """(n,) how often each row counts, from the distinct texts of a column and those of the rows,
    the first of which is row `start`."""
    numbers = [number_of(text.strip()) for text in texts]
    if None in numbers:
        wrong = numbers.index(None)
        row = start + int((codes == wrong).argmax())
        raise DataError(
            f"column {name!r} of weights has {texts[wrong]!r} in row {row}, which is no number",
            "correct it",
            column=name,
            row=row,
            value=texts[wrong],
            option="weights",
        )
    return np.asarray(numbers, dtype=np.float64)[codes]
