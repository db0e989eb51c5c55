"""`triples.triple_moments` for sparse binary samples without missing values.

Then every view is `(1, z)` in every sample: only `z` is held, sums over the 1 are shared, and only
the ones of the observed nodes are read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.data.chunk import Chunk
from latenttree.engine import Source, parallel
from latenttree.engine.kernels import kernel
from latenttree.moments.triples import (
    LANES,
    TripleLayout,
    TripleMoments,
    ViewFeatures,
    dot,
    multiply,
)

Floats = NDArray[np.float64]

MAX_VALUES = 1 << 23
"""Values of views that are held at once, at most ..."""

MIN_CHUNK, MAX_CHUNK = 256, 4096
"""... but at least those of MIN_CHUNK samples, and at most those of MAX_CHUNK."""


class SparseSums(NamedTuple):
    """Sums over samples, of views `z` in r directions each."""

    first: Floats  # (n_views, r) z
    own: Floats  # (n_views, r, r) z z^T
    pair: Floats  # (rows, 3, r, r) z z'^T of the views 0 and 1, 0 and 2, 1 and 2 of a row
    third: Floats  # (rows, r, r, r)
    cross: Floats  # (H, 3, r, 3, r)
    emitted: Floats  # (B, 3, r) z in the samples that have the observed node
    occurrences: Floats  # (p,) samples that have each observed node
    both: Floats  # (C,) samples that have both ends of an edge
    n_samples: Floats  # (1,)

    @classmethod
    def zeros(cls, layout: TripleLayout, r: int) -> SparseSums:
        """Zeros for the moments of a layout."""
        views, rows, edges = layout.n_views, len(layout.view), len(layout.hidden)
        return cls(
            np.zeros((views, r)),
            np.zeros((views, r, r)),
            np.zeros((rows, 3, r, r)),
            np.zeros((rows, r, r, r)),
            np.zeros((edges, 3, r, 3, r)),
            np.zeros((len(layout.emitted), 3, r)),
            np.zeros(len(layout.dims)),
            np.zeros(len(layout.counted)),
            np.zeros(1),
        )


@dataclass(frozen=True, eq=False)
class SparseTriplePass:
    """The pass: sums of products of views `z` of sparse binary samples."""

    features: ViewFeatures  # (n_views, k - 1, n)
    layout: TripleLayout
    k: int

    def start(self) -> SparseSums:
        """Zeros."""
        return SparseSums.zeros(self.layout, self.k - 1)

    def add(self, total: SparseSums, chunk: Chunk, n_jobs: int) -> None:
        """Add a chunk, as many samples at a time as `MAX_VALUES` allows."""
        width = max(self.layout.n_views * (self.k - 1), 1)
        for part in chunk.parts(min(max(MIN_CHUNK, MAX_VALUES // width), MAX_CHUNK)):
            w = np.ones(len(part)) if part.weights is None else part.weights
            total.n_samples[0] += w.sum()
            y = self.features.of(part, n_jobs)
            _add(y, part.columns, w.astype(np.float32), self.layout, total, n_jobs)


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
    """Add some samples. Threads share out views, nodes and edges, each adds its samples in
    order."""
    view, edges, counted = layout.view, layout.hidden, layout.counted
    rows, nodes = layout.emitted.T
    emitted_views = view[rows]
    indptr, indices = columns.indptr, columns.indices

    def share(work: Callable[[int, int], None], n: int) -> None:
        parallel(work, n, n_jobs)

    share(lambda a, b: _add_views(y, w, sums.first, sums.own, a, b), layout.n_views)
    share(lambda a, b: _add_rows(y, w, view, sums.pair, sums.third, a, b), len(view))
    share(lambda a, b: _add_edges(y, w, view, edges, sums.cross, a, b), len(edges))
    share(
        lambda a, b: _add_emitted(y, w, indptr, indices, nodes, emitted_views, sums.emitted, a, b),
        len(nodes),
    )
    share(
        lambda a, b: _add_occurrences(w, indptr, indices, sums.occurrences, a, b),
        len(sums.occurrences),
    )
    share(lambda a, b: _add_both(w, indptr, indices, counted, sums.both, a, b), len(counted))


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
    third[:, 1:, 1:, 1:] = sums.third / n
    cross = np.ones((len(layout.hidden), 3, k, 3, k))
    cross[:, :, 1:, :, 0] = mean[layout.hidden[:, 0]][:, :, :, None]
    cross[:, :, 0, :, 1:] = mean[layout.hidden[:, 1]][:, None]
    cross[:, :, 1:, :, 1:] = sums.cross / n
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


# As in `triples`: inner loops over slices of rows, products and sums of `LANES` samples in float32,
# the rest in float64.


@kernel
def _add_views(y, w, first, own, start, stop):  # type: ignore[no-untyped-def]
    """`first[v] += sum_n w z`, `own[v] += sum_n w z z^T` for views start:stop."""
    _, r, n = y.shape
    a = np.empty(LANES, dtype=np.float32)
    for v in range(start, stop):
        for low in range(0, n, LANES):
            high = min(low + LANES, n)
            for i in range(r):
                first[v, i] += dot(y[v, i, low:high], w[low:high])
                multiply(y[v, i, low:high], w[low:high], a)
                for j in range(r):
                    own[v, i, j] += dot(a, y[v, j, low:high])


@kernel
def _add_rows(y, w, view, pair, third, start, stop):  # type: ignore[no-untyped-def]
    """`pair` and `third` of rows start:stop of `view`."""
    _, r, n = y.shape
    a, b = np.empty(LANES, dtype=np.float32), np.empty(LANES, dtype=np.float32)
    for row in range(start, stop):
        one, two, three = view[row, 0], view[row, 1], view[row, 2]
        for low in range(0, n, LANES):
            high = min(low + LANES, n)
            here = w[low:high]
            for i in range(r):
                multiply(y[one, i, low:high], here, a)
                for j in range(r):
                    multiply(a, y[two, j, low:high], b)
                    pair[row, 0, i, j] += dot(a, y[two, j, low:high])
                    pair[row, 1, i, j] += dot(a, y[three, j, low:high])
                    for q in range(r):
                        third[row, i, j, q] += dot(b, y[three, q, low:high])
                multiply(y[two, i, low:high], here, a)
                for j in range(r):
                    pair[row, 2, i, j] += dot(a, y[three, j, low:high])


@kernel
def _add_edges(y, w, view, edges, cross, start, stop):  # type: ignore[no-untyped-def]
    """`cross[e] += sum_n w z z'^T` of the views of the rows of each edge."""
    _, r, n = y.shape
    a = np.empty(LANES, dtype=np.float32)
    for e in range(start, stop):
        for low in range(0, n, LANES):
            high = min(low + LANES, n)
            for s in range(3):
                for i in range(r):
                    multiply(y[view[edges[e, 0], s], i, low:high], w[low:high], a)
                    for t in range(3):
                        for j in range(r):
                            other = y[view[edges[e, 1], t], j, low:high]
                            cross[e, s, i, t, j] += dot(a, other)


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


@kernel
def _add_occurrences(w, indptr, indices, occurrences, start, stop):  # type: ignore[no-untyped-def]
    """`occurrences[v] += sum w` over the samples with node v, start <= v < stop."""
    for v in range(start, stop):
        for q in range(indptr[v], indptr[v + 1]):
            occurrences[v] += w[indices[q]]


@kernel
def _add_both(w, indptr, indices, edges, both, start, stop):  # type: ignore[no-untyped-def]
    """`both[e] += sum w` over the samples with both ends of edge e; those of a node are sorted."""
    for e in range(start, stop):
        a, b = indptr[edges[e, 0]], indptr[edges[e, 1]]
        while a < indptr[edges[e, 0] + 1] and b < indptr[edges[e, 1] + 1]:
            if indices[a] == indices[b]:
                both[e] += w[indices[a]]
            step = indices[a] <= indices[b]
            if indices[b] <= indices[a]:
                b += 1
            if step:
                a += 1
