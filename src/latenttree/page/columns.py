"""Columns that colour the map: a label or a number for each variable, in any container."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from latenttree.data.checks import listing
from latenttree.data.containers.frames import as_frame
from latenttree.errors import DataError

MOST_LEVELS = 12
"""Whole numbers of at most so many different values are labels."""

UNNAMED = "value"


@dataclass(frozen=True)
class MapColumn:
    """A label or a number for each observed variable.

    Attributes
    ----------
    name : in the list of columns, and above the legend.
    kind : "labels" or "numbers".
    labels : all labels, the most frequent first; numbers in their order. Empty for numbers.
    values : (p,) places in `labels`, or numbers; None where a variable has no value.
    range : least and largest number, None for labels.
    """

    name: str
    kind: str
    labels: list[str]
    values: Sequence[int | float | None]
    range: tuple[float, float] | None = None


def read_columns(given: Any, names: Sequence[str], option: str = "columns") -> list[MapColumn]:
    """The columns in what was given for the variables ``names``.

    A DataFrame has the names of variables in its index or in one of its columns; a Series in its
    index; a dict has them as keys, or has names of columns as keys and dicts or sequences as
    values; a sequence is in the order of the variables."""
    found = []
    for name, values in _by_name(given, names, option).items():
        if not any(variable in values for variable in names):
            raise DataError(
                f"column {name!r} of {option} has no value for any variable; it has values for "
                f"{listing([str(key) for key in values]) or 'nothing'}",
                f"name the variables, which are {listing(names)}",
                option=option,
                column=name,
            )
        found.append(map_column(name, [_plain(values.get(variable)) for variable in names]))
    return found


def map_column(name: str, values: Sequence[Any]) -> MapColumn:
    """A column of plain values, None where there is none."""
    known = [x for x in values if x is not None]
    real = all(isinstance(x, int | float) and not isinstance(x, bool) for x in known)
    whole = real and all(float(x).is_integer() for x in known)
    if real and not (whole and len(set(known)) <= MOST_LEVELS):
        return MapColumn(name, "numbers", [], list(values), (float(min(known)), float(max(known))))
    counts: dict[Any, int] = {}
    for x in known:
        counts[x] = counts.get(x, 0) + 1
    levels = sorted(counts) if real else sorted(counts, key=lambda x: (-counts[x], str(x)))
    place = {x: i for i, x in enumerate(levels)}
    codes = [None if x is None else place[x] for x in values]
    return MapColumn(name, "labels", [str(x) for x in levels], codes)


def _by_name(given: Any, names: Sequence[str], option: str) -> dict[str, dict[str, Any]]:
    """The values of each column by the name of the variable."""
    if hasattr(given, "index") and hasattr(given, "to_frame") and not callable(given.index):
        label = UNNAMED if getattr(given, "name", None) is None else str(given.name)
        return {label: _dict(given.index, given)}
    if hasattr(given, "iloc") and hasattr(given, "columns"):
        return _of_frame({str(c): list(given[c]) for c in given.columns}, names, list(given.index))
    if isinstance(given, Mapping):
        return _of_mapping(given, names, option)
    frame = None if hasattr(given, "to_list") else as_frame(given)  # a Series of polars
    if frame is not None:
        columns = {c: frame.get_column(c).to_list() for c in frame.columns}
        return _of_frame(columns, names, list(range(len(frame))))
    return {UNNAMED: _of_sequence(given, names, option)}


def _of_mapping(given: Mapping[Any, Any], names: Sequence[str], option: str) -> Any:
    if not any(_is_column(x) for x in given.values()):
        return {UNNAMED: _dict(given.keys(), given.values())}
    found = {}
    for name, values in given.items():
        if isinstance(values, Mapping):
            found[str(name)] = _dict(values.keys(), values.values())
        else:
            found |= {str(name): each for each in _by_name(values, names, option).values()}
    return found


def _of_frame(columns: dict[str, list[Any]], names: Sequence[str], index: list[Any]) -> Any:
    """The index names the variables, or else the column that names most of them."""
    wanted = set(names)
    if wanted & {str(x) for x in index}:
        return {name: _dict(index, values) for name, values in columns.items()}
    hits = {name: len(wanted & {str(x) for x in values}) for name, values in columns.items()}
    key = max((name for name in hits if hits[name]), key=lambda name: hits[name], default=None)
    keys = index if key is None else columns[key]
    return {name: _dict(keys, values) for name, values in columns.items() if name != key}


def _of_sequence(given: Any, names: Sequence[str], option: str) -> dict[str, Any]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        what = f"{option} is {given!r}"
        remedy = "pass a DataFrame, a Series, a dict from variables to values, or a value for each"
        raise DataError(what, remedy, value=given, option=option)
    values = list(given)
    if len(values) != len(names):
        what = f"{option} has {len(values):,} values for {len(names):,} variables"
        raise DataError(what, "pass one for each, or a dict by name", option=option)
    return _dict(names, values)


def _is_column(x: Any) -> bool:
    return isinstance(x, Iterable) and not isinstance(x, str | bytes)


def _dict(keys: Iterable[Any], values: Iterable[Any]) -> dict[str, Any]:
    return {str(key): x for key, x in zip(keys, values, strict=True)}


def _plain(x: Any) -> Any:
    """A text, a number or None, of a value in any library."""
    if isinstance(x, np.generic):
        x = x.item()
    if x is None or isinstance(x, str | bool | int):
        return x
    if isinstance(x, float):
        return x if np.isfinite(x) else None
    text = str(x)
    return None if text in ("<NA>", "NaT", "nan") else text
