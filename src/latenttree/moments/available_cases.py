"""Second moments of all pairs where values are missing: each pair by the samples that have both.

A pair is whitened by its own samples too. With the variances of all samples that have a variable, a
correlation near one would be no more precise than any other: it is precise because the errors of
covariance and variances cancel.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from latenttree.data import Table
from latenttree.data.chunk import Chunk
from latenttree.data.storage import Features, Storage
from latenttree.engine import parallel
from latenttree.engine.arrays import Float32
from latenttree.engine.kernels import kernel, subroutine
from latenttree.moments.gram import gram, gram_between

PRIOR = 2.0
"""Prior samples of independence for each of `n_directions + 1`, with which a pair is mixed: two
samples alone are always perfectly correlated."""


class AvailableMoments(NamedTuple):
    """Covariances of the features of all pairs in r directions, each over the samples that have
    both variables."""

    covariance: Float32  # (p r, p r)
    both: Float32  # (p, p) weight of those samples
    means: Float32  # (p r, p) means of the features over the samples that have another


def available_moments(
    table: Table, basis: Float32, offset: Float32, n_jobs: int
) -> AvailableMoments:
    """Moments of all pairs, in one pass.

    Whether a sample has a variable is a feature of its own, so that the same Gram product gives the
    number of samples of every pair and the means over them."""
    p, n_directions = table.n_vars, basis.shape[1]
    width = p * n_directions
    columns = partial(_with_known, table.storage.features(basis, offset), table.storage)
    sums = gram(columns, table, width + p, n_jobs)
    both = np.maximum(sums[width:, width:], np.float32(1e-30))
    wide = np.repeat(both, n_directions, axis=0)
    means = sums[:width, width:] / wide
    covariance = sums[:width, :width] / np.repeat(wide, n_directions, axis=1)
    across = np.repeat(means, n_directions, axis=1)
    covariance -= across * across.T
    return AvailableMoments(covariance, both, means)


def _with_known(
    features: Features, storage: Storage, chunk: Chunk, n_jobs: int
) -> tuple[Float32, Float32]:
    """`(n, p r + p)` weighted features, then whether a sample has each variable; twice."""
    z = features.weighted(chunk, n_jobs)
    both = np.concatenate([z.reshape(len(z), -1), root_weights_known(storage, chunk)], 1)
    return both, both


def _own_products(
    features: Features, storage: Storage, chunk: Chunk, n_jobs: int
) -> tuple[Float32, Float32]:
    """`(n, p r (r + 1) / 2)` products of two features of a variable, and `(n, p)` whether a sample
    has each variable."""
    z, roots = features.of(chunk, n_jobs), chunk.root_weights
    rows, columns = np.tril_indices(z.shape[2])
    squares = z[:, :, rows] * z[:, :, columns]
    if roots is not None:
        squares *= roots[:, None, None]
    return squares.reshape(len(z), -1), root_weights_known(storage, chunk)


def root_weights_known(storage: Storage, chunk: Chunk) -> Float32:
    """(n, p) roots of the weights where a sample has a variable, else 0."""
    known, roots = storage.known(chunk), chunk.root_weights
    assert known is not None
    return known.astype(np.float32) if roots is None else known * roots[:, None]


@subroutine
def own_share(n, n_directions):  # type: ignore[no-untyped-def]
    """Weight of a pair's own second moments, from `n` samples that have both; the rest is the
    variances of all samples, and covariance zero. `1 - O(1 / n^2)`, a change far below the
    noise."""
    prior = PRIOR * (n_directions + 1)
    return n * n / (n * n + prior * prior)


def whiten_pairs(
    moments: AvailableMoments, table: Table, basis: Float32, offset: Float32, n_jobs: int
) -> None:
    """`C_ab = root_a Cov_ab root_b^T` in place, b < a, with roots from the pair's own samples.

    One more pass, for the second moments of each variable over the samples that have another:
    n p^2 r (r + 1) / 2 multiply-adds."""
    p, n_directions = table.n_vars, basis.shape[1]
    size = n_directions * (n_directions + 1) // 2
    columns = partial(_own_products, table.storage.features(basis, offset), table.storage)
    own = gram_between(columns, table, (p * size, p), n_jobs)
    given = (moments.covariance, moments.both, moments.means, own, n_directions)
    parallel(lambda a, b: _whiten(*given, a, b), p, n_jobs)


@kernel
def _whiten(covariance, both, means, own, r, start, stop):  # type: ignore[no-untyped-def]
    """Blocks (a, b) of `covariance`, b < a, start <= a < stop, in place, for r directions; `own`
    `(p r (r + 1) / 2, p)` are sums of products of a variable's features over the samples that have
    another."""
    first, second = np.empty((r, r)), np.empty((r, r))
    for a in range(start, stop):
        for b in range(a):
            _root(covariance, both, means, own, a, b, first)
            _root(covariance, both, means, own, b, a, second)
            share = own_share(both[a, b], r)
            for j in range(r):  # columns: root_a S
                for i in range(r):
                    t = share * covariance[a * r + i, b * r + j]
                    for u in range(i):
                        t -= first[i, u] * covariance[a * r + u, b * r + j]
                    covariance[a * r + i, b * r + j] = t / first[i, i]
            for i in range(r):  # rows: times root_b^T
                for j in range(r):
                    t = covariance[a * r + i, b * r + j]
                    for u in range(j):
                        t -= second[j, u] * covariance[a * r + i, b * r + u]
                    covariance[a * r + i, b * r + j] = t / second[j, j]


@subroutine
def _root(covariance, both, means, own, a, b, out):  # type: ignore[no-untyped-def]
    """Cholesky factor of the covariance of a's features over the samples that have b too, mixed
    with that over all samples that have a, into the lower triangle of `out` `(r, r)`; the identity
    where neither varies."""
    r = len(out)
    size = r * (r + 1) // 2
    n = both[a, b]
    share = own_share(n, r)
    trace, s = 0.0, 0
    for i in range(r):
        for j in range(i + 1):
            here = own[a * size + s, b] / n - means[a * r + i, b] * means[a * r + j, b]
            out[i, j] = share * here + (1 - share) * covariance[a * r + i, a * r + j]
            s += 1
        trace += out[i, i]
    for i in range(r):
        for j in range(i + 1):
            t = out[i, j]
            if i == j:
                t = t + 1e-6 * trace / r if trace > 0.0 else 1.0
            elif trace <= 0.0:
                t = 0.0
            for u in range(j):
                t -= out[i, u] * out[j, u]
            out[i, j] = np.sqrt(max(t, 1e-9 * trace)) if i == j else t / out[j, j]
