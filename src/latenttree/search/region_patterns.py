"""The evidence on a region as patterns: samples with nearly equal evidence are grouped.

Samples with the same codes, and with messages whose entries agree to a quarter of an octave, are
one pattern, with the sum of their weights and the mean of their messages. The likelihood of a
sample is linear in each message, so the error is of second order in a relative width of 0.2 or
less.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.engine.kernels import kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LANE = 64
"""Patterns that a kernel processes side by side; the number of patterns is a multiple of it."""

FINE = 21
"""Bits of a float32 that are ignored: two bits of the fraction stay, four steps to an octave."""

LEAST = int(np.float32(2.0**-20).view(np.int32))
"""Bits of 2^-20: smaller entries of a message (whose largest is 1) are not distinguished."""


class Branches(NamedTuple):
    """The evidence on a region: `n` patterns of `m` branches, padded by patterns of weight zero."""

    codes: NDArray[np.int32]  # (m, n), for branches that are observed nodes; -1 where unknown
    messages: NDArray[np.float32]  # (m, n_states, n), for branches that are messages
    is_message: NDArray[np.bool_]  # (m,)
    weights: Floats  # (n,) weight of each pattern


def as_patterns(
    codes: NDArray[Any],
    messages: NDArray[np.float32],
    weights: Floats,
    place: Ints,
    is_message: NDArray[np.bool_],
) -> Branches:
    """The patterns of some branches: branch b is row `place[b]` of `codes` `(c, n)`, or of
    `messages` `(n, e, n_states)`, which have a largest entry of 1. O(n m n_states)."""
    which, count = _distinguish(codes, messages.view(np.int32), weights, place, is_message)
    n = max(1, -(-count // LANE)) * LANE
    n_states = messages.shape[2] if is_message.any() else 1
    means = np.zeros((len(place), n_states, n))
    own = np.full((len(place), n), -1, dtype=np.int32)
    means[:, :, count:] = 1.0
    total = np.zeros(n)
    _add_up(codes, messages, weights, place, is_message, which, total, own, means)
    return Branches(own, means.astype(np.float32), is_message, total)


@kernel
def _distinguish(codes, bits, weights, place, is_message):  # type: ignore[no-untyped-def]
    """The pattern of every sample, numbered by first appearance, -1 for a weight of zero; and
    the number of patterns.

    Patterns are identified by 64-bit hashes of their parts."""
    n, n_states = len(weights), bits.shape[2]
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
            for i in range(n_states if is_message[b] else 1):
                part = (
                    max(bits[s, place[b], i], LEAST) >> FINE
                    if is_message[b]
                    else codes[place[b], s]
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
def _add_up(codes, messages, weights, place, is_message, which, total, own, means):  # type: ignore[no-untyped-def]
    """Weights, codes and mean messages of the patterns, written to the last three arguments."""
    for s in range(len(which)):
        if which[s] >= 0:
            total[which[s]] += weights[s]
    for s in range(len(which)):
        c = which[s]
        if c < 0:
            continue
        share = weights[s] / total[c]
        for b in range(len(place)):
            if is_message[b]:
                for i in range(means.shape[1]):
                    means[b, i, c] += share * messages[s, place[b], i]
            else:
                own[b, c] = codes[place[b], s]
