"""How often 0/1 variables occur together: exact counts, by whichever way is less work.

Of n samples and p variables, two ways to count a pair and one to mix them:

- *bits*: a variable is n bits; a pair is n / 64 words, `popcount(x & y)`, eight words at once where
  the machine can. Work n p^2 / 128 words, whatever the data.
- *increments*: for each sample that has a, one more for every b of that sample. Work is half the
  sum of the squared lengths of the samples; nothing for pairs that never meet.
- A *packed* store has bits for frequent variables and lists of samples for rare ones: frequent with
  frequent by bits, rare with all by increments. Where the line is drawn is `best_split`.

Variables are ranked: the frequent ones first, then the rare ones, both in their own order. A tile
is a range of ranks by a range of ranks, and tiles are all that sweeps over pairs need.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from latenttree.data import Table
from latenttree.engine import parallel

WORDS = 256
"""Words of a variable in a block: eight variables of it stay in the nearest cache."""

STRIP = 64
"""Ranks in a strip of counts: one thread's piece of work."""

ROWS = 4096
"""Samples in a piece of packing: whole cache lines of bits, so that no two threads share one."""

SPARSE = 0.1
"""Share of ones below which codes are packed as sparse samples."""

# Nanoseconds, one thread of an EPYC (Zen 4) with its neighbours busy: 350 for 4,680 words, 3 for
# 24; 1.2 for an increment whose counter is in the second cache.
BITS_PAIR = 1.3
BITS_WORD = 0.075
INCREMENT = 1.2


class Packed(NamedTuple):
    """0/1 variables packed for counting; plain arrays, for compiled code.

    A rank below `len(bits)` is frequent. `bits` has one row of n bits, in words, for each frequent
    rank. The samples of rare rank r are `samples[starts[r - f]:starts[r - f + 1]]`, ascending; the
    ranks of sample n are `ranks[bounds[n]:bounds[n + 1]]`, ascending. Where all are frequent both
    lists are empty. Bytes: n f / 8 + 4 (nonzeros of rare) + 4 (nonzeros).
    """

    order: NDArray[np.int64]  # (p,) variable of each rank
    rank: NDArray[np.int64]  # (p,) rank of each variable
    support: NDArray[np.int64]  # (p,) samples that have the variable of each rank
    bits: NDArray[np.uint64]  # (f, words)
    starts: NDArray[np.int64]  # (p - f + 1,)
    samples: NDArray[np.uint32]
    bounds: NDArray[np.int64]  # (n + 1,)
    ranks: NDArray[np.uint32]
    n_samples: int


@intrinsic
def popcount(_context: Any, _word: Any) -> Any:
    """Ones of a 64-bit word; loops over it become vector instructions."""

    def generate(_target: Any, builder: ir.IRBuilder, _signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), generate


# ---- what is less work ---------------------------------------------------------------------


def bits_cost(n_samples: Any, n_vars: Any) -> Any:
    """Nanoseconds for all pairs of `n_vars` variables by bits."""
    return n_vars * (n_vars + 1.0) / 2 * (BITS_PAIR + BITS_WORD * np.ceil(n_samples / 64))


def increments_cost(n_increments: Any) -> Any:
    """Nanoseconds for `n_increments` increments."""
    return INCREMENT * n_increments


def best_split(
    n_samples: int, n_frequent: NDArray[np.int64], n_increments: NDArray[np.int64]
) -> int:
    """Which of several splits is least work: `n_frequent[i]` variables by bits, the others by
    `n_increments[i]` increments."""
    return int(np.argmin(bits_cost(n_samples, n_frequent) + increments_cost(n_increments)))


def classes(support: NDArray[np.int64]) -> NDArray[np.int64]:
    """Classes `(p,)` of variables by their frequency, 0 the most frequent, two for each octave."""
    level = np.round(2 * np.log2(np.maximum(support, 1))).astype(np.int64)
    return np.asarray(level.max(initial=0) - level)


