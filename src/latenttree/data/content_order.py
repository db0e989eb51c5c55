"""The rows of a table in an order that only their content decides.

Later stages split samples by position: halves, held-out samples, batches, subsets that stand for
all. In this order a position depends on nothing but the content of the row, and equal rows are
adjacent. So neither the order in which rows came, nor whether a row came w times or once with
weight w, changes anything that follows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.data.row_keys import order_keys, row_keys
from latenttree.data.table import Table
from latenttree.engine import THREADS

Floats = NDArray[np.float64]

MAX_COPIES = 8
"""Copies of each different row, on average, up to which equal rows stay separate: kernels for rows
without weights are several times as fast."""

SMALL = 1 << 24
"""Values of a table in which equal rows stay separate, however many copies there are."""


Positions = NDArray[Any]
"""Row numbers: 4 bytes each where that is enough."""

SORTED_AT_ONCE = 1 << 18
"""Rows that are sorted together: sorting takes several times their memory."""

MAX_PARTS = 32
"""Parts that rows are sorted in: each part needs a pass over all keys."""


class Ordered(NamedTuple):
    """The rows of a table in the order of their content, equal ones adjacent: their positions in
    the table, and which of them are the first of their kind. 5 bytes for each row."""

    positions: Positions
    first: NDArray[np.bool_]

    @property
    def n_distinct(self) -> int:
        """Different rows."""
        return int(self.first.sum())

    def rows(self) -> Positions:
        """The positions of the different rows."""
        return self.positions[self.first]

    def copies(self, weights: Floats | None) -> Floats:
        """The total weight of each different row."""
        starts = np.flatnonzero(self.first)
        if weights is None:
            return np.diff(starts, append=len(self.first)).astype(np.float64)
        return np.add.reduceat(weights[self.positions], starts)


def in_content_order(table: Table, *, small: int = SMALL, max_copies: int = MAX_COPIES) -> Table:
    """The same samples in the order of a hash of their values.

    Whether equal rows stay separate, or become one with a weight, depends on how many there are,
    not on how they came: rows and integer weights give the same table, to the last bit. They stay
    separate in a table of at most `small` values, or with at most `max_copies` on average. Samples
    elsewhere are left in the order that they have."""
    if table.engine is not THREADS:
        return table
    ordered = ordered_rows(table)
    if not _stay_separate(table, ordered, small, max_copies):
        return table.rearranged(ordered.rows(), ordered.copies(table.weights))
    positions = ordered.positions
    if table.weights is not None:
        positions = np.repeat(ordered.rows(), ordered.copies(table.weights).astype(np.int64))
    elif _is_identity(positions):
        return table
    del ordered
    return table.rearranged(positions, None)


def ordered_rows(table: Table) -> Ordered:
    """The rows in the order of their keys; where there are numbers, in an order that their units do
    not change."""
    keys = row_keys(table)
    ordered = _sorted(keys, table.weights)
    del keys
    return ordered if table.values is None else _by_ranks(table, ordered)


def _sorted(keys: NDArray[np.uint64], weights: Floats | None) -> Ordered:
    """Rows by their keys, those of equal keys by their weights, so that sums of these round the
    same in any order; sorted by the leading bits of keys first, one part after the other."""
    n = len(keys)
    positions = np.empty(n, dtype=np.uint32 if n < 2**32 else np.int64)
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
        positions[done:stop] = some[order]
        np.not_equal(own[1:], own[:-1], out=first[done + 1 : stop])
        done = stop
    return Ordered(positions, first)


def _by_ranks(table: Table, ordered: Ordered) -> Ordered:
    """The same rows, with different ones in the order of `order_keys`."""
    order = np.argsort(order_keys(table, ordered.rows()), kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    lengths = np.diff(np.flatnonzero(ordered.first), append=len(ordered.first))
    again = np.argsort(np.repeat(rank, lengths), kind="stable")
    return Ordered(ordered.positions[again], ordered.first[again])


def _is_identity(positions: Positions) -> bool:
    return bool(np.array_equal(positions, np.arange(len(positions), dtype=positions.dtype)))


def _stay_separate(table: Table, ordered: Ordered, small: int, max_copies: int) -> bool:
    """Whether equal rows stay separate rows."""
    if table.weights is not None and (ordered.copies(table.weights) % 1 != 0).any():
        return False
    few = table.total_weight <= max_copies * ordered.n_distinct
    return bool(few or _values(table) <= small)


def _values(table: Table) -> float:
    """Values of the table if equal rows stay separate."""
    if table.kind == "sparse_binary" and table.matrix is not None:
        lengths = np.diff(table.matrix.indptr)
        return float(lengths.sum() if table.weights is None else lengths @ table.weights)
    return float(table.total_weight * table.n_vars)
