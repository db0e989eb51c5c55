"""Three views of one hidden variable -> its distribution and the mean of each view in each state.

Views `y_1, y_2, y_3` are independent given a hidden `h` with k states; `P(h = j) = w_j` and
`E[y_b | h = j] = A_b[:, j]`. Their moments are then

    E[y_b]               = A_b w
    E[y_b y_c^T]         = A_b diag(w) A_c^T
    E[y_1 ⊗ y_2 ⊗ y_3] = sum_j w_j A_1[:, j] ⊗ A_2[:, j] ⊗ A_3[:, j]

and determine `w` and `A_b` up to the order of the states when every `A_b` has full column rank.

Two steps. *Start*: the views are carried into the coordinates of one of them and whitened by the
pair moments; there the third moment is a symmetric tensor with orthogonal factors, found by Jacobi
rotations that diagonalise all of its slices at once. Between states i and j the slices together
are separated by `1/w_i + 1/w_j`, so equal weights do no harm, no slice has to be drawn at random,
and the answer is real. *Polish*: all moments are fitted at once, without the symmetry that noise
breaks, by damped Gauss-Newton steps. The start is exact on exact moments; the polish is what counts
with samples, because no inverse of a noisy matrix enters it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latenttree.engine import single_threaded_blas
from latenttree.engine.kernels import kernel
from latenttree.errors import DataError

Array: TypeAlias = NDArray[np.float64]
Three: TypeAlias = tuple[Array, Array, Array]
Rows: TypeAlias = NDArray[np.intp] | NDArray[np.bool_]

FLOOR = 1e-6  # no weight is smaller: factors are divided by them
SPAN = 1e-12  # ratio of singular values below which a direction is rounding
LIMIT = 1e30  # larger moments would overflow in products of six
# The polish starts with no weight below SHARE / k: where noise makes a weight tiny, its factor is
# huge, and the nearest minimum is one with a state of no samples. Unless the weights as found fit
# far better, their squared error below LIFTED times that of the lifted ones: the state is rare.
SHARE = 0.5
LIFTED = 0.1
# Weights of the squared errors of E[1], E[y_b], E[y_b y_c], E[y_1 y_2 y_3] in the fit. The first
# two are known far better than the others (exactly, where features were centred).
ORDERS = (1e4, 100.0, 2.0, 1.0)
PRIOR = 3.0  # samples of each state that are imagined: holds weights off zero, 0 on exact moments
STEPS = 60  # Gauss-Newton steps at most; 3 to 10 are usual
STILL = 1e-6  # relative decrease of the squared error at which the polish ends
ENTRIES = 1 << 22  # of the normal equations at a time: 32 MB
PAIRS = ((0, 1), (0, 2), (1, 2))


@dataclass(frozen=True)
class Decomposition:
    """Hidden variables of m triplets of views; states by decreasing weight.

    weights: (m, k), each row on the simplex, no entry below half of `FLOOR`.
    factors: three arrays (m, d_b, k), column j = E[y_b | h = j].
    condition: (m,), how much an error of the moments is amplified, see `_condition`.
    residual: (m,), `|moments - fitted| / |moments|` over means, pairs and triple together.
    """

    weights: Array
    factors: Three
    condition: Array
    residual: Array


@dataclass(frozen=True)
class _Moments:
    """Of m triplets: third (m, q, q, q); first, three (m, q); second, (1,2), (1,3), (2,3)."""

    third: Array
    first: Three
    second: Three

    def take(self, rows: Rows) -> _Moments:
        return _Moments(self.third[rows], *(_each(x, rows) for x in (self.first, self.second)))

    def without_constant(self) -> _Moments:
        """The same without the first coordinate of every view."""
        first, second = (_each(self.first, np.s_[:, 1:]), _each(self.second, np.s_[:, 1:, 1:]))
        return _Moments(self.third[:, 1:, 1:, 1:], first, second)


@dataclass(frozen=True)
class _Fit:
    """Weights (m, k) and factors, three (m, q, k)."""

    weights: Array
    factors: Three

    def take(self, rows: Rows) -> _Fit:
        return _Fit(self.weights[rows], _each(self.factors, rows))

    def replace(self, rows: Rows, fits: _Fit) -> None:
        """Write `fits` over the given rows, in place."""
        self.weights[rows] = fits.weights
        for old, new in zip(self.factors, fits.factors, strict=True):
            old[rows] = new


def _three(arrays: Iterable[Array]) -> Three:
    a, b, c = arrays
    return a, b, c


def _each(arrays: Three, part: Any) -> Three:
    return _three(x[part] for x in arrays)


# ---- the start: symmetric, whitened, rotated ------------------------------------------


def _start(moments: _Moments) -> _Fit:
    """Each view as pivot, weights as found or lifted: for each triplet what fits best."""
    fits = [fit for pivot in range(3) for fit in _pivoted(moments, pivot)]
    losses = [_loss(_errors(moments, fit)) for fit in fits]
    handicap = np.array([1.0, LIFTED] * 3)[:, None]
    best = np.argmin(handicap * losses, axis=0)
    rows = np.arange(len(best))
    weights = np.stack([fit.weights for fit in fits])[best, rows]
    a, b, c = (np.stack([fit.factors[v] for fit in fits])[best, rows] for v in range(3))
    return _Fit(weights, (a, b, c))


def _pivoted(moments: _Moments, pivot: int) -> list[_Fit]:
    """Decomposition in the coordinates of view `c = pivot`, with a and b the other two.

    `A_c A_a^-1 = M_cb M_ab^-1` carries view a into c. There the pair moment is
    `S = M_cb M_ab^-1 M_ac = A_c W A_c^T`; with `Q^T S Q = I`, `Q^T A_c W^1/2 = V` is orthogonal,
    the third moment is `sum_j w_j^-1/2 v_j ⊗ v_j ⊗ v_j` and `V^T Q^T E[y_c]` is `w^1/2`.
    O(k^4) for each triplet and sweep.
    """
    a, b, c = (pivot + 1) % 3, (pivot + 2) % 3, pivot
    ab, ac, cb = _pair(moments, a, b), _pair(moments, a, c), _pair(moments, c, b)
    inverse = _inverse(ab)
    to_a, to_b = cb @ inverse, _t(ac) @ _t(inverse)
    carried = to_a @ ac
    whiten = _whitening(carried)
    tensor = np.moveaxis(moments.third, (1 + a, 1 + b, 1 + c), (1, 2, 3))
    tensor = _apply(tensor, (_t(whiten) @ to_a, _t(whiten) @ to_b, _t(whiten)))
    v = np.broadcast_to(np.eye(ab.shape[1]), ab.shape).copy()
    _rotate(_symmetric(tensor), v)
    basis = whiten @ v
    root = (_t(basis) @ moments.first[c][:, :, None])[:, :, 0]
    # M_vc Q V = A_v W^1/2, and S in place of M_cc (which is no product of the factors)
    pairs = {a: ac, b: _t(cb), c: 0.5 * (carried + _t(carried))}
    basis = basis * np.where(root < 0, -1.0, 1.0)[:, None, :]
    halves = [pairs[view] @ basis for view in range(3)]
    lifts = (FLOOR, SHARE / root.shape[1])
    return [_unscaled(_simplex(root**2, lift), halves) for lift in lifts]


def _unscaled(weights: Array, halves: Sequence[Array]) -> _Fit:
    """From `A_b W^1/2` to `A_b`."""
    return _Fit(weights, _three(half / np.sqrt(weights)[:, None, :] for half in halves))


def _pair(moments: _Moments, a: int, b: int) -> Array:
    """`E[y_a y_b^T]`, (m, q, q)."""
    if a > b:
        return _t(_pair(moments, b, a))
    return moments.second[PAIRS.index((a, b))]


def _t(x: Array) -> Array:
    return x.swapaxes(-1, -2)


def _inverse(x: Array) -> Array:
    """Inverse of square matrices, singular values lifted to `SPAN` of the largest."""
    u, s, vt = np.linalg.svd(x)
    top = np.where(s[:, :1] > 0, s[:, :1], 1.0)
    return _t(vt) @ (_t(u) / np.maximum(s, SPAN * top)[:, :, None])


def _whitening(s: Array) -> Array:
    """Q with `Q^T S Q = I`, for the symmetric part of S.

    Noise makes a small eigenvalue negative: its size is then still the best guess of the size.
    """
    values, vectors = np.linalg.eigh(0.5 * (s + _t(s)))
    size = np.abs(values)
    top = size.max(axis=1, keepdims=True)
    return vectors / np.sqrt(np.maximum(size, SPAN * np.where(top > 0, top, 1.0)))[:, None, :]


def _apply(tensor: Array, maps: Three) -> Array:
    """`sum T[a, b, c] X[i, a] Y[j, b] Z[k, c]`, O(k^4)."""
    for one in maps:  # the first axis is mapped and goes to the end, three times
        m, q, r, s = tensor.shape
        tensor = (one @ tensor.reshape(m, q, r * s)).reshape(m, one.shape[1], r, s)
        tensor = np.moveaxis(tensor, 1, 3)
    return tensor


def _symmetric(tensor: Array) -> Array:
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


def _simplex(weights: Array, floor: float) -> Array:
    """Rows >= 0 scaled to sum 1, none below the floor before they are scaled once more."""
    total = weights.sum(axis=1, keepdims=True)
    even = np.full_like(weights, 1 / weights.shape[1])
    shares = np.maximum(np.divide(weights, total, out=even, where=total > 0), floor)
    return shares / shares.sum(axis=1, keepdims=True)


# ---- the polish: all moments at once ---------------------------------------------------


@dataclass(frozen=True)
class _Errors:
    """Moments minus fitted ones, of every order."""

    zero: Array
    first: Three
    second: Three
    third: Array


def _errors(moments: _Moments, fit: _Fit) -> _Errors:
    w, z = fit.weights, fit.factors
    weighted = [w[:, None, :] * f for f in z]
    a, b, c = (m - f.sum(axis=2) for m, f in zip(moments.first, weighted, strict=True))
    ab, ac, bc = (moments.second[i] - weighted[u] @ _t(z[v]) for i, (u, v) in enumerate(PAIRS))
    third = (weighted[0] @ _t(_products(z[1], z[2]))).reshape(moments.third.shape)
    return _Errors(1 - w.sum(axis=1), (a, b, c), (ab, ac, bc), moments.third - third)


def _products(b: Array, c: Array) -> Array:
    """Column by column `b_j ⊗ c_j`, (m, q^2, k)."""
    return (b[:, :, None, :] * c[:, None, :, :]).reshape(
        len(b), b.shape[1] * c.shape[1], b.shape[2]
    )


def _loss(errors: _Errors) -> Array:
    """Weighted sum of squares, (m,)."""
    parts = ((errors.zero,), errors.first, errors.second, (errors.third,))
    pairs = zip(ORDERS, parts, strict=True)
    return np.add.reduce([order * _squares(x) for order, part in pairs for x in part])


def _gradient(errors: _Errors, fit: _Fit) -> Array:
    """`J^T errors`, (m, 3 k q + k): for each view, state and coordinate, then for each weight.

    In the scaled parameters `sqrt(w_j) A_b[:, j]` and `w_j / sqrt(w_j)` (see `_normal`).
    """
    z, root = fit.factors, np.sqrt(fit.weights)
    _, one, two, three = ORDERS
    m, q = z[0].shape[:2]
    parts, along = [], []
    for a in range(3):
        b, c = (v for v in range(3) if v != a)
        tensor = np.moveaxis(errors.third, 1 + a, 1).reshape(m, q, q * q)
        cubic = three * (tensor @ _products(z[b], z[c]))
        linear = _pair_error(errors, a, b) @ z[b] + _pair_error(errors, a, c) @ z[c]
        mean = one * errors.first[a][:, :, None]
        parts.append(_t((cubic + two * linear + mean) * root[:, None, :]).reshape(m, -1))
        # every order once: the triple in one view, each pair in one view, the means in all
        once = (cubic if a == 0 else 0.0) + 0.5 * two * linear + mean
        along.append((z[a] * once).sum(axis=1))
    weights = (np.add.reduce(along) + ORDERS[0] * errors.zero[:, None]) * root
    return np.concatenate([*parts, weights], axis=1)


def _pair_error(errors: _Errors, a: int, b: int) -> Array:
    return errors.second[PAIRS.index((a, b))] if a < b else _t(errors.second[PAIRS.index((b, a))])


def _normal(fit: _Fit) -> Array:
    """`J^T J` of the weighted moments, (m, n, n) with `n = 3 k q + k`.

    Parameters are `sqrt(w_j) A_b[:, j]` with w held, and `w_j / sqrt(w_j)` with A held: the errors
    that even one who sees h makes are then all about `1 / sqrt(N)`. Inner products of the
    columns of J are products of `G_b = A_b^T A_b`, so J itself (k^3 rows) is never made. O(k^4).
    """
    z, scale = fit.factors, np.sqrt(fit.weights[:, :, None] * fit.weights[:, None, :])
    zero, one, two, three = ORDERS
    m, q, k = z[0].shape
    g = [_t(f) @ f for f in z]
    out = np.zeros((m, 3 * k * q + k, 3 * k * q + k))
    span = [slice(v * k * q, (v + 1) * k * q) for v in range(3)]
    last = slice(3 * k * q, None)
    for a, b, c in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        same = scale * (three * g[b] * g[c] + two * (g[b] + g[c]) + one)
        for i in range(q):
            out[:, span[a], span[a]][:, i::q, i::q] = same
        side = (same[:, :, None, :] * z[a][:, None, :, :]).reshape(m, k * q, k)
        out[:, span[a], last], out[:, last, span[a]] = side, _t(side)
        # between coordinate i of state j in view a and i' of l in b: A_a[i, l] A_b[i', j] (...)
        left, right = z[a][:, None, :, :, None], _t(z[b])[:, :, None, None, :]
        block = (scale * (three * g[c] + two))[:, :, None, :, None] * left * right
        block = block.reshape(m, k * q, k * q)
        out[:, span[a], span[b]], out[:, span[b], span[a]] = block, _t(block)
    pairs = g[0] * g[1] + g[0] * g[2] + g[1] * g[2]
    total = three * g[0] * g[1] * g[2] + two * pairs + one * (g[0] + g[1] + g[2]) + zero
    out[:, last, last] = scale * total
    return out


def _moved(fit: _Fit, step: Array) -> _Fit:
    """The fit after a step in the scaled parameters; weights stay positive as squares."""
    m, q, k = fit.factors[0].shape
    root = np.sqrt(fit.weights)
    change = step[:, :-k].reshape(m, 3, k, q) / root[:, None, :, None]
    a, b, c = (f + _t(change[:, v]) for v, f in enumerate(fit.factors))
    return _Fit(np.maximum((root + 0.5 * step[:, -k:]) ** 2, FLOOR), (a, b, c))


def _objective(errors: _Errors, fit: _Fit) -> Array:
    """What the polish minimises, (m,): `n log(loss) - 2 PRIOR sum_j (log w_j - k w_j)`.

    Minus twice the log-posterior with unknown noise (its most probable value, `loss / n`, put in)
    and a Dirichlet prior of `PRIOR` samples of each state. When the moments are exact, the loss
    goes to zero and the prior with it.
    """
    w, k = fit.weights, fit.weights.shape[1]
    prior = PRIOR * (np.log(w) - k * w).sum(axis=1)
    return _count(fit) * np.log(_loss(errors) + 1e-300) - 2 * prior


def _count(fit: _Fit) -> int:
    """Number of second and third moments."""
    q = fit.factors[0].shape[1]
    return 3 * q * q + q**3


def _step(errors: _Errors, fit: _Fit, damping: Array) -> Array:
    """Damped Gauss-Newton step `(J^T J + prior + damping * diagonal)^-1 (J^T errors + prior)`."""
    normal, gradient = _normal(fit), _gradient(errors, fit)
    w, k = fit.weights, fit.weights.shape[1]
    prior = (PRIOR / _count(fit)) * _loss(errors)[:, None]
    gradient[:, -k:] += prior * (1 / w - k) * np.sqrt(w)
    diagonal = np.einsum("mii->mi", normal)
    diagonal[:, -k:] += prior / w
    diagonal *= 1 + damping[:, None]
    diagonal += 1e-14 * diagonal.mean(axis=1, keepdims=True) + 1e-200
    return np.asarray(np.linalg.solve(normal, gradient[:, :, None])[:, :, 0], dtype=np.float64)


def _polish(moments: _Moments, start: _Fit) -> _Fit:
    """Levenberg-Marquardt from `start`, each triplet until its objective stands still.

    A step that does not help is not taken, so the objective never rises. O(k^6) for a triplet and
    step: a linear system of size about 3 k^2.
    """
    rows = np.arange(len(start.weights))
    fit = result = start.take(rows)
    errors, damping = _errors(moments, fit), np.full(len(rows), 1e-3)
    before, least = _objective(errors, fit), 1e-30 * _size(moments)
    for _ in range(STEPS):
        tried = _moved(fit, _step(errors, fit, damping))
        after = _objective(_errors(moments, tried), tried)
        better = after < before
        result.replace(rows[better], tried.take(better))
        gain = np.where(better, before - after, np.inf)
        damping = np.clip(np.where(better, 0.1, 10.0) * damping, 1e-14, 1e8)
        active = (gain > STILL * _count(fit)) & (damping < 1e8)
        active &= ~better | (_loss(_errors(moments, tried)) > least)
        if not active.any():
            break
        before = np.where(better, after, before)[active]
        least, damping = least[active], damping[active]
        rows, moments = rows[active], moments.take(active)
        fit = result.take(rows)
        errors = _errors(moments, fit)
    return result


def _size(moments: _Moments) -> Array:
    """Sum of squares of all the moments, (m,)."""
    parts = (*moments.first, *moments.second, moments.third)
    return np.add.reduce([_squares(x) for x in parts])


def _squares(x: Array) -> Array:
    return (x**2).sum(axis=tuple(range(1, x.ndim)))


# ---- from moments to a result ------------------------------------------------------------


def decompose(
    third: ArrayLike, first: Sequence[ArrayLike], second: Sequence[ArrayLike]
) -> Decomposition:
    """Weights and factors of m hidden variables, each from three views of k dimensions.

    third: (m, k, k, k), `E[y_1 ⊗ y_2 ⊗ y_3]`; first: three (m, k), `E[y_b]`; second: three
    (m, k, k), `E[y_1 y_2^T]`, `E[y_1 y_3^T]`, `E[y_2 y_3^T]`.

    Errors of the moments count alike in all coordinates, as they do when each view is whitened by
    its own second moment. Where the first coordinate of all three views is the constant 1 (seen in
    the moments), the first row of the factors is 1 exactly. The answer is always finite and real,
    `condition` says whether it means anything. O(k^6) for a triplet.
    """
    moments = _checked(third, first, second)
    m, k = moments.first[0].shape
    piece = max(1, ENTRIES // (3 * k * k + k) ** 2)
    with single_threaded_blas():
        starts = range(0, max(m, 1), piece)  # no triplets: one empty piece
        parts = [_solved(moments.take(np.arange(i, min(i + piece, m)))) for i in starts]
    joined = [np.concatenate(x) for x in zip(*parts, strict=True)]
    return Decomposition(joined[0], (joined[1], joined[2], joined[3]), joined[4], joined[5])


def decompose_views(
    third: ArrayLike, means: Sequence[ArrayLike], seconds: Sequence[ArrayLike], k: int
) -> Decomposition:
    """One hidden variable of k states from three views of dimensions `d_1, d_2, d_3 >= k`.

    third: (d_1, d_2, d_3); means: three (d_b,); seconds: (d_1, d_2), (d_1, d_3), (d_2, d_3).
    Each view is brought to k dimensions by the leading left singular vectors of its two pair
    moments, side by side, and to a common scale, so the units of the views do not matter. Returns
    a `Decomposition` with m = 1.
    """
    tensor = np.asarray(third, dtype=float)
    first = [np.asarray(x, dtype=float) for x in means]
    second = [np.asarray(x, dtype=float) for x in seconds]
    _check_views(tensor, first, second, k)
    bases = _bases(second, k)
    reduced = _apply(tensor[None], _three(_t(u)[None] for u in bases))
    result = decompose(
        reduced,
        [(_t(u) @ x)[None] for u, x in zip(bases, first, strict=True)],
        [(_t(bases[a]) @ x @ bases[b])[None] for (a, b), x in zip(PAIRS, second, strict=True)],
    )
    back = [np.linalg.pinv(_t(u)) @ f for u, f in zip(bases, result.factors, strict=True)]
    return replace(result, factors=_three(back))


def _solved(moments: _Moments) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Weights, three factors, condition and residual, states in their final order."""
    fit = _start(moments)
    condition = np.empty(len(fit.weights))
    constant = _constant(moments)
    for rows, polish in ((constant, _polish_constant), (~constant, _polish_all)):
        if rows.any():
            done, condition[rows] = polish(moments.take(rows), fit.take(rows))
            fit.replace(rows, done)
    fit = _ordered(_Fit(_simplex(fit.weights, FLOOR), fit.factors))
    return fit.weights, *fit.factors, condition, _residual(moments, fit)


