"""Samples as records `{name: value}`: labels, numbers, and weights over labels."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from latenttree.data import Schema
from latenttree.data.columns.codes import objects
from latenttree.data.columns.vectors import Column, vector_of
from latenttree.data.schema.lookup import known_codes
from latenttree.data.schema.rows import Rows
from latenttree.engine.arrays import Floats, Ints
from latenttree.errors import DataError
from latenttree.model.emissions.multihot import MultiHot
from latenttree.model.gaussian import GaussianTreeModel
from latenttree.model.tree_model import TreeModel
from latenttree.queries.nodes import Asked, FittedModel, Node, asked_of, classes_of

Record = Mapping[Any, Any]  # node -> label, number or weights


def read_records(
    model: FittedModel,
    schema: Schema,
    records: Sequence[Record],
    queried: Collection[int],
    given: Collection[int] | None,
) -> tuple[Rows, dict[int, Floats], dict[int, Floats]]:
    """Codes and numbers of the variables, (n, dims[v]) weights of nodes with soft evidence, and
    (n, dims[v]) values of the hidden nodes of a Gaussian tree, NaN where they are not known.

    Weights on a node that is queried are used. Values of nodes that are not `given` (None: all) are
    ignored.
    """
    n = len(records)
    hidden: dict[int, Floats] = {}
    of_groups: dict[int, dict[int, dict[int, float]]] = {}  # group -> row -> code -> 0 or 1
    codes = np.full((n, schema.n_vars), -1, dtype=schema.code_dtype)
    soft: dict[int, Floats] = {}
    values: dict[int, list[Any]] = {}  # of the observed variables, None where missing
    for row, record in enumerate(records):
        for name, value in record.items():
            if _is_dropped(schema, name) or _is_gap(value):
                continue
            v, code = asked_of(model, name, schema)
            if given is not None and v not in given:
                continue
            if code is not None:
                _check_value(name, value, v in queried)
                of_groups.setdefault(v, {}).setdefault(row, {})[code] = _present(name, value)
                continue
            if v < schema.n_vars and not schema.coded[v]:
                value = codes_present(schema, v, value)
                _check_number(schema, v, value)
                values.setdefault(v, [None] * n)[row] = value
                continue
            if v >= schema.n_vars and isinstance(model, GaussianTreeModel):
                d = int(model.dims[v])
                hidden.setdefault(v, np.full((n, d), np.nan))[row] = _vector(name, value, d)
                continue
            _check_value(name, value, v in queried)
            if v < schema.n_vars and not isinstance(value, Mapping):
                values.setdefault(v, [None] * n)[row] = value
            else:
                assert isinstance(model, TreeModel)  # Gaussian trees have no categories
                weights = soft.setdefault(v, np.ones((n, int(model.dims[v]))))
                weights[row] *= _weights(model, schema, v, value, row)
    for v, rows in of_groups.items():
        assert isinstance(model, TreeModel)
        if v in values or v in soft:
            what = f"a record gives {schema.names[v]!r} and codes of it"
            raise DataError(what, "give one of them", node=schema.names[v])
        u = Asked(v, 0).source(model)
        weights = soft.setdefault(u, np.ones((n, int(model.dims[u]))))
        for row, present in rows.items():
            weights[row] *= _chance_of(model, v, present)
    arrays: dict[int, Any] = {}
    for v, column in values.items():
        if schema.coded[v]:
            codes[:, v] = _codes(schema, v, column)
        else:
            arrays[v] = _numbers(schema, v, column)
    return Rows(n, codes, arrays=arrays), soft, hidden


def _is_dropped(schema: Schema, name: Node) -> bool:
    column = schema.column_of(name)
    if column is not None:
        return schema.variable_of(column) is None
    return name in schema.dropped


def _is_gap(value: Any) -> bool:
    return value is None or (isinstance(value, float) and np.isnan(value))


# --- labels and weights ----------------------------------------------------------------


def _check_value(name: Node, value: Any, queried: bool) -> None:
    """A record holds one value, or weights by label, for a node; no value for a queried one."""
    remedy = "pass {label: weight} for soft evidence, or a DataFrame for several rows"
    _check_single(name, value, remedy)
    if queried and not isinstance(value, Mapping):
        raise DataError(
            f"{name!r} is both given and asked",
            "leave it out of the record or of the query",
            value=value,
            node=str(name),
        )


def is_vector(value: Any) -> bool:
    """Whether a value holds several: a list, an array, a series, a matrix."""
    alone = str | bytes | Mapping | set | frozenset
    return hasattr(value, "__len__") and not isinstance(value, alone)


def _check_single(name: Node, value: Any, remedy: str) -> None:
    if is_vector(value):
        kind = {"ndarray": "array"}.get(type(value).__name__, type(value).__name__)
        article = "an" if kind[0] in "aeiou" else "a"
        raise DataError(f"{article} {kind} for {name!r}", remedy, value=value, node=str(name))


def _codes(schema: Schema, v: int, labels: Sequence[Any]) -> Ints:
    """(n,) codes of the labels of variable `v` in every record, -1 where it is missing."""
    return np.asarray(schema.variables[v].encode(Column(objects(labels))))


def _weights(model: TreeModel, schema: Schema, v: int, value: Any, row: int) -> Floats:
    """Weights over the states of a node: of its labels, or of one state."""
    name, labels = model.tree.names[v], classes_of(model, schema, v)
    if isinstance(value, Mapping):
        keys = objects(list(value))
        weights = np.zeros(len(labels))
        codes = known_codes(vector_of(Column(keys), name), labels, name)
        weights[codes] = _as_floats(list(value.values()), name, row)
    else:
        weights = (labels == value).astype(np.float64)
        if not weights.any():
            what = f"hidden node {name!r} has no state {value!r} (row {row})"
            remedy = f"its states are 0..{len(labels) - 1}"
            raise DataError(what, remedy, value=value, row=row, node=name)
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise _wrong_weights(weights, name, row)
    return weights


def _as_floats(weights: Any, name: str, row: int) -> Floats:
    try:
        return np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise _wrong_weights(weights, name, row) from None


def _wrong_weights(weights: Any, name: str, row: int) -> DataError:
    return DataError(
        f"weights of {name!r} in row {row} are {weights}",
        "give numbers >= 0",
        value=weights,
        row=row,
        node=name,
    )


# --- codes of groups -------------------------------------------------------------------


def _present(name: Node, value: Any) -> float:
    """1 or 0 of whether a code is there."""
    if isinstance(value, Mapping) or value not in (0, 1):
        what = f"{name!r} is a code, which is there or not, but the record has {value!r}"
        raise DataError(what, "give it 1 or 0", value=value, node=str(name))
    return float(value)


def _chance_of(model: TreeModel, v: int, present: Mapping[int, float]) -> Floats:
    """`P(codes | state)` of some codes of group `v`, for each state of `Asked.source`."""
    places, there = np.array(list(present)), np.array(list(present.values()))
    emission = model.emissions.get(v)
    if isinstance(emission, MultiHot):
        return emission.chance_of(places, there)
    weights = np.ones(int(model.dims[v]))  # a category: the code that is there is the only one
    weights[places[there == 0]] = 0
    for place in places[there == 1]:
        weights *= np.arange(len(weights)) == place
    return weights


def codes_present(schema: Schema, v: int, value: Any) -> Any:
    """(d,) 0/1 of the set of codes that are there in group `v`; other values as they are."""
    if not schema.is_group(v) or not isinstance(value, set | frozenset):
        return value
    present = np.zeros(int(schema.dims[v]))
    for code in value:
        place = schema.code_places.get(f"{schema.names[v]}:{code}")
        if place is None:
            what = f"{schema.names[v]!r} has no code {code!r}"
            raise DataError(what, "give codes of this group", value=code, node=schema.names[v])
        present[place[1]] = 1
    return present


# --- numbers ---------------------------------------------------------------------------


def _check_number(schema: Schema, v: int, value: Any) -> None:
    """One number, or for a block as many as it is wide."""
    name, family = schema.names[v], schema.families[v]
    if isinstance(value, Mapping):
        what = f"{name!r} is of family {family!r} and has no labels to weigh"
        remedy = "soft evidence {label: weight} is for categories and hidden nodes: pass its value"
        raise DataError(what, remedy, value=value, node=name)
    if schema.form_of(v) == "vector":
        _check_single(name, value, "pass a single number, or a DataFrame for several rows")
        return
    width = int(schema.dims[v])
    if np.shape(value) != (width,):
        what = f"value of shape {np.shape(value)} for {name!r}, which is a block"
        raise DataError(what, f"pass a vector of {width} numbers", value=value, node=name)


def _vector(name: Node, value: Any, d: int) -> Floats:
    """(d,) the value of a hidden node of a Gaussian tree."""
    try:
        vector = np.atleast_1d(np.asarray(value, dtype=np.float64))
    except (TypeError, ValueError):
        vector = np.empty(0)
    if vector.shape != (d,) or not np.isfinite(vector).all():
        wanted = "a number" if d == 1 else f"a vector of {d} numbers"
        raise DataError(f"{value!r} for {name!r}", f"give {wanted}", value=value, node=str(name))
    return vector


def _numbers(schema: Schema, v: int, values: Sequence[Any]) -> Any:
    """The values of variable `v` in every record, None where it is missing."""
    column = np.full((len(values), *schema.shape_of(v)), None, dtype=object)
    for row, value in enumerate(values):
        if value is not None:
            column[row] = list(value) if column.ndim == 2 else value
    return schema.variables[v].encode(Column(column))
