"""Refinement: EM over the whole tree, as passes of sums, from the moments' estimate.

Moments are consistent but not efficient; from their estimate a few EM steps with exact belief
propagation reach the maximum of the likelihood. A step never lowers the objective, and a step
that acceleration has overdone is taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.emissions import Emission, sums_of
from latenttree.inference import Evidence, expected_counts, log_likelihood, posteriors
from latenttree.model import TreeModel, default_root, normalised
from latenttree.samples import Chunk, as_chunk
from latenttree.tree import Tree

Floats = NDArray[np.float64]
Tables = tuple[Floats, ...]
Statistics = dict[int, Floats]
"""Sums of the statistics of emissions, `(T, k)`, by node."""

Chunks = Callable[[], Iterable[Chunk | Evidence | NDArray[Any]]]
"""Calls give all samples, chunk by chunk: as they are, as evidence, or as codes."""

OPENING = 1e-3
"""Share of independence mixed into the first model: EM never leaves a zero."""

LEAST_SHARE = 0.1
"""An extrapolated probability stays above this share of the last step's."""

GAIN_SCALE = 1000.0
"""Log-likelihood for each parameter beyond which the tolerance no longer grows."""

PATIENCE = 3
"""Steps without gain on held-out samples after which refinement stops."""


@dataclass(frozen=True, eq=False)
class Refinement:
    """The refined model, and how it came about.

    `trace` is the log-likelihood of the training samples before each step (with smoothing, plus
    the logarithm of the prior, up to a constant): never decreasing. `held_out` is the same for
    held-out samples, empty without any. `converged` is False where steps ran out first."""

    model: TreeModel
    trace: list[float] = field(default_factory=list)
    held_out: list[float] = field(default_factory=list)
    converged: bool = False


class _Sums(NamedTuple):
    """What a step needs from the samples: expected counts of tables, statistics of emissions."""

    counts: Tables
    statistics: Statistics
    value: float


class _State(NamedTuple):
    """A model as one vector, what the samples say about it, and its objective."""

    theta: Floats
    sums: _Sums
    value: float


class _Vectors:
    """Models of one tree as flat vectors, all tables one after another, row by row, then the
    parameters of emissions: thousands of small tables cost as little as one large one."""

    def __init__(self, model: TreeModel, target: Tables, means: Statistics) -> None:
        self.model, self.means = model, means
        widths = np.array([t.shape[1] for t in model.tables])
        first = np.cumsum(widths) - widths
        parts = [
            np.tile(np.arange(f, f + w), len(t))
            for f, w, t in zip(first.tolist(), widths.tolist(), model.tables, strict=True)
        ]
        self.column = np.concatenate(parts)
        self.ends = np.cumsum([t.size for t in model.tables])
        self.target = np.concatenate([np.repeat(t, w) for t, w in zip(target, widths, strict=True)])
        self.size = len(self.target)

    def flat(self, tables: Tables, emissions: Mapping[int, Emission]) -> Floats:
        parts = [t.ravel() for t in tables]
        return np.concatenate([*parts, *(emissions[v].vector() for v in sorted(emissions))])

    def as_model(self, theta: Floats) -> TreeModel:
        parts = np.split(theta[: self.size], self.ends[:-1])
        shapes = (t.shape for t in self.model.tables)
        tables = (p.reshape(s) for p, s in zip(parts, shapes, strict=True))
        return self.model.with_tables(tables, self._emissions(theta[self.size :]))

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

    def maximised(self, sums: _Sums, smoothing: float) -> Floats:
        emissions = {
            v: emission.from_sums(sums.statistics[v], smoothing, self.means[v])
            for v, emission in self.model.emissions.items()
        }
        theta = self.flat(sums.counts, emissions)
        theta[: self.size] += smoothing * self.target
        return self.normalised(theta)

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


