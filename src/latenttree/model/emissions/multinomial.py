"""Bags of counts: how a row's total spreads over d kinds of items, dense or sparse."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, softmax

from latenttree.engine.arrays import Floats
from latenttree.model.emissions.common import (
    TINY,
    Form,
    Link,
    draw_bags,
    form_of,
    log_factorials,
    positive,
    ratio,
    row_totals,
    shaped,
    split_rows,
)
from latenttree.model.emissions.interface import Emission


@dataclass(frozen=True, eq=False)
class Multinomial(Emission):
    """`table[c, j] = P(item c | state j)`, `(d, k)`, columns on the simplex, all positive.

    The row's total N is given (it says nothing about the state), so
    `log P(x | j, N) = log N! - sum_c log x_c! + sum_c x_c log table[c, j]`; an empty row or one
    with a gap is missing. Statistics: the counts. `size` is the total of samples drawn."""

    links: ClassVar = {"table": Link(np.log, lambda x: _shares(softmax(x, axis=0)))}

    table: Floats
    size: int = 1
    form: Form = "dense"
    family: str = "multinomial"

    @classmethod
    def pooled(cls, family: str, values: Any, n_states: int, weights: Floats | None) -> Self:
        """All states with the shares of the items in all bags."""
        ones = np.ones(values.shape[0]) if weights is None else weights
        totals = row_totals(split_rows(values)[0])
        size = max(1, round(float(totals @ ones) / max(float(ones[totals > 0].sum()), TINY)))
        blank = cls(np.ones((values.shape[1], n_states)), size, form_of(values), family)
        return blank.fitted_to(values, weights)

    @property
    def n_parameters(self) -> int:
        """Free parameters, for BIC."""
        return int((len(self.table) - 1) * self.n_states)

    def natural(self) -> Floats:
        """Natural parameters `(T, k)`, see `Emission.natural`."""
        return np.log(self.table)

    def expected_sums(self) -> Floats:
        """`E[t | state]`, `(T, k)`."""
        return self.size * self.table

    def log_likelihood(self, values: Any) -> Floats:
        """`sum_c x_c log p_c` plus the multinomial coefficient, `(n, k)`."""
        x, _ = split_rows(values)
        orders = gammaln(row_totals(x) + 1) - log_factorials(x)
        return np.asarray(x @ np.log(self.table) + orders[:, None])

    def mean(self) -> Floats:
        """Of the shares `x / N`: the table."""
        return self.table

    def sums(self, values: Any, weights: Floats) -> Floats:
        """`sum_i t(x_i) weights[i]`, `(T, m)`, see `Emission.sums`."""
        x, _ = split_rows(values)
        return np.asarray(x.T @ weights, dtype=np.float64)

    def from_sums(self, sums: Floats, smoothing: float, target: Floats) -> Multinomial:
        """The M-step: the member of largest likelihood of `sums + smoothing * target`."""
        total = sums + smoothing * target[:, None]
        pooled = ratio(target, target.sum(keepdims=True), 1 / len(target))[:, None]
        table = positive(ratio(total, total.sum(axis=0), pooled), pooled)
        return replace(self, table=table / table.sum(axis=0))

    def sample(self, states: NDArray[np.integer[Any]], rng: np.random.Generator) -> Any:
        """A bag of items for each state."""
        totals = np.full(len(states), self.size)
        return draw_bags(self.table, states, totals, self.form, rng)

    def value_moments(self) -> tuple[Floats, Floats]:
        """See `Emission.value_moments`; counts of a bag of the usual size."""
        return self.size * self.table, self.size * self.table * (1 - self.table)

    def impute(self, posterior: Floats) -> Any:
        """Expected counts of a bag of the usual size."""
        return shaped(self.size * (posterior @ self.table.T), self.form)


def _shares(table: Floats) -> Floats:
    """Columns of probabilities of at least about `TINY`."""
    table = np.maximum(table, TINY)
    return table / table.sum(axis=0)
