"""Equal rows of a table taken together, each with the number of times it occurs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.data import Table
from latenttree.data.taking import rows_to_scratch, scratch_map
from latenttree.engine import blocks
from latenttree.samples import codes_of

Keys = NDArray[np.uint64]

LOOKED_AT = 1 << 14
"""Rows among which at least two are equal, or hardly any of a million are."""

MOST_DISTINCT = 0.8
"""Share of different rows up to which equal ones are taken together."""

PART = 1 << 18
"""Values that are looked at, and keys that are sorted, at once: either takes several times their
memory."""


def distinct(table: Table) -> Table:
    """The different rows of a table of categories, each as often as it occurs; the table itself
    where that would save less than a fifth, or where a row is more than categories.

    Rows are told apart by two 64-bit sums of random numbers: that different rows have both in
    common is less likely than a fault of the machine. O(n p), or what is stored; 20 bytes for each
    row. Where none of `LOOKED_AT` rows occurs twice, the others are not looked at."""
    if table.values is not None or table.kind == "blocks":
        return table
    if table.n_samples > 2 * LOOKED_AT:
        spread = np.linspace(0, table.n_samples - 1, LOOKED_AT).astype(np.int64)
        if len(np.unique(row_keys(table.subset_rows(spread), 0))) == LOOKED_AT:
            return table
    like = first_like(row_keys(table, 0))
    first = np.flatnonzero(like == np.arange(len(like), dtype=like.dtype))
    if len(first) > MOST_DISTINCT * table.n_samples or not _same_keys(table, like):
        return table
    return _rows(table, first).replace(weights=_weights(table, like))


def row_keys(table: Table, seed: int) -> Keys:
    """(n,) a random number for each different row."""
    rng = np.random.default_rng(seed)
    factors = rng.integers(1, 2**63, table.n_vars, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    keys = np.zeros(table.n_samples, dtype=np.uint64)
    for start, stop in table.stretches(PART):
        if table.kind == "presence":
            rows: Any = table.rows(start, stop)
            total = np.concatenate([[np.uint64(0)], np.cumsum(factors[rows.indices])])
            keys[start:stop] = np.diff(total[rows.indptr])
        else:
            codes = codes_of(table, start, stop).astype(np.int64).astype(np.uint64)
            keys[start:stop] = codes @ factors
    return keys


def first_like(keys: Keys) -> NDArray[Any]:
    """(n,) the first place with the same key, for every key.

    Keys with the same leading bits are sorted together, some at a time."""
    n = len(keys)
    found = np.empty(n, dtype=np.uint32 if n < 2**32 else np.int64)
    bits = min(16, int(np.ceil(np.log2(max(n / PART, 2)))))
    lead = np.empty(n, dtype=np.uint16)
    for start, stop in blocks(n, PART):
        lead[start:stop] = keys[start:stop] >> np.uint64(64 - bits)
    for value in range(1 << bits):
        _mark_first(keys, np.flatnonzero(lead == value), found)
    return found


def _mark_first(keys: Keys, places: NDArray[np.int64], found: NDArray[Any]) -> None:
    """Fill `found` at some places, which have all keys that are equal to theirs."""
    _, first, which = np.unique(keys[places], return_index=True, return_inverse=True)
    found[places] = places[first][which]


def _same_keys(table: Table, like: NDArray[Any]) -> bool:
    """Whether rows that are taken for equal have other keys in common as well."""
    keys = row_keys(table, 1)
    return all(
        np.array_equal(keys[start:stop], keys[like[start:stop]])
        for start, stop in blocks(len(keys), PART)
    )


def _weights(table: Table, like: NDArray[Any]) -> NDArray[np.float64]:
    """How often each different row counts, in the order of the first of each."""
    number = np.cumsum(like == np.arange(len(like), dtype=like.dtype), dtype=like.dtype)
    found = np.zeros(int(number[-1]))
    for start, stop in blocks(len(like), PART):
        weights = 1.0 if table.weights is None else table.weights[start:stop]
        np.add.at(found, number[like[start:stop]] - 1, weights)
    return found


def _rows(table: Table, index: NDArray[np.int64]) -> Table:
    """Some rows; those of a table in a scratch file in another."""
    stored = table.codes if table.codes is not None else table.matrix
    if scratch_map(stored) is None:
        return table.subset_rows(index)
    name = "codes" if table.codes is not None else "matrix"
    rows = rows_to_scratch(stored, index)
    return table.replace(n_samples=len(index), **{name: rows})
