"""Rows of arrays and CSR matrices, also of those that lie in scratch files.

- `take_rows`: some rows, in memory.
- `rearranged_rows`: rows in any order; what lay in a mapped file lies in a new one.

A row that is read from a map brings its page into memory, and the pages around it: scattered rows
bring all. So few rows of a scratch file are taken at a time, and pages are released in between.
Rows of a file in any order are distributed into buckets first: the rows of the file in turn, each
to the bucket of its new position; then each bucket is ordered by itself. Two passes over the file,
whatever its size.

`table.Table`, `content_order` and `distinct_rows` call this module.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.streaming.scratch import (
    Arrays,
    Part,
    ScratchFolder,
    ScratchMap,
    about_to_read,
    map_of,
)

Ints = NDArray[np.int64]
Positions = NDArray[Any]

ROWS_AT_ONCE = 256
READ_AHEAD = 1 << 16  # bytes that Linux reads around one that is requested

BUCKET_BYTES = 1 << 21, 1 << 25
"""Least and most bytes of the rows of a bucket, and of rows that are distributed together: more for
large tables, so that each write to a bucket is large enough."""


def take_rows(array: Any, index: Any) -> Any:
    """`array[index]` of an array or CSR matrix: a view for a slice, else a copy."""
    if sparse.issparse(array):
        return _take_csr_rows(array, index)
    if isinstance(index, slice):
        rows = array[index]
        about_to_read(array, rows.nbytes)
        return rows
    if scratch_map(array) is None:
        return array[index]
    positions = _positions(index)
    rows = np.empty((len(positions), *array.shape[1:]), dtype=array.dtype)
    for start, part in _parts(array, positions, array.nbytes // max(len(array), 1)):
        rows[start : start + len(part)] = array[part]
    return rows


def scratch_map(array: Any) -> ScratchMap | None:
    """The scratch file that an array, or the column indices of a CSR matrix, lie in."""
    memory = map_of(array.indices if sparse.issparse(array) else array)
    return memory if isinstance(memory, ScratchMap) else None


def _take_csr_rows(matrix: Any, index: Any) -> Any:
    if isinstance(index, slice) and index.step is None:
        return _csr_view(matrix, *index.indices(matrix.shape[0])[:2])
    if scratch_map(matrix) is None or isinstance(index, slice):
        return sparse.csr_array(matrix[index])
    row = 8 * matrix.nnz // max(matrix.shape[0], 1)
    parts = [
        sparse.csr_array(matrix[part]) for _, part in _parts(matrix.indices, _positions(index), row)
    ]
    return sparse.csr_array(sparse.vstack(parts, format="csr")) if parts else matrix[:0]


def _csr_view(matrix: Any, start: int, stop: int) -> Any:
    """Rows start:stop; only the row pointers are copied."""
    stop = max(start, stop)
    indptr = matrix.indptr[start : stop + 1]
    stored = slice(indptr[0], indptr[-1])
    about_to_read(matrix.indices, 8 * int(indptr[-1] - indptr[0]))
    return sparse.csr_array(
        (matrix.data[stored], matrix.indices[stored], indptr - indptr[0]),
        shape=(stop - start, matrix.shape[1]),
    )


def _parts(
    array: NDArray[Any], positions: Positions, width: int
) -> Iterator[tuple[int, Positions]]:
    """Few positions at a time; pages that were read for those before are released."""
    for start in range(0, len(positions), ROWS_AT_ONCE):
        part = positions[start : start + ROWS_AT_ONCE]
        span = int(part.max()) - int(part.min()) + 1
        about_to_read(array, min(span * width, len(part) * (width + READ_AHEAD)))
        yield start, part


def _positions(index: Any) -> Positions:
    """Integers, or where a mask is True."""
    index = np.asarray(index)
    return np.flatnonzero(index) if index.dtype == np.bool_ else index


# --- any order -----------------------------------------------------------------------


def rearranged_rows(
    array: Any, positions: Positions, bucket_bytes: tuple[int, int] = BUCKET_BYTES
) -> Any:
    """`array[positions]` of an array or CSR matrix with sorted indices, which stay sorted; each row
    perhaps several times. What was mapped is mapped again, in a file in the same folder, by way of
    buckets of at least and at most `bucket_bytes`."""
    if sparse.issparse(array):
        return _rearranged_csr(array, positions, bucket_bytes)
    if not any(array.strides):  # a view of a single value
        return np.broadcast_to(array[:1], (len(positions), *array.shape[1:]))
    memory = map_of(array)
    if memory is None:
        return np.ascontiguousarray(array[positions])
    width = max(array.nbytes // max(len(array), 1), 1)
    folder = getattr(memory, "folder", None)
    buckets = RowBuckets(positions, len(array), width, folder, bucket_bytes)
    arrays = Arrays(0, buckets.folder)
    arrays.add(buckets.rearranged(array), (len(positions), *array.shape[1:]), array.dtype)
    return arrays.finish()[0]


def _rearranged_csr(
    matrix: sparse.csr_array, positions: Positions, bucket_bytes: tuple[int, int]
) -> sparse.csr_array:
    memory = map_of(matrix.indices)
    if memory is None:
        rows = sparse.csr_array(matrix[positions])
    else:
        rows = _mapped_csr(matrix, positions, getattr(memory, "folder", None), bucket_bytes)
    rows.has_sorted_indices = True
    return rows


def _mapped_csr(
    matrix: sparse.csr_array, positions: Positions, folder: Any, bucket_bytes: tuple[int, int]
) -> sparse.csr_array:
    lengths = np.diff(matrix.indptr)[positions]
    indptr = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(matrix.indptr.dtype)
    width = 8 * matrix.nnz // max(matrix.shape[0], 1) + 8
    arrays, shape = Arrays(0, folder), (int(indptr[-1]),)
    for name in ("indices", "data"):
        values = getattr(matrix, name)
        ends = np.asarray(matrix.indptr)
        buckets = RaggedRowBuckets(positions, matrix.shape[0], width, folder, bucket_bytes, ends)
        arrays.add(buckets.rearranged(values), shape, values.dtype)
    indices, data = arrays.finish()
    return sparse.csr_array(
        (data, indices, indptr), shape=(len(positions), matrix.shape[1]), copy=False
    )


class RowBuckets:
    """Rows of a file on their way to new positions.

    `positions` `(m,)` says which of `n` rows each of the new ones is; a row has `width` bytes."""

    def __init__(
        self, positions: Positions, n: int, width: int, folder: Any, bucket_bytes: tuple[int, int]
    ) -> None:
        self.folder, self.n, self.positions = folder, n, positions
        least, most = bucket_bytes
        n_bytes = min(max(int(np.sqrt(n * width * 2**14)), least), most)
        self.size = max(1, n_bytes // width)
        # New positions in the order of the old ones.
        self._to = np.argsort(positions, kind="stable").astype(positions.dtype)
        self._ends = np.searchsorted(
            positions, np.arange(0, n + self.size, self.size), sorter=self._to
        )

    def rearranged(self, values: NDArray[Any]) -> Iterator[NDArray[Any]]:
        """The rows of an array in a file at their new positions, bucket by bucket."""
        scratch = ScratchFolder(self.folder)
        buckets = self._distribute(values, scratch)
        for i, parts in enumerate(buckets):
            positions = self.positions[i * self.size : (i + 1) * self.size]
            order = np.argsort(positions, kind="stable")  # rows came in the order of the file
            yield self.arranged([scratch.read(part) for part in parts], i * self.size + order)

    def _distribute(self, values: NDArray[Any], scratch: ScratchFolder) -> list[list[Part]]:
        """The rows of the file in turn, each written to the bucket of its new position."""
        buckets: list[list[Part]] = [[] for _ in range(0, len(self.positions), self.size)]
        for block, start in enumerate(range(0, self.n, self.size)):
            rows = self.read(values, start, min(start + self.size, self.n))
            new = self._to[self._ends[block] : self._ends[block + 1]]
            bucket = new // self.size
            order = np.argsort(bucket, kind="stable")
            ends = np.searchsorted(bucket[order], np.arange(len(buckets) + 1))
            for i in np.flatnonzero(np.diff(ends)).tolist():
                own = self.positions[new[order[ends[i] : ends[i + 1]]]].astype(np.int64) - start
                buckets[i].append(scratch.add(self.pick(rows, own)))
        return buckets

    def read(self, values: NDArray[Any], start: int, stop: int) -> Any:
        """Rows start:stop."""
        about_to_read(values, values[start:stop].nbytes)
        return values[start:stop]

    def pick(self, rows: Any, which: Ints) -> NDArray[Any]:
        """Some of the rows that were read, as they are written."""
        return np.asarray(rows[which])

    def arranged(self, parts: list[NDArray[Any]], new: Ints) -> NDArray[Any]:
        """The rows of a bucket by their new positions."""
        return np.asarray(np.concatenate(parts)[np.argsort(new)])


class RaggedRowBuckets(RowBuckets):
    """The same where row `i` is `values[ends[i]:ends[i + 1]]`."""

    def __init__(
        self,
        positions: Positions,
        n: int,
        width: int,
        folder: Any,
        bucket_bytes: tuple[int, int],
        ends: NDArray[Any],
    ) -> None:
        super().__init__(positions, n, width, folder, bucket_bytes)
        self._offsets, self._lengths = ends, np.diff(ends)[positions]

    def read(self, values: NDArray[Any], start: int, stop: int) -> Any:
        """Rows start:stop as a CSR of one entry for each value."""
        ends = self._offsets[start : stop + 1]
        about_to_read(values, values[ends[0] : ends[-1]].nbytes)
        return _ragged(values[ends[0] : ends[-1]], ends - ends[0])

    def pick(self, rows: Any, which: Ints) -> NDArray[Any]:
        """The values of some of the rows that were read."""
        return np.asarray(rows[which].data)

    def arranged(self, parts: list[NDArray[Any]], new: Ints) -> NDArray[Any]:
        """The values of a bucket by the new positions of their rows."""
        ends = np.concatenate([[0], np.cumsum(self._lengths[new])])
        return np.asarray(_ragged(np.concatenate(parts), ends)[np.argsort(new)].data)


def _ragged(values: NDArray[Any], ends: NDArray[Any]) -> sparse.csr_array:
    """Rows of different lengths as a CSR, whose rows can be taken in any order."""
    width = max(int(np.diff(ends).max(initial=0)), 1)
    columns = np.zeros(len(values), dtype=np.int64)
    return sparse.csr_array((values, columns, ends), shape=(len(ends) - 1, width))
