"""Some rows of arrays and sparse matrices, also of those that lie in scratch files.

A row that is read from a map brings its page into memory, and the pages around it: rows here and
there bring all. So of a scratch file few rows are taken at a time, and pages are let go between.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.scratch import Arrays, ScratchMap, about_to_read, map_of

_ROWS = 256  # taken at a time
_AROUND = 1 << 16  # bytes that Linux brings around one that is read


def taken(array: Any, index: Any) -> Any:
    """`array[index]` of an array or CSR matrix: a view for a slice of an array, else a copy."""
    if sparse.issparse(array):
        return _taken_rows(array, index)
    if isinstance(index, slice):
        found = array[index]
        about_to_read(array, found.nbytes)
        return found
    if scratch_map(array) is None:
        return array[index]
    places = _places(index)
    found = np.empty((len(places), *array.shape[1:]), dtype=array.dtype)
    for start, part in _parts(array, places, array.nbytes // max(len(array), 1)):
        found[start : start + len(part)] = array[part]
    return found


def scratch_map(array: Any) -> ScratchMap | None:
    """The scratch file that an array, or the columns of a CSR matrix, lie in."""
    found = map_of(array.indices if sparse.issparse(array) else array)
    return found if isinstance(found, ScratchMap) else None


def rows_to_scratch(array: Any, index: NDArray[np.int64]) -> Any:
    """The rows `index` of an array or a CSR matrix that lies in a scratch file, in a file of their
    own in the same folder."""
    found = scratch_map(array)
    arrays = Arrays(0, None if found is None else found.folder)
    if not sparse.issparse(array):
        parts = (taken(array, part) for part in _chunks(index))
        arrays.add(parts, (len(index), *array.shape[1:]), array.dtype)
        return arrays.finish()[0]
    ends = np.concatenate([[0], np.cumsum(np.diff(array.indptr)[index])])
    for values in ("indices", "data"):
        parts = (getattr(taken(array, part), values) for part in _chunks(index))
        arrays.add(parts, (int(ends[-1]),), getattr(array, values).dtype)
    indices, data = arrays.finish()
    indptr = ends.astype(array.indptr.dtype)
    shape = (len(index), array.shape[1])
    rows = sparse.csr_array((data, indices, indptr), shape=shape, copy=False)
    rows.has_canonical_format = True
    return rows


def _taken_rows(matrix: Any, index: Any) -> Any:
    if scratch_map(matrix) is None or isinstance(index, slice):
        return sparse.csr_array(matrix[index])
    row = 8 * matrix.nnz // max(matrix.shape[0], 1)
    parts = [
        sparse.csr_array(matrix[part]) for _, part in _parts(matrix.indices, _places(index), row)
    ]
    return sparse.csr_array(sparse.vstack(parts, format="csr")) if parts else matrix[:0]


def _parts(
    array: NDArray[Any], places: NDArray[Any], width: int
) -> Iterator[tuple[int, NDArray[Any]]]:
    """Some places after the other; pages that were read for those before are let go."""
    for start in range(0, len(places), _ROWS):
        part = places[start : start + _ROWS]
        span = int(part.max()) - int(part.min()) + 1
        about_to_read(array, min(span * width, len(part) * (width + _AROUND)))
        yield start, part


def _chunks(index: NDArray[Any]) -> Iterator[NDArray[Any]]:
    step = 64 * _ROWS
    return (index[start : start + step] for start in range(0, len(index), step))


def _places(index: Any) -> NDArray[Any]:
    found = np.asarray(index)
    return np.flatnonzero(found) if found.dtype == np.bool_ else found
