"""Checks of sparse matrices, before SciPy's compiled code, which trusts every index, reads them.

One pass over the indices, for matrices in memory and in files alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.data.checks import check_shape
from latenttree.errors import DataError

MAX_EMPTY = {"row": 1 << 26, "column": 1 << 22}
"""Empty rows and columns beyond which a declared size is held to be wrong: every column has a name,
and every row an index."""

REBUILD = (
    "make the matrix anew, for example from its rows, columns and values (scipy.sparse.coo_array)"
)

PARTS = {
    "csr": ("data", "indices", "indptr"),
    "csc": ("data", "indices", "indptr"),
    "bsr": ("data", "indices", "indptr"),
    "coo": ("data", "row", "col"),
    "dia": ("data", "offsets"),
}
"""The arrays of each of SciPy's formats."""


def check_sparse(X: Any) -> None:
    """Raise unless every index of a matrix in memory lies inside it, and its shape is plausible."""
    if len(X.shape) != 2:
        check_shape(X.shape)
    if X.format == "lil":
        _check_lists(X)
    elif X.format == "dok":
        keys = np.array(list(X.keys())).reshape(-1, 2)
        for axis, column in enumerate(keys.T):
            check_indices(column, X.shape[axis], ("row", "column")[axis])
    else:
        check_parts(X.format, X.shape, {name: getattr(X, name) for name in PARTS[X.format]})
    check_size(X.shape, X.nnz)


# ---- what must hold -----------------------------------------------------------------------


def check_size(shape: tuple[int, int], n_stored: int) -> None:
    """Raise if more rows or columns are empty than is plausible."""
    for size, what in zip(shape, MAX_EMPTY, strict=True):
        empty = size - n_stored
        if empty > MAX_EMPTY[what]:
            text = f"a sparse matrix of {size:,} {what}s has {n_stored:,} stored values"
            text += f": at least {empty:,} {what}s are empty, more than {MAX_EMPTY[what]:,}"
            example = "X = X[:, X.count_nonzero(axis=0) > 0]"
            remedy = f"correct its shape, or leave out what is empty ({example})"
            raise DataError(text, remedy, value=shape)


def check_parts(kind: str, shape: tuple[int, ...], parts: Mapping[str, Any]) -> None:
    """Raise unless the arrays of a matrix fit each other and its shape."""
    wrong = next((name for name, part in parts.items() if not isinstance(part, np.ndarray)), None)
    if wrong is not None:
        raise _damaged(f"{wrong!r} is {type(parts[wrong]).__name__}, not an array")
    data = parts["data"]
    width = {"bsr": 3, "dia": 2}.get(kind, 1)
    if data.ndim != width:
        raise _damaged(f"its data have {data.ndim} dimensions, not {width}")
    if kind == "coo":
        for name, size, what in zip(("row", "col"), shape, ("row", "column"), strict=True):
            _check_count(parts[name], len(data), what)
            check_indices(parts[name], size, what)
    elif kind == "dia":
        _check_diagonals(parts["offsets"], len(data), shape)
    else:
        _check_compressed(kind, shape, parts)


def _check_compressed(kind: str, shape: tuple[int, ...], parts: Mapping[str, NDArray[Any]]) -> None:
    data, indices, indptr = (parts[name] for name in PARTS[kind])
    rows, columns = shape
    if kind == "bsr":
        height, width = data.shape[1:]
        if not height or not width or rows % height or columns % width:
            raise _damaged(f"blocks of {height} x {width} do not fill {rows:,} x {columns:,}")
        rows, columns = rows // height, columns // width
    major, minor = (columns, rows) if kind == "csc" else (rows, columns)
    _check_count(indices, len(data), "index")
    check_ends(indptr, major, len(indices))
    check_indices(indices[: int(indptr[-1])], minor, "row" if kind == "csc" else "column")


def check_ends(indptr: NDArray[Any], n: int, n_stored: int) -> None:
    """Raise unless `indptr` has n + 1 integers that rise from 0 to at most `n_stored`."""
    whole = indptr.ndim == 1 and indptr.dtype.kind in "iu" and len(indptr) == n + 1
    if not whole:
        raise _damaged(
            f"its indptr has shape {indptr.shape} and type {indptr.dtype}, not {n + 1:,} integers"
        )
    if indptr[0] != 0 or indptr[-1] > n_stored or (indptr[1:] < indptr[:-1]).any():
        raise _damaged(f"its indptr does not rise from 0 to at most {n_stored:,}")


def check_indices(indices: NDArray[Any], size: int, what: str) -> None:
    """Raise unless indices are integers from 0 to less than `size`."""
    if indices.ndim != 1 or (indices.dtype.kind not in "iu" and indices.size):
        raise _damaged(f"its {what} numbers are of type {indices.dtype}, not integers")
    # As unsigned numbers the negative ones are the largest: one pass finds both.
    if (
        not indices.size
        or int(indices.view(f"{indices.dtype.byteorder}u{indices.itemsize}").max()) < size
    ):
        return
    at = int(((indices < 0) | (indices >= size)).argmax())
    raise _damaged(f"value {at} is in {what} {indices[at]}, outside 0..{size - 1}")


def _check_count(numbers: NDArray[Any], n: int, what: str) -> None:
    if numbers.ndim != 1 or len(numbers) != n:
        raise _damaged(f"it has {n:,} values, but {what} numbers of shape {numbers.shape}")


def _check_diagonals(offsets: NDArray[Any], n: int, shape: tuple[int, ...]) -> None:
    _check_count(offsets, n, "diagonal")
    rows, columns = shape
    check_indices(
        offsets + rows if offsets.dtype.kind in "iu" else offsets, rows + columns, "diagonal"
    )
    if len(np.unique(offsets)) < n:
        raise _damaged("it has a diagonal twice")


def _check_lists(X: Any) -> None:
    rows, columns = X.shape
    lists = [*X.rows, *X.data]
    if len(X.rows) != rows or len(X.data) != rows or any(type(x) is not list for x in lists):
        raise _damaged(f"it does not have two lists for each of {rows:,} rows")
    if any(len(a) != len(b) for a, b in zip(X.rows, X.data, strict=True)):
        raise _damaged("a row has not as many values as columns")
    check_indices(np.array(list(chain.from_iterable(X.rows))), columns, "column")


def _damaged(what: str) -> DataError:
    return DataError(f"a sparse matrix is damaged: {what}", REBUILD)
