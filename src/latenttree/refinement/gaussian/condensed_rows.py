"""Samples condensed for EM: a few rows with the same sum of products.

Everything that is learned from samples `x` with weights `w` is a sum of products of the rows
`sqrt(w) (1, x)`: expected statistics and the log-likelihood are quadratic in them, with
coefficients that depend only on which values are missing. So samples that lack the same values can
be replaced by any rows with the same sum of products, such as a root of it. Where nothing is
missing, `D + 1` rows represent all samples, whatever their number.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.engine import BLOCK, blocks, parallel
from latenttree.model.gaussian.layout import GaussianLayout
from latenttree.model.gaussian.rows import Block, block_size, make_block, sorted_by_pattern

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def training_blocks(
    X: Floats,
    layout: GaussianLayout,
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
    index, pattern, masks = sorted_by_pattern(known)
    np.nan_to_num(values, copy=False)
    values *= root[:, None]
    rows = _condensed(values, root, index, pattern, masks, smoothing, n_jobs)
    found = []
    for start, stop in blocks(len(rows.ones), block_size(layout)):
        here, index = slice(start, stop), np.arange(start, stop)
        some, local = np.unique(rows.pattern[here], return_inverse=True)
        found.append(
            make_block(layout, rows.values[here], rows.ones[here], rows.masks[some], local, index)
        )
    return found


class _CondensedRows(NamedTuple):
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
) -> _CondensedRows:
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
    return _CondensedRows(together[0][order], together[1][order], together[2][order], masks)


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
