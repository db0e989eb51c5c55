"""The states of a refined model in canonical order, and how well samples determine them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from latenttree.data.chunk import Chunk
from latenttree.model.inference import posteriors
from latenttree.model.inference.sparse_messages import SparseMessages
from latenttree.model.samples import Samples, evidence_of
from latenttree.model.tree_model import TreeModel

Floats = NDArray[np.float64]

STEP_VALUES = 1 << 21
"""Posteriors held at once."""

ENOUGH = 1 << 13
"""Samples that say how well the states of hidden nodes are known."""


def canonical_states(model: TreeModel) -> TreeModel:
    """States of every hidden node by decreasing probability."""
    hidden = range(model.tree.n_observed, model.tree.n_nodes)
    return model.relabelled({v: np.argsort(-model.marginals[v], kind="stable") for v in hidden})


def effective_samples(
    model: TreeModel,
    samples: Samples,
    n_jobs: int = 1,
    *,
    n_used: int = ENOUGH,
    n_values: int = STEP_VALUES,
) -> Floats:
    """`N (sum_j E[q_j^2] - sum_j w_j^2) / (1 - sum_j w_j^2)` for every hidden node, `(m,)`.

    With posteriors `q` and marginals `w`: the samples in which the state would have to be seen to
    know as much about it; N where the observed variables determine it, 0 where they are silent.
    A sample of probability zero tells nothing. The mean is over `n_used` of the samples: its error
    is then about a hundredth of N. `n_values` posteriors are held at once."""
    p = model.tree.n_observed
    dims = model.dims[p:]
    if not len(dims):
        return np.zeros(0)
    some = samples.subsample(n_used)
    square = some.run(_Squares(model, n_values), n_jobs)
    starts = np.cumsum(dims) - dims
    weight = np.array([float((w**2).sum()) for w in model.marginals[p:]])
    n = samples.n_samples
    mean = np.add.reduceat(square, starts) / some.n_samples
    gain = n * (mean - weight) / np.maximum(1 - weight, 1e-12)
    return np.clip(gain, 0.0, n)


@dataclass(frozen=True, eq=False)
class _Squares:
    """`sum_n w q^2` of the posteriors `q` of all hidden nodes, side by side; `n_values` posteriors
    are held at once."""

    model: TreeModel
    n_values: int

    def start(self) -> Floats:
        """No samples."""
        return np.zeros(int(self.model.dims[self.model.tree.n_observed :].sum()))

    def add(self, total: Floats, chunk: Chunk, n_jobs: int) -> None:
        """Add the samples of a chunk."""
        model, p = self.model, self.model.tree.n_observed
        sparse = SparseMessages.of(model, chunk.rows)
        if sparse is not None:
            weights = np.ones(len(chunk)) if chunk.weights is None else chunk.weights
            found = sparse.squares(chunk.rows, weights, n_jobs)[sparse.place[p:]]
            total += found[np.arange(found.shape[1]) < model.dims[p:, None]]
            return
        step = max(1, self.n_values // len(total))
        for start in range(0, len(chunk), step):
            part = chunk.take(slice(start, start + step))
            q = posteriors(model, evidence_of(part, model, n_jobs), n_jobs=n_jobs).hidden
            q = np.nan_to_num(q)
            weighted = q if part.weights is None else q * part.weights[:, None]
            total += np.einsum("nv,nv->v", weighted, q)
