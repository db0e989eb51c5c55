"""Refinement: EM over the whole tree, as passes of sums, from the moments' estimate.

Moments are consistent but not efficient; from their estimate a few EM steps with exact belief
propagation reach the maximum of the likelihood. A step never lowers the objective, and a step
that acceleration has overdone is taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.model.likelihood import prior_targets, total_log_likelihood
from latenttree.model.samples import Chunks, as_chunk
from latenttree.model.tree_model import TreeModel, default_root, normalised
from latenttree.refinement.em_steps import EMSteps, State, mean_statistics
from latenttree.refinement.online_em import BatchPass
from latenttree.refinement.parameter_vectors import ParameterVectors
from latenttree.tree import Tree

Floats = NDArray[np.float64]
PER_PARAMETER = 5e5
"""Log-likelihood for each parameter that `tolerance` is a share of."""

SEEN = 10
"""Samples of a category that tell a parameter."""

LEAST_SHARE_LEFT, MOST_SHARE_LEFT = 0.5, 0.95
"""Bounds of the share of its gain that an iteration is expected to leave to the next."""

MANY_SAMPLES = 1 << 16
"""Samples from which on a pass in batches comes first."""

SHARES = 2e5
"""`tolerance` times this is the share of all gains that a pass over many samples must bring."""

FIRST = 10.0
"""The step after a pass in batches takes out the noise of the last of them: it may bring so many
times what later ones must, by default 1/2 for each parameter, and be the last."""

LEAST_STEPS = 30
"""Where fewer steps are allowed, they are taken as they are."""

PATIENCE = 3
"""EMSteps without gain on held-out samples after which refinement stops."""


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

    From `MANY_SAMPLES` samples on, a pass of online EM comes first, see `online_em`; its gain is
    measured on some of the samples. The trace is that of the steps after it.

    Parameters
    ----------
    chunks : gives the samples, chunk by chunk, or their codes `(n, p)`, -1 for unknown.
    tolerance : refinement ends when the objective is expected to rise by less than `tolerance *
        PER_PARAMETER` for each free parameter: by default 0.05, where sampling noise is 1/2. Those
        of categories seen less than `SEEN` times do not count, and no more than there are values.
        What is to come is judged by how the gains shrink. Of many samples also when a pass alone
        brings less than that, or less than the share `tolerance * SHARES`, by default 0.02, of all
        that was gained.
    smoothing : pseudo-samples for every state of a parent, spread as the node's own marginal is
        (a Dirichlet prior): no category seen at all gets probability zero.
    accelerate : extrapolate every two steps (squared extrapolation, Varadhan and Roland 2008).
    held_out : samples to stop by: refinement ends when their likelihood no longer grows, and the
        model that was best for them is returned.
    marginals : of the observed nodes in the samples; the model's own by default.
    """
    space = ParameterVectors(
        model, prior_targets(model, marginals), mean_statistics(model, chunks, n_jobs)
    )
    steps = EMSteps(space, smoothing, n_jobs)
    theta = space.opened(space.flat(model.cpts, model.emissions))
    judge = _HeldOut(held_out, n_jobs)
    seen, number = None, _number(chunks)
    if accelerate and max_steps >= LEAST_STEPS and number >= MANY_SAMPLES:
        seen = BatchPass(steps, theta, chunks)
    told = min(_n_informed(model, marginals, number), number * model.tree.n_observed)
    limits = _Limits(max_steps, tolerance * PER_PARAMETER * told, tolerance * SHARES)
    if seen is None:
        found = _em_loop(steps, steps.visit(theta, chunks), chunks, limits, judge, accelerate)
    else:
        found = _finish(steps, seen, chunks, limits, judge)
    best = steps.step(found.state.sums) if judge.best is None else judge.best
    return Refinement(checked(space.as_model(best)), found.trace, judge.values, found.converged)


