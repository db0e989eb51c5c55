"""An unresolved node -> a binary tree, by neighbour joining that takes the noise into account.

`m` branches meet at the node, each represented by one feature of unit variance. The input is the
`(m, m)` matrix of correlations r between features, estimated from `n` samples, so that
`Var(-log r) = (1 - r^2)^2 / (n r^2)`.
"""

from __future__ import annotations

import numpy as np

from latenttree.engine.kernels import kernel, subroutine

LOWEST = -1e300

STALE = 1e-6
"""A running sum is computed afresh when it falls below this share of its largest value: subtraction
has left mostly rounding error."""


@subroutine
def log_distances(r, n):  # type: ignore[no-untyped-def]
    """Distances `-log r` `(m, m)` and their variances `(m, m)`, zero on the diagonal.

    Correlations below half a standard error are raised to it, so that pure noise is a long distance
    with a large variance."""
    m = r.shape[0]
    d = np.zeros((m, m))
    v = np.zeros((m, m))
    for i in range(m):
        for j in range(m):
            if i != j:
                d[i, j], v[i, j] = _log_distance(r[i, j], n)
    return d, v


@subroutine
def _log_distance(x, n):  # type: ignore[no-untyped-def]
    """Distance and variance of one correlation, see `log_distances`."""
    x = min(max(x, 0.5 / np.sqrt(n)), 1.0)
    return -np.log(x), ((1 - x * x) ** 2 + 1e-12) / (n * x * x)


@kernel
def neighbour_joining(r, n, caution, equal_weights):  # type: ignore[no-untyped-def]
    """A binary tree over m branches with correlations r `(m, m)`, joining the best pair first.

    Pair (i, j) with parent u has quality `Q_ij = sum_k w_k d(k, u)`, the weighted distance of all
    branches from u. Over an additive tree it is largest for a true pair of siblings, whatever the
    weights `w_k > 0` (the criterion of unweighted neighbour joining, Gascuel 1997). Weights are
    mean squared correlations, because a far branch carries that much less information;
    `equal_weights` is for exact distances. `caution` standard errors are subtracted from Q, so that
    noisy pairs wait until no better ones are left. The parent's feature is the best linear
    predictor from its two children: weights `a / (1 - a^2)`.

    Rows that were joined into others stay, with weight zero, until they are a quarter of all. The
    loop stays whole: each join updates ten arrays.

    Returns edges `(2m - 3, 2)` over leaves 0..m-1 and hidden m..2m-3, and lengths, clipped at 0.
    O(m^3).
    """
    m = r.shape[0]
    d, v = log_distances(r, n)
    c = r.copy()
    node = np.arange(m)  # node of the tree that a row stands for
    load = np.ones(m)  # correlation of a row's feature with its node
    alive = np.ones(m, dtype=np.bool_)
    near, peak = np.zeros(m), np.zeros(m)  # sums of squared correlations, and their largest values
    if not equal_weights:
        for k in range(m):
            near[k] = peak[k] = _near(k, d, m, alive)
    edges = np.empty((max(2 * m - 3, 1), 2), dtype=np.int64)
    lengths = np.zeros(max(2 * m - 3, 1))
    next_node, n_edges, size = m, 0, m
    scratch = np.empty((6, m))
    while m > 3:
        i, j = _best_pair(d, v, near, alive, size, caution, equal_weights, scratch)
        ai, aj = _parent_distances(i, j, d, v, alive, size)
        wi, wj, new_load = best_predictor(np.exp(-ai), np.exp(-aj))
        for child, half in ((i, ai), (j, aj)):
            edges[n_edges, 0] = node[child]
            edges[n_edges, 1] = next_node
            lengths[n_edges] = max(half + np.log(load[child]), 0.0)
            n_edges += 1
        node[i] = next_node
        load[i] = new_load
        next_node += 1
        alive[j] = False
        for k in range(size):
            if alive[k] and k != i:
                left = 0.0 if equal_weights else np.exp(-2 * d[i, k]) + np.exp(-2 * d[j, k])
                x = wi * c[i, k] + wj * c[j, k]
                c[i, k] = c[k, i] = x
                d[i, k], v[i, k] = _log_distance(x, n)
                d[k, i], v[k, i] = d[i, k], v[i, k]
                if not equal_weights:
                    near[k] += np.exp(-2 * d[i, k]) - left
                    peak[k] = max(peak[k], near[k])
                    if near[k] < STALE * peak[k]:
                        near[k] = peak[k] = _near(k, d, size, alive)
        if not equal_weights:
            near[i] = peak[i] = _near(i, d, size, alive)
        m -= 1
        if 4 * m <= 3 * size or m == 3:
            size = _compact(d, v, c, node, load, near, peak, alive, size)
    n_edges = _last_edges(m, d, node, load, next_node, edges, lengths, n_edges)
    return edges[:n_edges], lengths[:n_edges]


@subroutine
def _last_edges(m, d, node, load, next_node, edges, lengths, n_edges):  # type: ignore[no-untyped-def]
    """Connect the last three rows to one hidden node, or the last two to each other; returns the
    number of edges."""
    if m == 3:
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            edges[n_edges, 0] = node[i]
            edges[n_edges, 1] = next_node
            half = 0.5 * (d[i, j] + d[i, k] - d[j, k])
            lengths[n_edges] = max(half + np.log(load[i]), 0.0)
            n_edges += 1
    elif m == 2:
        edges[0, 0], edges[0, 1] = node[0], node[1]
        lengths[0] = d[0, 1]
        n_edges = 1
    return n_edges


@subroutine
def _near(k, d, size, alive):  # type: ignore[no-untyped-def]
    """Sum of the squared correlations of row k with the others."""
    total = 0.0
    for a in range(size):
        if alive[a] and a != k:
            total += np.exp(-2 * d[k, a])
    return total


