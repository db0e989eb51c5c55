"""`Chunk`: some samples of a table, all that a pass sees of them at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.row_access import take_rows
from latenttree.data.values import LazyRows
from latenttree.engine import BLOCK, blocks

CHUNK_CODES = 1 << 24
"""Codes in a chunk, at most; at least a block of samples."""

CHUNK_VALUES = 1 << 19
"""The same where variables are not all categorical: their likelihoods are numbers for each of
them."""


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some samples.

    Attributes
    ----------
    rows : (n, p) categories, -1 where unknown and for variables of other families; or CSR rows of
        sparse binary variables.
    arrays : values of the variables of other families, see `data.values.Values`.
    weights : (n,) sample weights; None: all one.
    stored : (n, p) codes or CSR rows of the structural form; None where it is `rows`.
    known : (n, p) False where a variable of `stored` blocks is missing; None where none is, and for
        codes, where -1 says it. `Storage.known` answers for any table.
    soft : further evidence, weights over the states of nodes, see `inference.Evidence`.
    start : position of the first sample in its table.
    """

    rows: Any
    arrays: Mapping[int, Any] = field(default_factory=dict)
    weights: NDArray[np.float64] | None = None
    stored: Any = None
    known: NDArray[np.bool_] | None = None
    soft: Mapping[int, Any] = field(default_factory=dict)
    start: int = 0

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    @property
    def stop(self) -> int:
        """Position after the last sample."""
        return self.start + len(self)

    @cached_property
    def codes(self) -> NDArray[Any]:
        """(n, p) the categories as an array, whatever the form of the rows."""
        if sparse.issparse(self.rows):
            return np.asarray(self.rows.toarray() != 0).astype(np.uint8)
        return np.asarray(self.rows)

    @cached_property
    def columns(self) -> Any:
        """(n, p) the rows that are CSR as CSC."""
        return self.rows.tocsc()

    @property
    def weights_or_empty(self) -> NDArray[np.float64]:
        """(n,) weights, (0,) where each sample counts once, as kernels take them."""
        return np.empty(0) if self.weights is None else self.weights

    @property
    def root_weights(self) -> NDArray[np.float32] | None:
        """(n,) square roots of the weights; None without weights."""
        return None if self.weights is None else np.sqrt(self.weights).astype(np.float32)

    def parts(self, size: int) -> Iterator[Chunk]:
        """The samples, `size` at a time."""
        for start, stop in blocks(len(self), size):
            yield self if stop - start == len(self) else self.take(slice(start, stop))

    def take(self, index: Any) -> Chunk:
        """The samples of `index`, a slice, a mask or positions in the chunk; the `start` of a slice
        is that of its first sample."""
        others = (self.weights, self.stored, self.known)
        weights, stored, known = (None if x is None else take_rows(x, index) for x in others)
        arrays = LazyRows(self.arrays, index)
        soft = {v: x[index] if np.ndim(x) == 2 else x for v, x in self.soft.items()}
        before = index.indices(len(self))[0] if isinstance(index, slice) else 0
        rows = take_rows(self.rows, index)
        return Chunk(rows, arrays, weights, stored, known, soft, self.start + before)


def chunk_size(n_vars: int, has_values: bool, chunk_codes: int = CHUNK_CODES) -> int:
    """Samples in a chunk, a multiple of `BLOCK`, whatever the number of samples."""
    most = min(chunk_codes, CHUNK_VALUES) if has_values else chunk_codes
    return max(BLOCK, most // max(n_vars, 1) // BLOCK * BLOCK)
