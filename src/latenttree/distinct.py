"""Equal rows of a table taken together, each with the number of times it occurs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
Keyed = tuple[Ints, Keys, NDArray[np.float64]]

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
    row, and 32 in a scratch file. Where none of `LOOKED_AT` rows occurs twice, the others are not
    looked at."""
    if table.values is not None or table.kind == "blocks":
        return table
    if table.n_samples > 2 * LOOKED_AT:
        spread = np.linspace(0, table.n_samples - 1, LOOKED_AT).astype(np.int64)
        some = table.subset_rows(spread)
        if len(np.unique(row_keys(some, 0, LOOKED_AT)[:, 0])) == LOOKED_AT:
            return table
    counts = multiplicity(table)
    first = counts > 0
    m = int(first.sum())
    if m > MOST_DISTINCT * table.n_samples:
        return table
    weights, index = np.empty(m), np.empty(m, dtype=np.uint32 if len(first) < 2**32 else np.int64)
    done = 0
    for start, stop in blocks(len(first), PART):  # parts: arrays of all rows are large
        rows = start + np.flatnonzero(first[start:stop])
        weights[done : done + len(rows)] = counts[rows]
        index[done : done + len(rows)] = rows
        done += len(rows)
    del counts
    return _rows(table, index).replace(weights=weights)


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


def multiplicity(table: Table) -> NDArray[Any]:
    """(n,) how often each row counts with all that are equal to it, at the first of them; 0 at the
    others."""
    n = table.n_samples
    whole = table.weights is None and n < 2**32
    found = np.zeros(n, dtype=np.uint32 if whole else np.float64)
    parts = (_equal(*_keyed(table, start, stop)) for start, stop in blocks(n, PART))
    if n <= PART:
        buckets: Iterable[Keyed] = parts
    else:
        buckets = _Buckets(table)
        for part in parts:
            buckets.add(*part)
    for places, _, weights in buckets:
        found[places] = weights
    return found


def _keyed(table: Table, start: int, stop: int) -> Keyed:
    """Rows start:stop, their keys, and how often they count."""
    weights = np.ones(stop - start) if table.weights is None else table.weights[start:stop]
    return np.arange(start, stop), row_keys(table, start, stop), weights


def _equal(places: Ints, keys: Keys, weights: NDArray[np.float64]) -> Keyed:
    """Equal keys together: the first of their places, which increase, and their weights summed."""
    order = np.lexsort((keys[:, 1], keys[:, 0]))
    keys = keys[order]
    is_new = np.ones(len(order), dtype=np.bool_)
    is_new[1:] = (keys[1:] != keys[:-1]).any(axis=1)
    starts = np.flatnonzero(is_new)
    return places[order[starts]], keys[starts], np.add.reduceat(weights[order], starts)


class _Buckets:
    """Keys of rows by their leading bits, in a scratch file: equal keys together, about `PART` at a
    time."""

    def __init__(self, table: Table) -> None:
        stored = scratch_map(table.codes if table.codes is not None else table.matrix)
        self._scratch = Scratch(None if stored is None else stored.folder)
        self._bits = int(np.ceil(np.log2(table.n_samples / PART)))
        self._parts: list[list[tuple[Part, Part, Part]]] = [[] for _ in range(1 << self._bits)]

    def add(self, places: Ints, keys: Keys, weights: NDArray[np.float64]) -> None:
        """Different keys in order, each behind those that were added before."""
        lead = (keys[:, 0] >> np.uint64(64 - self._bits)).astype(np.int64)
        ends = np.searchsorted(lead, np.arange(len(self._parts) + 1)).tolist()
        for parts, low, high in zip(self._parts, ends[:-1], ends[1:], strict=True):
            if low < high:
                some = (x[low:high] for x in (places, keys, weights))
                one, other, last = map(self._scratch.add, some)
                parts.append((one, other, last))

    def __iter__(self) -> Iterator[Keyed]:
        for parts in self._parts:
            if parts:
                read = [
                    [self._scratch.read(part) for part in some] for some in zip(*parts, strict=True)
                ]
                places, keys, weights = map(np.concatenate, read)
                yield _equal(places, keys, weights)


def _rows(table: Table, index: NDArray[Any]) -> Table:
    """Some rows; those of a table in a scratch file in another."""
    stored = table.codes if table.codes is not None else table.matrix
    if scratch_map(stored) is None:
        return table.subset_rows(index)
    name = "codes" if table.codes is not None else "matrix"
    rows = rows_to_scratch(stored, index)
    return table.replace(n_samples=len(index), **{name: rows})