@subroutine
def _compact(d, v, c, node, load, near, peak, alive, size):  # type: ignore[no-untyped-def]
    """Move the rows that are left, in their order, to the front of all arrays; returns how
    many."""
    m = 0
    for a in range(size):
        if alive[a]:
            node[m], load[m], near[m], peak[m] = node[a], load[a], near[a], peak[a]
            q = 0
            for b in range(size):
                if alive[b]:
                    d[m, q], v[m, q], c[m, q] = d[a, b], v[a, b], c[a, b]
                    q += 1
            m += 1
    alive[:m] = True
    alive[m:] = False
    return m


@subroutine(fastmath={"reassoc", "contract"})
def _weighted(w, x, size):  # type: ignore[no-untyped-def]
    """`sum_k w_k x_k`, vectorised."""
    total = 0.0
    for k in range(size):
        total += w[k] * x[k]
    return total


@subroutine
def _qualities(a, d, weight, total, all_weight, alive, quality):  # type: ignore[no-untyped-def]
    """`Q` of the pairs of row a with rows before it, into `quality`; no branches, so that it is
    vectorised."""
    row, wa, ta = d[a], weight[a], total[a]
    for b in range(a):
        dij, wb = row[b], weight[b]
        rest = all_weight - wa - wb
        ti = ta - wb * dij
        tj = total[b] - wa * dij
        tilt = (ti - tj) / rest
        q = 0.5 * (ti + tj - rest * dij) + 0.5 * (wa * (dij + tilt) + wb * (dij - tilt))
        quality[b] = q if alive[b] else LOWEST


@subroutine(fastmath={"reassoc", "nnan", "nsz"})
def _largest(x, size):  # type: ignore[no-untyped-def]
    """The largest of the first `size` numbers, vectorised."""
    largest = LOWEST
    for k in range(size):
        largest = max(largest, x[k])
    return largest


@subroutine
def _weights(near, alive, size, equal_weights, weight):  # type: ignore[no-untyped-def]
    """Weights of rows, at most 1, into `weight`, zero for joined ones; returns their sum."""
    top = 1.0 if equal_weights else 0.0
    for a in range(size):
        if alive[a] and not equal_weights:
            top = max(top, near[a])
    all_weight = 0.0
    for a in range(size):
        share = 1.0 if equal_weights else near[a]
        weight[a] = max(share / top, 1e-200) if alive[a] else 0.0
        all_weight += weight[a]
    return all_weight


@subroutine
def _best_pair(d, v, near, alive, size, caution, equal_weights, scratch):  # type: ignore[no-untyped-def]
    """The pair of rows with the largest `Q - caution * se(Q)`. O(size^2).

    Q is an upper bound, so that errors are computed only in rows whose largest Q is above the best
    pair so far."""
    weight, total, noise = scratch[0], scratch[1], scratch[2]
    quality, most, square = scratch[3], scratch[4], scratch[5]
    all_weight = _weights(near, alive, size, equal_weights, weight)
    for a in range(size):
        square[a] = weight[a] * weight[a]
    best = LOWEST
    start, i, j = 1, 0, 1
    for a in range(size):
        most[a], total[a], noise[a] = LOWEST, 0.0, -1.0
        if alive[a]:
            total[a] = _weighted(weight, d[a], size)
            _qualities(a, d, weight, total, all_weight, alive, quality)
            most[a] = _largest(quality, a)
            if most[a] > best:
                best, start = most[a], a
    best = LOWEST
    for step in range(-1, size):
        a = start if step < 0 else step  # the row of the largest bound before all others
        if most[a] <= LOWEST or most[a] < best or (a == start and step >= 0):
            continue
        _qualities(a, d, weight, total, all_weight, alive, quality)
        for b in range(a):
            if quality[b] >= best and alive[b]:
                for k in (a, b):
                    if noise[k] < 0:
                        noise[k] = _weighted(square, v[k], size)
                rest = all_weight - weight[a] - weight[b]
                spread = rest * rest - weight[a] ** 2 - weight[b] ** 2
                variance = noise[a] + noise[b] + spread * v[a, b]
                q = quality[b] - 0.5 * caution * np.sqrt(max(variance, 0.0))
                if q > best or (q == best and (a < i or (a == i and b < j))):
                    best = q
                    i, j = a, b
    return i, j


@subroutine
def _parent_distances(i, j, d, v, alive, size):  # type: ignore[no-untyped-def]
    """Distances of i and of j to their parent: `(d_ij +- mean_k (d_ik - d_jk)) / 2`, the mean over
    the other rows weighted by the inverse variances, each half inside [0, d_ij]."""
    top = 0.0
    bottom = 0.0
    for k in range(size):
        if alive[k] and k not in (i, j):
            w = 1.0 / (v[i, k] + v[j, k])
            top += w * (d[i, k] - d[j, k])
            bottom += w
    tilt = top / bottom
    ai = min(max(0.5 * (d[i, j] + tilt), 0.0), d[i, j])
    return ai, d[i, j] - ai


@kernel
def best_predictor(a, b):  # type: ignore[no-untyped-def]
    """The best linear predictor of a node from two features that correlate with it by a and b.

    Returns the two weights, scaled to unit variance, and the predictor's correlation with the
    node."""
    top = 1.0 - 1e-14
    if a >= top:
        return 1.0, 0.0, 1.0
    if b >= top:
        return 0.0, 1.0, 1.0
    wa = a / (1 - a * a)
    wb = b / (1 - b * b)
    scale = 1.0 / np.sqrt(wa * wa + wb * wb + 2 * wa * wb * a * b)
    return wa * scale, wb * scale, (wa * a + wb * b) * scale
