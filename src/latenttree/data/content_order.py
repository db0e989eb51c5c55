"""The rows of a table in an order that their content alone decides.

Later stages part samples by their places: halves, held-out samples, batches, parts that stand for
all. In this order a place says nothing but what is in the row, and equal rows stand together, so
neither the order in which rows came, nor whether a row came w times or once with weight w, changes
anything that follows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.data.reorder import taken
from latenttree.data.rowkeys import order_keys, row_keys
from latenttree.data.table import Table

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_COPIES = 8
"""Rows for each different one up to which equal rows are all there; kernels for rows without
weights are several times as fast."""

SMALL = 1 << 24
"""Values of a table in which equal rows are all there, however many they are."""


class Distinct(NamedTuple):
    """The different rows of a table, in an order of their own: the place of one of each in the
    table, and how often it counts. `places` `(n,)` are those of all rows."""

    rows: Ints
    copies: Floats
    places: Ints


def in_content_order(table: Table) -> Table:
    """The same samples in the order of a hash of their values.

    Whether equal rows are all there, or one of them with a weight, depends on how many there are,
    not on how they came: rows and whole weights are one table in the end, to the last bit."""
    found = distinct_rows(table)
    if not _all_there(table, found):
        return taken(table, found.rows, found.copies)
    places = found.places
    if table.weights is not None:
        places = np.repeat(found.rows, found.copies.astype(np.int64))
    if table.weights is None and np.array_equal(places, np.arange(len(places))):
        return table
    return taken(table, places, None)


def distinct_rows(table: Table) -> Distinct:
    """The different rows, and how often each counts."""
    keys, weights = row_keys(table), table.weights
    places = np.argsort(keys, kind="stable") if weights is None else np.lexsort((weights, keys))
    keys = keys[places]
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    if weights is None:
        copies = np.diff(starts, append=len(keys)).astype(np.float64)
    else:  # by size: sums of equal rows round the same in any order
        copies = np.add.reduceat(weights[places], starts)
    found = Distinct(places[starts], copies, places)
    return found if table.values is None else _by_ranks(table, found, starts)


def _by_ranks(table: Table, found: Distinct, starts: Ints) -> Distinct:
    """The same in an order in which units of numbers do not matter; `starts` says where each
    different row begins among `found.places`."""
    order = np.argsort(order_keys(table, found.rows), kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    lengths = np.diff(starts, append=len(found.places))
    places = found.places[np.argsort(np.repeat(rank, lengths), kind="stable")]
    return Distinct(found.rows[order], found.copies[order], places)


def _all_there(table: Table, found: Distinct) -> bool:
    """Whether equal rows are to be rows of their own."""
    if (found.copies % 1 != 0).any():
        return False
    few = found.copies.sum() <= MOST_COPIES * len(found.rows)
    return bool(few or _values(table, found) <= SMALL)


def _values(table: Table, found: Distinct) -> float:
    """Values of the table in which equal rows are all there."""
    if table.kind == "presence" and table.matrix is not None:
        return float(np.diff(table.matrix.indptr)[found.rows] @ found.copies)
    return float(found.copies.sum() * table.n_vars)
