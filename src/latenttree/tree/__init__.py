"""`Tree`: a tree over observed and hidden nodes, as integer arrays.

In come names, edges and lengths; a `Tree` checks them and answers with neighbours, rootings, paths,
distances and splits, and turns into text (Newick, a drawing) or a NetworkX graph. Read `tree.py`
first; the other modules hold the algorithms, as functions of arrays. Nothing here knows a model.
"""

from latenttree.tree.names import hidden_names
from latenttree.tree.rooting import Rooted
from latenttree.tree.tree import Tree

__all__ = ["Rooted", "Tree", "hidden_names"]
