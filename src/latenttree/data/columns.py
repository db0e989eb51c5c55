"""Categorical columns: one column to sorted labels and codes, many columns to one table."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from latenttree.data.checks import (
    constant_variables,
    negative_code,
    real_valued,
)
from latenttree.data.table import Table, codes_table
from latenttree.errors import DataError

Encoded = tuple[NDArray[Any], NDArray[Any]]  # labels (d,), codes (n,)
Item = TypeVar("Item")

_BUFFER = 1 << 21  # values held at once while columns are turned into rows
_TILE = 1024  # rows transposed at once


def encode_integers(column: NDArray[Any]) -> Encoded:
    """Labels and codes of a contiguous integer or boolean column.

    Counting, O(n + span), where the values span at most 4 n; sorting beyond that.
    """
    low, high = int(column.min()), int(column.max())
    span = high - low + 1
    if span > max(4 * column.size, 256):
        labels, codes = np.unique(column, return_inverse=True)
        return labels, codes
    if column.dtype == np.uint64:  # the one integer dtype that int64 does not hold
        shifted = (column - np.uint64(low)).astype(np.int64)
    else:
        shifted = column.astype(np.int64) - low
    seen = np.bincount(shifted, minlength=span) > 0
    labels = np.flatnonzero(seen)
    codes = shifted if labels.size == span else (np.cumsum(seen) - 1)[shifted]
    if column.dtype == np.uint64:
        return labels.astype(np.uint64) + np.uint64(low), codes
    return (labels + low).astype(column.dtype), codes


def encode_labels(values: Sequence[Any] | NDArray[Any]) -> Encoded:
    """Labels and codes of any hashable values: one dictionary pass, then sort the labels."""
    position: dict[Any, int] = {}
    first_seen = np.fromiter(
        (position.setdefault(value, len(position)) for value in values), np.int64, len(values)
    )
    labels = list(position)
    try:
        order = sorted(range(len(labels)), key=labels.__getitem__)
    except TypeError:  # labels without an order of their own
        order = sorted(range(len(labels)), key=lambda i: str(labels[i]))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return _label_array([labels[i] for i in order]), rank[first_seen]


def _label_array(labels: list[Any]) -> NDArray[Any]:
    if all(isinstance(label, str | bool | numbers.Number) for label in labels):
        array = np.asarray(labels)
        if array.dtype != object and array.tolist() == labels:  # text may end in zeros
            return array
    result = np.empty(len(labels), dtype=object)
    result[:] = labels
    return result


def encode_objects(values: NDArray[Any], name: str) -> Encoded:
    """Labels and codes of an object column whose values are all str, all bool or all int."""
    kinds = {_kind_of(type_): type_ for type_ in set(map(type, values.tolist()))}
    if len(kinds) > 1:
        names = ", ".join(sorted(type_.__name__ for type_ in kinds.values()))
        raise DataError(
            f"object column {name!r} mixes types ({names}); convert it to one type, for example "
            "astype(str)"
        )
    kind, type_ = next(iter(kinds.items()))
    if kind == "float":
        raise real_valued(name, "object of float", values[0])
    if kind not in ("str", "bool", "int"):
        raise DataError(
            f"object column {name!r} holds {type_.__name__} values (first {values[0]!r}); columns "
            "may hold booleans, integers, strings or categories: convert it, for example "
            "astype(str)"
        )
    if kind == "int":
        negative = next((i for i, value in enumerate(values) if value < 0), None)
        if negative is not None:
            raise negative_code(values[negative], negative, name)
    return encode_labels(values)


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


def table_from_columns(
    columns: Iterable[Encoded], names: Sequence[str], n: int, drop_constant: bool
) -> Table:
    """A table of kind "codes" from encoded columns that arrive one at a time."""
    codes, labels = _stack(columns, n, len(names))
    constant = [i for i, values in enumerate(labels) if len(values) == 1]
    dropped = constant_variables(
        [names[i] for i in constant],
        [str(labels[i][0]) for i in constant],
        n,
        drop_constant,
        len(names),
    )
    if not dropped:
        return codes_table(names, codes, labels)
    keep = [i for i, values in enumerate(labels) if len(values) > 1]
    return codes_table(
        [names[i] for i in keep],
        np.ascontiguousarray(codes[:, keep]),
        [labels[i] for i in keep],
        dropped=dropped,
    )


def _stack(columns: Iterable[Encoded], n: int, p: int) -> tuple[NDArray[Any], list[NDArray[Any]]]:
    """(n, p) codes of the smallest dtype, and the labels of every column."""
    codes: NDArray[Any] = np.empty((n, p), dtype=np.uint8)
    labels: list[NDArray[Any]] = []
    for batch in _batches(columns, max(1, _BUFFER // n)):
        start = len(labels)
        labels += [values for values, _ in batch]
        dtype = smallest_dtype(max(len(values) for values, _ in batch))
        if np.can_cast(codes.dtype, dtype) and codes.dtype != dtype:
            codes = codes.astype(dtype)
        _write_columns(codes, start, [values for _, values in batch])
    return codes, labels


def stack_columns(columns: Iterable[NDArray[Any]], n: int, p: int, dtype: Any) -> NDArray[Any]:
    """(n, p) array of a given dtype, from columns that arrive one at a time."""
    codes = np.empty((n, p), dtype=dtype)
    start = 0
    for batch in _batches(columns, max(1, _BUFFER // max(n, 1))):
        _write_columns(codes, start, batch)
        start += len(batch)
    return codes


def _write_columns(codes: NDArray[Any], start: int, columns: Sequence[NDArray[Any]]) -> None:
    """Many columns at once: one column of a row-major array touches a cache line for each of its
    values."""
    buffer = np.empty((len(columns), len(codes)), dtype=codes.dtype)
    for row, values in zip(buffer, columns, strict=True):
        row[:] = values
    codes[:, start : start + len(columns)] = buffer.T


def _batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    batch: list[Item] = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def smallest_dtype(n_values: int) -> type[np.uint8] | type[np.uint16] | type[np.int32]:
    if n_values <= 1 << 8:
        return np.uint8
    return np.uint16 if n_values <= 1 << 16 else np.int32


def integer_columns(array: NDArray[Any]) -> Iterator[Encoded]:
    """Encoded columns of an (n, p) integer or boolean array."""
    yield from map(encode_integers, contiguous_columns(array))


def contiguous_columns(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """The columns of an (n, p) array, each contiguous, read in blocks of columns."""
    n, p = array.shape
    step = max(1, _BUFFER // n)
    for start in range(0, p, step):
        yield from _transposed(array[:, start : start + step])


def _transposed(array: NDArray[Any]) -> NDArray[Any]:
    """Contiguous transpose, in tiles of rows that stay in cache: several times faster."""
    result = np.empty(array.shape[::-1], dtype=array.dtype)
    for start in range(0, array.shape[0], _TILE):
        result[:, start : start + _TILE] = array[start : start + _TILE].T
    return result
