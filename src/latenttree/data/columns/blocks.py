"""Sparse matrices and one-hot blocks: sparse binary tables, canonical CSR, blocks as categories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.checks import (
    OnlyValue,
    cell_error,
    check_shape,
    complex_data,
    constant_variables,
    coordinate_names,
    resolve_names,
)
from latenttree.data.table import Table, codes_of_one_hot, sparse_binary_table
from latenttree.errors import Caution, DataError, Option

NOT_FINITE = "NaN or infinity (value {})", "values must be finite: drop or fill it"
NEGATIVE = (
    "negative value {}",
    "values must be >= 0: correct it, or pass real vectors as dense blocks",
)


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


def counts_note(matrix: Any) -> tuple[Caution, ...]:
    """The note on stored values other than 0 and 1, which are read as 1; none without such."""
    stored = matrix if matrix.format in ("csr", "csc", "coo", "bsr") else sparse.csr_array(matrix)
    values = stored.data
    largest = values.max(initial=0)
    if not ((values != 0) & (values != 1)).any():
        return ()
    text = f"all values of the sparse matrix above 0 (up to {largest:g}) are read as 1, present"
    option = Option("family", "binary")
    return (Caution(f"{text}; ", option, " says that this is meant, a dense array keeps numbers"),)


def checked_csr(X: Any, names: Sequence[str], negative: bool = False) -> sparse.csr_array:
    """CSR of finite numbers, not negative unless that is allowed; not always a copy."""
    if X.dtype.kind == "c":
        raise complex_data()
    if X.dtype.kind not in "biuf":
        raise DataError(
            f"a sparse matrix must be numeric, got type {X.dtype}", "convert it", value=X.dtype
        )
    matrix = sparse.csr_array(X)
    _check_stored(matrix, names, negative)
    return matrix


def canonical_csr(X: Any, names: Sequence[str], negative: bool = False) -> sparse.csr_array:
    """CSR of finite floats with sorted indices, no duplicates and no stored zeros; a copy. float32
    where it holds every value exactly, else float64."""
    matrix = checked_csr(X, names, negative)
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
        _check_none(matrix, ~np.isfinite(data), names, *NOT_FINITE)
    if not negative and data.dtype.kind in "if" and data.min(initial=0) < 0:
        _check_none(matrix, data < 0, names, *NEGATIVE)


def _check_none(
    matrix: sparse.csr_array, bad: NDArray[np.bool_], names: Sequence[str], what: str, remedy: str
) -> None:
    """Raise if any stored value is `bad`."""
    if bad.any():
        at = int(bad.argmax())
        value, place = matrix.data[at], stored_position(matrix, at, names)
        raise cell_error(what.format(value), value, *place, remedy, " of a sparse matrix")


def stored_position(matrix: sparse.csr_array, k: int, names: Sequence[str]) -> tuple[int, str]:
    """Row and name of the column of the k-th stored value."""
    row = int(np.searchsorted(matrix.indptr, k, side="right")) - 1
    return row, names[matrix.indices[k]]


def _as_float(data: NDArray[Any]) -> NDArray[Any]:
    with np.errstate(over="ignore"):  # what overflows is not equal, and stays float64
        single = data.astype(np.float32)
    return single if np.array_equal(single, data) else data.astype(np.float64)


# --- one-hot blocks as categories ----------------------------------------------------


def one_hot_codes(table: Table) -> NDArray[np.int32] | None:
    """(n, p) codes of a table of blocks whose every row is one-hot, else None; -1 where missing.

    With `p` stored values in a row, all ones, sorted, it is enough that value `i` of a row lies
    in block `i`. Cost O(n p).
    """
    matrix = table.matrix
    if table.kind != "blocks" or matrix is None or table.values is not None:
        return None
    known = None if table.missing is None else ~table.missing
    stored = table.n_vars if known is None else known.sum(axis=1)
    if not (np.diff(matrix.indptr) == stored).all() or not (matrix.data == 1).all():
        return None
    codes = codes_of_one_hot(matrix, known, table.offsets)
    inside = (codes >= 0) & (codes < table.widths)
    return codes if (inside if known is None else inside | ~known).all() else None


def hot_positions(block: Any, name: str) -> NDArray[np.int64]:
    """(n,) the single one of each row of an (n, d) block; -1 where a row is all zeros or NaN."""
    columns = coordinate_names(name, block.shape[1])
    matrix = canonical_csr(split_gaps(block)[0], columns)
    stored = np.diff(matrix.indptr)
    wrong = stored > 1
    wrong[np.repeat(np.arange(len(stored)), stored)[matrix.data != 1]] = True
    if wrong.any():
        row = int(wrong.argmax())
        values = matrix[[row]].toarray()[0]
        shown = np.array2string(values, threshold=6)
        what = f"row {row} of block {name!r} is not one-hot: {shown}"
        remedy = "give a single 1 among zeros, or all zeros or NaN where the value is missing"
        raise DataError(what, remedy, value=values, row=row, column=name)
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
