"""Columns of a .csv that come part by part: texts, which are numbers where all of them are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.data.checks import check_finite
from latenttree.data.csvtable import MISSING_TEXTS, number_of, numbers_or_texts
from latenttree.data.scratch import Scratch
from latenttree.data.summaries import MOST_PLACES, Column, Floats
from latenttree.data.vectors import Vector, vector_of_array
from latenttree.errors import DataError


class TextColumn(Column):
    """A column whose values are texts, as they are written.

    Decimal numbers with many different values are written as numbers; a text that is none, behind
    them, is an error then, where a column in memory would become text."""

    def __init__(self, name: str, asked: str, scratch: Scratch) -> None:
        super().__init__(name, asked, scratch)
        self._judged, self._whole = 0, True
        self._like = Vector(np.empty(0, dtype=object))

    def add_texts(self, texts: Sequence[str], weights: Floats | None) -> None:
        """The next rows."""
        stripped = [text.strip() for text in texts]
        if self.wide:
            self.add(self._parsed(stripped), weights)
            return
        gaps = np.fromiter((text in MISSING_TEXTS for text in stripped), np.bool_, len(stripped))
        values = np.empty(len(stripped), dtype=object)
        values[:] = stripped
        some = bool(gaps.any())
        self.add(Vector(values[~gaps], gaps) if some else Vector(values), weights)
        self._judge()

    def _judge(self) -> None:
        """Many numbers, not all whole, are written as numbers from here on."""
        texts = list(self._place)
        found = [number_of(text) for text in texts[self._judged :]]
        self._judged = len(texts)
        self._numbers = self._numbers and None not in found
        self._whole = self._whole and all(isinstance(number, int) for number in found)
        self.wide = self._numbers and not self._whole and len(texts) > MOST_PLACES

    def _parsed(self, texts: Sequence[str]) -> Vector:
        numbers = np.empty(len(texts))
        for i, text in enumerate(texts):
            try:
                numbers[i] = np.nan if text in MISSING_TEXTS else float(text)
            except ValueError:
                raise DataError(
                    f"column {self.name!r} holds decimal numbers, but {text!r} at row "
                    f"{self.n + i}; correct it, or leave the cell empty"
                ) from None
        return vector_of_array(numbers, self.name, None, self.n)

    def _too_many(self, known: NDArray[Any]) -> bool:
        return False  # texts are judged when they are written

    def different(self) -> NDArray[Any]:
        return numbers_or_texts(list(self._place))

    def summary(self, weights: Sequence[Floats] | None = None) -> Vector:
        if self.wide:
            return super().summary(weights)
        values = self.different()
        if values.dtype.kind == "f":
            for i in np.flatnonzero(np.isinf(values)).tolist():
                check_finite(values[i : i + 1, None], [self.name], self._first[i])
        found = vector_of_array(values, self.name)
        return self._summary(found.known, found.gaps)
