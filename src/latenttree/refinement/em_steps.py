"""One EM step over a whole tree: the E-step is a pass over the samples, the M-step a division."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.model.column_groups import ColumnGroups, Statistics
from latenttree.model.emissions import sums_of
from latenttree.model.inference import Counter, Posteriors
from latenttree.model.samples import Chunk, Chunks, as_chunk, evidence_of
from latenttree.model.tree_model import TreeModel
from latenttree.refinement.parameter_vectors import ParameterVectors

Floats = NDArray[np.float64]


class Sums(NamedTuple):
    """The result of an E-step: expected sufficient statistics, which add over samples.

    counts : expected counts of all CPTs, one after another, each row by row.
    statistics : `(T, n_states)` sums of the statistics of each emission, by node.
    value : the log-likelihood.
    """

    counts: Floats
    statistics: Statistics
    value: float


class State(NamedTuple):
    """Parameters as one vector, their E-step, and the penalised log-likelihood."""

    theta: Floats
    sums: Sums
    value: float


class EMSteps:
    """The E-step and the M-step on parameter vectors of one tree."""

    def __init__(self, space: ParameterVectors, smoothing: float, n_jobs: int) -> None:
        self.space, self.smoothing, self.n_jobs = space, smoothing, n_jobs
        self.counter = Counter(space.model)
        self.groups = ColumnGroups.of(space.model)

    def expect(self, theta: Floats, chunks: Chunks) -> Sums:
        """The E-step: one pass over the samples."""
        if self.groups is not None:
            flat, model = theta[: self.space.size], self.space.as_model(theta)
            found = self.groups.expect(flat, model, map(as_chunk, chunks()), self.n_jobs)
            if found is not None:
                return Sums(*found)
        return _expect(self.counter, self.space, theta, chunks, self.n_jobs)

    def visit(self, theta: Floats, chunks: Chunks) -> State:
        """The E-step, and the objective."""
        sums = self.expect(theta, chunks)
        return State(theta, sums, sums.value + self.smoothing * self.space.log_prior(theta))

    def step(self, sums: Sums) -> Floats:
        """The M-step: the parameters of largest expected penalised log-likelihood."""
        return self.space.maximised(sums.counts, sums.statistics, self.smoothing)


def _expect(
    counter: Counter, space: ParameterVectors, theta: Floats, chunks: Chunks, n_jobs: int
) -> Sums:
    """Expected counts, statistics and log-likelihood, summed over the chunks, in one pass."""
    summed = counter.under(theta, partial(space.as_model, theta))
    model = summed.model if space.model.emissions else space.model
    parents = sorted({int(model.parents[v]) for v in model.emissions})
    statistics: Statistics = {}
    for chunk in map(as_chunk, chunks()):
        evidence = evidence_of(chunk, model, n_jobs)
        found = summed.add(evidence, chunk.weights, parents, n_jobs)
        if found is not None and parents:
            for v, sums in _statistics(model, chunk, found, n_jobs).items():
                statistics[v] = sums + statistics[v] if v in statistics else sums
    return Sums(summed.counts(), statistics, summed.value)


def _statistics(model: TreeModel, chunk: Chunk, found: Posteriors, n_jobs: int) -> Statistics:
    """Sums of the statistics of every emission, weighted by the posteriors of its neighbour."""
    weighted = dict(zip(found.nodes.tolist(), found.values, strict=True))
    if chunk.weights is not None:
        weighted = {u: x * chunk.weights[:, None] for u, x in weighted.items()}
    by_variable = {v: weighted[int(model.parents[v])] for v in model.emissions}
    return sums_of(model.emissions, chunk.arrays, by_variable, n_jobs)


def mean_statistics(model: TreeModel, chunks: Chunks, n_jobs: int = 1) -> Statistics:
    """Statistics `(T,)` of every emission, means over the samples."""
    if not model.emissions:
        return {}
    groups = ColumnGroups.of(model)
    found = None if groups is None else groups.means(map(as_chunk, chunks()))
    if found is not None:
        return found
    sums: Statistics = {}
    total = 0.0
    for chunk in map(as_chunk, chunks()):
        weights = np.ones((len(chunk), 1)) if chunk.weights is None else chunk.weights[:, None]
        total += float(weights.sum())
        found = sums_of(
            model.emissions, chunk.arrays, dict.fromkeys(model.emissions, weights), n_jobs
        )
        sums = {v: part + sums[v] if v in sums else part for v, part in found.items()}
    return {v: part[:, 0] / total for v, part in sums.items()}
