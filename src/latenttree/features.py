"""Branches of a tree as features: the best linear summary of the leaves behind every edge.

The branch seen from `u` through its neighbour `v` is summarised by `f = sum_x alpha_x x`, the best
linear predictor of `v` from the leaves behind it (belief propagation, as if everything were
Gaussian). Deep in the tree `f` carries far more signal than any single leaf, and correlations
between features need nothing but the correlations between leaves.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from latenttree.affinity import WIDTH
from latenttree.correlations import Source, correlation
from latenttree.wiring import Slots, Wiring

PERFECT = 1.0 - 1e-14
LEAST_VARIANCE = 0.25


class Features(NamedTuple):
    """One row for each slot (directed edge) of a wiring."""

    slots: Slots
    leaf: NDArray[np.int64]  # (slots, width) observed nodes
    weight: NDArray[np.float64]  # (slots, width) alpha_x, scaled to unit variance
    load: NDArray[np.float64]  # (slots,) correlation of the feature with the node v
    size: NDArray[np.int64]  # (slots,) leaves in use

    def leading(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """The leaf of largest weight in each slot's feature."""
        best = self.weight[slots].argmax(axis=1)
        return np.asarray(self.leaf[slots, best])


def branch_features(wiring: Wiring, source: Source, width: int = WIDTH) -> Features:
    """Features of all branches, by one pass up and one pass down; up to `width` leaves in each.

    Weights come from the tree's lengths, the scale to unit variance from the affinities:
    where real data fit no tree, leaves of a branch share more than the tree says."""
    s = wiring.slots()
    found: Any = _all_features(
        s.indptr, s.nbr, s.length, s.back, s.order, s.parent_slot, wiring.n_observed, source, width
    )
    return Features(s, *found)


@njit(cache=True, nogil=True)
def _combine(slots, lengths, n_slots, leaf, weight, share, load, size, out, source, width):  # type: ignore[no-untyped-def]
    """Feature `out` of a hidden node from the features of `slots[:n_slots]` that leave it.

    A branch with correlation a gets weight a / (1 - a^2); `share` is each leaf's correlation with
    the node by the lengths. Leaves beyond `width`, the ones that add least, are left out, and
    `load` is what remains: correlations with other branches shrink by just that factor.
    """
    count = 0
    variance = 0.0
    lead = 0.0
    square = 0.0
    perfect = -1
    for s in range(n_slots):
        count += size[slots[s]]
        a = load[slots[s]] * np.exp(-lengths[s])
        if a >= PERFECT:
            perfect = s
            break
        g = a / (1 - a * a)
        variance += g * g
        lead += g * a
        square += (g * a) ** 2
    variance += lead * lead - square
    if perfect >= 0:
        count = size[slots[perfect]]
    ids = np.empty(count, dtype=np.int64)
    w = np.empty(count)
    c = np.empty(count)
    k = 0
    for s in range(n_slots):
        if perfect >= 0 and s != perfect:
            continue
        e = slots[s]
        decay = np.exp(-lengths[s])
        a = load[e] * decay
        g = 1.0 if perfect >= 0 else a / (1 - a * a) / np.sqrt(max(variance, 1e-300))
        for q in range(size[e]):
            ids[k] = leaf[e, q]
            w[k] = weight[e, q] * g
            c[k] = share[e, q] * decay
            k += 1
    keep = min(k, width)
    total = 0.0
    for q in range(keep):
        best = q
        if k > width:
            for t in range(q + 1, k):
                if w[t] * c[t] > w[best] * c[best]:
                    best = t
        leaf[out, q], weight[out, q], share[out, q] = ids[best], w[best], c[best]
        total += w[best] * c[best]
        ids[best], w[best], c[best] = ids[q], w[q], c[q]
    size[out] = keep
    variance = 0.0
    for q in range(keep):
        x = leaf[out, q]
        part = 0.5 * weight[out, q]
        for t in range(q):
            part += weight[out, t] * abs(correlation(source, x, leaf[out, t]))
        variance += 2 * weight[out, q] * part
    scale = 1 / np.sqrt(max(variance, LEAST_VARIANCE))
    for q in range(keep):
        weight[out, q] *= scale
    load[out] = min(max(total * scale, 1e-12), 1.0)


