"""`as_table`: any accepted input to a `Table`, checked once, here, before any work.

A DataFrame's boolean, integer, string and categorical columns, an integer, boolean or
string array (n, p), a SciPy sparse matrix with or without `groups`, a list or dict of blocks.
Floats that are all whole numbers from 0 on, as scikit-learn's encoders give, are codes. Real
columns and Dask collections are to come; until then they are errors that name what is supported.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.blocks import (
    Groups,
    complex_data,
    encode_vector,
    table_from_blocks,
    table_from_groups,
    table_from_sparse,
    unsupported_dtype,
)
from latenttree.data.checks import (
    check_finite,
    check_missing,
    check_n_states,
    check_not_negative,
    check_shape,
    is_missing,
    resolve_names,
    whole_numbers,
)
from latenttree.data.columns import (
    Encoded,
    contiguous_columns,
    encode_integers,
    encode_labels,
    integer_columns,
    table_from_columns,
)
from latenttree.data.table import Table
from latenttree.errors import DataError

__all__ = ["as_table", "check_n_states"]


def as_table(
    X: Any,
    groups: Groups | None = None,
    names: Sequence[Any] | None = None,
    drop_constant: bool = False,
) -> Table:
    """The table of `X`.

    Parameters
    ----------
    X : DataFrame (pandas, polars, or any that narwhals reads), (n, p) array of integers,
        booleans, strings or floats that are whole numbers >= 0, SciPy sparse matrix, list or dict
        of blocks, or a Table. A list of plain lists is read as rows; a list of arrays as blocks.
    groups : for a sparse or numeric matrix, a label for each column, or group name to column
        numbers: the columns of a group are one vector variable.
    names : names of the variables; from the DataFrame or dict, or x0, x1, ..., if not given.
    drop_constant : leave out variables with a single value (listed in `Table.dropped`)
        instead of raising.

    Raises
    ------
    DataError : says what is wrong, where, with the value, and what to do.
    """
    if isinstance(X, Table):
        if groups is not None or names is not None:
            raise DataError("X is a Table, which has its names and blocks; pass it alone")
        return X
    reject_unreadable(X)
    if sparse.issparse(X):
        if groups is None:
            return table_from_sparse(X, names, drop_constant)
        return table_from_groups(X, groups, names, drop_constant)
    frame = as_frame(X)
    if groups is not None and (frame is not None or is_blocks(X)):
        raise DataError(
            f"groups= is for a sparse or numeric matrix, got {type(X).__name__}; pass a matrix, "
            "or a dict with a block for each group"
        )
    if frame is not None:
        return _table_from_frame(frame, names, drop_constant)
    if is_blocks(X):
        return table_from_blocks(X, names, drop_constant)
    array = _as_array(X)
    if groups is not None:
        return table_from_groups(array, groups, names, drop_constant)
    return _table_from_array(array, names, drop_constant)


def reject_unreadable(X: Any) -> None:
    """What is no table at all; Dask collections are still to come."""
    if isinstance(X, str | bytes | os.PathLike):
        raise DataError(
            f"X is {X!r}; pass a table, not a path (latenttree.data.read_table reads files)"
        )
    if X is None:
        raise DataError("X is None; pass a table: a DataFrame, an array or a sparse matrix")
    if type(X).__module__.split(".")[0] == "dask":
        raise DataError(
            f"Dask collections are not supported yet, got {type(X).__name__}; call .compute() first"
        )


def is_blocks(X: Any) -> bool:
    """Whether `X` is a dict, or a list of arrays: a variable for each item."""
    if isinstance(X, Mapping):
        return True
    return isinstance(X, list | tuple) and any(
        sparse.issparse(item) or isinstance(item, np.ndarray) for item in X
    )


# --- arrays --------------------------------------------------------------------------


def as_matrix(X: Any, n_min: int = 2) -> NDArray[Any]:
    """The (n, p) array of a rectangular table; a masked array stays masked."""
    try:
        array = np.ma.asarray(X) if isinstance(X, np.ma.MaskedArray) else np.asarray(X)
    except ValueError as error:
        message = f"X is not a rectangular table ({error}); give all rows one length"
        raise DataError(message) from error
    if array.dtype.kind == "c":
        raise complex_data()
    check_shape(array.shape, n_min)
    return array


def _as_array(X: Any) -> NDArray[Any]:
    array = as_matrix(X)
    if isinstance(array, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(array)
        for j in np.flatnonzero(mask.any(axis=0)):
            check_missing(mask[:, j], f"x{j}")
        array = array.data
    return array


def _table_from_array(
    array: NDArray[Any], names: Sequence[Any] | None, drop_constant: bool
) -> Table:
    n, p = array.shape
    labels = resolve_names(names, p)
    check_finite(array, labels)
    columns: Iterator[Encoded]
    if array.dtype.kind in "biu":
        check_not_negative(array, labels)
        columns = integer_columns(array)
    elif array.dtype.kind in "UST":
        columns = (encode_vector(array[:, j], labels[j]) for j in range(p))
    elif array.dtype.kind == "f":
        vectors = zip(contiguous_columns(array), labels, strict=True)
        columns = (encode_integers(whole_numbers(v, name)) for v, name in vectors)
    elif array.dtype.kind == "O":
        raise _object_array(array, labels)
    else:
        raise unsupported_dtype(labels[0], array.dtype)
    return table_from_columns(columns, labels, n, drop_constant)


def _object_array(array: NDArray[Any], names: Sequence[str]) -> DataError:
    for j, name in enumerate(names):
        check_missing(is_missing(array[:, j]), name)
    types = sorted({type(value).__name__ for value in array.ravel().tolist()})
    return DataError(
        f"X is an array of objects (types: {', '.join(types[:5])}); each value or argument must "
        "be a string or a number of one type: use astype(int) or astype(str), or pass a "
        "DataFrame, whose columns have types of their own"
    )


# --- DataFrames ----------------------------------------------------------------------


def as_frame(X: Any) -> nw.DataFrame[Any] | None:
    """`X` as seen through narwhals, or None where it is no DataFrame."""
    if isinstance(X, np.ndarray | list | tuple | dict):
        return None
    if hasattr(X, "iloc") and hasattr(X, "columns"):  # only pandas allows repeated names
        resolve_names(None, len(X.columns), list(X.columns))
    frame = nw.from_native(X, pass_through=True, allow_series=True)
    if isinstance(frame, nw.LazyFrame):
        raise DataError(f"X is a lazy frame ({type(X).__name__}); call .collect() first")
    if isinstance(frame, nw.Series):
        raise DataError(
            f"expected a table, got a single series of length {len(frame)}. Reshape your data: "
            "X.to_frame()"
        )
    return frame if isinstance(frame, nw.DataFrame) else None


def _table_from_frame(
    frame: nw.DataFrame[Any], names: Sequence[Any] | None, drop_constant: bool
) -> Table:
    check_shape(frame.shape)
    labels = resolve_names(names, frame.shape[1], frame.columns)
    series = [frame.get_column(column) for column in frame.columns]
    for column, name in zip(series, labels, strict=True):
        _check_series(column, name)
    encoded = (_encode_series(column, name) for column, name in zip(series, labels, strict=True))
    return table_from_columns(encoded, labels, frame.shape[0], drop_constant)


def _check_series(series: nw.Series[Any], name: str) -> None:
    missing = series.is_null().to_numpy().astype(bool)
    if series.dtype.is_float():
        missing |= series.is_nan().fill_null(True).to_numpy().astype(bool)
    check_missing(missing, name)
    if series.dtype.is_float():
        check_finite(series.to_numpy()[:, None], [name])
        whole_numbers(series.to_numpy(), name)


def _encode_series(series: nw.Series[Any], name: str) -> Encoded:
    dtype = series.dtype
    if isinstance(dtype, nw.Categorical | nw.Enum):
        return encode_labels(series.to_numpy().tolist())
    if dtype.is_float():
        return encode_integers(whole_numbers(series.to_numpy(), name))
    if dtype.is_integer() or isinstance(dtype, nw.Boolean | nw.String | nw.Object):
        return encode_vector(series.to_numpy(), name)
    raise unsupported_dtype(name, dtype)
