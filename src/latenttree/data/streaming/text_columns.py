"""Columns of a .csv that come in parts: texts, which are numbers where all of them are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.data.checks import check_finite
from latenttree.data.columns.vectors import Vector, vector_of_array
from latenttree.data.files.csv_batches import coded_texts
from latenttree.data.files.csv_cells import (
    MISSING_CELLS,
    all_numbers,
    number_of,
    numbers_in,
    numbers_or_texts,
)
from latenttree.data.streaming.columns import MAX_DISTINCT, Floats, StreamedColumn
from latenttree.data.streaming.scratch import ScratchFolder
from latenttree.errors import DataError


class LateText(DataError):
    """A text that is no number, in a column that is stored as numbers already."""


class TextColumn(StreamedColumn):
    """A column of texts.

    Decimal numbers with more than `max_distinct` different values are stored as numbers; a later
    text that is no number is then a `LateText`."""

    def __init__(
        self, name: str, requested: str, store: ScratchFolder, max_distinct: int = MAX_DISTINCT
    ) -> None:
        super().__init__(name, requested, store)
        self._max_distinct, self._whole = max_distinct, True
        self._like = Vector(np.empty(0, dtype=object), scales=True)
        self._values: NDArray[Any] = np.empty(0, dtype=object)

    def add_texts(self, texts: Any, weights: Floats | None) -> None:
        """Append rows, a pyarrow array of texts, with these weights."""
        if self.wide:
            self.add(vector_of_array(self._numbers_of(texts), self.name, None, self.n), weights)
            return
        different, local = coded_texts(texts)
        labels: dict[str, int] = {}
        codes = [
            -1 if text in MISSING_CELLS else labels.setdefault(text, len(labels))
            for text in map(str.strip, different)
        ]
        known = len(self._position)
        self._add_coded(list(labels), np.asarray(codes, dtype=np.int64)[local], weights)
        self.n += len(texts)
        self._judge(list(islice(self._position, known, None)))

    def _judge(self, new: Sequence[str]) -> None:
        """Store many numbers, not all whole, as numbers from here on."""
        if self._numbers and new:
            numbers = all_numbers(new)
            self._numbers = numbers is not None
            self._whole = self._whole and numbers is not None and numbers.dtype.kind != "f"
            many = len(self._position) > self._max_distinct
            self.wide = self._numbers and not self._whole and many

    def _numbers_of(self, texts: Any) -> Floats:
        """(rows,) numbers, NaN where missing. By pyarrow, whose numbers are Python's to the last
        bit; one by one where it reads no number, or NaN in a text that is no missing one."""
        import pyarrow as pa
        from pyarrow import compute

        different, local = texts.dictionary, numbers_in(texts.indices, np.int32)
        try:
            gaps = compute.is_in(different, pa.array(sorted(MISSING_CELLS)))
            known = compute.if_else(gaps, None, different)
            filled = compute.cast(known, pa.float64()).fill_null(np.nan)
            numbers: Floats = numbers_in(filled, np.float64)
            if np.isnan(numbers).sum() == known.null_count:
                return numbers[local]
        except pa.ArrowInvalid:
            pass
        one_by_one = (self._number(text, local, i) for i, text in enumerate(different.to_pylist()))
        return np.fromiter(one_by_one, np.float64, len(different))[local]

    def _number(self, text: str, local: Any, code: int) -> float:
        stripped = text.strip()
        number = np.nan if stripped in MISSING_CELLS else number_of(stripped)
        if number is None:
            row = self.n + int((local == code).argmax())
            raise LateText(
                f"column {self.name!r} holds decimal numbers, but {stripped!r} at row {row}",
                "correct it, or leave the cell empty",
                column=self.name,
                row=row,
                value=stripped,
            )
        return float(number)

    def _too_many(self, known: Any) -> bool:
        return False  # texts are judged when they are written

    def different(self) -> Any:
        """(m,) the different values: numbers where all texts are numbers."""
        if len(self._values) != len(self._position):
            self._values = numbers_or_texts(list(self._position))
        return self._values

    def summary(self, weights: Sequence[Floats] | None = None) -> Vector:
        """The different values with their counts, or all numbers where these are stored."""
        if self.wide:
            return super().summary(weights)
        values = self.different()
        if values.dtype.kind == "f":
            for i in np.flatnonzero(np.isinf(values)).tolist():
                check_finite(values[i : i + 1, None], [self.name], self._first[i])
        vector = vector_of_array(values, self.name)
        return self._summary(vector.known, vector.gaps)

    def vector(self) -> Vector:
        """All rows, in memory."""
        parts = range(self.n_parts)
        if self.wide:
            table = self.number_table()
            numbers = [self.numbers(i, table) for i in parts]
            return self._whole_vector(np.concatenate(numbers))
        values = self.different()
        table = np.append(np.arange(len(values)), -1)
        codes = np.concatenate([self.codes(i, table) for i in parts])
        if not len(values):
            return Vector(np.empty(0), np.ones(self.n, dtype=np.bool_))
        return self._whole_vector(values[np.maximum(codes, 0)], codes < 0)

    def _whole_vector(self, values: NDArray[Any], gaps: NDArray[np.bool_] | None = None) -> Vector:
        return replace(vector_of_array(values, self.name, gaps), scales=True)
