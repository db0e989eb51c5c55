"""Small matrices: one at a time, and many at once with the batch on the last axis.

With the batch last, `(i, j, g)` and `(j, r)`, a product of small matrices is a handful of long
vector operations, several times faster than a loop over the matrices in a library."""

from __future__ import annotations

import numpy as np

from latenttree.engine.arrays import Floats, Ints


def solve(a: Floats, b: Floats) -> Floats:
    """`a^-1 b`."""
    return np.asarray(np.linalg.solve(a, b))


def root_pair(spread: Floats) -> tuple[Floats, Floats]:
    """Symmetric root of a covariance, and its inverse."""
    if len(spread) == 1:
        return np.sqrt(spread), 1 / np.sqrt(spread)
    values, vectors = np.linalg.eigh(spread)
    size = np.sqrt(values)
    return (vectors * size) @ vectors.T, (vectors / size) @ vectors.T


def at_least(spread: Floats, least: float, diagonal: bool = False) -> Floats:
    """The covariance of largest likelihood among those with eigenvalues of `least` or more."""
    if diagonal or len(spread) == 1:
        return np.diag(np.maximum(np.diag(spread), least))
    spread = (spread + spread.T) / 2
    values, vectors = np.linalg.eigh(spread)
    if values[0] >= least:
        return np.asarray(spread)
    return np.asarray((vectors * np.maximum(values, least)) @ vectors.T)


def limited(matrix: Floats, most: float) -> Floats:
    """The same with singular values of at most `most`."""
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    return np.asarray(left * np.minimum(values, most) @ right)


def inverse(matrices: Floats) -> tuple[Floats, Floats]:
    """Inverses `(d, d, g)` and log-determinants `(g,)` of positive definite matrices.

    Gauss-Jordan without pivots, which positive definite matrices do not need; `O(d^3)` each."""
    a = np.array(matrices)
    log_determinant = np.zeros(a.shape[2])
    for i in range(len(a)):
        pivot = a[i, i].copy()
        log_determinant += np.log(pivot)
        row, column = a[i] / pivot, a[:, i].copy()
        a -= column[:, None] * row
        a[:, i] = -column / pivot
        a[i] = row
        a[i, i] = 1 / pivot
    return a, log_determinant


def inverse_over(matrices: Floats, used: Floats) -> tuple[Floats, Floats]:
    """Inverses of the parts `used` `(d, g)` (1.0 or 0.0) of matrices `(d, d, g)` or `(d, d, 1)`, 0
    elsewhere, and log-determinants of those parts."""
    both = used[:, None] * used
    padded = matrices * both
    diagonal = np.arange(len(used))
    padded[diagonal, diagonal] += 1 - used
    found, log_determinant = inverse(padded)
    return found * both, log_determinant


def congruence(left: Floats, matrices: Floats) -> Floats:
    """`left^T M left` for every M: `(d, c)` and `(d, d, g)` to `(c, c, g)`."""
    d, c = left.shape
    if d == c == 1:
        return np.asarray(left[0, 0] ** 2 * matrices)
    half = (left.T @ matrices.reshape(d, -1)).reshape(c, d, -1)
    return np.asarray(left.T @ half)


def after(matrices: Floats, right: Floats) -> Floats:
    """`M right` for every M: `(i, j, g)` and `(j, l)` to `(i, l, g)`."""
    return np.asarray(right.T @ matrices)


def times(a: Floats, b: Floats) -> Floats:
    """`A B` for every pair: `(i, j, g)` and `(j, l, g)` to `(i, l, g)`; either g may be 1."""
    found = np.empty((a.shape[0], b.shape[1], max(a.shape[2], b.shape[2])))
    for column in range(b.shape[1]):  # this form of sum runs along the batch
        np.einsum("ijg,jg->ig", a, b[:, column], out=found[:, column])
    return found


def times_transposed(a: Floats, b: Floats) -> Floats:
    """`A B^T` for every pair: `(i, j, g)` and `(l, j, g)` to `(i, l, g)`."""
    return times(a, b.transpose(1, 0, 2))


def apply(matrices: Floats, vectors: Floats, pattern: Ints | None) -> Floats:
    """`M_g(r) v_r`: `(i, j, g)` and `(j, r)` to `(i, r)`; `pattern` gives g for each r, None where
    they are the same. A single matrix serves all."""
    if matrices.shape[2] == 1:
        return np.asarray(matrices[:, :, 0] @ vectors)
    chosen = matrices if pattern is None else matrices[:, :, pattern]
    if chosen.shape[:2] == (1, 1):
        return np.asarray(chosen[0] * vectors)
    return np.asarray(np.einsum("ijr,jr->ir", chosen, vectors))
