"""Moments of the views around every hidden node, from which parameters are estimated.

All are sums over samples. A view is a vector `(1, z)` of length k, the number of states, so the
third moment of three views holds their second moments and means too, wherever an index is zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from latenttree.engine import blocks, parallel, single_threaded_blas
from latenttree.engine.kernels import kernel, subroutine

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_VALUES = 1 << 22
"""Values of views that are held at once, at most ..."""

MIN_CHUNK = 256
"""... but at least those of so many samples."""

LANES = 256
"""Samples in the inner loops, which are vectorised."""


class TripleLayout(NamedTuple):
    """The moments to compute."""

    view: Ints  # (m, 3) views of each hidden node
    n_views: int
    hidden: Ints  # (H, 2) edges between hidden nodes, as rows of `view`
    emitted: Ints  # (B, 2) (row of `view`, observed node) for edges to observed nodes
    counted: Ints  # (C, 2) edges between observed nodes
    dims: Ints  # (p,) categories of the observed nodes


class TripleMoments(NamedTuple):
    """Means over samples, of views y of length k."""

    own: Floats  # (n_views, k, k) E[y y^T]
    third: Floats  # (m, k, k, k) E[y1 (x) y2 (x) y3] of the three views of a node
    cross: Floats  # (H, 3, k, 3, k) E[y y'^T] of the views of the two ends
    emitted: tuple[Floats, ...]  # B times (d, 3, k): E[1[x = c] y], or E[t(x) y]
    counted: tuple[Floats, ...]  # C times (d_a, d_b): joint frequencies
    n_samples: float = np.inf  # behind them; inf for exact moments


class _Sums(NamedTuple):
    """Sums of `own`, `third` and `cross`, see `_add_products`."""

    own: Floats
    third: Floats
    cross: Floats


class SampleChunk(Protocol):
    """Some samples, see `model.samples.Chunk`."""

    @property
    def codes(self) -> NDArray[Any]:
        """(n, p) categories, -1 where missing."""

    @property
    def arrays(self) -> Mapping[int, Any]:
        """Values of variables that are not categorical."""

    @property
    def weights(self) -> Floats | None:
        """(n,) weights, None if all are 1."""

    def take(self, index: Any) -> Self:
        """Some of the samples."""


class EmissionStatistics(Protocol):
    """A family that is not categorical, all states alike, see `emissions.Emission`."""

    def sums(self, values: Any, weights: Floats) -> Floats:
        """Sums of the statistics of values over samples, `(T, columns of weights)`."""

    def expected_sums(self) -> Floats:
        """Expected statistics of one sample, `(T, states)`."""


ChunkT = TypeVar("ChunkT", bound=SampleChunk)


def triple_moments(
    chunks: Iterable[ChunkT],
    features: Callable[[ChunkT], NDArray[np.float32]],
    layout: TripleLayout,
    n_states: int,
    n_jobs: int,
    families: Mapping[int, EmissionStatistics] | None = None,
) -> TripleMoments:
    """Moments over chunks of samples; `features` gives the views of a chunk, `(n_views, k, n)` for
    k states.

    A view of a missing variable is zero, the leading 1 too: so every sum holds, where all its
    indices are zero, its number of samples, and moments are over the samples that have the
    variables. For the observed nodes of `families`, statistics take the place of categories.

    Cost for each sample: `k^3` for a hidden node, `9 k^2` for an edge, `3 k` for a leaf that is not
    in its most frequent category. Memory: the moments, and `4 MAX_VALUES` bytes."""
    k = n_states
    families = families or {}
    sums = _empty_sums(layout, k)
    emitted = _EmittedSums.of(layout, k)
    counted = [np.zeros((layout.dims[a], layout.dims[b])) for a, b in layout.counted]
    other: dict[int, Floats] = {}
    n_samples = 0.0
    with single_threaded_blas():
        for part in _cut(chunks, layout.n_views * k):
            y = features(part)
            w = np.ones(len(part.codes)) if part.weights is None else part.weights
            n_samples += float(w.sum())
            share = w.astype(np.float32)
            _add(y, share, layout, sums, n_jobs)
            emitted.add(part.codes, share, y, n_jobs)
            _add_statistics(part, y, w, layout, families, other)
            for total, (a, b) in zip(counted, layout.counted.tolist(), strict=True):
                _count(part.codes[:, a], part.codes[:, b], w, total)
    means = emitted.means()
    for e, a in enumerate(layout.emitted[:, 1].tolist() if families else ()):
        if a in families:
            means[e] = _per_sample(other[e].reshape(-1, 3, k), families[a])
    return _normalised(sums, means, counted, k, max(n_samples, 1e-300))


def _empty_sums(layout: TripleLayout, k: int) -> _Sums:
    """Zeros for the moments of a layout."""
    return _Sums(
        np.zeros((layout.n_views, k, k)),
        np.zeros((len(layout.view), k * k, k)),
        np.zeros((len(layout.hidden), 3 * k, 3 * k)),
    )


class _EmittedSums(NamedTuple):
    """Sums of views by category of the observed nodes of `TripleLayout.emitted`, one edge after the
    other, and the order in which edges are counted: by node, so that neighbouring codes are read
    together."""

    layout: TripleLayout
    order: Ints  # (B,)
    offsets: Ints  # (B + 1,)
    sums: Floats  # (rows of all edges, 3 k)

    @classmethod
    def of(cls, layout: TripleLayout, k: int) -> _EmittedSums:
        """Zeros for the edges of a layout."""
        rows = layout.dims[layout.emitted[:, 1]]
        offsets = np.concatenate([[0], np.cumsum(rows)]).astype(np.int64)
        order = np.argsort(layout.emitted[:, 1], kind="stable")
        return cls(layout, order, offsets, np.zeros((int(offsets[-1]), 3 * k)))

    def add(self, codes: NDArray[Any], w: Any, y: Any, n_jobs: int) -> None:
        """Add some samples."""
        nodes, views = self.layout.emitted[:, 1], self.layout.view[self.layout.emitted[:, 0]]
        common = np.where(self.layout.dims == 2, codes[:LANES].mean(axis=0) > 0.5, -1)[nodes]
        places = self.order, self.offsets, nodes, views, common
        parallel(
            lambda a, b: _add_emitted(codes, w, y, *places, self.sums, a, b), len(nodes), n_jobs
        )

    def means(self) -> list[Floats]:
        """`(d, 3, k)` for every edge, over the samples that have the node and the view."""
        sums = self.sums.reshape(len(self.sums), 3, self.sums.shape[1] // 3)
        if len(self.order):
            known = np.add.reduceat(sums[:, :, 0], self.offsets[:-1])
            sums = sums / _positive(np.repeat(known, np.diff(self.offsets), axis=0))[:, :, None]
        return [sums[a:b] for a, b in pairwise(self.offsets.tolist())]


def _add_statistics(
    part: SampleChunk,
    y: NDArray[np.float32],
    w: Floats,
    layout: TripleLayout,
    families: Mapping[int, EmissionStatistics],
    total: dict[int, Floats],
) -> None:
    """Add `sum_n w t(x) y` of the nodes of `families`, by number of the edge."""
    for e, (r, a) in enumerate(layout.emitted.tolist() if families else ()):
        if a in families:
            z = y[layout.view[r]].reshape(-1, y.shape[2]).T * w[:, None]
            sums = families[a].sums(part.arrays[a], z)
            total[e] = sums + total[e] if e in total else sums


def _count(one: NDArray[Any], other: NDArray[Any], weights: Floats, total: Floats) -> None:
    """Add the joint frequencies of two nodes, over samples that have both."""
    both = (one >= 0) & (other >= 0)
    pair = one[both].astype(np.int64) * total.shape[1] + other[both]
    total += np.bincount(pair, weights[both], total.size).reshape(total.shape)


def _normalised(
    sums: _Sums, emitted: Sequence[Floats], counted: Sequence[Floats], k: int, n_samples: float
) -> TripleMoments:
    """Means over the samples that have the variables of a moment; `emitted` are means already."""
    third = sums.third.reshape(-1, k, k, k)
    cross = sums.cross.reshape(-1, 3, k, 3, k)
    return TripleMoments(
        sums.own / _positive(sums.own[:, :1, :1]),
        third / _positive(third[:, :1, :1, :1]),
        cross / _positive(cross[:, :, :1, :, :1]),
        tuple(emitted),
        tuple(total / _positive(total.sum()) for total in counted),
        n_samples,
    )


def _per_sample(sums: Floats, family: EmissionStatistics) -> Floats:
    """Sums `(T, 3, k)` of statistics times three views, divided by their numbers of samples.

    Not every family counts its samples, but all have the expected statistics of one sample: the
    number is fitted by least squares to the sums where the view is 1."""
    expected = family.expected_sums()[:, 0]
    n_known = expected @ sums[:, :, 0] / _positive(expected @ expected)
    return np.asarray(sums / _positive(n_known)[:, None])


def _positive(counts: Any) -> Floats:
    """Counts, at least 1e-300, to divide by."""
    return np.maximum(counts, 1e-300)


def _cut(chunks: Iterable[ChunkT], width: int) -> Iterator[ChunkT]:
    """The chunks in pieces of which `width` values for each sample fit in memory."""
    size = max(MIN_CHUNK, MAX_VALUES // max(width, 1))
    for chunk in chunks:
        n = len(chunk.codes)
        for start, stop in blocks(n, size):
            yield chunk if stop - start == n else chunk.take(slice(start, stop))


def _add(y: Any, w: Any, layout: TripleLayout, sums: _Sums, n_jobs: int) -> None:
    """Add the moments of some samples, `y` `(n_views, k, n)`. Threads share out views, nodes and
    edges, and each adds its samples in order."""
    n_items = sum(len(x) for x in sums)
    view, hidden = layout.view, layout.hidden
    parallel(lambda a, b: _add_products(y, w, view, hidden, *sums, a, b), n_items, n_jobs)


# Inner loops run over slices of rows, from zero on: numba vectorises them only where it sees that
# no index is negative and that values lie side by side.


@subroutine(fastmath={"reassoc", "contract"})
def dot(a, b):  # type: ignore[no-untyped-def]
    """`a . b`, over as many values as `b` has."""
    total = np.float32(0.0)
    for s in range(len(b)):
        total += a[s] * b[s]
    return total


@subroutine
def multiply(a, b, out):  # type: ignore[no-untyped-def]
    """`out = a b`, as long as `b` is."""
    for s in range(len(b)):
        out[s] = a[s] * b[s]


@kernel
def _add_products(y, w, view, pairs, own, third, cross, start, stop):  # type: ignore[no-untyped-def]
    """Items start:stop of: `own[v] += sum_n w y_v y_v^T` of each view, then `third[r] += sum_n w
    (y_1 (x) y_2) y_3^T` of the views of each row, `(., k k, k)`, then `cross[e] += sum_n w y y'^T`
    of the views of the rows of each pair, `(., 3k, 3k)`.

    `y` is `(n_views, k, n)`; products and sums of `LANES` samples in float32, the rest in
    float64."""
    n_views, k, n = y.shape
    a = np.empty((max(k * k, 3 * k), LANES), dtype=np.float32)
    for item in range(start, stop):
        r, e = item - n_views, item - n_views - len(third)
        for low in range(0, n, LANES):
            high = min(low + LANES, n)
            for t in range(3 if e >= 0 else 1):
                v = item if r < 0 else view[pairs[e, 0], t] if e >= 0 else view[r, 0]
                for i in range(k):
                    multiply(y[v, i, low:high], w[low:high], a[t * k + i])
            if 0 <= r < len(third):
                for i in range(k - 1, -1, -1):  # from the last: the factors lie in the first rows
                    for j in range(k - 1, -1, -1):
                        multiply(a[i], y[view[r, 1], j, low:high], a[i * k + j])
            for t in range(3 if e >= 0 else 1):
                v = item if r < 0 else view[pairs[e, 1], t] if e >= 0 else view[r, 2]
                out = own[item] if r < 0 else cross[e] if e >= 0 else third[r]
                for i in range(len(out)):
                    for j in range(k):
                        out[i, t * k + j] += dot(a[i], y[v, j, low:high])


@kernel
def _add_emitted(codes, w, y, order, offsets, nodes, views, common, out, start, stop):  # type: ignore[no-untyped-def]
    """`out[offsets[e] + codes[n, nodes[e]], t k + i] += w y[views[e, t], i]` for the edges
    `order[start:stop]`; negative codes count nothing.

    A category `common[e] >= 0` gets the sum over all samples less those of the other categories, so
    that most samples of sparse data are skipped."""
    _, k, n = y.shape
    sample, row = np.empty(LANES, dtype=np.int64), np.empty(LANES, dtype=np.int64)
    weight = np.empty(LANES)
    for low in range(0, n, LANES):
        high = min(low + LANES, n)
        for place in range(start, stop):
            e = order[place]
            count = 0
            for s in range(low, high):
                c = codes[s, nodes[e]]
                if c != common[e]:
                    sample[count], weight[count] = s - low, w[s]
                    row[count] = offsets[e] + c if c >= 0 else -1
                    count += 1
            for t in range(3):
                for i in range(k):
                    values = y[views[e, t], i, low:high]
                    left = 0.0
                    for q in range(count):
                        x = weight[q] * values[sample[q]]
                        left -= x
                        if row[q] >= 0:
                            out[row[q], t * k + i] += x
                    if common[e] >= 0:
                        left += dot(values, w[low:high])
                        out[offsets[e] + common[e], t * k + i] += left
