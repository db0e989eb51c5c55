"""Columns with one value a sample: their values, where these are missing, and the variable they
make."""

from __future__ import annotations

import datetime
import numbers
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from latenttree.data.checks import (
    OnlyValue,
    check_finite,
    check_squares,
    is_missing,
    negative_code,
    widened,
)
from latenttree.data.columns.bins import bin_codes, normal_scores, quantile_edges, varies
from latenttree.data.columns.codes import Encoded, encode_integers, encode_labels, label_array
from latenttree.data.columns.families import AUTO, MANY_VALUES, check_scores, vector_family, whole
from latenttree.data.columns.variables import Remark, Variable
from latenttree.data.values import CODED
from latenttree.errors import DataError, Option, Text

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Vector:
    """A column before its family is chosen.

    Attributes
    ----------
    known : (m,) the values that are not missing: booleans, integers, floats, text or labels.
    gaps : (n,) True where a value is missing; None where none is.
    labelled : whether the values are labels of a categorical type.
    levels : labels of an ordered type, in their own order.
    loose : whether integers may be numbers, as in a DataFrame; in an array they are codes."""

    known: NDArray[Any]
    gaps: NDArray[np.bool_] | None = None
    labelled: bool = False
    levels: tuple[Any, ...] | None = None
    loose: bool = False

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


# --- from arrays and DataFrames ------------------------------------------------------


def vector_of_array(
    values: NDArray[Any], name: str, mask: NDArray[np.bool_] | None = None, start: int = 0
) -> Vector:
    """The vector of a 1-D array; `mask` marks missing values besides NaN and None, `start` is its
    first row."""
    kind = values.dtype.kind
    if kind == "f":
        values = widened(values)
        check_finite(values[:, None], [name], start)
        missing = np.isnan(values)
    elif kind in "OT":
        values = values.astype(object)
        missing = is_missing(values)
    elif kind in "biuUS":
        missing = None
    else:
        raise unsupported_dtype(name, values.dtype)
    if mask is not None and mask.any():
        missing = mask if missing is None else missing | mask
    known, gaps = _split(values, missing)
    return Vector(_plain(known, name) if kind in "OT" and len(known) else known, gaps)


def vector_of_series(series: nw.Series[Any], name: str, start: int = 0) -> Vector:
    """The vector of a column of a DataFrame; `start` is the row of its first value."""
    missing = series.is_null().to_numpy().astype(bool)
    if missing.all():  # of whatever type
        return Vector(np.empty(0), missing)
    dtype = series.dtype
    if isinstance(dtype, nw.Categorical | nw.Enum):
        gaps = missing if missing.any() else None
        known = series if gaps is None else series.filter((~missing).tolist())
        levels = tuple(dtype.categories) if isinstance(dtype, nw.Enum) else None
        return Vector(_objects(known.to_numpy().tolist()), gaps, True, levels)
    if dtype.is_float() or dtype.is_decimal():
        series = series.cast(nw.Float64) if dtype.is_decimal() else series
        filled = series.fill_null(float("nan")) if missing.any() else series
        return vector_of_array(np.asarray(filled.to_numpy()), name, None, start)
    if missing.any() and (dtype.is_integer() or isinstance(dtype, nw.Boolean)):
        series = series.fill_null(False if isinstance(dtype, nw.Boolean) else 0)
    if not (dtype.is_integer() or isinstance(dtype, nw.Boolean | nw.String | nw.Object)):
        raise unsupported_dtype(name, dtype)
    return replace(vector_of_array(series.to_numpy(), name, missing), loose=True)


def _split(
    values: NDArray[Any], missing: NDArray[np.bool_] | None
) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    if missing is None or not missing.any():
        return values, None
    return values[~missing], missing


def _objects(values: list[Any]) -> NDArray[Any]:
    result = np.empty(len(values), dtype=object)
    result[:] = values
    return result


