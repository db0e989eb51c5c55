"""Refinement: EM over the whole tree, as passes of sums, from the moments' estimate.

Moments are consistent but not efficient; from their estimate a few EM steps with exact belief
propagation reach the maximum of the likelihood. A step never lowers the objective, and a step
that acceleration has overdone is taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.inference import Evidence, expected_counts, log_likelihood
from latenttree.model import TreeModel, default_root, normalised
from latenttree.tree import Tree

Floats = NDArray[np.float64]
Tables = tuple[Floats, ...]
Chunks = Callable[[], Iterable[NDArray[Any] | Evidence]]

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


class _State(NamedTuple):
    """A model with its counts and objective."""

    model: TreeModel
    counts: Tables
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
    """EM from `model` until a step gains less than `tolerance` of the log-likelihood.

    Parameters
    ----------
    chunks : gives the codes `(n, p)` of the samples, chunk by chunk, -1 for unknown, or `Evidence`.
    smoothing : pseudo-samples for every state of a parent, spread as the node's own marginal is
        (a Dirichlet prior): no category seen at all gets probability zero.
    accelerate : extrapolate every two steps (squared extrapolation, Varadhan and Roland 2008).
    held_out : samples to stop by: refinement ends when their likelihood no longer grows, and the
        model that was best for them is returned.
    marginals : of the observed nodes in the samples; the model's own by default.
    """
    target = _targets(model, marginals)
    judge = _Judge(held_out, n_jobs)

    def visit(some: TreeModel) -> _State:
        counts, value = _expect(some, chunks, n_jobs)
        return _State(some, counts, value + smoothing * _log_prior(some, target))

    def step(state: _State) -> TreeModel:
        return maximise(state.model, state.counts, smoothing, target)

    state = visit(_opened(model, target))
    trace = [state.value]
    converged = judge.tired(state.model)
    while len(trace) <= max_steps and not converged:
        before = state
        state = visit(step(before))
        if accelerate and len(trace) + 2 <= max_steps:
            state = _leap(before, state, step(state), visit, trace)
        trace.append(state.value)
        # a large sample makes the likelihood large, but not the gain that still matters
        scale = min(abs(state.value), GAIN_SCALE * model.n_parameters)
        still = state.value - before.value <= tolerance * scale
        converged = judge.tired(state.model) or still
    best = judge.best or step(state)
    return Refinement(best, trace, judge.values, converged)


def _leap(
    first: _State,
    second: _State,
    third: TreeModel,
    visit: Callable[[TreeModel], _State],
    trace: list[float],
) -> _State:
    """The extrapolation of three models in a row, or the third where that is no better than the
    second."""
    trace.append(second.value)
    size, bend = _movement(first.model, second.model, third)
    stride = max(1.0, np.sqrt(size / max(bend, 1e-300)))
    if stride > 1.0:
        far = visit(_extrapolated(first.model, second.model, third, stride))
        if far.value >= second.value:
            return far
    return visit(third)


def _movement(a: TreeModel, b: TreeModel, c: TreeModel) -> tuple[float, float]:
    """Squared lengths of the step `b - a` and of its change `c - 2 b + a`."""
    size = bend = 0.0
    for x, y, z in zip(a.tables, b.tables, c.tables, strict=True):
        size += float(((y - x) ** 2).sum())
        bend += float(((z - 2 * y + x) ** 2).sum())
    return size, bend


def _extrapolated(a: TreeModel, b: TreeModel, c: TreeModel, stride: float) -> TreeModel:
    """`a + 2 s (b - a) + s^2 (c - 2 b + a)`, kept positive."""
    tables = []
    for x, y, z in zip(a.tables, b.tables, c.tables, strict=True):
        far = x + 2 * stride * (y - x) + stride**2 * (z - 2 * y + x)
        tables.append(normalised(np.maximum(far, LEAST_SHARE * z)))
    return TreeModel(a.tree, a.root, tuple(tables))


class _Judge:
    """Watches held-out samples, where there are any."""

    def __init__(self, held_out: Chunks | None, n_jobs: int) -> None:
        self.held_out, self.n_jobs = held_out, n_jobs
        self.values: list[float] = []
        self.best: TreeModel | None = None

    def tired(self, model: TreeModel) -> bool:
        if self.held_out is None:
            return False
        value = total_log_likelihood(model, self.held_out, self.n_jobs)
        if value > max(self.values, default=-np.inf):
            self.best = model
        self.values.append(value)
        return len(self.values) - 1 - int(np.argmax(self.values)) >= PATIENCE


def total_log_likelihood(model: TreeModel, chunks: Chunks, n_jobs: int = 1) -> float:
    """Log-likelihood of all samples."""
    parts = (log_likelihood(model, _evidence(part), n_jobs=n_jobs).sum() for part in chunks())
    return float(sum(parts))


def _evidence(part: NDArray[Any] | Evidence) -> Evidence:
    return part if isinstance(part, Evidence) else Evidence(part)


def _expect(model: TreeModel, chunks: Chunks, n_jobs: int) -> tuple[Tables, float]:
    """Expected counts and log-likelihood, summed over the chunks."""
    counts: Tables = ()
    value = 0.0
    for some in chunks():
        part, log_value = expected_counts(model, _evidence(some), n_jobs=n_jobs)
        counts = part if not counts else tuple(a + b for a, b in zip(counts, part, strict=True))
        value += log_value
    return counts, value


def maximise(model: TreeModel, counts: Tables, smoothing: float, target: Tables) -> TreeModel:
    """The model of largest expected log-likelihood given the counts, plus pseudo-samples."""
    tables = (
        normalised(count + smoothing * t[:, None], t)
        for count, t in zip(counts, target, strict=True)
    )
    return TreeModel(model.tree, model.root, tuple(tables))


def smoothed(
    model: TreeModel, n_samples: int, smoothing: float, marginals: Sequence[Floats] = ()
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


def _log_prior(model: TreeModel, target: Tables) -> float:
    """`sum t log P` over all columns: what a pseudo-sample for each adds to the objective."""
    total = 0.0
    for table, t in zip(model.tables, target, strict=True):
        used = t > 0
        total += float(t[used] @ np.log(np.maximum(table[used], 1e-300)).sum(axis=1))
    return total


def _opened(model: TreeModel, target: Tables) -> TreeModel:
    """The model with a little independence mixed in."""
    tables = [
        (1 - OPENING) * table + OPENING * t[:, None]
        for table, t in zip(model.tables, target, strict=True)
    ]
    return TreeModel(model.tree, model.root, tuple(tables))


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
