"""Which events lie in a time span, given as numbers (days, ages) or dates."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.data.checks import column_error
from latenttree.data.events.columns import CodedColumn
from latenttree.errors import DataError, Option, Text

_DAY = re.compile(r"\d{4}(-\d\d(-\d\d)?)?$")  # a year, a month or a day: all of it counts


def within(column: CodedColumn, since: Any, until: Any) -> NDArray[np.bool_]:
    """(n,) True where the time is in [since, until]; a row without a time is outside.

    Dates are compared as exactly as the bound is written: until="2020-12-31" is the end of that
    day, until="2020" the end of that year. Times with a zone are compared in UTC.
    """
    texts = column.texts()
    known = [i for i, text in enumerate(texts) if text]
    if not known:
        return np.zeros(len(column.index), dtype=np.bool_)
    moments = _moments(column, known, [texts[i] for i in known])
    inside = np.ones(len(moments), dtype=np.bool_)
    for name, bound in (("since", since), ("until", until)):
        if bound is not None:
            limit = _bound(bound, name, moments, column.name, texts[known[0]])
            coarse = moments.astype(limit.dtype)
            inside &= coarse >= limit if name == "since" else coarse <= limit
    all_inside = np.zeros(len(texts) + 1, dtype=np.bool_)  # the last is where -1 points
    all_inside[known] = inside
    return all_inside[column.index]


def _moments(column: CodedColumn, known: list[int], texts: list[str]) -> NDArray[Any]:
    """(m,) the known distinct times as float64 or datetime64[us]."""
    values = column.values[known]
    if values.dtype.kind == "M":
        return values.astype("datetime64[us]")
    if values.dtype.kind in "iuf":
        return values.astype(np.float64)
    try:
        return np.asarray([float(text) for text in texts])
    except ValueError:
        return np.asarray([_parsed(value, column.name) for value in values.tolist()], "M8[us]")


def _parsed(value: Any, name: str) -> np.datetime64:
    try:
        return _moment(value)
    except (TypeError, ValueError) as error:
        what = f"time {value!r} in column {name!r} is neither a number nor a date like "
        what += "2020-12-31 or 2020-12-31 23:59"
        raise column_error(what, "correct it", name, value) from error


def _moment(value: Any) -> np.datetime64:
    """A date or a time as it is, or written in the ISO form; UTC where it has a zone."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            value = value.astimezone(UTC).replace(tzinfo=None)
        return np.datetime64(value, "us")
    if isinstance(value, date):
        return np.datetime64(value, "D")
    if isinstance(value, np.datetime64) and not np.isnat(value):
        return value
    raise TypeError(f"{type(value).__name__} is no time")


def _bound(value: Any, name: str, moments: NDArray[Any], column: str, first: str) -> Any:
    """A bound in the type of the times; dates as coarse as they are written."""
    dates = moments.dtype.kind == "M"
    try:
        if not dates:
            return np.float64(value)
        if isinstance(value, str) and _DAY.match(value):
            return np.datetime64(value)
        return _moment(value)
    except (TypeError, ValueError) as error:
        wanted = "dates" if dates else "numbers"
        raise DataError(
            Text(
                Option(name, value),
                f", but column {column!r} holds {wanted} (the first is {first!r})",
            ),
            Text("pass ", Option(name), " as one of these"),
            value=value,
            column=column,
            option=name,
        ) from error
