"""EM over the whole tree, from the estimate by moments.

Moments are consistent but not efficient; from their estimate a few EM steps with exact belief
propagation reach the maximum of the likelihood. The objective never decreases: a SQUAREM step that
would lower it is replaced by an EM step.
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
GAIN_PER_TOL = 5e5
"""EM ends when the expected gain is below `tolerance * GAIN_PER_TOL` for each parameter."""

RARE_COUNT = 10
"""Categories with fewer samples are rare: their parameters do not count for the tolerance."""

LEAST_RATIO, MOST_RATIO = 0.5, 0.95
"""Bounds of the estimated ratio of successive gains."""

MANY_SAMPLES = 1 << 16
"""From this number of samples on, a pass of online EM comes first."""

SHARE_PER_TOL = 2e5
"""With many samples, EM ends when a pass gains less than the share `tolerance * SHARE_PER_TOL` of
all gains so far."""

FIRST_STEP_FACTOR = 10.0
"""The first EM step after online EM removes the noise of the last batches. EM ends there if it
gains less than `FIRST_STEP_FACTOR` times the tolerance, by default 1/2 for each parameter."""

ONLINE_MIN_STEPS = 30
"""With fewer steps allowed there is no pass of online EM."""

PATIENCE = 3
"""Number of steps without gain on held-out samples after which EM ends."""


@dataclass(frozen=True, eq=False)
class Refinement:
    """The refined model.

    Attributes
    ----------
    trace : log-likelihood of the training samples before each step (with smoothing, plus the
        logarithm of the prior, up to a constant); never decreasing.
    held_out : log-likelihood of the held-out samples before each step; empty without any.
    converged : False where `max_steps` were taken first.
    """

    model: TreeModel
    trace: list[float] = field(default_factory=list)
    held_out: list[float] = field(default_factory=list)
    converged: bool = False


def run_em(
    model: TreeModel,
    chunks: Chunks,
    *,
    max_steps: int = 100,
    tolerance: float = 1e-7,
    smoothing: float = 1.0,
    accelerate: bool = True,
    held_out: Chunks | None = None,
    marginals: Sequence[Floats] = (),
    online_from: int | None = None,
    n_jobs: int = 1,
) -> Refinement:
    """EM from `model` until little more is to be gained. A step is one pass over the samples.

    From `MANY_SAMPLES` samples on, a pass of online EM comes first, see `online_em`; its gain is
    measured on some of the samples. The trace is that of the steps after it.

    Parameters
    ----------
    chunks : a function without arguments. Each call starts a new pass: it returns an iterable over
        all samples in parts, each a `Chunk` or an array of codes `(n, p)`, -1 where missing.
    tolerance : EM ends when the objective is expected to rise by less than `tolerance *
        GAIN_PER_TOL` for each free parameter, by default 0.05 (sampling noise is 1/2), see
        `expected_gain`. The free parameters of rare categories, with fewer than `RARE_COUNT`
        samples, are not counted, and the count is at most the number of values in the samples. With
        many samples EM also ends when a pass gains less than this, or less than the share
        `tolerance * SHARE_PER_TOL`, by default 0.02, of all gains.
    smoothing : number of pseudo-samples for every state of a parent, distributed as the marginal
        of the node (a Dirichlet prior): no category that occurs gets probability zero.
    accelerate : every second step is a SQUAREM step (Varadhan and Roland 2008).
    held_out : samples for early stopping: EM ends when their likelihood no longer grows, and the
        model that is best for them is returned.
    marginals : of the observed nodes in the samples; the model's own by default.
    online_from : number of samples from which a pass of online EM comes first; `MANY_SAMPLES` by
        default.
    """
    space = ParameterVectors(
        model, prior_targets(model, marginals), mean_statistics(model, chunks, n_jobs)
    )
    steps = EMSteps(space, smoothing, n_jobs)
    theta = space.opened(space.flat(model.cpts, model.emissions))
    stopping = _HeldOut(held_out, n_jobs)
    batches, n_samples = None, sum(len(as_chunk(part)) for part in chunks())
    if (
        accelerate
        and max_steps >= ONLINE_MIN_STEPS
        and n_samples >= (MANY_SAMPLES if online_from is None else online_from)
    ):
        batches = BatchPass(steps, theta, chunks)
    n_free = min(_n_informed(model, marginals, n_samples), n_samples * model.tree.n_observed)
    limits = _Limits(max_steps, tolerance * GAIN_PER_TOL * n_free, tolerance * SHARE_PER_TOL)
    if batches is None:
        end = _em_loop(steps, steps.visit(theta, chunks), chunks, limits, stopping, accelerate)
    else:
        end = _after_online_em(steps, batches, chunks, limits, stopping)
    best = steps.step(end.state.sums) if stopping.best is None else stopping.best
    return Refinement(
        checked_model(space.as_model(best)), end.trace, stopping.values, end.converged
    )


def _n_informed(model: TreeModel, marginals: Sequence[Floats], n_samples: int) -> int:
    """Free parameters, without those of categories with less than `RARE_COUNT` samples."""
    shares = [s for v, s in enumerate(marginals) if v not in model.emissions]
    if not shares:
        return model.n_parameters
    nodes = [v for v in range(len(marginals)) if v not in model.emissions]
    sizes = np.array([len(s) for s in shares])
    rare = np.add.reduceat(
        np.concatenate(shares) * n_samples < RARE_COUNT, np.cumsum(sizes) - sizes
    )
    widths = np.array([model.cpts[v].shape[1] for v in nodes])
    return model.n_parameters - int(np.minimum(rare, sizes - 1) @ widths)


class _Limits(NamedTuple):
    """The stopping rule of the EM loop.

    max_steps : largest number of passes over the samples.
    least : the loop ends when the expected gain of all further steps is below this; after online
        EM, also when a single pass gains less than this.
    share : after online EM, the loop also ends when a pass gains less than this share of all gains.
    """

    max_steps: int
    least: float
    share: float


class _LoopResult(NamedTuple):
    """The last state of the EM loop, and the objective before each step."""

    state: State
    trace: list[float]
    converged: bool


def _after_online_em(
    steps: EMSteps, batches: BatchPass, chunks: Chunks, limits: _Limits, stopping: _HeldOut
) -> _LoopResult:
    """One EM step after a pass of online EM, and more where they gain enough."""
    state = steps.visit(batches.theta, chunks)
    if stopping.held_out is None:
        before, after = (batches.gained(x) for x in (batches.theta, steps.step(state.sums)))
        if after - before <= max(FIRST_STEP_FACTOR * limits.least, limits.share * after):
            return _LoopResult(state, [state.value], True)
        return _em_loop(steps, state, chunks, limits, stopping, gained=before)
    return _em_loop(steps, state, chunks, limits, stopping)


def _em_loop(
    steps: EMSteps,
    state: State,
    chunks: Chunks,
    limits: _Limits,
    stopping: _HeldOut,
    accelerate: bool = True,
    gained: float | None = None,
) -> _LoopResult:
    """EM steps from `state` until the expected gain is small, or the likelihood of held-out samples
    no longer grows.

    `gained` is the rise of the objective by online EM before `state`, None where there was none.
    Where it is given, the loop also ends when a pass gains less than the larger of `limits.least`
    and the share `limits.share` of all gains: `gained` and those of the loop."""

    def visit(theta: Floats) -> State:
        return steps.visit(theta, chunks)

    trace, gains, first = [state.value], list[float](), state.value
    converged = stopping.should_stop(state.theta, steps.space)
    while len(trace) <= limits.max_steps and not converged:
        before, passes = state, len(trace)
        state = visit(steps.step(before.sums))
        if accelerate and len(trace) + 2 <= limits.max_steps:
            state = _squarem_step(before, state, steps.step(state.sums), visit, steps.space, trace)
        trace.append(state.value)
        gains.append(state.value - before.value)
        converged = stopping.should_stop(state.theta, steps.space)
        converged = converged or expected_gain(gains) <= limits.least
        if gained is not None:
            enough = max(limits.least, limits.share * (gained + state.value - first))
            converged |= gains[-1] <= enough * (len(trace) - passes)
    return _LoopResult(state, trace, converged)


def expected_gain(gains: list[float]) -> float:
    """The sum of all gains to come if they shrink geometrically: `g r / (1 - r)`.

    `g` is the last gain and `r` its ratio to the one before; where four gains are known, means of
    two take the place of one, since the gains of SQUAREM steps are irregular."""
    if gains[-1] <= 0:
        return 0.0
    if len(gains) < 2:
        return np.inf
    last, before = gains[-1], gains[-2]
    ratio = last / max(before, 1e-300)
    if len(gains) >= 4:
        last, before = sum(gains[-2:]) / 2, sum(gains[-4:-2]) / 2
        ratio = (last / max(before, 1e-300)) ** 0.5
    ratio = min(max(ratio, LEAST_RATIO), MOST_RATIO)
    return float(last * ratio / (1 - ratio))


def checked_model(model: TreeModel) -> TreeModel:
    """The same model, its CPTs checked and normalised to rounding."""
    return TreeModel(model.tree, model.root, model.cpts, model.emissions)


def _squarem_step(
    first: State,
    second: State,
    third: Floats,
    visit: Callable[[Floats], State],
    space: ParameterVectors,
    trace: list[float],
) -> State:
    """The extrapolation of three successive parameter vectors a, b, c, or c where the objective of
    the extrapolation is below that of b; appends to `trace`.

    `a + 2 s (b - a) + s^2 (c - 2 b + a)`, kept positive, with `s = |b - a| / |c - 2 b + a|`."""
    trace.append(second.value)
    step, bend = second.theta - first.theta, third - 2 * second.theta + first.theta
    stride = max(1.0, float(np.sqrt(step @ step / max(float(bend @ bend), 1e-300))))
    if stride > 1.0:
        extrapolated = first.theta + 2 * stride * step + stride**2 * bend
        proposal = visit(space.within(extrapolated, third))
        if proposal.value >= second.value:
            return proposal
    return visit(third)


class _HeldOut:
    """Early stopping by held-out samples, if there are any; keeps the best parameters."""

    def __init__(self, held_out: Chunks | None, n_jobs: int) -> None:
        self.held_out, self.n_jobs = held_out, n_jobs
        self.values: list[float] = []
        self.best: Floats | None = None

    def should_stop(self, theta: Floats, space: ParameterVectors) -> bool:
        """Whether the likelihood of the held-out samples has not grown for `PATIENCE` steps."""
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
    """A random start for EM: random CPTs around the marginals of observed nodes."""
    root = default_root(tree)
    parents = tree.rooted(root).parents
    dims = [len(marginals[v]) if v < tree.n_observed else n_states for v in range(tree.n_nodes)]
    cpts = []
    for v in range(tree.n_nodes):
        u = int(parents[v])
        base = marginals[v] if v < tree.n_observed else np.full(n_states, 1 / n_states)
        noise = rng.gamma(1.0, size=(dims[v], 1 if u < 0 else dims[u]))
        cpts.append(normalised(base[:, None] * noise, base))
    return TreeModel(tree, root, tuple(cpts))
