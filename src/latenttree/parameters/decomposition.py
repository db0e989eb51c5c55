"""Three views of one hidden variable -> its distribution and the mean of each view in each state.

Views `y_1, y_2, y_3` are independent given a hidden `h` with k states; `P(h = j) = w_j` and
`E[y_b | h = j] = A_b[:, j]`. Their moments are then

    E[y_b]               = A_b w
    E[y_b y_c^T]         = A_b diag(w) A_c^T
    E[y_1 x y_2 x y_3]   = sum_j w_j A_1[:, j] x A_2[:, j] x A_3[:, j]    (outer products)

and determine `w` and `A_b` up to the order of the states when every `A_b` has full column rank.

Huang et al., "Guaranteed Scalable Learning of Latent Tree Models" (UAI 2019), section 5, "Tensor
decomposition for triplets". A view of k dimensions is `(1, z)`, see `parameters.features`; for an
observed variable z are the k - 1 centred directions of `distances.estimate`, so the view is another
basis of the paper's k-dimensional form, in which the first and second moments are part of the
third.

Two steps: `symmetric_start` finds parameters that are exact on exact moments, `moment_fit` then
fits all moments at once, which is what counts with samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from latenttree.engine import single_threaded_blas
from latenttree.engine.arrays import Bools, Floats
from latenttree.errors import DataError
from latenttree.parameters.moment_fit import FLOOR, fit_moments, moment_errors, normal_matrix
from latenttree.parameters.symmetric_start import diagonalised_start
from latenttree.parameters.view_moments import ViewMoments, ViewParameters, on_simplex, squares

LIMIT = 1e30
"""Largest moment: larger ones would overflow in products of six."""

ENTRIES = 1 << 22
"""Entries of the normal equations at a time: 32 MB."""


@dataclass(frozen=True)
class Decomposition:
    """Hidden variables of m triplets of views; states by decreasing weight.

    weights: (m, k), each row on the simplex, no entry below half of `FLOOR`.
    factors: (3, m, k, k), column j of view b = E[y_b | h = j].
    condition: (m,), how much an error of the moments is amplified, see `_condition`.
    residual: (m,), `|moments - fitted| / |moments|` over means, pairs and triple together.
    """

    weights: Floats
    factors: Floats
    condition: Floats
    residual: Floats


def decompose(
    third: ArrayLike, first: Sequence[ArrayLike], second: Sequence[ArrayLike]
) -> Decomposition:
    """Weights and factors of m hidden variables, each from three views of k dimensions.

    third: (m, k, k, k), `E[y_1 x y_2 x y_3]`; first: three (m, k), `E[y_b]`; second: three
    (m, k, k), `E[y_1 y_2^T]`, `E[y_1 y_3^T]`, `E[y_2 y_3^T]`.

    Errors of the moments count alike in all coordinates, which suits views whitened by their own
    second moments. Where the first coordinate of all three views is the constant 1 (recognised by
    the moments), the first row of the factors is 1 exactly. The answer is always finite and real;
    `condition` tells whether it is meaningful. O(k^6) for a triplet.
    """
    moments = _checked(third, first, second)
    m, k = moments.first[0].shape
    piece = max(1, ENTRIES // (3 * k * k + k) ** 2)
    with single_threaded_blas():
        starts = range(0, max(m, 1), piece)  # no triplets: one empty piece
        parts = [_solved(moments.take(np.arange(i, min(i + piece, m)))) for i in starts]
    joined = zip(*parts, (0, 1, 0, 0), strict=True)
    return Decomposition(*(np.concatenate(x, axis=axis) for *x, axis in joined))


def _solved(moments: ViewMoments) -> tuple[Floats, Floats, Floats, Floats]:
    """Weights, factors, condition and residual, states in their final order."""
    fit = diagonalised_start(moments)
    condition = np.empty(len(fit.weights))
    constant = _constant(moments)
    for rows, fitted in ((constant, _fit_with_constant), (~constant, _fit_all)):
        if rows.any():
            done, condition[rows] = fitted(moments.take(rows), fit.take(rows))
            fit.replace(rows, done)
    fit = _ordered(ViewParameters(on_simplex(fit.weights, FLOOR), fit.factors))
    return *fit, condition, _residual(moments, fit)


def _fit_all(moments: ViewMoments, fit: ViewParameters) -> tuple[ViewParameters, Floats]:
    """The fit to all moments, and its condition."""
    fit = fit_moments(moments, fit)
    return fit, _condition(fit)


def _fit_with_constant(moments: ViewMoments, fit: ViewParameters) -> tuple[ViewParameters, Floats]:
    """The same where the first coordinate of every view is the constant 1, which is not fitted."""
    inner = ViewParameters(fit.weights, fit.factors[:, :, 1:])
    fit, condition = _fit_all(moments.without_constant(), inner)
    return ViewParameters(fit.weights, np.insert(fit.factors, 0, 1.0, axis=2)), condition


def _constant(moments: ViewMoments) -> Bools:
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
    ones = np.abs(first[:, :, 0] - 1).max(axis=0)
    return np.maximum(np.max(gaps, axis=0), ones) < 1e-6


def _condition(fit: ViewParameters) -> Floats:
    """Amplification `1 / s_min(J)`, (m,), inf where the moments do not determine the parameters.

    J is the derivative of all the moments, weighted by the roots of `ORDERS`, by the scaled
    parameters of `normal_matrix`: a small error e of the moments moves `sqrt(w_j) A_b[:, j]` and
    `2 sqrt(w_j)`, all together, by at most `condition * |e|`. With whitened views, moments from N
    samples err by about `1 / sqrt(N)`, and so do these parameters where h is observed: the
    condition is the price of not observing h, in the worst direction. It is about 1 to 3 for
    informative views; an answer is meaningless when `condition / sqrt(N)` is near 1.
    """
    values = np.linalg.eigvalsh(normal_matrix(fit))
    rounding = values.shape[1] * np.finfo(float).eps * values[:, -1]
    return np.where(values[:, 0] > rounding, 1 / np.sqrt(np.maximum(values[:, 0], 1e-300)), np.inf)


def _residual(moments: ViewMoments, fit: ViewParameters) -> Floats:
    """`|moments - fitted| / |moments|`; 0 where all are 0."""
    errors = moment_errors(moments, fit)
    lost = np.add.reduce([squares(x) for x in (*errors.first, *errors.second, errors.third)])
    size = moments.size()
    return np.sqrt(np.divide(lost, size, out=np.zeros_like(lost), where=size > 0))


def _ordered(fit: ViewParameters) -> ViewParameters:
    """States by decreasing weight; equal weights by the factors, first view and coordinate first.

    Equal is equal to nine digits, so that rounding does not decide.
    """
    weights = np.round(fit.weights, 9)
    order = np.argsort(-weights, axis=1, kind="stable")
    ranked = np.take_along_axis(weights, order, axis=1)
    for row in np.flatnonzero((ranked[:, 1:] == ranked[:, :-1]).any(axis=1)):
        keys = np.round(np.concatenate(fit.factors[:, row]), 6)
        order[row] = np.lexsort((*keys[::-1], -weights[row]))
    factors = np.take_along_axis(fit.factors, order[:, None, :][None], axis=3)
    return ViewParameters(np.take_along_axis(fit.weights, order, axis=1), factors)


def _checked(
    third: ArrayLike, first: Sequence[ArrayLike], second: Sequence[ArrayLike]
) -> ViewMoments:
    """The moments as arrays of matching shapes and usable values."""
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
        parts.append(np.stack(given))
    moments = ViewMoments(tensor, *parts)
    _check_values(("third", [tensor]), ("first", parts[0]), ("second", parts[1]))
    return moments


def _check_values(*named: tuple[str, Iterable[Floats]]) -> None:
    """Refuse moments that are not finite, or too large for products of six."""
    for name, arrays in named:
        for x in arrays:
            wrong = np.argwhere(~(np.abs(x) <= LIMIT))
            if len(wrong):
                place = tuple(int(i) for i in wrong[0])
                raise DataError(
                    f"the {name} moments hold {x[place]} at {place}; moments must be finite and no"
                    f" larger than {LIMIT:g}",
                    "look for missing or infinite values in the data",
                    value=float(x[place]),
                )
