"""Where the nodes of a tree go in a picture: pure functions of integer arrays.

Every observed node owns one *slot*. Slots are numbered in a depth-first walk from the root,
branches in order of the smallest observed index in them, so variables that came in a meaningful
order keep it as far as the tree allows. A slot is an angle in the radial layout and a column in the
top-down one; since no two names share a slot, names cannot collide. All costs are O(n_nodes).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from latenttree.tree.rooting import (
    Adjacency,
    IntArray,
    ParentEdges,
    breadth_first,
    children_by_smallest,
    path_to_root,
)

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class RootedLayout:
    """A tree hung from a root, with a slot for every observed node.

    ``slots`` are places between 0 and ``n_observed``: an observed node stands in the middle of
    its own slot, a hidden node in the middle of all the slots below it. ``spans`` are the numbers
    of slots at and below each node. ``depths`` count edges (or add lengths) from the root;
    ``heights`` the same to the farthest node below.
    """

    root: int
    parents: IntArray  # (n_nodes,), -1 at the root
    order: IntArray  # (n_nodes,), parents first
    slots: FloatArray  # (n_nodes,)
    spans: IntArray  # (n_nodes,)
    depths: FloatArray  # (n_nodes,)
    heights: FloatArray  # (n_nodes,)


def centre_of(adjacency: Adjacency) -> int:
    """The middle node of a longest path, counted in edges.

    A path with an even number of nodes has two middles: the one of higher degree is taken,
    then the lower number.
    """
    far = int(breadth_first(adjacency, 0).order[-1])
    parents, order, _ = breadth_first(adjacency, far)
    path = path_to_root(parents, int(order[-1]))
    middles = {path[(len(path) - 1) // 2], path[len(path) // 2]}
    degree = np.diff(adjacency.indptr)
    return min(middles, key=lambda node: (-int(degree[node]), node))


def layout_of(
    rooted: ParentEdges, n_observed: int, lengths: FloatArray | None = None
) -> RootedLayout:
    """Hand out the slots of a rooted tree; depths and heights add ``lengths`` ``(E,)`` of edges,
    or count edges."""
    parents, order, edges = rooted
    steps = np.append(np.ones(len(edges)) if lengths is None else lengths, 0.0)[edges]
    steps[order[0]] = 0.0
    depths, heights = np.zeros(len(parents)), np.zeros(len(parents))
    for node in order[1:].tolist():
        depths[node] = depths[parents[node]] + steps[node]
    for node in order[:0:-1].tolist():
        above = parents[node]
        heights[above] = max(heights[above], heights[node] + steps[node])
    slots, spans = _slots(rooted, n_observed)
    return RootedLayout(int(order[0]), parents, order, slots, spans, depths, heights)


def angles(slots: FloatArray, n_observed: int) -> FloatArray:
    """Slots as angles in radians, clockwise from the top."""
    return np.pi / 2 - 2 * np.pi * (slots / n_observed)


def radii(rooted: RootedLayout, *, lengths: bool = False) -> FloatArray:
    """Distance of each node from the middle of the unit disc.

    Without ``lengths`` every leaf lies on the unit circle and a hidden node at radius
    ``depth / (depth + height)``, both counted in edges; with ``lengths`` the radius is the
    distance from the root along the tree, the farthest node at 1.
    """
    scale = (
        np.full(len(rooted.depths), rooted.depths.max())
        if lengths
        else rooted.depths + rooted.heights
    )
    return np.divide(rooted.depths, scale, out=np.zeros_like(rooted.depths), where=scale > 0)


def polar_to_xy(angle: FloatArray, radius: FloatArray) -> FloatArray:
    """``(..., 2)`` from angles and radii."""
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)


def _slots(rooted: ParentEdges, n_observed: int) -> tuple[FloatArray, IntArray]:
    """Slots and spans of all nodes; see :class:`RootedLayout`.

    An observed node inside the tree takes a slot in the middle of its branches, so that
    its name sits where its edges part.
    """
    p, (parents, order, _) = n_observed, rooted
    n_hidden = len(parents) - p
    size = (np.arange(len(parents)) < p).astype(np.int64)
    for node in order[:0:-1].tolist():
        size[parents[node]] += size[node]
    children = children_by_smallest(rooted, [*range(p), *[p] * n_hidden])
    start, slots = np.zeros(len(parents)), np.zeros(len(parents))
    for node in order.tolist():
        cursor, middle = start[node], start[node] + (size[node] - 1) / 2
        waits = node < p
        for child in children[node]:
            if waits and cursor + size[child] / 2 >= middle:
                slots[node], cursor, waits = cursor + 0.5, cursor + 1, False
            start[child] = cursor
            cursor += size[child]
        if waits:
            slots[node] = cursor + 0.5
    slots[p:] = (start + size / 2)[p:]
    return slots, size
