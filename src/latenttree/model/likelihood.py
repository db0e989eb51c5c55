"""The log-likelihood of many samples, and models with pseudo-samples added."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from latenttree.engine import Source
from latenttree.model.passes import LogLikelihood
from latenttree.model.tree_model import TreeModel, normalised

Floats = NDArray[np.float64]
CPTs = tuple[Floats, ...]


def total_log_likelihood(model: TreeModel, samples: Source, n_jobs: int = 1) -> float:
    """Log-likelihood of all samples."""
    return float(samples.run(LogLikelihood(model), n_jobs)[0])


def bic_score(model: TreeModel, log_likelihood: float, n: float) -> float:
    """`log-likelihood - n_parameters / 2 log n`: larger is better."""
    return log_likelihood - 0.5 * model.n_parameters * float(np.log(n))


def maximise(model: TreeModel, counts: CPTs, smoothing: float, target: CPTs) -> TreeModel:
    """The model of largest expected log-likelihood given the counts, plus pseudo-samples."""
    cpts = (
        normalised(count + smoothing * t[:, None], t)
        for count, t in zip(counts, target, strict=True)
    )
    return TreeModel(model.tree, model.root, tuple(cpts), model.emissions)


def smoothed(
    model: TreeModel, n_samples: float, smoothing: float, marginals: Sequence[Floats] = ()
) -> TreeModel:
    """The model as if from `n_samples` counted with its states known, plus pseudo-samples."""
    weights = [model.marginals[u] if u >= 0 else np.ones(1) for u in model.parents.tolist()]
    counts = tuple(n_samples * t * w for t, w in zip(model.cpts, weights, strict=True))
    return maximise(model, counts, smoothing, prior_targets(model, marginals))


def prior_targets(model: TreeModel, marginals: Sequence[Floats]) -> CPTs:
    """Where pseudo-samples go: an observed node's marginal, evenly over the states of a hidden."""
    p = model.tree.n_observed
    observed = tuple(marginals) or model.marginals[:p]
    return observed + tuple(np.full(d, 1 / d) for d in model.dims[p:].tolist())
