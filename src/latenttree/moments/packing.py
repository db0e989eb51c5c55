"""0/1 variables packed for counting pairs: bits for the frequent ones, lists for the rare ones.

With n samples and p variables, there are two ways to count how often pairs occur together:

- *bits*: a variable is n bits, a pair `popcount(x & y)` over n / 64 words, eight at once where the
  machine can. All pairs: n p^2 / 128 words, whatever the data.
- *increments*: for each sample that has a, one more for every b < a that it has. All pairs: half
  the sum of squared lengths of samples; nothing for pairs that never meet.

Pairs of frequent variables are counted by bits, pairs with a rare one by increments. The line
between them, from all bits to all increments, is where the cost is least (`best_split`). BLAS, at
n p^2 / 2 multiply-adds, is some thirty times the work of bits: it is used only for samples with
weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.data import Table
from latenttree.data.chunk import Chunk
from latenttree.data.storage import CodedStorage, Storage
from latenttree.engine import Summed, parallel
from latenttree.engine.arrays import Bools, Ints
from latenttree.engine.kernels import kernel
from latenttree.moments.coordinates import coordinate_sums

ROWS = 4096
"""Samples packed by one task: whole cache lines of bits, so that no two threads share one."""

PROBE = 16_384
"""Samples from which the cost of increments is estimated."""

SPARSE = 0.1
"""Share of ones below which codes are packed as sparse samples."""

# Nanoseconds on one thread of an EPYC (Zen 4): 350 for a pair of 4,680 words, 3 for one of 24.
# Increments, with how many samples are visited for them: NIPS 177 million and 0.5 million 0.20 s,
# NY Times 2,860 million and 26 million 5.5 s, 690 million and 4.4 million 1.2 s.
# Lists of samples and of ranks, 40 million ones: 0.16 s.
BITS_PAIR = 1.3
BITS_WORD = 0.075
INCREMENT = 1.2
VISIT = 60.0
LISTING = 4.0


class Packed(NamedTuple):
    """0/1 variables by rank (frequent ones first, both kinds in their own order); plain arrays.

    Rank r is frequent if r < f = `len(bits)`, and row r of `bits` has its n bits. The samples of a
    rare rank are `samples[starts[r - f]:starts[r - f + 1]]`, ascending; the ranks that sample i has
    are `ranks[bounds[i]:bounds[i + 1]]`, ascending. Where all are frequent both lists are empty.
    Bytes: n f / 8, 4 for each one of a rare variable, 4 for each one.
    """

    order: Ints  # (p,) variable of each rank
    rank: Ints  # (p,) rank of each variable
    support: Ints  # (p,) samples that have each rank
    bits: NDArray[np.uint64]  # (f, words)
    starts: Ints  # (p - f + 1,)
    samples: NDArray[np.uint32]
    bounds: Ints  # (n + 1,)
    ranks: NDArray[np.uint32]
    n_samples: int


# ---- the cheaper way -----------------------------------------------------------------------


def bits_cost(n_samples: Any, n_vars: Any) -> Any:
    """Nanoseconds for all pairs of `n_vars` variables by bits."""
    return n_vars * (n_vars + 1.0) / 2 * (BITS_PAIR + BITS_WORD * np.ceil(n_samples / 64))


def increments_cost(n_increments: Any, n_visits: Any) -> Any:
    """Nanoseconds for so many increments; a visit reads one sample for one variable."""
    return INCREMENT * n_increments + VISIT * n_visits


def best_split(n_samples: int, n_frequent: Any, n_increments: Any, n_visits: Any) -> int:
    """Number of the cheapest of several splits: `n_frequent[i]` variables by bits, the others by
    `n_increments[i]` increments in `n_visits[i]` visits. If any is rare, all ones of the data are
    listed, at most as many as there are visits."""
    cost = bits_cost(n_samples, n_frequent) + increments_cost(n_increments, n_visits)
    return int(np.argmin(cost + np.where(n_visits > 0, LISTING * np.max(n_visits), 0.0)))


def frequency_classes(support: Ints) -> Ints:
    """Classes `(p,)` of variables by frequency, 0 the most frequent, two for each octave."""
    level = np.round(2 * np.log2(np.maximum(support, 1))).astype(np.int64)
    return np.asarray(level.max(initial=0) - level)


def _split_work(
    storage: Storage, frequency_class: Ints, step: int, chunk: Chunk, n_jobs: int
) -> Ints:
    """Increments `(n_classes + 1,)` of every `step`-th sample if the first g classes are frequent.

    A sample with L ones, r of them rare, makes `r L - r (r + 1) / 2` (no variable with itself)."""
    if step > 1:
        chunk = chunk.take(slice(-chunk.start % step, None, step))
    indptr, indices = storage.ones(chunk)
    length, n_classes = np.diff(indptr).astype(np.int64), int(frequency_class.max(initial=-1)) + 1
    cell = np.repeat(np.arange(len(length)) * n_classes, length) + frequency_class[indices]
    here = np.bincount(cell, minlength=len(length) * n_classes).reshape(-1, n_classes)
    frequent = np.cumsum(np.column_stack([np.zeros(len(length), np.int64), here]), axis=1)
    rare = length[:, None] - frequent
    return np.asarray((rare * length[:, None] - rare * (rare + 1) // 2).sum(axis=0))


def frequent_columns(table: Table, support: Ints) -> Bools:
    """Variables `(p,)` to hold as bits, decided from some of the samples."""
    frequency_class, n = frequency_classes(support), table.n_samples
    step = max(1, n // PROBE)
    n_classes = int(frequency_class.max(initial=-1)) + 1
    some = partial(_split_work, table.storage, frequency_class, step)
    work = table.run(Summed(some, n_classes + 1))
    sizes, ones = (np.bincount(frequency_class, w, minlength=n_classes) for w in (None, support))
    n_frequent = np.concatenate([[0], np.cumsum(sizes)])
    visits = ones.sum() - np.concatenate([[0], np.cumsum(ones)])
    return np.asarray(frequency_class < best_split(n, n_frequent, work * step, visits))


# ---- packing -------------------------------------------------------------------------------


class Bits:
    """Bits of n samples, one row for each column, in whole vectors of eight words; pickled without
    the words of samples that were not added."""

    def __init__(self, n_columns: int, n_samples: int) -> None:
        self.words = np.zeros((n_columns, -(-n_samples // 512) * 8), dtype=np.uint64)
        self.used = slice(0, 0)

    def extend(self, start: int, stop: int) -> None:
        """Say that samples start:stop are added after those before."""
        first = start // 64 if self.used.stop == 0 else self.used.start
        self.used = slice(first, -(-stop // 64))

    def merge(self, other: Bits) -> None:
        """Add the bits of later samples."""
        self.words[:, other.used] |= other.words[:, other.used]
        self.extend(64 * other.used.start, 64 * other.used.stop)

    def __getstate__(self) -> Any:
        return self.words.shape, self.used, self.words[:, self.used]

    def __setstate__(self, state: Any) -> None:
        shape, self.used, words = state
        self.words = np.zeros(shape, dtype=np.uint64)
        self.words[:, self.used] = words


@dataclass(frozen=True, eq=False)
class CategoryBits:
    """The pass: bits of the categories from `least` on of codes: one row each, those of variable a
    from `offsets[a]`."""

    storage: Storage
    offsets: Ints
    least: int
    n_samples: int

    def start(self) -> Bits:
        """Zeros."""
        return Bits(int(self.offsets[-1]), self.n_samples)

    def add(self, total: Bits, chunk: Chunk, n_jobs: int) -> None:
        """Set the bits of a chunk."""
        codes = self.storage.rows(chunk)
        given = (codes, self.offsets, self.least, total.words, chunk.start)
        parallel(lambda a, b: _pack_codes(*given, a, b), len(codes), n_jobs, ROWS)
        total.extend(chunk.start, chunk.stop)


@kernel
def _pack_rows(indptr, indices, rank, bits, ranks, first, done, start, stop):  # type: ignore[no-untyped-def]
    """Bits of rows start:stop, of which the first is sample `first`, and, if any rank is rare, the
    sorted ranks of each, after `done` others."""
    f = len(bits)
    any_rare = len(ranks) > 0
    for i in range(start, stop):
        n = first + i
        word, bit = n // 64, np.uint64(1) << np.uint64(n % 64)
        t = done + indptr[i]
        for s in range(indptr[i], indptr[i + 1]):
            r = rank[indices[s]]
            if r < f:
                bits[r, word] |= bit
                if any_rare:
                    ranks[t] = r
                    t += 1
        if any_rare:
            for s in range(indptr[i], indptr[i + 1]):
                r = rank[indices[s]]
                if r >= f:
                    ranks[t] = r
                    t += 1


class RankedRows:
    """Bits of the frequent ranks and, if any is rare, the ranks of each sample; pickled without
    what was not filled."""

    def __init__(self, bits: Bits, n_samples: int, n_ones: int) -> None:
        self.bits = bits
        self.bounds = np.zeros(n_samples + 1 if n_ones else 1, np.int64)
        self.ranks = np.empty(n_ones, np.uint32)
        self.rows, self.filled = slice(0, 0), 0

    def extend(self, start: int, stop: int, ends: Ints) -> None:
        """Say that samples start:stop are added, whose ranks end at `ends` after those filled."""
        if len(self.ranks):
            self.bounds[start + 1 : stop + 1] = self.filled + ends
            self.filled += int(ends[-1]) if len(ends) else 0
        self.rows = slice(start if self.rows.stop == 0 else self.rows.start, stop)

    def merge(self, other: RankedRows) -> None:
        """Add later samples."""
        self.bits.merge(other.bits)
        self.ranks[self.filled : self.filled + other.filled] = other.ranks[: other.filled]
        first, last = other.rows.start, other.rows.stop
        self.extend(first, last, other.bounds[first + 1 : last + 1])

    def __getstate__(self) -> Any:
        ends = self.bounds[self.rows.start + 1 : self.rows.stop + 1]
        sizes = len(self.bounds), len(self.ranks)
        return self.bits, sizes, ends, self.rows, self.ranks[: self.filled]

    def __setstate__(self, state: Any) -> None:
        self.bits, (n_bounds, n_ones), ends, self.rows, ranks = state
        self.bounds, self.ranks = np.zeros(n_bounds, np.int64), np.empty(n_ones, np.uint32)
        self.bounds[self.rows.start + 1 : self.rows.stop + 1] = ends
        self.ranks[: len(ranks)], self.filled = ranks, len(ranks)


@dataclass(frozen=True, eq=False)
class RankRows:
    """The pass: samples of 0/1 variables by rank, `n_frequent` of them as bits."""

    storage: Storage
    rank: Ints
    n_frequent: int
    n_samples: int
    n_ones: int  # of all samples; 0 where all ranks are frequent

    def start(self) -> RankedRows:
        """No samples."""
        return RankedRows(Bits(self.n_frequent, self.n_samples), self.n_samples, self.n_ones)

    def add(self, total: RankedRows, chunk: Chunk, n_jobs: int) -> None:
        """Add a chunk."""
        indptr, indices = self.storage.ones(chunk)
        arrays = (indptr, indices, self.rank, total.bits.words, total.ranks)
        given = (*arrays, chunk.start, total.filled)
        parallel(lambda a, b: _pack_rows(*given, a, b), len(chunk), n_jobs, ROWS)
        total.bits.extend(chunk.start, chunk.stop)
        total.extend(chunk.start, chunk.stop, indptr[1:])


@kernel
def _list_rare(bounds, ranks, f, starts, samples):  # type: ignore[no-untyped-def]
    """`samples` of every rare rank, by counting."""
    place = starts[:-1].copy()
    for n in range(len(bounds) - 1):
        s = bounds[n + 1] - 1
        while s >= bounds[n] and ranks[s] >= f:
            r = np.int64(ranks[s]) - f
            samples[place[r]] = n
            place[r] += 1
            s -= 1


@kernel
def _pack_codes(codes, offsets, least, bits, first, start, stop):  # type: ignore[no-untyped-def]
    """Bits of rows start:stop of `codes`, of which the first is sample `first`: category c >=
    `least` of variable a is row `offsets[a] + c - least`."""
    for i in range(start, stop):
        n = first + i
        word, bit = n // 64, np.uint64(1) << np.uint64(n % 64)
        for a in range(codes.shape[1]):
            c = np.int64(codes[i, a])
            if c >= least:
                bits[offsets[a] + c - least, word] |= bit


def category_bits(table: Table, offsets: Ints, least: int, n_jobs: int) -> NDArray[np.uint64]:
    """Bits of the categories from `least` on of a table of codes, see `CategoryBits`."""
    return table.run(CategoryBits(table.storage, offsets, least, table.n_samples), n_jobs).words


def packed(table: Table, n_jobs: int = 1, frequent: Bools | None = None) -> Packed:
    """Packed samples of a table of 0/1 variables, of codes the second category. Nothing may be
    missing. Two passes over the samples, and one over some; `frequent` `(p,)` are the variables to
    hold as bits, by default at the least cost."""
    n, p = table.n_samples, table.n_vars
    support = coordinate_sums(table, n_jobs)[table.storage.of_ones].astype(np.int64)
    dense = isinstance(table.storage, CodedStorage) and support.sum() >= SPARSE * n * p
    if frequent is None and dense:
        own, none, short = np.arange(p), np.zeros(1, np.int64), np.zeros(0, np.uint32)
        bits = category_bits(table, np.arange(p + 1), 1, n_jobs)
        return Packed(own, own, support, bits, none, short, none, short, n)
    if frequent is None:
        frequent = frequent_columns(table, support)
    order = np.concatenate([np.flatnonzero(frequent), np.flatnonzero(~frequent)])
    rank = np.empty(p, np.int64)
    rank[order] = np.arange(p)
    f = int(frequent.sum())
    n_ones = int(support.sum()) if f < p else 0
    rows = table.run(RankRows(table.storage, rank, f, n, n_ones), n_jobs)
    starts = np.concatenate([[0], np.cumsum(support[order[f:]])])
    samples = np.empty(int(starts[-1]), np.uint32)
    _list_rare(rows.bounds, rows.ranks, f, starts, samples)
    words, bounds, ranks = rows.bits.words, rows.bounds, rows.ranks
    return Packed(order, rank, support[order], words, starts, samples, bounds, ranks, n)
