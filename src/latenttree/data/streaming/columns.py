"""Columns that come in parts, on disk as codes of their different values, or as numbers.

What a column is depends on all its rows. So a first reading writes every part to disk in few bytes
and collects the different values with their counts; then the column is known, and reading what was
written gives its codes. Numbers with more than `MAX_DISTINCT` different values are written as they
are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.data.checks import MAX_ALL_UNIQUE, OnlyValue, identifier, wrong_count
from latenttree.data.columns.bins import bin_codes
from latenttree.data.columns.codes import code_dtype, encode_integers
from latenttree.data.columns.families import AUTO, NUMBERS, vector_family
from latenttree.data.columns.variables import Variable
from latenttree.data.columns.vectors import Vector
from latenttree.data.streaming.quantiles import (
    Range,
    all_different,
    range_of,
    streamed_edges,
    streamed_varies,
)
from latenttree.data.streaming.scratch import Part, ScratchFolder

Floats = NDArray[np.float64]

Different = tuple[Sequence[Any], NDArray[np.int64]]

MAX_DISTINCT = 4096
"""Different values up to which numbers are stored as codes: more than categories written as floats
have."""

SORTED_AT_ONCE = 1 << 20
"""Numbers of a column on disk up to which its quantiles are found by sorting."""


@dataclass(frozen=True, eq=False)
class Summary(Vector):
    """The different values of a column instead of its rows.

    Attributes
    ----------
    rows : (m,) rows of each value.
    mass : (m,) total weight of each.
    first : (m,) the first row of each.
    n_all : rows of the column, also those without a value."""

    rows: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    mass: Floats = field(default_factory=lambda: np.empty(0))
    first: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    n_all: int = 0

    @property
    def n(self) -> int:
        """Rows of the column."""
        return self.n_all

    @property
    def n_known(self) -> int:
        """Rows with a value."""
        return int(self._of_known(self.rows).sum())

    def row(self, i: int) -> int:
        """The first row of the i-th known value."""
        return int(self._of_known(self.first)[i])

    def weights(self, weights: Floats | None) -> Floats:
        """(m,) the total weight of each known value."""
        return self._of_known(self.mass)

    def _of_known(self, values: NDArray[Any]) -> NDArray[Any]:
        return values if self.gaps is None else values[~self.gaps]


class Written(NamedTuple):
    """A part of a column on disk: numbers if `wide`, else codes and -1."""

    part: Part
    wide: bool


class StreamedColumn:
    """A column that grows by vectors, see the module. `_numbers`: the requested family allows
    numbers."""

    def __init__(self, name: str, requested: str, store: ScratchFolder) -> None:
        self.name, self.requested = name, requested
        self._numbers = requested == AUTO or requested in NUMBERS
        self.store = store
        self._position: dict[Any, int] = {}
        self._rows = self._mass = np.zeros(0)
        self._first: list[int] = []
        self._written: list[Written] = []
        self._like = Vector(np.empty(0))
        self.n, self.wide = 0, False

    def add(self, vector: Vector, weights: Floats | None) -> None:
        """Append rows with these weights."""
        if len(vector.known):
            self._like = vector
        if self.wide or self._too_many(vector.known):
            self._add_wide(vector)
        else:
            labels, local = _different(vector.known)
            self._add_coded(labels, vector.spread(local, -1), weights)
        self.n += vector.n

    def _too_many(self, known: NDArray[Any]) -> bool:
        kind = known.dtype.kind
        if not self._numbers or kind not in "iuf" or (kind != "f" and self.requested == AUTO):
            return False
        for some in (known[: 2 * MAX_DISTINCT], known):  # few rows often show it
            new = set(np.unique(some).tolist()) - self._position.keys()
            if len(new) + len(self._position) > MAX_DISTINCT:
                return True
        return False

    def _add_wide(self, vector: Vector) -> None:
        self.wide = True
        numbers = vector.known
        numbers = numbers if numbers.dtype == np.float32 else numbers.astype(np.float64)
        self._write(vector.spread(numbers, np.float32(np.nan)), True)

    def _add_coded(
        self, labels: Sequence[Any], local: NDArray[np.int64], weights: Floats | None
    ) -> None:
        """Append rows, given different values and which of them each row has, -1 where none."""
        position = self._position
        numbers = [position.get(label, -1) for label in labels]
        if -1 in numbers:
            numbers = self._number_new(labels, local)
        codes = np.asarray([*numbers, -1])[local]
        self._count(codes, weights)
        self._write(codes.astype(code_dtype(len(position), signed=True)), False)

    def _number_new(self, labels: Sequence[Any], local: NDArray[np.int64]) -> list[int]:
        """The positions of values, new ones in the order in which they came."""
        first = np.empty(len(labels) + 1, dtype=np.int64)
        first[local[::-1]] = np.arange(len(local))[::-1]
        position = self._position
        for i in np.argsort(first[:-1]).tolist():
            if position.setdefault(labels[i], len(position)) == len(self._first):
                self._first.append(self.n + int(first[i]))
        return [position[label] for label in labels]

    def _count(self, codes: NDArray[np.int64], weights: Floats | None) -> None:
        size = len(self._position)
        rows = np.bincount(codes + 1, minlength=size + 1)[1:]
        mass = rows if weights is None else np.bincount(codes + 1, weights, size + 1)[1:]
        self._rows = _longer(self._rows, size) + rows
        self._mass = _longer(self._mass, size) + mass

    def _write(self, values: NDArray[Any], wide: bool) -> None:
        self._written.append(Written(self.store.add(values), wide))

    def different(self) -> NDArray[Any]:
        """(m,) the different values, in order of appearance."""
        values = list(self._position)
        if self._like.known.dtype.kind != "O":
            return np.asarray(values, dtype=self._like.known.dtype)
        array = np.empty(len(values), dtype=object)
        array[:] = values
        return array

    def summary(self, weights: Sequence[Floats] | None = None) -> Vector:
        """The different values with their counts, or all numbers; `weights` are those of
        each part."""
        if self.wide:
            return NumericOnDisk(np.zeros(1), column=self, weights_of=weights)
        return self._summary(self.different(), None)

    def _summary(self, known: NDArray[Any], gaps: NDArray[np.bool_] | None) -> Summary:
        like = self._like
        counts = (self._rows.astype(np.int64), self._mass, np.asarray(self._first, dtype=np.int64))
        kind = (like.labelled, like.levels, like.loose, like.scales)
        return Summary(known, gaps, *kind, *counts, n_all=self.n)

    # ---- reading again ------------------------------------------------------------------

    @property
    def n_parts(self) -> int:
        """Parts that were written."""
        return len(self._written)

    def numbers(self, i: int, table: Floats | None) -> Floats:
        """Numbers of part i, NaN where missing; `table` has the number of each code, then NaN."""
        written = self._written[i]
        stored = self.store.read(written.part)
        if written.wide:
            return stored.astype(np.float64)
        assert table is not None
        return table[stored]

    def codes(self, i: int, table: NDArray[Any]) -> NDArray[Any]:
        """Codes of part i; `table` maps stored codes to these, its last entry is -1."""
        return np.asarray(table[self.store.read(self._written[i].part)])

    def number_table(self) -> Floats:
        """The number of each stored code, then NaN: an index of -1 is missing."""
        return np.append(self.different().astype(np.float64), np.nan)


@dataclass(frozen=True, eq=False)
class NumericOnDisk(Vector):
    """A column of numbers that lies on disk."""

    column: StreamedColumn = field(kw_only=True)
    weights_of: Sequence[Floats] | None = field(kw_only=True)

    @property
    def n(self) -> int:
        """Rows of the column."""
        return self.column.n

    def parts(self) -> Iterator[tuple[Floats, Floats | None]]:
        """Known numbers of each part, and their weights."""
        table = self.column.number_table()
        for i in range(self.column.n_parts):
            x = self.column.numbers(i, table)
            known = ~np.isnan(x)
            yield x[known], None if self.weights_of is None else self.weights_of[i][known]

    def variable(self, name: str, requested: str) -> NumericOnDiskVariable:
        """The variable, as `vector_variables.variable_of` would make it of the rows."""
        family = "gaussian" if requested == AUTO else vector_family(requested, self, name)
        extent = range_of(self.parts)
        if requested == AUTO and self._numbers_rows(extent):
            raise identifier(name, extent.rows, True)
        if family == "poisson":
            self._check_counts(name)
        at_once = self.column.store.held or extent.rows <= SORTED_AT_ONCE
        edges = streamed_edges(self.parts, extent, at_once)
        varies = edges.size and streamed_varies(self.parts, extent)
        return NumericOnDiskVariable(
            name,
            family,
            len(edges) + 1,
            n_missing=self.n - extent.rows,
            constant=None if varies else OnlyValue.number(extent.low),
            edges=edges,
        )

    def _numbers_rows(self, extent: Range) -> bool:
        """Whether values number the rows, as `families` defines it."""
        near = extent.rows > MAX_ALL_UNIQUE and extent.high - extent.low + 1 < 2 * self.n
        return extent.whole and near and all_different(self.parts, extent)

    def _check_counts(self, name: str) -> None:
        table, start = self.column.number_table(), 0
        for i in range(self.column.n_parts):
            x = self.column.numbers(i, table)
            bad = (x < 0) | (x != np.floor(x)) & ~np.isnan(x)
            if bad.any():
                row = int(bad.argmax())
                raise wrong_count(x[row], start + row, name, "poisson")
            start += len(x)


@dataclass(frozen=True, eq=False)
class NumericOnDiskVariable(Variable):
    """A numeric variable whose values lie on disk; `edges` are those of its bins."""

    edges: Floats = field(default_factory=lambda: np.empty(0))

    def bins(self, x: Floats) -> NDArray[np.int64]:
        """Bins of some of its numbers, -1 where NaN."""
        return np.where(np.isnan(x), -1, bin_codes(x, self.edges))


# ---- parts ------------------------------------------------------------------------------


def _different(known: NDArray[Any]) -> Different:
    """Different values, and the position of each value among them."""
    kind = known.dtype.kind
    if not len(known):
        return [], np.empty(0, dtype=np.int64)
    if kind == "O":
        position: dict[Any, int] = {}
        numbers = (position.setdefault(value, len(position)) for value in known.tolist())
        local = np.fromiter(numbers, np.int64, len(known))
        return list(position), local
    if kind in "biu":
        labels, local = encode_integers(np.ascontiguousarray(known))
    else:
        labels, local = np.unique(known, return_inverse=True)
    return labels.tolist(), local


def _longer(values: NDArray[Any], size: int) -> NDArray[Any]:
    return np.concatenate([values, np.zeros(size - len(values))]) if size > len(values) else values
