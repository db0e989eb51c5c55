"""Covariances of functions of two variables by exact inference: one question for each category."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from latenttree.model.inference import Evidence
from latenttree.model.tree_model import TreeModel

Floats = NDArray[np.float64]


def pair_probabilities(model: TreeModel, a: int, b: int) -> Floats:
    """`P(a, b)` of two observed nodes: the likelihood of each pair of categories alone."""
    found = np.zeros((model.dims[a], model.dims[b]))
    for i in range(len(found)):
        for j in range(found.shape[1]):
            codes = np.full((1, model.tree.n_observed), -1, dtype=np.int8)
            codes[0, a], codes[0, b] = i, j
            found[i, j] = np.exp(model.log_likelihood(Evidence(codes))[0])
    return found


def covariance(model: TreeModel, a: int, b: int, one: Floats, other: Floats) -> Floats:
    """Covariances `(r_a, r_b)` of functions `one` `(d_a, r_a)` and `other` `(d_b, r_b)`."""
    joint = pair_probabilities(model, a, b)
    means = (joint.sum(axis=1) @ one, joint.sum(axis=0) @ other)
    return np.asarray(one.T @ joint @ other - np.outer(*means))
