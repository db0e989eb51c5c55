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


@dataclass(frozen=True, eq=False)
class PairCorrelations:
    """Correlations of all pairs of columns, `(w, w)` each.

    Attributes
    ----------
    correlation : over the samples that have both; 0 where a column does not vary there.
    variance : sampling variance of each correlation, whatever the distributions.
    deviation : (w,) standard deviation of each column over the samples that have it.
    n : weight of the samples that have both.
    """

    correlation: Floats
    variance: Floats
    deviation: Floats
    n: Floats


def n_columns(table: Table, scores: Scores) -> int:
    """Columns of the Gram product."""
    return len(scores.owners) * (1 + 2 * (not scores.two_valued) + table.has_missing)


def pair_correlations(table: Table, scores: Scores, n_jobs: int) -> PairCorrelations:
    """Pearson correlations by available cases, and their variances by the delta method,

    `n Var[r] = m22 - r (m31 + m13) + r^2 (m40 + m04 + 2 m22) / 4`

    with `m_ij = E[z_a^i z_b^j]` of standardised columns (Kendall and Stuart, The Advanced Theory
    of Statistics I, 10.9). Columns `z, z^2, z^3` go into one Gram product, where values are missing
    also whether they are known; the powers of two-valued columns follow from `z`. Means of columns
    are near 0, and are left out of the fourth moments."""
    width, total = len(scores.owners), n_columns(table, scores)
    columns = partial(_columns, scores, table.has_missing)
    sums = gram(columns, table, total, n_jobs).astype(np.float64)
    blocks = sums.reshape(total // width, width, total // width, width).transpose(0, 2, 1, 3)
    if table.has_missing:
        n = np.maximum(blocks[-1, -1], 1e-30)
        mean = blocks[0, -1] / n  # of a over the samples that have b
    else:
        n = np.full((width, width), table.total_weight)
        mean = _means(table, scores, n_jobs)[:, None] / n
    return _correlations(blocks, n, mean, table.has_missing, scores)


def _correlations(
    blocks: Floats, n: Floats, mean: Floats, has_missing: bool, scores: Scores
) -> PairCorrelations:
    """From sums of products of columns by kind `(., ., w, w)`, samples and means of each pair."""
    if scores.two_valued:
        square = 1 + scores.skewness[:, None] * mean  # z^2 = 1 + skewness z
    elif has_missing:
        square = blocks[1, -1] / n
    else:
        square = np.broadcast_to((np.diag(blocks[0, 0]) / np.diag(n))[:, None], n.shape)
    variance = np.maximum(square - mean**2, 0.0)
    unit = np.divide(1.0, np.sqrt(variance), out=np.zeros_like(variance), where=variance > 1e-9)
    r = np.clip((blocks[0, 0] / n - mean * mean.T) * unit * unit.T, -1.0, 1.0)
    if scores.two_valued:
        skewness = scores.skewness[:, None]
        m22, m31, m40 = 1 + skewness * skewness.T * r, r * (1 + skewness**2), 1 + skewness**2
    else:
        m22 = blocks[1, 1] / n * unit**2 * unit.T**2
        m31 = blocks[2, 0] / n * unit**3 * unit.T
        m40 = np.diag(blocks[1, 1] / n)[:, None] * unit**4
    spread = m22 - r * (m31 + m31.T) + r**2 * (m40 + m40.T + 2 * m22) / 4
    least = 1e-2 * (1 - r**2) ** 2  # where a few samples show no variation
    deviation = np.sqrt(np.diag(variance))
    return PairCorrelations(r, np.maximum(spread, least) / n, deviation, n)


def _means(table: Table, scores: Scores, n_jobs: int) -> Floats:
    """(w,) weighted sums of the columns."""
    total: Floats = table.run(Summed(partial(_sums, scores), len(scores.owners)), n_jobs)
    return total


def _sums(scores: Scores, chunk: Chunk, n_jobs: int) -> Floats:
    found = np.zeros(len(scores.owners))
    for part in chunk.parts(BLOCK):
        z = scores.of(part)[0]
        found += z.sum(axis=0, dtype=np.float64) if part.weights is None else part.weights @ z
    return found


def _columns(
    scores: Scores, has_missing: bool, chunk: Chunk, n_jobs: int
) -> tuple[Float32, Float32]:
    """(n, .) `z`, then `z^2, z^3` and whether `z` is known, where they are needed, times the roots
    of the weights; twice."""
    z, known = scores.of(chunk)
    kinds = [z] if scores.two_valued else [z, z * z, z * z * z]
    kinds += [known.astype(np.float32)] if has_missing else []
    both: Any = np.concatenate(kinds, axis=1) if len(kinds) > 1 else z
    if chunk.root_weights is not None:
        both = both * chunk.root_weights[:, None]
    return both, both
