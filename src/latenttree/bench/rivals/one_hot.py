"""Categorical variables as columns of ones and zeros, for methods that know only such."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data import Table
from latenttree.samples import codes_of

Ints = NDArray[np.int64]


def columns(table: Table) -> tuple[Any, Ints]:
    """CSR (n, columns), and the variable of each column: one for two categories, else one each."""
    if table.kind == "presence":
        return sparse.csr_array(table.rows(0, table.n_samples)), np.arange(table.n_vars)
    codes = codes_of(table, 0, table.n_samples).astype(np.int64)
    dims = table.dims
    widths = np.where(dims == 2, 1, dims)
    starts = np.concatenate([[0], np.cumsum(widths)])
    place = codes + starts[:-1] - (dims == 2)  # of two categories the second is a column
    there = (dims > 2) | (codes == 1)
    rows = np.broadcast_to(np.arange(len(codes))[:, None], codes.shape)[there]
    ones = np.ones(len(rows))
    shape = (len(codes), int(starts[-1]))
    owner = np.repeat(np.arange(table.n_vars), widths)
    return sparse.csr_array((ones, (rows, place[there])), shape=shape), owner


def strongest(weights: NDArray[Any], owner: Ints) -> list[int]:
    """The factor (row of `weights`) with the largest sum over the columns of each variable."""
    total = np.zeros((len(weights), int(owner.max()) + 1))
    np.add.at(total.T, owner, np.nan_to_num(weights).T)
    return [int(i) for i in total.argmax(axis=0)]
