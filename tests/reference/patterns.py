"""Patterns of a region, sample by sample, with a dictionary."""

from __future__ import annotations

import numpy as np

from latenttree.search.region_patterns import FINE, LEAST


def slow_patterns(codes, messages, weights, place, is_message):  # type: ignore[no-untyped-def]
    """By pattern, in order of appearance: weight, codes `(m,)` and mean messages `(m, k)`."""
    found: dict[tuple[object, ...], list[int]] = {}
    for s in range(len(weights)):
        key: list[object] = []
        for b, at in enumerate(place):
            bits = (
                np.maximum(messages[s, at].view(np.int32), LEAST) >> FINE if is_message[b] else None
            )
            key.append(codes[at, s] if bits is None else tuple(bits.tolist()))
        if weights[s] > 0:
            found.setdefault(tuple(key), []).append(s)
    rows = []
    for members in found.values():
        own = [-1 if is_message[b] else codes[at, members[0]] for b, at in enumerate(place)]
        message = [
            np.average(messages[members, at], axis=0, weights=weights[members])
            if is_message[b]
            else None
            for b, at in enumerate(place)
        ]
        rows.append((weights[members].sum(), own, message))
    return rows
