"""Second moments of all pairs where values are missing: each pair by the samples that have both.

A pair is whitened by its own samples too. With the variances of all samples that have a variable,
a correlation near one would be no more precise than any other: what makes it precise is that
covariance and variances err together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.data import Table
from latenttree.engine import parallel
from latenttree.engine.kernels import kernel, subroutine
from latenttree.moments.gram import gram, gram_between
from latenttree.moments.projection import features, root_weights, weighted_features

PRIOR = 2.0
"""Samples, for each dimension and one more, below which a pair is mixed with independence: two
samples alone are always perfectly correlated."""


class Available(NamedTuple):
    """Covariances of the features of all pairs, each over the samples that have both."""

    covariance: NDArray[np.float32]  # (p rank, p rank)
    both: NDArray[np.float32]  # (p, p) weight of those samples
    beside: NDArray[np.float32]  # (p rank, p) means of the features over samples that have another


def available_moments(
    table: Table, basis: NDArray[np.float32], offset: NDArray[np.float32], n_jobs: int
) -> Available:
    """One pass. Who has what is a feature of its own, so that the same product gives the number of
    samples of every pair and the means over them."""
    p, rank = table.n_vars, basis.shape[1]
    width = p * rank

    def chunk(start: int, stop: int) -> NDArray[np.float32]:
        z = weighted_features(table, basis, offset, start, stop, n_jobs).reshape(-1, width)
        return np.concatenate([z, _there(table, start, stop)], axis=1)

    sums = gram(chunk, table.n_samples, width + p, n_jobs)
    both = np.maximum(sums[width:, width:], np.float32(1e-30))
    wide = np.repeat(both, rank, axis=0)
    beside = sums[:width, width:] / wide
    covariance = sums[:width, :width] / np.repeat(wide, rank, axis=1)
    across = np.repeat(beside, rank, axis=1)
    covariance -= across * across.T
    return Available(covariance, both, beside)


def _there(table: Table, start: int, stop: int) -> NDArray[np.float32]:
    """(n, p) roots of the weights where a sample has a variable, else 0."""
    known, roots = table.known(start, stop), root_weights(table, start, stop)
    assert known is not None
    return known.astype(np.float32) if roots is None else known * roots[:, None]


@subroutine
def own_share(n, rank):  # type: ignore[no-untyped-def]
    """How much of a pair's second moments is its own, with `n` samples that have both; the rest is
    variances of all samples, and no covariance. `1 - O(1 / n^2)`, far less than the noise."""
    prior = PRIOR * (rank + 1)
    return n * n / (n * n + prior * prior)


def whiten_pairs(
    found: Available,
    table: Table,
    basis: NDArray[np.float32],
    offset: NDArray[np.float32],
    n_jobs: int,
) -> None:
    """`C_ab = root_a Cov_ab root_b^T` in place, b < a, with the roots of the pair's own samples.

    One more pass, for the second moments of each variable over the samples that have another:
    n p^2 r (r + 1) / 2 multiply-adds."""
    p, rank = table.n_vars, basis.shape[1]
    rows, columns = np.tril_indices(rank)

    def chunk(start: int, stop: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        z = features(table, basis, offset, start, stop, n_jobs)
        roots, there = root_weights(table, start, stop), _there(table, start, stop)
        squares = z[:, :, rows] * z[:, :, columns]
        if roots is not None:
            squares *= roots[:, None, None]
        return squares.reshape(len(z), -1), there

    own = gram_between(chunk, table.n_samples, (p * len(rows), p), n_jobs)
    parallel(
        lambda a, b: _whiten(found.covariance, found.both, found.beside, own, rank, a, b), p, n_jobs
    )


@kernel
def _whiten(covariance, both, beside, own, rank, start, stop):  # type: ignore[no-untyped-def]
    """Blocks (a, b) of `covariance`, b < a, start <= a < stop, in place; `own` `(p r (r + 1) / 2,
    p)` are sums of products of a variable's features over the samples that have another."""
    first, second = np.empty((rank, rank)), np.empty((rank, rank))
    for a in range(start, stop):
        for b in range(a):
            _root(covariance, both, beside, own, a, b, first)
            _root(covariance, both, beside, own, b, a, second)
            share = own_share(both[a, b], rank)
            for j in range(rank):  # columns: root_a S
                for i in range(rank):
                    t = share * covariance[a * rank + i, b * rank + j]
                    for u in range(i):
                        t -= first[i, u] * covariance[a * rank + u, b * rank + j]
                    covariance[a * rank + i, b * rank + j] = t / first[i, i]
            for i in range(rank):  # rows: times root_b^T
                for j in range(rank):
                    t = covariance[a * rank + i, b * rank + j]
                    for u in range(j):
                        t -= second[j, u] * covariance[a * rank + i, b * rank + u]
                    covariance[a * rank + i, b * rank + j] = t / second[j, j]


@subroutine
def _root(covariance, both, beside, own, a, b, out):  # type: ignore[no-untyped-def]
    """Cholesky factor of the covariance of a's features over the samples that have b too, mixed
    with that over all that have a; the identity where neither varies. In `out`, lower triangle."""
    rank = len(out)
    size = rank * (rank + 1) // 2
    n = both[a, b]
    share = own_share(n, rank)
    trace, s = 0.0, 0
    for i in range(rank):
        for j in range(i + 1):
            here = own[a * size + s, b] / n - beside[a * rank + i, b] * beside[a * rank + j, b]
            out[i, j] = share * here + (1 - share) * covariance[a * rank + i, a * rank + j]
            s += 1
        trace += out[i, i]
    for i in range(rank):
        for j in range(i + 1):
            t = out[i, j]
            if i == j:
                t = t + 1e-6 * trace / rank if trace > 0.0 else 1.0
            elif trace <= 0.0:
                t = 0.0
            for u in range(j):
                t -= out[i, u] * out[j, u]
            out[i, j] = np.sqrt(max(t, 1e-9 * trace)) if i == j else t / out[j, j]
