"""Moments of the views around every hidden node, from which parameters are estimated.

All are sums over samples. A view is a vector `(1, z)` of length k, the number of states, so the
third moment of three views holds their second moments and means too, wherever an index is zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from latenttree.data.chunk import Chunk
from latenttree.engine import Source, parallel, single_threaded_blas
from latenttree.engine.arrays import Float32, Floats, Ints
from latenttree.engine.kernels import kernel, subroutine

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


class TripleSums(NamedTuple):
    """The same as sums over samples; `third` is `(m, k k, k)`, `cross` `(H, 3 k, 3 k)`."""

    own: Floats
    third: Floats
    cross: Floats
    emitted: Floats  # (rows of all edges, 3 k), see `TriplePass.offsets`
    statistics: dict[int, Floats]  # (T, 3 k) by number of the edge, of families
    counted: tuple[Floats, ...]
    n_samples: Floats  # (1,)


class ViewFeatures(Protocol):
    """The views of samples: a picklable object."""

    def of(self, chunk: Chunk, n_jobs: int) -> Float32:
        """(n_views, k, n) features of some samples."""


class EmissionStatistics(Protocol):
    """A family that is not categorical, all states alike, see `emissions.Emission`."""

    def sums(self, values: Any, weights: Floats) -> Floats:
        """Sums of the statistics of values over samples, `(T, columns of weights)`."""

    def expected_sums(self) -> Floats:
        """Expected statistics of one sample, `(T, states)`."""


@dataclass(frozen=True, eq=False)
class TriplePass:
    """The pass: sums of products of views `(1, z)` of length k.

    A view of a missing variable is zero, the leading 1 too: so every sum holds, where all its
    indices are zero, its number of samples, and moments are over the samples that have the
    variables. For the observed nodes of `families`, statistics take the place of categories."""

    features: ViewFeatures
    layout: TripleLayout
    k: int
    families: Mapping[int, EmissionStatistics]

    @cached_property
    def offsets(self) -> Ints:
        """(B + 1,) rows of `TripleSums.emitted`: those of edge e begin at `offsets[e]`."""
        rows = self.layout.dims[self.layout.emitted[:, 1]]
        return np.concatenate([[0], np.cumsum(rows)]).astype(np.int64)

    def start(self) -> TripleSums:
        """Zeros."""
        layout, k = self.layout, self.k
        return TripleSums(
            np.zeros((layout.n_views, k, k)),
            np.zeros((len(layout.view), k * k, k)),
            np.zeros((len(layout.hidden), 3 * k, 3 * k)),
            np.zeros((int(self.offsets[-1]), 3 * k)),
            {},
            tuple(np.zeros((layout.dims[a], layout.dims[b])) for a, b in layout.counted),
            np.zeros(1),
        )

    def add(self, total: TripleSums, chunk: Chunk, n_jobs: int) -> None:
        """Add a chunk, as many samples at a time as `MAX_VALUES` allows."""
        width = max(self.layout.n_views * self.k, 1)
        with single_threaded_blas():
            for part in chunk.parts(max(MIN_CHUNK, MAX_VALUES // width)):
                self._add_part(total, part, n_jobs)

    def _add_part(self, total: TripleSums, part: Chunk, n_jobs: int) -> None:
        """Threads share out views, nodes and edges, and each adds its samples in order."""
        y, layout = self.features.of(part, n_jobs), self.layout
        w = np.ones(len(part)) if part.weights is None else part.weights
        total.n_samples[0] += w.sum()
        share, sums = w.astype(np.float32), total[:3]
        others = np.empty((0, self.k)), np.empty((0, 3, self.k, self.k))
        given = (y, share, layout.view, layout.hidden, *sums, *others)
        parallel(lambda a, b: add_products(*given, a, b), sum(map(len, sums)), n_jobs)
        self._add_emitted(total.emitted, part.codes, share, y, n_jobs)
        _add_statistics(part, y, w, layout, self.families, total.statistics)
        for counts, (a, b) in zip(total.counted, layout.counted.tolist(), strict=True):
            _count(part.codes[:, a], part.codes[:, b], w, counts)

    def _add_emitted(self, sums: Floats, codes: Any, w: Any, y: Any, n_jobs: int) -> None:
        """Add views by category of the observed nodes, edges in the order of the nodes, so that
        neighbouring codes are read together."""
        nodes, views = self.layout.emitted[:, 1], self.layout.view[self.layout.emitted[:, 0]]
        common = np.where(self.layout.dims == 2, codes[:LANES].mean(axis=0) > 0.5, -1)[nodes]
        order = np.argsort(nodes, kind="stable")
        given = (codes, w, y, order, self.offsets, nodes, views, common, sums)
        parallel(lambda a, b: _add_emitted(*given, a, b), len(nodes), n_jobs)

    def moments(self, total: TripleSums) -> TripleMoments:
        """Sums as means over the samples that have the variables of a moment."""
        k, emitted = self.k, self._emitted_means(total.emitted)
        for e, a in enumerate(self.layout.emitted[:, 1].tolist() if self.families else ()):
            if a in self.families:
                sums = total.statistics[e].reshape(-1, 3, k)
                emitted[e] = _per_sample(sums, self.families[a])
        third = total.third.reshape(-1, k, k, k)
        cross = total.cross.reshape(-1, 3, k, 3, k)
        return TripleMoments(
            total.own / _positive(total.own[:, :1, :1]),
            third / _positive(third[:, :1, :1, :1]),
            cross / _positive(cross[:, :, :1, :, :1]),
            tuple(emitted),
            tuple(counts / _positive(counts.sum()) for counts in total.counted),
            max(float(total.n_samples[0]), 1e-300),
        )

    def _emitted_means(self, sums: Floats) -> list[Floats]:
        """`(d, 3, k)` for every edge, over the samples that have the node and the view."""
        sums = sums.reshape(len(sums), 3, self.k)
        if len(self.offsets) > 1:
            known = np.add.reduceat(sums[:, :, 0], self.offsets[:-1])
            sums = sums / _positive(np.repeat(known, np.diff(self.offsets), axis=0))[:, :, None]
        return [sums[a:b] for a, b in pairwise(self.offsets.tolist())]


def triple_moments(
    source: Source,
    features: ViewFeatures,
    layout: TripleLayout,
    n_states: int,
    n_jobs: int,
    families: Mapping[int, EmissionStatistics] | None = None,
) -> TripleMoments:
    """Moments over samples, whose views `features` gives.

    Cost for each sample: `k^3` for a hidden node, `9 k^2` for an edge, `3 k` for a leaf that is not
    in its most frequent category. Memory: the moments, and `4 MAX_VALUES` bytes."""
    pass_ = TriplePass(features, layout, n_states, families or {})
    return pass_.moments(source.run(pass_, n_jobs))


def _add_statistics(
    part: Chunk,
    y: Float32,
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
def add_products(y, w, view, pairs, own, third, cross, first, pair, start, stop):  # type: ignore[no-untyped-def]
    """Items start:stop of: `own[v] += sum_n w y_v y_v^T` of each view, then `third[r] += sum_n w
    (y_1 (x) y_2) y_3^T` of the views of each row, `(., k k, k)`, then `cross[e] += sum_n w y y'^T`
    of the views of the rows of each pair, `(., 3k, 3k)`. Unless they are empty, with `own` goes
    `first[v] += sum_n w y_v`, and with `third` `pair[r] += sum_n w y y'^T` of the views 1 and 2, 1
    and 3, 2 and 3 of each row, `(., 3, k, k)`.

    `y` is `(n_views, k, n)`; products and sums of `LANES` samples in float32, the rest in
    float64."""
    n_views, k, n = y.shape
    a = np.empty((max(k * k, 3 * k), LANES), dtype=np.float32)
    for item in range(start, stop):
        r, e = item - n_views, item - n_views - len(third)
        for low in range(0, n, LANES):
            high = min(low + LANES, n)
            if item < len(first):
                for i in range(k):
                    first[item, i] += dot(y[item, i, low:high], w[low:high])
            for t in range(3 if e >= 0 else 1):
                v = item if r < 0 else view[pairs[e, 0], t] if e >= 0 else view[r, 0]
                for i in range(k):
                    multiply(y[v, i, low:high], w[low:high], a[t * k + i])
            if 0 <= r < len(pair):
                _add_pairs(y, w, view[r], low, high, a, pair[r])
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


@subroutine
def _add_pairs(y, w, views, low, high, a, out):  # type: ignore[no-untyped-def]
    """`out[q] += sum_n w y y'^T` of two of three views, samples low:high; the first times w are the
    first rows of `a`, whose last row is overwritten."""
    k = y.shape[1]
    last = len(a) - 1
    for i in range(k):
        multiply(y[views[1], i, low:high], w[low:high], a[last])
        for j in range(k):
            two, three = y[views[1], j, low:high], y[views[2], j, low:high]
            out[0, i, j] += dot(a[i], two)
            out[1, i, j] += dot(a[i], three)
            out[2, i, j] += dot(a[last], three)


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