@njit(cache=True, nogil=True)
def _all_features(indptr, nbr, length, back, order, parent_slot, n_observed, source, width):  # type: ignore[no-untyped-def]
    """Upward, then downward pass over all slots. O(sum of degree^2 x width)."""
    n_slots = len(nbr)
    leaf = np.zeros((n_slots, width), dtype=np.int64)
    weight = np.zeros((n_slots, width))
    share = np.zeros((n_slots, width))
    load = np.zeros(n_slots)
    size = np.zeros(n_slots, dtype=np.int64)
    for e in range(n_slots):
        if nbr[e] < n_observed:
            leaf[e, 0] = nbr[e]
            weight[e, 0] = 1.0
            share[e, 0] = 1.0
            load[e] = 1.0
            size[e] = 1
    slots = np.empty(len(indptr), dtype=np.int64)
    lens = np.empty(len(indptr))
    for q in range(len(order) - 1, -1, -1):
        v = order[q]
        up = parent_slot[v]
        if up < 0 or v < n_observed:
            continue
        k = 0
        for s in range(indptr[v], indptr[v + 1]):
            if s != up:
                slots[k] = s
                lens[k] = length[s]
                k += 1
        _combine(slots, lens, k, leaf, weight, share, load, size, back[up], source, width)
    for q in range(len(order)):
        v = order[q]
        if v < n_observed:
            continue
        for s in range(indptr[v], indptr[v + 1]):
            if s == parent_slot[v]:
                continue
            # v and all its branches but s, as the child behind s sees them
            k = 0
            for t in range(indptr[v], indptr[v + 1]):
                if t != s:
                    slots[k] = t
                    lens[k] = length[t]
                    k += 1
            _combine(slots, lens, k, leaf, weight, share, load, size, back[s], source, width)
    return leaf, weight, load, size


@njit(cache=True, nogil=True)
def star_correlations(slots, leaf, weight, size, source):  # type: ignore[no-untyped-def]
    """Correlations `(m, m)` between the features of `m` slots: `alpha^T |rho| beta`.

    Folded: where pairs are noise, magnitudes vary less than signed values, and what they add is
    the same for all far branches. Measured, this halves the error of balanced trees from few
    samples."""
    m = len(slots)
    r = np.eye(m)
    for i in range(m):
        for j in range(i):
            a, b = slots[i], slots[j]
            total = 0.0
            for x in range(size[a]):
                part = 0.0
                for y in range(size[b]):
                    part += weight[b, y] * abs(correlation(source, leaf[a, x], leaf[b, y]))
                total += weight[a, x] * part
            r[i, j] = total
            r[j, i] = total
    return r


@njit(cache=True, nogil=True)
def signed_correlation(a, b, leaf, weight, size, source):  # type: ignore[no-untyped-def]
    """Correlation `alpha^T rho beta` of two slots' features, about zero if they are independent,
    and the strongest correlation of single leaves."""
    total = 0.0
    strongest = 0.0
    for x in range(size[a]):
        for y in range(size[b]):
            rho = correlation(source, leaf[a, x], leaf[b, y])
            total += weight[a, x] * weight[b, y] * rho
            strongest = max(strongest, abs(rho))
    return total, strongest


@njit(cache=True, nogil=True)
def direct_correlations(v, slots, leaf, weight, size, source):  # type: ignore[no-untyped-def]
    """Correlations `(m,)` of the observed node v with the features of `m` slots, folded."""
    r = np.zeros(len(slots))
    for i in range(len(slots)):
        for x in range(size[slots[i]]):
            r[i] += weight[slots[i], x] * abs(correlation(source, v, leaf[slots[i], x]))
    return r
