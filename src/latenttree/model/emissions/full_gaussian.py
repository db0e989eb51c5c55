"""Real vectors with a full covariance matrix in each state, or one that the states share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.engine.arrays import Bools, Floats
from latenttree.errors import DataError, Option, Text
from latenttree.model.emissions.common import (
    FLOOR,
    REAL,
    TINY,
    Form,
    form_of,
    ratio,
    shaped,
    split_rows,
)
from latenttree.model.emissions.gaussian import LOG_2PI, location_and_scale
from latenttree.model.emissions.interface import Emission

WIDEST = 2000
"""Coordinates of a full covariance matrix at most."""


@dataclass(frozen=True, eq=False)
class FullGaussian(Emission):
    """`means` `(d, k)` and `covariances` `(k, d, d)`, `(1, d, d)` where tied, of
    `z = (x - shift) / scale`; eigenvalues are at least `FLOOR`.

    `log P(x | j) = -|W_j (z - m_j)|^2 / 2 + log det W_j - d log(2 pi) / 2 - sum_c log scale_c` with
    `W_j' W_j` the inverse covariance, `O(n d^2 k)`. A row with a gap is missing as a whole.
    Statistics: (row, z, products `z_a z_b` with `a <= b`), `T = 1 + d + d (d + 1) / 2`."""

    links: ClassVar = {"means": REAL}

    means: Floats
    covariances: Floats
    shift: Floats
    scale: Floats
    form: Form = "dense"
    family: str = "gaussian_full"

    @classmethod
    def pooled(cls, family: str, values: Any, n_states: int, weights: Floats | None) -> Self:
        """All states with the mean and the deviations of the values."""
        d = 1 if values.ndim == 1 else values.shape[1]
        if d > WIDEST:
            raise DataError(
                f"family {family!r} for a block of {d:,} coordinates needs {d * d:,} covariances a "
                "state",
                Text(
                    "use ",
                    Option("family"),
                    f" 'gaussian_diagonal' or 'gaussian_spherical' beyond {WIDEST:,} coordinates",
                ),
                value=d,
                option="family",
            )
        values = values.toarray() if sparse.issparse(values) else values
        shift, scale = location_and_scale(_whole_rows(values), weights)
        eye = np.eye(d)[None].repeat(1 if family == "gaussian_tied" else n_states, axis=0)
        blank = cls(np.zeros((d, n_states)), eye, shift, scale, form_of(values), family)
        return blank.fitted_to(values, weights)

    @property
    def n_parameters(self) -> int:
        """Free parameters, for BIC."""
        d = len(self.means)
        return int(self.means.size + len(self.covariances) * d * (d + 1) // 2)

    @cached_property
    def whiteners(self) -> Floats:
        """`W`, inverse lower Cholesky factors of the covariances."""
        return np.linalg.inv(np.linalg.cholesky(self.covariances))

    def _constants(self) -> Floats:
        """What a row has in each state whatever its value, without the means, `(k,)`."""
        log_det = np.log(np.einsum("jaa->ja", self.whiteners)).sum(axis=1)
        log_det = np.broadcast_to(log_det, self.n_states)
        return log_det - 0.5 * len(self.means) * LOG_2PI - np.log(self.scale).sum()

    def natural(self) -> Floats:
        """Natural parameters `(T, k)`, see `Emission.natural`."""
        precision = np.einsum("jba,jbc->jac", self.whiteners, self.whiteners)
        precision = np.broadcast_to(precision, (self.n_states, *precision.shape[1:]))
        linear = np.einsum("jac,cj->aj", precision, self.means)
        row = self._constants() - 0.5 * (self.means * linear).sum(axis=0)
        a, b = np.triu_indices(len(self.means))
        products = precision[:, a, b].T * np.where(a == b, -0.5, -1.0)[:, None]
        return np.concatenate([row[None], linear, products])

    def expected_sums(self) -> Floats:
        """`E[t | state]`, `(T, k)`."""
        a, b = np.triu_indices(len(self.means))
        spread = np.broadcast_to(self.covariances[:, a, b].T, (len(a), self.n_states))
        products = self.means[a] * self.means[b] + spread
        return np.concatenate([np.ones((1, self.n_states)), self.means, products])

    def log_likelihood(self, values: Any) -> Floats:
        """Gaussian log-densities of the known values, `(n, k)`."""
        z, whole = self._standardised(values)
        found = np.empty((len(z), self.n_states))
        for j, constant in enumerate(self._constants()):
            y = (z - self.means[:, j]) @ self.whiteners[j % len(self.covariances)].T
            found[:, j] = constant - 0.5 * np.einsum("na,na->n", y, y)
        return found if whole is None else np.where(whole[:, None], found, 0.0)

    def mean(self) -> Floats:
        """`E[x | state]`, `(d, k)`."""
        return np.asarray(self.shift[:, None] + self.scale[:, None] * self.means)

    def covariance(self) -> Floats:
        """`Cov[x | state]`, `(k, d, d)`, or `(1, d, d)` where tied."""
        return np.asarray(self.covariances * np.multiply.outer(self.scale, self.scale))

    def sums(self, values: Any, weights: Floats) -> Floats:
        """One product `z' diag(w) z` for each column of weights, `O(n d^2 m)`."""
        z, whole = self._standardised(values)
        if whole is not None:
            z, weights = z[whole], weights[whole]
        upper = np.triu_indices(len(self.means))
        products = [(z.T @ (z * w[:, None]))[upper] for w in weights.T]
        return np.concatenate(
            [weights.sum(axis=0)[None], z.T @ weights, np.stack(products, axis=1)]
        )

    def _standardised(self, values: Any) -> tuple[Floats, Bools | None]:
        x, whole = split_rows(values.toarray() if sparse.issparse(values) else values)
        return (x - self.shift) / self.scale, whole

    def from_sums(self, sums: Floats, smoothing: float, target: Floats) -> FullGaussian:
        """Means and covariances with eigenvalues clipped at `FLOOR`; a covariance with clearly
        negative ones, which no samples have, takes the pooled covariance for itself."""
        pooled_mean, pooled = _moments(target[:, None], np.zeros((len(self.means), 1)), None)
        total = sums + smoothing * target[:, None]
        means, spread = _moments(total, pooled_mean, pooled)
        if self.family == "gaussian_tied":
            spread = np.average(spread, axis=0, weights=np.maximum(total[0], TINY))[None]
        covariances = np.stack([_possible(c, pooled[0]) for c in spread])
        return replace(self, means=means, covariances=covariances)

    def vector(self) -> Floats:
        """Means, and Cholesky factors with logarithms on the diagonal."""
        factors = np.linalg.cholesky(self.covariances)
        at = np.arange(len(self.means))
        factors[:, at, at] = np.log(factors[:, at, at])
        lower = np.tril_indices(len(self.means))
        return np.concatenate([self.means.ravel(), factors[:, lower[0], lower[1]].ravel()])

    def with_vector(self, vector: Floats) -> FullGaussian:
        """The member with these free parameters."""
        means, rest = np.split(vector, [self.means.size])
        lower, at = np.tril_indices(len(self.means)), np.arange(len(self.means))
        factors = np.zeros_like(self.covariances)
        factors[:, lower[0], lower[1]] = rest.reshape(len(factors), -1)
        factors[:, at, at] = np.exp(np.clip(factors[:, at, at], -50.0, 50.0))
        covariances = factors @ factors.transpose(0, 2, 1)
        covariances = np.stack([_possible(c, c) for c in covariances])
        return replace(self, means=means.reshape(self.means.shape), covariances=covariances)

    def relabelled(self, order: Sequence[int] | NDArray[np.integer[Any]]) -> FullGaussian:
        """States in another order: new state `i` is old state `order[i]`."""
        at = np.asarray(order)
        tied = self.family == "gaussian_tied"
        covariances = self.covariances if tied else self.covariances[at]
        return replace(self, means=self.means[:, at], covariances=covariances)

    def sample(self, states: NDArray[np.integer[Any]], rng: np.random.Generator) -> Any:
        """A vector for each state."""
        factors = np.linalg.cholesky(self.covariances)
        z = rng.standard_normal((len(states), len(self.means)))
        for j in range(self.n_states):
            at = np.flatnonzero(np.asarray(states) == j)
            z[at] = self.means[:, j] + z[at] @ factors[j % len(factors)].T
        return shaped(self.shift + self.scale * z, self.form)

    def value_moments(self) -> tuple[Floats, Floats]:
        """See `Emission.value_moments`."""
        variance = np.diagonal(self.covariance(), axis1=1, axis2=2).T
        return self.mean(), np.broadcast_to(variance, self.means.shape)

    def impute(self, posterior: Floats) -> Any:
        """The posterior mean, `(n, d)`."""
        return shaped(posterior @ self.mean().T, self.form)


def _whole_rows(values: Any) -> Floats:
    """Scalars or a block with NaN in all of a row that has one anywhere."""
    x = np.asarray(values, dtype=np.float64)
    x = x[:, None] if x.ndim == 1 else x
    return np.where(np.isnan(x).any(axis=1, keepdims=True), np.nan, x)


def _moments(total: Floats, mean: Floats, covariance: Floats | None) -> tuple[Floats, Floats]:
    """Means `(d, k)` and covariances `(k, d, d)` of statistics; as given where nothing was counted
    (None: the identity)."""
    d = len(mean)
    upper = np.triu_indices(d)
    means = ratio(total[1 : d + 1], total[0], mean)
    spread = np.empty((total.shape[1], d, d))
    spread[:, upper[0], upper[1]] = ratio(total[d + 1 :], total[0], 0.0).T
    spread[:, upper[1], upper[0]] = spread[:, upper[0], upper[1]]
    spread -= np.einsum("aj,bj->jab", means, means)
    spread[total[0] <= 0] = np.eye(d) if covariance is None else covariance
    return means, spread


def _possible(covariance: Floats, pooled: Floats) -> Floats:
    """The matrix with eigenvalues of at least `FLOOR`; `pooled` if one is clearly negative."""
    values, vectors = np.linalg.eigh(covariance)
    if values[0] >= FLOOR:
        return covariance
    if values[0] < -FLOOR:
        values, vectors = np.linalg.eigh(pooled)
    return np.asarray((vectors * np.maximum(values, FLOOR)) @ vectors.T)
