"""The rows of a table in an order that their content alone decides.

Later stages part samples by their places: halves, held-out samples, batches, parts that stand for
all. In this order a place says nothing but what is in the row, and equal rows stand together, so
neither the order in which rows came, nor whether a row came w times or once with weight w, changes
anything that follows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.data.row_keys import order_keys, row_keys
from latenttree.data.table import Table

Floats = NDArray[np.float64]

MAX_COPIES = 8
"""Rows for each different one up to which equal rows are all there; kernels for rows without
weights are several times as fast."""

SMALL = 1 << 24
"""Values of a table in which equal rows are all there, however many they are."""


Places = NDArray[Any]
"""Numbers of rows: 4 bytes each, where 4 are enough."""

SORTED_AT_ONCE = 1 << 18
"""Rows that are sorted together: sorting takes several times their memory."""

MAX_PARTS = 32
"""Parts that rows are sorted in: for each, all keys are looked at."""


class Ordered(NamedTuple):
    """The rows of a table in the order of their content, equal ones together: their places in the
    table, and which of them are the first of their kind. 5 bytes for each row."""

    places: Places
    first: NDArray[np.bool_]

    @property
    def n_distinct(self) -> int:
        return int(self.first.sum())

    def rows(self) -> Places:
        """The places of the different rows."""
        return self.places[self.first]

    def copies(self, weights: Floats | None) -> Floats:
        """How often each different row counts."""
        starts = np.flatnonzero(self.first)
        if weights is None:
            return np.diff(starts, append=len(self.first)).astype(np.float64)
        return np.add.reduceat(weights[self.places], starts)


def in_content_order(table: Table) -> Table:
    """The same samples in the order of a hash of their values.

    Whether equal rows are all there, or one of them with a weight, depends on how many there are,
    not on how they came: rows and whole weights are one table in the end, to the last bit."""
    found = ordered_rows(table)
    if not _all_there(table, found):
        return table.rearranged(found.rows(), found.copies(table.weights))
    places = found.places
    if table.weights is not None:
        places = np.repeat(found.rows(), found.copies(table.weights).astype(np.int64))
    elif _is_identity(places):
        return table
    del found
    return table.rearranged(places, None)


def ordered_rows(table: Table) -> Ordered:
    """The rows in order, by their keys; where there are numbers, in an order in which the units of
    these do not matter."""
    keys = row_keys(table)
    found = _sorted(keys, table.weights)
    del keys
    return found if table.values is None else _by_ranks(table, found)


def _sorted(keys: NDArray[np.uint64], weights: Floats | None) -> Ordered:
    """Rows by their keys, those of equal keys by their weights, so that sums of these round the
    same in any order; sorted by the leading bits of keys first, a part after the other."""
    n = len(keys)
    places = np.empty(n, dtype=np.uint32 if n < 2**32 else np.int64)
    first = np.ones(n, dtype=np.bool_)
    n_parts = min(-(-n // SORTED_AT_ONCE), MAX_PARTS)
    bounds = [i * (2**64 // n_parts) for i in range(n_parts)]
    done = 0
    for low, high in zip(bounds, [*bounds[1:], 2**64 - 1], strict=True):
        inside = keys >= np.uint64(low)
        inside &= (keys < np.uint64(high)) if high < 2**64 - 1 else True
        some = np.flatnonzero(inside)
        own = keys[some]
        by = (own,) if weights is None else (weights[some], own)
        order = np.lexsort(by)
        own = own[order]
        stop = done + len(some)
        places[done:stop] = some[order]
        np.not_equal(own[1:], own[:-1], out=first[done + 1 : stop])
        done = stop
    return Ordered(places, first)


def _by_ranks(table: Table, found: Ordered) -> Ordered:
    """The same rows with different ones in the order of `order_keys`."""
    order = np.argsort(order_keys(table, found.rows()), kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    lengths = np.diff(np.flatnonzero(found.first), append=len(found.first))
    again = np.argsort(np.repeat(rank, lengths), kind="stable")
    return Ordered(found.places[again], found.first[again])


def _is_identity(places: Places) -> bool:
    return bool(np.array_equal(places, np.arange(len(places), dtype=places.dtype)))


def _all_there(table: Table, found: Ordered) -> bool:
    """Whether equal rows are to be rows of their own."""
    if table.weights is not None and (found.copies(table.weights) % 1 != 0).any():
        return False
    few = table.total_weight <= MAX_COPIES * found.n_distinct
    return bool(few or _values(table) <= SMALL)


def _values(table: Table) -> float:
    """Values of the table in which equal rows are all there."""
    if table.kind == "sparse_binary" and table.matrix is not None:
        lengths = np.diff(table.matrix.indptr)
        return float(lengths.sum() if table.weights is None else lengths @ table.weights)
    return float(table.total_weight * table.n_vars)
