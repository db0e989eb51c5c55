"""How far an estimated tree is from the true one.

All comparisons match observed nodes by name and do not depend on the names of hidden nodes.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.tree import Tree


class SplitErrors(NamedTuple):
    """Splits of the true tree that the estimate lacks, and splits that only it has."""

    missing: int
    false: int


def robinson_foulds(a: Tree, b: Tree, normalized: bool = False) -> float:
    """Number of splits that one of the two trees has and the other has not.

    The split of an edge is the bipartition of all observed nodes, internal ones too, that
    its removal leaves. Pendant splits ``{i} | rest`` are compared as well: all trees in
    which ``i`` is a leaf have it, so between trees whose observed nodes are all leaves this
    is the ordinary Robinson-Foulds distance; where ``i`` is internal it is absent, and that
    counts. The distance is 0 exactly when the topologies are the same.

    With ``normalized``, divided by the number of splits that could differ: those with at
    least two observed nodes on both sides in either tree, and the pendant ones that do
    differ; 0 when there are none. ``O(n log n)``.
    """
    shared, pendant_shared = _compare(a, b)
    distance = a.n_edges + b.n_edges - 2 * shared
    if not normalized:
        return distance
    largest = a.n_edges + b.n_edges - 2 * pendant_shared
    return distance / largest if largest else 0.0


def split_errors(truth: Tree, estimate: Tree) -> SplitErrors:
    """Counts of missing and of false splits; they sum to the Robinson-Foulds distance."""
    shared = _compare(truth, estimate).shared
    return SplitErrors(truth.n_edges - shared, estimate.n_edges - shared)


def structure_error(truth: Tree, estimate: Tree) -> float:
    """The paper's structure recovery error, in [0, 1].

    ``mean_i min_j |Ghat_i \\ G_j| / |Ghat_i|`` over the groups ``Ghat`` of the estimate and
    ``G`` of the truth, where a group is the set of observed neighbours of one hidden node.
    It does not see a true group that was cut in pieces, nor anything deeper in the tree: for
    that use `robinson_foulds`. Without groups in the estimate it is 0 if the truth has none
    either, else 1.
    """
    _check_names(truth, estimate)
    groups, true_groups = _groups(estimate), _groups(truth)
    if not groups or not true_groups:
        return float(bool(groups) != bool(true_groups))
    member_of: dict[str, list[int]] = {name: [] for name in truth.observed_names}
    for j, group in enumerate(true_groups):
        for name in group:
            member_of[name].append(j)
    overlaps = [Counter(j for name in group for j in member_of[name]) for group in groups]
    errors = [
        1 - max(overlap.values(), default=0) / len(group)
        for group, overlap in zip(groups, overlaps, strict=True)
    ]
    return float(np.mean(errors))


def group_rand_index(a: Tree, b: Tree) -> float:
    """Adjusted Rand index of the groups of observed nodes around hidden nodes; 1 is best.

    An observed node belongs to its hidden neighbour; if it has several, to the first in
    canonical order with the names sorted; if it has none, to a group of its own.
    """
    from sklearn.metrics import adjusted_rand_score

    _check_names(a, b)
    names = sorted(a.observed_names)
    labels = [_group_labels(tree.reorder(names)) for tree in (a, b)]
    return float(adjusted_rand_score(*labels))


class _Comparison(NamedTuple):
    shared: int  # splits in both trees
    pendant_shared: int  # of these, with one observed node on a side


def _compare(a: Tree, b: Tree) -> _Comparison:
    """Count shared splits exactly, in linear time after numbering (Day's algorithm).

    Number the observed nodes depth first in ``a``, hung from node 0. The nodes below an
    edge of ``a`` then are an interval, and an edge of ``b`` has the same split if and only
    if the nodes below it fill one of those intervals: largest - smallest + 1 = count.
    """
    _check_names(a, b)
    p = a.n_observed
    b = b.reorder(a.observed_names)
    place = _depth_first_places(a)
    low_a, high_a, _ = _ranges(a, place)
    low_b, high_b, size_b = _ranges(b, place)
    intervals = low_a * p + high_a
    is_shared = (high_b - low_b + 1 == size_b) & np.isin(low_b * p + high_b, intervals)
    is_pendant = (size_b == 1) | (size_b == p - 1)
    return _Comparison(int(is_shared.sum()), int((is_shared & is_pendant).sum()))


def _depth_first_places(tree: Tree) -> list[int]:
    """Position of each observed node in a depth-first order from node 0."""
    parents, order = (a.tolist() for a in tree.rooted(0))
    children: list[list[int]] = [[] for _ in range(tree.n_nodes)]
    for v in order[1:]:
        children[parents[v]].append(v)
    places, stack, n_placed = [0] * tree.n_observed, [0], 0
    while stack:
        v = stack.pop()
        if v < tree.n_observed:
            places[v] = n_placed
            n_placed += 1
        stack.extend(children[v])
    return places


def _ranges(tree: Tree, place: list[int]) -> NDArray[np.int64]:
    """Smallest and largest place, and number, of observed nodes below each edge: ``(3, E)``."""
    parents, order = (a.tolist() for a in tree.rooted(0))
    p, n_hidden = tree.n_observed, tree.n_hidden
    low, high = place + [p] * n_hidden, place + [-1] * n_hidden
    size = [1] * p + [0] * n_hidden
    for v in reversed(order[1:]):
        u = parents[v]
        low[u] = min(low[u], low[v])
        high[u] = max(high[u], high[v])
        size[u] += size[v]
    return np.array([low, high, size], dtype=np.int64)[:, order[1:]]


def _groups(tree: Tree) -> list[list[str]]:
    """Observed neighbours of each hidden node that has any."""
    p = tree.n_observed
    around = (tree.neighbors(h) for h in range(p, tree.n_nodes))
    groups = ([tree.names[v] for v in near.tolist() if v < p] for near in around)
    return [group for group in groups if group]


def _group_labels(tree: Tree) -> NDArray[np.int64]:
    """The first hidden neighbour of each observed node, or the node itself."""
    p = tree.n_observed
    near = (tree.neighbors(v) for v in range(p))
    return np.array([next((u for u in us.tolist() if u >= p), v) for v, us in enumerate(near)])


def _check_names(a: Tree, b: Tree) -> None:
    only_a = sorted(set(a.observed_names) - set(b.observed_names))
    only_b = sorted(set(b.observed_names) - set(a.observed_names))
    if only_a or only_b:
        raise ValueError(
            f"the trees have different observed nodes: only the first has {only_a[:5]} "
            f"({len(only_a)}), only the second has {only_b[:5]} ({len(only_b)}); "
            "compare trees over the same names"
        )
