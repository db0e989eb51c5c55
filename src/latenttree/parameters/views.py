"""Views of every hidden node: three branches, each represented by a short vector `(1, z)`.

Any function of one branch alone is independent of the other branches given the hidden node, so it
may serve as a view: the nearest observed variable of the branch, projected to the subspace in which
distances were measured, or, above the first levels, the message that belief propagation sends out
of the branch, which depends on all of its leaves. This file chooses the views, `features` computes
their values.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from latenttree.engine.arrays import Bools, Floats, Ints
from latenttree.engine.kernels import kernel, subroutine
from latenttree.tree import Tree


class Views(NamedTuple):
    """Triplets of views of the hidden nodes.

    Row `i` is a triplet of views of hidden node `n_observed + owner[i]`. The first `n_hidden` rows
    are the reference triplets, one for each node; a node with six or more branches has a second
    triplet, of the next three branches. View `v` is the observed node `source[v, 0]` where
    `source[v, 1]` is -1, else the message from `source[v, 0]` to `source[v, 1]`.
    """

    branch: Ints  # (rows, 3) neighbours of the hidden node whose branches the views represent
    view: Ints  # (rows, 3) numbers of the views
    source: Ints  # (n_views, 2)
    owner: Ints  # (rows,)


def choose_views(tree: Tree, n_directions: int, hidden: bool) -> Views:
    """The three most informative branches of every hidden node, then the next three if there are.

    Branches are ranked by their correlation with the node according to the lengths of the tree:
    that of the nearest observed node, or, with `hidden`, of the best combination of all leaves."""
    indptr, near, _ = tree.adjacency()
    strength, nearest = _branches(tree, n_directions, hidden)
    p, degree = tree.n_observed, np.diff(indptr)
    at = np.repeat(np.arange(tree.n_nodes), degree)
    order = np.lexsort((near, -strength, at))  # by node, then the most informative branch first
    wide = np.flatnonzero(degree >= 6)
    nodes = np.concatenate([np.arange(p, tree.n_nodes), wide[wide >= p]])
    first = indptr[nodes] + np.where(np.arange(len(nodes)) < tree.n_hidden, 0, 3)
    chosen = order[first[:, None] + np.arange(3)]
    branch = near[chosen]
    is_message = branch >= p if hidden else np.zeros(branch.shape, dtype=bool)
    source = np.stack(
        [np.where(is_message, branch, nearest[chosen]), np.where(is_message, nodes[:, None], -1)],
        axis=-1,
    ).reshape(-1, 2)
    _, where, which = np.unique(
        source @ [tree.n_nodes + 1, 1], return_index=True, return_inverse=True
    )
    by_place = np.argsort(where)
    number = np.argsort(by_place)  # views in the order of their first use
    return Views(branch, number[which].reshape(-1, 3), source[where[by_place]], nodes - p)


def only_of(views: Views, nodes: Bools) -> Views:
    """The reference triplets of the marked hidden nodes `(m,)` alone."""
    rows = np.flatnonzero(nodes)
    used, view = np.unique(views.view[rows], return_inverse=True)
    view = view.reshape(-1, 3)
    return Views(views.branch[rows], view, views.source[used], views.owner[rows])


def _branches(tree: Tree, n_directions: int, combined: bool) -> tuple[Floats, Ints]:
    """For every directed edge, in the order of `Tree.adjacency`: the correlation of the branch with
    the node, and the observed node of the branch that is nearest. O(n_nodes) for any degrees."""
    indptr, near, edge = tree.adjacency()
    decay = np.exp(-tree.lengths / max(n_directions, 1))[edge]
    by_edge = np.argsort(edge, kind="stable").reshape(-1, 2)
    back = np.empty_like(edge)  # the same edge from its other end
    back[by_edge] = by_edge[:, ::-1]
    parents, order = tree.rooted(0)
    return _measured(indptr, near, back, decay, parents, order, tree.n_observed, combined)


@kernel
def _measured(indptr, near, back, decay, parents, order, n_observed, combined):  # type: ignore[no-untyped-def]
    """Strength and nearest observed node of every branch: from the leaves up, then from the root
    down."""
    strength, nearest = np.zeros(len(near)), np.full(len(near), -1)
    n = len(order)
    for t in range(1, 2 * n):
        up = t < n
        _pass_on(order[n - t] if up else order[t - n], up, indptr, near, back, decay, parents,
                 n_observed, combined, strength, nearest)  # fmt: skip
    return strength, nearest


@subroutine
def _pass_on(  # type: ignore[no-untyped-def]
    u, up, indptr, near, back, decay, parents, n_observed, combined, strength, nearest
):
    """The branch that `u` is to its parent (`up`) or to its children, from all its other branches;
    written to `strength` and `nearest`."""
    best, second, total = -1, -1, 0.0
    for i in range(indptr[u], indptr[u + 1]):
        if up and near[i] == parents[u]:
            continue
        total += _signal(strength[i])
        if best < 0 or strength[i] > strength[best]:
            best, second = i, best
        elif second < 0 or strength[i] > strength[second]:
            second = i
    for i in range(indptr[u], indptr[u + 1]):
        if up != (near[i] == parents[u]):
            continue
        if u < n_observed:
            load, nearest[back[i]] = 1.0, u
        else:
            used = second if best == i else best
            nearest[back[i]] = nearest[used]
            rest = total if up else total - _signal(strength[i])
            rest = max(rest, _signal(strength[used]))
            load = np.sqrt(rest / (1 + rest)) if combined else strength[used]
        strength[back[i]] = load * decay[i]


@subroutine
def _signal(correlation):  # type: ignore[no-untyped-def]
    """`r^2 / (1 - r^2)`, which adds up over branches that are independent given the node."""
    square = min(correlation, 1 - 1e-6) ** 2
    return square / (1 - square)