def refine(
    model: TreeModel,
    chunks: Chunks,
    *,
    max_steps: int = 100,
    tolerance: float = 1e-7,
    smoothing: float = 1.0,
    accelerate: bool = True,
    held_out: Chunks | None = None,
    marginals: Sequence[Floats] = (),
    n_jobs: int = 1,
) -> Refinement:
    """EM from `model` until a step gains less than `tolerance` of the log-likelihood.

    Parameters
    ----------
    chunks : gives the samples, chunk by chunk, or their codes `(n, p)`, -1 for unknown.
    smoothing : pseudo-samples for every state of a parent, spread as the node's own marginal is
        (a Dirichlet prior): no category seen at all gets probability zero.
    accelerate : extrapolate every two steps (squared extrapolation, Varadhan and Roland 2008).
    held_out : samples to stop by: refinement ends when their likelihood no longer grows, and the
        model that was best for them is returned.
    marginals : of the observed nodes in the samples; the model's own by default.
    """
    space = _Vectors(model, _targets(model, marginals), mean_statistics(model, chunks, n_jobs))
    judge = _Judge(held_out, n_jobs)

    def visit(theta: Floats) -> _State:
        sums = _expect(space.as_model(theta), chunks, n_jobs)
        return _State(theta, sums, sums.value + smoothing * space.log_prior(theta))

    def step(state: _State) -> Floats:
        return space.maximised(state.sums, smoothing)

    state = visit(space.opened(space.flat(model.tables, model.emissions)))
    trace = [state.value]
    converged = judge.tired(state.theta, space)
    while len(trace) <= max_steps and not converged:
        before = state
        state = visit(step(before))
        if accelerate and len(trace) + 2 <= max_steps:
            state = _leap(before, state, step(state), visit, space, trace)
        trace.append(state.value)
        # a large sample makes the likelihood large, but not the gain that still matters
        scale = min(abs(state.value), GAIN_SCALE * model.n_parameters)
        still = state.value - before.value <= tolerance * scale
        converged = judge.tired(state.theta, space) or still
    best = step(state) if judge.best is None else judge.best
    return Refinement(checked(space.as_model(best)), trace, judge.values, converged)


def checked(model: TreeModel) -> TreeModel:
    """The same model, its tables checked and normalised to the last bit."""
    return TreeModel(model.tree, model.root, model.tables, model.emissions)


def _leap(
    first: _State,
    second: _State,
    third: Floats,
    visit: Callable[[Floats], _State],
    space: _Vectors,
    trace: list[float],
) -> _State:
    """The extrapolation of three models in a row, or the third where that is no better than the
    second.

    `a + 2 s (b - a) + s^2 (c - 2 b + a)`, kept positive, with `s = |b - a| / |c - 2 b + a|`."""
    trace.append(second.value)
    step, bend = second.theta - first.theta, third - 2 * second.theta + first.theta
    stride = max(1.0, float(np.sqrt(step @ step / max(float(bend @ bend), 1e-300))))
    if stride > 1.0:
        far = first.theta + 2 * stride * step + stride**2 * bend
        found = visit(space.within(far, third))
        if found.value >= second.value:
            return found
    return visit(third)


class _Judge:
    """Watches held-out samples, where there are any."""

    def __init__(self, held_out: Chunks | None, n_jobs: int) -> None:
        self.held_out, self.n_jobs = held_out, n_jobs
        self.values: list[float] = []
        self.best: Floats | None = None

    def tired(self, theta: Floats, space: _Vectors) -> bool:
        if self.held_out is None:
            return False
        value = total_log_likelihood(space.as_model(theta), self.held_out, self.n_jobs)
        if value > max(self.values, default=-np.inf):
            self.best = theta
        self.values.append(value)
        return len(self.values) - 1 - int(np.argmax(self.values)) >= PATIENCE


def total_log_likelihood(model: TreeModel, chunks: Chunks, n_jobs: int = 1) -> float:
    """Log-likelihood of all samples."""
    total = 0.0
    for chunk in map(as_chunk, chunks()):
        found = log_likelihood(model, chunk.evidence(model, n_jobs), n_jobs=n_jobs)
        total += float(found.sum() if chunk.weights is None else chunk.weights @ found)
    return total


