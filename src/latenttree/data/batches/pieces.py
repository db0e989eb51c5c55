"""Buffered samples in few bytes: integers in the smallest type, labels as codes.

Nothing here changes after it is made. A buffer grows by making a new object that shares the memory
of the old one, so a batch that is refused, or an interruption, leaves the old one as it was.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from latenttree.data.checks import is_missing
from latenttree.errors import DataError

SMALL = (np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32)
MERGED = 1 << 20
"""Pieces are joined up to so many rows: few pieces, and never a copy of everything."""


class Sized(Protocol):
    """Anything with rows."""

    def __len__(self) -> int: ...


P = TypeVar("P", bound=Sized)


def with_piece(pieces: tuple[P, ...], piece: P, join: Callable[[list[P]], P]) -> tuple[P, ...]:
    """The pieces and one more, which joins the one before it while that is not larger.

    So `b` batches leave `O(log b)` pieces and one for every `MERGED` rows, and a row is copied
    `O(log b)` times."""
    joined = [*pieces, piece]
    while len(joined) > 1:
        last, before = len(joined[-1]), len(joined[-2])
        if before > last or before + last > MERGED:
            break
        joined[-2:] = [join(joined[-2:])]
    return tuple(joined)


# ---- integers and labels ----------------------------------------------------------------


def smallest_dtype(values: NDArray[Any]) -> NDArray[Any]:
    """A copy of integers in the smallest type that holds them."""
    low, high = int(values.min()), int(values.max())
    fitting = (t for t in SMALL if np.iinfo(t).min <= low and high <= np.iinfo(t).max)
    return values.astype(next(fitting, values.dtype))


class Labels:
    """Different values in order of appearance; the position of each is its code.

    It only grows: codes stay, even if the batch they were made for is refused. Values of different
    types differ (1, 1.0 and True), all NaN are one."""

    def __init__(self) -> None:
        self._position: dict[tuple[type, Any], int] = {}

    def __len__(self) -> int:
        return len(self._position)

    @property
    def values(self) -> list[Any]:
        """The labels in the order of their codes."""
        return [math.nan if key == _NAN else key[1] for key in self._position]

    def codes(self, values: Sequence[Any]) -> tuple[NDArray[Any], list[Any]]:
        """(n,) codes of the values, in the smallest type, and the different values; new ones get
        the next codes."""
        local, inverse = _distinct(values)
        position = self._position
        positions = [position.setdefault(_key(value), len(position)) for value in local]
        return smallest_dtype(np.asarray(positions, dtype=np.int64)[inverse]), local

    @property
    def nbytes(self) -> int:
        """An estimate: a text of usual length and its entry."""
        return 150 * len(self._position)


_NAN = (float, "nan")


def _key(value: Any) -> tuple[type, Any]:
    return _NAN if isinstance(value, float) and value != value else (type(value), value)


def _distinct(values: Sequence[Any]) -> tuple[list[Any], NDArray[np.int64]]:
    """Different values, and the position of each value among them."""
    comparable = [t for t in set(map(type, values)) if issubclass(t, numbers.Number | np.generic)]
    position: dict[Any, int] = {}
    keys = values if len(comparable) < 2 else [(type(value), value) for value in values]
    try:
        inverse = np.fromiter(
            (position.setdefault(k, len(position)) for k in keys), np.int64, len(values)
        )
    except TypeError as error:
        raise DataError(
            f"it holds values that cannot be compared ({error})",
            "convert it, for example astype(str): each value must be a string or a number",
        ) from None
    return list(position) if keys is values else [value for _, value in position], inverse


# ---- pieces of a column -----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Piece:
    """Rows of a column or block: numbers, or codes of labels.

    Attributes
    ----------
    values : (n,) or (n, d).
    gaps : the same shape, True where a value is missing that `values` cannot mark; None: nowhere.
    """

    values: NDArray[Any]
    gaps: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def nbytes(self) -> int:
        """Memory of values and mask."""
        return int(self.values.nbytes) + (0 if self.gaps is None else int(self.gaps.nbytes))

    @property
    def known(self) -> NDArray[np.bool_]:
        """True where a value is not missing."""
        gaps = np.zeros(self.values.shape, dtype=np.bool_) if self.gaps is None else self.gaps
        return np.asarray(~gaps)


def join_pieces(pieces: list[Piece]) -> Piece:
    """The rows of several pieces as one."""
    values = np.concatenate([piece.values for piece in pieces])
    gaps = None
    if any(piece.gaps is not None for piece in pieces):
        gaps = np.concatenate([~piece.known for piece in pieces])
    return Piece(values, gaps)


@dataclass(frozen=True, eq=False)
class Run(Generic[P]):
    """Consecutive batches whose column had one type.

    Attributes
    ----------
    dtype : the type, as the container has it.
    pieces : the rows.
    coded : whether they are codes of the column's labels.
    growing : a name for types that continue as the later one: text of another length, categories
        with more of them; "" where only equal types continue."""

    dtype: Any
    pieces: tuple[P, ...]
    coded: bool = False
    growing: str = ""

    @property
    def n(self) -> int:
        """Rows of the run."""
        return sum(map(len, self.pieces))


def with_run(
    runs: tuple[Run[P], ...], new: Run[P], join: Callable[[list[P]], P]
) -> tuple[Run[P], ...]:
    """The runs and one more, which continues the last where both have one type."""
    if not runs:
        return (new,)
    last = runs[-1]
    grown = bool(new.growing) and last.growing == new.growing
    if not grown and (last.dtype != new.dtype or last.coded != new.coded):
        return (*runs, new)
    return (*runs[:-1], replace(new, pieces=with_piece(last.pieces, new.pieces[0], join)))


# ---- what a column may hold -------------------------------------------------------------


def object_array(values: Sequence[Any]) -> NDArray[Any]:
    """An object array of one dimension, whatever the values are."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def kinds_of(values: Sequence[Any]) -> set[str]:
    """What values of any type are: "text", "booleans", "numbers", or the name of their type;
    missing ones aside."""
    array = object_array(values)
    return {_kind(type(value)) for value in array[~is_missing(array)].tolist()}


def _kind(type_: type) -> str:
    if issubclass(type_, str | bytes):
        return "text"
    if issubclass(type_, bool | np.bool_):
        return "booleans"
    return "numbers" if issubclass(type_, numbers.Real) else f"{type_.__name__} values"


def same_kind(known: str | None, kinds: set[str], name: str) -> str | None:
    """The kind of a column's values, given that of earlier batches (None: all missing); raises if
    they differ."""
    if len(kinds) > 1:
        raise DataError(
            f"column {name!r} mixes {' and '.join(sorted(kinds))}",
            "convert it to one type, for example astype(str)",
            column=name,
            value=tuple(sorted(kinds)),
        )
    now = next(iter(kinds), None)
    if known is not None and now is not None and known != now:
        raise DataError(
            f"column {name!r} holds {now}, but {known} in earlier batches",
            "convert it to the type of the first batch",
            column=name,
            value=now,
        )
    return known if now is None else now
