"""The numbering of samples and codes across blocks of events."""

from __future__ import annotations

from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.data.events.columns import CodedColumn, IntArray, texts_of

OUTSIDE = -2
"""Number of a sample that is not listed; -1 is that of a missing one."""


class Numbering:
    """Different texts of a column, numbered in order of appearance; whole numbers stand for their
    texts. Where values are `listed`, with the number of each text, others are `OUTSIDE`."""

    def __init__(self, listed: NDArray[Any] | None = None, number: Any = None) -> None:
        self._grows, self._number = listed is None, {} if number is None else number
        self._values: list[NDArray[Any]] = [] if listed is None else [listed]
        self.floats = False

    def add(self, column: CodedColumn) -> IntArray:
        """(n,) the numbers of the values of some rows; -1 where missing."""
        values, number = column.values.tolist(), self._number
        numbers = np.full(len(values), -1)
        if self._grows:  # these are texts of known values
            numbers = np.fromiter(map(number.get, values, repeat(-1)), np.int64, len(values))
        unknown = np.flatnonzero(numbers < 0)
        keys = [values[i] for i in unknown.tolist()]
        if column.values.dtype.kind not in "iu" or not self._grows:
            keys = texts_of(keys)
        fresh = []
        for i, key in zip(unknown.tolist(), keys, strict=True):
            if key == "":
                continue
            numbers[i] = number.get(key, OUTSIDE)
            if self._grows and numbers[i] == OUTSIDE:
                numbers[i] = number[key] = len(number)
                fresh.append(i)
        if self._grows and (fresh or not self._values):
            self._values.append(column.values[fresh])
        self.floats = self.floats or column.floats
        return np.append(numbers, -1)[column.index]

    @property
    def texts(self) -> tuple[str, ...]:
        """All different texts, in the order of their numbers."""
        return tuple(map(str, self._number))

    @property
    def values(self) -> NDArray[Any]:
        """The values as they came, the first of each text."""
        some = [part for part in self._values if len(part)] or self._values
        return some[0] if len(some) == 1 else np.concatenate(some)
