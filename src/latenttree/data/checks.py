"""Checks that every kind of input shares; each raises an error with the value and the remedy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from latenttree.data.table import Table
from latenttree.data.values import CODED
from latenttree.errors import DataError, Option, Phrase, Text

N_SHOWN = 5  # how many offenders an error names
N_REPORTED = 8  # how many errors are reported in full


MAX_SQUARED = 1e150
"""Largest magnitude whose square float64 holds with room for sums; its inverse is the least."""

MAX_ALL_UNIQUE = 20
"""Up to so many rows, a column may have a different value in each: small tables often do."""


def cell_error(
    what: str, value: Any, row: int, name: str, remedy: str, more: str = ""
) -> DataError:
    """The error of one value: "WHAT at row ROW, column 'NAME'MORE"."""
    text = f"{what} at row {row}, column {name!r}{more}"
    return DataError(text, remedy, value=value, row=row, column=name)


def column_error(
    what: str, remedy: str, name: str | None, value: Any, option: str | None = None
) -> DataError:
    """The error of a column or block, or of the option of that name for it."""
    return DataError(what, remedy, value=value, column=name, option=option)


def option_error(
    option: str, what: str, remedy: str = "", value: Any = None, row: int | None = None
) -> DataError:
    """The error of an option, whose name the text begins with where it begins with a space."""
    text = Text(Option(option), what) if what.startswith(" ") else what
    return DataError(text, remedy, value=value, row=row, option=option)


def check_shape(shape: tuple[int, ...], n_min: int = 2) -> None:
    """Raise unless there are at least `n_min` rows (two to learn from, one to query) and one
    column. The wording is what scikit-learn's checks expect."""
    if len(shape) != 2:
        what = "expected a table of two dimensions (samples x variables), got "
        what += f"{len(shape)}D data of shape {shape}"
        remedy = "X.reshape(-1, 1) for one variable, X.reshape(1, -1) for one sample"
        raise DataError(what, f"Reshape your data: {remedy}", value=shape)
    n, p = shape
    if p < 1:
        what = f"found data with 0 feature(s) (shape=({n}, 0)) while a minimum of 1 is required"
        raise DataError(what, "pass at least one column", value=shape)
    if n < n_min:
        why = ": a tree cannot be learned from fewer" if n_min > 1 else ""
        what = f"found data with {n} sample(s) (shape=({n}, {p})) while a minimum of "
        raise DataError(f"{what}{n_min} is required", f"pass more rows{why}", value=shape)


def resolve_names(
    names: Sequence[Any] | None, p: int, own_names: Sequence[Any] | None = None
) -> list[str]:
    """The given names, else those found in the data, else x0, x1, ...; all different."""
    if isinstance(names, str):
        what = f" must be a list of {p} names, got the string {names!r}"
        raise option_error("names", what, value=names)
    chosen = names if names is not None else own_names
    if chosen is None:
        return [f"x{i}" for i in range(p)]
    if len(chosen) != p:
        what = f"got {len(chosen)} names for {p} variables"
        raise option_error("names", what, "pass one name for each", len(chosen))
    result = [str(name) for name in chosen]
    repeated = [name for name, count in Counter(result).items() if count > 1]
    if repeated:
        occur = "occurs" if len(repeated) == 1 else "occur"
        what = f"variable names must be different, but {listing(repeated)} {occur} more than once"
        remedy = Text("rename the columns", Phrase("or names", " or pass names"))
        raise column_error(what, remedy, repeated[0], repeated[0])
    return result


def coordinate_names(name: str, width: int) -> list[str]:
    """Names of the columns of a block, for errors: "name[0]", "name[1]", ..."""
    return [f"{name}[{j}]" for j in range(width)]


def check_known(n_known: int, n: int, name: str) -> None:
    """Raise if a variable is missing in all `n` rows."""
    if not n_known:
        what = f"column {name!r} is missing (NaN or None) in all {n} rows"
        remedy = Text("drop the column or pass ", Option("drop_constant", True))
        raise column_error(what, remedy, name, None)


