"""JSON that is written in one way and checked when it is read.

Python values that JSON lacks have one form: a number that is not finite is
``{"$number": "nan"}`` (or "inf", "-inf"), tuples and arrays are lists.
"""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

import numpy as np

NUMBER = "$number"
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def to_json(value: Any, name: str) -> bytes:
    """``value`` as JSON; what has no JSON form raises TypeError that begins with ``name``."""
    text = json.dumps(plain(value, name), allow_nan=False, separators=(",", ":"))
    return text.encode()  # ASCII: other characters are escaped


def plain(value: Any, name: str) -> Any:
    """``value`` in JSON's own types."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf" and np.isfinite(value).all():
        return value.tolist()  # no need to look at every item
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if value is None or type(value) in (bool, int, str):
        return value
    if isinstance(value, str):  # of a subclass, as `errors.Text`
        return str(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {NUMBER: str(float(value))}
    if isinstance(value, list | tuple):
        return [plain(item, f"{name}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, dict):
        return {_key(key, name): plain(item, f"{name}[{key!r}]") for key, item in value.items()}
    raise TypeError(
        f"{name} is {type(value).__name__}, which JSON cannot hold; leave it out, or make it "
        "numbers, strings, lists and dicts"
    )


def from_json(content: bytes) -> Any:
    """The value of JSON text; raises ValueError for everything that it should not hold."""
    try:
        return json.loads(
            content.decode("utf-8"),
            parse_constant=_reject_constant,
            parse_float=_finite,
            object_pairs_hook=_object,
        )
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def field_of(record: dict[str, Any], name: str, type_: type, file: str = "") -> Any:
    """A field of a record; raises ValueError where it is not there, or not exactly of the type:
    JSON's true is an int to Python."""
    if name not in record:
        raise ValueError(
            f"{file} lacks the field {name!r}" if file else f"the field {name!r} is missing"
        )
    given = type(record[name])
    if given is not type_:
        place = f"{file}: " if file else ""
        raise ValueError(f"{place}the field {name!r} is {given.__name__}, not {type_.__name__}")
    return record[name]


def _key(key: Any, name: str) -> str:
    if not isinstance(key, str) or key == NUMBER:
        raise TypeError(f"{name} has the key {key!r}; use strings other than {NUMBER!r} as keys")
    return key


def _reject_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number that JSON allows")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:30]} is too large")
    return value


def _object(pairs: list[tuple[str, Any]]) -> Any:
    record = dict(pairs)
    if len(record) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the JSON has the field {twice!r} twice in one place")
    if NUMBER not in record:
        return record
    text = record[NUMBER]
    if len(record) > 1 or not isinstance(text, str) or text not in _NOT_FINITE:
        raise ValueError(f"{record!r} is no number; it must be one of {list(_NOT_FINITE)}")
    return _NOT_FINITE[text]
