"""Information lengths of the edges of a model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from latenttree.model.gaussian import GaussianTreeModel
from latenttree.model.tree_model import TreeModel, alike
from latenttree.structure.learn import FARTHEST

Floats = NDArray[np.float64]

TINY = 1e-300
"""Divisors are at least this."""


def model_lengths(model: TreeModel) -> Floats:
    """(n_edges,) information length `-sum_i log s_i` over the `n_states` largest singular values
    of `D_a^-1/2 P(a, b) D_b^-1/2`, at most `FARTHEST`."""
    n_states = int(model.dims[model.tree.n_observed :].min(initial=2))
    joints = [model.joint(a, b) for a, b in model.tree.edges.tolist()]
    lengths = np.empty(len(joints))
    for edges in alike([joint.shape for joint in joints]):
        lengths[edges] = information_lengths(np.stack([joints[e] for e in edges]), n_states)
    return np.minimum(lengths, FARTHEST)


def implied_lengths(model: TreeModel | GaussianTreeModel) -> Floats:
    """(n_edges,) `-sum_i log rho_i` over the r largest canonical correlations of the two ends of
    each edge, at most `FARTHEST`; r is the number of free dimensions of the narrowest node, so that
    all edges measure the same: of binary variables `-log |rho|`."""
    pairs = model.tree.edges.tolist()
    found = [canonical_correlations(model, a, b) for a, b in pairs]
    r = min((len(rho) for rho in found), default=1)
    lengths = [-np.log(np.maximum(rho[:r], TINY)).sum() for rho in found]
    return np.clip(np.asarray(lengths, dtype=np.float64), 0.0, FARTHEST)


def canonical_correlations(model: TreeModel | GaussianTreeModel, a: int, b: int) -> Floats:
    """Canonical correlations of the two ends of an edge, largest first: between two nodes with
    states the singular values of `D_a^-1/2 P(a, b) D_b^-1/2` without the first, which is 1."""
    a, b = (b, a) if model.parents[a] == b else (a, b)
    if isinstance(model, GaussianTreeModel):
        return _of_signal(_linear_signal(model, a, b))
    if b in model.emissions:
        return _of_signal(_signal_of_states(model, a, b))[: len(model.marginals[a]) - 1]
    joint = model.joint(a, b)
    rows, columns = joint.sum(axis=1, keepdims=True), joint.sum(axis=0, keepdims=True)
    scaled = joint / np.sqrt(np.maximum(rows, TINY)) / np.sqrt(np.maximum(columns, TINY))
    return np.asarray(np.linalg.svd(scaled, compute_uv=False)[1:])


def _of_signal(signal: Floats) -> Floats:
    """`s / sqrt(1 + s^2)` with the singular values s of a signal in units of its noise."""
    s = np.linalg.svd(signal, compute_uv=False)
    return np.asarray(s / np.sqrt(1 + s**2))


def _signal_of_states(model: TreeModel, u: int, v: int) -> Floats:
    """(d, k) deviations of `E[v | state of u]` from the mean, each state with the root of its
    probability, divided by the standard deviations within states."""
    mean, variance = model.emissions[v].value_moments()
    weight = model.marginals[u]
    noise = np.maximum(variance @ weight, TINY)
    return np.asarray((mean - (mean @ weight)[:, None]) * np.sqrt(weight) / np.sqrt(noise)[:, None])


def _linear_signal(model: GaussianTreeModel, u: int, v: int) -> Floats:
    """(d, k) `Noise_v^-1/2 L_v Cov_u^1/2`."""
    signal = model.loadings[v] @ np.linalg.cholesky(model.marginal_covariance(u))
    noise = model.noise[v]
    if noise.ndim == 1:
        return np.asarray(signal / np.sqrt(noise)[:, None])
    unit = np.sqrt(np.diag(noise))
    factor = np.linalg.cholesky(noise / np.outer(unit, unit))
    return np.asarray(np.linalg.solve(factor, signal / unit[:, None]))


def information_lengths(joints: Floats, n_states: int) -> Floats:
    """`-sum_i log s_i` over the `n_states` largest canonical correlations of each of the joint
    distributions `(n, a, b)`; `(n,)`."""
    rows, columns = joints.sum(axis=2, keepdims=True), joints.sum(axis=1, keepdims=True)
    rows, columns = np.where(rows > 0, rows, 1), np.where(columns > 0, columns, 1)
    scaled = joints / np.sqrt(rows) / np.sqrt(columns)
    s = np.linalg.svd(scaled, compute_uv=False)[:, :n_states]
    return np.asarray(-np.log(np.maximum(s, 1e-300)).sum(axis=1))
