"""What parameters need from the data: moments of the views around every hidden node.

All are sums over samples. A view is a vector `(1, z)` of length k, so the third moment of three
views holds their second moments and means too, wherever an index is zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

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
    emitted: tuple[Floats, ...]  # B times (d, 3, k): E[1[x = c] y]
    counted: tuple[Floats, ...]  # C times (d_a, d_b): joint frequencies
    n_samples: float = np.inf  # behind them; inf for exact moments


class _Sums(NamedTuple):
    own: Floats
    third: Floats
    cross: Floats


def triple_moments(
    chunks: Iterable[NDArray[Any]],
    features: Callable[[NDArray[Any]], NDArray[np.float32]],
    layout: Layout,
    k: int,
    n_jobs: int,
) -> TripleMoments:
    """Moments over chunks of codes `(n, p)`; `features` gives the views, `(n, n_views, k)`.

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
    n_samples = 0
    with single_threaded_blas():
        for codes in _cut(chunks, layout.n_views * k):
            y = features(codes)
            n_samples += len(codes)
            _add(y, layout, sums, n_jobs)
            wanted = np.ascontiguousarray(codes[:, layout.emitted[:, 1]])
            z = y.reshape(len(y), -1)
            parallel(
                lambda a, b, c=wanted, z=z: scatter_codes(c, offsets, z, index, flat, a, b),  # type: ignore[misc]
                len(index),
                n_jobs,
            )
            for total, (a, b) in zip(counted, layout.counted.tolist(), strict=True):
                d = layout.dims[b]
                pair = codes[:, a].astype(np.int64) * d + codes[:, b]
                total += np.bincount(pair, minlength=total.size).reshape(total.shape)
    n = max(n_samples, 1)
    cut = [flat[a:b].reshape(-1, 3, k) / n for a, b in pairwise(offsets)]
    return TripleMoments(
        sums.own / n,
        sums.third.reshape(m, k, k, k) / n,
        sums.cross.reshape(-1, 3, k, 3, k) / n,
        tuple(cut),
        tuple(total / n for total in counted),
        n,
    )


def _cut(chunks: Iterable[NDArray[Any]], width: int) -> Iterator[NDArray[Any]]:
    """The chunks in pieces of which `width` values for each sample fit in memory."""
    size = max(LEAST_PIECE, VALUES // max(width, 1))
    for codes in chunks:
        for start, stop in blocks(len(codes), size):
            yield codes[start:stop]


def _add(y: NDArray[np.float32], layout: Layout, sums: _Sums, n_jobs: int) -> None:
    """Add the moments of some samples, `y` `(n, n_views, k)`. Threads share out views, nodes and
    edges, and each adds its samples in order."""
    view, hidden = layout.view, layout.hidden
    parallel(lambda a, b: _add_own(y, sums.own, a, b), len(sums.own), n_jobs)
    parallel(lambda a, b: _add_third(y, view, sums.third, a, b), len(sums.third), n_jobs)
    parallel(lambda a, b: _add_cross(y, view, hidden, sums.cross, a, b), len(hidden), n_jobs)


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
def _add_own(y, out, start, stop):  # type: ignore[no-untyped-def]
    """`out[v] += sum_n y_v y_v^T` for views start:stop."""
    n, _, k = y.shape
    a, view = np.empty((k, LANES)), np.empty(1, dtype=np.int64)
    for low in range(0, n, LANES):
        for v in range(start, stop):
            view[0] = v
            _gather(y, low, n, view, a)
            _dots(a, a, out[v])


@njit(cache=True, nogil=True)
def _add_third(y, view, out, start, stop):  # type: ignore[no-untyped-def]
    """`out[r] += sum_n (y_1 (x) y_2) y_3^T` of the views of rows start:stop, out `(., k k, k)`."""
    n, _, k = y.shape
    a, pairs = np.empty((3 * k, LANES)), np.empty((k * k, LANES))
    for low in range(0, n, LANES):
        for r in range(start, stop):
            _gather(y, low, n, view[r], a)
            for i in range(k):
                for j in range(k):
                    for lane in range(LANES):
                        pairs[i * k + j, lane] = a[i, lane] * a[k + j, lane]
            _dots(pairs, a[2 * k :], out[r])


@njit(cache=True, nogil=True)
def _add_cross(y, view, pairs, out, start, stop):  # type: ignore[no-untyped-def]
    """`out[e] += sum_n y y'^T` of the views of the two rows of pairs start:stop, `(., 3k, 3k)`."""
    n, _, k = y.shape
    a, b = np.empty((3 * k, LANES)), np.empty((3 * k, LANES))
    for low in range(0, n, LANES):
        for e in range(start, stop):
            _gather(y, low, n, view[pairs[e, 0]], a)
            _gather(y, low, n, view[pairs[e, 1]], b)
            _dots(a, b, out[e])
