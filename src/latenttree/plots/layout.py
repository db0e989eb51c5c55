"""Where the nodes of a tree go: pure functions from a Tree to coordinates.

Every observed node owns one *slot*. Slots are numbered in a depth-first walk from the centre
of the tree, branches in order of the smallest observed index in them, so variables that
came in a meaningful order keep it as far as the tree allows. A slot is an angle in the
radial layout and a column in the top-down one; since no two names share a slot, names
cannot collide. All costs are O(n_nodes).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import spsolve

from latenttree.engine.arrays import Floats, Ints
from latenttree.tree import Rooted, Tree
from latenttree.tree.rooting import children_by_smallest, path_to_root


@dataclass(frozen=True)
class RootedLayout:
    """A tree hung from its centre, with a slot for every observed node.

    ``slots`` are places between 0 and ``n_observed``: an observed node stands in the middle of
    its own slot, a hidden node in the middle of all the slots below it. ``depths`` count
    edges (or add lengths) from the root; ``heights`` the same to the farthest node below.
    """

    root: int
    parents: Ints  # (n_nodes,), -1 at the root
    order: Ints  # (n_nodes,), parents first
    slots: Floats  # (n_nodes,)
    depths: Floats  # (n_nodes,)
    heights: Floats  # (n_nodes,)


def centre(tree: Tree) -> int:
    """The middle node of a longest path, counted in edges.

    A path with an even number of nodes has two middles: the one of higher degree is taken,
    then the lower number.
    """
    far = int(tree.rooted(0).order[-1])
    parents, order = tree.rooted(far)
    path = path_to_root(parents, int(order[-1]))
    middles = {path[(len(path) - 1) // 2], path[len(path) // 2]}
    degree = tree.degree()
    return min(middles, key=lambda node: (-int(degree[node]), node))


def rooted_layout(tree: Tree, *, lengths: bool = False) -> RootedLayout:
    """Hang ``tree`` from its centre and hand out the slots."""
    root = centre(tree)
    rooted = tree.rooted(root)
    parents, order = rooted
    steps = _steps(tree, rooted, lengths)
    depths, heights = np.zeros(tree.n_nodes), np.zeros(tree.n_nodes)
    for node in order[1:]:
        depths[node] = depths[parents[node]] + steps[node]
    for node in order[:0:-1]:
        above = parents[node]
        heights[above] = max(heights[above], heights[node] + steps[node])
    return RootedLayout(root, parents, order, _slots(tree, rooted), depths, heights)


def angles(slots: Floats, n_observed: int) -> Floats:
    """Slots as angles in radians, clockwise from the top."""
    return np.pi / 2 - 2 * np.pi * (slots / n_observed)


def radii(rooted: RootedLayout, *, lengths: bool = False) -> Floats:
    """Distance of each node from the middle of the unit disc.

    Without ``lengths`` every leaf lies on the unit circle and a hidden node at radius
    ``depth / (depth + height)``, both counted in edges; with ``lengths`` the radius is the
    distance from the centre along the tree, the farthest node at 1.
    """
    scale = (
        np.full(len(rooted.depths), rooted.depths.max())
        if lengths
        else rooted.depths + rooted.heights
    )
    return np.divide(rooted.depths, scale, out=np.zeros_like(rooted.depths), where=scale > 0)


def polar_to_xy(angle: Floats, radius: Floats) -> Floats:
    """``(..., 2)`` from angles and radii."""
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)


def groups(tree: Tree, rooted: RootedLayout) -> Ints:
    """The hidden node that each observed node belongs to, ``(n_observed,)``.

    It is the first hidden node on the way to the centre; where there is none (observed
    nodes around the centre), the centre itself.
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


def _steps(tree: Tree, rooted: Rooted, lengths: bool) -> Floats:
    """Length of the edge above each node; 1 each without ``lengths``, 0 at the root."""
    steps = np.ones(tree.n_nodes)
    if lengths:
        steps[children_and_parents(tree, rooted.parents)[0]] = tree.lengths
    steps[rooted.order[0]] = 0
    return steps


def _slots(tree: Tree, rooted: Rooted) -> Floats:
    """Slots of all nodes; see :class:`RootedLayout`.

    An observed node inside the tree takes a slot in the middle of its branches, so that
    its name sits where its edges part.
    """
    p, (parents, order) = tree.n_observed, rooted
    size = (np.arange(tree.n_nodes) < p).astype(np.int64)
    for node in order[:0:-1]:
        size[parents[node]] += size[node]
    children = children_by_smallest(rooted, [*range(p), *[p] * tree.n_hidden])
    start, slots = np.zeros(tree.n_nodes), np.zeros(tree.n_nodes)
    for node in order:
        cursor, half = start[node], len(children[node]) // 2
        for i, child in enumerate([*children[node], -1]):
            if i == half and node < p:
                slots[node] = cursor + 0.5
                cursor += 1
            if child >= 0:
                start[child] = cursor
                cursor += size[child]
    slots[p:] = (start + size / 2)[p:]
    return slots
