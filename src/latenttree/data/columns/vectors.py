"""Columns with one value a sample: their values, and where these are missing.

`vector_of` takes a column apart, as new data need it; `training_vector` also checks that its values
can be learned from.
"""

from __future__ import annotations

import datetime
import numbers
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from latenttree.data.checks import (
    check_finite,
    column_error,
    is_missing,
    unsupported_dtype,
    widened,
)
from latenttree.data.columns.codes import objects

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Column(NamedTuple):
    """A column or a block as its container holds it.

    Attributes
    ----------
    values : a series of narwhals, an (n,) or (n, d) array, or an (n, d) sparse matrix.
    mask : of that shape, True where a value is missing besides NaN and None; None: nowhere.
    levels : labels in their own order, where they are ordered and the type of `values` does not
        say so."""

    values: Any
    mask: Mask | None = None
    levels: tuple[Any, ...] | None = None

    @property
    def is_vector(self) -> bool:
        """Whether it has one value a sample."""
        return len(self.values.shape) == 1


@dataclass(frozen=True, eq=False)
class Vector:
    """A column before its family is chosen.

    Attributes
    ----------
    known : (m,) the values that are not missing: booleans, integers, floats, text or labels.
    gaps : (n,) True where a value is missing; None where none is.
    labelled : whether the values are labels of a categorical type.
    levels : labels of an ordered type, in their own order.
    loose : whether integers may be numbers, as in a DataFrame; in an array they are codes.
    scales : whether whole numbers may be a scale (see `scales`), as in a DataFrame or a file with
        named columns; in an array they are codes."""

    known: NDArray[Any]
    gaps: NDArray[np.bool_] | None = None
    labelled: bool = False
    levels: tuple[Any, ...] | None = None
    loose: bool = False
    scales: bool = False

    @property
    def n(self) -> int:
        """Rows, also those without a value."""
        return len(self.known) if self.gaps is None else len(self.gaps)

    @property
    def n_known(self) -> int:
        """Rows with a value."""
        return len(self.known)

    @property
    def n_missing(self) -> int:
        """Rows without a value."""
        return self.n - self.n_known

    def spread(self, known: NDArray[Any], gap: Any) -> NDArray[Any]:
        """(n,) `known` in the rows that have a value, `gap` in the others."""
        if self.gaps is None:
            return known
        result = np.full(len(self.gaps), gap, dtype=np.result_type(known.dtype, type(gap)))
        result[~self.gaps] = known
        return result

    def row(self, i: int) -> int:
        """The row of the i-th known value."""
        return i if self.gaps is None else int(np.flatnonzero(~self.gaps)[i])

    def weights(self, weights: Floats | None) -> Floats | None:
        """(m,) the weights of the rows that have a value."""
        return weights if weights is None or self.gaps is None else weights[~self.gaps]


# --- taking a column apart -----------------------------------------------------------


def vector_of(column: Column, name: str) -> Vector:
    """The values of a column that are not missing, and where it is missing; nothing is checked but
    the type of a series."""
    if isinstance(column.values, nw.Series):
        return _of_series(column.values, name)
    return replace(_of_array(column.values, column.mask), levels=column.levels)


def _of_array(values: NDArray[Any], mask: Mask | None = None) -> Vector:
    values = values.astype(object) if values.dtype.kind in "OT" else widened(values)
    gaps = gaps_of(values, mask)
    return Vector(values if gaps is None else values[~gaps], gaps)


def gaps_of(values: NDArray[Any], mask: Mask | None = None) -> Mask | None:
    """(n,) True where a value is masked, NaN, None or pandas.NA; None where none is."""
    kind, gaps = values.dtype.kind, mask
    if kind == "f":
        gaps = np.isnan(values)
    elif kind in "mM":
        gaps = np.isnat(values)
    elif kind in "OT":
        gaps = is_missing(values.astype(object, copy=False))
    if gaps is not mask and mask is not None:
        gaps = gaps | mask  # type: ignore[operator]
    return gaps if gaps is not None and gaps.any() else None


