"""Pairs of sample and code that come in any order, sorted: sparse binary data, also beyond memory.

Samples are divided into ranges of `BUCKET_ROWS`. A pair goes to the bucket of its range; then each
bucket is sorted and deduplicated by itself. Where buckets lie on disk, memory holds one of them,
whatever the order of the pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.streaming.scratch import Arrays, Part, ScratchFolder

IntArray = NDArray[np.int64]
Change = Callable[[Any, Any], tuple[Any, Any]]

BUCKET_ROWS = 1 << 14
"""Samples in a bucket, at most 2^16."""


class PairCollector:
    """Collects pairs in buckets."""

    def __init__(self, scratch: ScratchFolder, bucket_rows: int = BUCKET_ROWS) -> None:
        self.scratch, self.bucket_rows = scratch, bucket_rows
        self._buckets: list[list[tuple[Part, Part]]] = []

    def add(self, rows: NDArray[Any], codes: NDArray[Any]) -> None:
        """Some pairs: sample and code, by number."""
        if not len(rows):
            return
        bucket = rows // self.bucket_rows
        if (np.diff(bucket) < 0).any():
            order = np.argsort(bucket, kind="stable")
            rows, codes, bucket = rows[order], codes[order], bucket[order]
        starts = np.flatnonzero(np.diff(bucket, prepend=-1))
        for start, stop in zip(starts, [*starts[1:], len(bucket)], strict=True):
            self._add_to(int(bucket[start]), rows[start:stop], codes[start:stop])

    def _add_to(self, bucket: int, rows: NDArray[Any], codes: NDArray[Any]) -> None:
        while len(self._buckets) <= bucket:
            self._buckets.append([])
        local = (rows - bucket * self.bucket_rows).astype(np.uint16)
        parts = self.scratch.add(local), self.scratch.add(codes.astype(np.int32))
        self._buckets[bucket].append(parts)

    def sorted(self, n_rows: int, texts: Sequence[str]) -> Pairs:
        """The pairs, each once, by sample and code."""
        pairs = Pairs(self.scratch, [], tuple(texts), n_rows, self.bucket_rows)
        for bucket in range(-(-n_rows // self.bucket_rows)):
            parts = self._buckets[bucket] if bucket < len(self._buckets) else []
            read = self.scratch.read
            rows = np.concatenate([np.empty(0, np.int64), *(read(part) for part, _ in parts)])
            codes = np.concatenate([np.empty(0, np.int64), *(read(part) for _, part in parts)])
            pairs.add(rows, codes)
            if bucket < len(self._buckets):
                self._buckets[bucket] = []
        return pairs


@dataclass(frozen=True, eq=False)
class Pairs:
    """Distinct (sample, code), by numbers: `texts[i]` is code i.

    Attributes
    ----------
    buckets : for each range of samples how many codes each sample has, and its codes in order.
    n_rows : samples.
    bucket_rows : samples in a bucket.
    """

    scratch: ScratchFolder
    buckets: list[tuple[Part, Part]]
    texts: tuple[str, ...]
    n_rows: int
    bucket_rows: int = BUCKET_ROWS

    def add(self, rows: NDArray[Any], codes: NDArray[Any]) -> None:
        """Append the next bucket: any pairs of its samples."""
        width = max(len(self.texts), 1)
        keys = _different(rows.astype(np.int64) * width + codes)
        size = min(self.bucket_rows, self.n_rows - len(self.buckets) * self.bucket_rows)
        counts = np.bincount(keys // width, minlength=size).astype(np.int32)
        self.buckets.append(
            (self.scratch.add(counts), self.scratch.add((keys % width).astype(np.int32)))
        )

    def __len__(self) -> int:
        return sum(int(codes.shape[0]) for _, codes in self.buckets)

    def _read(self) -> Iterator[tuple[IntArray, NDArray[np.int32]]]:
        """Samples of each bucket, numbered from its first, and their codes."""
        for counts, codes in self.buckets:
            number = self.scratch.read(counts)
            yield np.repeat(np.arange(len(number)), number), self.scratch.read(codes)

    def _codes(self) -> Iterator[NDArray[np.int32]]:
        return (self.scratch.read(codes) for _, codes in self.buckets)

    def support(self) -> IntArray:
        """How many samples have each code."""
        counts = np.zeros(len(self.texts), dtype=np.int64)
        for codes in self._codes():
            counts += np.bincount(codes, minlength=len(counts))
        return counts

    def counts(self) -> dict[str, int]:
        """How many samples have each code that occurs, in the order of the codes."""
        pairs = sorted(zip(self.texts, self.support().tolist(), strict=True))
        return {text: n for text, n in pairs if n}

    def limited(self, texts: Sequence[str]) -> Pairs:
        """The pairs of these codes, which are numbered in this order; they need not occur."""
        return self.changed(limiting(self.texts, texts), texts)

    def changed(self, change: Change, texts: Sequence[str]) -> Pairs:
        """The same samples with other codes, bucket by bucket."""
        pairs = Pairs(self.scratch, [], tuple(texts), self.n_rows, self.bucket_rows)
        for rows, codes in self._read():
            pairs.add(*change(rows, codes))
        return pairs

    def nonempty(self) -> tuple[Pairs, IntArray]:
        """Without the samples that have no code, and the numbers of the others."""
        rest = PairCollector(self.scratch, self.bucket_rows)
        kept, n_kept = [np.empty(0, np.int64)], 0
        for bucket, (rows, codes) in enumerate(self._read()):
            some = np.unique(rows)
            rest.add(n_kept + np.searchsorted(some, rows), codes)
            kept.append(bucket * self.bucket_rows + some)
            n_kept += len(some)
        return rest.sorted(n_kept, self.texts), np.concatenate(kept)

    def matrix(self, arrays: Arrays) -> sparse.csr_array:
        """(n_rows, codes) CSR of ones."""
        nnz = len(self)
        dtype = index_dtype(nnz, self.n_rows, len(self.texts))
        arrays.add(self._codes(), (nnz,), dtype)
        arrays.add(self._row_ends(dtype), (self.n_rows + 1,), dtype)
        arrays.add((np.ones(len(codes), np.float32) for codes in self._codes()), (nnz,), np.float32)
        indices, indptr, data = arrays.finish()
        shape = (self.n_rows, len(self.texts))
        matrix = sparse.csr_array((data, indices, indptr), shape=shape, copy=False)
        matrix.has_canonical_format = True
        return matrix

    def _row_ends(self, dtype: Any) -> Iterator[NDArray[Any]]:
        total = 0
        yield np.zeros(1, dtype=dtype)
        for counts, _ in self.buckets:
            ends = total + np.cumsum(self.scratch.read(counts), dtype=np.int64)
            yield ends.astype(dtype)
            total = int(ends[-1]) if len(ends) else total


def _different(keys: IntArray) -> IntArray:
    """Different keys in order; may sort `keys` in place. `numpy.unique` builds a hash table first,
    ten times slower here."""
    if (keys[1:] > keys[:-1]).all():
        return keys
    keys.sort()
    is_new = np.ones(len(keys), dtype=np.bool_)
    is_new[1:] = keys[1:] != keys[:-1]
    return keys[is_new]


def limiting(texts: Sequence[str], others: Sequence[str]) -> Change:
    """The change from codes of `texts` to those of `others`; codes without a counterpart are left
    out."""
    position = {text: i for i, text in enumerate(others)}
    new_code = np.asarray([position.get(text, -1) for text in texts], dtype=np.int64)

    def change(rows: IntArray, codes: NDArray[Any]) -> tuple[IntArray, IntArray]:
        new_codes = new_code[codes]
        kept = new_codes >= 0
        return rows[kept], new_codes[kept]

    return change


def index_dtype(*sizes: int) -> Any:
    """The type of indices of a sparse matrix of these sizes, as SciPy chooses it."""
    return np.int32 if max(sizes) < 2**31 else np.int64
