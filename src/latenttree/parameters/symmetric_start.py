"""A start for the decomposition of three views: symmetric, whitened, rotated.

The views are carried into the coordinates of one of them and whitened by the pair moments. There
the third moment is a symmetric tensor with orthogonal factors, which Jacobi rotations find by
diagonalising all of its slices at once. Between states i and j the slices together are separated by
`1/w_i + 1/w_j`, so equal weights do no harm, no slice has to be drawn at random, and the answer is
real. Exact on exact moments.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np

from latenttree.engine.arrays import Floats
from latenttree.engine.kernels import kernel
from latenttree.parameters.moment_fit import FLOOR, moment_errors, weighted_loss
from latenttree.parameters.view_moments import (
    ViewMoments,
    ViewParameters,
    on_simplex,
    transposed,
)

SPAN = 1e-12
"""Ratio of singular values below which a direction is rounding error."""

SHARE, LIFTED = 0.5, 0.1
"""The fit starts with no weight below `SHARE / k`: where noise makes a weight tiny, its factor is
huge, and the nearest minimum is one with a state of no samples. The weights as found are kept where
their squared error is below `LIFTED` times that of the lifted ones: then the state is rare."""


def diagonalised_start(moments: ViewMoments) -> ViewParameters:
    """For each triplet the start that fits best: each view as pivot, weights as found or lifted."""
    fits = [fit for pivot in range(3) for fit in _pivoted(moments, pivot)]
    losses = [weighted_loss(moment_errors(moments, fit)) for fit in fits]
    handicap = np.array([1.0, LIFTED] * 3)[:, None]
    best = np.argmin(handicap * losses, axis=0)
    rows = np.arange(len(best))
    weights = np.stack([fit.weights for fit in fits])[best, rows]
    factors = np.stack([fit.factors for fit in fits], axis=1)[:, best, rows]
    return ViewParameters(weights, factors)


def _pivoted(moments: ViewMoments, pivot: int) -> list[ViewParameters]:
    """Decomposition in the coordinates of view `c = pivot`, with a and b the other two.

    `A_c A_a^-1 = M_cb M_ab^-1` carries view a into c. There the pair moment is
    `S = M_cb M_ab^-1 M_ac = A_c W A_c^T`; with `Q^T S Q = I`, `Q^T A_c W^1/2 = V` is orthogonal,
    the third moment is `sum_j w_j^-1/2 v_j x v_j x v_j` and `V^T Q^T E[y_c]` is `w^1/2`.
    O(k^4) for each triplet and sweep.
    """
    a, b, c = (pivot + 1) % 3, (pivot + 2) % 3, pivot
    ab, ac, cb = moments.pair(a, b), moments.pair(a, c), moments.pair(c, b)
    inverse = _inverse(ab)
    to_a, to_b = cb @ inverse, transposed(ac) @ transposed(inverse)
    carried = to_a @ ac
    whiten = _whitening(carried)
    tensor = np.moveaxis(moments.third, (1 + a, 1 + b, 1 + c), (1, 2, 3))
    tensor = _apply(
        tensor, (transposed(whiten) @ to_a, transposed(whiten) @ to_b, transposed(whiten))
    )
    v = np.broadcast_to(np.eye(ab.shape[1]), ab.shape).copy()
    _rotate(_symmetric(tensor), v)
    basis = whiten @ v
    root = (transposed(basis) @ moments.first[c][:, :, None])[:, :, 0]
    # M_vc Q V = A_v W^1/2, and S in place of M_cc (which is no product of the factors)
    pairs = {a: ac, b: transposed(cb), c: 0.5 * (carried + transposed(carried))}
    basis = basis * np.where(root < 0, -1.0, 1.0)[:, None, :]
    halves = np.stack([pairs[view] @ basis for view in range(3)])  # A_b W^1/2
    lifts = (FLOOR, SHARE / root.shape[1])
    weights = [on_simplex(root**2, lift) for lift in lifts]
    return [ViewParameters(w, halves / np.sqrt(w)[:, None, :]) for w in weights]


def _inverse(x: Floats) -> Floats:
    """Inverse of square matrices, singular values lifted to `SPAN` of the largest."""
    u, s, vt = np.linalg.svd(x)
    top = np.where(s[:, :1] > 0, s[:, :1], 1.0)
    return transposed(vt) @ (transposed(u) / np.maximum(s, SPAN * top)[:, :, None])


def _whitening(s: Floats) -> Floats:
    """Q with `Q^T S Q = I`, for the symmetric part of S.

    Noise makes a small eigenvalue negative: its size is then still the best guess of the size.
    """
    values, vectors = np.linalg.eigh(0.5 * (s + transposed(s)))
    size = np.abs(values)
    top = size.max(axis=1, keepdims=True)
    return vectors / np.sqrt(np.maximum(size, SPAN * np.where(top > 0, top, 1.0)))[:, None, :]


def _apply(tensor: Floats, maps: Sequence[Floats]) -> Floats:
    """`sum T[a, b, c] X[i, a] Y[j, b] Z[k, c]`, O(k^4)."""
    for one in maps:  # the first axis is mapped and goes to the end, three times
        m, q, r, s = tensor.shape
        tensor = (one @ tensor.reshape(m, q, r * s)).reshape(m, one.shape[1], r, s)
        tensor = np.moveaxis(tensor, 1, 3)
    return tensor


def _symmetric(tensor: Floats) -> Floats:
    total = sum(np.transpose(tensor, (0, *axes)) for axes in permutations((1, 2, 3)))
    return np.ascontiguousarray(total) / 6


@kernel
def _rotate(slices, v):  # type: ignore[no-untyped-def]
    """Rotate `slices` (m, s, k, k), symmetric, as near to diagonal as all of one m can be.

    In place; `v` (m, k, k), given as identities, becomes the rotations: `V^T slice V`. The angle in
    a plane has a closed form (Cardoso and Souloumiac 1996). O(s k^3) for a sweep; up to 60.
    """
    m, n_slices, k, _ = slices.shape
    for node in range(m):
        for _ in range(60):
            largest = 0.0
            for p in range(k):
                for q in range(p + 1, k):
                    on, off = 0.0, 0.0
                    for s in range(n_slices):
                        difference = slices[node, s, p, p] - slices[node, s, q, q]
                        twice = slices[node, s, p, q] + slices[node, s, q, p]
                        on += difference * difference - twice * twice
                        off += 2 * difference * twice
                    angle = 0.5 * np.arctan2(off, on + np.sqrt(on * on + off * off))
                    largest = max(largest, abs(angle))
                    if abs(angle) < 1e-15:
                        continue
                    cos, sin = np.cos(angle), np.sin(angle)
                    for s in range(n_slices):
                        x = slices[node, s]
                        for i in range(k):
                            left, right = x[i, p], x[i, q]
                            x[i, p] = cos * left + sin * right
                            x[i, q] = cos * right - sin * left
                        for i in range(k):
                            left, right = x[p, i], x[q, i]
                            x[p, i] = cos * left + sin * right
                            x[q, i] = cos * right - sin * left
                    for i in range(k):
                        left, right = v[node, i, p], v[node, i, q]
                        v[node, i, p] = cos * left + sin * right
                        v[node, i, q] = cos * right - sin * left
            if largest < 1e-12:
                break
