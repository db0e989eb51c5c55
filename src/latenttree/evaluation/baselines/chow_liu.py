"""Chow-Liu tree: the minimum spanning tree of the information distances, no hidden nodes."""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import ArrayLike

from latenttree.distances.spanning_tree import minimum_spanning_tree
from latenttree.engine.arrays import Floats
from latenttree.evaluation.baselines._shared import EdgeList, check_distances
from latenttree.tree import Tree


def chow_liu(D: ArrayLike, names: Sequence[str] | None = None) -> Tree:
    """Return the minimum spanning tree over the observed variables.

    Zero distances (duplicate variables) are edges of length zero, not missing edges.

    Parameters
    ----------
    D : (n_vars, n_vars) distances, finite and not negative.
    names : names of the variables; x0, x1, ... by default.
    """
    distances, names = check_distances(D, names)
    edges, lengths = spanning_edges(distances)
    return Tree.build(names, edges, lengths)


def spanning_edges(D: Floats) -> EdgeList:
    """The minimum spanning tree of a dense matrix; O(p^2)."""
    edges = minimum_spanning_tree(D)
    return edges, D[edges[:, 0], edges[:, 1]]
