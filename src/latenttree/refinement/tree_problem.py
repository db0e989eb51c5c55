"""EM of a tree model: parameters as one vector, the E-step as a pass, the M-step as a division."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy

import numpy as np
from numpy.typing import NDArray

from latenttree.engine import Source
from latenttree.model.column_groups import Statistics
from latenttree.model.emissions import Emission, MultiHot, from_many_sums
from latenttree.model.likelihood import prior_targets
from latenttree.model.passes import ExpectedCounts, ExpectedSums, StatisticSums
from latenttree.model.samples import InMemory, Samples
from latenttree.model.tree_model import TreeModel

Floats = NDArray[np.float64]

OPENING = 1e-3
"""Weight of independence mixed into the first model, because EM never leaves a zero."""

LEAST_SHARE = 0.1
"""An extrapolated probability is at least this share of that of the last step."""


class TreeProblem:
    """The models of one tree and some samples, an `em.Problem`.

    Parameters are flat vectors: all CPTs one after another, row by row, then the parameters of the
    emissions. Thousands of small CPTs cost as little as one large array. The objective is the
    log-likelihood plus `smoothing` times `log_prior`.

    `target` is the distribution of pseudo-samples, laid out as the CPTs, `means` the mean
    statistics of each emission."""

    def __init__(
        self,
        model: TreeModel,
        samples: Samples | InMemory,
        smoothing: float = 1.0,
        marginals: Sequence[Floats] = (),
        n_jobs: int = 1,
    ) -> None:
        self.model, self.samples, self.smoothing, self.n_jobs = model, samples, smoothing, n_jobs
        self.means = mean_statistics(model, samples, n_jobs)
        widths = np.array([t.shape[1] for t in model.cpts])
        first = np.cumsum(widths) - widths
        parts = [
            np.tile(np.arange(f, f + w), len(t))
            for f, w, t in zip(first.tolist(), widths.tolist(), model.cpts, strict=True)
        ]
        self._column = np.concatenate(parts)
        targets = zip(prior_targets(model, marginals), widths, strict=True)
        self.target = np.concatenate([np.repeat(t, w) for t, w in targets])
        self.size = len(self.target)

    def on(self, places: NDArray[np.int64]) -> TreeProblem:
        """The same models on some of the samples, at `places`, ascending."""
        return self.over(self.samples.subset(places))

    def over(self, samples: Samples | InMemory) -> TreeProblem:
        """The same models on other samples."""
        other = copy(self)
        other.samples = samples
        return other

    # ---- steps ------------------------------------------------------------------------

    def expect(self, theta: Floats) -> tuple[float, ExpectedSums]:
        """The objective, and the expected statistics of all samples."""
        sums = self.sums(theta)
        return sums.value + self.smoothing * self.log_prior(theta), sums

    def sums(self, theta: Floats) -> ExpectedSums:
        """The E-step: one pass over the samples."""
        e_step = ExpectedCounts(self.as_model(theta))
        return e_step.finish(self.samples.run(e_step, self.n_jobs))

    def log_prior(self, theta: Floats) -> float:
        """`sum t log P`: the contribution of one pseudo-sample for each column to the objective."""
        cpts = float(self.target @ np.log(np.maximum(theta[: self.size], 1e-300)))
        emissions = self._emissions(theta[self.size :])
        return cpts + sum(e.log_prior(self.means[v]) for v, e in emissions.items())

    def maximise(self, sums: ExpectedSums) -> Floats:
        """The M-step: parameters of largest expected log-likelihood, with pseudo-samples."""
        emissions = self._from_sums(sums.statistics)
        return self._normalised(_joined(sums.counts + self.smoothing * self.target, emissions))

    def _from_sums(self, statistics: Statistics) -> Mapping[int, Emission]:
        """Emissions of largest likelihood given their statistics; column groups all at once."""
        groups = {v: e for v, e in self.model.emissions.items() if isinstance(e, MultiHot)}
        if len({e.n_states for e in groups.values()}) > 1:
            groups = {}
        found: dict[int, Emission] = {}
        if groups:
            found.update(from_many_sums(groups, statistics, self.smoothing, self.means))
        for v, emission in self.model.emissions.items():
            if v not in groups:
                found[v] = emission.from_sums(statistics[v], self.smoothing, self.means[v])
        return found

    # ---- vectors ----------------------------------------------------------------------

    def vector(self, theta: Floats) -> Floats:
        """Parameters are vectors."""
        return theta

    def within(self, far: Floats, theta: Floats) -> Floats:
        """Extrapolated parameters `far`, with probabilities of at least a share of those of
        `theta`."""
        far[: self.size] = np.maximum(far[: self.size], LEAST_SHARE * theta[: self.size])
        return self._normalised(far)

    def of_model(self, model: TreeModel) -> Floats:
        """The vector of a model of the tree."""
        return _joined(model.flat, model.emissions)

    def opened(self) -> Floats:
        """The first parameters: those of the model, mixed with a share `OPENING` of
        independence."""
        theta = self.of_model(self.model)
        theta[: self.size] += OPENING * (self.target - theta[: self.size])
        return theta

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

    def _normalised(self, theta: Floats) -> Floats:
        """Columns of CPTs scaled to sum one; empty ones replaced by the target."""
        cpts = theta[: self.size]
        sums = np.bincount(self._column, cpts)[self._column]
        cpts = np.where(sums > 0, cpts / np.where(sums > 0, sums, 1.0), self.target)
        return np.concatenate([cpts, theta[self.size :]])


def _joined(cpts: Floats, emissions: Mapping[int, Emission]) -> Floats:
    """The vector of flat CPTs and emissions."""
    return np.concatenate([cpts, *(emissions[v].vector() for v in sorted(emissions))])


def mean_statistics(model: TreeModel, samples: Source, n_jobs: int = 1) -> Statistics:
    """Statistics `(T,)` of every emission, means over the samples."""
    summed = StatisticSums(model)
    return summed.finish(samples.run(summed, n_jobs)) if model.emissions else {}
