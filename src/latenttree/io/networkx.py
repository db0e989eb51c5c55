"""Trees as NetworkX graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from latenttree.tree import Tree

if TYPE_CHECKING:
    import networkx


def to_networkx(tree: Tree) -> networkx.Graph[int]:
    """An undirected graph on the node numbers.

    Nodes carry ``name`` and ``observed``, edges carry ``length``.
    """
    try:
        import networkx
    except ImportError as error:
        raise ImportError("to_networkx needs NetworkX; run: pip install networkx") from error
    graph: networkx.Graph[int] = networkx.Graph()
    for v, name in enumerate(tree.names):
        graph.add_node(v, name=name, observed=v < tree.n_observed)
    for (a, b), length in zip(tree.edges.tolist(), tree.lengths.tolist(), strict=True):
        graph.add_edge(a, b, length=length)
    return graph
