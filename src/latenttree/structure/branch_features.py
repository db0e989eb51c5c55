"""Branches of a tree as features: the best linear summary of the leaves behind every edge.

The branch seen from `u` through its neighbour `v` is summarised by `f = sum_x alpha_x x`, the best
linear predictor of `v` from the leaves behind it (belief propagation, as if everything were
Gaussian). Deep in the tree `f` carries far more signal than any single leaf, and correlations
between features need nothing but the correlations between leaves.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.distances.correlations import Source, cross, gather
from latenttree.distances.similarity import WIDTH
from latenttree.engine import parallel
from latenttree.engine.kernels import kernel, subroutine
from latenttree.structure.flat_tree import Around, Flat

PERFECT = 1.0 - 1e-14
LEAST_VARIANCE = 0.25
UP, DOWN = range(2)
PARTS, LEAST, PIECES = 128, 16, 32
"""Subtrees of at most a share of the leaves, or so few, are worked on side by side."""

STILL = 1e-6
"""A feature whose numbers would move less than this stays as it is, and so do those made of it: the
samples say less than that about any of them."""


class Features(NamedTuple):
    """One row for each slot (directed edge) of a tree."""

    leaf: NDArray[np.int64]  # (slots, width) observed nodes
    weight: NDArray[np.float64]  # (slots, width) alpha_x, scaled to unit variance
    share: NDArray[np.float64]  # (slots, width) correlation of x with the node v, by the lengths
    load: NDArray[np.float64]  # (slots,) correlation of the feature with the node v
    size: NDArray[np.int64]  # (slots,) leaves in use

    @classmethod
    def none(cls, n_slots: int, width: int = WIDTH) -> Features:
        """Rows that are still to be filled."""
        wide = (n_slots, width)
        return cls(
            np.zeros(wide, dtype=np.int64),
            np.zeros(wide),
            np.zeros(wide),
            np.zeros(n_slots),
            np.zeros(n_slots, dtype=np.int64),
        )


def branch_features(
    flat: Flat, around: Around, source: Source, width: int = WIDTH, n_jobs: int = 1
) -> Features:
    """Features of all branches; up to `width` leaves in each."""
    features = Features.none(2 * len(flat.ends), width)
    moved = np.ones(len(flat.ends), dtype=np.bool_)
    update_features(features, flat, around, source, moved, n_jobs)
    return features


def update_features(
    features: Features,
    flat: Flat,
    around: Around,
    source: Source,
    moved: NDArray[np.bool_],
    n_jobs: int = 1,
) -> None:
    """Make features, in place, those of a tree in which some edges are new or have another length.

    One pass up and one pass down. Weights come from the tree's lengths, the scale to unit variance
    from the affinities: where real data fit no tree, leaves of a branch share more than the tree
    says. A feature is computed anew only if an edge or a feature that it is made of has `moved`.
    Small subtrees are done in parallel, what is above them before (down) or after (up)."""
    tails = flat.ends.ravel()
    fresh = np.zeros(len(features.size), dtype=np.bool_)
    _observed(tails, flat.n_observed, features, fresh)
    nodes, starts = _subtrees(around, tails, flat.n_observed, max(LEAST, flat.n_observed // PARTS))

    def work(way: int, start: int, stop: int) -> None:
        part = nodes[starts[start + 1] : starts[stop + 1]]
        _update(part, way, around, length, flat.n_observed, source, moved, features, fresh)

    length, n_trees = flat.length, len(starts) - 2
    for way in (UP, DOWN):
        for top in (way == DOWN, way == UP):
            if top:
                work(way, -1, 0)
            elif n_trees:
                parallel(partial(work, way), n_trees, n_jobs, -(-n_trees // PIECES))


@kernel
def _subtrees(around, tails, n_observed, most):  # type: ignore[no-untyped-def]
    """Hidden nodes, parents first, subtree by subtree: first those with more than `most` leaves
    below, then the trees that hang from them; and where each part starts."""
    order, up = around.order, around.up
    part = np.zeros(len(up), dtype=np.int64)
    sizes = np.zeros(len(order) + 2, dtype=np.int64)
    n_parts = 1
    for v in order:
        if v < n_observed:
            continue
        s = up[v]
        if s >= 0 and around.behind[s ^ 1] <= most:
            part[v] = part[tails[s ^ 1]]
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
def _observed(tails, n_observed, features, fresh):  # type: ignore[no-untyped-def]
    """Features of slots that lead to observed nodes."""
    for s in range(len(tails)):
        v = tails[s ^ 1]
        if 0 <= v < n_observed and (features.size[s] != 1 or features.leaf[s, 0] != v):
            features.leaf[s, 0] = v
            features.weight[s, :] = 0.0
            features.weight[s, 0] = 1.0
            features.share[s, 0] = 1.0
            features.load[s] = 1.0
            features.size[s] = 1
            fresh[s] = True


class _Ranked(NamedTuple):
    """Leaves behind the branches of a node, and scratch for a feature made of them."""

    pull: NDArray[np.float64]  # (branches,) correlation of each branch with the node
    leaf: NDArray[np.int64]
    gain: NDArray[np.float64]  # weight before scaling
    share: NDArray[np.float64]
    owner: NDArray[np.int64]  # the branch of a leaf
    key: NDArray[np.float64]  # what a leaf adds
    new: NDArray[np.float64]  # (2, width)
    block: NDArray[np.float64]  # (width, width)


@subroutine
def _rank(slots, skip, length, features, most, ranked):  # type: ignore[no-untyped-def]
    """The leaves behind `slots`, without slot `skip`, that add most to a feature of their node
    first: how many there are, at most `most`. All of them as they come where they are no more than
    the width.

    A branch with correlation a, its `pull`, gets weight a / (1 - a^2)."""
    width = features.leaf.shape[1]
    leaf, weight, shares, size = features.leaf, features.weight, features.share, features.size
    ids, gain, share = ranked.leaf, ranked.gain, ranked.share
    owner, key = ranked.owner, ranked.key
    k = 0
    for i in range(len(slots)):
        t = slots[i]
        if t == skip:
            continue
        decay = np.exp(-length[t >> 1])
        a = features.load[t] * decay
        ranked.pull[i] = a
        g = a / (1 - a * a) if a < PERFECT else 0.0
        for q in range(size[t]):
            ids[k] = leaf[t, q]
            gain[k] = weight[t, q] * g
            share[k] = shares[t, q] * decay
            owner[k] = i
            key[k] = gain[k] * share[k]
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
        share[q], share[best] = share[best], share[q]
        owner[q], owner[best] = owner[best], owner[q]
        key[q], key[best] = key[best], key[q]
    return most


@subroutine
def _write(slots, skip, out, length, features, n, ranked, source):  # type: ignore[no-untyped-def]
    """Feature `out` of a hidden node from the `n` ranked leaves of its branches but number `skip`;
    whether it moved.

    Leaves beyond the width, the ones that add least, are left out, and `load` is what remains:
    correlations with other branches shrink by just that factor. A branch at distance zero is the
    node itself, and stands alone."""
    leaf, weight, shares = features.leaf, features.weight, features.share
    new, block, owner = ranked.new, ranked.block, ranked.owner
    width = leaf.shape[1]
    variance, lead, square = 0.0, 0.0, 0.0
    perfect = -1
    for i in range(len(slots)):
        if i == skip:
            continue
        a = ranked.pull[i]
        if a >= PERFECT:
            perfect = i
            break
        g = a / (1 - a * a)
        variance += g * g
        lead += g * a
        square += (g * a) ** 2
    variance += lead * lead - square
    keep = 0
    same = True
    total = 0.0
    if perfect >= 0:
        t = slots[perfect]
        decay = np.exp(-length[t >> 1])
        keep = features.size[t]
        for q in range(keep):
            same &= leaf[out, q] == leaf[t, q]
            leaf[out, q] = leaf[t, q]
            new[0, q], new[1, q] = weight[t, q], shares[t, q] * decay
    else:
        scale = 1 / np.sqrt(max(variance, 1e-300))
        for q in range(n):
            if owner[q] != skip and keep < width:
                same &= leaf[out, keep] == ranked.leaf[q]
                leaf[out, keep] = ranked.leaf[q]
                new[0, keep], new[1, keep] = ranked.gain[q] * scale, ranked.share[q]
                keep += 1
    gather(source, leaf[out, :keep], block)
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
        change = max(change, abs(new[0, q] - weight[out, q]), abs(new[1, q] - shares[out, q]))
    if same and features.size[out] == keep and change <= STILL:
        return False
    for q in range(keep):
        weight[out, q], shares[out, q] = new[0, q], new[1, q]
    for q in range(keep, width):
        weight[out, q] = 0.0
    features.load[out] = load
    features.size[out] = keep
    return True


@kernel
def _update(nodes, way, around, length, n_observed, source, moved, features, fresh):  # type: ignore[no-untyped-def]
    """Upward or downward pass over hidden nodes, parents first in `nodes`; `fresh` are the slots
    whose feature moved. O(slots x width^2), and O(degree^2) at a node."""
    first, up = around.first, around.up
    width = features.leaf.shape[1]
    most = 1
    for v in nodes:
        most = max(most, first[v + 1] - first[v])
    room = most * width
    ranked = _Ranked(
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
        v = nodes[len(nodes) - 1 - q] if way == UP else nodes[q]
        slots = around.slot[first[v] : first[v + 1]]
        stale = 0
        for i in range(len(slots)):
            stale += fresh[slots[i]] or moved[slots[i] >> 1]
        n = -1
        for i in range(len(slots)):
            # v and all its branches but s, as the node behind s sees them
            s = slots[i]
            if (s == up[v]) != (way == UP) or stale == (fresh[s] or moved[s >> 1]):
                continue
            if n < 0 and way == UP:
                n = _rank(slots, s, length, features, width, ranked)
            elif n < 0:
                n = _rank(slots, np.int64(-1), length, features, 2 * width, ranked)
            fresh[s ^ 1] = _write(slots, i, s ^ 1, length, features, n, ranked, source)


@kernel
def star_correlations(slots, features, source):  # type: ignore[no-untyped-def]
    """Correlations `(m, m)` between the features of `m` slots: `alpha^T |rho| beta`.

    Folded: where pairs are noise, magnitudes vary less than signed values, and what they add is
    the same for all far branches. Measured, this halves the error of balanced trees from few
    samples."""
    m, width = len(slots), features.leaf.shape[1]
    leaf, weight, size = features.leaf, features.weight, features.size
    block = np.empty((width, width))
    r = np.eye(m)
    for i in range(m):
        a = slots[i]
        for j in range(i):
            b = slots[j]
            cross(source, leaf[a, : size[a]], leaf[b, : size[b]], block)
            total = 0.0
            for x in range(size[a]):
                part = 0.0
                for y in range(size[b]):
                    part += weight[b, y] * abs(block[x, y])
                total += weight[a, x] * part
            r[i, j] = total
            r[j, i] = total
    return r


@kernel
def signed_correlation(a, b, features, source):  # type: ignore[no-untyped-def]
    """Correlation `alpha^T rho beta` of two slots' features, about zero if they are independent,
    and the strongest correlation of single leaves."""
    leaf, weight, size = features.leaf, features.weight, features.size
    block = np.empty((size[a], size[b]))
    cross(source, leaf[a, : size[a]], leaf[b, : size[b]], block)
    total = 0.0
    strongest = 0.0
    for x in range(size[a]):
        for y in range(size[b]):
            total += weight[a, x] * weight[b, y] * block[x, y]
            strongest = max(strongest, abs(block[x, y]))
    return total, strongest


@kernel
def leading(slots, features):  # type: ignore[no-untyped-def]
    """The leaf of largest weight in each slot's feature."""
    found = np.empty(len(slots), dtype=np.int64)
    for i in range(len(slots)):
        s = slots[i]
        best = 0
        for q in range(1, features.size[s]):
            if features.weight[s, q] > features.weight[s, best]:
                best = q
        found[i] = features.leaf[s, best]
    return found
