"""Samples stored as codes: the category of each variable, the only coordinate that is 1."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from latenttree.data.chunk import Chunk
from latenttree.data.storage.interface import (
    N_PIECES,
    PIECE,
    CrossSums,
    Features,
    Float32,
    Floats,
    Ints,
    Storage,
)
from latenttree.engine import parallel
from latenttree.engine.kernels import kernel

TILE = 256
"""Samples whose rows of sums stay in the first cache for all features."""


@dataclass(frozen=True, eq=False)
class CodedStorage(Storage):
    """Codes `(n, p)`, -1 where missing."""

    wide: ClassVar[str] = "variables with more than two categories"

    def known(self, chunk: Chunk) -> NDArray[np.bool_] | None:
        """See `Storage`."""
        return np.asarray(self.rows(chunk) >= 0) if self.has_missing else None

    def middle(self, first: Chunk) -> Floats:
        """Not used: categories are counted."""
        return np.empty(0)

    def no_sums(self) -> Floats:
        """(coordinates,) zeros."""
        return np.zeros(int(self.offsets[-1]))

    def add_sums(self, sums: Floats, chunk: Chunk, middle: Floats, n_jobs: int) -> None:
        """Count the categories; an addition for each code, of 0/1 variables a fifth of that."""
        codes, weights, p = self.rows(chunk), chunk.weights_or_empty, self.n_vars
        if self.is_binary and not self.has_missing and chunk.weights is None:
            ones = np.count_nonzero(codes, axis=0)
            sums += np.column_stack([len(codes) - ones, ones]).ravel()
            return
        parallel(
            lambda a, b: _count(codes, self.offsets, weights, sums, a, b), p, n_jobs, -(-p // 32)
        )

    def mean_and_variance(
        self, sums: Floats, middle: Floats, known: Floats
    ) -> tuple[Floats, Floats]:
        """Frequencies of categories, and their variances."""
        known = np.maximum(np.add.reduceat(sums, self.offsets[:-1]), 1e-300)
        mean = sums / np.repeat(known, self.widths)
        return mean, mean * (1 - mean)

    def features(self, basis: Float32, offset: Float32, root: Floats | None = None) -> Features:
        """See `Storage`."""
        return CodedFeatures(basis, offset, root, self)

    def block(self, chunk: Chunk, a: int) -> Floats:
        """See `Storage`."""
        return np.asarray(np.eye(int(self.widths[a]))[self.rows(chunk)[:, a]])

    def by_category(self, values: NDArray[Any], zero: str) -> list[NDArray[Any]]:
        """See `Storage`: every category is a coordinate."""
        return [values[low:high] for low, high in pairwise(self.offsets.tolist())]

    @property
    def is_binary(self) -> bool:
        """Whether all variables have two categories."""
        return bool((self.widths == 2).all())

    @property
    def of_ones(self) -> Ints:
        """The second of two categories."""
        return self.offsets[:-1] + 1

    def contrast(self, values: NDArray[Any]) -> NDArray[Any]:
        """See `Storage`."""
        return np.asarray(values[self.of_ones] - values[self.offsets[:-1]])

    def ones(self, chunk: Chunk) -> tuple[NDArray[Any], NDArray[Any]]:
        """See `Storage`."""
        rows, columns = np.nonzero(self.rows(chunk))
        counts = np.bincount(rows, minlength=len(chunk))
        return np.concatenate([[0], np.cumsum(counts)]), columns.astype(np.int32)


@dataclass(frozen=True, eq=False)
class CodedFeatures(Features):
    """A feature is the row of a table: that of the category."""

    storage: CodedStorage

    has_beside: ClassVar[bool] = False

    @cached_property
    def table(self) -> Float32:
        """(coordinates, r) the feature of each category."""
        own = self.storage.owners
        table = np.asarray(self.basis, dtype=np.float32) - self.offset[own]
        if self.root is not None:
            table = np.einsum("cij,cj->ci", self.root[own], table).astype(np.float32)
        return np.asarray(table)

    def of(self, chunk: Chunk, n_jobs: int) -> Float32:
        """See `Features`."""
        return self._looked_up(self.table, chunk, n_jobs)

    def squares(self, chunk: Chunk, n_jobs: int) -> Float32:
        """See `Features`."""
        norms = np.einsum("ci,ci->c", self.table, self.table)[:, None]
        return self._looked_up(norms, chunk, n_jobs)[:, :, 0]

    def _looked_up(self, table: Float32, chunk: Chunk, n_jobs: int) -> Float32:
        codes, offsets = self.storage.rows(chunk), self.storage.offsets
        out = np.empty((*codes.shape, table.shape[1]), dtype=np.float32)
        parallel(lambda a, b: look_up(codes, offsets, table, out, a, b), len(codes), n_jobs, PIECE)
        return out

    def add_cross(self, sums: CrossSums, chunk: Chunk, near: Ints, n_jobs: int) -> None:
        """See `Features`; `n p s` additions."""
        codes, weights, p = self.storage.rows(chunk), chunk.weights_or_empty, self.storage.n_vars
        r = self.n_directions
        z = np.empty((p * r, len(codes)), dtype=np.float32)
        given = (codes, self.storage.offsets, self.table, weights, z)
        parallel(lambda a, b: _columns(*given, a, b), p, n_jobs, -(-p // N_PIECES))
        self._scatter(sums, codes, z, (near[:, :, None] * r + np.arange(r)).reshape(p, -1), n_jobs)

    def add_rest(self, sums: CrossSums, chunk: Chunk, n_jobs: int) -> None:
        """Over all b, a too."""
        codes, weights, r = self.storage.rows(chunk), chunk.weights_or_empty, self.n_directions
        z = np.empty((r, len(codes)), dtype=np.float32)
        given = (codes, self.storage.offsets, self.table, weights, z)
        parallel(lambda a, b: _pooled_columns(*given, a, b), len(codes), n_jobs, 1024)
        self._scatter(sums, codes, z, np.tile(np.arange(r), (self.storage.n_vars, 1)), n_jobs)

    def _scatter(self, sums: CrossSums, codes: Any, z: Float32, index: Ints, n_jobs: int) -> None:
        """Add features `z[index[a]]` to the rows of the categories; a variable is one thread's."""
        p, given = len(index), (codes, self.storage.offsets, z, index, sums.products)
        parallel(lambda a, b: add_columns(*given, a, b), p, n_jobs, -(-p // N_PIECES))

    def subtract_own(self, products: Float32, counts: Floats, n_jobs: int) -> None:
        """See `Features`: `counts[c] z[c]` of each category c."""
        rows = max(1, (1 << 20) // max(self.n_directions, 1))
        for low in range(0, len(counts), rows):
            some = slice(low, low + rows)
            products[some] -= counts[some, None].astype(np.float32) * self.table[some]


@kernel
def _count(codes, offsets, weights, out, start, stop):  # type: ignore[no-untyped-def]
    """`out[offsets[a] + codes[n, a]] += weight` for variables start:stop; negative codes count
    nothing."""
    one = len(weights) == 0
    for n in range(codes.shape[0]):
        weight = 1.0 if one else weights[n]
        for a in range(start, stop):
            if codes[n, a] >= 0:
                out[offsets[a] + codes[n, a]] += weight


@kernel
def look_up(codes, offsets, table, out, start, stop):  # type: ignore[no-untyped-def]
    """`out[n, a] = table[offsets[a] + codes[n, a]]` for samples start:stop; zero where the code is
    negative. One row of `table` is read for each code."""
    r = table.shape[1]
    for n in range(start, stop):
        for a in range(codes.shape[1]):
            if codes[n, a] < 0:
                for q in range(r):
                    out[n, a, q] = 0.0
                continue
            row = offsets[a] + codes[n, a]
            for q in range(r):
                out[n, a, q] = table[row, q]


@kernel
def _columns(codes, offsets, table, weights, out, start, stop):  # type: ignore[no-untyped-def]
    """`out[a r + q, n] = weight table[offsets[a] + codes[n, a], q]` for variables start:stop in r
    directions; zero where the code is negative."""
    r = table.shape[1]
    one = len(weights) == 0
    for low in range(0, codes.shape[0], TILE):
        high = min(low + TILE, codes.shape[0])
        for a in range(start, stop):
            for n in range(low, high):
                weight = np.float32(1.0) if one else np.float32(weights[n])
                if codes[n, a] < 0:
                    weight = np.float32(0.0)
                row = table[offsets[a] + max(codes[n, a], 0)]
                for q in range(r):
                    out[a * r + q, n] = weight * row[q]


@kernel
def _pooled_columns(codes, offsets, table, weights, out, start, stop):  # type: ignore[no-untyped-def]
    """`out[q, n]`: the weighted sum over variables of those features, for samples start:stop."""
    r = table.shape[1]
    one = len(weights) == 0
    total = np.empty(r, dtype=np.float32)
    for n in range(start, stop):
        total[:] = 0.0
        for a in range(codes.shape[1]):
            if codes[n, a] >= 0:
                row = table[offsets[a] + codes[n, a]]
                for q in range(r):
                    total[q] += row[q]
        weight = np.float32(1.0) if one else np.float32(weights[n])
        for q in range(r):
            out[q, n] = weight * total[q]


@kernel
def add_columns(codes, offsets, z, index, out, start, stop):  # type: ignore[no-untyped-def]
    """`out[offsets[a] + codes[n, a], j] += z[index[a, j], n]` for variables start:stop.

    `z` is `(features, n)`; negative codes add to the last row of `out`, which is not used. By tiles
    of samples, two features at a time, so that their rows of `out` stay in the cache."""
    width = np.uint64(out.shape[1])
    flat = out.reshape(-1)
    place = np.empty(TILE, dtype=np.uint64)
    last = np.uint64(out.shape[0] - 1)
    one = np.uint64(1)
    for low in range(0, codes.shape[0], TILE):
        size = min(TILE, codes.shape[0] - low)
        for a in range(start, stop):
            for n in range(size):
                code = codes[low + n, a]
                place[n] = (last if code < 0 else np.uint64(offsets[a] + code)) * width
            for j in range(0, index.shape[1] - 1, 2):
                first, second, at = z[index[a, j]], z[index[a, j + 1]], np.uint64(j)
                for n in range(size):
                    cell = place[n] + at
                    flat[cell] += first[low + n]
                    flat[cell + one] += second[low + n]
            if index.shape[1] % 2 == 1:
                first, at = z[index[a, -1]], width - one
                for n in range(size):
                    flat[place[n] + at] += first[low + n]
