"""One column of new data as codes of the training labels; -1 where it is missing."""

from __future__ import annotations

import math
import numbers
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.data.checks import N_SHOWN, cell_error
from latenttree.data.columns.vectors import Vector
from latenttree.data.schema.unseen import Unseen
from latenttree.errors import DataError

MISSING = -1

Codes = NDArray[np.int64]


def known_codes(
    vector: Vector, labels: NDArray[Any], name: str, unseen: Unseen | None = None
) -> Codes:
    """(n,) position of each value among `labels`, -1 where it is missing.

    Numbers are compared as numbers, whatever their dtype; any other value must be among the
    labels. Levels that are not become missing where `unseen` says so, but values of another type,
    and infinity, never do."""
    positions = _positions(vector.known, labels)
    bad = np.flatnonzero(positions < 0)
    if bad.size:
        found, refused = _unseen_levels(vector.known, bad, labels)
        if unseen is None or not unseen.missing:
            refused = int(bad[0])
        if refused is not None:
            value = vector.known[refused : refused + 1].tolist()[0]
            raise _unknown_value(value, vector.row(refused), name, labels)
        assert unseen is not None
        unseen.add(name, found)
    return vector.spread(positions, MISSING)  # of which an unseen one is -1 already


def _unseen_levels(
    known: NDArray[Any], bad: Codes, labels: NDArray[Any]
) -> tuple[list[Any], int | None]:
    """The different values at the positions `bad`, and the first position of a value that could be
    no label: infinity, or of a type that no label has; None where all could."""
    types = [kind for kind in (numbers.Number, str) if _has(labels, kind)]
    found: dict[Any, None] = {}
    for at in bad.tolist():
        value = known[at : at + 1].tolist()[0]
        infinite = isinstance(value, float) and math.isinf(value)
        if infinite or not isinstance(value, tuple(types)):
            return [], at
        found.setdefault(value)
    return list(found), None


def _has(labels: NDArray[Any], kind: type) -> bool:
    return any(isinstance(label, kind) for label in labels.tolist())


def first_no_number(values: NDArray[Any]) -> int | None:
    """Position of the first value that is no number, though it may look like one; None: all are."""
    kind = values.dtype.kind
    if kind != "O":
        return None if kind in "biuf" or not len(values) else 0
    types = (numbers.Real, np.bool_, Decimal)
    return next((i for i, v in enumerate(values.tolist()) if not isinstance(v, types)), None)


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


def _unknown_value(value: Any, row: int, name: str, labels: NDArray[Any]) -> DataError:
    """The error about a value that is not among the labels of its column."""
    known = labels.tolist()
    number, text = isinstance(value, numbers.Number), isinstance(value, str)
    whole = all(isinstance(label, numbers.Integral) for label in known)
    what, why = f"unseen category {value!r}", ""
    remedy = "use one of these, or mark it as missing (NaN or None)"
    if isinstance(value, float) and math.isinf(value):
        what = f"infinity ({value})"
    elif (number and not any(isinstance(label, numbers.Number) for label in known)) or (
        text and not any(isinstance(label, str) for label in known)
    ):
        what, why = f"{'number' if number else 'string'} {value!r}", type(known[0]).__name__
        why = f", which are of type {why}"
        remedy = f"convert the column, for example astype({'str' if number else 'int'})"
    elif number and whole and value != math.floor(value):
        what, why = f"fraction {value!r}", ", which are whole numbers"
        remedy = "round or discretise it as in training"
    observed = f"{', but' if why else ':'} in training it had {_some(known)}{why}"
    return cell_error(what, value, row, name, remedy, observed)


def _some(labels: list[Any]) -> str:
    shown = ", ".join(map(repr, labels[:N_SHOWN]))
    more = f", ... ({len(labels)} categories)" if len(labels) > N_SHOWN else ""
    return f"the categories {shown}{more}"
