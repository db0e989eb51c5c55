"""Samples as the passes see them: standardised, sorted by which values they lack, and condensed.

Everything that is learned from samples `x` with weights `w` is a sum of products of the rows
`sqrt(w) (1, x)`: expected statistics and the log-likelihood are quadratic in them, with
coefficients that depend only on which values are missing. So many samples that lack the same values
can be replaced by any few rows with the same sum of products, a root of it. Where nothing is
missing, `D + 1` rows stand for all samples, whatever their number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.engine import BLOCK, blocks, parallel
from latenttree.model.gaussian.layout import Layout

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

BLOCK_VALUES = 1 << 21
"""Numbers that one working array of a block may hold."""

LEAST_ROWS = 256


class Kinds(NamedTuple):
    """The different ways in which one leaf is known."""

    known: Floats  # (d, n_kinds) 1.0 where there is a value
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
    kinds : for each leaf of the layout with full noise, which of its values are there.
    """

    values: Floats
    ones: Floats
    known: Floats
    pattern: Ints | None
    index: Ints
    kinds: tuple[Kinds, ...]

    @property
    def n_patterns(self) -> int:
        return int(self.known.shape[1])

    def spread(self, by_pattern: Floats) -> Floats:
        """`(..., g)` or `(..., 1)` to what broadcasts against `(..., r)`."""
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


def block_size(layout: Layout) -> int:
    """Rows in a block, so that working arrays stay small whatever the tree."""
    widest = max(int(d) ** 2 for d in layout.dims[list(layout.nodes)])
    per_row = max(sum(layout.dim(c) ** 2 for c in range(layout.n_core)), 8 * widest, 16)
    return int(np.clip(BLOCK_VALUES // per_row, LEAST_ROWS, BLOCK))


def sample_block(
    X: Floats, layout: Layout, centre: Floats, scale: Floats, start: int, stop: int
) -> Block:
    """Samples start:stop of X `(n, D)`, NaN where missing, one row for each."""
    order = layout.columns
    part = (X[start:stop][:, order] - centre[order]) / scale[order]
    known = ~np.isnan(part)
    index, pattern, masks = _patterns(known)
    values = np.where(known, part, 0.0)[index]
    return _block(layout, values, np.ones(len(values)), masks, pattern, start + index)


def _patterns(known: Bools) -> tuple[Ints, Ints, Bools]:
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


def _block(
    layout: Layout, values: Floats, ones: Floats, masks: Bools, pattern: Ints, index: Ints
) -> Block:
    """Rows that are sorted by `pattern`, a row of `masks`; mostly different patterns are told
    apart row by row, which saves looking them up."""
    n, n_patterns = len(values), len(masks)
    pattern_of: Ints | None = pattern
    if 2 * n_patterns > n:
        masks, pattern_of = masks[pattern], None
    kinds = tuple(_kinds(masks[:, rows], pattern_of) for rows in layout.block_rows)
    known = np.ascontiguousarray(masks.T, dtype=np.float64)
    return Block(np.ascontiguousarray(values.T), ones, known, pattern_of, index, kinds)


def _kinds(masks: Bools, pattern: Ints | None) -> Kinds:
    """The different rows of `masks` `(g, d)`."""
    if masks.all():
        return Kinds(np.ones((masks.shape[1], 1)), np.zeros(len(masks), dtype=np.int64), None)
    index, kind, different = _patterns(masks)
    of_pattern = np.empty(len(masks), dtype=np.int64)
    of_pattern[index] = kind
    of_row = of_pattern if pattern is None else of_pattern[pattern]
    return Kinds(np.ascontiguousarray(different.T, dtype=np.float64), of_pattern, of_row)


def training_blocks(
    X: Floats,
    layout: Layout,
    centre: Floats,
    scale: Floats,
    weights: Floats | None = None,
    smoothing: float = 0.0,
    n_jobs: int = 1,
) -> list[Block]:
    """Condensed rows of all samples, and `smoothing` pseudo-samples in which all variables are
    independent, with the centre and scale that standardise the data."""
    order = layout.columns
    root = np.ones(len(X)) if weights is None else np.sqrt(weights)
    values = (X[:, order] - centre[order]) / scale[order]
    known = ~np.isnan(values)
    index, pattern, masks = _patterns(known)
    np.nan_to_num(values, copy=False)
    values *= root[:, None]
    rows = _condensed(values, root, index, pattern, masks, smoothing, n_jobs)
    found = []
    for start, stop in blocks(len(rows.ones), block_size(layout)):
        here, index = slice(start, stop), np.arange(start, stop)
        some, local = np.unique(rows.pattern[here], return_inverse=True)
        found.append(
            _block(layout, rows.values[here], rows.ones[here], rows.masks[some], local, index)
        )
    return found


class _Rows(NamedTuple):
    values: Floats  # (r, D)
    ones: Floats  # (r,)
    pattern: Ints  # (r,) increasing
    masks: Bools  # (g, D)


def _condensed(
    values: Floats,
    root: Floats,
    index: Ints,
    pattern: Ints,
    masks: Bools,
    smoothing: float,
    n_jobs: int,
) -> _Rows:
    """Samples as they are where few have a pattern, roots of sums of products where many have.

    Pseudo-samples are a pattern of their own, without gaps, or join the one that is."""
    width = values.shape[1]
    sizes, widths = np.bincount(pattern, minlength=len(masks)), masks.sum(axis=1)
    heavy = sizes > widths + 1
    few = index[~heavy[pattern]]
    masks = np.concatenate([masks, np.ones((1, width), dtype=bool)])
    parts = [(values[few], root[few], pattern[~heavy[pattern]])]
    pseudo = smoothing * np.eye(width + 1)
    for g in np.flatnonzero(heavy).tolist():
        there = np.flatnonzero(masks[g])
        gram = _gram(values, root, index[pattern == g], there, n_jobs)
        if len(there) == width:
            gram, pseudo = gram + pseudo, pseudo[:0]
        factor = _root(gram)
        rows = np.zeros((len(factor), width))
        rows[:, there] = factor[:, 1:]
        parts.append((rows, factor[:, 0], np.full(len(rows), g)))
    if smoothing > 0 and len(pseudo):
        factor = np.sqrt(pseudo)
        parts.append((factor[:, 1:], factor[:, 0], np.full(width + 1, len(masks) - 1)))
    together = [np.concatenate(part) for part in zip(*parts, strict=True)]
    order = np.argsort(together[2], kind="stable")
    return _Rows(together[0][order], together[1][order], together[2][order], masks)


def _gram(values: Floats, root: Floats, some: Ints, there: Ints, n_jobs: int) -> Floats:
    """Sum of products of the rows `(root, values)`, over fixed blocks of samples."""

    def part(start: int, stop: int) -> Any:
        chosen = some[start:stop]
        rows = np.column_stack([root[chosen], values[np.ix_(chosen, there)]])
        return rows.T @ rows

    return np.asarray(sum(parallel(part, len(some), n_jobs, BLOCK)))


def _root(gram: Floats) -> Floats:
    """Rows R with `R^T R = gram`."""
    try:
        return np.asarray(np.linalg.cholesky(gram).T)
    except np.linalg.LinAlgError:  # as many samples as give it less than full rank, or collinear
        eigenvalues, vectors = np.linalg.eigh(gram)
        return np.asarray(np.sqrt(np.maximum(eigenvalues, 0.0))[:, None] * vectors.T)
