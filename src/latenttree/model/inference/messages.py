"""What messages along edges need, whichever backend writes them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from latenttree.model.inference.distribution import Distribution

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def message_weights(
    model: Distribution, edges: Ints, marginals: Sequence[Floats] | None
) -> tuple[NDArray[np.bool_], Floats]:
    """Which of the messages along edges `(m, 2)` go up, and the weights of their states, `(m, most
    states)`: from the likelihood of what is below the source, or its joint with what is not below
    the target, to the likelihood; with `marginals` to the joint with these.

    A state that has probability zero without any evidence gets weight zero."""
    source, target = edges.T
    is_up = model.parents[source] == target
    of_node = model.marginals if marginals is None else marginals
    prior = np.zeros((len(edges), int(model.dims.max())))
    own = np.arange(prior.shape[1]) < model.dims[source, None]
    prior[own] = np.concatenate([np.empty(0), *(of_node[u] for u in source.tolist())])
    if marginals is not None:
        return is_up, np.where(is_up[:, None], prior, prior > 0)
    there = prior >= 1e-300
    return is_up, np.where(is_up[:, None], there, there / np.where(there, prior, 1.0))


def ancestors(model: Distribution, nodes: Ints) -> Ints:
    """The given nodes and all above them, parents first."""
    needed = np.zeros(model.tree.n_nodes, dtype=bool)
    while len(nodes := np.unique(nodes[nodes >= 0])):
        nodes = nodes[~needed[nodes]]
        needed[nodes] = True
        nodes = model.parents[nodes]
    return np.asarray(model.order)[needed[model.order]]
