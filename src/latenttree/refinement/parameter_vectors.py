"""Models of one tree as parameter vectors, which EM maximises and extrapolates."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from latenttree.model.column_groups import Statistics
from latenttree.model.emissions import Emission, MultiHot, from_many_sums
from latenttree.model.tree_model import TreeModel

Floats = NDArray[np.float64]
CPTs = tuple[Floats, ...]

OPENING = 1e-3
"""Weight of independence mixed into the first model, because EM never leaves a zero."""

LEAST_SHARE = 0.1
"""An extrapolated probability is at least this share of that of the last step."""


class ParameterVectors:
    """Models of one tree as flat vectors: all CPTs one after another, row by row, then the
    parameters of the emissions. Thousands of small CPTs cost as little as one large array.

    `target` is the distribution of pseudo-samples for each node, `means` the mean statistics of
    each emission."""

    def __init__(self, model: TreeModel, target: CPTs, means: Statistics) -> None:
        self.model, self.means = model, means
        widths = np.array([t.shape[1] for t in model.cpts])
        first = np.cumsum(widths) - widths
        parts = [
            np.tile(np.arange(f, f + w), len(t))
            for f, w, t in zip(first.tolist(), widths.tolist(), model.cpts, strict=True)
        ]
        self.column = np.concatenate(parts)
        self.target = np.concatenate([np.repeat(t, w) for t, w in zip(target, widths, strict=True)])
        self.size = len(self.target)

    def flat(self, cpts: CPTs, emissions: Mapping[int, Emission]) -> Floats:
        """The vector of CPTs and emissions."""
        return self.joined(np.concatenate([t.ravel() for t in cpts]), emissions)

    def joined(self, cpts: Floats, emissions: Mapping[int, Emission]) -> Floats:
        """The vector of flat CPTs and emissions."""
        return np.concatenate([cpts, *(emissions[v].vector() for v in sorted(emissions))])

    def as_model(self, theta: Floats) -> TreeModel:
        """The model of a vector, not checked."""
        return self.model.with_flat(theta[: self.size], self._emissions(theta[self.size :]))

    def _emissions(self, vector: Floats) -> dict[int, Emission]:
        """The emissions of the last part of a vector."""
        emissions: dict[int, Emission] = {}
        for v, emission in sorted(self.model.emissions.items()):
            size = len(emission.vector())
            emissions[v], vector = emission.with_vector(vector[:size]), vector[size:]
        return emissions

    def normalised(self, theta: Floats) -> Floats:
        """Columns of CPTs scaled to sum one; empty ones replaced by the target."""
        cpts = theta[: self.size]
        sums = np.bincount(self.column, cpts)[self.column]
        cpts = np.where(sums > 0, cpts / np.where(sums > 0, sums, 1.0), self.target)
        return np.concatenate([cpts, theta[self.size :]])

    def maximised(self, counts: Floats, statistics: Statistics, smoothing: float) -> Floats:
        """The M-step: parameters of largest expected log-likelihood, with pseudo-samples."""
        emissions = self._from_sums(statistics, smoothing)
        cpts = counts + smoothing * self.target
        return self.normalised(self.joined(cpts, emissions))

    def _from_sums(self, statistics: Statistics, smoothing: float) -> Mapping[int, Emission]:
        """Emissions of largest likelihood given their statistics; column groups all at once."""
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
        """The parameters mixed with a share `OPENING` of independence."""
        opened = theta.copy()
        opened[: self.size] += OPENING * (self.target - theta[: self.size])
        return opened

    def within(self, far: Floats, theta: Floats) -> Floats:
        """Extrapolated parameters `far`, with probabilities of at least a share of those of
        `theta`.

        Changes `far` in place."""
        far[: self.size] = np.maximum(far[: self.size], LEAST_SHARE * theta[: self.size])
        return self.normalised(far)

    def log_prior(self, theta: Floats) -> float:
        """`sum t log P`: the contribution of one pseudo-sample for each column to the objective."""
        cpts = float(self.target @ np.log(np.maximum(theta[: self.size], 1e-300)))
        emissions = self._emissions(theta[self.size :])
        return cpts + sum(e.log_prior(self.means[v]) for v, e in emissions.items())
