"""Information lengths of the edges of a model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from latenttree.model.tree_model import TreeModel, alike
from latenttree.structure.learn import FARTHEST

Floats = NDArray[np.float64]


def model_lengths(model: TreeModel) -> Floats:
    """(n_edges,) information length `-sum_i log s_i` over the `n_states` largest singular values
    of `D_a^-1/2 P(a, b) D_b^-1/2`, at most `FARTHEST`."""
    n_states = int(model.dims[model.tree.n_observed :].min(initial=2))
    joints = [model.joint(a, b) for a, b in model.tree.edges.tolist()]
    lengths = np.empty(len(joints))
    for edges in alike([joint.shape for joint in joints]):
        lengths[edges] = information_lengths(np.stack([joints[e] for e in edges]), n_states)
    return np.minimum(lengths, FARTHEST)


def information_lengths(joints: Floats, n_states: int) -> Floats:
    """`-sum_i log s_i` over the `n_states` largest canonical correlations of each of the joint
    distributions `(n, a, b)`; `(n,)`."""
    rows, columns = joints.sum(axis=2, keepdims=True), joints.sum(axis=1, keepdims=True)
    rows, columns = np.where(rows > 0, rows, 1), np.where(columns > 0, columns, 1)
    scaled = joints / np.sqrt(rows) / np.sqrt(columns)
    s = np.linalg.svd(scaled, compute_uv=False)[:, :n_states]
    return np.asarray(-np.log(np.maximum(s, 1e-300)).sum(axis=1))
