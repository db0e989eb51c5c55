"""EM of models with many states: passes of online EM in small batches, stopped by held-out samples.

With `s` the mean statistics of a sample, `s_t` those of batch t under the model of `s`, and
B batches in a pass,

    s <- s + g_t (s_t - s),    g_t = (t / B + DELAY)^-DECAY

A pass makes as many steps as there are batches, and the noise of the batches keeps a model of many
parameters from settling in the nearest maximum (Cappe and Moulines 2009; Liang and Klein 2009).
What noise is left at the end is averaged away by passes with `g_t = 1 / t`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from latenttree.model.likelihood import total_log_likelihood
from latenttree.model.passes import ExpectedSums
from latenttree.model.samples import Samples
from latenttree.model.tree_model import TreeModel
from latenttree.refinement.tree_problem import TreeProblem

Floats = NDArray[np.float64]

DECAY, DELAY = 0.75, 2.0
"""Power by which the steps get smaller, and passes by which they start smaller."""

BATCH, MOST_BATCHES = 125, 128
"""Samples in a batch, at least, and batches in a pass, at most."""

MOST_OF_VALUES = 16
"""Batches in a pass, at most, where columns have values: each of these costs the same in a small
batch as in a large one."""

PATIENCE = 6
"""Passes without a gain on held-out samples after which EM ends."""

SHARING = 16
"""States that share the pseudo-samples of one, where nothing else is said."""

UNAVERAGED = 0.25
"""Share of the passes that average in which the model stays as it is, so that the mean is over
many batches when the model first follows it."""


@dataclass(frozen=True, eq=False)
class BatchFit:
    """A model after passes in batches.

    Attributes
    ----------
    held_out : mean log-likelihood of the held-out samples after each pass; empty without any.
    n_passes : passes up to the model, the best one for the held-out samples.
    converged : whether the last pass was not the best for the held-out samples.
    last : parameters and mean statistics after the last pass, from which more passes go on.
    """

    model: TreeModel
    held_out: list[float] = field(default_factory=list)
    n_passes: int = 0
    converged: bool = True
    last: tuple[Floats, ExpectedSums] | None = field(default=None, repr=False)


def batch_em(
    model: TreeModel,
    samples: Samples,
    held_out: Samples | None,
    *,
    max_passes: int,
    smoothing: float = 1.0,
    sharing: int = SHARING,
    marginals: Sequence[Floats] = (),
    seed: int = 0,
    n_jobs: int = 1,
    before: BatchFit | None = None,
) -> BatchFit:
    """Passes from `model`; the model that is best for the held-out samples, or the last.

    `sharing`: how many states share `smoothing` pseudo-samples.
    `before`: passes with the same samples that were made already, after which these go on."""
    pseudo = batch_smoothing(model, smoothing, sharing)
    problem = TreeProblem(model, samples, pseudo, marginals, n_jobs)
    batches = _Batches(samples, MOST_OF_VALUES if model.emissions else MOST_BATCHES, seed)
    theta, mean = problem.opened(), None
    best, scores = theta, list[float]()
    if before is not None and before.last is not None:
        theta, mean = before.last
        best, scores = problem.of_model(before.model), list(before.held_out)
        batches.skip(len(scores))
    for number in range(len(scores), len(scores) + max_passes):
        if scores and len(scores) - 1 - int(np.argmax(scores)) >= PATIENCE:
            break
        for t, batch in enumerate(batches.one_pass(), start=1):
            found = batches.sums(problem, theta, batch)
            mean = _moved(mean, found, (number + t / batches.n_batches + DELAY) ** -DECAY)
            theta = problem.maximise(mean)
        if held_out is None:
            best = theta
            continue
        score = total_log_likelihood(problem.as_model(theta), held_out, n_jobs)
        scores.append(score / held_out.n_samples)
        if scores[-1] >= max(scores):
            best = theta
    n_passes = max_passes if held_out is None else int(np.argmax(scores)) + 1
    converged = held_out is None or len(scores) > n_passes
    last = None if mean is None else (theta, mean)
    return BatchFit(_checked(problem.as_model(best)), scores, n_passes, converged, last)


def averaged_em(
    model: TreeModel,
    samples: Samples,
    *,
    passes: int = 1,
    smoothing: float = 1.0,
    sharing: int = SHARING,
    marginals: Sequence[Floats] = (),
    seed: int = 0,
    n_jobs: int = 1,
) -> TreeModel:
    """The model after passes of online EM whose statistics are the mean over all batches so far."""
    pseudo = batch_smoothing(model, smoothing, sharing)
    problem = TreeProblem(model, samples, pseudo, marginals, n_jobs)
    batches = _Batches(samples, MOST_OF_VALUES if model.emissions else MOST_BATCHES, seed)
    theta, mean, t = problem.of_model(model), None, 0
    for _ in range(passes):
        for batch in batches.one_pass():
            t += 1
            mean = _moved(mean, batches.sums(problem, theta, batch), 1.0 / t)
            if t >= UNAVERAGED * passes * batches.n_batches:
                theta = problem.maximise(mean)
    return _checked(problem.as_model(theta))


def rows_of_a_pass(samples: Samples) -> float:
    """How many rows a pass in batches goes through, as expected: a row of weight w counts once in
    every batch that has any of its w draws."""
    weights = samples.weights if samples.weights is not None else samples.table.weights
    if weights is None:
        return float(len(samples))
    own = weights if samples.keep is None else weights[samples.keep]
    total = float(own.sum())
    n_batches = _number_of_batches(int(total), MOST_BATCHES)
    return float(n_batches * -np.expm1(-own / n_batches).sum())


def _number_of_batches(n_draws: int, most: int) -> int:
    return min(max(n_draws // BATCH, 1), most)


class _Batches:
    """The batches of samples, in another order in every pass."""

    def __init__(self, samples: Samples, most: int, seed: int) -> None:
        self.samples, self.draws = samples, samples.draws()
        self.n_batches = _number_of_batches(len(self.draws), most)
        self._rng = np.random.default_rng(seed)

    def skip(self, n_passes: int) -> None:
        """Leave out the orders of some passes."""
        for _ in range(n_passes):
            self._rng.permutation(self.draws)

    def one_pass(self) -> Iterator[Samples]:
        for places in np.array_split(self._rng.permutation(self.draws), self.n_batches):
            yield self.samples.of_draws(places)

    def sums(self, problem: TreeProblem, theta: Floats, batch: Samples) -> ExpectedSums:
        """The expected sums of a batch, as if all samples were like it."""
        return problem.over(batch).sums(theta).times(self.samples.n_samples / batch.n_samples)


def _checked(model: TreeModel) -> TreeModel:
    """The same model through the checks of its constructor."""
    return TreeModel(model.tree, model.root, model.cpts, model.emissions)


def _moved(mean: ExpectedSums | None, found: ExpectedSums, step: float) -> ExpectedSums:
    """The mean after a step towards the statistics of a batch; the first batch is all of it."""
    return found if mean is None else mean.times(1 - step).plus(found.times(step))


def batch_smoothing(model: TreeModel, smoothing: float, sharing: int = SHARING) -> float:
    """Pseudo-samples for every state of a parent: `smoothing` for `sharing` states together, since
    with many states each has few samples."""
    most = int(model.dims[model.tree.n_observed :].max(initial=1))
    return smoothing / min(most, sharing)
