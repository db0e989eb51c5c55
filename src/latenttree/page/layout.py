"""Where the nodes of a tree go on the map: pure functions from a `Tree` to coordinates.

A circle with all leaves on its rim wastes its inside. Here every branch gets an area that grows
with its number of variables. Edges have fixed lengths, and only their directions are free: they
start from equal angles (each branch has a wedge as wide as its share of the variables, in which
nothing crosses) and turn until the nodes are spread evenly. Nodes repel each other; the forces on a
branch turn it as a rigid body about the node it hangs from. All steps are sums over branches or
along paths, which are cumulative sums over an Euler tour: ``O(n)`` each, and ``O(c^2 log c)`` for
the repulsion on a grid of c x c cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy import fft, sparse

from latenttree.engine.arrays import Bools, Floats, Ints
from latenttree.plots.layout import rooted_layout
from latenttree.tree import Tree
from latenttree.tree.layout import angles
from latenttree.tree.rooting import children_by_smallest

N_STEPS = 80
FEW_NODES = 8
"""Equal angles are good enough for trees of so few."""
LARGEST_GRID = 512
FLATTENING = 0.45
"""Power that keeps the longest edges of the map from becoming too long for the others."""

GAP = 3.0
"""Between parts of the tree, in units of the map."""
GOLDEN = (np.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class Tour:
    """The nodes of a rooted tree in depth-first order, so that every branch is a range.

    ``order[i]`` is the node at place i; the branch below the node at place i has the places
    ``i .. stops[i] - 1``; ``above[i]`` is the place of its parent, 0 at the root.
    """

    order: Ints
    stops: Ints
    above: Ints

    def branch_sums(self, values: Floats) -> Floats:
        """Sums of ``values`` (n, ...) over the branch below each place, ``(n, ...)``."""
        total = np.concatenate([np.zeros_like(values[:1]), np.cumsum(values, axis=0)])
        return np.asarray(total[self.stops] - total[:-1])

    def path_sums(self, values: Floats) -> Floats:
        """Sums of ``values`` (n, ...) along the path from the root to each place, ``(n, ...)``.

        Each value is added where its branch begins and taken away where it ends."""
        steps = np.concatenate([values, np.zeros_like(values[:1])])
        np.subtract.at(steps, self.stops, values)
        return np.asarray(np.cumsum(steps, axis=0)[:-1])


def formal_edges(tree: Tree) -> Bools:
    """Which edges only join parts without dependence, ``(E,)``: of support 0, without a sign."""
    if tree.support is None:
        return np.zeros(tree.n_edges, dtype=bool)
    return np.asarray((tree.support == 0) & (tree.signs == 0))


def map_layout(tree: Tree) -> Floats:
    """Coordinates of all nodes, ``(n_nodes, 2)``: centred, a little wider than high, and in units
    of about the distance between neighbours. Parts without dependence lie apart, and variables that
    depend on no other in rows below all others."""
    kept = tree.edges[~formal_edges(tree)]
    graph = sparse.coo_array((np.ones(len(kept)), kept.T), shape=(tree.n_nodes, tree.n_nodes))
    _, part = sparse.csgraph.connected_components(graph, directed=False)
    order, sizes = np.argsort(part, kind="stable"), np.bincount(part)
    parts = np.split(order, np.cumsum(sizes)[:-1])
    places = np.zeros((tree.n_nodes, 2))
    large = sorted((nodes for nodes in parts if len(nodes) > 1), key=len, reverse=True)
    packed = in_rows([part_layout(tree, nodes) for nodes in large])
    for nodes, at in zip(large, packed, strict=True):
        places[nodes] = at
    alone = np.array([nodes[0] for nodes in parts if len(nodes) == 1], dtype=np.int64)
    reached = places[np.concatenate(large)] if large else np.zeros((0, 2))
    places[np.sort(alone)] = rows_below(reached, len(alone))
    return places - (places.max(axis=0) + places.min(axis=0)) / 2


def part_layout(tree: Tree, nodes: Ints) -> Floats:
    """Places of some of the nodes, which other edges than formal ones connect, ``(len(nodes), 2)``.

    A hidden node that is left with two neighbours has a slot of its own, as observed ones have."""
    place = np.full(tree.n_nodes, -1)
    place[nodes] = np.arange(len(nodes))
    edges = place[tree.edges]
    inside = (edges >= 0).all(axis=1) & ~formal_edges(tree)
    degree = np.bincount(edges[inside].ravel(), minlength=len(nodes))
    own_slot = (nodes < tree.n_observed) | (degree < 3)
    order = np.argsort(~own_slot, kind="stable")
    names = tuple(tree.names[v] for v in nodes[order].tolist())
    renamed = np.argsort(order)[edges[inside]]
    found = tree_layout(Tree(names, int(own_slot.sum()), renamed, tree.lengths[inside]))
    return found[np.argsort(order)]


def tree_layout(tree: Tree) -> Floats:
    """Coordinates of the nodes of a tree without formal edges, ``(n_nodes, 2)``."""
    rooted = rooted_layout(tree)
    tour = depth_first_tour(tree)
    angle = angles(rooted.slots, tree.n_observed)[tour.order]
    lengths = edge_lengths(tree, tour)
    charges = np.where(tour.order < tree.n_observed, 1.0, 0.4)
    n_steps = N_STEPS if tree.n_nodes > FEW_NODES else 0
    places = np.empty((tree.n_nodes, 2))
    places[tour.order] = spread(tour, angle, lengths, charges, n_steps)
    return lying(places)


def in_rows(parts: Sequence[Floats]) -> list[Floats]:
    """Drawings, the largest first, moved into rows as wide as the first, or as suits their area."""
    boxes = [np.ptp(places, axis=0) + GAP for places in parts]
    area = sum(float(box.prod()) for box in boxes)
    widest = max([float(np.sqrt(1.6 * area)), *(float(box[0]) for box in boxes[:1])])
    x, y, high, found = 0.0, 0.0, 0.0, []
    for places, box in zip(parts, boxes, strict=True):
        if x > 0 and x + box[0] > widest:
            x, y, high = 0.0, y + high, 0.0
        found.append(places - places.min(axis=0) + [x, y])
        x, high = x + float(box[0]), max(high, float(box[1]))
    return found


def rows_below(places: Floats, count: int) -> Floats:
    """Places for single nodes, ``(count, 2)``, in rows below others; close where there are many."""
    step = 1.0 if count < 500 else 0.6
    low = places.min(axis=0) if len(places) else np.zeros(2)
    high = places.max(axis=0) if len(places) else np.zeros(2)
    least = np.ceil(np.sqrt(3 * count))
    n_columns = max(int((high[0] - low[0]) / step), int(least), 1)
    row, column = np.divmod(np.arange(count), n_columns)
    return np.stack([low[0] + step * column, high[1] + GAP + step * row], axis=1)


def depth_first_tour(tree: Tree) -> Tour:
    """The tour of a tree from its centre, branches in order of their smallest variables."""
    rooted = rooted_layout(tree)
    children = children_by_smallest(
        tree.rooted(rooted.root), [*range(tree.n_observed), *[tree.n_observed] * tree.n_hidden]
    )
    order, stack = [], [rooted.root]
    while stack:
        node = stack.pop()
        order.append(node)
        stack.extend(reversed(children[node]))
    place = np.empty(tree.n_nodes, dtype=np.int64)
    place[order] = np.arange(tree.n_nodes)
    above = np.maximum(place[rooted.parents[order]], 0)
    above[0] = 0
    size = np.ones(tree.n_nodes, dtype=np.int64)
    for i in range(tree.n_nodes - 1, 0, -1):
        size[above[i]] += size[i]
    return Tour(np.array(order), np.arange(tree.n_nodes) + size, above)


def edge_lengths(tree: Tree, tour: Tour) -> Floats:
    """Length on the map of the edge above each place, ``(n,)``, 0 at the root.

    Between two branches that go on, an edge makes room for what hangs off beside them: it grows
    with the square root of its number of variables, flattened. The leaves of a node with many lie
    at several distances.
    """
    observed = (tour.order < tree.n_observed).astype(float)
    size = tour.branch_sums(observed)
    beside = _beside(tour, size)
    below, outside = size[1:], size[0] - size[1:]
    room = np.sqrt(np.minimum(below, beside[tour.above[1:]]))
    room += np.sqrt(np.minimum(outside, beside[1:]))
    lengths = np.concatenate([[0.0], np.maximum((0.75 * room) ** FLATTENING, 0.6)])
    is_leaf = tour.stops == np.arange(len(size)) + 1
    n_leaves = np.bincount(tour.above[is_leaf], minlength=len(size))
    crowd = np.sqrt(n_leaves[tour.above] / 7.0)
    spiral = np.modf(np.arange(len(size)) * GOLDEN)[0]
    crowded = is_leaf & (crowd > 1)
    lengths[crowded] = (crowd * np.sqrt(0.15 + 0.85 * spiral))[crowded]
    lengths[0] = 0.0
    return lengths


def _beside(tour: Tour, size: Floats) -> Floats:
    """Variables in all branches around each place but the two largest, ``(n,)``."""
    n = len(size)
    largest, second = size[0] - size, np.zeros(n)  # the branch towards the root
    for i in range(n - 1, 0, -1):
        u, s = tour.above[i], size[i]
        if s > largest[u]:
            largest[u], second[u] = s, largest[u]
        elif s > second[u]:
            second[u] = s
    return np.maximum(size[0] - largest - second, 0.0)


def spread(tour: Tour, angle: Floats, lengths: Floats, charges: Floats, n_steps: int) -> Floats:
    """Places of the nodes, ``(n, 2)``, when every edge has turned away from its neighbours.

    ``angle`` and ``lengths`` (n,) are the first direction and the length of the edge above each
    place. In each step the repulsion turns the branch below an edge about the edge's upper end by
    torque / moment of inertia; all turns are scaled so that no node moves farther than a bound that
    shrinks from step to step.
    """
    n, fan = len(angle), fan_of(tour)
    places = _placed(tour, angle, lengths)
    reach = np.ptp(places, axis=0).max()
    finest = 2 ** int(np.clip(np.ceil(np.log2(4 * np.sqrt(n))), 5, np.log2(LARGEST_GRID)))
    for step in range(n_steps):
        share = step / n_steps
        field = repulsion(places, charges, finest if share > 0.8 else max(32, finest // 2))
        turns = _turns(tour, places, field * charges[:, None])
        moved = _placed(tour, angle + tour.path_sums(turns), lengths)
        most = np.sqrt(((moved - places) ** 2).sum(axis=1).max())
        bound = 0.03 * reach * (1 - share) ** 2 + 0.02
        angle = angle + tour.path_sums(turns * min(1.0, bound / max(most, 1e-12)))
        angle = angle + tour.path_sums(fan.turns(angle))
        places = _placed(tour, angle, lengths)
    return places


@dataclass(frozen=True)
class Fan:
    """The edges around each node in their order, which keeps them from folding up.

    ``before[i]``, ``after[i]`` are the places of the branches beside the one at place i, -1 where
    that is the branch towards the root; ``least[i]`` is the angle that should be between them, and
    ``yields[:, i]`` the part of it that this branch turns away from each: the smaller of two turns
    more.
    """

    tour: Tour
    before: Ints
    after: Ints
    least: Floats
    yields: Floats

    def turns(self, angle: Floats) -> Floats:
        """Angles by which edges turn away from neighbours that are too near, ``(n,)``: half of
        what is missing."""
        above = angle[self.tour.above] + np.pi
        left = np.where(self.before < 0, above, angle[self.before]) - angle
        right = angle - np.where(self.after < 0, above, angle[self.after])
        missing = [np.maximum(self.least - _unwound(gap), 0.0) for gap in (left, right)]
        turns = (self.yields[1] * missing[1] - self.yields[0] * missing[0]) / 2
        turns[0] = 0.0
        return np.asarray(turns)


def _unwound(gap: Floats) -> Floats:
    """Angles in [-1, 2 pi - 1): a small negative one is that of two edges in the wrong order."""
    return np.asarray(np.mod(gap + 1.0, 2 * np.pi) - 1.0)


def fan_of(tour: Tour) -> Fan:
    """The edges around each node, in the order of the tour."""
    n = len(tour.order)
    before, after = np.full(n, -1), np.full(n, -1)
    order = np.argsort(tour.above[1:], kind="stable") + 1
    beside = tour.above[order[1:]] == tour.above[order[:-1]]
    before[order[1:][beside]] = order[:-1][beside]
    after[order[:-1][beside]] = order[1:][beside]
    top = order[tour.above[order] == 0]
    before[top[0]], after[top[-1]] = top[-1], top[0]  # around the root
    degree = np.bincount(tour.above[1:], minlength=n) + 1
    degree[0] -= 1
    least = np.minimum(0.9, 0.9 * 2 * np.pi / degree)[tour.above]
    size = (tour.stops - np.arange(n)).astype(float)
    other = np.stack([np.where(at < 0, n - size, size[at]) for at in (before, after)])
    return Fan(tour, before, after, least, other**2 / (other**2 + size**2))


def _placed(tour: Tour, angle: Floats, lengths: Floats) -> Floats:
    """Places from the direction and the length of the edge above each."""
    return tour.path_sums(lengths[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1))


def _turns(tour: Tour, places: Floats, forces: Floats) -> Floats:
    """Angle by which the forces turn the branch below each edge about its upper end, ``(n,)``.

    With the sums over the branch of forces F, of torques x × F about the origin, of x and |x|²:
    ``(sum x × F - u × sum F) / sum |x - u|²``.
    """
    x, y = places.T
    own = np.stack(
        [forces[:, 0], forces[:, 1], x * forces[:, 1] - y * forces[:, 0], x, y, x**2 + y**2], axis=1
    )
    f, g, torque, sx, sy, squares = tour.branch_sums(own).T
    ux, uy = places[tour.above].T
    size = tour.stops - np.arange(len(x))
    inertia = squares - 2 * (ux * sx + uy * sy) + size * (ux**2 + uy**2)
    turns = (torque - (ux * g - uy * f)) / np.maximum(inertia, 1e-9)
    turns[0] = 0.0
    return np.asarray(turns)


def repulsion(places: Floats, charges: Floats, n_cells: int) -> Floats:
    """The field of charges at ``places`` (n, 2), one over the squared distance, ``(n, 2)``.

    Charges are shared among the four nearest points of a grid, the field of the grid is a
    convolution, and its values are read back with the same weights. ``O(n + n_cells² log)``.
    """
    low = places.min(axis=0)
    cell = max(float(np.ptp(places, axis=0).max()), 1e-9) / (n_cells - 1.001)
    corner, weights = _grid_shares((places - low) / cell, n_cells)
    density = np.bincount(
        corner.ravel(), (weights * charges).ravel(), minlength=n_cells**2
    ).reshape(n_cells, n_cells)
    found = []
    spectrum = fft.rfft2(density, s=(2 * n_cells, 2 * n_cells))
    for kernel in _kernels(n_cells):
        field = fft.irfft2(spectrum * kernel, s=(2 * n_cells, 2 * n_cells))[:n_cells, :n_cells]
        found.append((field.ravel()[corner] * weights).sum(axis=0) / cell**2)
    return np.stack(found, axis=1)


def _grid_shares(at: Floats, n_cells: int) -> tuple[Ints, Floats]:
    """The four grid points around each place, ``(4, n)``, and the share of each."""
    low = np.clip(at.astype(np.int64), 0, n_cells - 2)
    right, up = (at - low).T
    first = low[:, 0] * n_cells + low[:, 1]
    corner = first + np.array([[0], [1], [n_cells], [n_cells + 1]])
    shares = [(1 - right) * (1 - up), (1 - right) * up, right * (1 - up), right * up]
    return corner, np.stack(shares)


@cache
def _kernels(n_cells: int) -> Floats:
    """Transforms of the two components of ``d / |d|³``, softened within a cell."""
    steps = fft.fftfreq(2 * n_cells, 1 / (2 * n_cells))
    x, y = steps[:, None], steps[None, :]
    cubed = (x**2 + y**2 + 0.5) ** 1.5
    return np.stack([fft.rfft2(x / cubed), fft.rfft2(y / cubed)])


def lying(places: Floats) -> Floats:
    """The places turned so that they spread most from left to right, and centred."""
    centred = places - places.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    turned = centred @ axes.T
    return np.asarray(turned - (turned.max(axis=0) + turned.min(axis=0)) / 2)
