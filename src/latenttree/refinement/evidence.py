"""The states of a refined model in canonical order, and how well samples determine them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from latenttree.engine.arrays import Bools
from latenttree.model.passes import PosteriorSquares
from latenttree.model.samples import Samples
from latenttree.model.signs import state_orders
from latenttree.model.tree_model import TreeModel

Floats = NDArray[np.float64]

ENOUGH = 1 << 13
"""Samples that say how well the states of hidden nodes are known."""


def canonical_states(model: TreeModel, ordered: Bools | None = None) -> TreeModel:
    """States of every hidden node so that a higher one has more of the node's strongest ordered
    neighbour; by decreasing probability where nothing around has an order. See `model.signs`.

    ordered : (p,) which observed variables have ordered categories; by default those with two."""
    return model.relabelled(state_orders(model, ordered))


def effective_samples(
    model: TreeModel,
    samples: Samples,
    n_jobs: int = 1,
    *,
    n_used: int = ENOUGH,
) -> Floats:
    """`N (sum_j E[q_j^2] - sum_j w_j^2) / (1 - sum_j w_j^2)` for every hidden node, `(m,)`.

    With posteriors `q` and marginals `w`: the samples in which the state would have to be seen to
    know as much about it; N where the observed variables determine it, 0 where they are silent.
    A sample of probability zero tells nothing. The mean is over `n_used` of the samples: its error
    is then about a hundredth of N."""
    p = model.tree.n_observed
    dims = model.dims[p:]
    if not len(dims):
        return np.zeros(0)
    some = samples.subsample(n_used)
    square = some.run(PosteriorSquares(model), n_jobs)
    starts = np.cumsum(dims) - dims
    weight = np.array([float((w**2).sum()) for w in model.marginals[p:]])
    n = samples.n_samples
    mean = np.add.reduceat(square, starts) / some.n_samples
    gain = n * (mean - weight) / np.maximum(1 - weight, 1e-12)
    return np.clip(gain, 0.0, n)