def _polish_all(moments: _Moments, fit: _Fit) -> tuple[_Fit, Array]:
    """The polished fit and its condition."""
    fit = _polish(moments, fit)
    return fit, _condition(fit)


def _polish_constant(moments: _Moments, fit: _Fit) -> tuple[_Fit, Array]:
    """The same where the first coordinate of every view is 1: it is known, so not fitted."""
    inner = _Fit(fit.weights, _each(fit.factors, np.s_[:, 1:]))
    fit, condition = _polish_all(moments.without_constant(), inner)
    return _Fit(fit.weights, _three(np.insert(f, 0, 1.0, axis=1) for f in fit.factors)), condition


def _constant(moments: _Moments) -> NDArray[np.bool_]:
    """(m,): is the first coordinate of all three views the constant 1?

    Then every moment with that coordinate is the moment without it, up to the rounding of sums.
    """
    first, second, third = moments.first, moments.second, moments.third
    if first[0].shape[1] == 1:
        return np.zeros(len(third), dtype=bool)
    (ab, ac, bc), (a, b, c) = second, first
    same = [(third[:, 0], bc), (third[:, :, 0], ac), (third[:, :, :, 0], ab)]
    same += [(ab[:, 0], b), (ab[:, :, 0], a), (ac[:, 0], c)]
    gaps = [np.abs(x - y).max(axis=tuple(range(1, x.ndim))) for x, y in same]
    ones = np.abs(np.stack([x[:, 0] for x in first]) - 1).max(axis=0)
    return np.maximum(np.max(gaps, axis=0), ones) < 1e-6