def _of_series(series: nw.Series[Any], name: str) -> Vector:
    missing = series.is_null().to_numpy().astype(bool)
    if missing.all():  # of whatever type
        return Vector(np.empty(0), missing)
    dtype = series.dtype
    if isinstance(dtype, nw.Categorical | nw.Enum):
        gaps = missing if missing.any() else None
        known = series if gaps is None else series.filter((~missing).tolist())
        levels = tuple(dtype.categories) if isinstance(dtype, nw.Enum) else None
        return Vector(objects(known.to_numpy().tolist()), gaps, True, levels)
    if dtype.is_float() or dtype.is_decimal():
        series = series.cast(nw.Float64) if dtype.is_decimal() else series
        filled = series.fill_null(float("nan")) if missing.any() else series
        return replace(_of_array(np.asarray(filled.to_numpy())), scales=True)
    if not (dtype.is_integer() or isinstance(dtype, nw.Boolean | nw.String | nw.Object)):
        raise unsupported_dtype(name, dtype)
    if missing.any() and (dtype.is_integer() or isinstance(dtype, nw.Boolean)):
        series = series.fill_null(False if isinstance(dtype, nw.Boolean) else 0)
    return replace(_of_array(series.to_numpy(), missing), loose=True, scales=True)


# --- values that can be learned from -------------------------------------------------


def training_vector(column: Column, name: str, start: int = 0) -> Vector:
    """The vector of a column whose values can be learned from: finite numbers, or objects of one
    type. `start` is its first row, for errors."""
    vector = vector_of(column, name)
    known = vector.known
    if known.dtype.kind not in "biufUSO":
        raise unsupported_dtype(name, known.dtype)
    if known.dtype.kind == "f":
        check_finite(known[:, None], [name], start, vector.row)
    if known.dtype.kind == "O" and len(known) and not vector.labelled:
        return replace(vector, known=_plain(vector, name))
    return vector


def vector_of_array(
    values: NDArray[Any], name: str, mask: Mask | None = None, start: int = 0
) -> Vector:
    """`training_vector` of a 1-D array."""
    return training_vector(Column(values, mask), name, start)


def _plain(vector: Vector, name: str) -> NDArray[Any]:
    """An object column as booleans, integers or floats where it holds only one of these; else as
    text."""
    values = vector.known
    kinds = {kind_of(type_): type_ for type_ in set(map(type, values.tolist()))}
    if set(kinds) == {"int", "float"} or set(kinds) == {"float"}:
        known = values.astype(np.float64)
        check_finite(known[:, None], [name], 0, vector.row)
        return known
    if len(kinds) > 1:
        names = tuple(sorted(type_.__name__ for type_ in kinds.values()))
        what = f"object column {name!r} mixes types ({', '.join(names)})"
        raise column_error(what, "convert it to one type, for example astype(str)", name, names)
    kind, type_ = next(iter(kinds.items()))
    if kind == "str":
        return values
    if issubclass(type_, datetime.date | datetime.timedelta):
        raise unsupported_dtype(name, type_.__name__)
    if kind not in ("bool", "int"):
        what = f"object column {name!r} holds {type_.__name__} values (first {values[0]!r})"
        remedy = "each value or argument must be a string or a number"
        remedy += ": convert it, for example astype(str)"
        raise column_error(what, remedy, name, values[0])
    try:
        return values.astype(np.bool_ if kind == "bool" else np.int64)
    except OverflowError:
        return values  # integers beyond 64 bits are labels


def kind_of(type_: type) -> str:
    """ "str", "bool", "int" or "float" for types of these; the name of another type."""
    for kind, base in (
        ("str", str),
        ("bool", bool | np.bool_),
        ("int", numbers.Integral),
        ("float", numbers.Real),
    ):
        if issubclass(type_, base):
            return kind
    return type_.__name__