def _plain(values: NDArray[Any], name: str) -> NDArray[Any]:
    """An object column as booleans, integers or floats where it holds only one of these; else as
    text."""
    kinds = {_kind_of(type_): type_ for type_ in set(map(type, values.tolist()))}
    if set(kinds) == {"int", "float"} or set(kinds) == {"float"}:
        result: NDArray[Any] = values.astype(np.float64)
        check_finite(result[:, None], [name])
        return result
    if len(kinds) > 1:
        names = tuple(sorted(type_.__name__ for type_ in kinds.values()))
        raise DataError(
            f"object column {name!r} mixes types ({', '.join(names)})",
            "convert it to one type, for example astype(str)",
            column=name,
            value=names,
        )
    kind, type_ = next(iter(kinds.items()))
    if kind == "str":
        return values
    if issubclass(type_, datetime.date | datetime.timedelta):
        raise unsupported_dtype(name, type_.__name__)
    if kind not in ("bool", "int"):
        raise DataError(
            f"object column {name!r} holds {type_.__name__} values (first {values[0]!r})",
            "each value or argument must be a string or a number: convert it, for "
            "example astype(str)",
            column=name,
            value=values[0],
        )
    try:
        return values.astype(np.bool_ if kind == "bool" else np.int64)
    except OverflowError:
        return values  # integers beyond 64 bits are labels


def _kind_of(type_: type) -> str:
    for kind, base in (
        ("str", str),
        ("bool", bool | np.bool_),
        ("int", numbers.Integral),
        ("float", numbers.Real),
    ):
        if issubclass(type_, base):
            return kind
    return type_.__name__


def unsupported_dtype(name: str, dtype: object) -> DataError:
    """The error of a column whose type cannot be read."""
    if str(dtype).lower().startswith(("date", "time", "duration")):
        return DataError(
            f"column {name!r} has type {dtype}: dates and times are not supported",
            "drop it, or make a number of it, for example (d - d.min()).dt.days",
            column=name,
            value=dtype,
        )
    return DataError(
        f"column {name!r} has type {dtype}, which is not supported: columns may be "
        "boolean, integer, float, string or categorical",
        "convert it",
        column=name,
        value=dtype,
    )


# --- to variables --------------------------------------------------------------------


def variable_of(vector: Vector, name: str, requested: str, weights: Floats | None) -> Variable:
    """The variable of a column, of the requested family or the one that its values suggest."""
    known = (
        _numbers_of_labels(vector.known) if vector.labelled and requested != AUTO else vector.known
    )
    mass = vector.weights(weights)
    total = vector.n_known if mass is None else float(mass.sum())
    family = vector_family(requested, known, name, vector.n, vector.loose, vector.n_known, total)
    if family in CODED:
        return _coded(vector, name, family, requested)
    x = known.astype(np.float64)
    if family == "poisson":
        check_counts(x, vector, name)
    variable = _number(vector, x, name, family, weights)
    if requested == AUTO and known.dtype.kind in "iu":
        return replace(variable, remark="rare", n_values=len(np.unique(known)))
    return variable


def all_missing_variable(vector: Vector, name: str) -> Variable:
    """The variable of a column that is missing in all rows, which counts as constant."""
    codes = np.full(vector.n, -1)
    constant = OnlyValue(None, "missing")
    return Variable(
        name, "categorical", 1, codes=codes, n_missing=vector.n, constant=constant, remark="lost"
    )


