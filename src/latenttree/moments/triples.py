"""What parameters need from the data: moments of the views around every hidden node.

All are sums over samples. A view is a vector `(1, z)` of length k, so the third moment of three
views holds their second moments and means too, wherever an index is zero.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numba import njit
from numpy.typing import NDArray

from latenttree.engine import blocks, parallel, single_threaded_blas
from latenttree.moments.subspace import scatter_codes

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

VALUES = 1 << 22
LEAST_PIECE = 256
"""Values of views that are held at once, at most; at least so many samples."""


LANES = 64
"""Samples that are multiplied side by side."""


class Layout(NamedTuple):
    """Which moments to take."""

    view: Ints  # (m, 3) views of each hidden node
    n_views: int
    hidden: Ints  # (H, 2) edges between hidden nodes, as rows of `view`
    emitted: Ints  # (B, 2) (row of `view`, observed node) for edges to observed nodes
    counted: Ints  # (C, 2) edges between observed nodes
    dims: Ints  # (p,) categories of the observed nodes


class TripleMoments(NamedTuple):
    """Means over samples."""

    own: Floats  # (n_views, k, k) E[y y^T]
    third: Floats  # (m, k, k, k) E[y1 (x) y2 (x) y3] of the three views of a node
    cross: Floats  # (H, 3, k, 3, k) E[y y'^T] of the views of the two ends
    emitted: tuple[Floats, ...]  # B times (d, 3, k): E[1[x = c] y], or E[t(x) y]
    counted: tuple[Floats, ...]  # C times (d_a, d_b): joint frequencies
    n_samples: float = np.inf  # behind them; inf for exact moments


class _Sums(NamedTuple):
    own: Floats
    third: Floats
    cross: Floats


class Part(Protocol):
    """Some samples, see `samples.Chunk`."""

    @property
    def codes(self) -> NDArray[Any]: ...

    @property
    def arrays(self) -> Mapping[int, Any]: ...

    @property
    def weights(self) -> Floats | None: ...

    def take(self, index: Any) -> Self: ...


class Statistics(Protocol):
    """A family that is not categorical, all states alike, see `emissions.Emission`."""

    def sums(self, values: Any, weights: Floats) -> Floats: ...

    def expected_sums(self) -> Floats: ...


P = TypeVar("P", bound=Part)


def triple_moments(
    chunks: Iterable[P],
    features: Callable[[P], NDArray[np.float32]],
    layout: Layout,
    k: int,
    n_jobs: int,
    families: Mapping[int, Statistics] | None = None,
) -> TripleMoments:
    """Moments over chunks of samples; `features` gives the views, `(n, n_views, k)`.

    A view of a missing variable is zero, the 1 in front too: so every sum holds, where all its
    indices are zero, the number of samples behind it, and moments are over the samples that have
    the variables. For the observed nodes of `families`, statistics take the place of categories.

    Cost for each sample: `k^3` for a hidden node, `9 k^2` for an edge, `3 k` for a leaf. Memory:
    the moments, and `16 VALUES` bytes."""
    m = len(layout.view)
    sums = _Sums(
        np.zeros((layout.n_views, k, k)),
        np.zeros((m, k * k, k)),
        np.zeros((len(layout.hidden), 3 * k, 3 * k)),
    )
    rows = layout.dims[layout.emitted[:, 1]]
    offsets = np.concatenate([[0], np.cumsum(rows)]).astype(np.int64)
    flat = np.zeros((int(offsets[-1]), 3 * k))
    counted = [np.zeros((layout.dims[a], layout.dims[b])) for a, b in layout.counted]
    columns = (layout.view[:, :, None] * k + np.arange(k)).reshape(m, 3 * k)
    index = columns[layout.emitted[:, 0]]
    other: dict[int, Floats] = {}
    n_samples = 0.0
    with single_threaded_blas():
        for part in _cut(chunks, layout.n_views * k):
            y = features(part)
            w = np.ones(len(y)) if part.weights is None else part.weights
            n_samples += float(w.sum())
            _add(y, w, layout, sums, n_jobs)
            z = y.reshape(len(y), -1)
            if part.weights is not None:
                z = z * w[:, None].astype(np.float32)
            codes = np.ascontiguousarray(part.codes[:, layout.emitted[:, 1]])
            parallel(
                lambda a, b, c=codes, z=z: scatter_codes(c, offsets, z, index, flat, a, b),  # type: ignore[misc]
                len(index),
                n_jobs,
            )
            _add_statistics(part, z, layout, index, families or {}, other)
            for total, (a, b) in zip(counted, layout.counted.tolist(), strict=True):
                _count(part.codes[:, a], part.codes[:, b], w, total)
    cut = [flat[a:b].reshape(-1, 3, k) for a, b in pairwise(offsets)]
    for e, a in enumerate(layout.emitted[:, 1].tolist()):
        if e in other and families:
            cut[e] = _per_sample(other[e].reshape(-1, 3, k), families[a])
    return _normalised(sums, cut, set(other), counted, k, max(n_samples, 1e-300))


def _add_statistics(
    part: Part,
    z: NDArray[np.float32],
    layout: Layout,
    index: Ints,
    families: Mapping[int, Statistics],
    total: dict[int, Floats],
) -> None:
    """Add `sum_n t(x) y` of the nodes of `families`, by number of the edge."""
    for e, a in enumerate(layout.emitted[:, 1].tolist()):
        if a in families:
            found = families[a].sums(part.arrays[a], z[:, index[e]].astype(np.float64))
            total[e] = found + total[e] if e in total else found


def _count(one: NDArray[Any], other: NDArray[Any], weights: Floats, total: Floats) -> None:
    """Add the joint frequencies of two nodes, over samples that have both."""
    both = (one >= 0) & (other >= 0)
    pair = one[both].astype(np.int64) * total.shape[1] + other[both]
    total += np.bincount(pair, weights[both], total.size).reshape(total.shape)


def _normalised(
    sums: _Sums,
    emitted: Sequence[Floats],
    done: Collection[int],
    counted: Sequence[Floats],
    k: int,
    n_samples: float,
) -> TripleMoments:
    """Means over the samples that have the variables of each moment; those of `done` are."""
    third = sums.third.reshape(-1, k, k, k)
    cross = sums.cross.reshape(-1, 3, k, 3, k)
    told = [
        moment if e in done else moment / _positive(moment[:, :, 0].sum(axis=0))[:, None]
        for e, moment in enumerate(emitted)
    ]
    return TripleMoments(
        sums.own / _positive(sums.own[:, :1, :1]),
        third / _positive(third[:, :1, :1, :1]),
        cross / _positive(cross[:, :, :1, :, :1]),
        tuple(told),
        tuple(total / _positive(total.sum()) for total in counted),
        n_samples,
    )


def _per_sample(sums: Floats, family: Statistics) -> Floats:
    """Sums `(T, 3, k)` of statistics with three views, divided by the samples behind each.

    Not every family counts its samples, but all know what a sample adds, on average, to each
    statistic: so many samples as fit best, by least squares, the sums where the view is 1."""
    usual = family.expected_sums()[:, 0]
    seen = usual @ sums[:, :, 0] / _positive(usual @ usual)
    return np.asarray(sums / _positive(seen)[:, None])


def _positive(counts: Any) -> Floats:
    return np.maximum(counts, 1e-300)


def _cut(chunks: Iterable[P], width: int) -> Iterator[P]:
    """The chunks in pieces of which `width` values for each sample fit in memory."""
    size = max(LEAST_PIECE, VALUES // max(width, 1))
    for chunk in chunks:
        n = len(chunk.codes)
        for start, stop in blocks(n, size):
            yield chunk if stop - start == n else chunk.take(slice(start, stop))


def _add(y: NDArray[np.float32], w: Floats, layout: Layout, sums: _Sums, n_jobs: int) -> None:
    """Add the moments of some samples, `y` `(n, n_views, k)`. Threads share out views, nodes and
    edges, and each adds its samples in order."""
    view, hidden = layout.view, layout.hidden
    parallel(lambda a, b: _add_own(y, w, sums.own, a, b), len(sums.own), n_jobs)
    parallel(lambda a, b: _add_third(y, w, view, sums.third, a, b), len(sums.third), n_jobs)
    parallel(lambda a, b: _add_cross(y, w, view, hidden, sums.cross, a, b), len(hidden), n_jobs)


@njit(cache=True, nogil=True)
def _gather(y, low, high, views, out):  # type: ignore[no-untyped-def]
    """`out[s k + i, lane] = y[low + lane, views[s], i]`: some views with the samples side by side;
    lanes beyond the last sample are zero."""
    k = y.shape[2]
    for s in range(len(views)):
        for lane in range(LANES):
            for i in range(k):
                out[s * k + i, lane] = y[low + lane, views[s], i] if low + lane < high else 0.0


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _dots(a, b, out):  # type: ignore[no-untyped-def]
    """`out[i, j] += sum over lanes of a[i] b[j]`."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            total = 0.0
            for lane in range(LANES):
                total += a[i, lane] * b[j, lane]
            out[i, j] += total


