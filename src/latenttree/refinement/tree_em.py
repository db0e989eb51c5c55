"""EM over the whole tree, from the estimate by moments.

Moments are consistent but not efficient; from their estimate a few EM steps with exact belief
propagation reach the maximum of the likelihood.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from latenttree.engine import Source
from latenttree.model.likelihood import total_log_likelihood
from latenttree.model.samples import InMemory, Samples
from latenttree.model.tree_model import TreeModel
from latenttree.refinement.em import GAIN_PER_TOL, Limits, em_loop, visit
from latenttree.refinement.online_em import after_online_em
from latenttree.refinement.tree_problem import TreeProblem

Floats = NDArray[np.float64]
RARE_COUNT = 10
"""Categories with fewer samples are rare: their parameters do not count for the tolerance."""

MANY_SAMPLES = 1 << 16
"""From this number of samples on, a pass of online EM comes first."""

SHARE_PER_TOL = 2e5
"""With many samples, EM ends when a pass gains less than the share `tolerance * SHARE_PER_TOL` of
all gains so far."""

ONLINE_MIN_STEPS = 30
"""With fewer steps allowed there is no pass of online EM."""


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
    samples: Samples | InMemory,
    *,
    max_steps: int = 100,
    tolerance: float = 1e-7,
    smoothing: float = 1.0,
    accelerate: bool = True,
    held_out: Source | None = None,
    marginals: Sequence[Floats] = (),
    online_from: int = MANY_SAMPLES,
    n_jobs: int = 1,
) -> Refinement:
    """EM from `model` until little more is to be gained. A step is one pass over the samples.

    With many samples, a pass of online EM comes first, see `online_em`; its gain is measured on
    some of the samples. The trace is that of the steps after it.

    Parameters
    ----------
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
    online_from : number of samples from which a pass of online EM comes first.
    """
    problem = TreeProblem(model, samples, smoothing, marginals, n_jobs)

    def score(theta: Floats) -> float:
        assert held_out is not None
        return total_log_likelihood(problem.as_model(theta), held_out, n_jobs)

    judged = None if held_out is None else score
    n_samples = len(samples)
    n_free = min(_n_informed(model, marginals, n_samples), n_samples * model.tree.n_observed)
    limits = Limits(max_steps, tolerance * GAIN_PER_TOL * n_free, tolerance * SHARE_PER_TOL)
    if accelerate and max_steps >= ONLINE_MIN_STEPS and n_samples >= online_from:
        end = after_online_em(problem, limits, judged)
    else:
        state = visit(problem, problem.opened())
        end = em_loop(problem, state, limits, accelerate=accelerate, held_out=judged)
    found = problem.as_model(end.theta)
    checked = TreeModel(found.tree, found.root, found.cpts, found.emissions)
    return Refinement(checked, end.trace, end.held_out, end.converged)


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