def _condition(fit: _Fit) -> Array:
    """Amplification `1 / s_min(J)`, (m,), inf where the moments do not determine the parameters.

    J is the derivative of all the moments, weighted by the roots of `ORDERS`, by the scaled
    parameters of `_normal`: a small error e of the moments moves `sqrt(w_j) A_b[:, j]` and
    `2 sqrt(w_j)`, all together, by at most `condition * |e|`. With whitened views, moments from N
    samples err by about `1 / sqrt(N)`, and so do these parameters for one who sees h: the condition
    is the price of not seeing h, in the worst direction. About 1 to 3 for views that tell h; an
    answer means nothing when `condition / sqrt(N)` is near 1.
    """
    values = np.linalg.eigvalsh(_normal(fit))
    rounding = values.shape[1] * np.finfo(float).eps * values[:, -1]
    return np.where(values[:, 0] > rounding, 1 / np.sqrt(np.maximum(values[:, 0], 1e-300)), np.inf)


def _residual(moments: _Moments, fit: _Fit) -> Array:
    """`|moments - fitted| / |moments|`; 0 where all are 0."""
    errors = _errors(moments, fit)
    lost = np.add.reduce([_squares(x) for x in (*errors.first, *errors.second, errors.third)])
    size = _size(moments)
    return np.sqrt(np.divide(lost, size, out=np.zeros_like(lost), where=size > 0))


