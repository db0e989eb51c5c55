"""Checks that every kind of input shares, each an error with the value and the remedy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from latenttree.data.table import Table
from latenttree.errors import DataError

N_SHOWN = 5  # how many offenders an error names


MOST_UNIQUE = 20
"""Up to so many rows a column may have another value in each: small tables are like that."""

MOST_EXACT = 2.0**53
"""Below this, floats hold every whole number."""


def check_shape(shape: tuple[int, ...], n_min: int = 2) -> None:
    """At least `n_min` rows (two to learn from, one to ask about) and one column. The wording is
    the one scikit-learn's checks expect."""
    if len(shape) != 2:
        raise DataError(
            f"expected a table of two dimensions (samples x variables), got {len(shape)}D data of "
            f"shape {shape}. Reshape your data: X.reshape(-1, 1) for one variable, "
            "X.reshape(1, -1) for one sample"
        )
    n, p = shape
    if p < 1:
        raise DataError(
            f"found data with 0 feature(s) (shape=({n}, 0)) while a minimum of 1 is required. "
            "Pass at least one column"
        )
    if n < n_min:
        why = "; a tree cannot be learned from fewer" if n_min > 1 else ""
        raise DataError(
            f"found data with {n} sample(s) (shape=({n}, {p})) while a minimum of {n_min} is "
            f"required. Pass more rows{why}"
        )


def resolve_names(
    names: Sequence[Any] | None, p: int, found: Sequence[Any] | None = None
) -> list[str]:
    """The given names, else those found in the data, else x0, x1, ...; all different."""
    if isinstance(names, str):
        raise DataError(f"names must be a list of {p} names, got the string {names!r}")
    chosen = names if names is not None else found
    if chosen is None:
        return [f"x{i}" for i in range(p)]
    if len(chosen) != p:
        raise DataError(f"got {len(chosen)} names for {p} variables; pass one name for each")
    result = [str(name) for name in chosen]
    repeated = [name for name, count in Counter(result).items() if count > 1]
    if repeated:
        raise DataError(
            f"variable names must be different, but {listing(repeated)} "
            f"{'occurs' if len(repeated) == 1 else 'occur'} more than once; rename the columns "
            "or pass names="
        )
    return result


def check_missing(mask: NDArray[np.bool_], name: str) -> None:
    """One column: none missing. `mask` is True where a value is missing."""
    if not mask.any():
        return
    n = len(mask)
    if mask.all():
        raise DataError(
            f"column {name!r} is missing (NaN or None) in all {n} rows; drop the column"
        )
    raise DataError(
        f"missing values are not supported yet: column {name!r} has {int(mask.sum())} missing "
        f"(NaN or None) of {n} values, first at row {int(mask.argmax())}, column {name!r}; drop "
        "or fill them"
    )


def is_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """None, NaN, NaT and pandas.NA of an object column: such a value does not equal itself."""
    if set(map(type, values.tolist())) <= {str, int, bool}:  # most columns; no value is missing
        return np.zeros(len(values), dtype=np.bool_)
    found = (value is None or _differs_from_itself(value) for value in values)
    return np.fromiter(found, np.bool_, len(values))


def _differs_from_itself(value: Any) -> bool:
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas.NA has no truth value, and neither has an array
        return type(value).__name__ == "NAType"


def check_finite(values: NDArray[Any], names: Sequence[str]) -> None:
    """A dense (n, p) array holds neither NaN nor infinity."""
    if values.dtype.kind != "f" or np.isfinite(values).all():
        return
    nan = np.isnan(values)
    for j in np.flatnonzero(nan.any(axis=0)).tolist():
        check_missing(nan[:, j], names[j])
    row, column = np.argwhere(np.isinf(values))[0]
    raise DataError(
        f"infinity (inf) at row {row}, column {names[column]!r}: value {values[row, column]}; "
        "values must be finite: drop the row or replace the value"
    )


def check_not_negative(values: NDArray[Any], names: Sequence[str]) -> None:
    """Integer codes of a dense (n, p) array start at 0."""
    if values.dtype.kind != "i" or values.min() >= 0:
        return
    row, column = np.argwhere(values < 0)[0]
    raise negative_code(values[row, column], int(row), names[column])


