"""One column of new data as codes of the training labels; -1 where it is missing."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.data.checks import N_SHOWN, is_missing, widened
from latenttree.errors import DataError

MISSING = -1
PLACE = "\0"  # stands for the place of a value while its error is worded

Codes = NDArray[np.int64]
Mask = NDArray[np.bool_]


def known_codes(
    values: NDArray[Any], labels: NDArray[Any], name: str, missing: Mask | None = None
) -> Codes:
    """(n,) position of each value among `labels`, -1 where it is missing.

    Missing are values that `missing` marks, NaN, None, NaT and pandas.NA. Numbers are compared as
    numbers, whatever their dtype; any other value must be among the labels."""
    values = widened(values)
    gaps = gaps_of(values, missing)
    if gaps is None:
        return _checked(_positions(values, labels), values, labels, name, None)
    rows = np.flatnonzero(~gaps)
    known = values[rows]
    codes = np.full(len(values), MISSING, dtype=np.int64)
    codes[rows] = _checked(_positions(known, labels), known, labels, name, rows)
    return codes


def binary_codes(values: NDArray[Any], name: str, missing: Mask | None = None) -> Codes:
    """(n,) 1 where a value is greater than zero, 0 where it is zero, -1 where it is missing."""
    gaps = gaps_of(values, missing)
    rows = np.arange(len(values)) if gaps is None else np.flatnonzero(~gaps)
    try:
        numbers_ = values[rows].astype(np.float64)
        text = values.dtype.kind in "UST" or any(isinstance(v, str) for v in _objects(values))
    except (TypeError, ValueError):
        text = True
    if text:
        first = values[rows[0]]
        raise DataError(
            f"column {name!r} holds {type(first).__name__} values (first {first!r})",
            "the model was fitted on sparse binary data: pass numbers or booleans, 1 where > 0",
            column=name,
            value=first,
        )
    bad = ~((numbers_ >= 0) & np.isfinite(numbers_))
    if bad.any():
        row = int(bad.argmax())
        raise DataError(
            f"value {numbers_[row]} at row {rows[row]}, column {name!r}",
            "correct it, or mark it as missing (NaN): values of binary variables are finite, >= 0",
            value=numbers_[row],
            row=int(rows[row]),
            column=name,
        )
    codes = np.full(len(values), MISSING, dtype=np.int64)
    codes[rows] = numbers_ > 0
    return codes


def gaps_of(values: NDArray[Any], missing: Mask | None = None) -> Mask | None:
    """(n,) True where a value is missing, or None where none is."""
    kind = values.dtype.kind
    gaps = missing
    if kind == "f":
        gaps = np.isnan(values)
    elif kind in "mM":
        gaps = np.isnat(values)
    elif kind in "OT":
        gaps = is_missing(values.astype(object))
    if gaps is not missing and missing is not None:
        gaps = gaps | missing  # type: ignore[operator]
    return gaps if gaps is not None and gaps.any() else None


def _objects(values: NDArray[Any]) -> list[Any]:
    return values.tolist() if values.dtype.kind == "O" else []


# --- positions -----------------------------------------------------------------------


def _positions(values: NDArray[Any], labels: NDArray[Any]) -> Codes:
    """Position of each value among the labels, -1 where it is not one of them."""
    plain = values.dtype.kind in "biuf" and labels.dtype.kind in "biuf"
    if not plain or np.uint64 in (values.dtype, labels.dtype):  # no dtype holds it and int64
        return _positions_by_hash(values, labels)
    if labels.dtype.kind == "b":
        labels = labels.astype(np.int64)
    if labels.dtype.kind != "f":
        low, high = int(labels.min()), int(labels.max())
        if high - low < max(4 * values.size, 4 * labels.size, 256):
            return _positions_by_count(values, labels.astype(np.int64), low, high)
    return _positions_by_search(values, labels)


def _positions_by_count(values: NDArray[Any], labels: NDArray[Any], low: int, high: int) -> Codes:
    """A table from values to positions, O(n + span)."""
    table = np.full(high - low + 1, -1, dtype=np.int64)
    table[labels - low] = np.arange(len(labels))
    if values.dtype.kind == "b":
        values = values.view(np.uint8)
    whole = values
    outside = (values < low) | (values > high)
    if values.dtype.kind == "f":
        outside |= values != np.floor(values)
    if outside.any():
        whole = np.where(outside, low, values)
    positions = table[whole.astype(np.int64) - low]
    positions[outside] = -1
    return positions


def _positions_by_search(values: NDArray[Any], labels: NDArray[Any]) -> Codes:
    """Bisection, O(n log d)."""
    order = np.argsort(labels)
    ranked = labels[order]
    at = np.minimum(np.searchsorted(ranked, values), len(ranked) - 1)
    return np.where(ranked[at] == values, order[at], -1)


def _positions_by_hash(values: NDArray[Any], labels: NDArray[Any]) -> Codes:
    position = {label: i for i, label in enumerate(labels.tolist())}
    positions = (_get(position, value) for value in values.tolist())
    return np.fromiter(positions, np.int64, len(values))


def _get(position: dict[Any, int], value: Any) -> int:
    try:
        return position.get(value, -1)
    except TypeError:  # a list or another value without a hash
        return -1


# --- what is wrong -------------------------------------------------------------------


def _checked(
    positions: Codes,
    values: NDArray[Any],
    labels: NDArray[Any],
    name: str,
    rows: NDArray[Any] | None,
) -> Codes:
    bad = positions < 0
    if bad.any():
        at = int(bad.argmax())
        row = at if rows is None else int(rows[at])
        raise unknown_value(values[at : at + 1].tolist()[0], row, name, labels)
    return positions


def unknown_value(value: Any, row: int | None, name: str, labels: NDArray[Any]) -> DataError:
    """The error about a value that is not among the labels of its column."""
    what, remedy = _unknown(value, labels.tolist())
    place = f"column {name!r}" if row is None else f"row {row}, column {name!r}"
    return DataError(what.replace(PLACE, place, 1), remedy, value=value, row=row, column=name)


def _unknown(value: Any, known: list[Any]) -> tuple[str, str]:
    """What is wrong with a value, with `PLACE` where its place goes, and what to do."""
    observed = f"in training it had {_some(known)}"
    use_known = "use one of these, or mark it as missing (NaN or None)"
    if isinstance(value, float) and math.isinf(value):
        return f"infinity ({value}) at {PLACE}: {observed}", use_known
    number = isinstance(value, numbers.Number)
    type_name = type(known[0]).__name__
    if number and not any(isinstance(label, numbers.Number) for label in known):
        what = f"number {value!r} at {PLACE}, but {observed}, which are of type {type_name}"
        return what, "convert the column, for example astype(str)"
    if isinstance(value, str) and not any(isinstance(label, str) for label in known):
        what = f"string {value!r} at {PLACE}, but {observed}, which are of type {type_name}"
        return what, "convert the column, for example astype(int)"
    whole = all(isinstance(label, numbers.Integral) for label in known)
    if number and whole and value != math.floor(value):
        what = f"fraction {value!r} at {PLACE}, but {observed}, which are whole numbers"
        return what, "round or discretise it as in training"
    return f"unseen category {value!r} at {PLACE}: {observed}", use_known


def _some(labels: list[Any]) -> str:
    shown = ", ".join(map(repr, labels[:N_SHOWN]))
    more = f", ... ({len(labels)} categories)" if len(labels) > N_SHOWN else ""
    return f"the categories {shown}{more}"
