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

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.streaming.scratch import (
    Arrays,
    ScratchFolder,
    ScratchMap,
    about_to_read,
    map_of,
)

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


def stacked(parts: list[Any]) -> Any:
    """Arrays or CSR matrices one below the other; None where they are None."""
    if parts[0] is None:
        return None
    if sparse.issparse(parts[0]):
        return sparse.csr_array(sparse.vstack(parts, format="csr"))
    return np.concatenate(parts)


# --- any order -----------------------------------------------------------------------


def rearranged_rows(
    array: Any, positions: Positions, bucket_bytes: tuple[int, int] = BUCKET_BYTES
) -> Any:
    """`array[positions]` of an array or CSR matrix with sorted indices, which stay sorted; each row
    perhaps several times. What was mapped is mapped again, in a file in the same folder, by way of
    buckets of at least and at most `bucket_bytes`."""
    is_sparse = sparse.issparse(array)
    if not is_sparse and not any(array.strides):  # a view of a single value
        return np.broadcast_to(array[:1], (len(positions), *array.shape[1:]))
    memory = map_of(array.indices if is_sparse else array)
    if memory is not None:
        scratch = ScratchFolder(getattr(memory, "folder", None))
        return _by_buckets(array, positions, scratch, bucket_bytes)
    return _canonical(array[positions]) if is_sparse else np.ascontiguousarray(array[positions])


def _canonical(matrix: Any) -> sparse.csr_array:
    rows = sparse.csr_array(matrix, copy=False)
    rows.has_sorted_indices = True
    return rows


def _by_buckets(
    array: Any, positions: Positions, scratch: ScratchFolder, bucket_bytes: tuple[int, int]
) -> Any:
    n, is_sparse = array.shape[0], sparse.issparse(array)
    n_stored = 8 * (array.nnz + n) if is_sparse else array.nbytes
    n_bytes = np.clip(int(np.sqrt(n_stored * 2**14)), *bucket_bytes)
    size = max(1, int(n_bytes) // max(n_stored // max(n, 1), 1))
    buckets = _distributed(array, positions, scratch, size)
    arrays, shape = Arrays(0, scratch.folder), (len(positions), *array.shape[1:])
    if not is_sparse:
        rows = arrays.new(shape, array.dtype)
        for bucket in _arranged(buckets, positions, size):
            rows.append(bucket)
        return arrays.finish()[0]
    ends = np.cumsum(np.diff(array.indptr)[positions], dtype=np.int64)
    indptr = np.append(0, ends).astype(array.indptr.dtype)
    indices = arrays.new((int(indptr[-1]),), array.indices.dtype)
    data = arrays.new((int(indptr[-1]),), array.data.dtype)
    for bucket in _arranged(buckets, positions, size):
        indices.append(bucket.indices)
        data.append(bucket.data)
    columns, values = arrays.finish()
    return _canonical(sparse.csr_array((values, columns, indptr), shape=shape, copy=False))


Read = Callable[[], Any]


def _distributed(
    array: Any, positions: Positions, scratch: ScratchFolder, size: int
) -> list[list[Read]]:
    """The rows of the file in turn, `size` at a time, each written to the bucket of its new
    position; what reads them again."""
    buckets: list[list[Read]] = [[] for _ in range(0, len(positions), size)]
    starts = np.arange(0, array.shape[0] + size, size)
    by_old = np.argsort(positions, kind="stable").astype(positions.dtype)
    cuts = np.searchsorted(positions, starts, sorter=by_old)
    for start, low, high in zip(starts.tolist(), cuts, cuts[1:], strict=False):
        rows, new = take_rows(array, slice(start, start + size)), by_old[low:high]
        new = new[np.argsort(new // size, kind="stable")]
        ends = np.searchsorted(new // size, np.arange(len(buckets) + 1))
        for i in np.flatnonzero(np.diff(ends)).tolist():
            own = positions[new[ends[i] : ends[i + 1]]].astype(np.int64) - start
            buckets[i].append(_written(rows[own], scratch))
    return buckets


def _written(rows: Any, scratch: ScratchFolder) -> Read:
    """Rows of an array or CSR in a scratch file, and what reads them."""
    if not sparse.issparse(rows):
        return partial(scratch.read, scratch.add(rows))
    parts, shape = [scratch.add(x) for x in (rows.data, rows.indices, rows.indptr)], rows.shape
    return lambda: sparse.csr_array(tuple(map(scratch.read, parts)), shape=shape)


def _arranged(buckets: list[list[Read]], positions: Positions, size: int) -> Iterator[Any]:
    """The rows at their new positions, bucket by bucket."""
    for i, parts in enumerate(buckets):
        in_file = np.argsort(positions[i * size : (i + 1) * size], kind="stable")
        yield stacked([read() for read in parts])[np.argsort(in_file)]
