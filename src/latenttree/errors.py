"""Errors with fields: what is wrong, the value received, the place, and the remedy.

A text names a parameter of the library as an `Option`, and whatever else each surface says in its
own words as a `Phrase`. Python shows `drop_constant=True` where the command line shows
`--drop-constant`, from the same fields.

>>> error = DataError("column 'age' has one value (42) in all 500 rows",
...                   Text("drop it or pass ", Option("drop_constant", True)),
...                   value=42, column="age")
>>> print(error)
column 'age' has one value (42) in all 500 rows; drop it or pass drop_constant=True
>>> error.place.column, error.value, error.options
('age', 42, (Option(name='drop_constant', value=True),))
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from numbers import Integral
from typing import Any, Self


class _Sentinel(Enum):
    NO_VALUE = "no value"


NO_VALUE: Any = _Sentinel.NO_VALUE
"""Value of an `Option` that is only named."""


@dataclass(frozen=True)
class Option:
    """A parameter of the library, and the value to give it, if the text has one."""

    name: str
    value: Any = NO_VALUE

    def __str__(self) -> str:
        """As Python writes it: `name=value`, or `name` alone."""
        return self.name if self.value is NO_VALUE else f"{self.name}={self.value!r}"


@dataclass(frozen=True)
class Phrase:
    """A piece of text that other surfaces word differently, which they find by `key`."""

    key: str
    text: str

    def __str__(self) -> str:
        return self.text


class Text(str):
    """A sentence made of parts: a string in the words of Python that remembers its parts."""

    parts: tuple[str | Option | Phrase, ...]

    def __new__(cls, *parts: str | Option | Phrase) -> Self:
        """Join the parts; those of a `Text` among them become parts of this one."""
        flat: list[str | Option | Phrase] = []
        for part in parts:
            flat.extend(part.parts if isinstance(part, Text) else [part])
        text = super().__new__(cls, "".join(str(part) for part in flat))
        text.parts = tuple(flat)
        return text


class Caution(Text):
    """A note on something that may surprise, which is also shown as a `DataWarning`."""


class DataWarning(UserWarning):
    """Data that can be used, but are read in a way that may surprise."""


def render(text: str, words: Callable[[Option | Phrase], str]) -> str:
    """`text` with its options and phrases in other words; plain strings as they are."""
    if not isinstance(text, Text):
        return text
    return "".join(part if isinstance(part, str) else words(part) for part in text.parts)


@dataclass(frozen=True)
class Place:
    """Where a value stands, as far as it is known.

    Attributes
    ----------
    column : name of the variable, or of the column of a file.
    row : number of the sample, from 0.
    path : file or folder, as it was given.
    option : name of the parameter.
    node : name of the node of a tree.
    line : number of the line of a text file, from 1.
    """

    column: str | None = None
    row: int | None = None
    path: str | None = None
    option: str | None = None
    node: str | None = None
    line: int | None = None


class DataError(ValueError):
    """Input that cannot be used as given.

    Parameters
    ----------
    what : what is wrong, with the value and the place in words
    remedy : what to do
    value : the value received
    column, row, path, option, node, line : the place, see `Place`
    """

    def __init__(
        self,
        what: str,
        remedy: str = "",
        *,
        value: Any = None,
        column: str | None = None,
        row: int | None = None,
        path: str | None = None,
        option: str | None = None,
        node: str | None = None,
        line: int | None = None,
    ) -> None:
        self.value, self.place = value, Place(column, row, path, option, node, line)
        self._say(what, remedy)

    def _say(self, what: str, remedy: str) -> None:
        """Set the text, whole and in its parts."""
        self.what, self.remedy = what, remedy
        self.args = (f"{what}; {remedy}" if remedy else str(what),)

    def within(self, context: str, **place: Any) -> Self:
        """This error, changed in place: prefixed by a context ("data.csv", "batch 3"), and with
        fields of its place (see `Place`) that were not known where it was raised."""
        if context:
            self._say(Text(f"{context}: ", self.what), self.remedy)
        known = {name: x for name, x in vars(self.place).items() if x is not None}
        self.place = replace(self.place, **(place | known))
        return self

    def renumber(self, rows: Sequence[int]) -> Self:
        """This error, changed in place, where only some samples were checked: sample i of those is
        sample `rows[i]` of all."""
        if self.place.row is not None:
            old, new = self.place.row, int(rows[self.place.row])
            self._say(_with_row(self.what, old, new), self.remedy)
            self.place = replace(self.place, row=new)
        return self

    @property
    def options(self) -> tuple[Option, ...]:
        """The parameters that the text names, in its order."""
        texts = [text.parts for text in (self.what, self.remedy) if isinstance(text, Text)]
        return tuple(part for parts in texts for part in parts if isinstance(part, Option))

    def render(self, words: Callable[[Option | Phrase], str]) -> str:
        """The message with options and phrases in other words."""
        what, remedy = render(self.what, words), render(self.remedy, words)
        return f"{what}; {remedy}" if remedy else what


def check_option(name: str, value: Any, is_valid: bool, remedy: str, problem: str = "") -> None:
    """Raise where an option has a value that it cannot have: "name=value problem; remedy"."""
    if not is_valid:
        raise DataError(Text(Option(name, value), problem), remedy, value=value, option=name)


def is_count(value: Any) -> bool:
    """Whether a value is a whole number from 1 on."""
    return not isinstance(value, bool) and isinstance(value, Integral) and int(value) >= 1


def _with_row(text: str, old: int, new: int) -> Text:
    """A text with another number of a row."""
    parts = text.parts if isinstance(text, Text) else (text,)
    pattern = re.compile(rf"\brow {old}\b")
    return Text(*(pattern.sub(f"row {new}", p) if isinstance(p, str) else p for p in parts))
