"""Groups of observed nodes from a tree: `Tree.cut`.

Two observed nodes are as similar as the product of the weights of the edges between them,

    w_e = sign_e exp(-length_e / 2),   w_e = sign_e for the edge of a leaf.

The edge of a leaf says how well a variable is measured, not where it belongs: a rare variable has a
long one. An edge without sign counts as positive. The groups `g` shall have a large sum of mean
similarities,

    sum_g  (sum of similarities of the pairs within g) / |g|,

in which splitting off a single variable gains little. Starting from one group, the split that gains
most is made until there are enough groups: of a group at one edge, or into the two sets within
which all paths are positive. Since similarities are products along paths, the sums of all splits of
a group come from two walks over its part of the tree: ``O(n)`` for each group that is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.tree.rooting import IntArray, ParentEdges
from latenttree.tree.signs import SignArray

FloatArray = NDArray[np.float64]


class Weights(NamedTuple):
    """A rooted tree for cuts: parents, weight of the edge above each node, and the sign of each
    node relative to the root."""

    parents: list[int]
    weight: list[float]
    side: list[int]


@dataclass(frozen=True)
class Group:
    """Some observed nodes, ``members[v]`` 1 or 0 for all nodes of the tree, and the nodes of a part
    of the tree that holds them, parents first."""

    nodes: list[int]
    members: bytearray


class Split(NamedTuple):
    """The best split of a group: what it gains, and its two halves."""

    gain: float
    halves: tuple[Group, Group]


class _Sums(NamedTuple):
    """Of the members at and below each node of a group: similarity to the node, sum of similarities
    of pairs, number."""

    reach: dict[int, float]
    within: dict[int, float]
    size: dict[int, int]


def edge_weights(
    rooted: ParentEdges, lengths: FloatArray, signs: SignArray, is_leaf_edge: NDArray[np.bool_]
) -> Weights:
    """The weights of a tree; signs of 0 count as positive."""
    negative = np.append(signs < 0, False)[rooted.edges]  # the root has edge -1: the last
    size = np.append(np.where(is_leaf_edge, 1.0, np.exp(-lengths / 2)), 0.0)[rooted.edges]
    parents, turned = rooted.parents.tolist(), negative.tolist()
    side = [1] * len(parents)
    for v in rooted.order[1:].tolist():
        side[v] = -side[parents[v]] if turned[v] else side[parents[v]]
    return Weights(parents, np.where(negative, -size, size).tolist(), side)


def cut_groups(
    weights: Weights, order: IntArray, n_observed: int, n_groups: int, min_size: int = 1
) -> IntArray:
    """(p,) the group of every observed node, numbered in order of their first members; fewer than
    `n_groups` where more would have less than `min_size` members."""
    members = bytearray(v < n_observed for v in range(len(order)))
    whole = Group(order.tolist(), members)
    groups: list[tuple[Group, Split | None]] = [(whole, best_split(weights, whole, min_size))]
    while len(groups) < n_groups:
        at = max(range(len(groups)), key=lambda g: _gain(groups[g][1]))
        split = groups[at][1]
        if split is None:
            break
        del groups[at]
        groups += [(half, best_split(weights, half, min_size)) for half in split.halves]
    label = np.zeros(n_observed, dtype=np.int64)
    for g, (group, _) in enumerate(groups):
        label[np.flatnonzero(np.frombuffer(group.members, dtype=np.uint8)[:n_observed])] = g
    _, first, found = np.unique(label, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[found], dtype=np.int64)


def _gain(split: Split | None) -> float:
    return -np.inf if split is None else split.gain


def best_split(weights: Weights, group: Group, min_size: int = 1) -> Split | None:
    """The split of a group that gains most; None where halves would be smaller than `min_size`."""
    sums = _sums(weights, group)
    root = group.nodes[0]
    n, whole = sums.size[root], sums.within[root]
    if n < 2 * min_size:
        return None
    gain, child = _best_edge(weights, group, sums, min_size)
    by_sign = [_of_side(weights, group, side) for side in (1, -1)]
    if all(sum(half.members) >= min_size for half in by_sign):
        apart = sum(_mean_similarity(weights, half) for half in by_sign) - whole / n
        if apart > gain:
            return Split(apart, (by_sign[0], by_sign[1]))
    return None if child == root else Split(gain, _halves(weights, group, child))


def _mean_similarity(weights: Weights, group: Group) -> float:
    """The sum of similarities of the pairs within a group, for each member."""
    sums, root = _sums(weights, group), group.nodes[0]
    return sums.within[root] / sums.size[root]


def _sums(weights: Weights, group: Group) -> _Sums:
    """Bottom up: where branches meet, the pairs between them are `((sum r)^2 - sum r^2) / 2` with
    the similarities `r` of their members to the node."""
    parents, weight, _ = weights
    reach = {v: float(group.members[v]) for v in group.nodes}
    squares = dict(reach)
    within = dict.fromkeys(group.nodes, 0.0)
    count = {v: group.members[v] for v in group.nodes}
    for v in reversed(group.nodes):
        within[v] += (reach[v] ** 2 - squares[v]) / 2
        if v == group.nodes[0]:
            break
        u, r = parents[v], weight[v] * reach[v]
        reach[u] += r
        squares[u] += r * r
        within[u] += within[v]
        count[u] += count[v]
    return _Sums(reach, within, count)


def _best_edge(weights: Weights, group: Group, sums: _Sums, min_size: int) -> tuple[float, int]:
    """The largest gain of cutting an edge of the group's part, and the node below that edge; the
    root where no edge leaves halves of `min_size`.

    Top down: `total[v]` is the similarity of all members to `v`, so the pairs across the edge above
    `v` are `w_v reach[v] (total[parent] - w_v reach[v])`."""
    parents, weight, _ = weights
    root = group.nodes[0]
    n, whole = sums.size[root], sums.within[root]
    total, best = {root: sums.reach[root]}, (-np.inf, root)
    for v in group.nodes[1:]:
        up = weight[v] * sums.reach[v]
        outside = total[parents[v]] - up
        total[v] = sums.reach[v] + weight[v] * outside
        m = sums.size[v]
        if min_size <= m <= n - min_size:
            rest = whole - sums.within[v] - up * outside
            gain = sums.within[v] / m + rest / (n - m) - whole / n
            if gain > best[0]:
                best = (gain, v)
    return best


def _of_side(weights: Weights, group: Group, side: int) -> Group:
    """The members of one sign relative to the root."""
    members = bytearray(len(group.members))
    for v in group.nodes:
        members[v] = group.members[v] and weights.side[v] == side
    return Group(group.nodes, members)


def _halves(weights: Weights, group: Group, child: int) -> tuple[Group, Group]:
    """The parts below the edge above ``child`` and beyond it."""
    below = {child}
    for v in group.nodes[1:]:
        if weights.parents[v] in below:
            below.add(v)
    parts = ([v for v in group.nodes if v in below], [v for v in group.nodes if v not in below])
    return tuple(Group(nodes, _only(group, nodes)) for nodes in parts)  # type: ignore[return-value]


def _only(group: Group, nodes: list[int]) -> bytearray:
    members = bytearray(len(group.members))
    for v in nodes:
        members[v] = group.members[v]
    return members
