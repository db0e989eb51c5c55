"""EM of models with many states: passes of online EM in small batches, stopped by held-out samples.

With `s` the mean statistics of a sample, `s_t` those of batch t under the model of `s`, and
B batches in a pass,

    s <- s + g_t (s_t - s),    g_t = (t / B + DELAY)^-DECAY

A pass makes as many steps as there are batches, and the noise of the batches keeps a model of many
parameters from settling in the nearest maximum (Cappe and Moulines 2009; Liang and Klein 2009).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from latenttree.model.likelihood import total_log_likelihood
from latenttree.model.passes import ExpectedSums
from latenttree.model.samples import Samples
from latenttree.model.tree_model import TreeModel
from latenttree.refinement.tree_problem import TreeProblem

Floats = NDArray[np.float64]

DECAY, DELAY = 0.6, 2.0
"""Power by which the steps get smaller, and passes by which they start smaller."""

BATCH, MOST_BATCHES = 250, 64
"""Samples in a batch, at least, and batches in a pass, at most."""

PATIENCE = 3
"""Passes without a gain on held-out samples after which EM ends."""

MANY_STATES = 4
"""Up to this many states, `smoothing` pseudo-samples are added for every state of a parent. With
more states, fewer: a CPT as a whole gets as many as one with this number of states."""


@dataclass(frozen=True, eq=False)
class BatchFit:
    """A model after passes in batches.

    Attributes
    ----------
    held_out : mean log-likelihood of the held-out samples after each pass; empty without any.
    n_passes : passes up to the model, the best one for the held-out samples.
    converged : whether the held-out samples ended the passes.
    """

    model: TreeModel
    held_out: list[float] = field(default_factory=list)
    n_passes: int = 0
    converged: bool = True


def batch_em(
    model: TreeModel,
    samples: Samples,
    held_out: Samples | None,
    *,
    max_passes: int,
    first_pass: int = 0,
    smoothing: float = 1.0,
    marginals: Sequence[Floats] = (),
    seed: int = 0,
    n_jobs: int = 1,
) -> BatchFit:
    """Passes from `model`; the model that is best for the held-out samples, or the last.

    `first_pass` counts passes made before, on other samples: steps are as small as after these."""
    problem = TreeProblem(model, samples, batch_smoothing(model, smoothing), marginals, n_jobs)
    rng, draws = np.random.default_rng(seed), samples.draws()
    n_batches = min(max(len(draws) // BATCH, 1), MOST_BATCHES)
    theta, mean = problem.opened(), None
    best, scores = theta, list[float]()
    for number in range(max_passes):
        pieces = np.array_split(rng.permutation(draws), n_batches)
        for t, places in enumerate(pieces):
            batch = problem.over(samples.of_draws(places))
            found = batch.sums(theta).times(samples.n_samples / batch.samples.n_samples)
            step = (first_pass + number + (t + 1) / n_batches + DELAY) ** -DECAY
            mean = _moved(mean, found, step)
            theta = problem.maximise(mean)
        if held_out is None:
            best = theta
            continue
        score = total_log_likelihood(problem.as_model(theta), held_out, n_jobs)
        scores.append(score / held_out.n_samples)
        if scores[-1] >= max(scores):
            best = theta
        if len(scores) - 1 - int(np.argmax(scores)) >= PATIENCE:
            break
    found_model = problem.as_model(best)
    checked = TreeModel(found_model.tree, found_model.root, found_model.cpts, found_model.emissions)
    n_passes = max_passes if held_out is None else int(np.argmax(scores)) + 1
    return BatchFit(checked, scores, n_passes, held_out is None or len(scores) > n_passes)


def _moved(mean: ExpectedSums | None, found: ExpectedSums, step: float) -> ExpectedSums:
    """The mean after a step towards the statistics of a batch; the first batch is all of it."""
    return found if mean is None else mean.times(1 - step).plus(found.times(step))


def batch_smoothing(model: TreeModel, smoothing: float) -> float:
    """Pseudo-samples for every state of a parent, see `MANY_STATES`."""
    most = int(model.dims[model.tree.n_observed :].max(initial=1))
    return smoothing * min(1.0, MANY_STATES / most)
