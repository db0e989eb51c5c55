"""What parameters need from the data: moments of the views around every hidden node.

All are sums over samples. A view is a vector `(1, z)` of length k, so the third moment of three
views holds their second moments and means too, wherever an index is zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.engine import blocks, parallel, single_threaded_blas
from latenttree.moments.subspace import scatter_codes

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

VALUES = 1 << 24
LEAST_PIECE = 256
"""Values of views that are held at once, at most; at least so many samples."""


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
    own = np.zeros((layout.n_views, k, k))
    third = np.zeros((m, k * k, k))
    cross = np.zeros((len(layout.hidden), 3 * k, 3 * k))
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
            stacked = np.ascontiguousarray(y.transpose(1, 2, 0), dtype=np.float64)
            _add_own(stacked, own, n_jobs)
            _add_third(stacked, layout.view, third, n_jobs)
            _add_cross(stacked, layout, cross, n_jobs)
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
        own / n,
        third.reshape(m, k, k, k) / n,
        cross.reshape(-1, 3, k, 3, k) / n,
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


def _add_own(y: Floats, out: Floats, n_jobs: int) -> None:
    def work(start: int, stop: int) -> None:
        out[start:stop] += y[start:stop] @ y[start:stop].transpose(0, 2, 1)

    parallel(work, len(out), n_jobs)


def _add_third(y: Floats, view: Ints, out: Floats, n_jobs: int) -> None:
    """`out[i] += sum_n (y1 (x) y2) y3^T`, one small product for each hidden node."""

    def work(start: int, stop: int) -> None:
        for i in range(start, stop):
            a, b, c = y[view[i]]
            pairs = (a[:, None] * b[None]).reshape(-1, a.shape[1])
            out[i] += pairs @ c.T

    parallel(work, len(out), n_jobs)


def _add_cross(y: Floats, layout: Layout, out: Floats, n_jobs: int) -> None:
    def work(start: int, stop: int) -> None:
        for e in range(start, stop):
            a, b = (y[layout.view[i]].reshape(-1, y.shape[2]) for i in layout.hidden[e])
            out[e] += a @ b.T

    parallel(work, len(out), n_jobs)
