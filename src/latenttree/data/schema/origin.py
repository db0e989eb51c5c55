"""The form of a training input: its container, its columns and the groups of a matrix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.columns.blocks import Groups, as_block, group_columns
from latenttree.data.containers import as_frame, is_blocks
from latenttree.data.schema.decode import column_of_series
from latenttree.data.schema.fields import InputColumn
from latenttree.data.schema.lookup import gaps_of
from latenttree.data.table import Table

Members = tuple[NDArray[np.int64], ...] | None


def describe(X: Any, table: Table, groups: Groups | None) -> tuple[str, list[InputColumn], Members]:
    """Container, columns and members of an input that `as_table` made `table` of."""
    if isinstance(X, Table):
        return "table", _table_columns(X, table), None
    if sparse.issparse(X):
        container = "sparse array" if isinstance(X, sparse.sparray) else "sparse matrix"
        return container, *_matrix_columns(X, groups)
    frame = as_frame(X)
    if frame is not None:
        series = [frame.get_column(c) for c in frame.columns]
        container = frame.implementation.name.lower()
        return container, [column_of_series(s) for s in series], None
    if is_blocks(X):
        names = list(map(str, X)) if isinstance(X, Mapping) else [f"x{j}" for j in range(len(X))]
        values = X.values() if isinstance(X, Mapping) else X
        columns = [_column_of_block(v, name) for v, name in zip(values, names, strict=True)]
        return ("dict" if isinstance(X, Mapping) else "list"), columns, None
    return "array", *_matrix_columns(np.asarray(X), groups)


def _table_columns(X: Table, table: Table) -> list[InputColumn]:
    """The columns of `X`, in the form that they have in `table`; ordinal labels that became
    numbers, and the codes of a group, are levels."""
    arrays = {} if table.values is None else table.values.arrays
    columns = []
    for v, name in enumerate(table.names):
        form = _form(arrays[v]) if v in arrays else "vector"
        columns.append(
            InputColumn(name, form=form, levels=X.categories[v] if v in arrays else None)
        )
    return columns + [InputColumn(name) for name in table.dropped]


def _matrix_columns(X: Any, groups: Groups | None) -> tuple[list[InputColumn], Members]:
    dtype = dtype_name(X.dtype)
    if groups is None:
        return [InputColumn(f"x{j}", dtype) for j in range(X.shape[1])], None
    labels, members = group_columns(groups, X.shape[1])
    return [InputColumn(str(label), dtype, _form(X)) for label in labels], tuple(members)


def _column_of_block(value: Any, name: str) -> InputColumn:
    block = as_block(value, name)
    return InputColumn(name, dtype_name(block.dtype), _form(block))


def _form(block: Any) -> str:
    if sparse.issparse(block):
        return "sparse"
    return "vector" if block.ndim == 1 else "dense"


def dtype_name(dtype: Any) -> str:
    """A dtype of NumPy as text: its name, "str" or "bytes" whatever their length."""
    return {"U": "str", "T": "str", "S": "bytes", "O": "object"}.get(dtype.kind, dtype.name)


# --- the value of a constant column ----------------------------------------------------


def constant_value(X: Any, j: int, members: Members, binary: bool) -> NDArray[Any] | None:
    """The value of a constant column, (1,), or the row of a constant block, (width,). A value that
    is missing in the first row is taken from the first row that has it, and stays missing where no
    row has it. Of sparse `binary` input it is 0 or 1."""
    if isinstance(X, Table):
        return None
    if sparse.issparse(X):
        row = sparse.csr_array(X)[[0]].toarray()[0]
        row = row[[j] if members is None else members[j]]
        return (row > 0).astype(np.int64) if binary else row
    frame = as_frame(X)
    if frame is not None:
        column = frame.get_column(frame.columns[j])
        series = column.drop_nulls().to_numpy()
        if not len(series):
            return np.array([np.nan if column.dtype.is_numeric() else None])
        return _as_labels(_first_known(series).tolist())
    if is_blocks(X):
        block = list(X.values())[j] if isinstance(X, Mapping) else X[j]
        if sparse.issparse(block):
            return np.asarray(sparse.csr_array(block)[[0]].toarray()[0])
        return _first_known(block if np.ma.isMaskedArray(block) else as_block(block, ""))
    array = np.ma.asarray(X) if np.ma.isMaskedArray(X) else np.asarray(X)
    return _first_known(array[:, [j] if members is None else members[j]])


def _first_known(values: NDArray[Any]) -> NDArray[Any]:
    """(width,) the first value of each column that is not missing."""
    columns = np.asarray(values).reshape(len(values), -1)
    mask = np.ma.getmaskarray(values).reshape(columns.shape)
    first = columns[0].copy()
    for j, column in enumerate(columns.T):
        gaps = gaps_of(column, mask[:, j])
        if gaps is not None:
            first[j] = column[int(gaps.argmin())]
    return first


def _as_labels(values: list[Any]) -> NDArray[Any]:
    if all(isinstance(value, str | bool | int | float) for value in values):
        return np.asarray(values)
    result = np.empty(len(values), dtype=object)
    result[:] = values
    return result
