"""The oracle: the model fitted with the hidden states known. No estimate can do better."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.evaluation.datasets import LatentTreeData
from latenttree.model.emissions import Emission, pooled, target_of
from latenttree.model.tree_model import TreeModel

Floats = NDArray[np.float64]


def oracle(data: LatentTreeData) -> TreeModel:
    """The maximum likelihood estimate on the true tree from observed and hidden states.

    Every conditional is a ratio of counts over the samples that have both ends; every emission is
    fitted in each state of its neighbour. A hidden state that never occurs has uniform columns.
    `O(n_samples n_edges)`.
    """
    p, dims = data.tree.n_observed, [len(marginal) for marginal in data.marginals]
    states = [_codes(data, v) if v < p else data.hidden[:, v - p] for v in range(len(dims))]
    joints = [
        _joint_counts(states[a], states[b], dims[a], dims[b]) for a, b in data.tree.edges.tolist()
    ]
    emissions = {v: _fitted(data, v, states) for v in data.emissions}
    prior = np.bincount(states[0][states[0] >= 0])
    return TreeModel.from_joints(data.tree, joints, prior, emissions)


def _codes(data: LatentTreeData, v: int) -> NDArray[np.int64]:
    """Categories, -1 where missing; 0 for a leaf with an emission, whose table is ones."""
    if v in data.emissions:
        return np.zeros(len(data.hidden), dtype=np.int64)
    codes = np.asarray(data.values(v))
    return np.where(np.isnan(codes), -1, codes).astype(np.int64)


def _fitted(data: LatentTreeData, v: int, states: list[NDArray[Any]]) -> Emission:
    """The best member of the family for each known state of the neighbour."""
    truth, values = data.emissions[v], data.values(v)
    posterior = np.eye(truth.n_states)[states[int(data.model.parents[v])]]
    start = pooled(truth.family, values, truth.n_states)
    return start.from_sums(start.sums(values, posterior), 0.0, target_of(start, values))


def _joint_counts(a: NDArray[Any], b: NDArray[Any], d_a: int, d_b: int) -> Floats:
    known = (a >= 0) & (b >= 0)
    cells = a[known].astype(np.int64) * d_b + b[known]
    return np.bincount(cells, minlength=d_a * d_b).reshape(d_a, d_b).astype(np.float64)
