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

BOOLEANS = {form("true"): True for form in (str, str.title, str.upper)} | {
    form("false"): False for form in (str, str.title, str.upper)
}
"""Texts of cells that are booleans, as pandas reads them."""

MANY = 1000
"""Texts from which on it pays to load pyarrow's parser of numbers."""


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
            line=1,
        )


def numbers_or_texts(texts: Sequence[str]) -> NDArray[Any]:
    """Numbers where all texts are numbers, booleans where all are those, else the texts; texts too
    where two of them, "01" and "1" or "True" and "true", would become one."""
    booleans = [BOOLEANS.get(text) for text in texts]
    if texts and None not in booleans and len(set(booleans)) == len(set(texts)):
        return np.array(booleans)
    numbers = all_numbers(texts)
    if numbers is None or (numbers.dtype.kind != "f" and _fewer(numbers, texts)):
        return np.array(texts, dtype=object)
    return numbers


def _fewer(numbers: NDArray[Any], texts: Sequence[str]) -> bool:
    return len(set(numbers.tolist())) < len(set(texts))


def all_numbers(texts: Sequence[str]) -> NDArray[Any] | None:
    """The numbers that texts are, floats if one of them is; None if one is no number."""
    fast = _numbers_by_pyarrow(texts) if len(texts) >= MANY else None
    if fast is not None:
        return fast
    numbers = [number_of(text) for text in texts]
    if None in numbers:
        return None
    array = np.asarray(numbers)
    # Whole numbers that no integer of NumPy holds would be rounded.
    whole = array.dtype.kind == "f" and all(isinstance(number, int) for number in numbers)
    return np.array(numbers, dtype=object) if whole else array


def _numbers_by_pyarrow(texts: Sequence[str]) -> NDArray[Any] | None:
    """The same; None also where pyarrow might read other numbers than Python: hexadecimal ones, NaN
    in longer words, whole numbers beyond 64 bits. Others are equal to the last bit."""
    import pyarrow as pa

    array = pa.array(texts, pa.string())
    for dtype, marks in ((pa.int64(), ""), (pa.float64(), ".eE")):
        try:
            numbers = numbers_in(array.cast(dtype), dtype.to_pandas_dtype())
        except pa.ArrowInvalid:
            continue
        odd = any("x" in text or "X" in text for text in texts)
        marked = not marks or any(mark in text for text in texts for mark in marks)
        return None if odd or not marked or np.isnan(numbers).any() else numbers
    return None


def numbers_in(array: Any, dtype: Any) -> NDArray[Any]:
    """A pyarrow array of numbers of a type, none missing; its own `to_numpy` imports pandas."""
    if not len(array):
        return np.empty(0, dtype)
    return np.frombuffer(array.buffers()[1], dtype)[array.offset : array.offset + len(array)]


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
