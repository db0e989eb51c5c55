"""Which family a variable has: the one requested, or the one its values suggest.

- Booleans, integers, text and categories are categorical; but in a DataFrame, integers with more
  than 50 different values and on average fewer than 20 rows for each are numbers.
- Ordered categories are ordinal, and so are the whole numbers of a DataFrame, or of a file with
  named columns, that are a scale (`scales`): few, and evenly spaced. Two values have no order.
- Floats are real. A few fractions among the levels of a scale are rounded first. Floats that are
  all whole numbers from 0 on, with at most 20 different ones, are categories: so pandas stores
  integers with gaps, and so encoders give codes.
- Whole numbers that number the rows, all different and without large gaps, are categories, which
  `checks.check_identifiers` refuses.
- A block of vectors is categorical where every row is one-hot, a multi-hot group where all is 0
  or 1, a bag of counts where all is a whole number from 0 on, real otherwise.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from latenttree.data.checks import MAX_ALL_UNIQUE, column_error, listing, option_error
from latenttree.data.columns.scales import is_scale
from latenttree.data.columns.vectors import Vector
from latenttree.data.values import FAMILIES, TRAITS
from latenttree.errors import DataError, Option, Phrase, Text

Family = str | Mapping[Any, str]
BlockContent = Literal["one-hot", "binary", "counts", "real"]

AUTO = "auto"
GAUSSIAN = tuple(name for name, family in TRAITS.items() if family.gaussian)
NUMBERS = tuple(name for name, family in TRAITS.items() if family.scalar and not family.coded)
"""Families of a single column of numbers."""

MAX_WHOLE = 20
"""Floats with at most so many different whole values are categories."""

MANY_VALUES = 50
"""Integers with more different values than this are read with a note."""

FEW_NUMBERS = 3
"""Numbers with at most so many different values, in more than 20 rows, are read with a warning."""

MIN_ROWS_PER_VALUE = 20
"""Integers of a DataFrame with many values and fewer rows than this for each are numbers."""

ALIASES = {
    **dict.fromkeys(("normal", "real", "numeric", "number", "float", "continuous"), "gaussian"),
    **dict.fromkeys(("count", "counts"), "poisson"),
    **dict.fromkeys(("bernoulli", "presence", "boolean"), "binary"),
    **dict.fromkeys(("nominal", "discrete", "category"), "categorical"),
}
"""Names of families in other libraries, for "did you mean"."""

MAX_EXACT = 2.0**53
"""Below this, float64 holds every whole number."""

PREVIEW = 1000
"""Values that are looked at first: most real columns show a fraction soon."""


# --- what is requested -------------------------------------------------------------------


def requested_families(family: Family, names: Sequence[str]) -> list[str]:
    """(p,) the family requested for each variable, or "auto"."""
    if isinstance(family, str):
        return [_known(family)] * len(names)
    if not isinstance(family, Mapping):
        raise option_error(
            "family",
            Text(Option("family", family), " is neither a name nor a dict"),
            "give 'auto', the name of a family for all variables, or a dict from "
            f"columns to names; names are {list(FAMILIES)}",
            family,
        )
    wanted = {str(column): name for column, name in family.items()}
    known = set(names)
    unknown = next((column for column in wanted if column not in known), None)
    if unknown is not None:
        what = f"family names column {unknown!r}, which the data do not have"
        what += _did_you_mean(unknown, names)
        raise wrong_family(what, f"the columns are {listing(names)}", unknown, unknown)
    by_column = {column: _known(name, column) for column, name in wanted.items()}
    return [by_column.get(name, AUTO) for name in names]


def _known(name: Any, column: str | None = None) -> str:
    if isinstance(name, str) and name in (AUTO, *FAMILIES):
        return name
    of_column = "" if column is None else f" of column {column!r}"
    what = f"family {name!r}{of_column} is unknown{_meant(str(name))}"
    raise wrong_family(what, f"choose one of {[AUTO, *FAMILIES]}", column, name)


def wrong_family(what: str, remedy: str, name: str | None, value: Any) -> DataError:
    """The error of the family that is requested for a column."""
    return column_error(what, remedy, name, value, "family")


def _meant(name: str) -> str:
    alias = ALIASES.get(name.lower())
    return f" (did you mean {alias!r}?)" if alias else _did_you_mean(name.lower(), FAMILIES)


def _did_you_mean(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, 1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def check_scores(requested: str, name: str) -> None:
    """Raise if a requested family does not go with a Gaussian tree, which reads numbers."""
    if requested not in (AUTO, "ordinal", "binary", *GAUSSIAN):
        what = f"family {requested!r} of {name!r} does not go with "
        why = ", which reads every variable as a number"
        remedy = Text("leave it out, or use ", Option("hidden", "categorical"))
        raise wrong_family(Text(what, Option("hidden", "gaussian"), why), remedy, name, requested)


# --- vectors -------------------------------------------------------------------------


def vector_family(requested: str, vector: Vector, name: str, total: float = 0.0) -> str:
    """Family of a variable with one value a sample; `total` is the weight of the rows that have a
    value. The known values of the vector may be the different ones only."""
    known = vector.known
    number = known.dtype.kind in "biuf"
    if requested == AUTO:
        return _suggested(vector, total)
    if not TRAITS[requested].scalar:
        what = f"family {requested!r} is for a block of several columns"
        what += f", but {name!r} is a single one"
        or_groups = Phrase("or groups", ", or a matrix with groups")
        remedy = Text("pass a dict with an (n, d) block", or_groups)
        raise wrong_family(what, remedy, name, requested)
    if requested in NUMBERS and not number:
        first = known[:1].tolist()[0]
        what = f"family {requested!r} needs numbers, but column {name!r} holds "
        what += f"{type(first).__name__} values (first {first!r})"
        raise wrong_family(what, "convert it, or leave its family to 'auto'", name, first)
    if TRAITS[requested].read_as is not None:
        return str(TRAITS[requested].read_as)
    alike = ("gaussian_spherical", "gaussian_diagonal", "gaussian_full")  # of a single number
    return "gaussian" if requested in alike else requested


def _suggested(vector: Vector, total: float) -> str:
    known, kind = vector.known, vector.known.dtype.kind
    if _is_ordered(vector):
        return "ordinal"
    if kind == "f":
        category = is_few_whole_numbers(known) or _numbers_rows(vector)
    else:
        rare = vector.loose and kind in "iu" and _many_and_rare(known, total)
        category = not rare or _numbers_rows(vector)
    return "categorical" if category else "gaussian"


def _is_ordered(vector: Vector) -> bool:
    """Whether values are more than two ordered categories, or the levels of a scale."""
    if vector.levels is not None:
        return len(set(vector.known.tolist())) > 2
    return vector.scales and vector.known.dtype.kind in "iuf" and is_scale(vector.known)


def _many_and_rare(known: NDArray[Any], total: float) -> bool:
    """Whether integers have more than 50 values with fewer than 20 rows for each."""
    if int(known.max()) - int(known.min()) < MANY_VALUES:  # most codes, without a sort
        return False
    n_values = len(np.unique(known))
    return n_values > MANY_VALUES and total < MIN_ROWS_PER_VALUE * n_values


def _numbers_rows(vector: Vector) -> bool:
    """Whether values number the rows: more than 20 whole numbers, all different, in a range less
    than twice as long as the rows are many."""
    known, n_known = vector.known, vector.n_known
    if n_known <= MAX_ALL_UNIQUE or float(known.max()) - float(known.min()) + 1 >= 2 * vector.n:
        return False
    if known.dtype.kind == "f" and not (whole(known[:PREVIEW]) and whole(known)):
        return False
    return len(np.unique(known)) == n_known


def is_few_whole_numbers(known: NDArray[Any]) -> bool:
    """Whether floats are at most 20 different non-negative whole numbers."""
    if not whole(known[:PREVIEW]) or not whole(known):
        return False
    return len(np.unique(known[:PREVIEW])) <= MAX_WHOLE and len(np.unique(known)) <= MAX_WHOLE


def whole(values: NDArray[Any]) -> bool:
    """Whether all values are non-negative whole numbers below 2^53."""
    exact = (values >= 0) & (values == np.floor(values)) & (values < MAX_EXACT)
    return bool(exact.all())


# --- blocks --------------------------------------------------------------------------


def block_family(requested: str, content: BlockContent, width: int, name: str) -> str:
    """Family of a variable with a vector of `width` values a sample."""
    if requested == AUTO:
        if content == "counts":
            return "multinomial" if width > 1 else "poisson"
        return {"one-hot": "categorical", "binary": "multihot"}.get(content, "gaussian_diagonal")
    if not TRAITS[requested].block:
        block = f"{name!r} is a block of {width} columns"
        what = f"family {requested!r} is for a single column, but {block}"
        remedy = "'multihot' reads it as a group of codes that are 0 or 1"
        raise wrong_family(what, remedy, name, requested)
    if requested == "multinomial" and width == 1:
        what = f"family 'multinomial' is for a bag of several counts, but {name!r} has one column"
        raise wrong_family(what, "use 'poisson'", name, requested)
    if requested == "multihot" and content == "one-hot":
        return "categorical"
    return "gaussian_diagonal" if requested == "gaussian" else requested
