"""One column or block of new data as the numbers that a family's likelihood takes.

Numbers are checked against the support of the family: counts are whole and not negative, multi-hot
codes are 0 or 1, nothing is infinite. NaN, None and masked values are missing.
"""

from __future__ import annotations

import numbers
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.columns.blocks import canonical_csr, split_gaps
from latenttree.data.schema.lookup import MISSING, gaps_of, known_codes
from latenttree.data.values import TRAITS
from latenttree.errors import DataError

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

REMEDY = "correct it, or mark it as missing (NaN)"


# --- scalars -------------------------------------------------------------------------


def number_values(
    values: NDArray[Any], family: str, name: str, missing: Mask | None = None
) -> Floats:
    """(n,) floats of a column, NaN where it is missing."""
    gaps = gaps_of(values, missing)
    if gaps is None:
        numbers_ = _as_floats(values, np.arange(len(values)), family, name)
    else:
        rows, numbers_ = np.flatnonzero(~gaps), np.full(len(values), np.nan)
        numbers_[rows] = _as_floats(values[rows], rows, family, name)
    _check_range(numbers_, family, lambda row: (row, name))
    return numbers_


def rank_values(
    values: NDArray[Any], levels: NDArray[Any], name: str, missing: Mask | None = None
) -> Floats:
    """(n,) positions among ordered `levels` as floats, NaN where a value is missing."""
    codes = known_codes(values, levels, name, missing)
    return np.where(codes == MISSING, np.nan, codes)


def _as_floats(values: NDArray[Any], rows: NDArray[np.int64], family: str, name: str) -> Floats:
    """Numbers and booleans as float64; text is not a number, even where it looks like one."""
    wrong = _first_wrong(values)
    if wrong is None:
        return np.array(values, dtype=np.float64)
    value = values[wrong : wrong + 1].tolist()[0]
    raise DataError(
        f"{type(value).__name__} {value!r} at row {rows[wrong]}, column {name!r}",
        f"the model was fitted on numbers of family {family!r}: convert the column, "
        "for example astype(float)",
        row=int(rows[wrong]),
        column=name,
        value=value,
    )


def _first_wrong(values: NDArray[Any]) -> int | None:
    """Position of the first value that is not a number."""
    kind = values.dtype.kind
    if kind != "O":
        return None if kind in "biuf" or not len(values) else 0
    types = (numbers.Real, np.bool_, Decimal)
    return next((i for i, v in enumerate(values.tolist()) if not isinstance(v, types)), None)


# --- blocks --------------------------------------------------------------------------


def block_values(
    block: Any, width: int, sparse_form: bool, family: str, name: str, missing: Mask | None = None
) -> Any:
    """An `(n, width)` block as in training: a float array with NaN where it is missing, or a CSR.

    A sparse block with gaps (NaN, which a CSR does not keep apart from a number) becomes dense.
    """
    if block.ndim != 2 or block.shape[1] != width:
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
            return canonical_csr(known, _coordinates(name, width), negative=True)
        dense = np.asarray(known.toarray(), dtype=np.float64)
        if lost is not None:
            dense[lost.nonzero()] = np.nan
        return dense
    dense = _dense_block(block, family, name, missing)
    if sparse_form and not np.isnan(dense).any():
        return canonical_csr(sparse.csr_array(dense), _coordinates(name, width), negative=True)
    return dense


def _dense_block(block: NDArray[Any], family: str, name: str, missing: Mask | None) -> Floats:
    if block.dtype.kind == "O":
        columns = [number_values(x, family, f"{name}[{j}]") for j, x in enumerate(block.T)]
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


def _coordinates(name: str, width: int) -> list[str]:
    return [f"{name}[{j}]" for j in range(width)]


# --- what a family can produce -------------------------------------------------------


def _check_range(values: NDArray[Any], family: str, place: Any) -> None:
    """`place(i)` is the row and the name of the column of the i-th value."""
    bad = np.isinf(values)
    if bad.any():
        row, name = place(int(bad.argmax()))
        raise DataError(
            f"infinity ({values[bad.argmax()]}) at row {row}, column {name!r}",
            f"values must be finite: {REMEDY}",
            row=row,
            column=name,
            value=values[bad.argmax()],
        )
    if TRAITS[family].counts:
        bad, what = (values < 0) | (values != np.floor(values)), "counts: whole numbers >= 0"
    elif family == "multihot":
        bad, what = (values != 0) & (values != 1), "codes that are 0 or 1"
    else:
        return
    bad &= ~np.isnan(values)
    if bad.any():
        row, name = place(int(bad.argmax()))
        value = values[bad.argmax()]
        raise DataError(
            f"value {value:g} at row {row}, column {name!r}, which holds {what}",
            REMEDY,
            value=value,
            row=row,
            column=name,
        )