def _numbers_of_labels(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels as numbers, where all of them are numbers."""
    number = all(_kind_of(t) in ("int", "float") for t in set(map(type, labels.tolist())))
    return labels.astype(np.float64) if number else labels


def _coded(vector: Vector, name: str, family: str, requested: str) -> Variable:
    labels, codes = _encoded(vector, name, family)
    if requested == "binary" and len(labels) > 2:
        raise DataError(
            f"family 'binary' of column {name!r} allows two values, but it has "
            f"{len(labels)} ({', '.join(map(str, labels[:3]))}, ...)",
            "use 'categorical' or 'poisson'",
            column=name,
            value=len(labels),
            option="family",
        )
    return Variable(
        name,
        family,
        len(labels),
        codes=vector.spread(codes, -1),
        labels=labels,
        n_missing=vector.n_missing,
        constant=OnlyValue(labels[0], str(labels[0])) if len(labels) == 1 else None,
        remark=_remark(vector.known.dtype.kind, len(labels), requested),
        n_values=len(labels),
    )


def _remark(kind: str, n_labels: int, requested: str) -> Remark:
    if requested == AUTO and kind == "f":
        return "whole"
    return "many" if requested == AUTO and kind in "iu" and n_labels > MANY_VALUES else ""


def _encoded(vector: Vector, name: str, family: str) -> Encoded:
    """Sorted labels and the codes of the known values; ordered labels keep their order."""
    known = vector.known
    kind = known.dtype.kind
    if vector.levels is not None or (family == "ordinal" and kind not in "biuf"):
        return _ranked(vector, name)
    if kind in "iu" and family == "categorical":
        _check_not_negative(vector, name)
    if kind == "f" and whole(known):
        known, kind = known.astype(np.int64), "i"
    if kind in "biu":
        return encode_integers(np.ascontiguousarray(known))
    if kind == "O":
        return encode_labels(known)
    labels, codes = np.unique(known, return_inverse=True)
    return labels, codes


def _ranked(vector: Vector, name: str) -> Encoded:
    """Labels in the order of their type, without those that do not occur, and codes."""
    if vector.levels is None and _numbers_of_labels(vector.known).dtype.kind == "f":
        return encode_labels(vector.known)
    if vector.levels is None:
        raise DataError(
            f"family 'ordinal' of column {name!r}: {vector.known[:1].tolist()[0]!r} and "
            "the other labels have no order",
            "pass integers, or an ordered category (pandas.Categorical(..., "
            "ordered=True), polars.Enum)",
            column=name,
            value=vector.known[:1].tolist()[0],
            option="family",
        )
    labels, codes = encode_integers(_positions(vector.known, vector.levels))
    return label_array([vector.levels[i] for i in labels.tolist()]), codes


def _positions(known: NDArray[Any], levels: tuple[Any, ...]) -> NDArray[np.int64]:
    position = {level: i for i, level in enumerate(levels)}
    return np.fromiter((position[value] for value in known.tolist()), np.int64, len(known))


def _check_not_negative(vector: Vector, name: str) -> None:
    known = vector.known
    if known.dtype.kind == "i" and known.min() < 0:
        first = int((known < 0).argmax())
        raise negative_code(known[first], vector.row(first), name)


def check_counts(x: Floats, vector: Vector, name: str) -> None:
    """Raise unless counts are non-negative whole numbers."""
    bad = (x < 0) | (x != np.floor(x))
    if bad.any():
        first = int(bad.argmax())
        raise wrong_count(x[first], vector.row(first), name, "poisson")


def wrong_count(value: float, row: int, name: str, family: str) -> DataError:
    """The error of a count that is negative or no whole number."""
    what = "negative count" if value < 0 else "count that is no whole number,"
    return DataError(
        f"{what} {value:g} at row {row}, column {name!r}: family {family!r} holds "
        "whole numbers >= 0",
        "correct it, mark it as missing (NaN), or use a 'gaussian' family",
        row=row,
        column=name,
        value=value,
    )


def _number(vector: Vector, x: Floats, name: str, family: str, weights: Floats | None) -> Variable:
    """A numeric variable: quantile bins for the structure, the numbers for likelihoods."""
    weights = vector.weights(weights)
    edges = quantile_edges(x, weights)
    constant = None if edges.size and varies(x, weights) else OnlyValue.number(x[0])
    return Variable(
        name,
        family,
        len(edges) + 1,
        codes=vector.spread(bin_codes(x, edges), -1),
        values=vector.spread(x, np.nan),
        n_missing=vector.n_missing,
        constant=constant,
    )


def score_variable(vector: Vector, name: str, requested: str, weights: Floats | None) -> Variable:
    """The variable of a column in a Gaussian tree: normal scores for the structure."""
    check_scores(requested, name)
    x = vector.spread(_scores(vector, name), np.nan)
    known = x if vector.gaps is None else x[~vector.gaps]
    check_squares(known, name)
    return Variable(
        name,
        "gaussian",
        1,
        block=normal_scores(x[:, None], weights),
        values=x,
        gaps=vector.gaps,
        n_missing=vector.n_missing,
        constant=None if varies(known, vector.weights(weights)) else OnlyValue.number(known[0]),
    )


def _scores(vector: Vector, name: str) -> Floats:
    """Known values as numbers; ordered labels by their position among all labels of their type."""
    known = vector.known
    if vector.levels is not None:
        known = _positions(known, vector.levels)
    if known.dtype.kind not in "biuf":
        first = known[:1].tolist()[0]
        raise DataError(
            Text(
                (
                    f"column {name!r} holds {'unordered labels' if vector.labelled else 'text'} "
                    f"(first {first!r}), but "
                ),
                Option("hidden", "gaussian"),
                " reads every column as a number",
            ),
            Text(
                "drop it, make it numbers or an ordered category, or use ",
                Option("hidden", "categorical"),
            ),
            column=name,
            value=first,
            option="hidden",
        )
    return known.astype(np.float64)