@njit(cache=True, nogil=True)
def _weigh(a, w, low, out):  # type: ignore[no-untyped-def]
    """`out = a` times the weights of the samples from `low`."""
    for i in range(len(a)):
        for lane in range(min(LANES, len(w) - low)):
            out[i, lane] = a[i, lane] * w[low + lane]


@njit(cache=True, nogil=True)
def _add_own(y, w, out, start, stop):  # type: ignore[no-untyped-def]
    """`out[v] += sum_n w y_v y_v^T` for views start:stop."""
    n, _, k = y.shape
    a, view = np.empty((k, LANES)), np.empty(1, dtype=np.int64)
    b = np.zeros((k, LANES))
    for low in range(0, n, LANES):
        for v in range(start, stop):
            view[0] = v
            _gather(y, low, n, view, a)
            _weigh(a, w, low, b)
            _dots(b, a, out[v])


@njit(cache=True, nogil=True)
def _add_third(y, w, view, out, start, stop):  # type: ignore[no-untyped-def]
    """`out[r] += sum_n w (y_1 (x) y_2) y_3^T` of the views of rows start:stop, `(., k k, k)`."""
    n, _, k = y.shape
    a, pairs = np.empty((3 * k, LANES)), np.empty((k * k, LANES))
    for low in range(0, n, LANES):
        for r in range(start, stop):
            _gather(y, low, n, view[r], a)
            _weigh(a[:k], w, low, a[:k])
            for i in range(k):
                for j in range(k):
                    for lane in range(LANES):
                        pairs[i * k + j, lane] = a[i, lane] * a[k + j, lane]
            _dots(pairs, a[2 * k :], out[r])


@njit(cache=True, nogil=True)
def _add_cross(y, w, view, pairs, out, start, stop):  # type: ignore[no-untyped-def]
    """`out[e] += sum_n w y y'^T` of the views of the two rows of pairs start:stop, `(., 3k,
    3k)`."""
    n, _, k = y.shape
    a, b = np.empty((3 * k, LANES)), np.empty((3 * k, LANES))
    for low in range(0, n, LANES):
        for e in range(start, stop):
            _gather(y, low, n, view[pairs[e, 0]], a)
            _weigh(a, w, low, a)
            _gather(y, low, n, view[pairs[e, 1]], b)
            _dots(a, b, out[e])
