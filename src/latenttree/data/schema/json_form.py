"""A schema as plain JSON values and back; reading checks everything and executes nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
LABEL_TYPES = (
    {
        "bool": (bool,),
        "str": (str,),
        "bytes": (str,),
        "object": (bool, int, float, str),
    }
    | dict.fromkeys(INTEGERS, (int,))
    | dict.fromkeys(FLOATS, (float, int))
)
DTYPE = re.compile(r"[A-Za-z0-9_\[\]]{0,40}")


# --- writing -------------------------------------------------------------------------


def schema_to_json(schema: SchemaFields) -> dict[str, Any]:
    """A record of lists, dicts, strings, numbers and None."""
    labels = zip(schema.names, schema.categories, strict=True)
    return {
        "kind": schema.kind,
        "names": list(schema.names),
        "dims": schema.dims.tolist(),
        "categories": [labels_to_json(own, name) for name, own in labels],
        "columns": [_column_to_json(column) for column in schema.columns],
        "index": schema.index.tolist(),
        "container": schema.container,
        "named": schema.named,
        "whole_names": schema.whole_names,
        "members": None if schema.members is None else [m.tolist() for m in schema.members],
        "families": list(schema.families),
    }


def _column_to_json(column: InputColumn) -> dict[str, Any]:
    dtype = column.dtype if DTYPE.fullmatch(column.dtype) else ""
    return {
        "name": column.name,
        "dtype": dtype,
        "form": column.form,
        "levels": labels_to_json(column.levels, column.name),
        "ordered": column.ordered,
        "constant": labels_to_json(column.constant, column.name, gaps=True),
    }


def labels_to_json(
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
        raise DataError(
            f"column {name!r} has labels of type {type(wrong).__name__} (as {wrong!r}), "
            "which cannot be saved: only booleans, integers, floats and strings can",
            "fit on astype(str)",
            column=name,
            value=wrong,
        )
    return {"type": kind, "values": values}


def _is_gap(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value)


# --- reading -------------------------------------------------------------------------


def schema_from_json(record: Any) -> dict[str, Any]:
    """The fields of a schema, checked one by one and against each other."""
    if type(record) is not dict:
        raise damaged(f"it is {type(record).__name__}, not a record")
    kind = _choice(record, "kind", KINDS)
    names = _list(record, "names", str)
    dims = np.array(_list(record, "dims", int), dtype=object)
    container = _choice(record, "container", CONTAINERS)
    columns = [_column_from_json(column) for column in _list(record, "columns", dict)]
    checked = _dims(dims, kind, len(names))
    families = _families(record, len(names))
    fields = {
        "kind": kind,
        "names": tuple(names),
        "dims": checked,
        "categories": _categories(record, names, dims.tolist(), families),
        "columns": tuple(columns),
        "index": _index(record, len(names), len(columns)),
        "container": container,
        "named": _field(record, "named", bool),
        "whole_names": _field(record, "whole_names", bool),
        "members": _members(record, len(columns)),
        "families": families,
    }
    _check_names([column.name for column in columns], "columns")
    _check_names(names, "names")
    _check_together(fields)
    return fields


def damaged(what: str) -> DataError:
    """The error of a record that is no schema."""
    return DataError(f"the schema of the data is damaged: {what}", "save the model again")


def labels_from_json(record: Any, what: str, gaps: bool = False) -> NDArray[Any] | None:
    """Labels as `labels_to_json` wrote them: of one known type, all of it, all different."""
    if record is None:
        return None
    if type(record) is not dict:
        raise damaged(f"{what} is {type(record).__name__}, not labels")
    kind = _choice(record, "type", tuple(LABEL_TYPES))
    lost = gaps and kind in (*FLOATS, "object")
    values = _list(record, "values", *LABEL_TYPES[kind], *((type(None),) if lost else ()))
    try:
        return _label_array(values, kind)
    except (OverflowError, ValueError, UnicodeError) as error:
        raise damaged(f"{what} does not hold {kind} ({error})") from None


def _label_array(values: list[Any], kind: str) -> NDArray[Any]:
    if kind == "object":
        return objects(values)
    if kind == "bytes":
        return np.array([value.encode("latin-1") for value in values], dtype=np.bytes_)
    array = np.array(values, dtype=kind)
    known = np.array([value for value in values if value is not None], dtype=kind)
    if kind in FLOATS and not np.isfinite(known).all():
        raise ValueError("a value is not finite")
    return array


def _column_from_json(record: dict[str, Any]) -> InputColumn:
    name = _field(record, "name", str)
    dtype = _field(record, "dtype", str)
    if not DTYPE.fullmatch(dtype):
        raise damaged(f"column {name!r} has the type {dtype[:60]!r}")
    return InputColumn(
        name,
        dtype,
        _choice(record, "form", FORMS),
        labels_from_json(record.get("levels"), f"the levels of column {name!r}"),
        _field(record, "ordered", bool),
        labels_from_json(record.get("constant"), f"the constant of column {name!r}", gaps=True),
    )


def _dims(dims: NDArray[Any], kind: str, n_vars: int) -> NDArray[np.int64]:
    if len(dims) != n_vars or not n_vars:
        raise damaged(f"it has {len(dims)} dims for {n_vars} names")
    least, most = (2, 2) if kind == "sparse_binary" else (1, 2**31 - 1)
    wrong = next((d for d in dims if not least <= d <= most), None)
    if wrong is not None:
        raise damaged(f"a variable has dimension {wrong}, outside {least}..{most}")
    return dims.astype(np.int64)


def _families(record: dict[str, Any], n_vars: int) -> tuple[str, ...]:
    """Files of older versions have none: all their variables are categorical."""
    if "families" not in record:
        return ("categorical",) * n_vars
    families = _list(record, "families", str)
    wrong = next((family for family in families if family not in TABLE_FAMILIES), None)
    if wrong is not None:
        raise damaged(f"a variable is of the family {wrong[:60]!r}, none of {list(TABLE_FAMILIES)}")
    if len(families) != n_vars:
        raise damaged(f"it has {len(families)} families for {n_vars} names")
    return tuple(families)


def _categories(
    record: dict[str, Any], names: Sequence[str], dims: Sequence[int], families: Sequence[str]
) -> tuple[NDArray[Any] | None, ...]:
    stored = _list(record, "categories", dict, type(None))
    if len(stored) != len(names):
        raise damaged(f"it has {len(stored)} lists of categories for {len(names)} names")
    result = []
    for name, d, entry, family in zip(names, dims, stored, families, strict=True):
        labels = labels_from_json(entry, f"the list of categories of {name!r}")
        if labels is not None and family not in CODED:
            raise damaged(f"variable {name!r} has categories, but is of the family {family!r}")
        if labels is not None and (len(labels) != d or len(set(labels.tolist())) != d):
            raise damaged(f"variable {name!r} does not have {d} different categories")
        result.append(labels)
    return tuple(result)


def _index(record: dict[str, Any], n_vars: int, n_columns: int) -> NDArray[np.int64]:
    index = _list(record, "index", int)
    inside = all(0 <= j < n_columns for j in index)
    if len(index) != n_vars or len(set(index)) != n_vars or not inside:
        raise damaged(f"its index does not give {n_vars} different columns of {n_columns}")
    return np.array(index, dtype=np.int64)


def _members(record: dict[str, Any], n_columns: int) -> tuple[NDArray[np.int64], ...] | None:
    if record.get("members") is None:
        return None
    members = _list(record, "members", list)
    flat = [j for member in members for j in member]
    whole = all(type(j) is int for j in flat)
    if len(members) != n_columns or not whole or sorted(flat) != list(range(len(flat))):
        raise damaged("its groups do not share out the columns of a matrix")
    return tuple(np.array(member, dtype=np.int64) for member in members)


def _check_together(fields: dict[str, Any]) -> None:
    """Raise unless the fields fit each other: `decode` relies on all of them."""
    _check_variables(fields)
    _check_container(fields)
    columns, index, members = fields["columns"], fields["index"], fields["members"]
    kept = set(index.tolist())
    for j, column in enumerate(columns):
        if j not in kept and fields["container"] != "table":
            _check_constant(column, None if members is None else len(members[j]))
        if fields["container"] in PLAIN or column.form != "vector":
            _check_dtype(column, fields["container"])
    if members is not None and any(
        len(members[j]) != d for j, d in zip(index, fields["dims"], strict=True)
    ):
        raise damaged("its groups do not have the dimensions of their variables")
    if fields["named"] and fields["container"] in (*PLAIN, "list"):
        raise damaged(f"it has names from {fields['container']!r}, which has none")


def _check_variables(fields: dict[str, Any]) -> None:
    """Categories have labels, except in sparse binary tables and blocks; a number has one
    dimension."""
    members, kind = fields["members"], fields["kind"]
    for i, j in enumerate(fields["index"].tolist()):
        name, vector = fields["names"][i], fields["columns"][j].form == "vector" and not members
        if fields["families"][i] in CODED:
            if fields["categories"][i] is None and vector and kind == "codes":
                raise damaged(f"variable {name!r} has no categories")
        elif kind == "sparse_binary":
            raise damaged(f"variable {name!r} is not binary, but the table is")
        elif vector and fields["dims"][i] != 1:
            raise damaged(f"variable {name!r} is a number of dimension {fields['dims'][i]}")
        elif fields["columns"][j].dtype in TEXTS and fields["container"] not in FRAMES:
            raise damaged(f"variable {name!r} is a number, but its column is text")


def _check_container(fields: dict[str, Any]) -> None:
    container, kind, members = fields["container"], fields["kind"], fields["members"]
    some_coded = any(family in CODED for family in fields["families"])
    if (
        container.startswith("sparse")
        and kind != "sparse_binary"
        and members is None
        and some_coded
    ):
        raise damaged(f"kind {kind!r} does not come from a {container}")
    only_coded = all(family in CODED for family in fields["families"])
    if members is not None and (kind == "sparse_binary" or container not in PLAIN):
        raise damaged(f"groups do not go with kind {kind!r} from {container!r}")
    if only_coded and (members is not None) != (kind == "blocks" and container in PLAIN):
        raise damaged(f"groups do not go with kind {kind!r} from {container!r}")
    if fields["whole_names"] and (
        container not in FRAMES
        or not all(re.fullmatch(r"-?[0-9]{1,18}", c.name) for c in fields["columns"])
    ):
        raise damaged("its names are not the integers that they are said to be")


def _check_constant(column: InputColumn, width: int | None) -> None:
    constant = column.constant
    expected = 1 if width is None and column.form == "vector" else width
    if constant is None or (expected is not None and len(constant) != expected):
        raise damaged(f"column {column.name!r} was dropped, but its value is not there")


def _check_dtype(column: InputColumn, container: str) -> None:
    if column.dtype not in LABEL_TYPES and not (container == "table" and column.dtype == ""):
        raise damaged(f"column {column.name!r} has the type {column.dtype!r}")


def _check_names(names: Sequence[str], what: str) -> None:
    if len(set(names)) != len(names):
        raise damaged(f"its {what} are not all different")


def _choice(record: dict[str, Any], name: str, allowed: Sequence[str]) -> str:
    value: str = _field(record, name, str)
    if value not in allowed:
        raise damaged(f"the field {name!r} is {value[:60]!r}, none of {list(allowed)}")
    return value


def _list(record: dict[str, Any], name: str, *types: type) -> list[Any]:
    values: list[Any] = _field(record, name, list)
    for value in values:
        if type(value) not in types:  # exactly: JSON's true is an int to Python
            raise damaged(
                f"the field {name!r} holds {type(value).__name__}, not {types[0].__name__}"
            )
    return values


def _field(record: dict[str, Any], name: str, type_: type) -> Any:
    if name not in record:
        raise damaged(f"the field {name!r} is missing")
    if type(record[name]) is not type_:
        raise damaged(f"the field {name!r} is {type(record[name]).__name__}, not {type_.__name__}")
    return record[name]
