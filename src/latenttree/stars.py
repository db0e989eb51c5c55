"""One star of branches -> a binary tree, by joining the surest pair first.

A star is a region of the tree cut open: `m` branches meet in it, each represented by one feature of
unit variance. All that is known is the `(m, m)` matrix of correlations between features, estimated
from `n` samples, so `Var(-log r) = (1 - r^2)^2 / (n r^2)`.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def log_distances(r, n):  # type: ignore[no-untyped-def]
    """Distances `-log r` and their variances; correlations below half a standard error are lifted
    to it, so that pure noise is a far distance with a large variance."""
    m = r.shape[0]
    d = np.zeros((m, m))
    v = np.zeros((m, m))
    for i in range(m):
        for j in range(m):
            if i != j:
                d[i, j], v[i, j] = _log_distance(r[i, j], n)
    return d, v


@njit(cache=True, nogil=True)
def _log_distance(x, n):  # type: ignore[no-untyped-def]
    x = min(max(x, 0.5 / np.sqrt(n)), 1.0)
    return -np.log(x), ((1 - x * x) ** 2 + 1e-12) / (n * x * x)


@njit(cache=True, nogil=True)
def join(r, n, caution, flat):  # type: ignore[no-untyped-def]
    """Join the features of a star two by two, surest pair first.

    Pair (i, j) with parent u is judged by `Q_ij = sum_k w_k d(k, u)`, the weighted distance of all
    branches from u, which over an additive tree is largest for a true pair of siblings whatever the
    weights `w_k > 0` (the criterion of unweighted neighbour joining, Gascuel 1997). Weights are
    mean squared correlations, because a far branch carries that much less information (`flat`: all
    equal, for exact distances, where a far branch is as good as a near one); `caution` standard
    errors are taken off `Q`, so that noisy pairs wait until nothing surer is left.
    The parent's feature is the best linear predictor from its two children: weights a / (1 - a^2).

    Returns edges `(2m - 3, 2)` over leaves 0..m-1 and hidden m..2m-3, and lengths (clipped at 0).
    O(m^3).
    """
    m = r.shape[0]
    d, v = log_distances(r, n)
    square = np.empty((m, m))
    for i in range(m):
        for j in range(m):
            square[i, j] = np.exp(-2 * d[i, j])
    c = r.copy()
    node = np.arange(m)  # node of the tree that a row stands for
    gain = np.ones(m)  # correlation of a row's feature with its node
    rows = np.arange(m)  # rows still to be joined
    edges = np.empty((max(2 * m - 3, 1), 2), dtype=np.int64)
    lengths = np.zeros(max(2 * m - 3, 1))
    fresh, n_edges, n_rows = m, 0, m
    while n_rows > 3:
        bi, bj = _surest_pair(d, v, square, rows[:n_rows], caution, flat)
        ai, aj = _halves(bi, bj, d, v, rows[:n_rows])
        wi, wj, g = combine(np.exp(-ai), np.exp(-aj))
        for row, half in ((bi, ai), (bj, aj)):
            edges[n_edges, 0] = node[row]
            edges[n_edges, 1] = fresh
            lengths[n_edges] = max(half + np.log(gain[row]), 0.0)
            n_edges += 1
        node[bi] = fresh
        gain[bi] = g
        fresh += 1
        left = 0
        for k in rows[:n_rows]:
            if k != bj:
                rows[left] = k
                left += 1
        n_rows = left
        for k in rows[:n_rows]:
            if k != bi:
                x = wi * c[bi, k] + wj * c[bj, k]
                c[bi, k] = x
                c[k, bi] = x
                d[bi, k], v[bi, k] = _log_distance(x, n)
                d[k, bi], v[k, bi] = d[bi, k], v[bi, k]
                square[bi, k] = np.exp(-2 * d[bi, k])
                square[k, bi] = square[bi, k]
    if n_rows == 3:
        for s in range(3):
            i, j, k = rows[s], rows[(s + 1) % 3], rows[(s + 2) % 3]
            edges[n_edges, 0] = node[i]
            edges[n_edges, 1] = fresh
            half = 0.5 * (d[i, j] + d[i, k] - d[j, k])
            lengths[n_edges] = max(half + np.log(gain[i]), 0.0)
            n_edges += 1
    elif n_rows == 2:
        edges[0, 0], edges[0, 1] = node[rows[0]], node[rows[1]]
        lengths[0] = d[rows[0], rows[1]]
        n_edges = 1
    return edges[:n_edges], lengths[:n_edges]


@njit(cache=True, nogil=True)
def _surest_pair(d, v, square, rows, caution, flat):  # type: ignore[no-untyped-def]
    """The pair of rows with the largest `Q - caution * se(Q)`. O(m^2)."""
    m = len(rows)
    weight = np.ones(m)
    top = 1.0 if flat else 0.0
    if not flat:
        for a in range(m):
            weight[a] = 0.0
            for b in range(m):
                if a != b:
                    weight[a] += square[rows[a], rows[b]]
            top = max(top, weight[a])
    all_weight = 0.0
    for a in range(m):
        weight[a] = max(weight[a] / top, 1e-200)
        all_weight += weight[a]
    total = np.zeros(m)
    noise = np.zeros(m)
    for a in range(m):
        for b in range(m):
            if a != b:
                total[a] += weight[b] * d[rows[a], rows[b]]
                noise[a] += weight[b] ** 2 * v[rows[a], rows[b]]
    best = -np.inf
    bi, bj = rows[0], rows[1]
    for a in range(m):
        for b in range(a):
            dij, vij = d[rows[a], rows[b]], v[rows[a], rows[b]]
            rest = all_weight - weight[a] - weight[b]
            ti = total[a] - weight[b] * dij
            tj = total[b] - weight[a] * dij
            tilt = (ti - tj) / rest
            q = 0.5 * (ti + tj - rest * dij)
            q += 0.5 * (weight[a] * (dij + tilt) + weight[b] * (dij - tilt))
            variance = noise[a] + noise[b] + (rest * rest - weight[a] ** 2 - weight[b] ** 2) * vij
            q -= 0.5 * caution * np.sqrt(max(variance, 0.0))
            if q > best:
                best = q
                bi, bj = rows[a], rows[b]
    return bi, bj


@njit(cache=True, nogil=True)
def _halves(i, j, d, v, rows):  # type: ignore[no-untyped-def]
    """Distances of i and of j to their parent: `(d_ij +- mean_k (d_ik - d_jk)) / 2`, the mean
    weighted by the inverse variances, each half inside [0, d_ij]."""
    top = 0.0
    bottom = 0.0
    for k in rows:
        if k != i and k != j:
            w = 1.0 / (v[i, k] + v[j, k])
            top += w * (d[i, k] - d[j, k])
            bottom += w
    tilt = top / bottom
    ai = min(max(0.5 * (d[i, j] + tilt), 0.0), d[i, j])
    return ai, d[i, j] - ai


@njit(cache=True, nogil=True)
def combine(a, b):  # type: ignore[no-untyped-def]
    """Best linear predictor of a node from two features of correlations a, b with it.

    Returns the two weights, scaled to unit variance, and its correlation with the node."""
    top = 1.0 - 1e-14
    if a >= top:
        return 1.0, 0.0, 1.0
    if b >= top:
        return 0.0, 1.0, 1.0
    wa = a / (1 - a * a)
    wb = b / (1 - b * b)
    scale = 1.0 / np.sqrt(wa * wa + wb * wb + 2 * wa * wb * a * b)
    return wa * scale, wb * scale, (wa * a + wb * b) * scale
