"""Equal rows of a table taken together, each with the number of times it occurs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from latenttree.data import Table
from latenttree.data.row_access import rows_to_scratch, scratch_map
from latenttree.data.row_keys import row_keys

MOST_DISTINCT = 0.8
"""Share of different rows up to which equal ones are taken together."""

LOOKED_AT = 1 << 14
"""Rows among which at least two are equal, or hardly any of a million are."""


def distinct_rows(table: Table) -> Table:
    """The different rows of a table of categories in the order of its content, in which equal rows
    stand together, each as often as it occurs; the table itself where that would save less than a
    fifth, or where a row is more than categories. O(n p), or what is stored."""
    if table.values is not None or table.kind == "blocks":
        return table
    if table.n_samples > 2 * LOOKED_AT:
        some = table.subset_rows(slice(LOOKED_AT))
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
    """(n,) whether a row is another than the one before it, by their keys."""
    keys = row_keys(table)
    found = np.ones(table.n_samples, dtype=np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=found[1:])
    return found


def _rows(table: Table, index: NDArray[np.int64]) -> Table:
    """Some rows; those of a table in a scratch file in another."""
    stored = table.codes if table.codes is not None else table.matrix
    if scratch_map(stored) is None:
        return table.subset_rows(index)
    name = "codes" if table.codes is not None else "matrix"
    rows = rows_to_scratch(stored, index)
    return table.replace(n_samples=len(index), **{name: rows})
