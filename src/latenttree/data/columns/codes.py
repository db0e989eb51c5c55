"""Categorical columns: a column to sorted labels and codes, many columns to an array of codes."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Encoded = tuple[NDArray[Any], NDArray[Any]]  # labels (d,), codes (n,)

_BUFFER = 1 << 21  # values held at once while columns are turned into rows
_TILE = 1024  # rows transposed at once


def encode_integers(column: NDArray[Any]) -> Encoded:
    """Sorted labels and codes of a contiguous integer or boolean column.

    Counting, O(n + span), where the values span at most 4 n; sorting beyond that."""
    low, high = int(column.min()), int(column.max())
    span = high - low + 1
    if span > max(4 * column.size, 256):
        labels, codes = np.unique(column, return_inverse=True)
        return labels, codes
    if column.dtype == np.uint64:  # the one integer dtype that int64 does not hold
        shifted = (column - np.uint64(low)).astype(np.int64)
    else:
        shifted = column.astype(np.int64) - low
    occurs = np.bincount(shifted, minlength=span) > 0
    labels = np.flatnonzero(occurs)
    codes = shifted if labels.size == span else (np.cumsum(occurs) - 1)[shifted]
    if column.dtype == np.uint64:
        return labels.astype(np.uint64) + np.uint64(low), codes
    return (labels + low).astype(column.dtype), codes


def encode_labels(values: Sequence[Any] | NDArray[Any]) -> Encoded:
    """Sorted labels and codes of hashable values, in one dictionary pass; unsortable labels by
    their text."""
    position: dict[Any, int] = {}
    appearance = np.fromiter(
        (position.setdefault(value, len(position)) for value in values), np.int64, len(values)
    )
    labels = list(position)
    try:
        order = sorted(range(len(labels)), key=labels.__getitem__)
    except TypeError:  # labels without an order of their own
        order = sorted(range(len(labels)), key=lambda i: str(labels[i]))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return label_array([labels[i] for i in order]), rank[appearance]


def label_array(labels: list[Any]) -> NDArray[Any]:
    """Labels as an array of their own type, or of objects where no type holds them."""
    if all(isinstance(label, str | bool | numbers.Number) for label in labels):
        array = np.asarray(labels)
        if array.dtype != object and array.tolist() == labels:  # text may end in zeros
            return array
    return objects(labels)


def objects(values: Sequence[Any]) -> NDArray[Any]:
    """An object array of one dimension, whatever the values are."""
    result = np.empty(len(values), dtype=object)
    result[:] = values
    return result


class ColumnStack:
    """(n, p) array from columns that arrive one at a time; many are written at once, as a single
    column of a row-major array touches a cache line for each value."""

    def __init__(self, n: int, p: int, dtype: Any) -> None:
        self._array: NDArray[Any] = np.empty((n, p), dtype=dtype)
        self._size = max(1, _BUFFER // max(n, 1))
        self._batch: list[NDArray[Any]] = []
        self._written = 0

    def add(self, column: NDArray[Any], dtype: Any = None) -> None:
        """The next column; `dtype` is that of the array from now on, if it has another."""
        if dtype is not None and self._array.dtype != dtype:
            self._array = self._array.astype(dtype)
        self._batch.append(column)
        if len(self._batch) == self._size:
            self._write()

    def finish(self) -> NDArray[Any]:
        """The array of all columns."""
        self._write()
        return self._array

    def _write(self) -> None:
        buffer = np.empty((len(self._batch), len(self._array)), dtype=self._array.dtype)
        for row, values in zip(buffer, self._batch, strict=True):
            row[:] = values
        stop = self._written + len(self._batch)
        self._array[:, self._written : stop] = buffer.T
        self._batch, self._written = [], stop


def stack_columns(columns: Iterable[NDArray[Any]], n: int, p: int, dtype: Any) -> NDArray[Any]:
    """(n, p) array of a given dtype, from columns that arrive one at a time."""
    stack = ColumnStack(n, p, dtype)
    for column in columns:
        stack.add(column)
    return stack.finish()


def code_dtype(n_values: int, signed: bool = False) -> type[np.integer[Any]]:
    """The smallest dtype for codes 0..n_values - 1, and for -1 if `signed`."""
    small = (np.int8, np.int16) if signed else (np.uint8, np.uint16)
    return next((t for t in small if n_values - 1 <= np.iinfo(t).max), np.int32)


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
