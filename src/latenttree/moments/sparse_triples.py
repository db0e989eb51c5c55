"""`triples.triple_moments` for sparse binary samples without missing values.

Then every view is `(1, z)` in every sample: only `z` is held, sums over the 1 are shared, and only
the ones of the observed nodes are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from latenttree.data.chunk import Chunk
from latenttree.engine import Source, parallel
from latenttree.engine.arrays import Floats
from latenttree.engine.kernels import kernel
from latenttree.moments.triples import TripleLayout, TripleMoments, ViewFeatures, add_products

MAX_VALUES = 1 << 23
"""Values of views that are held at once, at most ..."""

MIN_CHUNK, MAX_CHUNK = 256, 4096
"""... but at least those of MIN_CHUNK samples, and at most those of MAX_CHUNK."""


class SparseSums(NamedTuple):
    """Sums over samples, of views `z` in r directions each."""

    first: Floats  # (n_views, r) z
    own: Floats  # (n_views, r, r) z z^T
    pair: Floats  # (rows, 3, r, r) z z'^T of the views 0 and 1, 0 and 2, 1 and 2 of a row
    third: Floats  # (rows, r r, r)
    cross: Floats  # (H, 3 r, 3 r)
    emitted: Floats  # (B, 3, r) z in the samples that have the observed node
    occurrences: Floats  # (p,) samples that have each observed node
    both: Floats  # (C,) samples that have both ends of an edge
    n_samples: Floats  # (1,)


@dataclass(frozen=True, eq=False)
class SparseTriplePass:
    """The pass: sums of products of views `z` of sparse binary samples."""

    features: ViewFeatures  # (n_views, k - 1, n)
    layout: TripleLayout
    k: int

    def start(self) -> SparseSums:
        """Zeros."""
        layout, r = self.layout, self.k - 1
        views, rows, edges = layout.n_views, len(layout.view), len(layout.hidden)
        shapes: Sequence[tuple[int, ...]] = (
            (views, r),
            (views, r, r),
            (rows, 3, r, r),
            (rows, r * r, r),
            (edges, 3 * r, 3 * r),
            (len(layout.emitted), 3, r),
            (len(layout.dims),),
            (len(layout.counted),),
            (1,),
        )
        return SparseSums(*map(np.zeros, shapes))

    def add(self, total: SparseSums, chunk: Chunk, n_jobs: int) -> None:
        """Add a chunk, as many samples at a time as `MAX_VALUES` allows."""
        width = max(self.layout.n_views * (self.k - 1), 1)
        for part in chunk.parts(min(max(MIN_CHUNK, MAX_VALUES // width), MAX_CHUNK)):
            w = np.ones(len(part)) if part.weights is None else part.weights
            total.n_samples[0] += w.sum()
            _add(
                self.features.of(part, n_jobs),
                part.columns,
                w.astype(np.float32),
                self.layout,
                total,
                n_jobs,
            )


def sparse_triple_moments(
    source: Source, features: ViewFeatures, layout: TripleLayout, n_states: int, n_jobs: int
) -> TripleMoments:
    """Moments over samples whose `columns` are CSC, and whose views `features` gives, without the
    leading 1.

    Cost for each sample: `k^3` for a hidden node, `9 k^2` for an edge, `3 k` for a leaf that is 1.
    Memory: the moments, and `4 MAX_VALUES` bytes, or `MIN_CHUNK` samples."""
    sums = source.run(SparseTriplePass(features, layout, n_states), n_jobs)
    return _means(sums, layout, n_states, max(float(sums.n_samples[0]), 1e-300))


def _add(y: Any, columns: Any, w: Any, layout: TripleLayout, sums: SparseSums, n_jobs: int) -> None:
    """Add some samples, of which `columns` are CSC. Threads share out views, nodes and edges, each
    adds its samples in order."""
    products = (sums.own, sums.third, sums.cross)
    given = (y, w, layout.view, layout.hidden, *products, sums.first, sums.pair)
    parallel(lambda a, b: add_products(*given, a, b), sum(map(len, products)), n_jobs)
    rows, nodes = layout.emitted.T
    ones = (y, w, columns.indptr, columns.indices, nodes, layout.view[rows], sums.emitted)
    parallel(lambda a, b: _add_emitted(*ones, a, b), len(nodes), n_jobs)
    exact = w.astype(np.float64)
    sums.occurrences[...] += np.diff(columns.indptr) if (w == 1).all() else columns.T @ exact
    if len(layout.counted):
        a, b = (columns[:, ends] for ends in layout.counted.T)
        sums.both[...] += a.multiply(b).T @ exact


def _means(sums: SparseSums, layout: TripleLayout, k: int, n: float) -> TripleMoments:
    """Sums as moments of `(1, z)`."""
    first, occurrences = sums.first / n, sums.occurrences / n
    own = np.ones((layout.n_views, k, k))
    own[:, 0, 1:] = own[:, 1:, 0] = first
    own[:, 1:, 1:] = sums.own / n
    rows = len(layout.view)
    mean = first[layout.view]  # (rows, 3, r)
    third = np.ones((rows, k, k, k))
    third[:, 1:, 0, 0], third[:, 0, 1:, 0], third[:, 0, 0, 1:] = mean.swapaxes(0, 1)
    pair = sums.pair / n
    third[:, 1:, 1:, 0], third[:, 1:, 0, 1:], third[:, 0, 1:, 1:] = pair.swapaxes(0, 1)
    third[:, 1:, 1:, 1:] = sums.third.reshape(-1, k - 1, k - 1, k - 1) / n
    cross = np.ones((len(layout.hidden), 3, k, 3, k))
    cross[:, :, 1:, :, 0] = mean[layout.hidden[:, 0]][:, :, :, None]
    cross[:, :, 0, :, 1:] = mean[layout.hidden[:, 1]][:, None]
    cross[:, :, 1:, :, 1:] = sums.cross.reshape(-1, 3, k - 1, 3, k - 1) / n
    owner, node = layout.emitted.T
    emitted = np.ones((len(node), 2, 3, k))
    emitted[:, 1, :, 0] = occurrences[node, None]
    emitted[:, 1, :, 1:] = sums.emitted / n
    emitted[:, 0, :, 0] = 1 - occurrences[node, None]
    emitted[:, 0, :, 1:] = mean[owner] - emitted[:, 1, :, 1:]
    a, b = occurrences[layout.counted].T
    both = sums.both / n
    counted = np.stack([1 - a - b + both, b - both, a - both, both], axis=-1).reshape(-1, 2, 2)
    return TripleMoments(own, third, cross, tuple(emitted), tuple(np.maximum(counted, 0.0)), n)


@kernel
def _add_emitted(y, w, indptr, indices, nodes, views, emitted, start, stop):  # type: ignore[no-untyped-def]
    """`emitted[e, t] += sum_n w z` of view `views[e, t]` over the samples with node `nodes[e]`."""
    r = y.shape[1]
    for e in range(start, stop):
        here = indices[indptr[nodes[e]] : indptr[nodes[e] + 1]]
        for t in range(3):
            for i in range(r):
                values = y[views[e, t], i]
                total = 0.0
                for s in here:
                    total += w[s] * values[s]
                emitted[e, t, i] += total
