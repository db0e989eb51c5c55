"""The samples of a table as codes, chunk by chunk: what parameters and inference read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.data import Table, one_hot_codes
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
    columns = rows.indices.reshape(stop - start, table.n_vars)
    return np.asarray(columns - table.offsets[:-1], dtype=np.int32)


def is_one_hot(table: Table) -> bool:
    """Whether every variable is a single category in every sample, so that codes say it all."""
    return table.kind != "blocks" or one_hot_codes(table) is not None


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
