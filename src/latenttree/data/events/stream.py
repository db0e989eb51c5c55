"""Files of events in blocks of rows, and the numbering of their texts across blocks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from latenttree.data.events.columns import (
    Choose,
    IntArray,
    Labelled,
    columnar_format,
    columns_of_cells,
    columns_of_frame,
    delimiter_of,
)
from latenttree.data.files.formats import FileFormat
from latenttree.data.files.text import coded_cells, rows_of_csv
from latenttree.data.streaming.sources import rows_in


def event_blocks(
    path: Path, choose: Choose, delimiter: str | None, size: int
) -> Iterator[list[Labelled]]:
    """The chosen columns, about `size` bytes of rows at a time."""
    columnar = columnar_format(path)
    if columnar is not None:
        yield from _blocks_of_columns(columnar, path, choose, size)
        return
    with rows_of_csv(path, delimiter_of(path, delimiter)) as (header, rows):
        names = [name.strip() for name in header]
        chosen, any_rows = list(choose(names)), False
        step = rows_in(size, 80 * len(names))
        while (block := list(islice(rows, step))) or not any_rows:
            any_rows = True
            yield columns_of_cells(names, chosen, coded_cells(iter(block), chosen))


def _blocks_of_columns(
    columnar: FileFormat, path: Path, choose: Choose, size: int
) -> Iterator[list[Labelled]]:
    assert columnar.header is not None
    assert columnar.batches is not None
    names = columnar.header(path, ",")
    columns = [names[j] for j in choose(names)]
    for table in columnar.batches(path, columns, rows_in(size, 16 * len(columns))):
        frame = nw.from_native(table, eager_only=True)
        yield columns_of_frame(frame, lambda names: [list(names).index(c) for c in columns])


class GrowingIndex:
    """Different texts of a column, numbered in order of appearance."""

    def __init__(self) -> None:
        self._number: dict[str, int] = {}
        self._values: list[NDArray[Any]] = []
        self.floats = False

    def add(self, column: Labelled) -> IntArray:
        """(n,) the numbers of the values of some rows; -1 where missing."""
        before, number = len(self._number), self._number
        positions = [number.setdefault(text, len(number)) for text in column.texts]
        fresh = np.flatnonzero(np.asarray(positions, dtype=np.int64) >= before)
        if len(fresh) or not self._values:
            self._values.append(column.values[fresh])
        self.floats = self.floats or column.floats
        return np.asarray([*positions, -1], dtype=np.int64)[column.index]

    @property
    def texts(self) -> tuple[str, ...]:
        """All different texts, in the order of their numbers."""
        return tuple(self._number)

    @property
    def values(self) -> NDArray[Any]:
        """The values as they came, the first of each text."""
        some = [part for part in self._values if len(part)] or self._values
        return some[0] if len(some) == 1 else np.concatenate(some)


class FixedIndex:
    """Samples that are given: a row for each."""

    def __init__(self, rows: dict[str, int], values: NDArray[Any]) -> None:
        self._rows, self.values = rows, values

    def add(self, column: Labelled) -> IntArray:
        """(n,) the rows of the samples; -1 where a sample is missing or not listed."""
        positions = [self._rows.get(text, -1) for text in column.texts]
        return np.asarray([*positions, -1], dtype=np.int64)[column.index]