def is_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """(n,) True for None, NaN, NaT and pandas.NA of an object column: these differ from
    themselves."""
    if set(map(type, values.tolist())) <= {str, int, bool}:  # most columns; no value is missing
        return np.zeros(len(values), dtype=np.bool_)
    missing = (value is None or _differs_from_itself(value) for value in values)
    return np.fromiter(missing, np.bool_, len(values))


def _differs_from_itself(value: Any) -> bool:
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas.NA has no truth value, and neither has an array
        return type(value).__name__ == "NAType"


def check_finite(
    values: NDArray[Any], names: Sequence[str], start: int = 0, row_of: Callable[[int], int] = int
) -> None:
    """Raise if a dense (n, p) array, whose i-th row is row `start + row_of(i)`, holds infinity; NaN
    is missing."""
    if values.dtype.kind != "f":
        return
    with np.errstate(over="ignore", invalid="ignore"):  # a sum may be infinite where no value is
        total = values.sum(dtype=np.float64)
    if np.isfinite(total):
        return  # one pass: neither NaN nor infinity is in a finite sum
    infinite = np.isinf(values)
    if infinite.any():
        row, column = np.argwhere(infinite)[0]
        raise infinite_value(values[row, column], start + row_of(int(row)), names[column])


def infinite_value(
    value: Any, row: int, name: str, remedy: str = "drop the row or replace the value"
) -> DataError:
    """The error of infinity among numbers."""
    return cell_error(f"infinity ({value})", value, row, name, f"values must be finite: {remedy}")


def unsupported_dtype(name: str, dtype: object) -> DataError:
    """The error of a column whose type cannot be read."""
    why = ", which is not supported: columns may be boolean, integer, float, string or categorical"
    remedy = "convert it"
    if str(dtype).lower().startswith(("date", "time", "duration")):
        why = ": dates and times are not supported"
        remedy = "drop it, or make a number of it, for example (d - d.min()).dt.days"
    return column_error(f"column {name!r} has type {dtype}{why}", remedy, name, dtype)


def complex_data() -> DataError:
    """The error of complex numbers, in the words that scikit-learn's checks expect."""
    return DataError("Complex data not supported", "pass real and imaginary parts as a block")


def wrong_count(value: float, row: int, name: str, family: str) -> DataError:
    """The error of a count that is negative or no whole number."""
    what = "negative count" if value < 0 else "count that is no whole number,"
    holds = f": family {family!r} holds whole numbers >= 0"
    remedy = "correct it, mark it as missing (NaN), or use a 'gaussian' family"
    return cell_error(f"{what} {value:g}", value, row, name, remedy, holds)


def check_squares(values: NDArray[Any], name: str) -> None:
    """Raise unless the squares of the numbers, NaN aside, fit float64: variances are that large."""
    size = float(np.nanmax(np.abs(values), initial=0))
    if size > MAX_SQUARED or 0 < size < 1 / MAX_SQUARED:
        what = f"column {name!r} has values of size {size:.3g}, whose variance no float64 holds"
        raise column_error(what, f"rescale it, for example by {1 / size:.0e}", name, size)


def widened(values: NDArray[Any]) -> NDArray[Any]:
    """float16 as float32: float16 cannot be compared with numbers beyond 65504."""
    return values.astype(np.float32) if values.dtype == np.float16 else values


def check_identifiers(table: Table) -> None:
    """Raise if a categorical column has a different value in every row: it identifies rows, and
    depends on nothing."""
    named = [labels is not None for labels in table.categories]
    errors = []
    suspects = np.flatnonzero(
        named & (table.dims > MAX_ALL_UNIQUE) & (table.dims <= table.n_samples)
    )
    families = table.families
    for v in suspects.tolist():
        n = _n_known(table, v)
        if families[v] in CODED and table.dims[v] == n:
            labels = table.categories[v]
            number = labels is not None and labels.dtype.kind in "iuf"
            errors.append(identifier(table.names[v], n, number))
    if errors:
        raise combined_error(errors)


