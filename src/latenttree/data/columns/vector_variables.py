"""Columns with one value a sample to variables of their families."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.data.checks import (
    MAX_ALL_UNIQUE,
    OnlyValue,
    check_squares,
    column_error,
    negative_code,
    wrong_count,
)
from latenttree.data.columns.bins import bin_codes, normal_scores, quantile_edges, varies
from latenttree.data.columns.codes import Encoded, encode_integers, encode_labels, label_array
from latenttree.data.columns.families import (
    AUTO,
    FEW_NUMBERS,
    MANY_VALUES,
    PREVIEW,
    check_scores,
    vector_family,
    whole,
    wrong_family,
)
from latenttree.data.columns.scales import without_fractions
from latenttree.data.columns.variables import Remark, Variable
from latenttree.data.columns.vectors import Vector, kind_of
from latenttree.data.values import CODED, outside_support
from latenttree.errors import Option, Text

Floats = NDArray[np.float64]


def variable_of(
    vector: Vector, name: str, requested: str, weights: Floats | None, scores: bool = False
) -> Variable:
    """The variable of a column, of the requested family or the one that its values suggest; of
    normal `scores` for a Gaussian tree."""
    if scores:
        return _score_variable(vector, name, requested, weights)
    mass, fractions = vector.weights(weights), 0.0
    if requested == AUTO:
        vector, fractions = without_fractions(vector, mass)
    read = vector
    if vector.labelled and requested != AUTO:
        read = replace(vector, known=_numbers_of_labels(vector.known))
    total = vector.n_known if mass is None else float(mass.sum())
    family = vector_family(requested, read, name, total)
    if family in CODED:
        variable = _coded(vector, name, family, requested)
        return replace(variable, remark="rounded") if fractions else variable
    x = read.known.astype(np.float64)
    if family == "poisson":
        _check_counts(x, vector, name)
    variable = _number(vector, x, name, family, weights)
    if requested != AUTO:
        return variable
    if fractions:
        return replace(variable, remark="mixed")
    remark, n_values = _remark_of_numbers(vector)
    return replace(variable, remark=remark, n_values=n_values)


def _remark_of_numbers(vector: Vector) -> tuple[Remark, int]:
    """What a note should tell of a column that is read as numbers, and its different values."""
    known = vector.known
    if known.dtype.kind in "iu":
        n_values = len(np.unique(known))
        return ("unique" if n_values == vector.n_known else "rare"), n_values
    judged = vector.scales and vector.n_known > MAX_ALL_UNIQUE  # arrays may be standardised codes
    if not judged or len(np.unique(known[:PREVIEW])) > FEW_NUMBERS:
        return "", 0
    n_values = len(np.unique(known))
    return ("few" if n_values <= FEW_NUMBERS else ""), n_values


def all_missing_variable(vector: Vector, name: str) -> Variable:
    """The variable of a column that is missing in all rows, which counts as constant."""
    codes = np.full(vector.n, -1)
    constant = OnlyValue(None, "missing")
    return Variable(
        name, "categorical", 1, codes=codes, n_missing=vector.n, constant=constant, remark="lost"
    )


def _numbers_of_labels(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels as numbers, where all of them are numbers."""
    number = all(kind_of(t) in ("int", "float") for t in set(map(type, labels.tolist())))
    return labels.astype(np.float64) if number else labels


def _coded(vector: Vector, name: str, family: str, requested: str) -> Variable:
    labels, codes = _encoded(vector, name, family)
    if requested == "binary" and len(labels) > 2:
        what = f"family 'binary' of column {name!r} allows two values, but it has "
        what += f"{len(labels)} ({', '.join(map(str, labels[:3]))}, ...)"
        raise wrong_family(what, "use 'categorical' or 'poisson'", name, len(labels))
    return Variable(
        name,
        family,
        len(labels),
        codes=vector.spread(codes, -1),
        labels=labels,
        n_missing=vector.n_missing,
        constant=OnlyValue(labels[0], str(labels[0])) if len(labels) == 1 else None,
        remark=_remark(vector, family, len(labels)) if requested == AUTO else "",
        n_values=len(labels),
    )


def _remark(vector: Vector, family: str, n_labels: int) -> Remark:
    """What a note should tell of a column that is read as categories."""
    kind = vector.known.dtype.kind
    if family == "ordinal":
        return "scale" if vector.levels is None else ""
    if kind == "f":
        return "whole"
    if n_labels <= MANY_VALUES:
        return ""
    if kind in "iu":
        return "many"
    return "names" if kind in "OUS" and 2 * n_labels > vector.n_known else ""


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
        first = vector.known[:1].tolist()[0]
        what = f"family 'ordinal' of column {name!r}: {first!r} and the other labels have no order"
        types = "pandas.Categorical(..., ordered=True), polars.Enum"
        raise wrong_family(what, f"pass integers, or an ordered category ({types})", name, first)
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


def _check_counts(x: Floats, vector: Vector, name: str) -> None:
    """Raise unless counts are non-negative whole numbers."""
    bad = outside_support(x, "poisson")
    if bad.any():
        first = int(bad.argmax())
        raise wrong_count(x[first], vector.row(first), name, "poisson")


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


def _score_variable(vector: Vector, name: str, requested: str, weights: Floats | None) -> Variable:
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
        holds = "unordered labels" if vector.labelled else "text"
        what = f"column {name!r} holds {holds} (first {first!r}), but "
        what = Text(what, Option("hidden", "gaussian"), " reads every column as a number")
        remedy = "drop it, make it numbers or an ordered category, or use "
        remedy = Text(remedy, Option("hidden", "categorical"))
        raise column_error(what, remedy, name, first, "hidden")
    return known.astype(np.float64)
