"""Numbers that describe a learned structure."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from latenttree.structure.independence import parts_of
from latenttree.structure.learn import Structure
from latenttree.tree import Tree

Z = 4.0
"""Standard errors that an edge must be long to be beyond doubt."""


def effective_depth(tree: Tree) -> float:
    """Largest distance from a hidden node to its nearest observed node (multi-source Dijkstra)."""
    if not tree.n_hidden:
        return 0.0
    a, b = tree.edges.T.astype(np.int32)  # dijkstra takes no wider indices before SciPy 1.15
    # a tiny extra length keeps edges of length zero in the graph
    graph = coo_array((tree.lengths + 1e-12, (a, b)), shape=(tree.n_nodes,) * 2)
    distance = dijkstra(graph, directed=False, indices=np.arange(tree.n_observed), min_only=True)
    return float(distance[tree.n_observed :].max())


def independent_variables(structure: Structure) -> list[str]:
    """Names of the variables that depend on no other one: edges of support 0 alone join them."""
    tree = structure.tree
    if tree.n_observed < 2:
        return []
    part = parts_of(tree.edges[structure.support > 0], tree.n_nodes)[: tree.n_observed]
    alone = np.flatnonzero(np.bincount(part)[part] == 1)
    return [tree.names[v] for v in alone]


def samples_needed(structure: Structure, n_samples: float) -> int:
    """Samples at which the weakest internal edge would be `Z` standard errors long.

    Standard errors shrink with the root of the number of samples; 0 where none is known."""
    inside = structure.tree.internal_edges()
    error = structure.standard_errors[inside]
    known = (error > 0) & np.isfinite(error)
    if not known.any():
        return 0
    z = structure.tree.lengths[inside][known] / error[known]
    return int(np.ceil(n_samples * (Z / max(float(z.min()), 1e-3)) ** 2))
