"""Hidden nodes of a Gaussian tree as observed ones, so that their values can be given."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from latenttree.model.gaussian.model import GaussianTreeModel
from latenttree.tree import Tree


def observing(model: GaussianTreeModel, hidden: Sequence[int]) -> GaussianTreeModel:
    """The same model with the hidden nodes `hidden` observed, behind the other observed nodes.

    Its samples have their coordinates behind the others, in the order of `hidden`. O(n_nodes)."""
    tree, p = model.tree, model.tree.n_observed
    chosen = set(hidden)
    order = [*range(p), *hidden, *(v for v in range(p, tree.n_nodes) if v not in chosen)]
    place = np.argsort(order)
    names = tuple(tree.names[v] for v in order)
    return GaussianTreeModel(
        Tree(names, p + len(hidden), place[tree.edges], tree.lengths),
        int(place[model.root]),
        tuple(model.means[v] for v in order),
        tuple(model.loadings[v] for v in order),
        tuple(model.noise[v] for v in order),
    )