def identifier(name: str, n: int, number: bool) -> DataError:
    """The error of a column with a different value in each of `n` rows."""
    what = f"column {name!r} has {n:,} different values in {n:,} rows, like an identifier"
    remedy = Text(Phrase("drop column", "drop it"), ", or group its values into categories")
    if number:
        as_number = Option("family", {name: "gaussian"})
        remedy = Text(remedy, "; if it is a number, pass ", as_number)
    return column_error(what, remedy, name, n)


class ColumnErrors(DataError):
    """Errors of several columns as one: the first few in full; `errors` holds all of them, and the
    place and the value are those of the first."""

    def __init__(self, errors: Sequence[DataError]) -> None:
        parts: list[str | Option | Phrase] = [f"{len(errors)} columns cannot be used as they are:"]
        for error in errors[:N_REPORTED]:
            parts += ["\n- ", error.what, *(["; ", error.remedy] if error.remedy else [])]
        if len(errors) > N_REPORTED:
            parts.append(f"\n- and {len(errors) - N_REPORTED} more")
        first = errors[0]
        super().__init__(Text(*parts), value=first.value, **vars(first.place))
        self.errors = tuple(errors)

    def renumber(self, rows: Sequence[int]) -> Self:
        """See `DataError.renumber`: all errors."""
        self.__init__([error.renumber(rows) for error in self.errors])  # type: ignore[misc]
        return self


def combined_error(errors: Sequence[DataError]) -> DataError:
    """The only error, or all of them as one `ColumnErrors`."""
    return errors[0] if len(errors) == 1 else ColumnErrors(errors)


def _n_known(table: Table, v: int) -> int:
    if not table.has_missing:
        return table.n_samples
    if table.codes is not None:
        return int((table.codes[:, v] >= 0).sum())
    assert table.missing is not None
    return table.n_samples - int(table.missing[:, v].sum())


def negative_code(value: Any, row: int, name: str) -> DataError:
    """The error of an integer column that would be categorical but has a negative value."""
    remedy = Text(
        "if it marks a missing value, ",
        Phrase("mark missing", "replace it by NaN or None"),
        "; if it is a number, pass ",
        Option("family", {name: "gaussian"}),
        "; if it is a label, ",
        Phrase("make categorical", "make the column categorical or string"),
    )
    why = ": integer categories must be >= 0. Negative values in data are not read as categories"
    return cell_error(f"negative code {value}", value, row, name, remedy, why)


class OnlyValue(NamedTuple):
    """The only value of a constant variable, and how it is shown."""

    value: Any
    text: str

    @classmethod
    def number(cls, value: float) -> OnlyValue:
        """A number, shown in six digits."""
        return cls(value, f"{value:g}")


def constant_variables(
    names: Sequence[str], values: Sequence[OnlyValue], n: int, drop_constant: bool, p: int
) -> tuple[str, ...]:
    """The names to drop, or an error that lists the constant variables with their values."""
    if not names:
        return ()
    if len(names) == p:
        what = f"all {p} columns are constant ({_with_values(names, values)})"
        remedy = "pass columns that vary; nothing is left to learn from"
        raise column_error(what, remedy, names[0], values[0].value)
    if drop_constant:
        return tuple(names)
    if len(names) == 1:
        raise constant_column(names[0], values[0], n)
    what = f"{len(names)} columns have one value in all {n} rows: {_with_values(names, values)}"
    remedy = Text("drop them or pass ", Option("drop_constant", True))
    raise column_error(what, remedy, names[0], values[0].value)


def constant_column(name: str, only: OnlyValue, n: int) -> DataError:
    """The error of a column with one value."""
    what = f"column {name!r} has one value ({only.text}) in all {n} rows"
    remedy = Text("drop it or pass ", Option("drop_constant", True))
    return column_error(what, remedy, name, only.value)


