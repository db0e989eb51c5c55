"""Columns of a .csv that come in parts: texts, which are numbers where all of them are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.data.checks import check_finite
from latenttree.data.columns.vectors import Vector, vector_of_array
from latenttree.data.files.csv_cells import MISSING_CELLS, number_of, numbers_or_texts
from latenttree.data.streaming.columns import MAX_DISTINCT, Floats, StreamedColumn
from latenttree.data.streaming.scratch import ScratchFolder
from latenttree.errors import DataError


class TextColumn(StreamedColumn):
    """A column of texts.

    Decimal numbers with many different values are stored as numbers; a later text that is no number
    is then an error, where a column in memory would become text."""

    def __init__(self, name: str, requested: str, scratch: ScratchFolder) -> None:
        super().__init__(name, requested, scratch)
        self._judged, self._whole = 0, True
        self._like = Vector(np.empty(0, dtype=object))

    def add_texts(self, texts: Sequence[str], weights: Floats | None) -> None:
        """Append rows with these weights."""
        if self.wide:
            self.add(self._parsed([text.strip() for text in texts]), weights)
            return
        labels, codes = _coded(texts)
        gaps = codes < 0
        known = codes[~gaps] if gaps.any() else codes
        first = np.empty(len(labels), dtype=np.int64)
        first[known[::-1]] = np.arange(len(known))[::-1]
        vector = Vector(known, gaps if len(known) < len(codes) else None)
        self._add_different(vector, (labels, known, first), weights)
        self.n += len(texts)
        self._judge()

    def _judge(self) -> None:
        """Store many numbers, not all whole, as numbers from here on."""
        texts = list(self._position)
        numbers = [number_of(text) for text in texts[self._judged :]]
        self._judged = len(texts)
        self._numbers = self._numbers and None not in numbers
        self._whole = self._whole and all(isinstance(number, int) for number in numbers)
        self.wide = self._numbers and not self._whole and len(texts) > MAX_DISTINCT

    def _parsed(self, texts: Sequence[str]) -> Vector:
        numbers = np.empty(len(texts))
        for i, text in enumerate(texts):
            try:
                numbers[i] = np.nan if text in MISSING_CELLS else float(text)
            except ValueError:
                raise DataError(
                    f"column {self.name!r} holds decimal numbers, but {text!r} at row {self.n + i}",
                    "correct it, or leave the cell empty",
                    column=self.name,
                    row=self.n + i,
                    value=text,
                ) from None
        return vector_of_array(numbers, self.name, None, self.n)

    def _too_many(self, known: NDArray[Any]) -> bool:
        return False  # texts are judged when they are written

    def different(self) -> NDArray[Any]:
        """(m,) the different values: numbers where all texts are numbers."""
        return numbers_or_texts(list(self._position))

    def summary(self, weights: Sequence[Floats] | None = None) -> Vector:
        """The different values with their counts, or all numbers where these are on disk."""
        if self.wide:
            return super().summary(weights)
        values = self.different()
        if values.dtype.kind == "f":
            for i in np.flatnonzero(np.isinf(values)).tolist():
                check_finite(values[i : i + 1, None], [self.name], self._first[i])
        vector = vector_of_array(values, self.name)
        return self._summary(vector.known, vector.gaps)


def _coded(texts: Sequence[str]) -> tuple[list[str], NDArray[np.int64]]:
    """Different texts, stripped, in order of appearance, and the position of each text; -1 where it
    marks a missing value. Each different text is examined once."""
    position: defaultdict[str, int] = defaultdict()
    position.default_factory = position.__len__  # a new text gets the next position
    local = np.fromiter(map(position.__getitem__, texts), np.int64, len(texts))
    labels: dict[str, int] = {}
    numbers = [
        -1 if text in MISSING_CELLS else labels.setdefault(text, len(labels))
        for text in map(str.strip, position)
    ]
    return list(labels), np.asarray(numbers, dtype=np.int64)[local]
