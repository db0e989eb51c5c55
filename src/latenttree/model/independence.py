"""Models whose parts are independent across some edges, exactly."""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
from typing import Any

import numpy as np

from latenttree.data import Table
from latenttree.engine.arrays import Floats, Ints
from latenttree.model.gaussian import GaussianTreeModel
from latenttree.model.samples import marginals
from latenttree.model.tree_model import TreeModel


@singledispatch
def independent_across(model: Any, edges: Ints, table: Table) -> Any:
    """The model with the same distribution on either side of `edges` (numbers of the tree's edges),
    and none of the dependence across them. What such edges leave alone is fitted to the samples as
    it is: categories by their shares, a number in one state."""
    raise TypeError(f"a model of type {type(model).__name__}")


@independent_across.register
def _of_states(model: TreeModel, edges: Ints, table: Table) -> TreeModel:
    cpts, emissions = list(model.cpts), dict(model.emissions)
    for v in _children(model, edges):
        if v in emissions:
            emissions[v] = emissions[v].fitted_to(table.numbers(v), table.weights)
        else:
            cpts[v] = np.repeat(model.marginals[v][:, None], cpts[v].shape[1], axis=1)
    alone = [v for v in _alone(model, edges) if v not in emissions]
    shares = marginals(table) if alone else []
    for v in alone:
        cpts[v] = np.repeat(shares[v][:, None], cpts[v].shape[1], axis=1)
    return replace(model, cpts=tuple(cpts), emissions=emissions)


@independent_across.register
def _gaussian(model: GaussianTreeModel, edges: Ints, table: Table) -> GaussianTreeModel:
    """The noise of a node becomes its covariance."""
    loadings, noise = list(model.loadings), list(model.noise)
    covariance = _covariances(model)
    for v in _children(model, edges):
        noise[v] = covariance[v] if noise[v].ndim == 2 else np.diag(covariance[v])
        loadings[v] = np.zeros_like(loadings[v])
    return replace(model, loadings=tuple(loadings), noise=tuple(noise))


def _covariances(model: GaussianTreeModel) -> list[Floats]:
    """Covariance of every node: `L Cov(parent) L^T + noise`, from the root downwards."""
    found: list[Floats] = [np.empty((0, 0))] * model.tree.n_nodes
    for v in model.order.tolist():
        own, u = model.noise[v], int(model.parents[v])
        found[v] = own if own.ndim == 2 else np.diag(own)
        if u >= 0:
            found[v] = found[v] + model.loadings[v] @ found[u] @ model.loadings[v].T
    return found


def _alone(model: TreeModel, edges: Ints) -> list[int]:
    """Observed nodes all of whose edges are among `edges`."""
    p = model.tree.n_observed
    cut = np.bincount(model.tree.edges[edges].ravel(), minlength=model.tree.n_nodes)
    return np.flatnonzero((cut[:p] > 0) & (cut[:p] == model.tree.degree()[:p])).tolist()


def _children(model: TreeModel | GaussianTreeModel, edges: Ints) -> list[int]:
    """The lower ends of edges."""
    a, b = model.tree.edges[edges].T
    return np.where(model.parents[b] == a, b, a).tolist()
