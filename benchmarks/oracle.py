"""The oracle: the model counted with the hidden states known. No estimate can do better."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from latenttree.datasets import LatentTreeData
from latenttree.model import TreeModel


def oracle(data: LatentTreeData) -> TreeModel:
    """The maximum likelihood estimate on the true tree from observed and hidden states.

    Every conditional is a ratio of counts. A hidden state that never occurs has uniform columns.
    `O(n_samples n_edges)`.
    """
    states = np.hstack([data.X, data.hidden])
    dims = [len(marginal) for marginal in data.marginals]
    joints = [
        _joint_counts(states[:, a], states[:, b], dims[a], dims[b])
        for a, b in data.tree.edges.tolist()
    ]
    return TreeModel.from_joints(data.tree, joints, prior=np.bincount(data.X[:, 0]))


def _joint_counts(
    a: NDArray[np.int32], b: NDArray[np.int32], d_a: int, d_b: int
) -> NDArray[np.float64]:
    cells = a.astype(np.int64) * d_b + b
    return np.bincount(cells, minlength=d_a * d_b).reshape(d_a, d_b).astype(np.float64)
