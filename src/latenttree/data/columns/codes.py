"""Categorical columns: a column to sorted labels and codes, many columns to an array of codes."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Encoded = tuple[NDArray[Any], NDArray[Any]]  # labels (d,), codes (n,)
Item = TypeVar("Item")

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


class CodeStack:
    """(n, p) codes of the smallest dtype, from columns that arrive one at a time."""

    def __init__(self, n: int, p: int) -> None:
        self._codes: NDArray[Any] = np.empty((n, p), dtype=np.uint8)
        self._size = max(1, _BUFFER // n)
        self._batch: list[NDArray[Any]] = []
        self._written = 0
        self._largest, self._gaps = 2, False

    def add(self, codes: NDArray[Any], n_values: int, gaps: bool) -> None:
        """The next column: codes 0..n_values - 1, and -1 if it has gaps."""
        self._batch.append(codes)
        self._largest, self._gaps = max(self._largest, n_values), self._gaps or gaps
        if len(self._batch) == self._size:
            self._write()

    def finish(self) -> NDArray[Any]:
        """The (n, p) codes of all columns."""
        if self._batch:
            self._write()
        return self._codes

    def _write(self) -> None:
        dtype = code_dtype(self._largest, self._gaps)
        if self._codes.dtype != dtype:
            self._codes = self._codes.astype(dtype)
        _write_columns(self._codes, self._written, self._batch)
        self._written += len(self._batch)
        self._batch = []


def code_dtype(n_values: int, signed: bool = False) -> type[np.integer[Any]]:
    """The smallest dtype for codes 0..n_values - 1, and for -1 if `signed`."""
    small = (np.int8, np.int16) if signed else (np.uint8, np.uint16)
    return next((t for t in small if n_values - 1 <= np.iinfo(t).max), np.int32)


def stack_columns(columns: Iterable[NDArray[Any]], n: int, p: int, dtype: Any) -> NDArray[Any]:
    """(n, p) array of a given dtype, from columns that arrive one at a time."""
    codes = np.empty((n, p), dtype=dtype)
    start = 0
    for batch in _batches(columns, max(1, _BUFFER // max(n, 1))):
        _write_columns(codes, start, batch)
        start += len(batch)
    return codes


def _write_columns(codes: NDArray[Any], start: int, columns: Sequence[NDArray[Any]]) -> None:
    """Write columns `start`... in place, many at once: a single column of a row-major array touches
    a cache line for each value."""
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
