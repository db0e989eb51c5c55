"""Parameters of three views fitted to all their moments at once, by damped Gauss-Newton steps.

The fit does without the symmetry that sampling noise breaks, and no inverse of a noisy matrix
enters it. It minimises minus twice a log-posterior, see `_objective`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from latenttree.engine.arrays import Floats
from latenttree.parameters.view_moments import (
    PAIRS,
    ViewMoments,
    ViewParameters,
    oriented_pair,
    squares,
    transposed,
)

FLOOR = 1e-6
"""Lower bound of weights, since factors are divided by them."""

ORDERS = (1e4, 100.0, 2.0, 1.0)
"""Weights of the squared errors of E[1], E[y_b], E[y_b y_c], E[y_1 y_2 y_3]. The first two are
known far better than the others (exactly, where features were centred)."""

PRIOR = 3.0
"""Pseudo-samples of each state: they keep weights off zero, and have no effect on exact moments."""

STEPS = 60
"""Upper bound of the number of Gauss-Newton steps; 3 to 10 are usual."""

STILL = 1e-6
"""Relative decrease of the squared error at which the fit ends."""


class MomentErrors(NamedTuple):
    """Moments minus fitted ones, of every order."""

    zero: Floats
    first: Floats
    second: Floats
    third: Floats


def moment_errors(moments: ViewMoments, fit: ViewParameters) -> MomentErrors:
    """Moments minus those that the parameters imply; O(k q^3)."""
    w, z = fit.weights, fit.factors
    weighted = w[:, None, :] * z
    one, other = np.transpose(PAIRS)
    second = moments.second - weighted[one] @ transposed(z[other])
    third = (weighted[0] @ transposed(_products(z[1], z[2]))).reshape(moments.third.shape)
    first = moments.first - weighted.sum(axis=3)
    return MomentErrors(1 - w.sum(axis=1), first, second, moments.third - third)


def _products(b: Floats, c: Floats) -> Floats:
    """Column by column `b_j x c_j`, (m, q^2, k)."""
    return (b[:, :, None, :] * c[:, None, :, :]).reshape(
        len(b), b.shape[1] * c.shape[1], b.shape[2]
    )


def weighted_loss(errors: MomentErrors) -> Floats:
    """Weighted sum of squares, (m,)."""
    parts = ([errors.zero], [*errors.first], [*errors.second], [errors.third])
    pairs = zip(ORDERS, parts, strict=True)
    return np.add.reduce([order * squares(x) for order, part in pairs for x in part])


def _gradient(errors: MomentErrors, fit: ViewParameters) -> Floats:
    """`J^T errors`, (m, 3 k q + k): for each view, state and coordinate, then for each weight.

    In the scaled parameters `sqrt(w_j) A_b[:, j]` and `w_j / sqrt(w_j)` (see `normal_matrix`).
    """
    z, root = fit.factors, np.sqrt(fit.weights)
    _, one, two, three = ORDERS
    m, q = z[0].shape[:2]
    parts, along = [], []
    for a in range(3):
        b, c = (v for v in range(3) if v != a)
        tensor = np.moveaxis(errors.third, 1 + a, 1).reshape(m, q, q * q)
        cubic = three * (tensor @ _products(z[b], z[c]))
        linear = (
            oriented_pair(errors.second, a, b) @ z[b] + oriented_pair(errors.second, a, c) @ z[c]
        )
        mean = one * errors.first[a][:, :, None]
        parts.append(transposed((cubic + two * linear + mean) * root[:, None, :]).reshape(m, -1))
        # every order once: the triple in one view, each pair in one view, the means in all
        once = (cubic if a == 0 else 0.0) + 0.5 * two * linear + mean
        along.append((z[a] * once).sum(axis=1))
    weights = (np.add.reduce(along) + ORDERS[0] * errors.zero[:, None]) * root
    return np.concatenate([*parts, weights], axis=1)


def normal_matrix(fit: ViewParameters) -> Floats:
    """`J^T J` of the weighted moments, (m, n, n) with `n = 3 k q + k`.

    Parameters are `sqrt(w_j) A_b[:, j]` with w held, and `w_j / sqrt(w_j)` with A held: the errors
    of estimates with h observed are then all about `1 / sqrt(N)`. Inner products of the
    columns of J are products of `G_b = A_b^T A_b`, so J itself (k^3 rows) is never made. O(k^4).
    """
    z, scale = fit.factors, np.sqrt(fit.weights[:, :, None] * fit.weights[:, None, :])
    zero, one, two, three = ORDERS
    m, q, k = z[0].shape
    g = [transposed(f) @ f for f in z]
    out = np.zeros((m, 3 * k * q + k, 3 * k * q + k))
    span = [slice(v * k * q, (v + 1) * k * q) for v in range(3)]
    last = slice(3 * k * q, None)
    for a, b, c in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        same = scale * (three * g[b] * g[c] + two * (g[b] + g[c]) + one)
        for i in range(q):
            out[:, span[a], span[a]][:, i::q, i::q] = same
        side = (same[:, :, None, :] * z[a][:, None, :, :]).reshape(m, k * q, k)
        out[:, span[a], last], out[:, last, span[a]] = side, transposed(side)
        # between coordinate i of state j in view a and i' of l in b: A_a[i, l] A_b[i', j] (...)
        left, right = z[a][:, None, :, :, None], transposed(z[b])[:, :, None, None, :]
        block = (scale * (three * g[c] + two))[:, :, None, :, None] * left * right
        block = block.reshape(m, k * q, k * q)
        out[:, span[a], span[b]], out[:, span[b], span[a]] = block, transposed(block)
    pairs = g[0] * g[1] + g[0] * g[2] + g[1] * g[2]
    total = three * g[0] * g[1] * g[2] + two * pairs + one * (g[0] + g[1] + g[2]) + zero
    out[:, last, last] = scale * total
    return out


def _moved(fit: ViewParameters, step: Floats) -> ViewParameters:
    """The parameters after a step in the scaled parameters; weights stay positive as squares."""
    m, q, k = fit.factors[0].shape
    root = np.sqrt(fit.weights)
    change = step[:, :-k].reshape(m, 3, k, q) / root[:, None, :, None]
    factors = fit.factors + transposed(change.swapaxes(0, 1))
    return ViewParameters(np.maximum((root + 0.5 * step[:, -k:]) ** 2, FLOOR), factors)


def _objective(errors: MomentErrors, fit: ViewParameters) -> Floats:
    """The objective of the fit, (m,): `n log(loss) - 2 PRIOR sum_j (log w_j - k w_j)`.

    Minus twice the log-posterior with unknown noise (its most probable value, `loss / n`, put in)
    and a Dirichlet prior of `PRIOR` samples of each state. When the moments are exact, the loss
    goes to zero and the prior with it.
    """
    w, k = fit.weights, fit.weights.shape[1]
    prior = PRIOR * (np.log(w) - k * w).sum(axis=1)
    return _count(fit) * np.log(weighted_loss(errors) + 1e-300) - 2 * prior


def _count(fit: ViewParameters) -> int:
    """Number of second and third moments."""
    q = fit.factors[0].shape[1]
    return 3 * q * q + q**3


def _step(errors: MomentErrors, fit: ViewParameters, damping: Floats) -> Floats:
    """Damped Gauss-Newton step `(J^T J + prior + damping * diagonal)^-1 (J^T errors + prior)`."""
    normal, gradient = normal_matrix(fit), _gradient(errors, fit)
    w, k = fit.weights, fit.weights.shape[1]
    prior = (PRIOR / _count(fit)) * weighted_loss(errors)[:, None]
    gradient[:, -k:] += prior * (1 / w - k) * np.sqrt(w)
    diagonal = np.einsum("mii->mi", normal)
    diagonal[:, -k:] += prior / w
    diagonal *= 1 + damping[:, None]
    diagonal += 1e-14 * diagonal.mean(axis=1, keepdims=True) + 1e-200
    return np.asarray(np.linalg.solve(normal, gradient[:, :, None])[:, :, 0], dtype=np.float64)


def fit_moments(moments: ViewMoments, start: ViewParameters) -> ViewParameters:
    """Levenberg-Marquardt from `start`, each triplet until its objective stands still.

    A step that does not help is not taken, so the objective never rises. O(k^6) for a triplet and
    step: a linear system of size about 3 k^2.
    """
    rows = np.arange(len(start.weights))
    fit = result = start.take(rows)
    errors, damping = moment_errors(moments, fit), np.full(len(rows), 1e-3)
    before, least = _objective(errors, fit), 1e-30 * moments.size()
    for _ in range(STEPS):
        tried = _moved(fit, _step(errors, fit, damping))
        after = _objective(moment_errors(moments, tried), tried)
        better = after < before
        result.replace(rows[better], tried.take(better))
        gain = np.where(better, before - after, np.inf)
        damping = np.clip(np.where(better, 0.1, 10.0) * damping, 1e-14, 1e8)
        active = (gain > STILL * _count(fit)) & (damping < 1e8)
        active &= ~better | (weighted_loss(moment_errors(moments, tried)) > least)
        if not active.any():
            break
        before = np.where(better, after, before)[active]
        least, damping = least[active], damping[active]
        rows, moments = rows[active], moments.take(active)
        fit = result.take(rows)
        errors = moment_errors(moments, fit)
    return result
