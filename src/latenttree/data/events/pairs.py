"""Distinct pairs of sample and code in memory; `streaming.pairs.DiskPairs` are the same on disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.streaming.scratch import Arrays

IntArray = NDArray[np.int64]
Change = Callable[[Any, Any], tuple[Any, Any]]


class Pairs(Protocol):
    """Distinct (sample, code), by numbers; `texts[i]` is code i."""

    @property
    def texts(self) -> tuple[str, ...]:
        """The codes as text; code i is `texts[i]`."""

    def __len__(self) -> int: ...

    def counts(self) -> dict[str, int]:
        """How many samples have each code that occurs, in the order of the codes."""

    def limited(self, texts: Sequence[str]) -> Pairs:
        """The pairs of these codes, which are numbered in this order; they need not occur."""

    def changed(self, change: Change, texts: Sequence[str]) -> Pairs:
        """The same samples with the codes that `change(samples, codes)` returns."""

    def nonempty(self) -> tuple[Pairs, IntArray]:
        """Without the samples that have no code, and the numbers of the others."""

    def matrix(self, arrays: Arrays) -> sparse.csr_array:
        """(samples, codes) CSR of ones."""


class Collector(Protocol):
    """Collects pairs as they come."""

    def add(self, rows: NDArray[Any], codes: NDArray[Any]) -> None:
        """Add pairs of sample and code, by number."""

    def sorted(self, n_rows: int, texts: Sequence[str]) -> Pairs:
        """The pairs, each once, by sample and code."""


class MemoryPairCollector:
    """Collects pairs in memory."""

    def __init__(self) -> None:
        self._parts: list[tuple[IntArray, IntArray]] = []

    def add(self, rows: NDArray[Any], codes: NDArray[Any]) -> None:
        """Add pairs of sample and code, by number."""
        self._parts.append((rows, codes))

    def sorted(self, n_rows: int, texts: Sequence[str]) -> MemoryPairs:
        """The pairs, each once, by sample and code."""
        empty = [np.empty(0, dtype=np.int64)]
        rows = np.concatenate(empty + [rows for rows, _ in self._parts])
        codes = np.concatenate(empty + [codes for _, codes in self._parts])
        return MemoryPairs.distinct(rows, codes, tuple(texts), n_rows)


@dataclass(frozen=True, eq=False)
class MemoryPairs:
    """Pairs in memory: `texts[codes[i]]` is a code of sample `rows[i]` of `n_rows`."""

    rows: IntArray
    codes: IntArray
    texts: tuple[str, ...]
    n_rows: int

    @classmethod
    def distinct(
        cls, rows: IntArray, codes: IntArray, texts: tuple[str, ...], n_rows: int
    ) -> MemoryPairs:
        """The pairs, each once, ordered by sample and code."""
        width = max(len(texts), 1)
        keys = np.unique(rows * width + codes)
        return cls(keys // width, keys % width, texts, n_rows)

    def __len__(self) -> int:
        return len(self.rows)

    def counts(self) -> dict[str, int]:
        """See `Pairs.counts`."""
        support = np.bincount(self.codes, minlength=len(self.texts)).tolist()
        return {text: n for text, n in sorted(zip(self.texts, support, strict=True)) if n}

    def limited(self, texts: Sequence[str]) -> MemoryPairs:
        """See `Pairs.limited`."""
        return self.changed(limiting(self.texts, texts), texts)

    def changed(self, change: Change, texts: Sequence[str]) -> MemoryPairs:
        """See `Pairs.changed`."""
        return MemoryPairs.distinct(*change(self.rows, self.codes), tuple(texts), self.n_rows)

    def nonempty(self) -> tuple[MemoryPairs, IntArray]:
        """See `Pairs.nonempty`."""
        rows, number = np.unique(self.rows, return_inverse=True)
        return MemoryPairs(number.ravel(), self.codes, self.texts, len(rows)), rows

    def matrix(self, arrays: Arrays) -> sparse.csr_array:
        """See `Pairs.matrix`."""
        dtype = index_dtype(len(self), self.n_rows, len(self.texts))
        indptr = np.searchsorted(self.rows, np.arange(self.n_rows + 1)).astype(dtype)
        ones = np.ones(len(self.rows), dtype=np.float32)
        shape = (self.n_rows, len(self.texts))
        return sparse.csr_array((ones, self.codes.astype(dtype), indptr), shape=shape)


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
