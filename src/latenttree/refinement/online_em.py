"""One pass of EM over many samples in small batches.

Online EM (Cappe and Moulines 2009): with `s` the mean statistics of a sample, and `s_t` those of
batch `t` under the model of `s`,

    s <- s + g_t (s_t - s),    g_t = (t + 1)^-DECAY

so that a pass makes as many steps as there are batches, each a fraction of a step of EM. Their
mean over the last half of the pass (Polyak and Ruppert) is, from a consistent start, as good as
the maximum of the likelihood up to what is smaller than its own error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from latenttree.model.likelihood import total_log_likelihood
from latenttree.model.passes import ExpectedSums
from latenttree.model.samples import spread_places
from latenttree.refinement.em import Limits, Maximum, em_loop, visit
from latenttree.refinement.tree_problem import TreeProblem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DECAY = 0.6
"""Power by which the steps get smaller: between 1/2, where noise stays, and 1, where the start
does."""

BATCH, MOST_BATCHES = 1024, 256
"""Samples in a batch, at least, and batches in a pass, at most."""

OPENING_SHARE = 16
"""One of this number of samples is used before the first step, and to measure the gain after the
pass."""

FIRST_STEP_FACTOR = 10.0
"""The first EM step after online EM removes the noise of the last batches. EM ends there if it
gains less than `FIRST_STEP_FACTOR` times the tolerance, by default 1/2 for each parameter."""


def after_online_em(
    problem: TreeProblem, limits: Limits, held_out: Callable[[Floats], float] | None
) -> Maximum[Floats, ExpectedSums]:
    """A pass of online EM and one EM step, and more where they gain enough."""
    batches = BatchPass(problem)
    state = visit(problem, batches.theta)
    if held_out is not None:
        return em_loop(problem, state, limits, held_out=held_out)
    theta = problem.maximise(state.sums)
    before, after = batches.gained(batches.theta), batches.gained(theta)
    if after - before <= max(FIRST_STEP_FACTOR * limits.least, limits.share * after):
        return Maximum(theta, state, [state.value], [], True)
    return em_loop(problem, state, limits, gained=before)


class BatchPass:
    """A pass of online EM: its parameters, and some of the samples to compare parameters on."""

    def __init__(self, problem: TreeProblem) -> None:
        sizes, n = problem.samples.sizes(), problem.samples.n_samples
        starts = np.cumsum([0, *sizes[:-1]]).tolist()
        opening = [start + _spread(size) for start, size in zip(starts, sizes, strict=True)]
        self._some = problem.on(np.concatenate(opening))
        sums, weight = self._some.sums(problem.opened()), self._some.samples.n_samples
        self._before, self._share = sums.value, weight / n
        batches = [starts[which] + index for which, index in batch_order(sizes)]
        self.theta = online_pass(problem, sums.times(1 / weight), batches)

    def gained(self, theta: Floats) -> float:
        """Gain of parameters over the start in log-likelihood of all samples, estimated from some
        of them."""
        some = self._some
        value = total_log_likelihood(some.as_model(theta), some.samples, some.n_jobs)
        return (value - self._before) / self._share


def online_pass(problem: TreeProblem, mean: ExpectedSums, batches: Sequence[Ints]) -> Floats:
    """The parameters after a pass over batches of samples, given by their places, from the mean
    statistics of some samples."""
    n, late = problem.samples.n_samples, mean.times(0.0)
    theta = problem.maximise(mean.times(n))
    for t, places in enumerate(batches, start=1):
        batch, pace = problem.on(places), (t + 1) ** -DECAY
        found = batch.sums(theta)
        mean = mean.times(1 - pace).plus(found.times(pace / batch.samples.n_samples))
        theta = problem.maximise(mean.times(n))
        if 2 * t > len(batches):
            late = late.plus(mean)
    return problem.maximise(late.times(n / (len(batches) - len(batches) // 2)))


def batch_order(sizes: list[int]) -> list[tuple[int, Ints]]:
    """Batches of chunks of these sizes, as (chunk, samples of it), each sample in one of them.

    The samples of a batch are spread over its chunk at random, and those of a chunk over the whole
    pass, so that the order of the samples has no effect."""
    rng = np.random.default_rng(0)
    n = sum(sizes)
    batches = min(max(n // BATCH, 1), MOST_BATCHES)
    found = []
    for which, size in enumerate(sizes):
        count = max(round(size * batches / n), 1)
        pieces = np.array_split(rng.permutation(size), count)
        times = (np.arange(count) + rng.random(count)) / count
        found += [(t, which, np.sort(x)) for t, x in zip(times.tolist(), pieces, strict=True)]
    found.sort(key=lambda batch: batch[:2])
    return [(which, index) for _, which, index in found if len(index)]


def _spread(n: int) -> Ints:
    """One in `OPENING_SHARE` of `n` places."""
    return spread_places(n, -(-n // OPENING_SHARE))
