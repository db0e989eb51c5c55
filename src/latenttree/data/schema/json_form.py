"""A schema as plain JSON values and back; reading checks everything and executes nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.data.checks import column_error
from latenttree.data.columns.codes import objects
from latenttree.data.containers import FRAMES, InputColumn, dtype_name
from latenttree.data.schema.fields import CONTAINERS, FORMS, SchemaFields
from latenttree.data.values import CODED, TABLE_FAMILIES
from latenttree.errors import DataError

KINDS = ("codes", "sparse_binary", "blocks")
PLAIN = ("array", "sparse array", "sparse matrix")
INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
FLOATS = ("float16", "float32", "float64")
TEXTS = ("str", "bytes")
LABEL_TYPES: dict[str, tuple[type, ...]] = {
    **{"bool": (bool,), "str": (str,), "bytes": (str,), "object": (bool, int, float, str)},
    **dict.fromkeys(INTEGERS, (int,)),
    **dict.fromkeys(FLOATS, (float, int)),
}
DTYPE = re.compile(r"[A-Za-z0-9_\[\]]{0,40}")


# --- writing -------------------------------------------------------------------------


def schema_to_json(schema: SchemaFields) -> dict[str, Any]:
    """A record of lists, dicts, strings, numbers and None."""
    labels = zip(schema.categories, schema.names, strict=True)
    members = schema.members
    lists = {
        "names": list(schema.names),
        "dims": schema.dims.tolist(),
        "categories": [_labels_to_json(*own) for own in labels],
        "columns": [_column_to_json(column) for column in schema.columns],
        "index": schema.index.tolist(),
        "members": None if members is None else [member.tolist() for member in members],
        "families": list(schema.families),
    }
    return {field.name: getattr(schema, field.name) for field in fields(schema)} | lists


def _column_to_json(column: InputColumn) -> dict[str, Any]:
    return {
        "name": column.name,
        "dtype": column.dtype if DTYPE.fullmatch(column.dtype) else "",
        "form": column.form,
        "levels": _labels_to_json(column.levels, column.name),
        "ordered": column.ordered,
        "constant": _labels_to_json(column.constant, column.name, gaps=True),
    }


def _labels_to_json(
    labels: NDArray[Any] | None, name: str, gaps: bool = False
) -> dict[str, Any] | None:
    """Labels with the name of their type; floats keep every digit. With `gaps`, missing values
    become None."""
    if labels is None:
        return None
    kind, values = dtype_name(labels.dtype), labels.tolist()
    if kind == "bytes":
        values = [value.decode("latin-1") for value in values]
    if kind == "object":
        values = [v.item() if isinstance(v, np.generic) else v for v in values]
    allowed = LABEL_TYPES.get(kind, ())
    if gaps:
        values = [None if _is_gap(value) else value for value in values]
        allowed = (*allowed, type(None))
    wrong = next((v for v in values if type(v) not in allowed), None)
    if kind not in LABEL_TYPES or wrong is not None:
        what = f"column {name!r} has labels of type {type(wrong).__name__} (as {wrong!r}), "
        what += "which cannot be saved: only booleans, integers, floats and strings can"
        raise column_error(what, "fit on astype(str)", name, wrong)
    return {"type": kind, "values": values}


def _is_gap(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value)


# --- reading -------------------------------------------------------------------------


def schema_from_json(record: Any) -> dict[str, Any]:
    """The fields of a schema, checked one by one and against each other."""
    _require(type(record) is dict, f"it is {type(record).__name__}, not a record")
    kind, names = _choice(record, "kind", KINDS), _list(record, "names", str)
    dims, container = _list(record, "dims", int), _choice(record, "container", CONTAINERS)
    columns = [_column_from_json(column) for column in _list(record, "columns", dict)]
    _check_dims(dims, kind, len(names))
    families = _families(record, len(names))
    values = {
        "kind": kind,
        "names": tuple(names),
        "dims": np.array(dims, dtype=np.int64),
        "categories": _categories(record, names, dims, families),
        "columns": tuple(columns),
        "index": _index(record, len(names), len(columns)),
        "container": container,
        "named": _field(record, "named", bool),
        "whole_names": _field(record, "whole_names", bool),
        "members": _members(record, len(columns)),
        "families": families,
    }
    inputs = [column.name for column in columns]
    _require(len(set(inputs)) == len(inputs), "its columns are not all different")
    _require(len(set(names)) == len(names), "its names are not all different")
    if values["members"] is not None:  # files of an older version do not tell their form
        form = "dense" if container == "array" else "sparse"
        values["columns"] = tuple(
            replace(column, form=form if column.form == "vector" else column.form)
            for column in columns
        )
    _check_together(SchemaFields(**values))
    return values


def _require(holds: bool, what: str, *values: Any) -> None:
    """Raise the error of a record that is no schema, unless a condition holds; `values` go into the
    text."""
    if not holds:
        text = what.format(*values) if values else what
        raise DataError(f"the schema of the data is damaged: {text}", "save the model again")


def _labels_from_json(record: Any, what: str, name: str, gaps: bool = False) -> NDArray[Any] | None:
    """Labels as `_labels_to_json` wrote them: of one known type, all of it."""
    if record is None:
        return None
    what = what.format(name)
    _require(type(record) is dict, f"{what} is {type(record).__name__}, not labels")
    kind = _choice(record, "type", tuple(LABEL_TYPES))
    lost = (type(None),) if gaps and kind in (*FLOATS, "object") else ()
    values = _list(record, "values", *LABEL_TYPES[kind], *lost)
    try:
        return _label_array(values, kind)
    except (OverflowError, ValueError, UnicodeError) as error:
        reason = str(error)
    _require(False, f"{what} does not hold {kind} ({reason})")
    return None


def _label_array(values: list[Any], kind: str) -> NDArray[Any]:
    if kind == "object":
        return objects(values)
    if kind == "bytes":
        return np.array([value.encode("latin-1") for value in values], dtype=np.bytes_)
    known = np.array([value for value in values if value is not None], dtype=kind)
    if kind in FLOATS and not np.isfinite(known).all():
        raise ValueError("a value is not finite")
    return np.array(values, dtype=kind)


def _column_from_json(record: dict[str, Any]) -> InputColumn:
    name, dtype = _field(record, "name", str), _field(record, "dtype", str)
    right = DTYPE.fullmatch(dtype) is not None
    _require(right, "column {!r} has the type {!r}", name, dtype[:60])
    return InputColumn(
        name,
        dtype,
        _choice(record, "form", FORMS),
        _labels_from_json(record.get("levels"), "the levels of column {!r}", name),
        _field(record, "ordered", bool),
        _labels_from_json(record.get("constant"), "the constant of column {!r}", name, gaps=True),
    )


def _check_dims(dims: list[int], kind: str, n_vars: int) -> None:
    _require(0 < len(dims) == n_vars, f"it has {len(dims)} dims for {n_vars} names")
    least, most = (2, 2) if kind == "sparse_binary" else (1, 2**31 - 1)
    for d in dict.fromkeys(dims):
        _require(least <= d <= most, f"a variable has dimension {d}, outside {least}..{most}")


def _families(record: dict[str, Any], n_vars: int) -> tuple[str, ...]:
    """Files of older versions have none: all their variables are categorical."""
    if "families" not in record:
        return ("categorical",) * n_vars
    families, known = _list(record, "families", str), list(TABLE_FAMILIES)
    for family in dict.fromkeys(families):
        _require(family in known, f"a variable is of the family {family[:60]!r}, none of {known}")
    _require(len(families) == n_vars, f"it has {len(families)} families for {n_vars} names")
    return tuple(families)


def _categories(
    record: dict[str, Any], names: Sequence[str], dims: Sequence[int], families: Sequence[str]
) -> tuple[NDArray[Any] | None, ...]:
    stored, n = _list(record, "categories", dict, type(None)), len(names)
    _require(len(stored) == n, f"it has {len(stored)} lists of categories for {n} names")
    result = []
    for name, d, entry, family in zip(names, dims, stored, families, strict=True):
        labels = _labels_from_json(entry, "the list of categories of {!r}", name)
        if labels is not None:
            wrong = "variable {!r} has categories, but is of the family {!r}"
            _require(family in CODED, wrong, name, family)
            different = len(labels) == len(set(labels.tolist())) == d
            _require(different, "variable {!r} does not have {} different categories", name, d)
        result.append(labels)
    return tuple(result)


def _index(record: dict[str, Any], n_vars: int, n_columns: int) -> NDArray[np.int64]:
    index = _list(record, "index", int)
    inside = all(0 <= j < n_columns for j in index)
    different = len(index) == len(set(index)) == n_vars
    what = f"its index does not give {n_vars} different columns of {n_columns}"
    _require(different and inside, what)
    return np.array(index, dtype=np.int64)


def _members(record: dict[str, Any], n_columns: int) -> tuple[NDArray[np.int64], ...] | None:
    if record.get("members") is None:
        return None
    members = _list(record, "members", list)
    flat = [j for member in members for j in member]
    whole = len(members) == n_columns and all(type(j) is int for j in flat)
    shared = whole and sorted(flat) == list(range(len(flat)))
    _require(shared, "its groups do not share out the columns of a matrix")
    return tuple(np.array(member, dtype=np.int64) for member in members)


def _check_together(schema: SchemaFields) -> None:
    """Raise unless the fields fit each other: `decode` relies on all of them."""
    for i, (j, coded) in enumerate(zip(schema.index.tolist(), schema.coded.tolist(), strict=True)):
        _check_variable(schema, i, schema.columns[j], coded)
    _check_container(schema)
    container, members = schema.container, schema.members
    for j, column in enumerate(schema.columns):
        if schema.variable_of(j) is None and container != "table":
            one, constant = 1 if column.form == "vector" else None, column.constant
            width = one if members is None else len(members[j])
            there = constant is not None and width in (None, len(constant))
            _require(there, "column {!r} was dropped, but its value is not there", column.name)
        if container in PLAIN or column.form != "vector":
            known = column.dtype in LABEL_TYPES or (container, column.dtype) == ("table", "")
            _require(known, "column {!r} has the type {!r}", column.name, column.dtype)
    if members is not None:
        widths = [len(members[j]) for j in schema.index]
        what = "its groups do not have the dimensions of their variables"
        _require(widths == schema.dims.tolist(), what)


def _check_variable(schema: SchemaFields, i: int, column: InputColumn, coded: bool) -> None:
    """Categories have labels, except in sparse binary tables and blocks; a number has one
    dimension."""
    name, vector = schema.names[i], column.form == "vector"
    if coded:
        labelled = schema.categories[i] is not None or not vector or schema.kind != "codes"
        _require(labelled, "variable {!r} has no categories", name)
        return
    _require(not schema.is_sparse_binary, "variable {!r} is not binary, but the table is", name)
    single = not vector or schema.dims[i] == 1
    _require(single, "variable {!r} is a number of dimension {}", name, schema.dims[i])
    number = column.dtype not in TEXTS or schema.container in FRAMES
    _require(number, "variable {!r} is a number, but its column is text", name)


def _check_container(schema: SchemaFields) -> None:
    container, kind, grouped = schema.container, schema.kind, schema.members is not None
    binary = kind == "sparse_binary" or not schema.n_coded
    as_read = not container.startswith("sparse") or grouped or binary
    _require(as_read, f"kind {kind!r} does not come from a {container}")
    fits = not grouped or (kind != "sparse_binary" and container in PLAIN)
    if schema.n_coded == schema.n_vars:
        fits = fits and grouped == (kind == "blocks" and container in PLAIN)
    _require(fits, f"groups do not go with kind {kind!r} from {container!r}")
    whole = all(re.fullmatch(r"-?[0-9]{1,18}", name) for name in schema.input_names)
    right = not schema.whole_names or (container in FRAMES and whole)
    _require(right, "its names are not the integers that they are said to be")


def _choice(record: dict[str, Any], name: str, allowed: Sequence[str]) -> str:
    value: str = _field(record, name, str)
    if value not in allowed:
        _require(False, f"the field {name!r} is {value[:60]!r}, none of {list(allowed)}")
    return value


def _list(record: dict[str, Any], name: str, *types: type) -> list[Any]:
    values: list[Any] = _field(record, name, list)
    for type_ in dict.fromkeys(map(type, values)):  # exactly: JSON's true is an int to Python
        what = f"the field {name!r} holds {type_.__name__}, not {types[0].__name__}"
        _require(type_ in types, what)
    return values


def _field(record: dict[str, Any], name: str, type_: type) -> Any:
    value = record.get(name)
    if type(value) is not type_:
        _require(name in record, f"the field {name!r} is missing")
        kinds = f"{type(value).__name__}, not {type_.__name__}"
        _require(False, f"the field {name!r} is {kinds}")
    return value