def _expect(model: TreeModel, chunks: Chunks, n_jobs: int) -> _Sums:
    """Expected counts, statistics and log-likelihood, summed over the chunks."""
    counts: Tables = ()
    statistics: Statistics = {}
    value = 0.0
    for chunk in map(as_chunk, chunks()):
        evidence = chunk.evidence(model, n_jobs)
        part, log_value = expected_counts(model, evidence, n_jobs=n_jobs, weights=chunk.weights)
        counts = part if not counts else tuple(a + b for a, b in zip(counts, part, strict=True))
        value += log_value
        for v, sums in _statistics(model, chunk, evidence, n_jobs).items():
            statistics[v] = sums + statistics[v] if v in statistics else sums
    return _Sums(counts, statistics, value)


def _statistics(model: TreeModel, chunk: Chunk, evidence: Evidence, n_jobs: int) -> Statistics:
    """Sums of the statistics of every emission, weighted by the posteriors of its neighbour."""
    if not model.emissions:
        return {}
    parents = sorted({int(model.parents[v]) for v in model.emissions})
    found = posteriors(model, evidence, parents, n_jobs)
    q = dict(zip(parents, found.values, strict=True))
    weights = np.ones(len(chunk)) if chunk.weights is None else chunk.weights
    weights = np.where(np.isfinite(found.log_likelihood), weights, 0.0)[:, None]
    weighted = {u: np.nan_to_num(x) * weights for u, x in q.items()}
    by_variable = {v: weighted[int(model.parents[v])] for v in model.emissions}
    return sums_of(model.emissions, chunk.arrays, by_variable, n_jobs)


def mean_statistics(model: TreeModel, chunks: Chunks, n_jobs: int = 1) -> Statistics:
    """Statistics `(T,)` of every emission, means over the samples."""
    if not model.emissions:
        return {}
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


def maximise(model: TreeModel, counts: Tables, smoothing: float, target: Tables) -> TreeModel:
    """The model of largest expected log-likelihood given the counts, plus pseudo-samples."""
    tables = (
        normalised(count + smoothing * t[:, None], t)
        for count, t in zip(counts, target, strict=True)
    )
    return TreeModel(model.tree, model.root, tuple(tables), model.emissions)


def smoothed(
    model: TreeModel, n_samples: float, smoothing: float, marginals: Sequence[Floats] = ()
) -> TreeModel:
    """The model as if from `n_samples` counted with its states known, plus pseudo-samples."""
    weights = [model.marginals[u] if u >= 0 else np.ones(1) for u in model.parents.tolist()]
    counts = tuple(n_samples * t * w for t, w in zip(model.tables, weights, strict=True))
    return maximise(model, counts, smoothing, _targets(model, marginals))


def _targets(model: TreeModel, marginals: Sequence[Floats]) -> Tables:
    """Where pseudo-samples go: an observed node's marginal, evenly over the states of a hidden."""
    p = model.tree.n_observed
    observed = tuple(marginals) or model.marginals[:p]
    return observed + tuple(np.full(d, 1 / d) for d in model.dims[p:].tolist())


def random_model(
    tree: Tree, marginals: dict[int, Floats], n_states: int, rng: np.random.Generator
) -> TreeModel:
    """A start for EM that knows nothing: random tables around the observed marginals."""

    root = default_root(tree)
    parents = tree.rooted(root).parents
    dims = [len(marginals[v]) if v < tree.n_observed else n_states for v in range(tree.n_nodes)]
    tables = []
    for v in range(tree.n_nodes):
        u = int(parents[v])
        base = marginals[v] if v < tree.n_observed else np.full(n_states, 1 / n_states)
        noise = rng.gamma(1.0, size=(dims[v], 1 if u < 0 else dims[u]))
        tables.append(normalised(base[:, None] * noise, base))
    return TreeModel(tree, root, tuple(tables))
