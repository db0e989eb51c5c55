"""Layouts of a `Tree`: hung from a node, grouped by hidden nodes, or with observed nodes fixed."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import spsolve

from latenttree.engine.arrays import Floats, Ints
from latenttree.tree import Tree
from latenttree.tree.layout import RootedLayout, layout_of
from latenttree.tree.rooting import ParentEdges


def rooted_layout(
    tree: Tree, *, lengths: bool = False, root: str | int | None = None
) -> RootedLayout:
    """Hang ``tree`` from ``root``, by default its centre, and hand out the slots."""
    start = tree.centre() if root is None else tree.index(root)
    rooted = ParentEdges(*tree.rooted(start), tree.parent_edges(start))
    return layout_of(rooted, tree.n_observed, tree.lengths if lengths else None)


def groups(tree: Tree, rooted: RootedLayout) -> Ints:
    """The hidden node that each observed node belongs to, ``(n_observed,)``.

    It is the first hidden node on the way to the root; where there is none (observed
    nodes around the root), the root itself.
    """
    nearest = np.empty(tree.n_nodes, dtype=np.int64)
    nearest[rooted.root] = rooted.root
    for node in rooted.order[1:]:
        above = rooted.parents[node]
        nearest[node] = above if above >= tree.n_observed else nearest[above]
    return nearest[: tree.n_observed]


def children_and_parents(tree: Tree, parents: Ints) -> tuple[Ints, Ints]:
    """Child and parent of every edge, ``(E,)`` each."""
    a, b = tree.edges.T
    down = parents[b] == a
    return np.where(down, b, a), np.where(down, a, b)


def anchored(tree: Tree, positions: Floats) -> Floats:
    """Coordinates of all nodes when observed ones are fixed at ``positions`` ``(p, 2)``.

    A hidden node lies at the mean of its neighbours' positions: the linear system
    ``degree(h) x_h - sum over hidden neighbours x_u = sum over observed neighbours x_o``,
    whose matrix is positive definite (some hidden node has an observed neighbour).
    """
    fixed, p, n = np.asarray(positions, dtype=float), tree.n_observed, tree.n_nodes
    if not tree.n_hidden:
        return fixed
    one_way = sparse.csr_array((np.ones(tree.n_edges), tree.edges.T), shape=(n, n))
    joined = (one_way + one_way.T).tocsr()[p:]
    system = sparse.diags_array(tree.degree()[p:].astype(float)) - joined[:, p:]
    return np.vstack([fixed, spsolve(system.tocsc(), joined[:, :p] @ fixed)])
