"""Trees as NetworkX graphs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from latenttree.tree import Tree

if TYPE_CHECKING:
    import networkx


def to_networkx(tree: Tree, support: ArrayLike | None = None) -> networkx.Graph[int]:
    """An undirected graph on the node numbers.

    Nodes carry ``name`` and ``observed``, edges carry ``length`` and, where the ``(E,)``
    ``support`` is given and not NaN, ``support``.
    """
    known = np.full(tree.n_edges, np.nan) if support is None else np.asarray(support, dtype=float)
    if known.shape != (tree.n_edges,):
        raise ValueError(
            f"support has shape {known.shape} for {tree.n_edges} edges; give one for each edge"
        )
    try:
        import networkx
    except ImportError as error:
        raise ImportError("to_networkx needs NetworkX; run: pip install networkx") from error
    graph: networkx.Graph[int] = networkx.Graph()
    for v, name in enumerate(tree.names):
        graph.add_node(v, name=name, observed=v < tree.n_observed)
    values = zip(tree.edges.tolist(), tree.lengths.tolist(), known.tolist(), strict=True)
    for (a, b), length, value in values:
        graph.add_edge(a, b, length=length, **({} if math.isnan(value) else {"support": value}))
    return graph
