"""Refinement: EM over the whole tree, as passes of sums, from the moments' estimate.

Moments are consistent but not efficient; from their estimate a few EM steps with exact belief
propagation reach the maximum of the likelihood. A step never lowers the objective, and a step
that acceleration has overdone is taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.emissions import sums_of
from latenttree.inference import Counter, Evidence, Posteriors, log_likelihood
from latenttree.inference.vectors import LEAST_SHARE as LEAST_SHARE
from latenttree.inference.vectors import OPENING as OPENING
from latenttree.inference.vectors import Statistics, Tables, Vectors
from latenttree.model import TreeModel, default_root, normalised
from latenttree.samples import Chunk, as_chunk, spread_places
from latenttree.tree import Tree

Floats = NDArray[np.float64]
Chunks = Callable[[], Iterable[Chunk | Evidence | NDArray[Any]]]
"""Calls give all samples, chunk by chunk: as they are, as evidence, or as codes."""

PER_PARAMETER = 1e5
"""Log-likelihood for each parameter that `tolerance` is a share of."""

LEAST_SHARE_LEFT, MOST_SHARE_LEFT = 0.5, 0.95
"""Bounds of the share of its gain that an iteration is expected to leave to the next."""

MANY = 1 << 17
"""Samples from which on parts of them are seen first."""

PARTS = (16, 4)
"""One sample in so many makes a part."""

PART_STEPS, PART_NOISE = 30, 0.2
"""Steps on a part of the samples, and what may be left to gain there for each parameter."""

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

    counts: Floats  # of all tables, row after row
    statistics: Statistics
    value: float


class _State(NamedTuple):
    """A model as one vector, what the samples say about it, and its objective."""

    theta: Floats
    sums: _Sums
    value: float


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
    """EM from `model` until little more is to be gained. A step is one pass over the samples.

    Very many samples are first seen in part (`MANY`): a sixteenth of them, then a quarter, until
    what is still to be gained is noise of that part. The trace is that of all samples, after.

    Parameters
    ----------
    chunks : gives the samples, chunk by chunk, or their codes `(n, p)`, -1 for unknown.
    tolerance : refinement ends when the objective is expected to rise by less than `tolerance *
        PER_PARAMETER` for each free parameter: by default 0.01, where sampling noise is 1/2. What
        is to come is judged by how the gains shrink.
    smoothing : pseudo-samples for every state of a parent, spread as the node's own marginal is
        (a Dirichlet prior): no category seen at all gets probability zero.
    accelerate : extrapolate every two steps (squared extrapolation, Varadhan and Roland 2008).
    held_out : samples to stop by: refinement ends when their likelihood no longer grows, and the
        model that was best for them is returned.
    marginals : of the observed nodes in the samples; the model's own by default.
    """
    space = Vectors(model, _targets(model, marginals), mean_statistics(model, chunks, n_jobs))
    climb = _Climb(space, smoothing, accelerate, n_jobs)
    theta = space.opened(space.flat(model.tables, model.emissions))
    judge = _Judge(held_out, n_jobs)
    if accelerate and max_steps >= PART_STEPS:
        theta = _seen_in_part(climb, theta, chunks)
    least = tolerance * PER_PARAMETER * model.n_parameters
    found = climb.run(theta, chunks, max_steps, least, judge)
    best = climb.step(found.state) if judge.best is None else judge.best
    return Refinement(checked(space.as_model(best)), found.trace, judge.values, found.converged)


def _seen_in_part(climb: _Climb, theta: Floats, chunks: Chunks) -> Floats:
    """Parameters after EM on parts of very many samples, each part larger than the last.

    A part is left when what is still to be gained is less than `PART_NOISE` for each parameter of
    the log-likelihood of that part. Where a part gains less than a unit for each parameter in all,
    the start was as good as it can tell, and is kept."""
    n_parameters = climb.space.model.n_parameters
    for share in PARTS:
        part = _part(chunks, share)
        if sum(map(len, part)) < MANY // share:
            break
        seen: Chunks = partial(iter, part)
        found = climb.run(theta, seen, PART_STEPS, PART_NOISE * n_parameters, bar=n_parameters)
        if found.trace[-1] - found.trace[0] < n_parameters:
            break
        theta = climb.step(found.state)
    return theta


def _part(chunks: Chunks, share: int) -> list[Chunk]:
    """One in `share` of the samples, spread evenly."""
    return [
        chunk.take(spread_places(len(chunk), -(-len(chunk) // share)))
        for chunk in map(as_chunk, chunks())
    ]


class _Climbed(NamedTuple):
    """Where a climb ended, and the objective before each step."""

    state: _State
    trace: list[float]
    converged: bool


class _Climb:
    """Steps of EM, extrapolated."""

    def __init__(self, space: Vectors, smoothing: float, accelerate: bool, n_jobs: int) -> None:
        self.space, self.smoothing, self.accelerate = space, smoothing, accelerate
        self.n_jobs = n_jobs
        self.counter = Counter(space.model)

    def visit(self, theta: Floats, chunks: Chunks) -> _State:
        """One pass over the samples."""
        sums = _expect(self.counter, self.space, theta, chunks, self.n_jobs)
        return _State(theta, sums, sums.value + self.smoothing * self.space.log_prior(theta))

    def step(self, state: _State) -> Floats:
        """The model of largest expected log-likelihood."""
        return self.space.maximised(state.sums.counts, state.sums.statistics, self.smoothing)

    def run(
        self,
        theta: Floats,
        chunks: Chunks,
        max_steps: int,
        least: float,
        judge: _Judge | None = None,
        bar: float = 0.0,
    ) -> _Climbed:
        """Climb until less than `least` is to be gained, or the judge is tired; given up where the
        first steps gain less than half of `bar`."""

        def visit(theta: Floats) -> _State:
            return self.visit(theta, chunks)

        state = visit(theta)
        trace, gains = [state.value], list[float]()
        converged = judge is not None and judge.tired(theta, self.space)
        while len(trace) <= max_steps and not converged:
            before = state
            state = visit(self.step(before))
            if self.accelerate and len(trace) + 2 <= max_steps:
                state = _leap(before, state, self.step(state), visit, self.space, trace)
            trace.append(state.value)
            gains.append(state.value - before.value)
            tired = judge is not None and judge.tired(state.theta, self.space)
            converged = tired or still_to_come(gains) <= least or gains[0] < bar / 2
        return _Climbed(state, trace, converged)


def still_to_come(gains: list[float]) -> float:
    """What iterations will gain after the last, if gains keep shrinking as they do.

    `g r / (1 - r)` with `r` the ratio of the last gain to the one before; where four are known,
    the means of two take the place of one, since extrapolation gains by fits and starts."""
    if gains[-1] <= 0:
        return 0.0
    if len(gains) < 2:
        return np.inf
    last, before = gains[-1], gains[-2]
    ratio = last / max(before, 1e-300)
    if len(gains) >= 4:
        last, before = sum(gains[-2:]) / 2, sum(gains[-4:-2]) / 2
        ratio = (last / max(before, 1e-300)) ** 0.5
    ratio = min(max(ratio, LEAST_SHARE_LEFT), MOST_SHARE_LEFT)
    return float(last * ratio / (1 - ratio))


def checked(model: TreeModel) -> TreeModel:
    """The same model, its tables checked and normalised to the last bit."""
    return TreeModel(model.tree, model.root, model.tables, model.emissions)


def _leap(
    first: _State,
    second: _State,
    third: Floats,
    visit: Callable[[Floats], _State],
    space: Vectors,
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

    def tired(self, theta: Floats, space: Vectors) -> bool:
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


def _expect(counter: Counter, space: Vectors, theta: Floats, chunks: Chunks, n_jobs: int) -> _Sums:
    """Expected counts, statistics and log-likelihood, summed over the chunks, in one pass."""
    model = space.as_model(theta)
    parents = sorted({int(model.parents[v]) for v in model.emissions})
    summed = counter.under(model, theta)
    statistics: Statistics = {}
    for chunk in map(as_chunk, chunks()):
        evidence = chunk.evidence(model, n_jobs)
        found = summed.add(evidence, chunk.weights, parents, n_jobs)
        if found is not None and parents:
            for v, sums in _statistics(model, chunk, found, n_jobs).items():
                statistics[v] = sums + statistics[v] if v in statistics else sums
    return _Sums(summed.counts(), statistics, summed.value)


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
