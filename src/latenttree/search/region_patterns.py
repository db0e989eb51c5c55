"""The samples of a region as patterns: what comes in along few branches is often much the same.

Samples with the same codes, and with messages whose entries agree to a quarter of an octave, are
one pattern, as heavy as they are together, with the mean of their messages. The likelihood of a
sample is linear in each message, so what is lost is of second order in a width of 0.2 or less.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.engine.kernels import kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LANE = 64
"""Patterns that are worked on side by side: their number is a multiple of it."""

FINE = 21
"""Bits of a float32 that are left out: two bits of the fraction stay, four steps to an octave."""

LEAST = int(np.float32(2.0**-20).view(np.int32))
"""Smaller entries than this are as good as it."""


class Branches(NamedTuple):
    """What comes into a region, `n` patterns of `m` branches, the last ones of weight zero."""

    codes: NDArray[np.int32]  # (m, n), for branches that are observed nodes; -1 where unknown
    sent: NDArray[np.float32]  # (m, k, n), for branches that are messages
    is_sent: NDArray[np.bool_]  # (m,)
    weights: Floats  # (n,) how often each pattern counts


def as_patterns(
    codes: NDArray[Any],
    sent: NDArray[np.float32],
    weights: Floats,
    place: Ints,
    is_sent: NDArray[np.bool_],
) -> Branches:
    """The patterns of some branches: branch b is row `place[b]` of `codes` `(c, n)`, or of the
    messages `sent` `(n, e, k)`, scaled to a largest entry of 1. O(n m k)."""
    which, count = _tell_apart(codes, sent.view(np.int32), weights, place, is_sent)
    n = max(1, -(-count // LANE)) * LANE
    k = sent.shape[2] if is_sent.any() else 1
    told = np.zeros((len(place), k, n))
    own = np.full((len(place), n), -1, dtype=np.int32)
    told[:, :, count:] = 1.0
    total = np.zeros(n)
    _add_up(codes, sent, weights, place, is_sent, which, total, own, told)
    return Branches(own, told.astype(np.float32), is_sent, total)


@kernel
def _tell_apart(codes, bits, weights, place, is_sent):  # type: ignore[no-untyped-def]
    """The pattern of every sample, in order of appearance, -1 for a weight of zero; their number.

    Patterns are told apart by 64-bit mixes of their parts."""
    n, k = len(weights), bits.shape[2]
    size = 64
    while size < 2 * n:
        size *= 2
    table, keys = np.full(size, -1, dtype=np.int64), np.empty(n, dtype=np.uint64)
    which, count = np.full(n, -1, dtype=np.int64), 0
    for s in range(n):
        if not weights[s] > 0:
            continue
        key = np.uint64(0)
        for b in range(len(place)):
            for i in range(k if is_sent[b] else 1):
                part = (
                    max(bits[s, place[b], i], LEAST) >> FINE if is_sent[b] else codes[place[b], s]
                )
                key = (key ^ np.uint64(part + 2)) * np.uint64(0x9E3779B97F4A7C15)
                key ^= key >> np.uint64(29)
        at = np.int64(key & np.uint64(size - 1))
        while table[at] >= 0 and keys[table[at]] != key:
            at = (at + 1) & (size - 1)
        if table[at] < 0:
            table[at], keys[count] = count, key
            count += 1
        which[s] = table[at]
    return which, count


@kernel
def _add_up(codes, sent, weights, place, is_sent, which, total, own, told):  # type: ignore[no-untyped-def]
    """Weights, codes and mean messages of the patterns, written to the last three."""
    for s in range(len(which)):
        if which[s] >= 0:
            total[which[s]] += weights[s]
    for s in range(len(which)):
        c = which[s]
        if c < 0:
            continue
        share = weights[s] / total[c]
        for b in range(len(place)):
            if is_sent[b]:
                for i in range(told.shape[1]):
                    told[b, i, c] += share * sent[s, place[b], i]
            else:
                own[b, c] = codes[place[b], s]
