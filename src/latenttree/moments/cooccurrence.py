"""How often 0/1 variables occur together: exact counts from a packed store, tile by tile.

A tile is a range of ranks by a range of ranks; see `packing` for the store, and for how pairs are
counted.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from latenttree.engine import parallel
from latenttree.engine.kernels import kernel, subroutine
from latenttree.moments.intrinsics import popcount, prefetch
from latenttree.moments.mirror import STRIP
from latenttree.moments.packing import Packed, packed

__all__ = ["Packed", "all_counts", "count_bits", "packed", "pair_count", "tile_counts"]

WORDS = 256
"""Words of a variable in a block: those of eight variables stay in the first cache."""

AHEAD = 4
"""Samples that are prefetched: they lie anywhere in memory, and waiting for each would take as long
as its increments."""


@subroutine
def _both_bits(x, y):  # type: ignore[no-untyped-def]
    """Ones of `x & y`."""
    count = np.uint64(0)
    for i in range(len(x)):
        count += popcount(x[i] & y[i])
    return count


@kernel(inline="always")
def _two_by_four(one, other, a, b, w, v, out):  # type: ignore[no-untyped-def]
    """Eight pairs over words w:v: six loads for eight products."""
    x0, x1 = one[a, w:v], one[a + 1, w:v]
    y0, y1, y2, y3 = other[b, w:v], other[b + 1, w:v], other[b + 2, w:v], other[b + 3, w:v]
    zero = np.uint64(0)
    c0, c1, c2, c3, d0, d1, d2, d3 = zero, zero, zero, zero, zero, zero, zero, zero
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


@kernel
def count_bits(one, other, out):  # type: ignore[no-untyped-def]
    """`out[a, b] += ones of one[a] & other[b]` for all rows of two sets of bits, by blocks of
    `WORDS` words. Two loads, an and, a count and an addition for 512 samples of a pair at best."""
    n_one, n_other, n_words = len(one), len(other), one.shape[1]
    for low in range(0, n_other, 8):
        high = min(low + 8, n_other)
        for w in range(0, n_words, WORDS):
            v = min(w + WORDS, n_words)
            for a in range(0, n_one, 2):
                for b in range(low, high, 4):
                    if a + 2 <= n_one and b + 4 <= high:
                        _two_by_four(one, other, a, b, w, v, out)
                        continue
                    for i in range(a, min(a + 2, n_one)):
                        for j in range(b, min(b + 4, high)):
                            out[i, j] += _both_bits(one[i, w:v], other[j, w:v])


@kernel(inline="always")
def _first_from(ranks, start, stop, least):  # type: ignore[no-untyped-def]
    """First place of the sorted `ranks[start:stop]` with a value of `least` or more."""
    while start < stop:
        middle = (start + stop) // 2
        if ranks[middle] < least:
            start = middle + 1
        else:
            stop = middle
    return start


@kernel(inline="always")
def _increment(store, a, b0, b1, row):  # type: ignore[no-untyped-def]
    """`row[b - b0]` += samples that have the rare rank a and rank b, b0 <= b < b1."""
    ranks, bounds, samples = store.ranks, store.bounds, store.samples
    a -= len(store.bits)
    end = store.starts[a + 1]
    for t in range(store.starts[a], end):
        if t + AHEAD < end:
            n = samples[t + AHEAD]
            for s in range(bounds[n], bounds[n + 1], 16):
                prefetch(ranks, s)
        n = samples[t]
        s, stop = bounds[n], bounds[n + 1]
        if b0 > 0:
            s = _first_from(ranks, s, stop, b0)
        while s < stop and ranks[s] < b1:
            row[ranks[s] - np.uint32(b0)] += np.uint32(1)
            s += 1


@kernel
def tile_counts(store, a0, a1, b0, b1, out):  # type: ignore[no-untyped-def]
    """Samples that have both, for *ranks* a0 <= a < a1 and b0 <= b < b1, in `out[a - a0, b - b0]`.

    `out` is uint32, of that shape or larger. A tile lies below the diagonal (b1 <= a0) or on it; of
    one on it only pairs b <= a are right. Work: n / 64 words for a pair of frequent ranks; one
    increment of a counter in cache for each sample of a rare rank and each b that it has. Wide
    tiles of few rows are best: with b0 = 0 samples need no search.
    """
    out[: a1 - a0, : b1 - b0] = 0
    f = len(store.bits)
    if a0 < f and b0 < f:
        count_bits(store.bits[a0 : min(a1, f)], store.bits[b0 : min(b1, f)], out)
    for a in range(max(a0, f), a1):
        _increment(store, a, b0, min(b1, a + 1), out[a - a0])


@subroutine
def pair_count(store, a, b):  # type: ignore[no-untyped-def]
    """Samples that have both *variables* a and b (not ranks).

    Work: n / 64 words for two frequent ones, else the samples of the rare one, or of both."""
    x, y = store.rank[a], store.rank[b]
    if x < y:
        x, y = y, x
    f = len(store.bits)
    if x == y:
        return store.support[x]
    if x < f:
        return np.int64(_both_bits(store.bits[x], store.bits[y]))
    mine = store.samples[store.starts[x - f] : store.starts[x - f + 1]]
    if y < f:
        return _list_in_bits(mine, store.bits[y])
    return _common(mine, store.samples[store.starts[y - f] : store.starts[y - f + 1]])


@kernel(inline="always")
def _list_in_bits(samples, bits):  # type: ignore[no-untyped-def]
    """How many of a list of samples have their bit set."""
    count = np.int64(0)
    for n in samples:
        count += np.int64((bits[n // 64] >> np.uint64(n % 64)) & np.uint64(1))
    return count


@kernel(inline="always")
def _common(one, other):  # type: ignore[no-untyped-def]
    """How many values two sorted lists share."""
    i, j, count = 0, 0, np.int64(0)
    while i < len(one) and j < len(other):
        x, y = one[i], other[j]
        count += x == y
        i += x <= y
        j += y <= x
    return count


def all_counts(store: Packed, n_jobs: int = 1) -> NDArray[np.uint32]:
    """Counts `(p, p)` of all pairs of variables, in their own order."""
    p = len(store.order)
    out = np.empty((p, p), np.uint32)

    def work(start: int, stop: int) -> None:
        strip = np.empty((stop - start, stop), np.uint32)
        tile_counts(store, start, stop, 0, stop, strip)
        for a in range(start, stop):
            own, others = store.order[a], store.order[: a + 1]
            out[own, others] = out[others, own] = strip[a - start, : a + 1]

    parallel(work, p, n_jobs, STRIP)
    return out
