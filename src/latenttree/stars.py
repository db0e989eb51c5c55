"""One star of branches -> a binary tree: best-first joining, and its least-squares fit.

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
    square = np.exp(-2 * d)
    c = r.copy()
    node = np.arange(m)  # node of the tree that a row stands for
    gain = np.ones(m)  # correlation of a row's feature with its node
    rows = np.arange(m)  # rows still to be joined
    edges = np.empty((max(2 * m - 3, 1), 2), dtype=np.int64)
    lengths = np.zeros(max(2 * m - 3, 1))
    fresh, n_edges = m, 0
    while len(rows) > 3:
        bi, bj = _surest_pair(d, v, square, rows, caution, flat)
        ai, aj = _halves(bi, bj, d, v, rows)
        wi, wj, g = combine(np.exp(-ai), np.exp(-aj))
        for row, half in ((bi, ai), (bj, aj)):
            edges[n_edges, 0] = node[row]
            edges[n_edges, 1] = fresh
            lengths[n_edges] = max(half + np.log(gain[row]), 0.0)
            n_edges += 1
        node[bi] = fresh
        gain[bi] = g
        fresh += 1
        rows = rows[rows != bj]
        for k in rows:
            if k != bi:
                x = wi * c[bi, k] + wj * c[bj, k]
                c[bi, k] = x
                c[k, bi] = x
                d[bi, k], v[bi, k] = _log_distance(x, n)
                d[k, bi], v[k, bi] = d[bi, k], v[bi, k]
                square[bi, k] = np.exp(-2 * d[bi, k])
                square[k, bi] = square[bi, k]
    if len(rows) == 3:
        for s in range(3):
            i, j, k = rows[s], rows[(s + 1) % 3], rows[(s + 2) % 3]
            edges[n_edges, 0] = node[i]
            edges[n_edges, 1] = fresh
            half = 0.5 * (d[i, j] + d[i, k] - d[j, k])
            lengths[n_edges] = max(half + np.log(gain[i]), 0.0)
            n_edges += 1
    elif len(rows) == 2:
        edges[0, 0], edges[0, 1] = node[rows[0]], node[rows[1]]
        lengths[0] = d[rows[0], rows[1]]
        n_edges = 1
    return edges[:n_edges], lengths[:n_edges]


@njit(cache=True, nogil=True)
def _surest_pair(d, v, square, rows, caution, flat):  # type: ignore[no-untyped-def]
    """The pair of rows with the largest `Q - caution * se(Q)`. O(m^2)."""
    m = len(rows)
    weight = np.ones(m)
    if not flat:
        for a in range(m):
            weight[a] = 0.0
            for b in range(m):
                if a != b:
                    weight[a] += square[rows[a], rows[b]]
        weight = np.maximum(weight / weight.max(), 1e-200)
    all_weight = weight.sum()
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


@njit(cache=True, nogil=True)
def path_matrix(m, edges):  # type: ignore[no-untyped-def]
    """`(m (m - 1) / 2, E)` booleans: which edges lie between leaves i < j."""
    n_edges = edges.shape[0]
    n_nodes = n_edges + 1
    # side[e, v]: v lies on the side of edge e that has edges[e, 1]
    paths = np.zeros((m * (m - 1) // 2, n_edges), dtype=np.bool_)
    start = np.zeros(n_nodes + 1, dtype=np.int64)
    for e in range(n_edges):
        start[edges[e, 0] + 1] += 1
        start[edges[e, 1] + 1] += 1
    for i in range(n_nodes):
        start[i + 1] += start[i]
    fill = start[:-1].copy()
    nbr = np.empty(2 * n_edges, dtype=np.int64)
    eid = np.empty(2 * n_edges, dtype=np.int64)
    for e in range(n_edges):
        a, b = edges[e, 0], edges[e, 1]
        nbr[fill[a]] = b
        eid[fill[a]] = e
        fill[a] += 1
        nbr[fill[b]] = a
        eid[fill[b]] = e
        fill[b] += 1
    up = np.empty(n_nodes, dtype=np.int64)
    up_edge = np.empty(n_nodes, dtype=np.int64)
    stack = np.empty(n_nodes, dtype=np.int64)
    for i in range(m):
        up[i] = -1
        stack[0] = i
        size = 1
        while size:
            size -= 1
            x = stack[size]
            for s in range(start[x], start[x + 1]):
                if nbr[s] != up[x]:
                    up[nbr[s]] = x
                    up_edge[nbr[s]] = eid[s]
                    stack[size] = nbr[s]
                    size += 1
        for j in range(i + 1, m):
            row = i * m - i * (i + 1) // 2 + (j - i - 1)
            x = j
            while x != i:
                paths[row, up_edge[x]] = True
                x = up[x]
    return paths


@njit(cache=True, nogil=True)
def fit_lengths(r, n, paths, lengths):  # type: ignore[no-untyped-def]
    """Least squares in the affinity domain: minimise `sum (r_ij - exp(-T_ij))^2 / var_ij`.

    Gauss-Newton from `lengths`, negative lengths held at zero; `var = (1 - rho^2)^2 / n` at the
    fitted rho. Far pairs count by their information, without logarithms of noise.
    Returns lengths and the chi-square.
    """
    m = r.shape[0]
    n_pairs, n_edges = paths.shape
    x = lengths.copy()
    chi = 0.0
    for iteration in range(8):
        a = np.zeros((n_edges, n_edges))
        b = np.zeros(n_edges)
        row = 0
        for i in range(m):
            for j in range(i + 1, m):
                t = 0.0
                for e in range(n_edges):
                    if paths[row, e]:
                        t += x[e]
                rho = np.exp(-t)
                var = ((1 - rho * rho) ** 2 + 1e-3) / n
                w = rho * rho / var
                y = t - (r[i, j] - rho) / rho if rho > 1e-12 else t
                for e in range(n_edges):
                    if paths[row, e]:
                        b[e] += w * y
                        for f in range(n_edges):
                            if paths[row, f]:
                                a[e, f] += w
                row += 1
        x_new = _nonnegative(a, b)
        step = 0.0
        for e in range(n_edges):
            step = max(step, abs(x_new[e] - x[e]))
        # half steps keep Gauss-Newton stable where the first lengths are far off
        x = x_new if step < 1.0 else 0.5 * (x + x_new)
        if step < 1e-4:
            break
    row = 0
    for i in range(m):
        for j in range(i + 1, m):
            t = 0.0
            for e in range(n_edges):
                if paths[row, e]:
                    t += x[e]
            rho = np.exp(-t)
            chi += n * (r[i, j] - rho) ** 2 / ((1 - rho * rho) ** 2 + 1e-3)
            row += 1
    return x, chi


@njit(cache=True, nogil=True)
def _nonnegative(a, b):  # type: ignore[no-untyped-def]
    """Solve `a x = b` with negative entries fixed at zero, the most negative first."""
    n = len(b)
    free = np.ones(n, dtype=np.bool_)
    x = np.zeros(n)
    for _ in range(n):
        k = 0
        index = np.empty(n, dtype=np.int64)
        for e in range(n):
            if free[e]:
                index[k] = e
                k += 1
        sub = np.empty((k, k))
        rhs = np.empty(k)
        for e in range(k):
            rhs[e] = b[index[e]]
            for f in range(k):
                sub[e, f] = a[index[e], index[f]]
            sub[e, e] *= 1 + 1e-9
            sub[e, e] += 1e-12
        y = np.linalg.solve(sub, rhs)
        worst = -1
        for e in range(k):
            if y[e] < 0 and (worst < 0 or y[e] < y[worst]):
                worst = e
        x[:] = 0.0
        for e in range(k):
            x[index[e]] = y[e]
        if worst < 0:
            break
        free[index[worst]] = False
        x[index[worst]] = 0.0
    return x


@njit(cache=True, nogil=True)
def fit_likelihood(r, n, paths, lengths, n_steps):  # type: ignore[no-untyped-def]
    """Maximum likelihood lengths of a star's tree, as if its features were Gaussian.

    Model: unit variances, `Sigma_ij = exp(-T_ij)`, `T` the path lengths. Fisher scoring on
    `n / 2 (log det Sigma + tr Sigma^-1 R)` with `dSigma_ij / dx_e = -Sigma_ij` where e lies between
    i and j; lengths stay at or above zero. Returns lengths, the log-likelihood and the information
    matrix. O(steps (E m^3 + E^2 m^2)).
    """
    m = r.shape[0]
    n_edges = paths.shape[1]
    x = lengths.copy()
    value, sigma, inverse = _gaussian(r, n, paths, x)
    info = np.zeros((n_edges, n_edges))
    for _ in range(n_steps):
        info, gradient = _scoring(r, n, paths, sigma, inverse)
        target = _nonnegative(info, info @ x + gradient)
        step = 1.0
        better = False
        for _ in range(6):
            trial = x + step * (target - x)
            new, s, inv = _gaussian(r, n, paths, trial)
            if new > value - 1e-9:
                better = True
                break
            step *= 0.4
        if not better:
            break
        gain = new - value
        x, value, sigma, inverse = trial, new, s, inv
        if gain < 1e-3:
            break
    return x, value, info


@njit(cache=True, nogil=True)
def _gaussian(r, n, paths, x):  # type: ignore[no-untyped-def]
    m = r.shape[0]
    sigma = np.eye(m) * (1 + 1e-6)
    row = 0
    for i in range(m):
        for j in range(i + 1, m):
            t = 0.0
            for e in range(len(x)):
                if paths[row, e]:
                    t += x[e]
            sigma[i, j] = np.exp(-t)
            sigma[j, i] = sigma[i, j]
            row += 1
    inverse = np.linalg.inv(sigma)
    sign, logdet = np.linalg.slogdet(sigma)
    trace = 0.0
    for i in range(m):
        for j in range(m):
            trace += inverse[i, j] * r[j, i]
    value = -0.5 * n * (logdet + trace)
    if sign <= 0:
        value = -np.inf
    return value, sigma, inverse


@njit(cache=True, nogil=True)
def _scoring(r, n, paths, sigma, inverse):  # type: ignore[no-untyped-def]
    m = r.shape[0]
    n_edges = paths.shape[1]
    change = np.zeros((n_edges, m, m))  # Sigma^-1 dSigma/dx_e
    slope = np.zeros((m, m))
    info = np.zeros((n_edges, n_edges))
    gradient = np.zeros(n_edges)
    score = inverse @ (r - sigma) @ inverse
    for e in range(n_edges):
        slope[:] = 0.0
        row = 0
        for i in range(m):
            for j in range(i + 1, m):
                if paths[row, e]:
                    slope[i, j] = -sigma[i, j]
                    slope[j, i] = -sigma[i, j]
                    gradient[e] += -sigma[i, j] * score[i, j]
                row += 1
        change[e] = inverse @ slope
    gradient *= n
    for e in range(n_edges):
        for f in range(e + 1):
            t = 0.0
            for i in range(m):
                for j in range(m):
                    t += change[e, i, j] * change[f, j, i]
            info[e, f] = 0.5 * n * t
            info[f, e] = info[e, f]
    return info, gradient
