"""Covariances of functions of the observed variables that a tree model implies, all pairs at once.

A function `z` of an observed node is attached to a node v of the tree by its conditional mean:
`E[z | v]` is a row over the states of v (or its slopes on a Gaussian node). Conditional means move
towards the root by one product with each CPT (or loading), and two functions that meet at node v
from different branches have covariance `E[z | v] M_v E[z' | v]^T` with `M_v = diag P(v)` (or
`Cov[v]`), where both have mean zero.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from latenttree.engine.arrays import Floats, Ints
from latenttree.model.gaussian import GaussianTreeModel
from latenttree.model.tree_model import TreeModel

Model = TreeModel | GaussianTreeModel


def implied_covariance(model: Model, attached: Mapping[int, tuple[int, Floats]]) -> Floats:
    """Covariances `(w, w)` of functions of mean zero, in the order of `attached`; 0 among the
    functions of one variable.

    `attached[v] = (node, means)`: the r functions of observed variable v have conditional means
    `(r, dims[node])` given `node`, which is v itself or its neighbour.
    Every pair is multiplied once, where its two paths meet: O(w^2 k + n_nodes w k^2) in the worst
    case, less in trees that are not chains."""
    widths = [len(means) for _, means in attached.values()]
    ends = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
    found = np.zeros((int(ends[-1]), int(ends[-1])))
    parts: dict[int, list[tuple[Ints, Floats]]] = {}
    for i, (node, means) in enumerate(attached.values()):
        parts.setdefault(node, []).append((np.arange(ends[i], ends[i + 1]), means))
    for v in model.order[::-1].tolist():
        if v not in parts:
            continue
        index, means = _met(parts.pop(v), _metric(model, v), found)
        u = int(model.parents[v])
        if u >= 0:
            parts.setdefault(u, []).append((index, means @ _upward(model, v)))
    return found


def _met(parts: list[tuple[Ints, Floats]], metric: Floats, found: Floats) -> tuple[Ints, Floats]:
    """All functions that come to a node; covariances between branches are written to `found`."""
    index, means = parts[0]
    for more, other in parts[1:]:
        weighted = means * metric if metric.ndim == 1 else means @ metric
        found[np.ix_(index, more)] = both = weighted @ other.T
        found[np.ix_(more, index)] = both.T
        index, means = np.concatenate([index, more]), np.concatenate([means, other])
    return index, means


def _metric(model: Model, v: int) -> Floats:
    """`P(v)` `(k,)`, the diagonal of a metric; or `Cov[v]` `(d, d)`."""
    return model.marginals[v] if isinstance(model, TreeModel) else model.marginal_covariance(v)


def _upward(model: Model, v: int) -> Floats:
    """`P(v | parent)`, or the loadings, `(dims[v], dims[parent])`."""
    return model.cpts[v] if isinstance(model, TreeModel) else model.loadings[v]
