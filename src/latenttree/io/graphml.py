"""Trees as GraphML, which Gephi, yEd, Cytoscape and igraph read."""

from __future__ import annotations

import re

from numpy.typing import ArrayLike

from latenttree.errors import DataError
from latenttree.tree import Tree

# All that XML 1.0 can hold, less the carriage return, which readers turn into a line feed.
_NOT_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_graphml(tree: Tree, support: ArrayLike | None = None) -> str:
    """GraphML text of `Tree.to_networkx`.

    Nodes ``0, 1, ...`` carry ``name`` and ``observed``, edges carry ``length``, ``sign`` and
    ``support``.
    """
    check_xml_names(tree)
    graph = tree.to_networkx(support)
    import networkx

    return "\n".join(networkx.generate_graphml(graph)) + "\n"


def check_xml_names(tree: Tree) -> None:
    """Raise where a name has a character that XML cannot hold."""
    for name in tree.names:
        match = _NOT_XML.search(name)
        if match is not None:
            what = f"the name {name!r} has the character {match.group()!r}, which XML cannot hold"
            raise DataError(what, "rename the variable", value=match.group(), node=name)
