"""Categorical variables: codes 0..d-1, -1 where missing; binary ones have d = 2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Categorical:
    """`table[c, j] = P(c | state j)`, `(d, k)`, columns on the simplex."""

    table: Floats

    @property
    def n_states(self) -> int:
        return int(self.table.shape[1])

    @property
    def n_parameters(self) -> int:
        return int((len(self.table) - 1) * self.n_states)

    def log_likelihood(self, values: NDArray[Any]) -> Floats:
        with np.errstate(divide="ignore"):
            rows = np.log(self.table)
        rows = np.concatenate([rows, np.zeros((1, self.n_states))])  # row -1: missing
        return np.asarray(rows[np.asarray(values, dtype=np.int64)])

    def mean(self) -> Floats:
        """Of the one-hot vector: the table."""
        return self.table

    def sums(self, values: NDArray[Any], posterior: Floats) -> Floats:
        """Expected counts `(d, k)`; missing values count nothing: their expected counts are in
        the table's own proportions and would only slow EM down."""
        seen = np.asarray(values) >= 0
        counts = np.zeros_like(self.table)
        np.add.at(counts, np.asarray(values)[seen], posterior[seen])
        return counts

    def from_sums(self, sums: Floats, smoothing: float, target: Floats) -> Categorical:
        table = sums + smoothing * target[:, None]
        total = table.sum(axis=0)
        table = np.where(total > 0, table, target[:, None])
        return Categorical(table / table.sum(axis=0))

    def sample(self, states: NDArray[np.integer[Any]], rng: np.random.Generator) -> NDArray[Any]:
        cumulative = np.cumsum(self.table, axis=0)[:, states]
        draws = rng.random(len(states)) * cumulative[-1]
        return np.asarray((cumulative <= draws).sum(axis=0))
