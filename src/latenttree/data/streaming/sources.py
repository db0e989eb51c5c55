"""Files and mapped arrays as sources of chunks of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from latenttree.data.checks import check_shape, resolve_names
from latenttree.data.columns.vectors import Column, training_vector, vector_of_array
from latenttree.data.files.boundary import reading
from latenttree.data.files.csv_batches import checked_header, coded_texts, csv_batches
from latenttree.data.files.csv_cells import Roles, weights_of_texts
from latenttree.data.files.npy import Header, Npz, opened_npy, read_values
from latenttree.data.files.parquet import parquet_batches, parquet_columns, parquet_file
from latenttree.data.streaming.assemble import RowBlock
from latenttree.data.streaming.scratch import Arrays, release
from latenttree.errors import DataError

Blocks = Callable[[int], Iterator[NDArray[Any]]]
"""From a number of rows to blocks of at most so many."""

ROWS = 1 << 20
"""Most rows in a chunk: the number of different values of a column shows early."""

MIN_ROW_BYTES = 64
"""Bytes that a row counts at least: coding one value of a column takes so many."""


CELL_BYTES = 1 << 11
"""Bytes of text for each column of a .csv in a chunk, if they fit: an array of few cells takes as
long as one of hundreds."""


class RowSource(NamedTuple):
    """Names of the columns, and a function from bytes to chunks of at most that size."""

    header: list[str]
    chunks: Callable[[int], Iterator[RowBlock]]
    texts: bool = False


def with_weights(source: RowSource, weights: NDArray[Any] | None) -> RowSource:
    """The same rows with their weights."""
    if weights is None:
        return source

    def chunks(size: int) -> Iterator[RowBlock]:
        start = 0
        for chunk in source.chunks(size):
            yield chunk._replace(weights=weights[start : start + chunk.n])
            start += chunk.n

    return source._replace(chunks=chunks)


# ---- arrays -----------------------------------------------------------------------------


def _source_of_blocks(
    shape: tuple[int, ...], dtype: np.dtype[Any], names: Sequence[Any] | None, blocks: Blocks
) -> RowSource:
    """Rows of an array of which `blocks` yields some at a time."""
    check_shape(shape)
    header = resolve_names(names, shape[1])

    def chunks(size: int) -> Iterator[RowBlock]:
        start = 0
        for block in blocks(rows_in(size, shape[1] * dtype.itemsize)):
            columns = (np.ascontiguousarray(block[:, j]) for j in range(shape[1]))
            pairs = zip(columns, header, strict=True)
            vectors = [vector_of_array(column, name, None, start) for column, name in pairs]
            yield RowBlock(len(block), vectors)
            start += len(block)

    return RowSource(header, chunks)


def array_source(array: NDArray[Any], names: Sequence[Any] | None = None) -> RowSource:
    """Rows of an array in a mapped file; pages that were read are released."""

    def blocks(step: int) -> Iterator[NDArray[Any]]:
        for start in range(0, len(array), step):
            _check_still_there(array)
            yield np.asarray(array[start : start + step])
            release(array)

    return _source_of_blocks(array.shape, array.dtype, names, blocks)


def _check_still_there(array: NDArray[Any]) -> None:
    """Raise if the mapped file was cut since: reading the map would end the process."""
    path, offset = getattr(array, "filename", None), getattr(array, "offset", 0)
    if path is not None and Path(path).is_file():
        size, needed = Path(path).stat().st_size, offset + array.nbytes
        if size < needed:
            raise DataError(
                f"X is a map of {Path(path).name}, which has only {size:,} of {needed:,} bytes now",
                "write it again, and do not change it while it is read",
                value=size,
                path=str(path),
            )


def npy_source(path: Path) -> RowSource:
    """Rows of a .npy, read from the file: a map would end the process if the file were cut."""

    @contextmanager
    def opened() -> Iterator[tuple[IO[bytes], Header]]:
        with reading(path), opened_npy(path) as found:
            yield found

    return _file_source(opened)


def npz_source(path: Path, member: str) -> RowSource:
    """Rows of the only array of an .npz; a column-major array is unpacked to a scratch
    file first."""
    archive = Npz(path)
    with archive.opened(member) as (_, header):
        if header.by_columns:
            return array_source(unpacked(path, member))
    return _file_source(lambda: archive.opened(member))


def _file_source(
    opened: Callable[[], AbstractContextManager[tuple[IO[bytes], Header]]],
) -> RowSource:
    with opened() as (_, (shape, by_columns, dtype)):
        pass

    def blocks(step: int) -> Iterator[NDArray[Any]]:
        with opened() as (file, _):
            begin = file.tell()
            for start in range(0, shape[0], step):
                n = min(step, shape[0] - start)
                if by_columns:
                    yield _rows_by_columns(file, begin, shape, dtype, start, n)
                else:
                    yield read_values(file, n * shape[1], dtype).reshape(n, shape[1])

    return _source_of_blocks(shape, dtype, None, blocks)


def _rows_by_columns(
    file: Any, begin: int, shape: tuple[int, ...], dtype: np.dtype[Any], start: int, n: int
) -> NDArray[Any]:
    """(n, p) rows from `start` of an array that is written column by column."""
    columns = np.empty((shape[1], n), dtype)
    for j in range(shape[1]):
        file.seek(begin + (j * shape[0] + start) * dtype.itemsize)
        columns[j] = read_values(file, n, dtype)
    return columns.T


def unpacked(path: Path, member: str, folder: str | Path | None = None) -> NDArray[Any]:
    """An array of an archive, mapped from a scratch file."""
    with Npz(path).opened(member) as (file, (shape, by_columns, dtype)):
        arrays, total = Arrays(0, folder), int(np.prod(shape))
        steps = [min(ROWS, total - start) for start in range(0, total, ROWS)]
        arrays.add((read_values(file, n, dtype) for n in steps), (total,), dtype)
    (flat,) = arrays.finish()
    return flat.reshape(shape, order="F" if by_columns else "C")


def rows_in(size: int, width: int) -> int:
    """Rows of `width` bytes that fit in `size` bytes."""
    return max(1, min(ROWS, size // max(width, MIN_ROW_BYTES)))


# ---- Parquet ----------------------------------------------------------------------------


def parquet_source(path: Path, roles: Roles) -> RowSource:
    """Rows of a .parquet."""
    with parquet_file(path) as file:
        others = roles.variables(parquet_columns(file))
    weights = roles.weights
    columns = others if weights is None else [*others, weights]

    def chunks(size: int) -> Iterator[RowBlock]:
        start = 0
        for table in parquet_batches(path, columns, rows_in(size, 16 * len(columns))):
            frame = nw.from_native(table, eager_only=True)
            vectors = [
                training_vector(Column(frame.get_column(name)), name, start) for name in others
            ]
            counts = None if weights is None else frame.get_column(weights).to_numpy()
            yield RowBlock(len(table), vectors, counts)
            start += len(table)

    return RowSource(others, chunks)


# ---- comma-separated text ---------------------------------------------------------------


def csv_source(path: Path, delimiter: str, roles: Roles, held: bool = False) -> RowSource:
    """Rows of a .csv, as texts; more at once where all of the file may be held in memory."""
    header = checked_header(path, delimiter)
    names, weights = roles.variables(header), roles.weights
    if len(names) < len(header):
        resolve_names(None, len(header), header)  # a role belongs to one column
    wanted = [j for j, name in enumerate(header) if name in set(names)]
    others = wanted if weights is None else [*wanted, header.index(weights)]

    def chunks(size: int) -> Iterator[RowBlock]:
        start, most = 0, size // (2 if held else 4)
        block = max(size // 16, min(most, CELL_BYTES * len(header)))
        for columns in csv_batches(path, delimiter, others, block) if wanted else ():
            n, counts = len(columns[0]), None
            if weights is not None:
                counts = weights_of_texts(*coded_texts(columns[-1]), weights, start)
            yield RowBlock(n, columns[: len(wanted)], counts)
            start += n

    return RowSource(names, chunks, texts=True)
