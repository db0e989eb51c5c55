"""How many states a hidden node can use, whatever the data."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from latenttree.tree import Tree

Ints = NDArray[np.int64]


def most_states(tree: Tree, dims: Ints, limit: int) -> Ints:
    """(n_hidden,) the largest number of states that each hidden node can use, at most `limit`.

    A node transmits no more about a branch than the branch has configurations: with `c(v, u)` those
    of the branch at v seen from its neighbour u,

        c(v, u) = prod c(w, v) over the neighbours w of v other than u,    c(x, u) = dims[x]

    at an observed leaf x, and a model with more than `min_u c(v, u)` states at v is equal to one
    with as many. `dims` `(p,)` are the states of the observed nodes, 0 where values are numbers,
    which set no bound."""
    size = np.minimum(np.where(dims > 0, dims, limit), limit).astype(np.int64)
    parents, order = tree.rooted(tree.n_observed if tree.n_hidden else 0)
    up = np.ones(tree.n_nodes, dtype=np.int64)
    for v in order[::-1].tolist():
        if v < tree.n_observed:
            up[v] = size[v]
        u = int(parents[v])
        if u >= 0:
            up[u] = min(up[u] * up[v], limit)
    down = np.full(tree.n_nodes, limit, dtype=np.int64)
    found = np.full(tree.n_nodes, limit, dtype=np.int64)
    for v in order.tolist():
        into = [(w, int(up[w] if parents[w] == v else down[v])) for w in tree.neighbors(v).tolist()]
        for w, _ in into:
            others = _product((c for x, c in into if x != w), limit)
            others = int(size[v]) if v < tree.n_observed else others
            found[v] = min(found[v], others)
            if parents[w] == v:
                down[w] = others
    return np.maximum(found[tree.n_observed :], min(2, limit))


def _product(factors: Iterable[int], limit: int) -> int:
    """The product of integers, at most `limit`."""
    total = 1
    for factor in factors:
        total = min(total * factor, limit)
    return total
