"""Counts: whole numbers, or blocks of independent ones, dense or sparse; Poisson in each state."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from latenttree.engine.arrays import Floats
from latenttree.model.emissions.common import (
    TINY,
    Form,
    counted,
    draw_bags,
    form_of,
    known_total,
    log_factorials,
    log_link,
    positive,
    ratio,
    shaped,
    split,
)
from latenttree.model.emissions.interface import Emission


@dataclass(frozen=True, eq=False)
class Poisson(Emission):
    """`rates[c, j] = E[x_c | state j]`, `(d, k)`, all positive.

    `log P(x | j) = sum_c x_c log rates[c, j] - rates[c, j] - log x_c!` over the known coordinates:
    two matrix products. Statistics: (known, x) of every coordinate, `T = 2 d`."""

    links: ClassVar = {"rates": log_link(TINY)}

    rates: Floats
    form: Form = "scalar"
    family: str = "poisson"

    @classmethod
    def pooled(cls, family: str, values: Any, n_states: int, weights: Floats | None) -> Self:
        """All states with the mean counts."""
        d = 1 if values.ndim == 1 else values.shape[1]
        return cls(np.ones((d, n_states)), form_of(values), family).fitted_to(values, weights)

    def natural(self) -> Floats:
        """Natural parameters `(T, k)`, see `Emission.natural`."""
        return np.concatenate([-self.rates, np.log(self.rates)])

    def expected_sums(self) -> Floats:
        """`E[t | state]`, `(T, k)`."""
        return np.concatenate([np.ones_like(self.rates), self.rates])

    def log_likelihood(self, values: Any) -> Floats:
        """Poisson log-probabilities of the known counts, `(n, k)`."""
        x, known = split(values)
        found = x @ np.log(self.rates) - known_total(known, self.rates, x.shape[0])
        return np.asarray(found - log_factorials(x)[:, None])

    def mean(self) -> Floats:
        """`E[x | state]`, `(d, k)`."""
        return self.rates

    def sums(self, values: Any, weights: Floats) -> Floats:
        """`sum_i t(x_i) weights[i]`, `(T, m)`, see `Emission.sums`."""
        x, known = split(values)
        return np.concatenate([counted(known, weights, x.shape[1]), np.asarray(x.T @ weights)])

    def from_sums(self, sums: Floats, smoothing: float, target: Floats) -> Poisson:
        """The M-step: the member of largest likelihood of `sums + smoothing * target`."""
        count, total = np.split(sums + smoothing * target[:, None], 2)
        pooled = ratio(target[len(count) :], target[: len(count)], 1.0)[:, None]
        return replace(self, rates=positive(ratio(total, count, pooled), pooled))

    def sample(self, states: NDArray[np.integer[Any]], rng: np.random.Generator) -> Any:
        """Sparse blocks as bags: the total is Poisson and its items are independent."""
        if self.form == "sparse":
            totals = rng.poisson(self.rates.sum(axis=0)[states])
            return draw_bags(self.rates, states, totals, self.form, rng)
        return shaped(rng.poisson(self.rates.T[states]).astype(np.float64), self.form)

    def value_moments(self) -> tuple[Floats, Floats]:
        """See `Emission.value_moments`."""
        return self.rates, self.rates

    def impute(self, posterior: Floats) -> Any:
        """The rounded posterior mean."""
        return shaped(np.rint(posterior @ self.rates.T), self.form)
