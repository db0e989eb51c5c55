"""Trees as GEXF, which Gephi reads."""

from __future__ import annotations

from numpy.typing import ArrayLike

from latenttree.io.graphml import check_xml_names
from latenttree.tree import Tree


def to_gexf(tree: Tree, support: ArrayLike | None = None) -> str:
    """GEXF text of `Tree.to_networkx`, with the names as labels. The weight of an edge is
    `exp(-length)`, near 1 where its two ends are nearly the same."""
    check_xml_names(tree)
    graph = tree.to_networkx(support)
    import networkx
    import numpy as np

    for v, name in enumerate(tree.names):
        graph.nodes[v]["label"] = name
    for _, _, values in graph.edges(data=True):
        values["weight"] = float(np.exp(-values["length"]))
    return "\n".join(networkx.generate_gexf(graph)) + "\n"
