"""Models of one tree as vectors: what steps of EM add, extrapolate and normalise."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from latenttree.model.column_groups import Statistics
from latenttree.model.emissions import Emission, MultiHot, from_many_sums
from latenttree.model.tree_model import TreeModel

Floats = NDArray[np.float64]
Tables = tuple[Floats, ...]

OPENING = 1e-3
"""Share of independence mixed into the first model: EM never leaves a zero."""

LEAST_SHARE = 0.1
"""An extrapolated probability stays above this share of the last step's."""


class ParameterVectors:
    """Models of one tree as flat vectors, all tables one after another, row by row, then the
    parameters of emissions: thousands of small tables cost as little as one large one."""

    def __init__(self, model: TreeModel, target: Tables, means: Statistics) -> None:
        self.model, self.means = model, means
        widths = np.array([t.shape[1] for t in model.cpts])
        first = np.cumsum(widths) - widths
        parts = [
            np.tile(np.arange(f, f + w), len(t))
            for f, w, t in zip(first.tolist(), widths.tolist(), model.cpts, strict=True)
        ]
        self.column = np.concatenate(parts)
        self.ends = np.cumsum([t.size for t in model.cpts])
        self.target = np.concatenate([np.repeat(t, w) for t, w in zip(target, widths, strict=True)])
        self.size = len(self.target)

    def flat(self, tables: Tables, emissions: Mapping[int, Emission]) -> Floats:
        return self.joined(np.concatenate([t.ravel() for t in tables]), emissions)

    def joined(self, tables: Floats, emissions: Mapping[int, Emission]) -> Floats:
        return np.concatenate([tables, *(emissions[v].vector() for v in sorted(emissions))])

    def as_model(self, theta: Floats) -> TreeModel:
        parts = np.split(theta[: self.size], self.ends[:-1])
        shapes = (t.shape for t in self.model.cpts)
        tables = (p.reshape(s) for p, s in zip(parts, shapes, strict=True))
        return self.model.with_cpts(tables, self._emissions(theta[self.size :]))

    def _emissions(self, vector: Floats) -> dict[int, Emission]:
        found: dict[int, Emission] = {}
        for v, emission in sorted(self.model.emissions.items()):
            size = len(emission.vector())
            found[v], vector = emission.with_vector(vector[:size]), vector[size:]
        return found

    def normalised(self, theta: Floats) -> Floats:
        """Columns of tables to sum one; empty ones as the target."""
        tables = theta[: self.size]
        sums = np.bincount(self.column, tables)[self.column]
        tables = np.where(sums > 0, tables / np.where(sums > 0, sums, 1.0), self.target)
        return np.concatenate([tables, theta[self.size :]])

    def maximised(self, counts: Floats, statistics: Statistics, smoothing: float) -> Floats:
        emissions = self._from_sums(statistics, smoothing)
        tables = counts + smoothing * self.target
        return self.normalised(self.joined(tables, emissions))

    def _from_sums(self, statistics: Statistics, smoothing: float) -> Mapping[int, Emission]:
        groups = {v: e for v, e in self.model.emissions.items() if isinstance(e, MultiHot)}
        if len({e.n_states for e in groups.values()}) > 1:
            groups = {}
        found: dict[int, Emission] = {}
        if groups:
            found.update(from_many_sums(groups, statistics, smoothing, self.means))
        for v, emission in self.model.emissions.items():
            if v not in groups:
                found[v] = emission.from_sums(statistics[v], smoothing, self.means[v])
        return found

    def opened(self, theta: Floats) -> Floats:
        """A little independence mixed in."""
        opened = theta.copy()
        opened[: self.size] += OPENING * (self.target - theta[: self.size])
        return opened

    def within(self, far: Floats, theta: Floats) -> Floats:
        """Far parameters whose probabilities stay above a share of the nearer `theta`'s."""
        far[: self.size] = np.maximum(far[: self.size], LEAST_SHARE * theta[: self.size])
        return self.normalised(far)

    def log_prior(self, theta: Floats) -> float:
        """`sum t log P`: what a pseudo-sample for each column adds to the objective."""
        tables = float(self.target @ np.log(np.maximum(theta[: self.size], 1e-300)))
        emissions = self._emissions(theta[self.size :])
        return tables + sum(e.log_prior(self.means[v]) for v, e in emissions.items())
