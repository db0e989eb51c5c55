"""The gauge of hidden nodes: which of the models that no sample can tell apart.

A hidden node may be shifted and multiplied by any invertible matrix if its neighbours' loadings
are changed to match. `canonical_gauge` chooses mean zero, covariance I, axes in the order of
increasing posterior variance, and the sign of an axis so that the correlations with it of the
observed variables below it have a positive sum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from latenttree.engine.arrays import Floats
from latenttree.model.gaussian.algebra import root_pair, solve
from latenttree.model.gaussian.distribution import GaussianDistribution

Model = TypeVar("Model", bound=GaussianDistribution)


def canonical_gauge(model: Model) -> Model:
    """The same distribution with every hidden node in its canonical gauge."""
    unit = unit_covariance(model)
    sums, spreads = _loading_sums(unit), posterior_covariances(unit)
    return turned(unit, {v: _axes(spread, sums[v]) for v, spread in spreads.items()})


def unit_covariance(model: Model) -> Model:
    """The same distribution with hidden nodes of covariance I, rotated as little as possible."""
    hidden = range(model.tree.n_observed, model.tree.n_nodes)
    return turned(model, {v: root_pair(model.marginal_covariance(v))[1] for v in hidden})


def turned(model: Model, maps: Mapping[int, Floats]) -> Model:
    """The same distribution with hidden `h` replaced by `maps[h] (h - mean)`."""
    means, loadings, noise = (list(a) for a in (model.means, model.loadings, model.noise))
    for v, u in enumerate(model.parents.tolist()):
        if v in maps:
            means[v] = np.zeros_like(means[v])
            loadings[v] = maps[v] @ loadings[v]
            noise[v] = maps[v] @ noise[v] @ maps[v].T
            noise[v] = (noise[v] + noise[v].T) / 2
        if u in maps:
            loadings[v] = solve(maps[u].T, loadings[v].T).T
    return replace(model, means=tuple(means), loadings=tuple(loadings), noise=tuple(noise))


def posterior_covariances(model: GaussianDistribution) -> dict[int, Floats]:
    """`Cov[h | all observed variables]` of every hidden node.

    Upward the precision that a branch sends, `L^T (Psi + below^-1)^-1 L`; downward the spread of
    the parent through `E[h | parent, below]`."""
    p, parents = model.tree.n_observed, model.parents.tolist()
    below: dict[int, Any] = {v: np.zeros((d, d)) for v, d in enumerate(model.dims) if v >= p}
    opened: dict[int, Floats] = {}  # (I + Psi below)^-1
    for v in model.order[::-1].tolist():
        loading, u = model.loadings[v], parents[v]
        if v < p:
            weighed = _weighed(model.noise[v], loading)
        else:
            opened[v] = np.linalg.inv(np.eye(len(loading)) + model.noise[v] @ below[v])
            weighed = below[v] @ opened[v] @ loading
        if u >= p:
            below[u] += loading.T @ weighed
    spreads: dict[int, Floats] = {}
    for v in model.order.tolist():
        if v >= p:
            spread = opened[v] @ model.noise[v]
            if parents[v] >= p:
                gain = opened[v] @ model.loadings[v]
                spread = spread + gain @ spreads[parents[v]] @ gain.T
            spreads[v] = (spread + spread.T) / 2
    return spreads


def _weighed(noise: Floats, loading: Floats) -> Floats:
    """`Psi^-1 L`."""
    return loading / noise[:, None] if noise.ndim == 1 else solve(noise, loading)


def _loading_sums(model: GaussianDistribution) -> dict[int, Floats]:
    """For every node of a model of unit gauge the sum, over the coordinates of the observed nodes
    at or below it, of their loadings on it in units of their deviation."""
    sums = {
        v: 1 / np.sqrt(model.variances(v)) if v < model.tree.n_observed else np.zeros(int(d))
        for v, d in enumerate(model.dims)
    }
    for v in model.order[:0:-1].tolist():
        u = int(model.parents[v])
        sums[u] = sums[u] + model.loadings[v].T @ sums[v]
    return sums


def _axes(spread: Floats, sums: Floats) -> Floats:
    """Rows: axes by increasing posterior variance, each with a positive sum of loadings."""
    axes = np.linalg.eigh(spread)[1].T
    return np.asarray(axes * np.where(axes @ sums < 0, -1.0, 1.0)[:, None])
