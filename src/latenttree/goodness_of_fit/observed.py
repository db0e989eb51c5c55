"""Observed correlations of all pairs of scores, with their standard errors: one pass."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from latenttree.data.chunk import Chunk
from latenttree.data.table import Table
from latenttree.engine import BLOCK, Summed
from latenttree.engine.arrays import Float32, Floats
from latenttree.goodness_of_fit.scores import Scores
from latenttree.moments.gram import gram

LARGEST = 4.0
"""Larger scores, in standard deviations, count as this much in the variances of correlations."""


@dataclass(frozen=True, eq=False)
class PairCorrelations:
    """Correlations of all pairs of columns, `(w, w)` each.

    Attributes
    ----------
    correlation : over the samples that have both; 0 where a column does not vary there.
    variance : sampling variance of each correlation, whatever the distributions, outliers apart.
    deviation : (w,) standard deviation of each column over the samples that have it.
    n : weight of the samples that have both.
    """

    correlation: Floats
    variance: Floats
    deviation: Floats
    n: Floats


def n_columns(table: Table, scores: Scores) -> int:
    """Columns of the Gram product."""
    kinds = 1 + table.has_missing if scores.two_valued else 3 + 2 * table.has_missing
    return len(scores.owners) * kinds


def pair_correlations(table: Table, scores: Scores, n_jobs: int) -> PairCorrelations:
    """Pearson correlations by available cases, and their variances by the delta method,

    `n Var[r] = m22 - r (m31 + m13) + r^2 (m40 + m04 + 2 m22) / 4`

    with `m_ij = E[z_a^i z_b^j]` of standardised columns (Kendall and Stuart, The Advanced Theory
    of Statistics I, 10.9). In these moments scores beyond `LARGEST` are cut off there: an outlier
    moves all correlations of its variable alike, which the edge of the variable takes up, so that
    it is no noise in what a tree leaves over. With c the score cut off, columns `z, c^2, c^3` go
    into one Gram product, where values are missing also `z^2` and whether they are known; the
    powers of two-valued columns follow from `z`. Means of columns are near 0, and are left out of
    the fourth moments."""
    width, total = len(scores.owners), n_columns(table, scores)
    columns = partial(_columns, scores, table.has_missing)
    sums = gram(columns, table, total, n_jobs).astype(np.float64)
    blocks = sums.reshape(total // width, width, total // width, width).transpose(0, 2, 1, 3)
    n, mean, square, cut = _low_moments(table, scores, blocks, n_jobs)
    variance = np.maximum(square - mean**2, 0.0)
    unit = _inverse_root(variance)
    r = np.clip((blocks[0, 0] / n - mean * mean.T) * unit * unit.T, -1.0, 1.0)
    if scores.two_valued:
        spread = _two_valued_spread(r, scores.skewness[:, None])
    else:
        spread = _spread(r, blocks / n, unit, _inverse_root(cut))
    return PairCorrelations(r, spread / n, np.sqrt(np.diag(variance)), n)


def _low_moments(
    table: Table, scores: Scores, blocks: Floats, n_jobs: int
) -> tuple[Floats, Floats, Floats, Floats]:
    """Samples of each pair `(w, w)`, and over these the means of `z`, `z^2` and `c^2` of the first
    of the two, from the sums `blocks` of products of columns by kind `(., ., w, w)`."""
    if table.has_missing:
        n = np.maximum(blocks[-1, -1], 1e-30)
        mean, square, cut = (blocks[i, -1] / n for i in (0, -2, min(1, len(blocks) - 2)))
    else:
        n = np.full(blocks.shape[2:], table.total_weight)
        mean, cut = (x[:, None] / n for x in _sums_of(table, scores, n_jobs))
        square = np.broadcast_to((np.diag(blocks[0, 0]) / np.diag(n))[:, None], n.shape)
    if scores.two_valued:
        square = cut = 1 + scores.skewness[:, None] * mean  # z^2 = 1 + skewness z
    return n, mean, square, cut


def _inverse_root(variance: Floats) -> Floats:
    """0 where a column does not vary."""
    root = np.sqrt(variance)
    return np.divide(1.0, root, out=np.zeros_like(variance), where=variance > 1e-9)


def _two_valued_spread(r: Floats, skewness: Floats) -> Floats:
    """`n Var[r]` of two-valued columns."""
    m22, m31 = 1 + skewness * skewness.T * r, r * (1 + skewness**2)
    return _delta_method(r, m22, m31, 1 + skewness**2)


def _spread(r: Floats, moments: Floats, unit: Floats, cut_unit: Floats) -> Floats:
    """`n Var[r]` from mean products of columns by kind `(., ., w, w)`."""
    m22 = moments[1, 1] * cut_unit**2 * cut_unit.T**2
    m31 = moments[2, 0] * cut_unit**3 * unit.T
    m40 = np.diag(moments[1, 1])[:, None] * cut_unit**4
    return _delta_method(r, m22, m31, m40)


def _delta_method(r: Floats, m22: Floats, m31: Floats, m40: Floats) -> Floats:
    spread = m22 - r * (m31 + m31.T) + r**2 * (m40 + m40.T + 2 * m22) / 4
    least = 1e-2 * (1 - r**2) ** 2  # where a few samples show no variation
    return np.maximum(spread, least)


def _sums_of(table: Table, scores: Scores, n_jobs: int) -> Floats:
    """(2, w) weighted sums of the columns `z` and `c^2`."""
    width = 2 * len(scores.owners)
    total: Floats = table.run(Summed(partial(_sums, scores), width), n_jobs)
    return total.reshape(2, -1)


def _sums(scores: Scores, chunk: Chunk, n_jobs: int) -> Floats:
    found = np.zeros(2 * len(scores.owners))
    for part in chunk.parts(BLOCK):
        z = scores.of(part)[0]
        both = np.concatenate([z, _cut(z) ** 2], axis=1)
        found += both.sum(axis=0, dtype=np.float64) if part.weights is None else part.weights @ both
    return found


def _cut(z: Float32) -> Float32:
    return np.clip(z, -LARGEST, LARGEST)


def _columns(
    scores: Scores, has_missing: bool, chunk: Chunk, n_jobs: int
) -> tuple[Float32, Float32]:
    """(n, .) `z`, then `c^2`, `c^3`, `z^2` and whether `z` is known, where they are needed, times
    the roots of the weights; twice."""
    z, known = scores.of(chunk)
    kinds = [z]
    if not scores.two_valued:
        c = _cut(z)
        kinds += [c * c, c * c * c, *([z * z] if has_missing else [])]
    kinds += [known.astype(np.float32)] if has_missing else []
    both: Any = np.concatenate(kinds, axis=1) if len(kinds) > 1 else z
    if chunk.root_weights is not None:
        both = both * chunk.root_weights[:, None]
    return both, both
