"""Containers of inputs: which kind one is, its rows, and a checked view of it.

In: whatever the user passed as `X`. Out: a narwhals DataFrame, a NumPy matrix, or None. No value is
read here, but for the indices of sparse matrices, which SciPy's compiled code would trust.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.checks import check_shape, resolve_names
from latenttree.data.sparse_checks import check_sparse
from latenttree.errors import DataError


def reject_unreadable(X: Any) -> None:
    """Raise for what is no table (None, paths, Dask) and for damaged sparse matrices."""
    if isinstance(X, str | bytes | os.PathLike):
        raise DataError(
            f"X is {X!r}",
            "pass a table, not a path (latenttree.data.read_table reads files)",
            value=X,
        )
    if X is None:
        raise DataError("X is None", "pass a table: a DataFrame, an array or a sparse matrix")
    if type(X).__module__.split(".")[0] == "dask":
        raise DataError(
            f"Dask collections are not supported yet, got {type(X).__name__}",
            "call .compute() first",
            value=type(X).__name__,
        )
    for part in [X] if sparse.issparse(X) else _items(X):
        if sparse.issparse(part):
            check_sparse(part)


def _items(X: Any) -> Iterable[Any]:
    return X.values() if isinstance(X, Mapping) else X if isinstance(X, list | tuple) else ()


def is_blocks(X: Any) -> bool:
    """Whether `X` is a dict, or a list of arrays: a variable for each item."""
    if isinstance(X, Mapping):
        return True
    return isinstance(X, list | tuple) and any(
        sparse.issparse(item) or isinstance(item, np.ndarray) for item in X
    )


def as_matrix(X: Any, n_min: int = 2) -> NDArray[Any]:
    """The (n, p) array of a rectangular table; a masked array stays masked."""
    try:
        array = np.ma.asarray(X) if isinstance(X, np.ma.MaskedArray) else np.asarray(X)
    except ValueError as error:
        raise DataError(
            f"X is not a rectangular table ({error})", "give all rows one length"
        ) from error
    if array.dtype.kind == "c":
        raise complex_data()
    check_shape(array.shape, n_min)
    return array


def as_frame(X: Any) -> nw.DataFrame[Any] | None:
    """`X` through narwhals, or None where it is no DataFrame."""
    if isinstance(X, np.ndarray | list | tuple | dict):
        return None
    if hasattr(X, "iloc") and hasattr(X, "columns"):  # only pandas allows repeated names
        _check_levels(X.columns)
        resolve_names(None, len(X.columns), list(X.columns))
    frame = nw.from_native(X, pass_through=True, allow_series=True)
    if isinstance(frame, nw.LazyFrame):
        raise DataError(
            f"X is a lazy frame ({type(X).__name__})",
            "call .collect() first",
            value=type(X).__name__,
        )
    if isinstance(frame, nw.Series):
        raise DataError(
            f"expected a table, got a single series of length {len(frame)}",
            "Reshape your data: X.to_frame()",
            value=len(frame),
        )
    return frame if isinstance(frame, nw.DataFrame) else None


def _check_levels(columns: Any) -> None:
    """Raise if column names have several levels."""
    if getattr(columns, "nlevels", 1) > 1:
        first = tuple(map(str, columns[0]))
        raise DataError(
            f"the columns of X have {columns.nlevels} levels (the first is {first}), a "
            "variable has one name",
            "join them: X.columns = ['/'.join(map(str, c)) for c in X.columns]",
            value=first,
        )


def complex_data() -> DataError:
    """The error of complex numbers, in the words that scikit-learn's checks expect."""
    return DataError("Complex data not supported", "pass real and imaginary parts as a block")


def n_rows(X: Any) -> int:
    """Samples of any input that `as_table` takes."""
    if isinstance(X, Mapping) and not sparse.issparse(X):  # some of SciPy's are both
        X = list(X.values())
    elif hasattr(X, "shape"):
        return int(X.shape[0]) if len(X.shape) else 0
    elif not hasattr(X, "__len__"):
        return len(np.asarray(X)) if hasattr(X, "__array__") else 0
    elif not _has_blocks(X):
        return len(X)
    return n_rows(X[0]) if len(X) else 0


def filter_rows(X: Any, keep: NDArray[np.bool_]) -> Any:
    """The rows where `keep` is True, in the same container."""
    if sparse.issparse(X):
        return sparse.csr_array(X)[keep]
    if isinstance(X, Mapping):
        return {name: filter_rows(block, keep) for name, block in X.items()}
    if isinstance(X, np.ndarray):
        return X[keep]
    if isinstance(X, list | tuple):
        if _has_blocks(X):
            return [filter_rows(block, keep) for block in X]
        return [row for row, kept in zip(X, keep, strict=True) if kept]
    frame = nw.from_native(X, pass_through=True, allow_series=True)
    if isinstance(frame, nw.DataFrame | nw.Series):
        return frame.filter(keep.tolist()).to_native()
    return np.asarray(X)[keep]


def _has_blocks(X: Any) -> bool:
    return any(sparse.issparse(item) or isinstance(item, np.ndarray) for item in X)
