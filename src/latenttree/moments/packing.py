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

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.data import Table
from latenttree.data.streaming.scratch import about_to_read
from latenttree.data.table import VALUES_PER_RANGE
from latenttree.engine import blocks, parallel
from latenttree.engine.kernels import kernel

Ints = NDArray[np.int64]

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


@kernel
def _split_work(indptr, indices, frequency_class, step, work):  # type: ignore[no-untyped-def]
    """`work[g]` = increments of every `step`-th sample if the first g classes are frequent.

    A sample with L ones, r of them rare, makes `r L - r (r + 1) / 2` (no variable with itself)."""
    n_classes = len(work)
    here = np.zeros(n_classes, np.int64)
    for n in range(0, len(indptr) - 1, step):
        here[:] = 0
        for s in range(indptr[n], indptr[n + 1]):
            here[frequency_class[indices[s]]] += 1
        length = indptr[n + 1] - indptr[n]
        rare = length
        for g in range(n_classes):
            work[g] += rare * length - rare * (rare + 1) // 2
            rare -= here[g]


def frequent_columns(matrix: Any, support: Ints) -> NDArray[np.bool_]:
    """Columns `(p,)` to hold as bits, decided from some of the samples."""
    frequency_class = frequency_classes(support)
    n_classes = int(frequency_class.max(initial=-1)) + 1
    step = max(1, matrix.shape[0] // PROBE)
    work = np.zeros(n_classes + 1, np.int64)
    _split_work(matrix.indptr, matrix.indices, frequency_class, step, work)
    sizes, ones = (np.bincount(frequency_class, w, minlength=n_classes) for w in (None, support))
    n_frequent = np.concatenate([[0], np.cumsum(sizes)])
    visits = ones.sum() - np.concatenate([[0], np.cumsum(ones)])
    return np.asarray(
        frequency_class < best_split(matrix.shape[0], n_frequent, work * step, visits)
    )


# ---- packing -------------------------------------------------------------------------------


@kernel
def _count_columns(indices, start, stop, out):  # type: ignore[no-untyped-def]
    """`out[indices[s]] += 1` for start <= s < stop."""
    for s in range(start, stop):
        out[indices[s]] += 1


def column_counts(matrix: Any, n_jobs: int) -> Ints:
    """Stored places `(p,)` of every column of a CSR matrix."""
    p = matrix.shape[1]
    total = np.zeros(p, np.int64)

    def work(start: int, stop: int) -> Ints:
        out = np.zeros(p, np.int64)
        _count_columns(matrix.indices, int(matrix.indptr[start]), int(matrix.indptr[stop]), out)
        return out

    for first, last in _row_ranges(matrix):
        count = partial(_shifted, work, first)
        total += np.sum(
            parallel(count, last - first, n_jobs, max(ROWS, -(-(last - first) // 16))), axis=0
        )
    return total


def _shifted(work: Any, first: int, start: int, stop: int) -> Any:
    """Call `work` on a range of rows that is given relative to `first`."""
    return work(first + start, first + stop)


def _row_ranges(matrix: Any) -> Iterator[tuple[int, int]]:
    """Ranges of rows of a CSR matrix, multiples of `ROWS` with about `VALUES_PER_RANGE` stored
    values, which are read together: a matrix may lie in a scratch file."""
    n = matrix.shape[0]
    step = max(1, VALUES_PER_RANGE * n // max(matrix.nnz, 1) // ROWS) * ROWS
    for first, last in blocks(n, step):
        about_to_read(matrix.indices, 4 * int(matrix.indptr[last] - matrix.indptr[first]))
        yield first, last


@kernel
def _pack_rows(indptr, indices, rank, bits, ranks, start, stop):  # type: ignore[no-untyped-def]
    """Bits of samples start:stop and, if any rank is rare, the sorted ranks of each."""
    f = len(bits)
    any_rare = len(ranks) > 0
    for n in range(start, stop):
        word, bit = n // 64, np.uint64(1) << np.uint64(n % 64)
        t = indptr[n]
        for s in range(indptr[n], indptr[n + 1]):
            r = rank[indices[s]]
            if r < f:
                bits[r, word] |= bit
                if any_rare:
                    ranks[t] = r
                    t += 1
        if any_rare:
            for s in range(indptr[n], indptr[n + 1]):
                r = rank[indices[s]]
                if r >= f:
                    ranks[t] = r
                    t += 1


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


def _zero_bits(n_columns: int, n_samples: int) -> NDArray[np.uint64]:
    """Zero bits of `n_columns` columns, in whole vectors of eight words."""
    return np.zeros((n_columns, -(-n_samples // 512) * 8), dtype=np.uint64)


def pack_categories(table: Table, offsets: Ints, least: int, n_jobs: int) -> NDArray[np.uint64]:
    """Bits of the categories from `least` on of a table of codes: one row each, those of variable a
    from `offsets[a]`."""
    bits = _zero_bits(int(offsets[-1]), table.n_samples)
    for first, last in blocks(table.n_samples, rows_per_range(table)):
        pack = partial(_pack_codes, table.rows(first, last), offsets, least, bits, first)
        parallel(pack, last - first, n_jobs, ROWS)
    return bits


def rows_per_range(table: Table) -> int:
    """Rows of codes that are read together, a multiple of `ROWS`."""
    return max(1, VALUES_PER_RANGE // max(table.n_vars, 1) // ROWS) * ROWS


def packed(table: Table, n_jobs: int = 1) -> Packed:
    """Packed samples of a table of 0/1 variables: sparse binary, or codes of two categories of
    which the second is counted. Nothing may be missing. Two passes over the samples."""
    if table.kind == "sparse_binary":
        return pack_matrix(table.matrix, n_jobs)
    n, p = table.n_samples, table.n_vars
    support = np.zeros(p, np.int64)
    for start, stop in table.row_ranges():
        support += np.count_nonzero(np.asarray(table.rows(start, stop)), axis=0)
    if support.sum() < SPARSE * n * p:
        return pack_matrix(_sparse_rows(table, int(support.sum())), n_jobs)
    own, none, short = np.arange(p), np.zeros(1, np.int64), np.zeros(0, np.uint32)
    bits = pack_categories(table, np.arange(p + 1), 1, n_jobs)
    return Packed(own, own, support, bits, none, short, none, short, n)


class _SparseRows(NamedTuple):
    """Rows of a sparse matrix of ones."""

    shape: tuple[int, int]
    nnz: int
    indptr: Ints
    indices: NDArray[np.int32]


def _sparse_rows(table: Table, nnz: int) -> _SparseRows:
    """Where the codes of a table are not zero."""
    ends, indices = np.zeros(table.n_samples + 1, np.int64), np.empty(nnz, np.int32)
    done = 0
    for start, stop in table.row_ranges():
        rows, columns = np.nonzero(np.asarray(table.rows(start, stop)))
        ends[start + 1 : stop + 1] = np.bincount(rows, minlength=stop - start)
        indices[done : done + len(columns)] = columns
        done += len(columns)
    return _SparseRows((table.n_samples, table.n_vars), nnz, np.cumsum(ends), indices)


def pack_matrix(matrix: Any, n_jobs: int = 1, frequent: NDArray[np.bool_] | None = None) -> Packed:
    """Packed samples of a canonical CSR matrix `(n, p)` whose stored places are ones; `frequent`
    `(p,)` are the columns to hold as bits, by default at the least cost."""
    n, p = matrix.shape
    support = column_counts(matrix, n_jobs)
    if frequent is None:
        frequent = frequent_columns(matrix, support)
    order = np.concatenate([np.flatnonzero(frequent), np.flatnonzero(~frequent)])
    rank = np.empty(p, np.int64)
    rank[order] = np.arange(p)
    f = int(frequent.sum())
    bits, ranks = _zero_bits(f, n), np.empty(matrix.nnz if f < p else 0, np.uint32)
    own = (matrix.indptr, matrix.indices, rank, bits, ranks)
    for first, last in _row_ranges(matrix):
        parallel(partial(_shifted, partial(_pack_rows, *own), first), last - first, n_jobs, ROWS)
    starts = np.concatenate([[0], np.cumsum(support[order[f:]])])
    samples = np.empty(int(starts[-1]), np.uint32)
    bounds = np.asarray(matrix.indptr if f < p else np.zeros(1), np.int64)
    _list_rare(bounds, ranks, f, starts, samples)
    return Packed(order, rank, support[order], bits, starts, samples, bounds, ranks, n)
