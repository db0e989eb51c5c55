"""The numbering of samples and codes across blocks of events."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.data.events.columns import Column, IntArray, texts_of

OUTSIDE = -2
"""Number of a sample that is not listed; -1 is that of a missing one."""


class GrowingIndex:
    """Different texts of a column, numbered in order of appearance; whole numbers stand for their
    texts."""

    def __init__(self) -> None:
        self._number: dict[Any, int] = {}
        self._values: list[NDArray[Any]] = []
        self.floats = False

    def add(self, column: Column) -> IntArray:
        """(n,) the numbers of the values of some rows; -1 where missing."""
        number, before = self._number, len(self._number)
        keys = (
            -1 if key == "" else number.setdefault(key, len(number)) for key in self._keys(column)
        )
        numbers = np.fromiter(keys, np.int64, len(column.values))
        new = np.flatnonzero(numbers >= before)
        fresh = new[np.unique(numbers[new], return_index=True)[1]]
        if len(fresh) or not self._values:
            self._values.append(column.values[fresh])
        self.floats = self.floats or column.floats
        return np.append(numbers, -1)[column.index]

    def _keys(self, column: Column) -> list[Any]:
        """The texts of the values, "" where they are missing; of those that occurred before only
        whether they did is asked."""
        values = column.values.tolist()
        if column.values.dtype.kind in "iu":
            return values
        new = [i for i, v in enumerate(values) if type(v) is not str or v not in self._number]
        for i, text in zip(new, texts_of([values[i] for i in new]), strict=True):
            values[i] = text
        return values

    @property
    def texts(self) -> tuple[str, ...]:
        """All different texts, in the order of their numbers."""
        return tuple(map(str, self._number))

    @property
    def values(self) -> NDArray[Any]:
        """The values as they came, the first of each text."""
        some = [part for part in self._values if len(part)] or self._values
        return some[0] if len(some) == 1 else np.concatenate(some)


class FixedIndex:
    """Samples that are given: a row for each."""

    def __init__(self, rows: dict[str, int], values: NDArray[Any]) -> None:
        self._rows, self.values = rows, values

    def add(self, column: Column) -> IntArray:
        """(n,) the rows of the samples; -1 where a sample is missing, `OUTSIDE` if not listed."""
        rows = [self._rows.get(text, OUTSIDE) if text else -1 for text in column.texts()]
        return np.asarray([*rows, -1], dtype=np.int64)[column.index]
