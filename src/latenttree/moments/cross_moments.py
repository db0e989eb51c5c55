"""Cross-moments of coordinates with features: one pass over the samples for all variables.

A coordinate in use adds the features of the sample to its own row: `N p s` additions for `s`
features of categorical variables, `nnz s` multiply-adds for vectors; no one-hot matrix, no product
of coordinates with coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from latenttree.data import Table
from latenttree.data.chunk import Chunk
from latenttree.data.storage import CrossSums, Features
from latenttree.engine import BLOCK, parallel
from latenttree.engine.arrays import Float32, Floats, Ints
from latenttree.moments.coordinates import feature_means, known_weights

CHUNK_FLOATS = 4_000_000
"""Features held at once; at least those of a block of samples."""

CARRIED_EVERY = 1 << 16
"""Samples whose sums are of single precision; these are added up in double precision."""

ROW_FLOATS = 1 << 16
"""Moments that are centred at a time, so that they stay in the cache."""


class CarriedSums(NamedTuple):
    """Sums of the last samples, and of those before."""

    last: CrossSums
    before: Floats  # as `last.products`; without rows for up to `CARRIED_EVERY` samples in all
    n_last: Ints  # (1,)


@dataclass(frozen=True, eq=False)
class CrossPass:
    """The pass: sums of coordinates times the features of the variables `near` `(p, n_near)` each;
    None: times the sum of the features of all others."""

    features: Features
    near: Ints | None
    n_samples: int

    def start(self) -> CarriedSums:
        """Zeros."""
        p, r = self.features.offset.shape
        s = r if self.near is None else r * self.near.shape[1]
        rows = len(self.features.basis) + 1
        last = CrossSums(np.zeros((rows, s), dtype=np.float32), np.zeros((p, s)))
        before = np.zeros((rows if self.n_samples > CARRIED_EVERY else 0, s))
        return CarriedSums(last, before, np.zeros(1, dtype=np.int64))

    def add(self, total: CarriedSums, chunk: Chunk, n_jobs: int) -> None:
        """Add a chunk."""
        width = self.features.offset.size
        at_once = max(BLOCK, min(CHUNK_FLOATS // width, CARRIED_EVERY) // BLOCK * BLOCK)
        for part in chunk.parts(at_once):
            if self.near is None:
                self.features.add_rest(total.last, part, n_jobs)
            else:
                self.features.add_cross(total.last, part, self.near, n_jobs)
            total.n_last[0] += len(part)
            if total.n_last[0] >= CARRIED_EVERY and len(total.before):
                np.add(total.before, total.last.products, out=total.before)
                total.last.products[...] = 0.0
                total.n_last[0] = 0


def cross_moments(table: Table, basis: Float32, near: Ints, mean: Floats, n_jobs: int) -> Float32:
    """`Cov(x_a, z_b)` for b in `near[a]`, side by side: `(coordinates, n_near n_directions)`. One
    pass.

    Features are centred before the products, so that a mean far from zero costs no digits."""
    features = table.storage.features(basis, feature_means(table, basis, mean))
    sums = _sums(table, features, near, n_jobs)
    share = known_weights(table) / table.total_weight
    pairs = np.repeat(share[:, None] * share[near], basis.shape[1], axis=1)
    return _centred(sums, table, features, mean, pairs, n_jobs)


def rest_moments(table: Table, basis: Float32, mean: Floats, n_jobs: int) -> Float32:
    """`Cov(x_a, sum_{b != a} z_b)` for every variable: all the others pooled in one feature.

    `(coordinates, n_directions)`, in one pass. For categorical variables the sum over all b is
    added up, and a's own part subtracted afterwards."""
    features = table.storage.features(basis, feature_means(table, basis, mean))
    sums, known = _sums(table, features, None, n_jobs), known_weights(table)
    features.subtract_own(sums.products[:-1], mean * np.repeat(known, table.widths), n_jobs)
    share = np.repeat((known / table.total_weight)[:, None], basis.shape[1], axis=1)
    return _centred(sums, table, features, mean, share, n_jobs)


def _sums(table: Table, features: Features, near: Ints | None, n_jobs: int) -> CrossSums:
    """The sums of `CrossPass` over all samples."""
    last, before, _ = table.run(CrossPass(features, near, table.n_samples), n_jobs)
    if len(before):
        np.add(before, last.products, out=last.products, casting="same_kind")
    return last


def _centred(
    sums: CrossSums, table: Table, features: Features, mean: Floats, share: Floats, n_jobs: int
) -> Float32:
    """`(products - mean x beside) / (n share)`, in place: subtracts what is left of the features'
    sums; `share` `(p, s)` of the samples have both variables. Of codes, the features' sums over the
    samples that have a variable are those over its rows."""
    size, out, own = table.total_weight * share, sums.products[:-1], table.storage.owners
    beside = sums.beside
    if not features.has_beside:
        columns = [np.bincount(own, column, len(size)) for column in out.T]
        beside = np.stack(columns, axis=1)

    def work(a: int, b: int) -> None:
        variables = own[a:b]
        out[a:b] = (out[a:b] - mean[a:b, None] * beside[variables]) / size[variables]

    parallel(work, len(out), n_jobs, max(1, ROW_FLOATS // out.shape[1]))
    return out