def _ordered(fit: _Fit) -> _Fit:
    """States by decreasing weight; equal weights by the factors, first view and coordinate first.

    Equal is equal to nine digits, so that rounding does not decide.
    """
    weights = np.round(fit.weights, 9)
    order = np.argsort(-weights, axis=1, kind="stable")
    ranked = np.take_along_axis(weights, order, axis=1)
    for row in np.flatnonzero((ranked[:, 1:] == ranked[:, :-1]).any(axis=1)):
        keys = np.round(np.concatenate([f[row] for f in fit.factors]), 6)
        order[row] = np.lexsort((*keys[::-1], -weights[row]))
    factors = _three(np.take_along_axis(f, order[:, None, :], axis=2) for f in fit.factors)
    return _Fit(np.take_along_axis(fit.weights, order, axis=1), factors)


def _bases(second: Sequence[Array], k: int) -> list[Array]:
    """Three (d_b, k): directions in which a view goes with the others, over the view's scale.

    The scale `s_1 = sqrt(|M_12| |M_13| / |M_23|)` is in the units of view 1.
    """
    size = [float(np.linalg.norm(x)) or 1.0 for x in second]
    sides = [x / n for x, n in zip(second, size, strict=True)]
    ab, ac, bc = size
    scales = np.sqrt([ab * ac / bc, ab * bc / ac, ac * bc / ab])
    joined = ((sides[0], sides[1]), (sides[0].T, sides[2]), (sides[1].T, sides[2].T))
    u = [np.linalg.svd(np.hstack(x), full_matrices=False)[0][:, :k] for x in joined]
    return [basis / scale for basis, scale in zip(u, scales, strict=True)]


