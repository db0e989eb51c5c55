"""Branches of a tree as features: the best linear predictor from the leaves behind every edge.

The branch behind directed edge `u -> v` is summarised by `f = sum_x alpha_x x`, the best linear
predictor of `v` from the leaves x behind it (belief propagation in the Gaussian model). Deep in the
tree f carries far more signal than any single leaf, and correlations between features need only
the correlations between leaves.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.distances.correlation_source import CorrelationSource
from latenttree.distances.correlations import correlation_block, cross_block, effective_pair_samples
from latenttree.distances.similarity import FEATURE_LEAVES
from latenttree.engine import parallel
from latenttree.engine.kernels import kernel, subroutine
from latenttree.structure.builder import Incidence, TreeBuilder

PERFECT = 1.0 - 1e-14
LEAST_VARIANCE = 0.25
UP, DOWN = range(2)

SUBTREE_SHARE, MIN_SUBTREE, N_TASKS = 128, 16, 32
"""Subtrees of up to 1 / SUBTREE_SHARE of the leaves, or MIN_SUBTREE, are done in parallel, in about
N_TASKS tasks."""

MIN_CHANGE = 1e-6
"""A feature that would change by less is not updated, nor are those computed from it: its sampling
error is far larger."""


class BranchFeatures(NamedTuple):
    """The feature of the branch behind each directed edge `u -> v` of a tree, one row each."""

    leaf: NDArray[np.int64]  # (2E, width) observed nodes x
    weight: NDArray[np.float64]  # (2E, width) alpha_x, scaled to unit variance
    leaf_load: NDArray[np.float64]  # (2E, width) correlation of x with v, from the lengths
    load: NDArray[np.float64]  # (2E,) correlation of the feature with v
    size: NDArray[np.int64]  # (2E,) leaves in use

    @classmethod
    def empty(cls, n_directed_edges: int, width: int = FEATURE_LEAVES) -> BranchFeatures:
        """Features without leaves."""
        shape = (n_directed_edges, width)
        return cls(
            np.zeros(shape, dtype=np.int64),
            np.zeros(shape),
            np.zeros(shape),
            np.zeros(n_directed_edges),
            np.zeros(n_directed_edges, dtype=np.int64),
        )


def branch_features(
    tree: TreeBuilder,
    incidence: Incidence,
    source: CorrelationSource,
    width: int = FEATURE_LEAVES,
    n_jobs: int = 1,
) -> BranchFeatures:
    """Features of all branches, of up to `width` leaves each. O(E width^2)."""
    features = BranchFeatures.empty(2 * len(tree.ends), width)
    changed = np.ones(len(tree.ends), dtype=np.bool_)
    update_features(features, tree, incidence, source, changed, n_jobs)
    return features


def update_features(
    features: BranchFeatures,
    tree: TreeBuilder,
    incidence: Incidence,
    source: CorrelationSource,
    changed: NDArray[np.bool_],
    n_jobs: int = 1,
) -> None:
    """Update features, in place, after the edges `changed` `(E,)` got other ends or lengths.

    One pass up and one pass down. Weights come from the tree's lengths, the scale to unit variance
    from the correlations: data that fit no tree have leaves that correlate more within a branch
    than the tree implies. A feature is computed again only if an edge or a feature that it depends
    on has changed. Small subtrees are done in parallel, the nodes above them after (up) or before
    (down)."""
    updated = np.zeros(len(features.size), dtype=np.bool_)
    _set_observed(incidence.tail, tree.n_observed, features, updated)
    most = max(MIN_SUBTREE, tree.n_observed // SUBTREE_SHARE)
    nodes, starts = _subtrees(incidence, tree.n_observed, most)
    length, n_subtrees = tree.length, len(starts) - 2

    def work(direction: int, start: int, stop: int) -> None:
        part = nodes[starts[start + 1] : starts[stop + 1]]
        _update(part, direction, incidence, length, source, changed, features, updated)

    for direction in (UP, DOWN):
        for top in (direction == DOWN, direction == UP):
            if top:
                work(direction, -1, 0)
            elif n_subtrees:
                parallel(partial(work, direction), n_subtrees, n_jobs, -(-n_subtrees // N_TASKS))


@kernel
def _subtrees(incidence, n_observed, most):  # type: ignore[no-untyped-def]
    """Hidden nodes, parents first within each part, and where each part starts: first the nodes
    with more than `most` leaves below, then each subtree that hangs from them. O(nodes)."""
    order, parent_edge, tail = incidence.order, incidence.parent_edge, incidence.tail
    part = np.zeros(len(parent_edge), dtype=np.int64)
    sizes = np.zeros(len(order) + 2, dtype=np.int64)
    n_parts = 1
    for v in order:
        if v < n_observed:
            continue
        d = parent_edge[v]
        if d >= 0 and incidence.n_behind[d ^ 1] <= most:
            part[v] = part[tail[d ^ 1]]
            if part[v] == 0:
                part[v] = n_parts
                n_parts += 1
        sizes[part[v] + 1] += 1
    for i in range(n_parts):
        sizes[i + 1] += sizes[i]
    starts = sizes[: n_parts + 1]
    place = starts.copy()
    nodes = np.empty(starts[-1], dtype=np.int64)
    for v in order:
        if v >= n_observed:
            nodes[place[part[v]]] = v
            place[part[v]] += 1
    return nodes, starts


@kernel
def _set_observed(tail, n_observed, features, updated):  # type: ignore[no-untyped-def]
    """Features of directed edges that lead to observed nodes, in place: the node itself."""
    for d in range(len(tail)):
        v = tail[d ^ 1]
        if 0 <= v < n_observed and (features.size[d] != 1 or features.leaf[d, 0] != v):
            features.leaf[d, 0] = v
            features.weight[d, :] = 0.0
            features.weight[d, 0] = 1.0
            features.leaf_load[d, 0] = 1.0
            features.load[d] = 1.0
            features.size[d] = 1
            updated[d] = True


class _Leaves(NamedTuple):
    """Leaves behind the branches of a node, and scratch space for a feature computed from them."""

    pull: NDArray[np.float64]  # (branches,) correlation of each branch with the node
    leaf: NDArray[np.int64]
    gain: NDArray[np.float64]  # weight before scaling
    load: NDArray[np.float64]  # correlation of the leaf with the node
    owner: NDArray[np.int64]  # the branch of a leaf
    key: NDArray[np.float64]  # contribution of a leaf to the feature's covariance with the node
    new: NDArray[np.float64]  # (2, width)
    block: NDArray[np.float64]  # (width, width)


@subroutine
def _rank_leaves(branches, skip, length, features, most, leaves):  # type: ignore[no-untyped-def]
    """Fill `leaves` with those behind `branches`, without directed edge `skip`; returns how many.

    Those with the largest contribution come first, at most `most` of them; if all fit into the
    width they stay in their order. A branch with correlation a, its `pull`, gets weight
    `a / (1 - a^2)`."""
    width = features.leaf.shape[1]
    leaf, weight, loads, size = features.leaf, features.weight, features.leaf_load, features.size
    ids, gain, load = leaves.leaf, leaves.gain, leaves.load
    owner, key = leaves.owner, leaves.key
    k = 0
    for i in range(len(branches)):
        d = branches[i]
        if d == skip:
            continue
        decay = np.exp(-length[d >> 1])
        a = features.load[d] * decay
        leaves.pull[i] = a
        g = a / (1 - a * a) if a < PERFECT else 0.0
        for q in range(size[d]):
            ids[k] = leaf[d, q]
            gain[k] = weight[d, q] * g
            load[k] = loads[d, q] * decay
            owner[k] = i
            key[k] = gain[k] * load[k]
            k += 1
    if k <= width:
        return k
    most = min(most, k)
    for q in range(most):
        best = q
        for t in range(q + 1, k):
            if key[t] > key[best]:
                best = t
        ids[q], ids[best] = ids[best], ids[q]
        gain[q], gain[best] = gain[best], gain[q]
        load[q], load[best] = load[best], load[q]
        owner[q], owner[best] = owner[best], owner[q]
        key[q], key[best] = key[best], key[q]
    return most


@subroutine
def _predictor_variance(branches, skip, pull):  # type: ignore[no-untyped-def]
    """Variance of `sum_i a_i / (1 - a_i^2) f_i` over branches but number `skip`, and the first
    branch at distance zero, or -1."""
    variance, lead, square = 0.0, 0.0, 0.0
    for i in range(len(branches)):
        if i == skip:
            continue
        a = pull[i]
        if a >= PERFECT:
            return 0.0, i
        g = a / (1 - a * a)
        variance += g * g
        lead += g * a
        square += (g * a) ** 2
    return variance + (lead * lead - square), -1


@subroutine
def _write(branches, skip, out, length, features, n, leaves, source):  # type: ignore[no-untyped-def]
    """Feature `out` of a hidden node from the first `n` leaves of its branches but number `skip`;
    returns whether it changed.

    Leaves beyond the width, which contribute least, are left out, and `load` is reduced to match:
    correlations with other branches shrink by the same factor. A branch at distance zero is the
    node itself, and the feature is that branch's alone. The loop stays whole: it reads and writes
    one row of five arrays."""
    leaf, weight, loads = features.leaf, features.weight, features.leaf_load
    new, block, owner = leaves.new, leaves.block, leaves.owner
    width = leaf.shape[1]
    variance, perfect = _predictor_variance(branches, skip, leaves.pull)
    keep = 0
    same = True
    total = 0.0
    if perfect >= 0:
        d = branches[perfect]
        decay = np.exp(-length[d >> 1])
        keep = features.size[d]
        for q in range(keep):
            same &= leaf[out, q] == leaf[d, q]
            leaf[out, q] = leaf[d, q]
            new[0, q], new[1, q] = weight[d, q], loads[d, q] * decay
    else:
        scale = 1 / np.sqrt(max(variance, 1e-300))
        for q in range(n):
            if owner[q] != skip and keep < width:
                same &= leaf[out, keep] == leaves.leaf[q]
                leaf[out, keep] = leaves.leaf[q]
                new[0, keep], new[1, keep] = leaves.gain[q] * scale, leaves.load[q]
                keep += 1
    correlation_block(source, leaf[out, :keep], block)
    variance = 0.0
    for q in range(keep):
        part = 0.5 * new[0, q]
        for t in range(q):
            part += new[0, t] * abs(block[q, t])
        variance += 2 * new[0, q] * part
        total += new[0, q] * new[1, q]
    scale = 1 / np.sqrt(max(variance, LEAST_VARIANCE))
    load = min(max(total * scale, 1e-12), 1.0)
    change = abs(load - features.load[out])
    for q in range(keep):
        new[0, q] *= scale
        change = max(change, abs(new[0, q] - weight[out, q]), abs(new[1, q] - loads[out, q]))
    if same and features.size[out] == keep and change <= MIN_CHANGE:
        return False
    for q in range(keep):
        weight[out, q], loads[out, q] = new[0, q], new[1, q]
    for q in range(keep, width):
        weight[out, q] = 0.0
    features.load[out] = load
    features.size[out] = keep
    return True


@kernel
def _update(nodes, direction, incidence, length, source, changed, features, updated):  # type: ignore[no-untyped-def]
    """Upward or downward pass over hidden nodes, parents first in `nodes`; marks in `updated` the
    directed edges whose feature changed. O(E width^2), and O(degree^2) at a node."""
    first, parent_edge = incidence.first, incidence.parent_edge
    width = features.leaf.shape[1]
    most = 1
    for v in nodes:
        most = max(most, first[v + 1] - first[v])
    room = most * width
    leaves = _Leaves(
        np.empty(most),
        np.empty(room, dtype=np.int64),
        np.empty(room),
        np.empty(room),
        np.empty(room, dtype=np.int64),
        np.empty(room),
        np.empty((2, width)),
        np.empty((width, width)),
    )
    for q in range(len(nodes)):
        v = nodes[len(nodes) - 1 - q] if direction == UP else nodes[q]
        branches = incidence.edge[first[v] : first[v + 1]]
        stale = 0
        for i in range(len(branches)):
            stale += updated[branches[i]] or changed[branches[i] >> 1]
        n = -1
        for i in range(len(branches)):
            # the feature of all branches of v but d, for the directed edge that leads to v
            d = branches[i]
            upward = d == parent_edge[v]
            if upward != (direction == UP) or stale == (updated[d] or changed[d >> 1]):
                continue
            if n < 0 and direction == UP:
                n = _rank_leaves(branches, d, length, features, width, leaves)
            elif n < 0:
                n = _rank_leaves(branches, np.int64(-1), length, features, 2 * width, leaves)
            updated[d ^ 1] = _write(branches, i, d ^ 1, length, features, n, leaves, source)


@subroutine
def feature_correlations(branches, features, source, n):  # type: ignore[no-untyped-def]
    """Correlations `(m, m)` between the features of m directed edges: `alpha^T |rho| beta`, and of
    the n samples how many are as good as Gaussian ones for the leaves of largest weight.
    O(m^2 width^2).

    Magnitudes, because they vary less than signed values where pairs are noise, and the bias is the
    same for all far branches: measured, this halves the error of balanced trees from few
    samples."""
    m, width = len(branches), features.leaf.shape[1]
    leaf, weight, size = features.leaf, features.weight, features.size
    block = np.empty((width, width))
    r = np.eye(m)
    for i in range(m):
        for j in range(i):
            r[i, j] = feature_correlation(branches[i], branches[j], features, source, block)
            r[j, i] = r[i, j]
    leading = np.empty(m, dtype=np.int64)
    for i in range(m):
        d, best = branches[i], 0
        for q in range(1, size[d]):
            if weight[d, q] > weight[d, best]:
                best = q
        leading[i] = leaf[d, best]
    return r, effective_pair_samples(source, n, leading)


@subroutine
def feature_correlation(a, b, features, source, block):  # type: ignore[no-untyped-def]
    """Correlation `alpha^T |rho| beta` of the features of two directed edges; `block` is working
    memory `(width, width)`."""
    leaf, weight, size = features.leaf, features.weight, features.size
    cross_block(source, leaf[a, : size[a]], leaf[b, : size[b]], block)
    total = 0.0
    for x in range(size[a]):
        part = 0.0
        for y in range(size[b]):
            part += weight[b, y] * abs(block[x, y])
        total += weight[a, x] * part
    return total


@subroutine
def signed_correlation(a, b, features, source):  # type: ignore[no-untyped-def]
    """Correlation `alpha^T rho beta` of the features of two directed edges, near zero if they are
    independent, and the largest magnitude of a correlation between single leaves."""
    leaf, weight, size = features.leaf, features.weight, features.size
    block = np.empty((size[a], size[b]))
    cross_block(source, leaf[a, : size[a]], leaf[b, : size[b]], block)
    total = 0.0
    strongest = 0.0
    for x in range(size[a]):
        for y in range(size[b]):
            total += weight[a, x] * weight[b, y] * block[x, y]
            strongest = max(strongest, abs(block[x, y]))
    return total, strongest
