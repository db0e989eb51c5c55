"""Real numbers and vectors whose coordinates are independent given the state, dense or sparse."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.columns.bins import mean_and_deviation, sparse_spread
from latenttree.engine.arrays import Bools, Floats
from latenttree.model.emissions.common import (
    FLOOR,
    REAL,
    Form,
    counted,
    form_of,
    known_total,
    log_link,
    ratio,
    shaped,
    split,
    squared,
)
from latenttree.model.emissions.interface import Emission

LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True, eq=False)
class Gaussian(Emission):
    """Independent coordinates with their own mean and variance in each state.

    All is kept in units of the pooled sample, `z = (x - shift) / scale`, so that neither tiny nor
    huge numbers lose digits; sparse blocks are scaled but not shifted. `means` `(d, k)`;
    `variances` `(d, k)`, or `(1, k)` for spherical noise, where all coordinates of a state share
    one (and one scale).

    `log P(x | j) = sum_c z_c m_cj / v_cj - z_c^2 / (2 v_cj) - m_cj^2 / (2 v_cj)
    - log(2 pi v_cj) / 2 - log scale_c` over the known coordinates: matrix products, `O(nnz k)`.
    Statistics: (known, z, z^2) of every coordinate, `T = 3 d`."""

    links: ClassVar = {"means": REAL, "variances": log_link(FLOOR)}

    means: Floats
    variances: Floats
    shift: Floats
    scale: Floats
    form: Form = "scalar"
    family: str = "gaussian"

    @classmethod
    def pooled(cls, family: str, values: Any, n_states: int, weights: Floats | None) -> Self:
        """All states with the mean and variance of the values."""
        shift, scale = location_and_scale(values, weights)
        spherical = family == "gaussian_spherical"
        if spherical:
            scale = np.full_like(scale, common_scale(scale))
        means = np.zeros((len(shift), n_states))
        variances = np.ones((1 if spherical else len(shift), n_states))
        blank = cls(means, variances, shift, scale, form_of(values), family)
        return blank.fitted_to(values, weights)

    def natural(self) -> Floats:
        """Natural parameters `(T, k)`, see `Emission.natural`."""
        spread = np.broadcast_to(self.variances, self.means.shape)
        known = -0.5 * (self.means**2 / spread + np.log(spread) + LOG_2PI)
        known = known - np.log(self.scale)[:, None]
        return np.concatenate([known, self.means / spread, -0.5 / spread])

    def expected_sums(self) -> Floats:
        """`E[t | state]`, `(T, k)`."""
        ones = np.ones_like(self.means)
        return np.concatenate([ones, self.means, self.means**2 + self.variances])

    def log_likelihood(self, values: Any) -> Floats:
        """Gaussian log-densities of the known values, `(n, k)`."""
        known, first, second = np.split(self.natural(), 3)
        z, is_known, first, second = self._products(values, first, second)
        return np.asarray(
            z @ first + squared(z) @ second + known_total(is_known, known, z.shape[0])
        )

    def mean(self) -> Floats:
        """`E[x | state]`, `(d, k)`."""
        return np.asarray(self.shift[:, None] + self.scale[:, None] * self.means)

    def variance(self) -> Floats:
        """`Var[x | state]`, `(d, k)`."""
        return np.asarray(self.scale[:, None] ** 2 * self.variances)

    def sums(self, values: Any, weights: Floats) -> Floats:
        """`sum_i t(x_i) weights[i]`, `(T, m)`, see `Emission.sums`."""
        one = np.ones(len(self.shift))[:, None]
        z, is_known, first, second = self._products(values, one, one)
        return np.concatenate(
            [
                counted(is_known, weights, len(self.shift)),
                first * np.asarray(z.T @ weights),
                second * np.asarray(squared(z).T @ weights),
            ]
        )

    def _products(
        self, values: Any, first: Floats, second: Floats
    ) -> tuple[Any, Bools | None, Floats, Floats]:
        """Values whose products with coefficients are those of `z` and `z^2`, and the coefficients.

        Dense values are standardised; a sparse matrix stays as it is, and its scale goes into the
        coefficients (a shift, which only dense samples have, makes it dense)."""
        if sparse.issparse(values) and not self.shift.any():
            scale = self.scale[:, None]
            return values, None, first / scale, second / scale**2
        x, known = split(values.toarray() if sparse.issparse(values) else values)
        z = (x - self.shift) / self.scale
        return (z if known is None else np.where(known, z, 0.0)), known, first, second

    def from_sums(self, sums: Floats, smoothing: float, target: Floats) -> Gaussian:
        """Means and variances; a negative variance, which no samples have, becomes the pooled one,
        any other is at least `FLOOR` of it."""
        count, first, second = np.split(sums + smoothing * target[:, None], 3)
        means = ratio(first, count, _pooled_moments(target)[0])
        parts = second - means * first  # count times the variance
        pooled = _pooled_moments(target)[1]
        if len(self.variances) == 1 < len(self.means):
            parts, count = parts.sum(axis=0, keepdims=True), count.sum(axis=0, keepdims=True)
            pooled = pooled.mean(axis=0, keepdims=True)
        found = ratio(parts, count, pooled)
        found = np.where(found < -FLOOR, pooled, np.maximum(found, FLOOR))
        return replace(self, means=means, variances=found)

    def sample(self, states: NDArray[np.integer[Any]], rng: np.random.Generator) -> Any:
        """Always dense where it is a block: Gaussian noise has no zeros."""
        z = rng.standard_normal((len(states), len(self.shift)))
        z = self.means.T[states] + z * np.sqrt(self.variances).T[states]
        return shaped(self.shift + self.scale * z, "scalar" if self.form == "scalar" else "dense")

    def value_moments(self) -> tuple[Floats, Floats]:
        """See `Emission.value_moments`."""
        return self.mean(), np.broadcast_to(self.variance(), self.means.shape)

    def impute(self, posterior: Floats) -> Any:
        """Means, always dense where it is a block."""
        means = posterior @ self.mean().T
        return shaped(means, "scalar" if self.form == "scalar" else "dense")


def _pooled_moments(target: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of every coordinate of the whole sample, `(d, 1)`, standardised."""
    count, first, second = np.split(target[:, None], 3)
    mean = ratio(first, count, 0.0)
    return mean, np.maximum(ratio(second, count, 1.0 + mean**2) - mean**2, FLOOR)


def location_and_scale(values: Any, weights: Floats | None) -> tuple[Floats, Floats]:
    """Mean (zero for sparse blocks) and standard deviation of every coordinate, `(d,)`.

    A constant coordinate has its size as scale, or 1."""
    if sparse.issparse(values):
        mean, deviation = sparse_spread(values, weights)
    else:
        x = np.asarray(values, dtype=np.float64)
        mean, deviation = mean_and_deviation(x[:, None] if x.ndim == 1 else x, weights)
    size = np.where(mean != 0, np.abs(mean), 1.0)
    shift = np.zeros_like(mean) if sparse.issparse(values) else mean
    return shift, np.where(deviation > 0, deviation, size)


def common_scale(scale: Floats) -> float:
    """Root mean square of the scales of coordinates that share a variance."""
    top = float(scale.max())
    return top * float(np.sqrt(np.mean((scale / top) ** 2)))
