"""Chunks of rows to a `Table`, in memory or, where it is too large, in a mapped file."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.data.checks import check_shape, resolve_names
from latenttree.data.columns.builder import TableBuilder
from latenttree.data.columns.codes import code_dtype
from latenttree.data.columns.families import AUTO, Family, requested_families
from latenttree.data.columns.variables import (
    Variable,
    all_categorical,
    all_missing_notes,
    table_of,
    varying,
)
from latenttree.data.columns.vectors import Vector
from latenttree.data.streaming.columns import (
    MAX_DISTINCT,
    NumericOnDiskVariable,
    StreamedColumn,
)
from latenttree.data.streaming.scratch import Arrays, Growing, ScratchFolder
from latenttree.data.streaming.text_columns import TextColumn
from latenttree.data.table import Table
from latenttree.data.values import CODED, Values
from latenttree.data.weights import check_weights, checked_numbers, numbering_all_rows
from latenttree.engine.memory import room_for_table, room_within
from latenttree.engine.progress import tell_number
from latenttree.errors import DataError

Floats = NDArray[np.float64]


class RowBlock(NamedTuple):
    """Rows of a table: a vector, or a pyarrow array of texts, for each column; and the weights of
    the rows."""

    n: int
    columns: Sequence[Any]
    weights: Floats | None = None


class ReadPlan(NamedTuple):
    """How a table is read.

    Attributes
    ----------
    limit : bytes that the process may hold; the table may take a quarter of what is left of them,
        else it lies in a file.
    names, family, drop_constant : as in `as_table`.
    scratch : folder of the files; that of the system if None.
    held : whether all rows of a .csv fit in memory, so that no scratch file is needed.
    scores : as in `as_table`; only where rows are held.
    max_distinct : see `TextColumn`.
    """

    limit: int
    names: Sequence[Any] | None = None
    family: Family = AUTO
    drop_constant: bool = False
    scratch: str | Path | None = None
    held: bool = False
    scores: bool = False
    max_distinct: int = MAX_DISTINCT

    @property
    def chunk_bytes(self) -> int:
        """Memory that the rows read at once may take."""
        return max(1 << 20, min(1 << 25, room_within(self.limit) // 16))

    def arrays(self) -> Arrays:
        """Where the arrays of the table go: memory, or a mapped file."""
        room = sys.maxsize if self.held else room_for_table(self.limit)
        return Arrays(room, self.scratch)


def streamed_table(
    header: Sequence[str], chunks: Iterable[RowBlock], plan: ReadPlan, texts: bool = False
) -> Table:
    """The table of rows that come in chunks; equal, to the last bit, to that of all rows at once.

    Memory: a chunk, the different values of each column (but for decimal numbers), and the table
    where it fits. On disk: 1 to 8 bytes for each value, and the table where it does not fit."""
    names = resolve_names(plan.names, len(header), header)
    written = _ChunkWriter(_columns(names, plan, texts))
    columns = written.columns
    with ending(chunks):
        for chunk in chunks:
            written.add(chunk)
    n, weights = sum(written.sizes), written.weights
    check_shape((written.n_read, len(names)))
    if written.has_weights and not n:
        check_weights(np.zeros(written.n_read), written.n_read)
    check_shape((n, len(names)))
    total = None if weights is None else check_weights(np.concatenate(weights), n)
    total = None if total is None or (total == 1).all() else total
    build = TableBuilder(family=plan.family, drop_constant=plan.drop_constant)
    with written.numbering_all_rows():
        if plan.scores or (plan.held and total is not None and (total % 1 != 0).any()):
            vectors = (column.vector() for column in columns if isinstance(column, TextColumn))
            return replace(build, weights=total, scores=plan.scores).table_of(vectors, names, n)
        summaries = (column.summary(weights) for column in columns)
        variables = list(build.variables(summaries, names, n))
    table = _table(columns, variables, written.sizes, plan)
    return table if total is None else table.replace(weights=total)


@contextmanager
def ending(parts: Iterable[Any]) -> Iterator[None]:
    """What yields parts ends with this context, also by an error: the traceback would keep it, and
    pyarrow's threads read on until it ends."""
    try:
        yield
    finally:
        if isinstance(parts, Generator):
            parts.close()


def _columns(names: Sequence[str], plan: ReadPlan, texts: bool) -> list[StreamedColumn]:
    store = ScratchFolder(plan.scratch, plan.held)
    requested = zip(names, requested_families(plan.family, names), strict=True)
    if texts:
        return [TextColumn(name, family, store, plan.max_distinct) for name, family in requested]
    return [StreamedColumn(name, family, store) for name, family in requested]


