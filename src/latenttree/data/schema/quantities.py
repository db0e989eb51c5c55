"""One column or block of new data as the numbers that a family's likelihood takes.

Numbers are checked against the support of the family: counts are whole and not negative, multi-hot
codes are 0 or 1, nothing is infinite. NaN, None and masked values are missing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.checks import coordinate_names, infinite_value
from latenttree.data.columns.blocks import canonical_csr, split_gaps
from latenttree.data.columns.vectors import Column, Vector, vector_of
from latenttree.data.schema.lookup import MISSING, first_no_number, known_codes
from latenttree.data.values import TRAITS, outside_support
from latenttree.errors import DataError

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

REMEDY = "correct it, or mark it as missing (NaN)"


# --- scalars -------------------------------------------------------------------------


def number_values(vector: Vector, family: str, name: str) -> Floats:
    """(n,) floats of a column, NaN where it is missing."""
    known, wrong = vector.known, first_no_number(vector.known)
    if wrong is not None:
        value, row = known[wrong : wrong + 1].tolist()[0], vector.row(wrong)
        raise DataError(
            f"{type(value).__name__} {value!r} at row {row}, column {name!r}",
            f"the model was fitted on numbers of family {family!r}: convert the column, "
            "for example astype(float)",
            row=row,
            column=name,
            value=value,
        )
    x = np.array(known, dtype=np.float64)
    _check_range(x, family, lambda i: (vector.row(i), name))
    return vector.spread(x, np.nan)


def rank_values(vector: Vector, levels: NDArray[Any], name: str) -> Floats:
    """(n,) positions among ordered `levels` as floats, NaN where a value is missing."""
    codes = known_codes(vector, levels, name)
    return np.where(codes == MISSING, np.nan, codes)


# --- blocks --------------------------------------------------------------------------


def block_values(column: Column, width: int, sparse_form: bool, family: str, name: str) -> Any:
    """An `(n, width)` block as in training: a float array with NaN where it is missing, or a CSR.

    A sparse block with gaps (NaN, which a CSR does not keep apart from a number) becomes dense.
    """
    block = column.values
    if len(block.shape) != 2 or block.shape[1] != width:
        raise DataError(
            f"block {name!r} has shape {block.shape}",
            f"the model expects (n, {width}), as in training",
            column=name,
            value=block.shape,
        )
    if block.dtype.kind not in "biufO":
        raise DataError(
            f"block {name!r} has type {block.dtype}",
            "a block must be numeric: convert it, for example astype(float)",
            column=name,
            value=block.dtype,
        )
    if sparse.issparse(block):
        known, lost = split_gaps(block)
        _check_stored(known, family, name)
        if lost is None and sparse_form:
            return canonical_csr(known, coordinate_names(name, width), negative=True)
        dense = np.asarray(known.toarray(), dtype=np.float64)
        if lost is not None:
            dense[lost.nonzero()] = np.nan
        return dense
    dense = _dense_block(block, family, name, column.mask)
    if sparse_form and not np.isnan(dense).any():
        return canonical_csr(sparse.csr_array(dense), coordinate_names(name, width), negative=True)
    return dense


def _dense_block(block: NDArray[Any], family: str, name: str, missing: Mask | None) -> Floats:
    if block.dtype.kind == "O":
        columns = [
            number_values(vector_of(Column(x), name), family, f"{name}[{j}]")
            for j, x in enumerate(block.T)
        ]
        dense = np.column_stack(columns)
    else:
        dense = np.array(block, dtype=np.float64)
    if missing is not None:
        dense[missing] = np.nan
    width = dense.shape[1]
    _check_range(dense.ravel(), family, lambda i: (i // width, f"{name}[{i % width}]"))
    return dense


def _check_stored(matrix: sparse.csr_array, family: str, name: str) -> None:
    def place(k: int) -> tuple[int, str]:
        row = int(np.searchsorted(matrix.indptr, k, side="right")) - 1
        return row, f"{name}[{matrix.indices[k]}]"

    _check_range(matrix.data, family, place)


# --- what a family can produce -------------------------------------------------------


def _check_range(values: NDArray[Any], family: str, place: Any) -> None:
    """`place(i)` is the row and the name of the column of the i-th value."""
    bad = np.isinf(values)
    if bad.any():
        row, name = place(int(bad.argmax()))
        raise infinite_value(values[bad.argmax()], row, name, REMEDY)
    bad = outside_support(values, family)
    if bad.any():
        row, name = place(int(bad.argmax()))
        value = values[bad.argmax()]
        counts = TRAITS[family].counts
        what = "counts: whole numbers >= 0" if counts else "codes that are 0 or 1"
        raise DataError(
            f"value {value:g} at row {row}, column {name!r}, which holds {what}",
            REMEDY,
            value=value,
            row=row,
            column=name,
        )
