"""Samples stored as CSR rows: vectors, of which zeros are not stored, and 0/1 variables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
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
from latenttree.engine import BLOCK, parallel
from latenttree.engine.kernels import kernel


@dataclass(frozen=True, eq=False)
class VectorStorage(Storage):
    """CSR rows `(n, coordinates)`; a missing variable stores nothing."""

    wide: ClassVar[str] = "vectors"

    def known(self, chunk: Chunk) -> NDArray[np.bool_] | None:
        """See `Storage`."""
        if not self.has_missing or chunk.known is not None:
            return chunk.known
        return np.ones((len(chunk), self.n_vars), dtype=np.bool_)

    def middle(self, first: Chunk) -> Floats:
        """Means over the first samples."""
        rows = self.rows(first)
        return np.bincount(rows.indices, rows.data, rows.shape[1]) / max(rows.shape[0], 1)

    def no_sums(self) -> Floats:
        """(coordinates, 3) zeros."""
        return np.zeros((int(self.offsets[-1]), 3))

    def add_sums(self, sums: Floats, chunk: Chunk, middle: Floats, n_jobs: int) -> None:
        """Add `w (x, (x - middle)^2, 1)` of stored x."""
        rows, p = self.rows(chunk), self.n_vars
        given = (rows.indptr, rows.indices, rows.data, chunk.weights_or_empty, middle, sums)
        parallel(
            lambda a, b: _add_squares(*given, self.offsets[a], self.offsets[b]),
            p,
            n_jobs,
            -(-p // 32),
        )

    def mean_and_variance(
        self, sums: Floats, middle: Floats, known: Floats
    ) -> tuple[Floats, Floats]:
        """Coordinates that are not stored are zeros."""
        total = np.repeat(known, self.widths)
        mean = sums[:, 0] / total
        square = sums[:, 1] + (total - sums[:, 2]) * middle**2
        return mean, np.maximum(square / total - (mean - middle) ** 2, 0.0)

    def features(self, basis: Float32, offset: Float32, root: Floats | None = None) -> Features:
        """See `Storage`."""
        return VectorFeatures(basis, offset, root, self)

    def block(self, chunk: Chunk, a: int) -> Floats:
        """See `Storage`."""
        columns = self.rows(chunk)[:, self.offsets[a] : self.offsets[a + 1]]
        return np.asarray(columns.toarray(), dtype=np.float64)

    def by_category(self, values: NDArray[Any], zero: str) -> list[NDArray[Any]]:
        """See `Storage`: every category of a one-hot block is a coordinate."""
        return [values[low:high] for low, high in pairwise(self.offsets.tolist())]

    @property
    def of_ones(self) -> Ints:
        """The first coordinate."""
        return self.offsets[:-1]

    def contrast(self, values: NDArray[Any]) -> NDArray[Any]:
        """See `Storage`: 0 is not stored."""
        return values

    def ones(self, chunk: Chunk) -> tuple[NDArray[Any], NDArray[Any]]:
        """See `Storage`."""
        rows = self.rows(chunk)
        return rows.indptr, rows.indices


@dataclass(frozen=True, eq=False)
class BinaryStorage(VectorStorage):
    """CSR rows of ones: every variable is 0 or 1, none is missing."""

    @property
    def is_binary(self) -> bool:
        """Always."""
        return True

    def middle(self, first: Chunk) -> Floats:
        """Not used: ones are counted."""
        return np.empty(0)

    def no_sums(self) -> Floats:
        """(p,) zeros."""
        return np.zeros(self.n_vars)

    def add_sums(self, sums: Floats, chunk: Chunk, middle: Floats, n_jobs: int) -> None:
        """Count the ones."""
        for part in chunk.parts(BLOCK):
            rows, weights = self.rows(part), part.weights
            if weights is not None:
                weights = np.repeat(weights, np.diff(rows.indptr))
            sums += np.bincount(rows.indices, weights, self.n_vars)

    def mean_and_variance(
        self, sums: Floats, middle: Floats, known: Floats
    ) -> tuple[Floats, Floats]:
        """Shares of ones, and their variances."""
        mean = sums / known
        return mean, mean * (1 - mean)

    def by_category(self, values: NDArray[Any], zero: str) -> list[NDArray[Any]]:
        """See `Storage`: 0 has no coordinate."""
        others = 1 - values if zero == "rest" else np.zeros_like(values)
        return list(np.stack([others, values], axis=1))


@dataclass(frozen=True, eq=False)
class VectorFeatures(Features):
    """A feature is a sum over stored coordinates."""

    storage: VectorStorage

    has_beside: ClassVar[bool] = True

    def of(self, chunk: Chunk, n_jobs: int) -> Float32:
        """See `Features`; one row of `basis` is read for each stored value."""
        rows, known = self.storage.rows(chunk), self.storage.known(chunk)
        out = np.empty((rows.shape[0], *self.offset.shape), dtype=np.float32)
        given = (rows.indptr, rows.indices, rows.data, self.storage.owners, self.basis, out)

        def work(a: int, b: int) -> None:
            out[a:b] = -self.offset
            project_rows(*given, a, b)
            if self.root is not None:
                apply_roots(out, self.root, a, b)
            if known is not None:
                out[a:b] *= known[a:b, :, None]

        parallel(work, len(out), n_jobs, PIECE)
        return out

    def squares(self, chunk: Chunk, n_jobs: int) -> Float32:
        """See `Features`."""
        z = self.of(chunk, n_jobs)
        return np.asarray(np.einsum("nai,nai->na", z, z))

    def add_cross(self, sums: CrossSums, chunk: Chunk, near: Ints, n_jobs: int) -> None:
        """See `Features`; a multiply-add for each stored value and column of the sums."""
        p, r = self.offset.shape
        index = (near[:, :, None] * r + np.arange(r)).reshape(p, -1)
        for part, z in self._weighed(chunk, n_jobs):
            known = self.storage.known(part)
            sums.beside[...] += _sums_beside(known, z, near).reshape(p, -1)
            self._scatter(sums, part, z, index, n_jobs)

    def add_rest(self, sums: CrossSums, chunk: Chunk, n_jobs: int) -> None:
        """Over the b other than a."""
        p, r = self.offset.shape
        index = np.arange(p * r).reshape(p, r)
        for part, z in self._weighed(chunk, n_jobs):
            others, known = z.sum(axis=1, keepdims=True) - z, self.storage.known(part)
            if known is not None:
                others *= known[:, :, None]
            sums.beside[...] += others.sum(axis=0, dtype=np.float64)
            self._scatter(sums, part, others, index, n_jobs)

    def _weighed(self, chunk: Chunk, n_jobs: int) -> Iterator[tuple[Chunk, Float32]]:
        """Blocks of samples with their features times their weights."""
        for part in chunk.parts(BLOCK):
            z = self.of(part, n_jobs)
            if part.weights is not None:
                z *= part.weights.astype(np.float32)[:, None, None]
            yield part, z

    def _scatter(self, sums: CrossSums, chunk: Chunk, z: Any, index: Ints, n_jobs: int) -> None:
        """Add `x[n, c] z[n, index[a]]` to the rows of coordinates c of a; a is one thread's."""
        rows, offsets, p = self.storage.rows(chunk), self.storage.offsets, len(index)
        given = (rows.indptr, rows.indices, rows.data, self.storage.owners, z.reshape(len(z), -1))
        parallel(
            lambda a, b: _add_rows(*given, index, sums.products, offsets[a], offsets[b]),
            p,
            n_jobs,
            -(-p // N_PIECES),
        )

    def subtract_own(self, products: Float32, counts: Floats, n_jobs: int) -> None:
        """Nothing: a's own part was left out."""


def _sums_beside(known: NDArray[np.bool_] | None, z: Float32, near: Ints) -> Floats:
    """Sums `(p, n_near, r)` of the features of b in `near[a]` over samples that have a."""
    if known is None:
        return np.asarray(z.sum(axis=0, dtype=np.float64)[near])
    sums = known.astype(np.float32).T @ z.reshape(len(z), -1)
    p, r = z.shape[1:]
    return np.asarray(sums.reshape(p, p, r)[np.arange(p)[:, None], near], dtype=np.float64)


@kernel
def _add_squares(indptr, indices, data, weights, middle, out, first, last):  # type: ignore[no-untyped-def]
    """`out[c] += w (x, (x - middle)^2, 1)` over stored x of coordinates first <= c < last."""
    one = len(weights) == 0
    for n in range(len(indptr) - 1):
        weight = 1.0 if one else weights[n]
        s = indptr[n] + np.searchsorted(indices[indptr[n] : indptr[n + 1]], first)
        while s < indptr[n + 1] and indices[s] < last:
            c = indices[s]
            out[c, 0] += weight * data[s]
            out[c, 1] += weight * (data[s] - middle[c]) ** 2
            out[c, 2] += weight
            s += 1


@kernel
def project_rows(indptr, indices, data, owner, basis, out, start, stop):  # type: ignore[no-untyped-def]
    """`out[n, owner[c]] += x[n, c] basis[c]` for samples start:stop. One row of `basis` is read for
    each stored value."""
    n_directions = basis.shape[1]
    for n in range(start, stop):
        for s in range(indptr[n], indptr[n + 1]):
            c = indices[s]
            own, value, towards = out[n, owner[c]], data[s], basis[c]
            for q in range(n_directions):
                own[q] += value * towards[q]


@kernel
def apply_roots(z, root, start, stop):  # type: ignore[no-untyped-def]
    """`z_a <- root_a z_a`, in place, for samples start:stop; roots are lower triangular."""
    n_directions = z.shape[2]
    for row in range(start, stop):
        for a in range(z.shape[1]):
            for i in range(n_directions - 1, -1, -1):
                t = 0.0
                for j in range(i + 1):
                    t += root[a, i, j] * z[row, a, j]
                z[row, a, i] = t


@kernel
def _add_rows(indptr, indices, data, owner, z, index, out, first, last):  # type: ignore[no-untyped-def]
    """`out[c, j] += x[n, c] z[n, index[owner[c], j]]` for coordinates first <= c < last."""
    width = index.shape[1]
    beside = np.empty(width, dtype=np.float32)
    for n in range(len(indptr) - 1):
        s = indptr[n] + np.searchsorted(indices[indptr[n] : indptr[n + 1]], first)
        before = -1
        while s < indptr[n + 1] and indices[s] < last:
            c = indices[s]
            if owner[c] != before:  # the features are the same for all of a variable's values
                before = owner[c]
                for j in range(width):
                    beside[j] = z[n, index[before, j]]
            value, row = np.float32(data[s]), out[c]
            for j in range(width):
                row[j] += value * beside[j]
            s += 1
