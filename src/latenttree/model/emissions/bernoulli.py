"""Presence or absence: 1, 0, or missing (NaN or -1)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from latenttree.engine.arrays import Floats
from latenttree.model.emissions.common import LOGIT, probability, ratio
from latenttree.model.emissions.interface import Emission


@dataclass(frozen=True, eq=False)
class Bernoulli(Emission):
    """`probability[j] = P(present | state j)`. Statistics: (absent, present), as one-hot."""

    links: ClassVar = {"probability": LOGIT}

    probability: Floats
    family: str = "binary"

    @classmethod
    def pooled(cls, family: str, values: Any, n_states: int, weights: Floats | None) -> Self:
        """All states with the share of ones among the known values."""
        return cls(np.full(n_states, 0.5), family).fitted_to(values, weights)

    def natural(self) -> Floats:
        """Natural parameters `(T, k)`, see `Emission.natural`."""
        return np.array([np.log1p(-self.probability), np.log(self.probability)])

    def expected_sums(self) -> Floats:
        """`E[t | state]`, `(T, k)`."""
        return self.mean()

    def log_likelihood(self, values: Any) -> Floats:
        """`x log p + (1 - x) log(1 - p)`, `(n, k)`; 0 where missing."""
        return _indicators(values) @ self.natural()

    def mean(self) -> Floats:
        """Of the one-hot vector (absent, present), `(2, k)`."""
        return np.array([1 - self.probability, self.probability])

    def sums(self, values: Any, weights: Floats) -> Floats:
        """`sum_i t(x_i) weights[i]`, `(T, m)`, see `Emission.sums`."""
        return np.asarray(_indicators(values).T @ weights)

    def from_sums(self, sums: Floats, smoothing: float, target: Floats) -> Bernoulli:
        """The M-step: the member of largest likelihood of `sums + smoothing * target`."""
        total = sums + smoothing * target[:, None]
        pooled = ratio(target[1:], target.sum(keepdims=True), 0.5)
        share = ratio(total[1], total.sum(axis=0), pooled)
        return replace(self, probability=probability(share, pooled))

    def sample(self, states: NDArray[np.integer[Any]], rng: np.random.Generator) -> Floats:
        """A 0 or 1 for each state."""
        return (rng.random(len(states)) < self.probability[states]).astype(np.float64)

    def impute(self, posterior: Floats) -> Floats:
        """The more probable of 0 and 1 under each posterior."""
        return (posterior @ self.probability > 0.5).astype(np.float64)


def _indicators(values: Any) -> Floats:
    """(absent, present), `(n, 2)`; both zero where missing."""
    x = np.asarray(values, dtype=np.float64).reshape(-1)
    return np.stack([x == 0, x > 0], axis=1).astype(np.float64)
