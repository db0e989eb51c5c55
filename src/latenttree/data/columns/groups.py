"""Groups of the columns of a matrix: the columns of a group are one vector variable."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.errors import DataError, Option, Text

Groups = Sequence[Hashable] | NDArray[Any] | Mapping[Any, Any]
Members = tuple[NDArray[np.int64], ...]


def group_columns(groups: Groups, n_columns: int) -> tuple[list[Any], Members]:
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
    return list(position), _members(position.values())


def _groups_by_name(groups: Mapping[Any, Any], n_columns: int) -> tuple[list[Any], Members]:
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
    return list(groups), _members(groups.values())


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


def _members(numbers: Iterable[Any]) -> Members:
    return tuple(np.asarray(member, dtype=np.int64) for member in numbers)
