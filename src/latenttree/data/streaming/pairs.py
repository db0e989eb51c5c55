"""Pairs of sample and code that come in any order, sorted: sparse binary data, also beyond memory.

Samples are divided into ranges of `BUCKET_ROWS`. A pair goes to the bucket of its range; then each
bucket becomes a CSR block, which sorts and deduplicates it. Where blocks lie on disk, memory holds
one of them, whatever the order of the pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.streaming.scratch import Arrays, Part, ScratchFolder

IntArray = NDArray[np.int64]

BUCKET_ROWS = 1 << 14
"""Samples in a bucket, at most 2^16."""


class PairCollector:
    """Collects pairs in buckets."""

    def __init__(self, scratch: ScratchFolder, bucket_rows: int = BUCKET_ROWS) -> None:
        self.scratch, self.bucket_rows = scratch, bucket_rows
        self._buckets: dict[int, list[tuple[Part, Part]]] = {}

    def add(self, rows: NDArray[Any], codes: NDArray[Any]) -> None:
        """Some pairs: sample and code, by number."""
        bucket = rows // self.bucket_rows
        if (np.diff(bucket) < 0).any():
            order = np.argsort(bucket, kind="stable")
            rows, codes, bucket = rows[order], codes[order], bucket[order]
        starts = np.flatnonzero(np.diff(bucket, prepend=-1)).tolist()
        for start, stop in zip(starts, [*starts[1:], len(bucket)], strict=False):
            local = (rows[start:stop] % self.bucket_rows).astype(np.uint16)
            parts = self.scratch.add(local), self.scratch.add(codes[start:stop].astype(np.int32))
            self._buckets.setdefault(int(bucket[start]), []).append(parts)

    def sorted(self, n_rows: int, texts: Sequence[str]) -> Pairs:
        """The pairs, each once, by sample and code."""
        pairs = Pairs(self.scratch, texts)
        for bucket, start in enumerate(range(0, n_rows, self.bucket_rows)):
            parts = self._buckets.pop(bucket, [])
            rows, codes = (
                np.concatenate([np.empty(0, np.int32), *map(self.scratch.read, column)])
                for column in (zip(*parts, strict=True) if parts else ([], []))
            )
            shape = (min(self.bucket_rows, n_rows - start), len(texts))
            pairs.add(_ones(rows, codes, shape))
        return pairs


class Pairs:
    """Distinct (sample, code), by numbers: `texts[i]` is code i. Blocks of samples, each stored as
    how many codes each sample has, and its codes in order."""

    def __init__(self, scratch: ScratchFolder, texts: Sequence[str]) -> None:
        self.scratch, self.texts = scratch, tuple(texts)
        self.n_rows = self._n_pairs = 0
        self._blocks: list[tuple[Part, Part]] = []

    def add(self, block: sparse.csr_array) -> None:
        """Append samples."""
        counts = np.diff(block.indptr).astype(np.int32)
        parts = self.scratch.add(counts), self.scratch.add(block.indices.astype(np.int32))
        self._blocks.append(parts)
        self.n_rows += block.shape[0]
        self._n_pairs += block.nnz

    def __len__(self) -> int:
        return self._n_pairs

    def blocks(self) -> Iterator[sparse.csr_array]:
        """CSR of ones (True) of some samples at a time."""
        for counts, codes in self._blocks:
            indices = self.scratch.read(codes)
            indptr = np.append(0, np.cumsum(self.scratch.read(counts), dtype=np.int64))
            shape = (len(indptr) - 1, len(self.texts))
            yield sparse.csr_array((np.ones(len(indices), np.bool_), indices, indptr), shape=shape)

    def support(self) -> IntArray:
        """How many samples have each code."""
        counts = np.zeros(len(self.texts), dtype=np.int64)
        for block in self.blocks():
            counts += np.bincount(block.indices, minlength=len(counts))
        return counts

    def counts(self) -> dict[str, int]:
        """How many samples have each code that occurs, in the order of the codes."""
        pairs = sorted(zip(self.texts, self.support().tolist(), strict=True))
        return {text: n for text, n in pairs if n}

    def limited(self, texts: Sequence[str]) -> Pairs:
        """The pairs of these codes, which are numbered in this order; they need not occur."""
        if tuple(texts) == self.texts:
            return self
        return self.changed({text: [text] for text in texts}, texts)

    def changed(self, parents: Mapping[str, Sequence[str]], texts: Sequence[str]) -> Pairs:
        """Each code replaced by its parents, which are numbered as in `texts`; codes without any
        are left out."""
        number = {text: i for i, text in enumerate(texts)}
        links = [(i, number[p]) for i, t in enumerate(self.texts) for p in parents.get(t, ())]
        of, to = np.asarray(links, dtype=np.int32).reshape(-1, 2).T
        link = _ones(of, to, (len(self.texts), len(texts)))
        pairs = Pairs(self.scratch, texts)
        for block in self.blocks():
            product = sparse.csr_array(block @ link)
            product.sort_indices()
            pairs.add(product)
        return pairs

    def nonempty(self) -> tuple[Pairs, IntArray]:
        """Without the samples that have no code, and the numbers of the others."""
        pairs, kept, start = Pairs(self.scratch, self.texts), [np.empty(0, np.int64)], 0
        for block in self.blocks():
            rows = np.flatnonzero(np.diff(block.indptr))
            pairs.add(sparse.csr_array(block[rows]))
            kept.append(start + rows)
            start += block.shape[0]
        return pairs, np.concatenate(kept)

    def matrix(self, arrays: Arrays) -> sparse.csr_array:
        """(n_rows, codes) CSR of ones."""
        shape = (self.n_rows, len(self.texts))
        dtype = index_dtype(len(self), *shape)
        indices, indptr = arrays.new((len(self),), dtype), arrays.new((self.n_rows + 1,), dtype)
        data = arrays.new((len(self),), np.float32)
        indptr.append(np.zeros(1))
        for block in self.blocks():
            indptr.append(indices.n + block.indptr[1:].astype(np.int64))
            indices.append(block.indices)
            data.append(block.data)
        columns, ends, ones = arrays.finish()
        matrix = sparse.csr_array((ones, columns, ends), shape=shape, copy=False)
        matrix.has_canonical_format = True
        return matrix


def _ones(rows: NDArray[Any], columns: NDArray[Any], shape: tuple[int, int]) -> sparse.csr_array:
    """Canonical CSR of True at these places, which may repeat."""
    places = (rows.astype(np.int32), columns.astype(np.int32))
    return sparse.coo_array((np.ones(len(rows), np.bool_), places), shape=shape).tocsr()


def index_dtype(*sizes: int) -> Any:
    """The type of indices of a sparse matrix of these sizes, as SciPy chooses it."""
    return np.int32 if max(sizes) < 2**31 else np.int64