def check_n_states(
    table: Table, n_states: int | str, gaussian: bool = False, bounded: bool = True
) -> int | Literal["auto", "bic"]:
    """`n_states` as an integer that this table supports, or "auto" or "bic".

    A variable with `f` free dimensions (`free_dimensions`) distinguishes at most `f + 1` states,
    which counts where `bounded`: distances and moments are then taken in `n_states - 1` directions.
    `gaussian` hidden variables, of `n_states` >= 1 dimensions, need as many in every variable."""
    if isinstance(n_states, str) and n_states == "auto":
        return "auto"
    if isinstance(n_states, str) and n_states == "bic" and not gaussian:
        return "bic"
    least = 1 if gaussian else 2
    whole = isinstance(n_states, int | np.integer) and not isinstance(n_states, bool)
    if not whole or int(n_states) < least:
        words = " or 'auto'" if gaussian else ", 'auto' or 'bic'"
        what = f" must be an integer >= {least}{words}, got {n_states!r}"
        raise option_error("n_states", what, value=n_states)
    k = int(n_states)
    if table.total_weight < k:
        what = Text(f"{table.total_weight:g} samples are fewer than ", Option("n_states", k))
        raise option_error(
            "n_states", what, Text("pass more rows or lower ", Option("n_states")), k
        )
    small = np.flatnonzero(free_dimensions(table) + (not gaussian) < k)
    if small.size and bounded:
        raise _too_small(table, small, k)
    return k


def free_dimensions(table: Table) -> NDArray[np.int64]:
    """(p,) dimensions of each variable's structural form after centring.

    One less than its coordinates where these add up to one (categories, bins, shares of a bag);
    bins side by side lose one in each coordinate of their block."""
    if table.kind == "sparse_binary":
        return np.ones(table.n_vars, dtype=np.int64)
    lost = np.ones(table.n_vars, dtype=np.int64)
    if table.kind == "blocks":
        for v, d in table.block_widths.items():
            lost[v] = _n_sums(table.families[v], d, int(table.dims[v]))
    return table.widths - lost


def _n_sums(family: str, d: int, width: int) -> int:
    """Linear constraints on the coordinates of a block of `d` columns: sums that are constant."""
    if family == "multinomial":
        return 1
    if family == "multihot":
        return int(d == 1)  # with one code, "none of them" is its complement
    return d if width > d else 0  # bins, or the coordinates themselves


def _too_small(table: Table, small: NDArray[np.intp], k: int) -> DataError:
    """Variables that cannot tell `k` states apart, as one error."""
    sizes = [f"{table.names[v]!r} has {_size(table, int(v))}" for v in small]
    single = small.size == 1
    what = f"variable {sizes[0]}, fewer than "
    if not single:
        shown = first_few(sizes, " (and {} more)")
        what = f"{small.size} variables are too small: {shown}, all fewer than "
    remedy = Text("lower ", Option("n_states"), " or drop it" if single else " or drop them")
    name = table.names[small[0]] if single else None
    return column_error(Text(what, Option("n_states", k)), remedy, name, k, "n_states")


def _size(table: Table, v: int) -> str:
    d, free = int(table.dims[v]), int(free_dimensions(table)[v])
    if table.families[v] in CODED:
        return f"{d} categories"
    if table.kind == "codes":
        return f"{d} bins of different values"
    return f"{free} free dimension{'s' if free != 1 else ''}"


def listing(items: Sequence[object]) -> str:
    """The first few items, and the number of the others."""
    return first_few(items, show=repr)


def first_few(
    items: Sequence[object], more: str = " and {} more", show: Callable[[object], str] = str
) -> str:
    """The first few items as they are shown, and the number of the others."""
    rest = more.format(len(items) - N_SHOWN) if len(items) > N_SHOWN else ""
    return ", ".join(map(show, items[:N_SHOWN])) + rest


def _with_values(names: Sequence[str], values: Sequence[OnlyValue]) -> str:
    return first_few([f"{a!r} ({b.text})" for a, b in zip(names, values, strict=True)])


def names_of(names: Any) -> Any:
    """The names that a fitted object gives its output, as a vectorizer its words; sequences and
    None as they are."""
    if not hasattr(names, "get_feature_names_out"):
        return names
    from sklearn.exceptions import NotFittedError

    try:
        return [str(name) for name in names.get_feature_names_out()]
    except NotFittedError as error:
        kind = type(names).__name__
        remedy = "fit it before, or in a pipeline let latenttree.text.Words hand its words on"
        what = Text(Option("names"), f" is a {kind} that is not fitted, so it knows no names")
        raise DataError(what, remedy, value=names, option="names") from error
