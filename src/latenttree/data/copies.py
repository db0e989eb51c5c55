"""Which variables are exact copies of each other, in one pass for many pairs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.chunk import Chunk
from latenttree.data.storage import CodedStorage, Storage

Floats = NDArray[np.float64]
Pair = tuple[int, int]

CODES_AT_ONCE = 1 << 22
"""Codes that are read before pairs that differ are left out."""


@dataclass(frozen=True)
class CopyTotal:
    """For each pair its joint counts, or the weight of samples that show it; whether it differs."""

    counts: tuple[Floats, ...]
    differ: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Copies:
    """The pass. `numbers` are the variables whose values are not codes: of these the numbers are
    compared, not what the structure sees of them."""

    pairs: tuple[Pair, ...]
    storage: Storage
    numbers: frozenset[int]

    def start(self) -> CopyTotal:
        """No samples; a number is no copy of a category."""
        widths = self.storage.widths
        shapes = [(widths[a], widths[b]) if self._coded((a, b)) else (1,) for a, b in self.pairs]
        mixed = [(a in self.numbers) != (b in self.numbers) for a, b in self.pairs]
        return CopyTotal(tuple(map(np.zeros, shapes)), np.array(mixed, dtype=np.bool_))

    def add(self, total: CopyTotal, chunk: Chunk, n_jobs: int) -> None:
        """Add a chunk to the pairs that do not differ yet."""
        width = max(64, CODES_AT_ONCE // max(self.storage.n_vars, 1) // 64 * 64)
        coded = [i for i in self._left(total) if self._coded(self.pairs[i])]
        if coded:
            for part in chunk.parts(width):
                coded = [i for i in coded if not total.differ[i]]
                for i in coded:
                    self._count(total, i, part)
        weights = np.ones(len(chunk)) if chunk.weights is None else chunk.weights
        blocks: Any = None
        for i in self._left(total):
            a, b = self.pairs[i]
            if a in self.numbers:
                found = _same(chunk.arrays[a], chunk.arrays[b], weights)
            elif not self._coded((a, b)):
                blocks = self.storage.rows(chunk).tocsc() if blocks is None else blocks
                found = _same_block(self._block(blocks, a), self._block(blocks, b), weights)
            else:
                continue
            total.counts[i][0] += found[0]
            total.differ[i] |= not found[1]

    def copies(self, total: CopyTotal, least: float) -> NDArray[np.bool_]:
        """(m,) whether pairs are equal, up to the names of categories, in every sample that has
        both, and samples with other values than the most frequent one weigh at least `least`."""
        found = np.zeros(len(self.pairs), dtype=np.bool_)
        for i, (pair, counts) in enumerate(zip(self.pairs, total.counts, strict=True)):
            weight = counts.sum() - (counts.max(initial=0) if self._coded(pair) else 0.0)
            same = not total.differ[i] and (not self._coded(pair) or _one_to_one(counts))
            found[i] = same and weight >= least
        return found

    def _left(self, total: CopyTotal) -> Iterator[int]:
        return iter(np.flatnonzero(~total.differ).tolist())

    def _coded(self, pair: Pair) -> bool:
        return isinstance(self.storage, CodedStorage) and not self.numbers.intersection(pair)

    def _count(self, total: CopyTotal, i: int, part: Chunk) -> None:
        counts = total.counts[i]
        one, other = self.storage.rows(part)[:, list(self.pairs[i])].T.astype(np.int64)
        both = (one >= 0) & (other >= 0)
        weights = None if part.weights is None else part.weights[both]
        cells = one[both] * counts.shape[1] + other[both]
        counts += np.bincount(cells, weights, counts.size).reshape(counts.shape)
        total.differ[i] = not _one_to_one(counts)

    def _block(self, columns: Any, a: int) -> Any:
        return columns[:, self.storage.offsets[a] : self.storage.offsets[a + 1]]


def _one_to_one(counts: Floats) -> bool:
    """Whether every category of either variable meets at most one of the other."""
    used = counts > 0
    return bool((used.sum(axis=0) <= 1).all() and (used.sum(axis=1) <= 1).all())


def _same_block(one: Any, other: Any, weights: Floats) -> tuple[float, bool]:
    """Weight of the samples that store any of a block, and whether two CSC blocks are equal."""
    used = float(weights[np.unique(one.indices)].sum())
    arrays = ("indptr", "indices", "data")
    pairs = ((getattr(one, name), getattr(other, name)) for name in arrays)
    return used, one.shape == other.shape and all(np.array_equal(x, y) for x, y in pairs)


def _same(one: Any, other: Any, weights: Floats) -> tuple[float, bool]:
    """Weight of the samples that show two columns or blocks of numbers, and whether these are equal
    where both are known."""
    if one.shape != other.shape or sparse.issparse(one) != sparse.issparse(other):
        return 0.0, False
    if sparse.issparse(one):
        return float(weights[np.diff(one.indptr) > 0].sum()), (one != other).nnz == 0
    known = ~(np.isnan(one) | np.isnan(other))
    rows = known if known.ndim == 1 else known.any(axis=1)
    return float(weights[rows].sum()), bool((one[known] == other[known]).all())
