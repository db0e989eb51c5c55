"""Exact quantiles of numbers that are read in parts, by radix selection on their bits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.data.columns.bins import NEGLIGIBLE, number_of_bins, quantile_edges

Floats = NDArray[np.float64]
Parts = Callable[[], Iterable[tuple[Floats, Floats | None]]]
"""Parts of a column, again at each call: known numbers, and their weights (None: one each)."""

_BITS = 16
_LEVELS = 64 // _BITS
_SIGN = np.uint64(1 << 63)


class Range(NamedTuple):
    """Extremes of a column, whether it is non-negative whole numbers, its total weight and rows."""

    low: float
    high: float
    whole: bool
    total: float
    rows: int


def range_of(parts: Parts) -> Range:
    """The range of a column, in one reading."""
    low, high, whole, total, rows = np.inf, -np.inf, True, 0.0, 0
    for x, weights in parts():
        if not x.size:
            continue
        low, high = min(low, float(x.min())), max(high, float(x.max()))
        whole = whole and low >= 0 and high < 2.0**53 and bool((x == np.floor(x)).all())
        total += len(x) if weights is None else float(weights.sum())
        rows += len(x)
    return Range(low, high, whole, total, rows)


def streamed_edges(parts: Parts, extent: Range, at_once: bool = False) -> Floats:
    """`bins.quantile_edges` of a column that is read in parts, six times; once where it may be
    held `at_once`.

    Edge j of b bins is the smallest value u with W(x <= u) >= j W / b. It is determined 16 bits at
    a time, highest first, from counts of the values that share the bits so far. Exact where weights
    are whole numbers, whose sums do not depend on the order. O(n) a reading."""
    if at_once:
        x, weights = zip(*parts(), strict=True)
        return quantile_edges(np.concatenate(x), _joined(weights))
    b = number_of_bins(extent.total)
    targets = np.arange(1, b) * extent.total / b
    edges = np.unique(_selected(parts, targets))
    edges = edges[edges < extent.high]
    return edges if edges.size else _second_largest(parts, extent.high)


def _joined(weights: Sequence[Floats | None]) -> Floats | None:
    known = [part for part in weights if part is not None]
    return np.concatenate(known) if known else None


def _selected(parts: Parts, targets: Floats) -> Floats:
    """The smallest value up to which the cumulative weight reaches each target."""
    prefixes = np.zeros(len(targets), dtype=np.uint64)
    below = np.zeros(len(targets))
    for level in range(_LEVELS):
        counts = _counts(parts, np.unique(prefixes), level)
        for i, target in enumerate(targets):
            running = below[i] + np.cumsum(counts[int(prefixes[i])])
            digit = min(int(np.searchsorted(running, target)), len(running) - 1)
            below[i] = running[digit - 1] if digit else below[i]
            prefixes[i] = (int(prefixes[i]) << _BITS) | digit
    return _floats(prefixes)


def _counts(parts: Parts, prefixes: NDArray[np.uint64], level: int) -> dict[int, Floats]:
    """For each prefix of `level` digits the weight of the values by their next digit."""
    by_prefix = {int(prefix): np.zeros(1 << _BITS) for prefix in prefixes}
    rest = np.uint64(64 - _BITS * (level + 1))
    for x, weights in parts():
        digits = _keys(x) >> rest
        for prefix, counts in by_prefix.items():
            mine: NDArray[np.bool_] | slice = slice(None)
            if level:
                mine = (digits >> np.uint64(_BITS)) == np.uint64(prefix)
            low = (digits[mine] & np.uint64((1 << _BITS) - 1)).astype(np.int64)
            chosen = None if weights is None else weights[mine]
            counts += np.bincount(low, chosen, 1 << _BITS)
    return by_prefix


def _keys(x: Floats) -> NDArray[np.uint64]:
    """Unsigned integers in the order of the floats: negative ones reversed, below the others."""
    bits = (x + 0.0).view(np.uint64)  # -0.0 is 0.0
    return np.asarray(np.where(bits & _SIGN, ~bits, bits | _SIGN))


def _floats(keys: NDArray[np.uint64]) -> Floats:
    bits = np.where(keys & _SIGN, keys & ~_SIGN, ~keys)
    return bits.view(np.float64)


def _second_largest(parts: Parts, high: float) -> Floats:
    below = [float(x[x < high].max()) for x, _ in parts() if (x < high).any()]
    return np.array([max(below)]) if below else np.empty(0)


def streamed_varies(parts: Parts, extent: Range) -> bool:
    """`bins.varies` of a column that is read in parts, twice."""
    unit = max(abs(extent.low), abs(extent.high)) or 1.0
    mean = sum(float(_weighed(x / unit, w).sum()) for x, w in parts()) / extent.total
    apart = sum(float(_weighed((x / unit - mean) ** 2, w).sum()) for x, w in parts())
    return bool(np.sqrt(apart / extent.total) > NEGLIGIBLE)


def _weighed(x: Floats, weights: Floats | None) -> Floats:
    return x if weights is None else x * weights


def all_different(parts: Parts, extent: Range) -> bool:
    """Whether whole numbers are all different; a byte of memory for each number in their range."""
    occurs = np.zeros(int(extent.high - extent.low) + 1, dtype=np.bool_)
    for x, _ in parts():
        occurs[(x - extent.low).astype(np.int64)] = True
    return int(np.count_nonzero(occurs)) == extent.rows
