"""The samples of a table as codes, chunk by chunk: what parameters and inference read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.data import Table
from latenttree.engine import BLOCK, blocks
from latenttree.moments.subspace import coordinate_moments

CHUNK_CODES = 1 << 26
"""Codes in a chunk, at most; at least a block of samples."""


class Samples:
    """Categorical samples that can be read again and again, in the same chunks every time.

    `keep` `(n_samples,)` marks those that are read, where some are held out."""

    def __init__(self, table: Table, keep: NDArray[np.bool_] | None = None) -> None:
        self.table, self.keep = table, keep
        self.n_samples = table.n_samples if keep is None else int(keep.sum())

    def __call__(self) -> Iterator[NDArray[Any]]:
        size = max(BLOCK, CHUNK_CODES // max(self.table.n_vars, 1) // BLOCK * BLOCK)
        for start, stop in blocks(self.table.n_samples, size):
            codes = codes_of(self.table, start, stop)
            yield codes if self.keep is None else codes[self.keep[start:stop]]


def codes_of(table: Table, start: int, stop: int) -> NDArray[Any]:
    """Categories `(stop - start, p)` of some samples; of one-hot blocks the category in use."""
    rows: Any = table.rows(start, stop)
    if table.kind == "codes":
        return np.asarray(rows)
    if table.kind == "presence":
        return np.asarray(rows.toarray() != 0).astype(np.uint8)
    out = np.zeros((stop - start, table.n_vars), dtype=np.int32)
    variable = np.searchsorted(table.offsets, rows.indices, side="right") - 1
    sample = np.repeat(np.arange(stop - start), np.diff(rows.indptr))
    out[sample, variable] = rows.indices - table.offsets[variable]
    return out


def is_one_hot(table: Table) -> bool:
    """Whether every variable is a single category in every sample, so that codes say it all."""
    if table.kind != "blocks":
        return True
    matrix: Any = table.matrix
    if matrix.nnz != table.n_samples * table.n_vars or not (matrix.data == 1).all():
        return False
    variable = np.searchsorted(table.offsets, matrix.indices, side="right") - 1
    return bool((variable.reshape(table.n_samples, -1) == np.arange(table.n_vars)).all())


def marginals(table: Table) -> list[NDArray[np.float64]]:
    """Frequencies of the categories of every variable."""
    mean = coordinate_moments(table)[0]
    if table.kind == "presence":
        return [np.array([1 - m, m]) for m in mean]
    return [mean[a:b] for a, b in zip(table.offsets[:-1], table.offsets[1:], strict=True)]


def category_bases(table: Table, basis: NDArray[Any]) -> list[NDArray[np.float64]]:
    """Rows of a basis over stored coordinates by variable, `(d, rank)` each."""
    wide = np.asarray(basis, dtype=np.float64)
    if table.kind == "presence":
        return [np.stack([np.zeros(wide.shape[1]), row]) for row in wide]
    return [wide[a:b] for a, b in zip(table.offsets[:-1], table.offsets[1:], strict=True)]
