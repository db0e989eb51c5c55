"""Chunks of rows to a `Table`, in memory or, where it is too large, in a mapped file."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterable, Iterator, Sequence
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
from latenttree.data.streaming.scratch import Arrays, ScratchFolder
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
    table = _table(_Rows(columns, variables, written.sizes), plan)
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
        return Vector(values.known[keep], None, values.labelled, values.levels, values.loose)
    known, gaps = values.known[keep[~values.gaps]], values.gaps[keep]
    return Vector(known, gaps, values.labelled, values.levels, values.loose)


# ---- the table --------------------------------------------------------------------------


class _Rows:
    """Codes and numbers of the columns, part by part."""

    def __init__(
        self, columns: Sequence[StreamedColumn], variables: Sequence[Variable], sizes: Sequence[int]
    ) -> None:
        self.columns, self.variables, self.sizes = columns, variables, sizes
        self.n = sum(sizes)

    def kept(self, index: Sequence[int]) -> _Rows:
        return _Rows(
            [self.columns[i] for i in index], [self.variables[i] for i in index], self.sizes
        )

    def codes(self, dtype: Any, bins: bool) -> Iterator[NDArray[Any]]:
        """(rows, p) codes of each part; of numbers the bins, or -1."""
        tables = [
            self._table(column, v) for column, v in zip(self.columns, self.variables, strict=True)
        ]
        for i, size in enumerate(self.sizes):
            tell_number("coded", sum(self.sizes[:i]))
            block = np.empty((size, len(self.columns)), dtype=dtype)
            for j, variable in enumerate(self.variables):
                if not bins and variable.family not in CODED:
                    block[:, j] = -1
                elif isinstance(variable, NumericOnDiskVariable):
                    block[:, j] = variable.bins(self.columns[j].numbers(i, tables[j]))
                else:
                    block[:, j] = self.columns[j].codes(i, tables[j])
            yield block

    def _table(self, column: StreamedColumn, variable: Variable) -> NDArray[Any]:
        """What each stored code means, and -1: a code of the variable, or a number to bin."""
        if isinstance(variable, NumericOnDiskVariable):
            return column.number_table()
        assert variable.codes is not None
        return np.append(variable.codes, -1)

    def numbers(self, j: int) -> Iterator[Floats]:
        """(rows,) numbers of column j in each part."""
        column, variable = self.columns[j], self.variables[j]
        if isinstance(variable, NumericOnDiskVariable):
            table = column.number_table()
        else:
            table = np.append(variable.values, np.nan)
        for i in range(column.n_parts):
            yield column.numbers(i, table)


def _table(rows: _Rows, plan: ReadPlan) -> Table:
    kept, dropped = varying(rows.variables, rows.n, plan.drop_constant)
    largest = max(2, *(variable.dim for variable in rows.variables))
    dtype = code_dtype(largest, any(variable.n_missing for variable in rows.variables))
    notes = all_missing_notes(rows.variables)
    rows = rows.kept(kept)
    arrays, shape = plan.arrays(), (rows.n, len(kept))
    arrays.add(rows.codes(dtype, True), shape, dtype)
    if all_categorical(rows.variables):
        (codes,) = arrays.finish()
        return table_of(rows.variables, rows.n, dropped, notes, codes=codes)
    coded = [variable.dim for variable in rows.variables if variable.family in CODED]
    signed: Any = code_dtype(max(coded), signed=True) if coded else np.int8
    if coded:
        arrays.add(rows.codes(signed, False), shape, signed)
    numbers = [j for j, variable in enumerate(rows.variables) if variable.family not in CODED]
    for j in numbers:
        arrays.add(rows.numbers(j), (rows.n,), np.float64)
    codes, *others = arrays.finish()
    categories = others.pop(0) if coded else np.broadcast_to(np.int8(-1), shape)
    families = tuple(variable.family for variable in rows.variables)
    values = Values(families, categories, dict(zip(numbers, others, strict=True)))
    return table_of(rows.variables, rows.n, dropped, notes, codes=codes, values=values)
