"""Sparse matrices and blocks: sparse binary tables, groups of columns, one-hot rows."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.checks import OnlyValue, check_shape, constant_variables, resolve_names
from latenttree.data.columns.variables import one_hot
from latenttree.data.columns.vectors import unsupported_dtype
from latenttree.data.containers import complex_data
from latenttree.data.table import Table, sparse_binary_table
from latenttree.errors import DataError, Option, Text

__all__ = [
    "Groups",
    "as_block",
    "canonical_csr",
    "common_length",
    "complex_data",
    "group_columns",
    "hot_positions",
    "one_hot",
    "one_hot_codes",
    "split_gaps",
    "table_from_sparse",
    "unsupported_dtype",
]

Groups = Sequence[Hashable] | NDArray[Any] | Mapping[Any, Any]


# --- sparse binary tables -------------------------------------------------------------


def table_from_sparse(X: Any, names: Sequence[Any] | None, drop_constant: bool) -> Table:
    """A sparse binary table: a variable for each column, 1 where the value is > 0."""
    check_shape(X.shape)
    n, p = X.shape
    labels = resolve_names(names, p)
    matrix = canonical_csr(X, labels)
    ones = matrix.data.astype(np.float32, copy=False)  # our own, see `canonical_csr`
    ones[:] = 1
    matrix = sparse.csr_array((ones, matrix.indices, matrix.indptr), shape=matrix.shape)
    support = np.bincount(matrix.indices, minlength=p)
    varies = (support > 0) & (support < n)
    constant = np.flatnonzero(~varies)
    dropped = constant_variables(
        [labels[i] for i in constant],
        [OnlyValue.number(int(support[i] > 0)) for i in constant],
        n,
        drop_constant,
        p,
    )
    if dropped:
        matrix = sparse.csr_array(matrix[:, np.flatnonzero(varies)])
        matrix.sort_indices()
        labels = [name for name, keep in zip(labels, varies, strict=True) if keep]
    return sparse_binary_table(labels, matrix, dropped=dropped)


def canonical_csr(X: Any, names: Sequence[str], negative: bool = False) -> sparse.csr_array:
    """CSR of finite floats with sorted indices, no duplicates and no stored zeros; a copy. float32
    where it holds every value exactly, else float64."""
    if X.dtype.kind == "c":
        raise complex_data()
    if X.dtype.kind not in "biuf":
        raise DataError(
            f"a sparse matrix must be numeric, got type {X.dtype}", "convert it", value=X.dtype
        )
    matrix = sparse.csr_array(X)
    _check_stored(matrix, names, negative)
    is_canonical = matrix.has_canonical_format and bool(matrix.data.all())
    data = _as_float(matrix.data) if is_canonical else matrix.data.astype(np.float64)
    matrix = sparse.csr_array(
        (data, matrix.indices.copy(), matrix.indptr.copy()), shape=matrix.shape
    )
    if not is_canonical:
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        matrix.data = _as_float(matrix.data)
    if matrix.indices.dtype != np.int32 and max(matrix.nnz, *matrix.shape) < 2**31:
        matrix.indices = matrix.indices.astype(np.int32)
        matrix.indptr = matrix.indptr.astype(np.int32)
    return matrix


def _check_stored(matrix: sparse.csr_array, names: Sequence[str], negative: bool) -> None:
    data = matrix.data
    if data.dtype.kind == "f":
        bad = ~np.isfinite(data)
        if bad.any():
            row, name, value = _stored_position(matrix, bad, names)
            raise DataError(
                f"NaN or infinity (value {value}) at row {row}, column {name!r} of a sparse matrix",
                "values must be finite: drop or fill it",
                value=value,
                row=row,
                column=name,
            )
    if negative or data.dtype.kind not in "if" or not data.size or data.min() >= 0:
        return
    row, name, value = _stored_position(matrix, data < 0, names)
    raise DataError(
        f"negative value {value} at row {row}, column {name!r} of a sparse matrix",
        "values must be >= 0: correct it, or pass real vectors as dense blocks",
        value=value,
        row=row,
        column=name,
    )


def _stored_position(
    matrix: sparse.csr_array, bad: NDArray[np.bool_], names: Sequence[str]
) -> tuple[int, str, Any]:
    k = int(bad.argmax())
    row = int(np.searchsorted(matrix.indptr, k, side="right")) - 1
    return row, names[matrix.indices[k]], matrix.data[k]


def _as_float(data: NDArray[Any]) -> NDArray[Any]:
    with np.errstate(over="ignore"):  # what overflows is not equal, and stays float64
        single = data.astype(np.float32)
    return single if np.array_equal(single, data) else data.astype(np.float64)


# --- groups of columns ---------------------------------------------------------------


def group_columns(groups: Groups, n_columns: int) -> tuple[list[Any], list[NDArray[np.int64]]]:
    """Labels in order of appearance, and the columns of each; every column is in one group."""
    if isinstance(groups, Mapping):
        return _groups_by_name(groups, n_columns)
    nested = isinstance(groups, np.ndarray) and groups.ndim != 1
    if isinstance(groups, str) or nested or len(groups) != n_columns:
        raise DataError(
            Text(Option("groups"), f" has {len(groups)} labels for {n_columns} columns"),
            "give one label for each column",
            value=len(groups),
            option="groups",
        )
    position: dict[Any, list[int]] = {}
    for column, label in enumerate(groups):
        if label is None or label != label:
            raise DataError(
                Text(Option("groups"), f" has the label {label!r} for column {column}"),
                "give every column a label, or select the columns first",
                value=label,
                column=str(column),
                option="groups",
            )
        position.setdefault(label, []).append(column)
    return list(position), [np.asarray(member, dtype=np.int64) for member in position.values()]


def _groups_by_name(
    groups: Mapping[Any, Any], n_columns: int
) -> tuple[list[Any], list[NDArray[np.int64]]]:
    owner: dict[int, Any] = {}
    for label, member in groups.items():
        _check_group(label, member, n_columns)
        for column in map(int, member):
            if column in owner:
                raise DataError(
                    f"column {column} is in two groups, {owner[column]!r} and {label!r}",
                    "keep it in one",
                    value=column,
                    option="groups",
                )
            owner[column] = label
    left_out = next((j for j in range(n_columns) if j not in owner), None)
    if left_out is not None:
        raise DataError(
            f"column {left_out} is in no group ({n_columns - len(owner)} of {n_columns} "
            "columns are left out)",
            "add it to a group, or select the columns first",
            value=left_out,
            option="groups",
        )
    return list(groups), [np.asarray(member, dtype=np.int64) for member in groups.values()]


def _check_group(label: Any, member: Any, n_columns: int) -> None:
    """Raise unless a group is a list of one or more column numbers."""
    if isinstance(member, str) or not hasattr(member, "__len__"):
        raise DataError(
            f"group {label!r} must be a list of column numbers, got {member!r}",
            value=member,
            option="groups",
        )
    if len(member) == 0:
        raise DataError(
            f"group {label!r} is empty",
            "give it columns or remove it",
            value=label,
            option="groups",
        )
    for column in member:
        if not isinstance(column, int | np.integer) or not 0 <= column < n_columns:
            raise DataError(
                f"group {label!r} has column {column!r}, out of range",
                f"columns are integers 0..{n_columns - 1}",
                value=column,
                option="groups",
            )


# --- lists and dicts of blocks -------------------------------------------------------


def as_block(value: Any, name: str) -> Any:
    """A sparse matrix or an array of one or two dimensions, as it is."""
    block = value if sparse.issparse(value) else np.asarray(value)
    if block.ndim not in (1, 2):
        raise DataError(
            f"block {name!r} has {block.ndim} dimensions (shape {block.shape})",
            "a block is (n, d) or a vector of n categories. Reshape your data",
            column=name,
            value=block.shape,
        )
    if block.ndim == 2 and block.shape[1] == 0:
        raise DataError(
            f"block {name!r} has 0 columns (shape {block.shape})",
            "drop it",
            column=name,
            value=block.shape,
        )
    if block.dtype.kind == "c":
        raise complex_data()
    return block


def common_length(arrays: Sequence[Any], names: Sequence[str], n_min: int = 2) -> int:
    """The number of samples, which all blocks share."""
    check_shape((arrays[0].shape[0] if arrays else 0, len(arrays)), n_min)
    n = int(arrays[0].shape[0])
    for array, name in zip(arrays, names, strict=True):
        if array.shape[0] != n:
            raise DataError(
                f"blocks must have the same number of samples: {names[0]!r} has {n}, {name!r} "
                f"has {array.shape[0]}",
                "align the rows",
                value=array.shape[0],
                column=name,
            )
    return n


# --- one-hot blocks as categories ----------------------------------------------------


def one_hot_codes(table: Table) -> NDArray[np.int32] | None:
    """(n, p) codes of a table of blocks whose every row is one-hot, else None; -1 where missing.

    With `p` stored values in a row, all ones, sorted, it is enough that value `i` of a row lies
    in block `i`. Cost O(n p).
    """
    matrix = table.matrix
    if table.kind != "blocks" or matrix is None or table.values is not None:
        return None
    known = np.full((table.n_samples, table.n_vars), True)
    if table.missing is not None:
        known = ~table.missing
    if not (np.diff(matrix.indptr) == known.sum(axis=1)).all() or not (matrix.data == 1).all():
        return None
    variables = np.nonzero(known)[1]
    low, high = table.offsets[:-1][variables], table.offsets[1:][variables]
    if not ((matrix.indices >= low) & (matrix.indices < high)).all():
        return None
    codes = np.full(known.shape, -1, dtype=np.int32)
    codes[known] = matrix.indices - low
    return codes


def hot_positions(block: Any, name: str) -> NDArray[np.int64]:
    """(n,) the single one of each row of an (n, d) block; -1 where a row is all zeros or NaN."""
    columns = [f"{name}[{j}]" for j in range(block.shape[1])]
    matrix = canonical_csr(split_gaps(block)[0], columns)
    stored = np.diff(matrix.indptr)
    wrong = stored > 1
    wrong[np.repeat(np.arange(len(stored)), stored)[matrix.data != 1]] = True
    if wrong.any():
        row = int(wrong.argmax())
        values = matrix[[row]].toarray()[0]
        raise DataError(
            f"row {row} of block {name!r} is not one-hot: {np.array2string(values, threshold=6)}",
            "give a single 1 among zeros, or all zeros or NaN where the value is missing",
            row=row,
            column=name,
            value=values,
        )
    positions = np.full(len(stored), -1, dtype=np.int64)
    positions[stored == 1] = matrix.indices
    return positions


def split_gaps(X: Any) -> tuple[sparse.csr_array, sparse.csr_array | None]:
    """`X` as CSR with zeros for NaN, and a CSR of int8 ones where NaN was, None if nowhere."""
    matrix = sparse.csr_array(X)
    gaps = np.isnan(matrix.data) if matrix.dtype.kind == "f" else np.zeros(0, dtype=np.bool_)
    if not gaps.any():
        return matrix, None
    known = np.where(gaps, 0, matrix.data)
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))[gaps]
    columns = matrix.indices[gaps]
    lost = sparse.csr_array((np.ones(len(rows), np.int8), (rows, columns)), shape=matrix.shape)
    lost.data[:] = 1  # where NaN was stored twice
    return sparse.csr_array((known, matrix.indices, matrix.indptr), shape=matrix.shape), lost
