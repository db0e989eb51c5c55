"""Groups of the columns of a matrix: the columns of a group are one vector variable."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.data.checks import column_error, option_error
from latenttree.errors import Option, Text

Groups = Sequence[Hashable] | NDArray[Any] | Mapping[Any, Any]
Members = tuple[NDArray[np.int64], ...]


def group_columns(groups: Groups, n_columns: int) -> tuple[list[Any], Members]:
    """Labels in order of appearance, and the columns of each; every column is in one group."""
    if isinstance(groups, Mapping):
        return _groups_by_name(groups, n_columns)
    nested = isinstance(groups, np.ndarray) and groups.ndim != 1
    if isinstance(groups, str) or nested or len(groups) != n_columns:
        what = f" has {len(groups)} labels for {n_columns} columns"
        raise option_error("groups", what, "give one label for each column", len(groups))
    position: dict[Any, list[int]] = {}
    for column, label in enumerate(groups):
        if label is None or label != label:
            what = Text(Option("groups"), f" has the label {label!r} for column {column}")
            remedy = "give every column a label, or select the columns first"
            raise column_error(what, remedy, str(column), label, "groups")
        position.setdefault(label, []).append(column)
    return list(position), _members(position.values())


def _groups_by_name(groups: Mapping[Any, Any], n_columns: int) -> tuple[list[Any], Members]:
    owner: dict[int, Any] = {}
    for label, member in groups.items():
        _check_group(label, member, n_columns)
        for column in map(int, member):
            if column in owner:
                what = f"column {column} is in two groups, {owner[column]!r} and {label!r}"
                raise option_error("groups", what, "keep it in one", column)
            owner[column] = label
    left_out = next((j for j in range(n_columns) if j not in owner), None)
    if left_out is not None:
        share = f"{n_columns - len(owner)} of {n_columns} columns are left out"
        remedy = "add it to a group, or select the columns first"
        raise option_error(
            "groups", f"column {left_out} is in no group ({share})", remedy, left_out
        )
    return list(groups), _members(groups.values())


def _check_group(label: Any, member: Any, n_columns: int) -> None:
    """Raise unless a group is a list of one or more column numbers."""
    if isinstance(member, str) or not hasattr(member, "__len__"):
        what = f"group {label!r} must be a list of column numbers, got {member!r}"
        raise option_error("groups", what, value=member)
    if len(member) == 0:
        remedy = "give it columns or remove it"
        raise option_error("groups", f"group {label!r} is empty", remedy, label)
    for column in member:
        if not isinstance(column, int | np.integer) or not 0 <= column < n_columns:
            what = f"group {label!r} has column {column!r}, out of range"
            raise option_error("groups", what, f"columns are integers 0..{n_columns - 1}", column)


def _members(numbers: Iterable[Any]) -> Members:
    return tuple(np.asarray(member, dtype=np.int64) for member in numbers)