def check_identifiers(table: Table) -> None:
    """A column with another value in every row names the rows; it cannot depend on anything."""
    n = table.n_samples
    unique = np.flatnonzero(table.dims == n)
    if table.kind == "codes" and n > MOST_UNIQUE and len(unique):
        raise DataError(
            f"column {table.names[unique[0]]!r} has {n:,} different values in {n:,} rows, like an "
            "identifier; drop it, or group its values into categories"
        )


def negative_code(value: Any, row: int, name: str) -> DataError:
    return DataError(
        f"negative code {value} at row {row}, column {name!r}: integer categories must be >= 0. "
        "Negative values in data are not read as categories. "
        "If it marks a missing value, drop or fill it; if it is a label, make the column "
        "categorical or string"
    )


def real_valued(name: str, dtype: object, value: object, which: str = "first value") -> DataError:
    return DataError(
        f"real-valued column {name!r} ({dtype}, {which} {value}) is not supported: columns "
        "may be boolean, integer, string or categorical. Convert whole numbers to integers "
        "(astype(int)), discretise (sklearn.preprocessing.KBinsDiscretizer with "
        "encode='ordinal'), or pass real vectors as a list of blocks"
    )


def whole_numbers(values: NDArray[Any], name: str) -> NDArray[np.int64]:
    """A column of finite floats as integer codes, where all are whole numbers >= 0."""
    bad = (values < 0) | (values != np.floor(values)) | (values >= MOST_EXACT)
    if bad.any():
        row = int(bad.argmax())
        raise real_valued(name, values.dtype, values[row], f"row {row} is")
    return values.astype(np.int64)


def constant_variables(
    names: Sequence[str], values: Sequence[str], n: int, drop_constant: bool, p: int
) -> tuple[str, ...]:
    """Names to drop, or an error that lists the constant variables with their values."""
    if not names:
        return ()
    if len(names) == p:
        raise DataError(
            f"all {p} columns are constant ({_with_values(names, values)}); "
            "nothing is left to learn from: pass columns that vary"
        )
    if drop_constant:
        return tuple(names)
    if len(names) == 1:
        raise DataError(
            f"column {names[0]!r} has one value ({values[0]}) in all {n} rows; drop it or pass "
            "drop_constant=True"
        )
    raise DataError(
        f"{len(names)} columns have one value in all {n} rows: {_with_values(names, values)}; "
        "drop them or pass drop_constant=True"
    )


def check_n_states(table: Table, n_states: int | str) -> int | Literal["auto"]:
    """`n_states` as an int that this table can carry, or "auto"."""
    if isinstance(n_states, str) and n_states == "auto":
        return "auto"
    whole = isinstance(n_states, int | np.integer) and not isinstance(n_states, bool)
    if not whole or int(n_states) < 2:
        raise DataError(f"n_states must be an integer >= 2 or 'auto', got {n_states!r}")
    k = int(n_states)
    if table.n_samples < k:
        raise DataError(
            f"{table.n_samples} samples are fewer than n_states={k}; pass more rows or lower "
            "n_states"
        )
    small = np.flatnonzero(table.dims < k)
    if small.size:
        raise DataError(_too_small(table, small, k))
    return k


def _too_small(table: Table, small: NDArray[np.intp], k: int) -> str:
    unit = "dimensions" if table.kind == "blocks" else "categories"
    shown = [f"{table.names[i]!r} has {table.dims[i]} {unit}" for i in small[:N_SHOWN]]
    if small.size == 1:
        return f"variable {shown[0]}, fewer than n_states={k}; lower n_states or drop it"
    more = f" (and {small.size - N_SHOWN} more)" if small.size > N_SHOWN else ""
    return (
        f"{small.size} variables are too small: {', '.join(shown)}{more}, all fewer than "
        f"n_states={k}; lower n_states or drop them"
    )


def listing(items: Sequence[object]) -> str:
    """The first few items, and how many more there are."""
    more = f" and {len(items) - N_SHOWN} more" if len(items) > N_SHOWN else ""
    return ", ".join(repr(item) for item in items[:N_SHOWN]) + more


def _with_values(names: Sequence[str], values: Sequence[str]) -> str:
    shown = [f"{a!r} ({b})" for a, b in zip(names[:N_SHOWN], values, strict=False)]
    more = f" and {len(names) - N_SHOWN} more" if len(names) > N_SHOWN else ""
    return ", ".join(shown) + more