def _checked(third: ArrayLike, first: Sequence[ArrayLike], second: Sequence[ArrayLike]) -> _Moments:
    tensor = np.asarray(third, dtype=float)
    if tensor.ndim != 4 or len(set(tensor.shape[1:])) != 1 or tensor.shape[1] == 0:
        raise ValueError(f"third has shape {tensor.shape}; give (m, k, k, k)")
    m, k = tensor.shape[:2]
    parts = []
    for name, arrays, shape in (("first", first, (m, k)), ("second", second, (m, k, k))):
        given = [np.asarray(x, dtype=float) for x in arrays]
        if [x.shape for x in given] != [shape] * 3:
            shapes = ", ".join(str(x.shape) for x in given)
            raise ValueError(f"{name} has arrays of shapes {shapes}; give three of shape {shape}")
        parts.append(_three(given))
    moments = _Moments(tensor, *parts)
    _check_values(("third", [tensor]), ("first", parts[0]), ("second", parts[1]))
    return moments


def _check_values(*named: tuple[str, Sequence[Array]]) -> None:
    for name, arrays in named:
        for x in arrays:
            wrong = np.argwhere(~(np.abs(x) <= LIMIT))
            if len(wrong):
                place = tuple(int(i) for i in wrong[0])
                raise DataError(
                    f"the {name} moments hold {x[place]} at {place}; moments must be finite and no"
                    f" larger than {LIMIT:g}: look for missing or infinite values in the data"
                )


def _check_views(tensor: Array, first: Sequence[Array], second: Sequence[Array], k: int) -> None:
    d = tensor.shape
    if len(d) != 3 or not 1 <= k <= min(d):
        raise ValueError(f"third has shape {d}, k is {k}; give three views of k dimensions or more")
    wanted = [*((x,) for x in d), *((d[a], d[b]) for a, b in PAIRS)]
    given = [x.shape for x in (*first, *second)]
    if given != wanted:
        raise ValueError(f"means and pair moments have shapes {given}; third asks for {wanted}")
    _check_values(("third", [tensor]), ("first", first), ("second", second))
