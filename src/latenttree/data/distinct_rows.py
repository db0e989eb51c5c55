"""Distinct rows of a table, each with the number of times it occurs as weight."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from latenttree.data.row_access import rearranged_rows, scratch_map
from latenttree.data.row_keys import row_keys
from latenttree.data.table import Table
from latenttree.engine import THREADS

MOST_DISTINCT = 0.8
"""Upper bound of the share of distinct rows for which equal ones are combined."""

PROBED_ROWS = 1 << 14
"""If all of this number of first rows in the order of content differ, hardly any rows are equal."""


def distinct_rows(table: Table) -> Table:
    """The distinct rows of a table of categories, weighted by their number.

    The rows of the table are in the order of its content, so that equal rows are adjacent. Returns
    the table itself where that would save less than a fifth, or where it has variables that are not
    categorical; of samples elsewhere, what the table brings. O(n p), or O(stored entries)."""
    if table.distinct is not None or table.engine is not THREADS:
        return table.distinct or table
    if table.values is not None or table.kind == "blocks":
        return table
    if table.n_samples > 2 * PROBED_ROWS:
        some = table.subset_rows(slice(PROBED_ROWS))
        if _first_of_equals(some).all():
            return table
    first = np.flatnonzero(_first_of_equals(table))
    if len(first) > MOST_DISTINCT * table.n_samples:
        return table
    if table.weights is None:
        weights = np.diff(first, append=table.n_samples).astype(np.float64)
    else:
        weights = np.add.reduceat(table.weights, first)
    return _rows(table, first).replace(weights=weights)


def _first_of_equals(table: Table) -> NDArray[np.bool_]:
    """(n,) whether a row differs from the one before it, by their keys."""
    keys = row_keys(table)
    is_first = np.ones(table.n_samples, dtype=np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=is_first[1:])
    return is_first


def _rows(table: Table, index: NDArray[np.int64]) -> Table:
    """Some rows of a table; where it is stored in a scratch file, in another scratch file."""
    stored = table.codes if table.codes is not None else table.matrix
    if scratch_map(stored) is None:
        return table.subset_rows(index)
    name = "codes" if table.codes is not None else "matrix"
    rows = rearranged_rows(stored, index)
    return table.replace(n_samples=len(index), **{name: rows})
