"""What a model implies of any node given the state, or the value, of any other."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from latenttree.engine.arrays import Floats
from latenttree.errors import DataError
from latenttree.model.gaussian import GaussianTreeModel
from latenttree.model.gaussian.algebra import solve
from latenttree.model.tree_model import TreeModel


class Moments(NamedTuple):
    """Mean and variance of every coordinate of a variable in each state of another, `(d, k)`."""

    mean: Floats
    variance: Floats


class Regression(NamedTuple):
    """`E[x | y] = intercept + slope y` and the standard deviation of what is left, `(d,)`,
    `(d, d_y)` and `(d,)`."""

    intercept: Floats
    slope: Floats
    deviation: Floats


def transition(model: TreeModel, v: int, u: int) -> Floats:
    """`P(v | u)` of any two nodes with states, `(dims[v], dims[u])`: the product of the conditional
    distributions along the path between them."""
    found = np.eye(int(model.dims[u]))
    for before, after in pairwise(model.tree.path(u, v)):
        found = model.conditional(after, before) @ found
    return found


def transitions_from(model: TreeModel, u: int) -> dict[int, Floats]:
    """`P(v | u)` of every node v with states, itself included, each from its neighbour towards u.
    O(n_nodes k^3)."""
    parents, order = model.tree.rooted(u)
    found = {u: np.eye(int(model.dims[u]))}
    for v in order[1:].tolist():
        if v not in model.emissions:
            found[v] = model.conditional(v, int(parents[v])) @ found[int(parents[v])]
    return found


def moments_given(model: TreeModel, v: int, u: int) -> Moments:
    """Moments of a variable with an emission in each state of any node u, by the law of total
    variance over the states of its neighbour."""
    w = int(model.parents[v])
    mean, variance = model.emissions[v].value_moments()
    share = transition(model, w, u)
    found = mean @ share
    off = mean[:, :, None] - found[:, None, :]
    return Moments(found, variance @ share + np.einsum("dwk,wk->dk", off**2, share))


def regression(model: GaussianTreeModel, v: int, u: int) -> Regression:
    """The regression of any node of a Gaussian tree on any other."""
    shared = model.cross_covariance(v, u)
    slope = solve(model.marginal_covariance(u), shared.T).T
    left = model.variances(v) - (slope * shared).sum(axis=1)
    intercept = model.means[v] - slope @ model.means[u]
    return Regression(intercept, slope, np.sqrt(np.maximum(left, 0.0)))


def check_states(model: TreeModel, u: int) -> None:
    """Raise where a node has no states to condition on."""
    if u in model.emissions:
        name = model.tree.names[u]
        raise DataError(
            f"{name!r} has no states to condition on",
            f"exchange the two, or give its value to predict_proba({{{name!r}: value}}, query=...)",
            node=name,
        )
