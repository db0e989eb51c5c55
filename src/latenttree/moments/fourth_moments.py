"""Fourth moments of whitened features of pairs: kurtosis ratios, and errors of any distribution.

They are measured on a part of the samples (`SampledFourthMoments`) or, where categories were
counted, on all of them at once (`CountedFourthMoments`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np

from latenttree.data import Table
from latenttree.data.chunk import Chunk
from latenttree.data.storage import CodedFeatures, Features, Storage
from latenttree.engine import BLOCK, Summed, parallel
from latenttree.engine.arrays import Float32, Floats, Ints
from latenttree.moments.contingency import Counts, projected
from latenttree.moments.gram import gram

PairSums = Callable[[Floats, Floats, slice], Floats]
"""What is added up, of some of the pairs: of `x` `(., 2 r + 1, n)`, as it is and times the
weights."""

CALIBRATION_SAMPLES = 8192
KURTOSIS_SAMPLES = 16_384


class FourthMoments(Protocol):
    """Fourth moments of the whitened features of all pairs of variables."""

    def fourth(self, n_jobs: int) -> Float32:
        """`E[|z_a|^2 |z_b|^2]` of all pairs, `(p, p)`."""

    def ratios(self, pairs: Ints, n_jobs: int) -> Floats:
        """Standard errors by the influence function over those of the Gaussian formula, of the
        distances of pairs `(m, 2)`; 1 where noise hides it."""


def _squares(
    white: Features, storage: Storage, chunk: Chunk, n_jobs: int
) -> tuple[Float32, Float32]:
    """`(n, p)` `|z_a|^2` of all variables or, where values are missing, `(n, 2 p)` with whether a
    sample has each, times the roots of the weights; twice."""
    squares, known = white.squares(chunk, n_jobs), storage.known(chunk)
    if known is not None:
        squares = np.concatenate([squares, known], axis=1)
    roots = chunk.root_weights
    both = np.asarray(squares if roots is None else squares * roots[:, None], np.float32)
    return both, both


class SampledFourthMoments:
    """`FourthMoments` of a part of the samples."""

    def __init__(self, table: Table, white: Features) -> None:
        self._table, self._white = table, white

    def fourth(self, n_jobs: int) -> Float32:
        """`E[|z_a|^2 |z_b|^2]`, `(p, p)`, over samples that have both."""
        part, p = self._table.thinned(KURTOSIS_SAMPLES), self._table.n_vars
        columns, gaps = partial(_squares, self._white, part.storage), part.has_missing
        sums = gram(columns, part, 2 * p if gaps else p, n_jobs)
        if gaps:
            return np.asarray(sums[:p, :p] / np.maximum(sums[p:, p:], np.float32(1e-30)))
        sums /= np.float32(part.total_weight)
        return sums

    def ratios(self, pairs: Ints, n_jobs: int) -> Floats:
        """See `FourthMoments`; two passes over `CALIBRATION_SAMPLES` samples."""
        part = self._table.thinned(CALIBRATION_SAMPLES)
        m, width = len(pairs), 2 * self._white.n_directions + 1
        over_pairs = partial(_pair_sums, self._white, part.storage, pairs)
        joint = part.run(Summed(partial(over_pairs, _joint_moments), (m, width, width)), n_jobs)
        centre, form, gaussian = _influences(joint, part.has_missing)
        squares = partial(_form_moments, centre, form)
        sums = part.run(Summed(partial(over_pairs, squares), (m, 2)), n_jobs)
        sums /= np.maximum(joint[:, 0, 0], 1e-300)[:, None]
        return _ratio(sums[:, 1] - sums[:, 0] ** 2, gaussian)


def _pair_sums(
    white: Features, storage: Storage, pairs: Ints, sums: PairSums, chunk: Chunk, n_jobs: int
) -> Floats:
    """`sums` of the features `x = (1, z_a, z_b)` of pairs `(m, 2)`, zero in the samples that lack
    either variable, over a chunk; some pairs after the other, samples lie side by side."""
    total: Any = 0.0
    for part in chunk.parts(BLOCK):
        z = white.of(part, n_jobs).transpose(1, 2, 0).astype(np.float64, order="C")
        known, weights = storage.known(part), part.weights

        def work(low: int, high: int, z: Any = z, known: Any = known, w: Any = weights) -> Floats:
            a, b = pairs[low:high].T
            x = np.concatenate([np.ones((len(a), 1, z.shape[2])), z[a], z[b]], axis=1)
            if known is not None:
                x *= (known[:, a] & known[:, b]).T[:, None]
            return sums(x, x if w is None else x * w, slice(low, high))

        total = total + np.concatenate(parallel(work, len(pairs), n_jobs, 8))
    return np.asarray(total)


def _joint_moments(x: Floats, weighted: Floats, some: slice) -> Floats:
    """Sums of `x x^T`, `(., 2 r + 1, 2 r + 1)`."""
    return np.asarray(x @ weighted.swapaxes(1, 2))


def _form_moments(centre: Floats, form: Floats, x: Floats, weighted: Floats, some: slice) -> Floats:
    """Sums of `psi` and `psi^2`, `(., 2)`, `psi = y^T form_i y` with
    `y = (z_a, z_b) - centre_i`."""
    y = x[:, 1:] - centre[some, :, None] * x[:, :1]
    psi = np.einsum("min,min->mn", form[some] @ y, y)
    share = psi * weighted[:, 0]
    return np.stack([share.sum(axis=1), np.einsum("mn,mn->m", share, psi)], axis=1)


class CountedFourthMoments:
    """`FourthMoments` of all samples, from the counts of all pairs of categories."""

    def __init__(self, counts: Counts, table: Table, white: CodedFeatures) -> None:
        self._counts, self._offsets, self._n = counts, table.offsets, table.n_samples
        self._white = white.table.astype(np.float64)

    def fourth(self, n_jobs: int) -> Float32:
        """`E[|z_a|^2 |z_b|^2]`, `(p, p)`."""
        norms = (self._white**2).sum(axis=1, keepdims=True)
        return (projected(self._counts, self._offsets, norms) / self._n).astype(np.float32)

    def ratios(self, pairs: Ints, n_jobs: int) -> Floats:
        """See `FourthMoments`."""
        r, m = self._white.shape[1], len(pairs)
        joint, spread = np.zeros((m, 2 * r + 1, 2 * r + 1)), np.zeros(m)
        joint[:, 0, 0] = self._n
        for i, (one, other, cells) in enumerate(map(self._pair, pairs)):
            joint[i, r + 1 :, 1 : r + 1] = (one.T @ cells @ other).T
        _, form, gaussian = _influences(joint, False)
        for i, (one, other, cells) in enumerate(map(self._pair, pairs)):
            own = [((z @ form[i, s, s]) * z).sum(1) for z, s in _sides(one, other, r)]
            psi = 2 * one @ form[i, :r, r:] @ other.T + own[0][:, None] + own[1]
            share = cells / self._n
            spread[i] = (share * psi**2).sum() - (share * psi).sum() ** 2
        return _ratio(spread, gaussian)

    def _pair(self, pair: Ints) -> tuple[Floats, Floats, Counts]:
        one, other = (slice(self._offsets[v], self._offsets[v + 1]) for v in pair)
        return self._white[one], self._white[other], self._counts[one, other]


def _sides(one: Floats, other: Floats, r: int) -> list[tuple[Floats, slice]]:
    """Features of either variable, and their places among the 2 r of a pair."""
    return [(one, slice(None, r)), (other, slice(r, None))]


def _influences(joint: Floats, gaps: bool) -> tuple[Floats, Floats, Floats]:
    """The influence of a sample on `-log |det C|` of each pair as a quadratic form of its features.

    `psi = -z_b^T C^-1 z_a + (|z_a|^2 + |z_b|^2) / 2`. From joint moments `(m, 2 r + 1, 2 r + 1)`:
    centres `(m, 2 r)`, forms `(m, 2 r, 2 r)`, and the variance of the Gaussian formula `(m,)`, NaN
    where C is noise and its inverse meaningless. With `gaps` features are whitened by the samples
    that have both."""
    r = joint.shape[1] // 2
    n = np.maximum(joint[:, 0, 0], 1e-300)
    one, other = slice(1, r + 1), slice(r + 1, None)
    moments = joint / n[:, None, None]
    centre = moments[:, 1:, 0] if gaps else np.zeros((len(joint), 2 * r))
    cross = np.swapaxes(moments[:, other, one], 1, 2)
    cross = cross - centre[:, :r, None] * centre[:, None, r:]
    root_a, root_b = (_own_roots(moments, side, gaps) for side in (one, other))
    cross = root_a @ cross @ np.swapaxes(root_b, 1, 2)
    s = np.linalg.svd(cross, compute_uv=False)
    clear = s[:, -1] * np.sqrt(n) >= 3
    inverse = np.linalg.inv(np.where(clear[:, None, None], cross, np.eye(r)))
    form = np.empty((len(joint), 2 * r, 2 * r))
    form[:, :r, :r] = np.swapaxes(root_a, 1, 2) @ root_a / 2
    form[:, r:, r:] = np.swapaxes(root_b, 1, 2) @ root_b / 2
    form[:, r:, :r] = -np.swapaxes(root_b, 1, 2) @ inverse @ root_a / 2
    form[:, :r, r:] = np.swapaxes(form[:, r:, :r], 1, 2)
    s = np.where(clear[:, None], s, 1.0)
    gaussian = ((1 - np.minimum(s, 1) ** 2) ** 2 / s**2).sum(axis=1)
    return centre, form, np.where(clear, gaussian, np.nan)


def _own_roots(moments: Floats, side: slice, gaps: bool) -> Floats:
    """Roots `(m, r, r)` that whiten features over the samples of the pair, except in directions in
    which they do not vary; the identity where all samples have both."""
    own, mean = moments[:, side, side], moments[:, side, 0]
    if not gaps:
        return np.broadcast_to(np.eye(own.shape[1]), own.shape)
    values, vectors = np.linalg.eigh(own - mean[:, :, None] * mean[:, None])  # lower triangle
    least = 1e-6 * np.maximum(values[:, -1:], 1e-12)
    scale = np.sqrt(np.where(values > least, values, np.inf))
    return np.swapaxes(vectors / scale[:, None], 1, 2)


def _ratio(spread: Floats, gaussian: Floats) -> Floats:
    """Roots of the ratios of two variances, 1 where the Gaussian one is NaN."""
    ratio = np.sqrt(np.maximum(spread, 0.0) / np.maximum(gaussian, 1e-12))
    return np.where(np.isnan(gaussian), 1.0, ratio)