def _n_informed(model: TreeModel, marginals: Sequence[Floats], number: int) -> int:
    """Parameters that samples say something about."""
    shares = [s for v, s in enumerate(marginals) if v not in model.emissions]
    if not shares:
        return model.n_parameters
    nodes = [v for v in range(len(marginals)) if v not in model.emissions]
    sizes = np.array([len(s) for s in shares])
    rare = np.add.reduceat(np.concatenate(shares) * number < SEEN, np.cumsum(sizes) - sizes)
    widths = np.array([model.cpts[v].shape[1] for v in nodes])
    return model.n_parameters - int(np.minimum(rare, sizes - 1) @ widths)


def _number(chunks: Chunks) -> int:
    return sum(len(as_chunk(part)) for part in chunks())


class _Limits(NamedTuple):
    """When a climb ends: steps, and what may be left to gain; of many samples each pass must bring
    that much, and a share of all that was gained."""

    max_steps: int
    least: float
    share: float


class _LoopResult(NamedTuple):
    """Where a climb ended, and the objective before each step."""

    state: State
    trace: list[float]
    converged: bool


def _finish(
    steps: EMSteps, seen: BatchPass, chunks: Chunks, limits: _Limits, judge: _HeldOut
) -> _LoopResult:
    """From where a pass in batches has led: one step, and more where they bring enough."""
    state = steps.visit(seen.theta, chunks)
    if judge.held_out is None:
        before, after = (seen.gained(x) for x in (seen.theta, steps.step(state.sums)))
        if after - before <= max(FIRST * limits.least, limits.share * after):
            return _LoopResult(state, [state.value], True)
        return _em_loop(steps, state, chunks, limits, judge, gained=before)
    return _em_loop(steps, state, chunks, limits, judge)


def _em_loop(
    steps: EMSteps,
    state: State,
    chunks: Chunks,
    limits: _Limits,
    judge: _HeldOut,
    accelerate: bool = True,
    gained: float | None = None,
) -> _LoopResult:
    """Climb until little is to be gained, or the judge is should_stop.

    Where `gained` is what led to `state`, every pass must bring enough, see `_Limits`."""

    def visit(theta: Floats) -> State:
        return steps.visit(theta, chunks)

    trace, gains, first = [state.value], list[float](), state.value
    converged = judge.should_stop(state.theta, steps.space)
    while len(trace) <= limits.max_steps and not converged:
        before, passes = state, len(trace)
        state = visit(steps.step(before.sums))
        if accelerate and len(trace) + 2 <= limits.max_steps:
            state = _squarem_step(before, state, steps.step(state.sums), visit, steps.space, trace)
        trace.append(state.value)
        gains.append(state.value - before.value)
        converged = (
            judge.should_stop(state.theta, steps.space) or expected_gain(gains) <= limits.least
        )
        if gained is not None:
            enough = max(limits.least, limits.share * (gained + state.value - first))
            converged |= gains[-1] <= enough * (len(trace) - passes)
    return _LoopResult(state, trace, converged)


def expected_gain(gains: list[float]) -> float:
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
    return TreeModel(model.tree, model.root, model.cpts, model.emissions)


def _squarem_step(
    first: State,
    second: State,
    third: Floats,
    visit: Callable[[Floats], State],
    space: ParameterVectors,
    trace: list[float],
) -> State:
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


class _HeldOut:
    """Watches held-out samples, where there are any."""

    def __init__(self, held_out: Chunks | None, n_jobs: int) -> None:
        self.held_out, self.n_jobs = held_out, n_jobs
        self.values: list[float] = []
        self.best: Floats | None = None

    def should_stop(self, theta: Floats, space: ParameterVectors) -> bool:
        if self.held_out is None:
            return False
        value = total_log_likelihood(space.as_model(theta), self.held_out, self.n_jobs)
        if value > max(self.values, default=-np.inf):
            self.best = theta
        self.values.append(value)
        return len(self.values) - 1 - int(np.argmax(self.values)) >= PATIENCE


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
