"""Equal rows of a table taken together, each with the number of times it occurs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.data import Table
from latenttree.data.scratch import Part, Scratch
from latenttree.data.taking import rows_to_scratch, scratch_map
from latenttree.engine import blocks
from latenttree.samples import codes_of

Keys = NDArray[np.uint64]
Ints = NDArray[np.int64]

LOOKED_AT = 1 << 14
"""Rows among which at least two are equal, or hardly any of a million are."""

MOST_DISTINCT = 0.8
"""Share of different rows up to which equal ones are taken together."""

PART = 1 << 17
"""Values that are looked at, and keys that are sorted, at once: either takes several times their
memory."""


def distinct(table: Table) -> Table:
    """The different rows of a table of categories, each as often as it occurs; the table itself
    where that would save less than a fifth, or where a row is more than categories.

    Rows are told apart by two 64-bit sums of random numbers: that different rows have both in
    common is less likely than a fault of the machine. O(n p), or what is stored; 12 bytes for each
    row, and 24 in a scratch file. Where none of `LOOKED_AT` rows occurs twice, the others are not
    looked at."""
    if table.values is not None or table.kind == "blocks":
        return table
    if table.n_samples > 2 * LOOKED_AT:
        spread = np.linspace(0, table.n_samples - 1, LOOKED_AT).astype(np.int64)
        some = table.subset_rows(spread)
        if len(np.unique(row_keys(some, 0, LOOKED_AT)[:, 0])) == LOOKED_AT:
            return table
    like = first_like(table)
    first = like == np.arange(len(like), dtype=like.dtype)
    if first.sum() > MOST_DISTINCT * table.n_samples:
        return table
    weights = _weights(table, like, first)
    return _rows(table, np.flatnonzero(first)).replace(weights=weights)


def row_keys(table: Table, start: int, stop: int) -> Keys:
    """(stop - start, 2) random numbers for each different row."""
    rng = np.random.default_rng(0)
    factors = rng.integers(1, 2**63, (table.n_vars, 2), dtype=np.uint64)
    factors = factors * np.uint64(2) + np.uint64(1)
    keys = np.empty((stop - start, 2), dtype=np.uint64)
    step = max(64, PART // max(table.n_vars, 1)) if table.kind == "codes" else 1 << 12
    for low, high in blocks(stop - start, step):
        if table.kind == "presence":
            rows: Any = table.rows(start + low, start + high)
            total = np.zeros((rows.nnz + 1, 2), dtype=np.uint64)
            np.cumsum(factors[rows.indices], axis=0, out=total[1:])
            keys[low:high] = np.diff(total[rows.indptr], axis=0)
        else:
            codes = codes_of(table, start + low, start + high).astype(np.int64)
            keys[low:high] = codes.astype(np.uint64) @ factors
    return keys


def first_like(table: Table) -> NDArray[Any]:
    """(n,) the first row that is equal, for every row."""
    n = table.n_samples
    found = np.empty(n, dtype=np.uint32 if n < 2**32 else np.int64)
    if n <= PART:
        _mark_first(np.arange(n), row_keys(table, 0, n), found)
        return found
    buckets = _Buckets(table)
    for start, stop in blocks(n, PART):
        buckets.add(start, row_keys(table, start, stop))
    for places, keys in buckets:
        _mark_first(places, keys, found)
    return found


class _Buckets:
    """Rows and their keys by the leading bits of these, in a scratch file: equal keys together,
    about `PART` at a time."""

    def __init__(self, table: Table) -> None:
        stored = scratch_map(table.codes if table.codes is not None else table.matrix)
        self._scratch = Scratch(None if stored is None else stored.folder)
        self._bits = int(np.ceil(np.log2(table.n_samples / PART)))
        self._parts: list[list[tuple[Part, Part]]] = [[] for _ in range(1 << self._bits)]

    def add(self, start: int, keys: Keys) -> None:
        """The keys of the rows from `start` on."""
        lead = (keys[:, 0] >> np.uint64(64 - self._bits)).astype(np.int64)
        order = np.argsort(lead, kind="stable")
        ends = np.searchsorted(lead[order], np.arange(len(self._parts) + 1))
        for parts, low, high in zip(self._parts, ends[:-1], ends[1:], strict=True):
            rows = order[low:high]
            parts.append((self._scratch.add(start + rows), self._scratch.add(keys[rows])))

    def __iter__(self) -> Iterator[tuple[Ints, Keys]]:
        read = self._scratch.read
        for parts in self._parts:
            yield (
                np.concatenate([read(places) for places, _ in parts]),
                np.concatenate([read(keys) for _, keys in parts]),
            )


def _mark_first(places: Ints, keys: Keys, found: NDArray[Any]) -> None:
    """Fill `found` at some places, increasing, which have all keys that are equal to theirs."""
    order = np.lexsort((keys[:, 1], keys[:, 0]))
    ordered, rows = keys[order], places[order]
    is_new = np.ones(len(rows), dtype=np.bool_)
    is_new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    found[rows] = rows[is_new][np.cumsum(is_new) - 1]


def _weights(table: Table, like: NDArray[Any], first: NDArray[np.bool_]) -> NDArray[np.float64]:
    """How often each different row counts, in the order of the first of each."""
    number = np.cumsum(first, dtype=like.dtype)
    found = np.zeros(int(number[-1]))
    for start, stop in blocks(len(like), PART):
        weights = 1.0 if table.weights is None else table.weights[start:stop]
        np.add.at(found, number[like[start:stop]] - 1, weights)
    return found


def _rows(table: Table, index: Ints) -> Table:
    """Some rows; those of a table in a scratch file in another."""
    stored = table.codes if table.codes is not None else table.matrix
    if scratch_map(stored) is None:
        return table.subset_rows(index)
    name = "codes" if table.codes is not None else "matrix"
    rows = rows_to_scratch(stored, index)
    return table.replace(n_samples=len(index), **{name: rows})
