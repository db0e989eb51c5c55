"""Neighbour joining (Saitou and Nei 1987), and contraction of its short edges.

Neighbour joining always returns a binary tree whose leaves are the observed variables. A
true tree with larger degrees therefore needs contraction; `best_contraction` finds the
best threshold *knowing the truth*, which is a reference for benchmarks, not a method.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from latenttree.engine.arrays import Floats, Ints
from latenttree.engine.kernels import kernel, subroutine
from latenttree.evaluation.baselines._shared import EdgeList, as_edge_list, check_distances
from latenttree.tree import Tree


def neighbor_joining(D: ArrayLike, names: Sequence[str] | None = None) -> Tree:
    """Return the neighbour-joining tree; negative lengths are set to zero.

    Parameters
    ----------
    D : (n_vars, n_vars) distances, finite and not negative.
    names : names of the variables; x0, x1, ... by default.

    See `neighbor_joining_edges` for the lengths with their signs.
    """
    distances, names = check_distances(D, names)
    edges, lengths = _joined_edges(distances)
    return Tree.build(names, edges, np.maximum(lengths, 0.0))


def neighbor_joining_edges(D: ArrayLike) -> EdgeList:
    """Return edges (2p - 3, 2) and signed lengths (2p - 3,) of the neighbour-joining tree.

    Observed nodes are 0..p-1; hidden nodes follow in the order in which they were made.
    """
    distances, _ = check_distances(D)
    return _joined_edges(distances)


def _joined_edges(distances: Floats) -> EdgeList:
    if len(distances) == 1:
        return as_edge_list([], [])
    if len(distances) == 2:
        return as_edge_list([(0, 1)], [float(distances[0, 1])])
    edges, lengths = _join(distances.copy())
    return edges, lengths


@subroutine
def _closest_pair(D: Floats, row_sum: Floats, n_active: int) -> tuple[int, int]:
    """Return the pair i < j that minimises Q(i, j) = (n - 2) D_ij - r_i - r_j."""
    best = np.inf
    best_i, best_j = 0, 1
    for i in range(n_active):
        for j in range(i + 1, n_active):
            q = (n_active - 2) * D[i, j] - row_sum[i] - row_sum[j]
            if q < best:
                best, best_i, best_j = q, i, j
    return best_i, best_j


@kernel
def _join(D: Floats) -> tuple[Ints, Floats]:
    """Join pairs until three nodes are left. `D` (p, p), p >= 3, is overwritten. O(p^3).

    The active nodes fill the leading rows: the joined node takes the row of the one
    partner, the last active node that of the other. With r the row sums and n active nodes,

        length(i, new) = D_ij / 2 + (r_i - r_j) / (2 (n - 2)),
        D(new, k)      = (D_ik + D_jk - D_ij) / 2.
    """
    n_vars = D.shape[0]
    edges = np.empty((2 * n_vars - 3, 2), dtype=np.int64)
    lengths = np.empty(2 * n_vars - 3, dtype=np.float64)
    node = np.arange(n_vars)
    n_edges = 0
    next_hidden = n_vars
    for n_active in range(n_vars, 3, -1):
        # Summed anew in each round: p^2 additions beside p^2 tests, and no drift.
        row_sum = np.array([D[i, :n_active].sum() for i in range(n_active)])
        i, j = _closest_pair(D, row_sum, n_active)
        d_ij = D[i, j]
        length_i = 0.5 * d_ij + (row_sum[i] - row_sum[j]) / (2 * (n_active - 2))
        for end, length in ((i, length_i), (j, d_ij - length_i)):
            edges[n_edges, 0] = node[end]
            edges[n_edges, 1] = next_hidden
            lengths[n_edges] = length
            n_edges += 1
        for k in range(n_active):
            D[i, k] = D[k, i] = 0.5 * (D[i, k] + D[j, k] - d_ij)
        D[i, i] = 0.0
        node[i] = next_hidden
        next_hidden += 1
        last = n_active - 1
        for k in range(n_active):
            D[j, k] = D[k, j] = D[last, k]
        D[j, j] = 0.0
        node[j] = node[last]
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        edges[n_edges, 0] = node[i]
        edges[n_edges, 1] = next_hidden
        lengths[n_edges] = 0.5 * (D[i, j] + D[i, k] - D[j, k])
        n_edges += 1
    return edges, lengths


def contract_short_edges(tree: Tree, threshold: float) -> Tree:
    """Contract every edge between two hidden nodes whose length is below `threshold`."""
    contractible = _hidden_edges(tree)
    return tree.contract(contractible[tree.lengths[contractible] < threshold]).canonical()


def best_contraction(tree: Tree, truth: Tree) -> tuple[Tree, float, float]:
    """Return (contracted tree, threshold, normalised RF) of the best threshold for `truth`.

    RF is that of `metrics.robinson_foulds(..., normalized=True)`. The split of an
    edge is true or false whatever else is contracted, so with lengths sorted, RF at every
    threshold is a cumulative sum; no tree is built but the last. Of equally good thresholds
    the lowest.
    """
    truth = truth.reorder(tree.observed_names)
    true_splits = {row.tobytes() for row in truth.splits()}
    is_true = np.array([row.tobytes() in true_splits for row in tree.splits()], dtype=bool)
    is_internal = np.zeros(tree.n_edges, dtype=bool)
    is_internal[tree.internal_edges()] = True
    n_true_internal = len(truth.internal_edges())
    # A pendant split differs where the truth has an observed node inside; it always stays.
    n_pendant = (~is_internal).sum() + truth.n_edges - n_true_internal
    n_pendant_wrong = n_pendant - 2 * (is_true & ~is_internal).sum()

    contractible = _hidden_edges(tree)
    order = contractible[np.argsort(tree.lengths[contractible], kind="stable")]
    # Entry c: what is left when the c shortest edges are contracted.
    n_right = (is_true & is_internal).sum() - np.concatenate(([0], np.cumsum(is_true[order])))
    n_splits = is_internal.sum() - np.arange(len(order) + 1)
    largest = n_splits + n_true_internal + n_pendant_wrong
    rf = (largest - 2 * n_right) / np.maximum(largest, 1)

    # Edges of one length go together: only the first of each run can be the shortest left.
    thresholds = np.append(tree.lengths[order], np.inf)
    possible = np.concatenate(([True], thresholds[1:] > thresholds[:-1]))
    best = int(np.argmin(np.where(possible, rf, np.inf)))
    return tree.contract(order[:best]).canonical(), float(thresholds[best]), float(rf[best])


def _hidden_edges(tree: Tree) -> Ints:
    """Return the edges whose two ends are hidden: their splits are internal."""
    return np.flatnonzero(tree.edges.min(axis=1, initial=tree.n_nodes) >= tree.n_observed)