class _ChunkWriter:
    """Writes chunks to the scratch files of the columns, without rows of weight 0.

    Attributes
    ----------
    sizes : rows of each chunk that count.
    n_read : rows of all chunks.
    """

    def __init__(self, columns: Sequence[StreamedColumn]) -> None:
        self.columns = columns
        self.sizes: list[int] = []
        self._weights: list[Floats] = []
        self._counts: list[NDArray[np.bool_]] = []  # which rows of each chunk count
        self.n_read = 0

    def add(self, chunk: RowBlock) -> None:
        """Write a chunk."""
        tell_number("read", sum(self.sizes) + chunk.n)
        chunk = self._counting(chunk)
        if not chunk.n:
            return
        with self.numbering_all_rows():
            for column, values in zip(self.columns, chunk.columns, strict=True):
                if isinstance(column, TextColumn):
                    column.add_texts(values, chunk.weights)
                else:
                    column.add(values, chunk.weights)
        self.sizes.append(chunk.n)
        if chunk.weights is not None:
            self._weights.append(chunk.weights)

    @property
    def has_weights(self) -> bool:
        """Whether rows have weights."""
        return bool(self._counts)

    @property
    def weights(self) -> list[Floats] | None:
        """The weights of the rows of each chunk; None where they have none."""
        return self._weights or None

    def numbering_all_rows(self) -> AbstractContextManager[None]:
        """Errors inside number rows among all that were read."""
        return numbering_all_rows(lambda: np.concatenate(self._counts) if self._counts else None)

    def _counting(self, chunk: RowBlock) -> RowBlock:
        """The chunk without rows of weight 0."""
        start, self.n_read = self.n_read, self.n_read + chunk.n
        if chunk.weights is None:
            return chunk
        try:
            weights = checked_numbers(chunk.weights, chunk.n)
        except DataError as error:
            error.renumber(range(start, start + chunk.n))
            raise
        keep = weights > 0
        self._counts.append(keep)
        if keep.all():
            return chunk._replace(weights=weights)
        columns = [_taken(values, keep) for values in chunk.columns]
        return RowBlock(int(keep.sum()), columns, weights[keep])


def _taken(values: Any, keep: NDArray[np.bool_]) -> Any:
    if not isinstance(values, Vector):
        rows = values.dictionary_decode().take(np.flatnonzero(keep))
        return rows.dictionary_encode()
    if values.gaps is None:
        return replace(values, known=values.known[keep])
    return replace(values, known=values.known[keep[~values.gaps]], gaps=values.gaps[keep])


# ---- the table --------------------------------------------------------------------------


class _Reading(NamedTuple):
    """A column on disk, the variable that it is, and what its stored codes mean: codes of the
    variable, then -1; and numbers, then NaN."""

    column: StreamedColumn
    variable: Variable
    codes: NDArray[Any] | None
    numbers: Floats | None

    @property
    def coded(self) -> bool:
        """Whether values are categories."""
        return self.variable.family in CODED

    def part(self, i: int) -> tuple[NDArray[Any], Floats | None]:
        """(rows,) codes of part i, of numbers the bins; and numbers, None of categories."""
        numbers = None if self.coded else self.column.numbers(i, self.numbers)
        if self.codes is not None:
            return self.column.codes(i, self.codes), numbers
        assert isinstance(self.variable, NumericOnDiskVariable)
        assert numbers is not None
        return self.variable.bins(numbers), numbers


def _reading(column: StreamedColumn, variable: Variable) -> _Reading:
    if isinstance(variable, NumericOnDiskVariable):
        return _Reading(column, variable, None, column.number_table())
    assert variable.codes is not None
    numbers = None if variable.family in CODED else np.append(variable.values, np.nan)
    return _Reading(column, variable, np.append(variable.codes, -1), numbers)


def _coded_parts(
    readings: Sequence[_Reading], sizes: Sequence[int], dtype: Any, numbers: Mapping[int, Growing]
) -> Iterator[NDArray[Any]]:
    """(rows, p) codes of each part; its numbers are appended to those of their columns."""
    for i, size in enumerate(sizes):
        tell_number("coded", sum(sizes[:i]))
        block = np.empty((size, len(readings)), dtype)
        for j, reading in enumerate(readings):
            block[:, j], values = reading.part(i)
            if values is not None:
                numbers[j].append(values)
        yield block


def _table(
    columns: Sequence[StreamedColumn],
    variables: Sequence[Variable],
    sizes: Sequence[int],
    plan: ReadPlan,
) -> Table:
    """The table of the variables, whose columns are read once more, part by part."""
    n = sum(sizes)
    kept, dropped = varying(variables, n, plan.drop_constant)
    largest = max(2, *(variable.dim for variable in variables))
    dtype = code_dtype(largest, any(variable.n_missing for variable in variables))
    notes = all_missing_notes(variables)
    readings = [_reading(columns[j], variables[j]) for j in kept]
    variables = [variables[j] for j in kept]
    arrays, shape = plan.arrays(), (n, len(kept))
    codes, mixed = arrays.new(shape, dtype), not all_categorical(variables)
    dims = [variable.dim for variable in variables if variable.family in CODED]
    signed: Any = code_dtype(max(dims), signed=True) if dims else np.int8
    categories = arrays.new(shape, signed) if mixed and dims else None
    real = [j for j, variable in enumerate(variables) if variable.family not in CODED]
    numbers = {j: arrays.new((n,), np.float64) for j in real}
    for block in _coded_parts(readings, sizes, dtype, numbers):
        codes.append(block)
        if categories is not None:
            block = block.astype(signed)
            block[:, real] = -1
            categories.append(block)
    found, *others = arrays.finish()
    if not mixed:
        return table_of(variables, n, dropped, notes, codes=found)
    signed_codes = others.pop(0) if dims else np.broadcast_to(np.int8(-1), shape)
    families = tuple(variable.family for variable in variables)
    all_values = Values(families, signed_codes, dict(zip(real, others, strict=True)))
    return table_of(variables, n, dropped, notes, codes=found, values=all_values)