@njit(cache=True, nogil=True)
def _split_work(indptr, indices, group, start, stop, work):  # type: ignore[no-untyped-def]
    """`work[g]` += increments of samples start:stop if the first g groups are frequent.

    A sample with L ones, r of them rare, makes `r L - r (r + 1) / 2` (no variable with itself)."""
    n_groups = len(work)
    here = np.zeros(n_groups, np.int64)
    for n in range(start, stop):
        here[:] = 0
        for s in range(indptr[n], indptr[n + 1]):
            here[group[indices[s]]] += 1
        length = indptr[n + 1] - indptr[n]
        rare = length
        for g in range(n_groups):
            work[g] += rare * length - rare * (rare + 1) // 2
            rare -= here[g]


def _frequent(matrix: Any, support: NDArray[np.int64], n_jobs: int) -> NDArray[np.bool_]:
    """Which variables to hold as bits. One look at the samples."""
    group = classes(support)
    n_groups = int(group.max(initial=-1)) + 1

    def work(start: int, stop: int) -> NDArray[np.int64]:
        sums = np.zeros(n_groups + 1, np.int64)
        _split_work(matrix.indptr, matrix.indices, group, start, stop, sums)
        return sums

    n_samples = matrix.shape[0]
    work_of = np.sum(parallel(work, n_samples, n_jobs, ROWS), axis=0)
    n_frequent = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=n_groups))])
    return np.asarray(group < best_split(n_samples, n_frequent, work_of))


# ---- packing -------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _pack_sparse(indptr, indices, rank, bits, ranks, start, stop):  # type: ignore[no-untyped-def]
    """Bits of samples start:stop (a multiple of 64) and, if any is rare, their sorted ranks."""
    f = len(bits)
    mixed = len(ranks) > 0
    for n in range(start, stop):
        word, bit = n // 64, np.uint64(1) << np.uint64(n % 64)
        t = indptr[n]
        for s in range(indptr[n], indptr[n + 1]):
            r = rank[indices[s]]
            if r < f:
                bits[r, word] |= bit
                if mixed:
                    ranks[t] = r
                    t += 1
        if mixed:
            for s in range(indptr[n], indptr[n + 1]):
                r = rank[indices[s]]
                if r >= f:
                    ranks[t] = r
                    t += 1


@njit(cache=True, nogil=True)
def _list_rare(bounds, ranks, f, starts, samples):  # type: ignore[no-untyped-def]
    """Samples of every rare rank, by counting: `samples[starts[r - f]:starts[r - f + 1]]`."""
    place = starts[:-1].copy()
    for n in range(len(bounds) - 1):
        s = bounds[n + 1] - 1
        while s >= bounds[n] and ranks[s] >= f:
            r = np.int64(ranks[s]) - f
            samples[place[r]] = n
            place[r] += 1
            s -= 1


@njit(cache=True, nogil=True)
def pack_codes(codes, offsets, low, bits, start, stop):  # type: ignore[no-untyped-def]
    """Bits of samples start:stop (a multiple of 64): category c >= `low` of variable a is row
    `offsets[a] + c - low`."""
    for n in range(start, stop):
        word, bit = n // 64, np.uint64(1) << np.uint64(n % 64)
        for a in range(codes.shape[1]):
            c = np.int64(codes[n, a])
            if c >= low:
                bits[offsets[a] + c - low, word] |= bit


