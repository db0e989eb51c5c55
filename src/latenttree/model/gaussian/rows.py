"""Blocks of samples for belief propagation: standardised, sorted by which values are missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from latenttree.engine import BLOCK
from latenttree.engine.arrays import Bools, Floats, Ints
from latenttree.model.gaussian.layout import GaussianLayout

BLOCK_VALUES = 1 << 21
"""Numbers that one working array of a block may hold."""

LEAST_ROWS = 256


class Kinds(NamedTuple):
    """The distinct missingness patterns of one leaf."""

    known: Floats  # (d, n_kinds) 1.0 where a value is known
    of_pattern: Ints  # (g,)
    of_row: Ints | None  # (r,); None where there is one kind for all

    def sums(self, by_pattern: Floats) -> Floats:
        """Sums over the patterns of each kind, `(..., g)` to `(..., n_kinds)`."""
        flat = by_pattern.reshape(-1, by_pattern.shape[-1])
        n = self.known.shape[1]
        found = np.array([np.bincount(self.of_pattern, row, n) for row in flat])
        return found.reshape(*by_pattern.shape[:-1], n)


@dataclass(frozen=True, eq=False)
class Block:
    """Rows `(one, x)` of samples, coordinates in the order of the layout, rows last.

    Attributes
    ----------
    values : (D, r) standardised, 0 where missing.
    ones : (r,) the constant of each row: 1 for a sample, its share for a condensed row.
    known : (D, g) 1.0 where a pattern has a value.
    pattern : (r,) pattern of each row, increasing; None where row i has pattern i.
    index : (r,) which sample a row is.
    kinds : for each leaf of the layout with full noise, its own missingness patterns.
    """

    values: Floats
    ones: Floats
    known: Floats
    pattern: Ints | None
    index: Ints
    kinds: tuple[Kinds, ...]

    @property
    def n_patterns(self) -> int:
        """Number g of missingness patterns in the block."""
        return int(self.known.shape[1])

    def spread(self, by_pattern: Floats) -> Floats:
        """Values by pattern, `(..., g)` or `(..., 1)`, as values that broadcast over rows."""
        if by_pattern.shape[-1] == 1 or self.pattern is None:
            return by_pattern
        return np.asarray(by_pattern[..., self.pattern])

    def gathered(self, by_row: Floats) -> Floats:
        """Sums over the rows of each pattern, `(..., r)` to `(..., g)`."""
        if self.pattern is None:
            return by_row
        starts = np.flatnonzero(np.diff(self.pattern, prepend=-1))
        return np.asarray(np.add.reduceat(by_row, starts, axis=-1))

    @property
    def count(self) -> Floats:
        """(g,) weight of each pattern."""
        return self.gathered(self.ones**2)


def block_size(layout: GaussianLayout) -> int:
    """Rows in a block, so that working arrays stay small whatever the tree."""
    widest = max(int(d) ** 2 for d in layout.dims[list(layout.nodes)])
    per_row = max(sum(layout.dim(c) ** 2 for c in range(layout.n_core)), 8 * widest, 16)
    return int(np.clip(BLOCK_VALUES // per_row, LEAST_ROWS, BLOCK))


def sample_block(
    X: Floats, layout: GaussianLayout, centre: Floats, scale: Floats, start: int, stop: int
) -> Block:
    """Samples start:stop of X `(n, D)`, NaN where missing, one row for each."""
    order = layout.columns
    part = (X[start:stop][:, order] - centre[order]) / scale[order]
    known = ~np.isnan(part)
    index, pattern, masks = sorted_by_pattern(known)
    values = np.where(known, part, 0.0)[index]
    return make_block(layout, values, np.ones(len(values)), masks, pattern, start + index)


def sorted_by_pattern(known: Bools) -> tuple[Ints, Ints, Bools]:
    """Rows sorted by pattern: their index, their pattern, and the patterns `(g, D)`."""
    n = len(known)
    if known.all():
        return np.arange(n), np.zeros(n, dtype=np.int64), np.ones((1, known.shape[1]), dtype=bool)
    packed = np.packbits(known, axis=1)
    width = 8 if packed.shape[1] <= 8 else packed.shape[1]  # whole numbers sort fastest
    padded = np.zeros((n, width), dtype=np.uint8)
    padded[:, : packed.shape[1]] = packed
    keys = padded.view(np.uint64 if width == 8 else np.dtype((np.void, width))).ravel()
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    index = np.argsort(inverse, kind="stable")
    return index, inverse[index], known[first]


def make_block(
    layout: GaussianLayout, values: Floats, ones: Floats, masks: Bools, pattern: Ints, index: Ints
) -> Block:
    """A block of rows sorted by `pattern`, an index into the rows of `masks`.

    Where most rows have a pattern of their own, each row becomes a pattern, which saves lookups."""
    n, n_patterns = len(values), len(masks)
    pattern_of: Ints | None = pattern
    if 2 * n_patterns > n:
        masks, pattern_of = masks[pattern], None
    kinds = tuple(_kinds(masks[:, rows], pattern_of) for rows in layout.block_rows)
    known = np.ascontiguousarray(masks.T, dtype=np.float64)
    return Block(np.ascontiguousarray(values.T), ones, known, pattern_of, index, kinds)


def _kinds(masks: Bools, pattern: Ints | None) -> Kinds:
    """The distinct rows of `masks` `(g, d)`."""
    if masks.all():
        return Kinds(np.ones((masks.shape[1], 1)), np.zeros(len(masks), dtype=np.int64), None)
    index, kind, different = sorted_by_pattern(masks)
    of_pattern = np.empty(len(masks), dtype=np.int64)
    of_pattern[index] = kind
    of_row = of_pattern if pattern is None else of_pattern[pattern]
    return Kinds(np.ascontiguousarray(different.T, dtype=np.float64), of_pattern, of_row)
