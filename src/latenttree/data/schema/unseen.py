"""Labels of new data that training did not have: refused, or missing with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any, Literal, get_args

from latenttree.data.checks import first_few
from latenttree.errors import DataWarning, Option, Text, check_option

HandleUnknown = Literal["missing", "error"]

N_LEVELS = 3  # levels of a column that a warning names


class Unseen:
    """What a reading of new data made missing, or rounded, by column.

    Attributes
    ----------
    missing : whether levels that training did not have become missing; else they are errors.
    levels : column -> the levels that became missing.
    rounded : columns of an ordinal variable whose fractions were rounded to its levels."""

    def __init__(self, handle_unknown: HandleUnknown = "missing") -> None:
        known = handle_unknown in get_args(HandleUnknown)
        remedy = "choose 'missing' or 'error'"
        check_option("handle_unknown", handle_unknown, known, remedy, " is unknown")
        self.missing = handle_unknown == "missing"
        self.levels: dict[str, list[Any]] = {}
        self.rounded: list[str] = []

    def add(self, name: str, levels: Iterable[Any]) -> None:
        """Levels of a column that became missing."""
        self.levels.setdefault(name, []).extend(levels)

    def warn(self) -> None:
        """One warning about all levels, and one about fractions."""
        if self.levels:
            columns = first_few([f"{name!r} ({_some(x)})" for name, x in self.levels.items()])
            text = f"levels that did not occur in training are read as missing: {columns}; "
            option = Option("handle_unknown", "error")
            warnings.warn(DataWarning(Text(text, option, " refuses them")), stacklevel=2)
        if self.rounded:
            columns = first_few([repr(name) for name in self.rounded])
            text = f"fractions are rounded to the nearest level of training: {columns}"
            warnings.warn(DataWarning(Text(text)), stacklevel=2)


def _some(levels: list[Any]) -> str:
    more = f", ... {len(levels)} levels" if len(levels) > N_LEVELS else ""
    return ", ".join(map(repr, levels[:N_LEVELS])) + more
