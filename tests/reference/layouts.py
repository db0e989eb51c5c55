"""Coordinates of the nodes of whole trees, as the pictures place them."""

from __future__ import annotations

import numpy as np

from latenttree.engine.arrays import Floats
from latenttree.plots.layout import rooted_layout
from latenttree.tree import Tree
from latenttree.tree.layout import angles, polar_to_xy, radii


def radial(tree: Tree, *, lengths: bool = False) -> Floats:
    """Coordinates ``(n_nodes, 2)`` in the unit disc, the centre of the tree in the middle.

    A branch takes an angle in proportion to the observed nodes in it, clockwise from the top.
    Without ``lengths`` every leaf lies on the unit circle and a hidden node at radius
    ``depth / (depth + height)``, both counted in edges; with ``lengths`` the radius is the
    distance from the centre along the tree, the farthest node at 1.
    """
    rooted = rooted_layout(tree, lengths=lengths)
    return polar_to_xy(angles(rooted.slots, tree.n_observed), radii(rooted, lengths=lengths))


def top_down(tree: Tree, *, lengths: bool = False) -> Floats:
    """Coordinates ``(n_nodes, 2)``: x by slots (leaves one apart), y is minus the depth."""
    rooted = rooted_layout(tree, lengths=lengths)
    return np.column_stack([rooted.slots, -rooted.depths])
