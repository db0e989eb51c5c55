"""What inference needs of a model, whatever else it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from latenttree.tree import Tree

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Distribution(Protocol):
    """`P(root) prod_v P(v | parent(v))`; see `TreeModel`."""

    @property
    def tree(self) -> Tree:
        """Observed nodes first."""

    @property
    def root(self) -> int:
        """The node without parent."""

    @property
    def flat(self) -> Floats:
        """All CPTs one after another, each row by row."""

    @property
    def cpts(self) -> tuple[Floats, ...]:
        """For every node `P(v | parent)`, `(dims[v], dims[parent])`."""

    @property
    def parents(self) -> Ints:
        """(n_nodes,) -1 at the root."""

    @property
    def order(self) -> Ints:
        """(n_nodes,) parents before children."""

    @property
    def dims(self) -> Ints:
        """(n_nodes,) states."""

    @property
    def marginals(self) -> tuple[Floats, ...]:
        """`P(v)` of every node."""

    @property
    def emissions(self) -> Mapping[int, Any]:
        """Distributions of leaves that are not categorical."""

    @property
    def layouts(self) -> dict[str, Any]:
        """What was laid out for the tree, whatever the parameters."""


def widths(model: Distribution) -> Ints:
    """(n_nodes,) columns of every CPT."""
    return np.where(model.parents < 0, 1, model.dims[np.maximum(model.parents, 0)])


def inner_nodes(model: Distribution) -> NDArray[np.bool_]:
    """(n_nodes,) the root and all nodes with children."""
    inner = np.zeros(len(model.dims), dtype=bool)
    inner[model.parents[model.parents >= 0]] = True
    inner[model.root] = True
    return inner


def ranges(starts: Ints, counts: Ints) -> Ints:
    """`starts[i], ..., starts[i] + counts[i] - 1` for every i, one after another."""
    ends = np.cumsum(counts)
    return np.asarray(np.arange(counts.sum()) + np.repeat(starts - ends + counts, counts))


def preorder(model: Distribution, chosen: NDArray[np.bool_]) -> Ints:
    """The chosen nodes, each before all below it, subtrees together; all ancestors of a chosen node
    are chosen."""
    order = model.order[chosen[model.order]]
    parents, size = model.parents.tolist(), np.ones(len(model.dims), dtype=np.int64).tolist()
    for v in order[:0:-1].tolist():
        size[parents[v]] += size[v]
    place, free = [-1] * len(parents), [0] * len(parents)
    for v in order.tolist():
        u = parents[v]
        place[v] = 0 if u < 0 else free[u]
        if u >= 0:
            free[u] += size[v]
        free[v] = place[v] + 1
    at = np.array(place)
    return np.asarray(order[np.argsort(at[order])])
