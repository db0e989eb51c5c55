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
            square[i, j] = np.exp(-2 * d[i, j]) if i != j else 0.0
    c = r.copy()
    node = np.arange(m)  # node of the tree that a row stands for
    gain = np.ones(m)  # correlation of a row's feature with its node
    row = np.arange(m)  # its row in c, which is not moved
    edges = np.empty((max(2 * m - 3, 1), 2), dtype=np.int64)
    lengths = np.zeros(max(2 * m - 3, 1))
    fresh, n_edges = m, 0
    while m > 3:
        i, j = _surest_pair(d, v, square, m, caution, flat)
        ai, aj = _halves(i, j, d, v, m)
        wi, wj, g = combine(np.exp(-ai), np.exp(-aj))
        for child, half in ((i, ai), (j, aj)):
            edges[n_edges, 0] = node[child]
            edges[n_edges, 1] = fresh
            lengths[n_edges] = max(half + np.log(gain[child]), 0.0)
            n_edges += 1
        node[i] = fresh
        gain[i] = g
        fresh += 1
        for k in range(m):
            if k not in (i, j):
                x = wi * c[row[i], row[k]] + wj * c[row[j], row[k]]
                c[row[i], row[k]] = x
                c[row[k], row[i]] = x
                d[i, k], v[i, k] = _log_distance(x, n)
                d[k, i], v[k, i] = d[i, k], v[i, k]
                square[i, k] = np.exp(-2 * d[i, k])
                square[k, i] = square[i, k]
        for table in (d, v, square):
            _leave_out(table, j, m)
        m -= 1
        for k in range(j, m):
            node[k], gain[k], row[k] = node[k + 1], gain[k + 1], row[k + 1]
    if m == 3:
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            edges[n_edges, 0] = node[i]
            edges[n_edges, 1] = fresh
            half = 0.5 * (d[i, j] + d[i, k] - d[j, k])
            lengths[n_edges] = max(half + np.log(gain[i]), 0.0)
            n_edges += 1
    elif m == 2:
        edges[0, 0], edges[0, 1] = node[0], node[1]
        lengths[0] = d[0, 1]
        n_edges = 1
    return edges[:n_edges], lengths[:n_edges]


@njit(cache=True, nogil=True)
def _leave_out(table, j, m):  # type: ignore[no-untyped-def]
    """Close the gap of row and column j among the first m, in place; the order stays."""
    for a in range(j):
        for b in range(j, m - 1):
            table[a, b] = table[a, b + 1]
    for a in range(j, m - 1):
        for b in range(j):
            table[a, b] = table[a + 1, b]
        for b in range(j, m - 1):
            table[a, b] = table[a + 1, b + 1]


@njit(cache=True, nogil=True)
def _surest_pair(d, v, square, m, caution, flat):  # type: ignore[no-untyped-def]
    """The pair of the first m rows with the largest `Q - caution * se(Q)`. O(m^2).

    Sums run over rows that are all added to at once, which a processor does several at a time."""
    weight = np.ones(m)
    top = 1.0 if flat else 0.0
    if not flat:
        weight[:] = 0.0
        for b in range(m):
            for a in range(m):
                weight[a] += square[b, a]
        for a in range(m):
            top = max(top, weight[a])
    all_weight = 0.0
    for a in range(m):
        weight[a] = max(weight[a] / top, 1e-200)
        all_weight += weight[a]
    total = np.zeros(m)
    noise = np.zeros(m)
    for b in range(m):
        w = weight[b]
        for a in range(m):
            total[a] += w * d[b, a]
            noise[a] += w * w * v[b, a]
    best = -np.inf
    i, j = 0, 1
    quality = np.empty(m)
    for a in range(m):
        for b in range(a):
            dij = d[a, b]
            rest = all_weight - weight[a] - weight[b]
            ti = total[a] - weight[b] * dij
            tj = total[b] - weight[a] * dij
            tilt = (ti - tj) / rest
            q = 0.5 * (ti + tj - rest * dij)
            quality[b] = q + 0.5 * (weight[a] * (dij + tilt) + weight[b] * (dij - tilt))
        for b in range(a):
            q = quality[b]
            if q > best:
                rest = all_weight - weight[a] - weight[b]
                spread = rest * rest - weight[a] ** 2 - weight[b] ** 2
                variance = noise[a] + noise[b] + spread * v[a, b]
                q -= 0.5 * caution * np.sqrt(max(variance, 0.0))
                if q > best:
                    best = q
                    i, j = a, b
    return i, j


@njit(cache=True, nogil=True)
def _halves(i, j, d, v, m):  # type: ignore[no-untyped-def]
    """Distances of i and of j to their parent: `(d_ij +- mean_k (d_ik - d_jk)) / 2`, the mean over
    the first m rows weighted by the inverse variances, each half inside [0, d_ij]."""
    top = 0.0
    bottom = 0.0
    for k in range(m):
        if k not in (i, j):
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
