"""Categorical variables: codes 0..d-1, -1 where missing; binary ones have d = 2."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import softmax

from latenttree.engine.arrays import Floats, Ints
from latenttree.model.emissions.common import Link, draw_columns
from latenttree.model.emissions.interface import Emission


@dataclass(frozen=True, eq=False)
class Categorical(Emission):
    """`table[c, j] = P(c | state j)`, `(d, k)`, columns on the simplex. Statistics: the one-hot
    vector. Zeros are allowed, as in the tables of a model."""

    links: ClassVar = {
        "table": Link(lambda x: np.log(np.maximum(x, 1e-300)), lambda x: softmax(x, axis=0))
    }

    table: Floats
    family: str = "categorical"

    @classmethod
    def pooled(cls, family: str, values: Any, n_states: int, weights: Floats | None) -> Self:
        """All states with the frequencies of the known codes."""
        codes = np.asarray(values, dtype=np.int64)
        d = int(codes.max(initial=0)) + 1
        known = codes >= 0
        counted = np.ones(len(codes)) if weights is None else weights
        counts = np.bincount(codes[known], counted[known], minlength=d)
        share = counts / counts.sum() if counts.sum() > 0 else np.full(d, 1 / d)
        return cls(np.repeat(share[:, None], n_states, axis=1), family)

    @property
    def n_parameters(self) -> int:
        """Free parameters, for BIC."""
        return int((len(self.table) - 1) * self.n_states)

    def natural(self) -> Floats:
        """Natural parameters `(T, k)`, see `Emission.natural`."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.table))

    def expected_sums(self) -> Floats:
        """`E[t | state]`, `(T, k)`."""
        return self.table

    def log_likelihood(self, values: NDArray[Any]) -> Floats:
        """`log P(code | state)`, `(n, k)`; 0 where the code is -1."""
        rows = np.concatenate([self.natural(), np.zeros((1, self.n_states))])  # row -1: missing
        return np.asarray(rows[np.asarray(values, dtype=np.int64)])

    def mean(self) -> Floats:
        """Of the one-hot vector: the table."""
        return self.table

    def sums(self, values: NDArray[Any], weights: Floats) -> Floats:
        """Weighted counts `(d, m)`; missing values count nothing: their expected counts are in
        the table's own proportions and would only slow EM down."""
        codes = np.asarray(values, dtype=np.int64)
        rows = np.flatnonzero(codes >= 0)
        ones, shape = np.ones(len(rows)), (len(self.table), len(codes))
        return np.asarray(sparse.csr_array((ones, (codes[rows], rows)), shape=shape) @ weights)

    def from_sums(self, sums: Floats, smoothing: float, target: Floats) -> Categorical:
        """The M-step: the member of largest likelihood of `sums + smoothing * target`."""
        table = np.maximum(sums + smoothing * target[:, None], 0.0)
        total = table.sum(axis=0)
        table = np.where(total > 0, table, target[:, None])
        return replace(self, table=table / table.sum(axis=0))

    def sample(self, states: NDArray[np.integer[Any]], rng: np.random.Generator) -> NDArray[Any]:
        """A code for each state."""
        return draw_columns(self.table, np.asarray(states), rng)

    def impute(self, posterior: Floats) -> Ints:
        """The most probable code under each posterior."""
        return np.asarray((posterior @ self.table.T).argmax(axis=1))
