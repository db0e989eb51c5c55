"""Inference by writing the whole joint distribution down, and the same queries in log space.

For one sample at a time: an array with one axis for each node holds `P(all nodes, evidence)`,
every answer is a sum or a maximum over it. The number of entries is the product of all dims.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from tests.reference.random_trees import random_tree

from latenttree.model.inference import Evidence
from latenttree.model.tree_model import TreeModel
from latenttree.tree import Tree

Floats = NDArray[np.float64]


def joint(model: TreeModel, evidence: Evidence, s: int) -> Floats:
    """`P(all nodes, evidence of sample s)`, one axis for each node."""
    n_nodes = model.tree.n_nodes
    array = np.ones(tuple(model.dims))
    for v, table in enumerate(model.cpts):
        u = int(model.parents[v])
        factor = table[:, 0] if u < 0 else (table if v < u else table.T)
        axes = [v] if u < 0 else sorted([u, v])
        shape = np.ones(n_nodes, dtype=int)
        shape[axes] = factor.shape
        array = array * factor.reshape(shape)
    for v, x in enumerate(evidence.codes[s].tolist()):
        if x >= 0:
            array = array * along(np.arange(model.dims[v]) == x, v, n_nodes)
    for v, weights in evidence.soft.items():
        w = np.asarray(weights)
        array = array * along(w if w.ndim == 1 else w[s], v, n_nodes)
    return np.asarray(array)


def along(values: NDArray[np.generic], axis: int, n_axes: int) -> NDArray[np.generic]:
    """A vector laid along one of the axes."""
    shape = np.ones(n_axes, dtype=int)
    shape[axis] = len(values)
    return values.reshape(shape)


def onto(array: Floats, *nodes: int) -> Floats:
    """Sum over all other nodes; axes in the order of `nodes`."""
    others = tuple(set(range(array.ndim)) - set(nodes))
    summed = array.sum(axis=others)
    return summed if list(nodes) == sorted(nodes) else summed.T


def branch(model: TreeModel, u: int, w: int) -> set[int]:
    """The nodes on the side of `u` when the edge `u - w` is cut."""
    seen, todo = {u}, [u]
    while todo:
        for x in model.tree.neighbors(todo.pop()).tolist():
            if x not in seen and x != w:
                seen.add(x)
                todo.append(x)
    return seen


def message(model: TreeModel, evidence: Evidence, s: int, u: int, w: int) -> Floats:
    """`P(evidence on the side of u | u)`: the joint without the other evidence, over `P(u)`."""
    side = branch(model, u, w)
    codes = evidence.codes[s : s + 1].copy().astype(np.int64)
    codes[0, [v for v in range(codes.shape[1]) if v not in side]] = -1
    soft = {v: one_row(x, s) for v, x in evidence.soft.items() if v in side}
    found, prior = onto(joint(model, Evidence(codes, soft), 0), u), model.marginals[u]
    found = np.divide(found, prior, out=np.zeros_like(found), where=prior > 0)
    return found / found.max() if found.max() > 0 else found


def one_row(weights: NDArray[np.generic], s: int) -> NDArray[np.generic]:
    w = np.asarray(weights)
    return w if w.ndim == 1 else w[s : s + 1]


def log_posteriors(model: TreeModel, evidence: Evidence, s: int) -> tuple[list[Floats], float]:
    """Posteriors of all nodes and the log-likelihood, belief propagation in log space.

    With cavities instead of divisions: O(degree^2) at a node, for one sample."""
    n, parents = model.tree.n_nodes, model.parents.tolist()
    with np.errstate(divide="ignore"):
        tables = [np.log(table) for table in model.cpts]
        own = [np.zeros(d) for d in model.dims]
        for v, x in enumerate(evidence.codes[s].tolist()):
            if x >= 0:
                own[v] = np.log((np.arange(model.dims[v]) == x).astype(float))
        for v, weights in evidence.soft.items():
            own[v] = own[v] + np.log(one_row(weights, s).reshape(-1))
    up: list[Floats] = [np.zeros(0)] * n
    below = [x.copy() for x in own]
    for v in model.order[::-1].tolist():
        if parents[v] >= 0:
            up[v] = logsumexp(tables[v] + below[v][:, None], axis=0)
            below[parents[v]] = below[parents[v]] + up[v]
    found: list[Floats] = [np.zeros(0)] * n
    for v in model.order.tolist():
        u = parents[v]
        above = tables[v][:, 0] if u < 0 else _log_above(tables[v], found[u], up[v])
        found[v] = above + below[v]
    total = float(logsumexp(found[model.root]))
    # each by its own sum: the total has the rounding of the whole likelihood
    return [np.exp(x - logsumexp(x)) for x in found], total


def _log_above(table: Floats, parent: Floats, sent: Floats) -> Floats:
    cavity = np.full_like(parent, -np.inf)
    np.subtract(parent, sent, out=cavity, where=np.isfinite(sent))
    return np.asarray(logsumexp(table + cavity, axis=1))


# ---- random models and evidence -------------------------------------------------------


def random_model(rng: np.random.Generator, n_observed: int | None = None) -> TreeModel:
    """A small tree of any shape with at most about 10^5 joint states; some entries are zero."""
    while True:
        p = int(rng.integers(1, 7)) if n_observed is None else n_observed
        shape = str(rng.choice(["uniform", "caterpillar", "star", "balanced"]))
        inside = float(rng.choice([0.0, 0.3, 0.6]))
        tree = random_tree(
            rng,
            p,
            shape=shape,
            max_degree=int(rng.integers(3, 6)),
            internal_observed_fraction=inside,
        )
        dims = np.where(
            np.arange(tree.n_nodes) < p,
            rng.integers(2, 6, size=tree.n_nodes),
            rng.integers(2, 5, size=tree.n_nodes),
        )
        if n_observed is not None or np.prod(dims) <= 20_000:
            return model_on(rng, tree, dims, zeros=float(rng.choice([0.0, 0.2])))


def model_on(
    rng: np.random.Generator, tree: Tree, dims: NDArray[np.int64], zeros: float = 0.0
) -> TreeModel:
    """Random tables on a tree, rooted anywhere; about a share `zeros` of the entries are zero."""
    root = int(rng.integers(tree.n_nodes))
    tables = []
    for v, u in enumerate(tree.rooted(root).parents.tolist()):
        width = 1 if u < 0 else dims[u]
        table = rng.dirichlet(np.full(dims[v], 0.7), size=width).T
        drop = (rng.random(table.shape) < zeros) & (np.arange(dims[v])[:, None] > 0)
        table = np.where(drop, 0.0, table + 1e-3)
        tables.append(table / table.sum(axis=0))
    return TreeModel(tree, root, tuple(tables))


def random_evidence(
    rng: np.random.Generator,
    model: TreeModel,
    n: int,
    missing: float,
    soft: float,
    zeros: float = 0.1,
) -> Evidence:
    """States at random, some unknown; weights on a share `soft` of all nodes, some zero."""
    p = model.tree.n_observed
    codes = rng.integers(model.dims[:p], size=(n, p))
    codes[rng.random((n, p)) < missing] = -1
    weights = {}
    for v in np.flatnonzero(rng.random(model.tree.n_nodes) < soft).tolist():
        shape = (n, model.dims[v]) if rng.random() < 0.7 else (model.dims[v],)
        w = rng.random(shape) * 10.0 ** rng.integers(-3, 4)
        weights[v] = np.where(rng.random(shape) < zeros, 0.0, w)
    return Evidence(codes.astype(rng.choice([np.int8, np.int32])), weights)