def empty_bits(n_columns: int, n_samples: int) -> NDArray[np.uint64]:
    """Zero bits of `n_columns` columns, in whole vectors of eight words."""
    return np.zeros((n_columns, -(-n_samples // 512) * 8), dtype=np.uint64)


def packed(table: Table, n_jobs: int = 1) -> Packed:
    """The store of a table of 0/1 variables (presence, or codes of two categories), none missing.

    Two looks at the samples."""
    if table.kind == "presence":
        return pack_matrix(table.matrix, n_jobs)
    assert table.codes is not None
    n, p = table.codes.shape
    support = np.count_nonzero(table.codes, axis=0).astype(np.int64)
    if support.sum() < SPARSE * n * p:
        from scipy import sparse

        return pack_matrix(sparse.csr_array(table.codes), n_jobs)
    bits, own = empty_bits(p, n), np.arange(p)
    parallel(lambda a, b: pack_codes(table.codes, own, 1, bits, a, b), n, n_jobs, ROWS)
    return _all_bits(support, bits, n)


def _all_bits(support: NDArray[np.int64], bits: NDArray[np.uint64], n_samples: int) -> Packed:
    own, none = np.arange(len(support)), np.zeros(1, np.int64)
    short = np.zeros(0, np.uint32)
    return Packed(own, own, support, bits, none, short, none, short, n_samples)


def pack_matrix(matrix: Any, n_jobs: int = 1, frequent: NDArray[np.bool_] | None = None) -> Packed:
    """The store of the stored places `(n, p)` of a canonical CSR matrix; `frequent` says which
    columns to hold as bits, by default whichever makes least work."""
    n, p = matrix.shape
    support = np.bincount(matrix.indices, minlength=p).astype(np.int64)
    if frequent is None:
        frequent = _frequent(matrix, support, n_jobs)
    order = np.concatenate([np.flatnonzero(frequent), np.flatnonzero(~frequent)])
    rank = np.empty(p, np.int64)
    rank[order] = np.arange(p)
    f = int(frequent.sum())
    bits = empty_bits(f, n)
    ranks = np.empty(matrix.nnz if f < p else 0, np.uint32)
    bounds = np.asarray(matrix.indptr, np.int64) if f < p else np.zeros(1, np.int64)
    parallel(
        lambda a, b: _pack_sparse(matrix.indptr, matrix.indices, rank, bits, ranks, a, b),
        n,
        n_jobs,
        ROWS,
    )
    support = support[order]
    starts = np.concatenate([[0], np.cumsum(support[f:])])
    samples = np.empty(int(starts[-1]), np.uint32)
    _list_rare(bounds, ranks, f, starts, samples)
    return Packed(order, rank, support, bits, starts, samples, bounds, ranks, n)


# ---- counting ------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _both_bits(x, y):  # type: ignore[no-untyped-def]
    """Ones of `x & y`."""
    count = np.uint64(0)
    for i in range(len(x)):
        count += popcount(x[i] & y[i])
    return count


@njit(cache=True, nogil=True)
def count_bits(one, other, out):  # type: ignore[no-untyped-def]
    """`out[a, b] += ones of one[a] & other[b]`, for all rows of two sets of bits.

    By blocks of `WORDS` words, two rows by four at a time: six loads for eight products."""
    n_one, n_other, n_words = len(one), len(other), one.shape[1]
    zero = np.uint64(0)
    for low in range(0, n_other, 8):
        high = min(low + 8, n_other)
        for w in range(0, n_words, WORDS):
            v = min(w + WORDS, n_words)
            for a in range(0, n_one, 2):
                for b in range(low, high, 4):
                    if a + 2 > n_one or b + 4 > high:
                        for i in range(a, min(a + 2, n_one)):
                            for j in range(b, min(b + 4, high)):
                                out[i, j] += _both_bits(one[i, w:v], other[j, w:v])
                        continue
                    x0, x1 = one[a, w:v], one[a + 1, w:v]
                    y0, y1, y2, y3 = (
                        other[b, w:v],
                        other[b + 1, w:v],
                        other[b + 2, w:v],
                        other[b + 3, w:v],
                    )
                    c0, c1, c2, c3 = zero, zero, zero, zero
                    d0, d1, d2, d3 = zero, zero, zero, zero
                    for i in range(v - w):
                        x, y = x0[i], x1[i]
                        c0 += popcount(x & y0[i])
                        c1 += popcount(x & y1[i])
                        c2 += popcount(x & y2[i])
                        c3 += popcount(x & y3[i])
                        d0 += popcount(y & y0[i])
                        d1 += popcount(y & y1[i])
                        d2 += popcount(y & y2[i])
                        d3 += popcount(y & y3[i])
                    out[a, b] += c0
                    out[a, b + 1] += c1
                    out[a, b + 2] += c2
                    out[a, b + 3] += c3
                    out[a + 1, b] += d0
                    out[a + 1, b + 1] += d1
                    out[a + 1, b + 2] += d2
                    out[a + 1, b + 3] += d3


@njit(cache=True, nogil=True)
def _first_from(ranks, start, stop, least):  # type: ignore[no-untyped-def]
    """First place of the sorted `ranks[start:stop]` with a value of `least` or more."""
    while start < stop:
        middle = (start + stop) // 2
        if ranks[middle] < least:
            start = middle + 1
        else:
            stop = middle
    return start


@njit(cache=True, nogil=True)
def tile_counts(store, a0, a1, b0, b1, out):  # type: ignore[no-untyped-def]
    """Samples that have both, for ranks a0 <= a < a1 and b0 <= b < b1, in `out[a - a0, b - b0]`.

    `out` is uint32, `(a1 - a0, b1 - b0)` or larger. A tile lies below the diagonal (`b1 <= a0`) or
    on it; of one on it only pairs b <= a are right. Work: n / 64 words for a pair of frequent
    ranks; one increment, of a counter in cache, for each sample of a rare rank a and each b that it
    has. Widest tiles are best: rows of all b < a need no search in the samples.
    """
    out[: a1 - a0, : b1 - b0] = 0
    f = len(store.bits)
    if a0 < f and b0 < f:
        mid, top = min(a1, f), min(b1, f)
        count_bits(store.bits[a0:mid], store.bits[b0:top], out)
    ranks, bounds = store.ranks, store.bounds
    for a in range(max(a0, f), a1):
        row = out[a - a0]
        last = min(b1, a + 1)
        for t in range(store.starts[a - f], store.starts[a - f + 1]):
            n = store.samples[t]
            s, stop = bounds[n], bounds[n + 1]
            if b0 > 0:
                s = _first_from(ranks, s, stop, b0)
            while s < stop and ranks[s] < last:
                row[ranks[s] - np.uint32(b0)] += np.uint32(1)
                s += 1


@njit(cache=True, nogil=True)
def pair_count(store, a, b):  # type: ignore[no-untyped-def]
    """Samples that have both *variables* a and b (not ranks).

    Work: n / 64 words for two frequent ones, else the samples of the rarer, and of both if the
    other is rare too."""
    x, y = store.rank[a], store.rank[b]
    if x < y:
        x, y = y, x
    f = len(store.bits)
    if x == y:
        return store.support[x]
    if x < f:
        return np.int64(_both_bits(store.bits[x], store.bits[y]))
    if store.support[x] == 0 or store.support[y] == 0:
        return np.int64(0)
    mine = store.samples[store.starts[x - f] : store.starts[x - f + 1]]
    if y < f:
        return _list_in_bits(mine, store.bits[y])
    return _common(mine, store.samples[store.starts[y - f] : store.starts[y - f + 1]])


@njit(cache=True, nogil=True)
def _list_in_bits(samples, bits):  # type: ignore[no-untyped-def]
    """How many of a list of samples have their bit set."""
    count = np.int64(0)
    for n in samples:
        count += np.int64((bits[n // 64] >> np.uint64(n % 64)) & np.uint64(1))
    return count


@njit(cache=True, nogil=True)
def _common(one, other):  # type: ignore[no-untyped-def]
    """How many values two sorted lists share."""
    i, j, count = 0, 0, np.int64(0)
    while i < len(one) and j < len(other):
        x, y = one[i], other[j]
        count += x == y
        i += x <= y
        j += y <= x
    return count


def counts(store: Packed, n_jobs: int = 1) -> NDArray[np.uint32]:
    """All counts `(p, p)`, of variables in their own order, both triangles."""
    p = len(store.order)
    out = np.empty((p, p), np.uint32)

    def work(start: int, stop: int) -> None:
        strip = np.empty((stop - start, stop), np.uint32)
        tile_counts(store, start, stop, 0, stop, strip)
        for a in range(start, stop):
            out[store.order[a], store.order[: a + 1]] = strip[a - start, : a + 1]
            out[store.order[: a + 1], store.order[a]] = strip[a - start, : a + 1]

    parallel(work, p, n_jobs, STRIP)
    return out
