"""Lengths of a star's tree by maximum likelihood, as if its features were Gaussian.

The model: unit variances and `Sigma_ij = exp(-T_ij)`, `T` the path lengths between the features.
Stars are small (ten branches or so), so the linear algebra is written out: no call into LAPACK is
worth its overhead at this size, and kernels compile in a fraction of the time.
"""

from __future__ import annotations

import numpy as np
from numba import njit

RIDGE = 1e-6
"""Added to the variances, so that two features that are copies of each other are no singularity."""


@njit(cache=True, nogil=True)
def path_matrix(m, edges):  # type: ignore[no-untyped-def]
    """`(m (m - 1) / 2, E)` booleans: which edges lie between leaves i < j."""
    n_edges = edges.shape[0]
    n_nodes = n_edges + 1
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
def fit_likelihood(r, n, paths, lengths, n_steps):  # type: ignore[no-untyped-def]
    """Fisher scoring on `-n / 2 (log det Sigma + tr Sigma^-1 R)` from `lengths`.

    `dSigma_ij / dx_e = -Sigma_ij` where edge e lies between i and j; lengths stay at or above zero.
    Returns lengths, the log-likelihood and the information matrix.
    O(steps (E m^3 + E^2 m^2)) for m features and E edges.
    """
    m, n_edges = r.shape[0], paths.shape[1]
    x = lengths.copy()
    sigma, trial_sigma = np.empty((m, m)), np.empty((m, m))
    inverse, trial_inverse = np.empty((m, m)), np.empty((m, m))
    info, gradient = np.empty((n_edges, n_edges)), np.empty(n_edges)
    value = _log_likelihood(r, n, paths, x, sigma, inverse)
    trial = x.copy()
    for _ in range(n_steps):
        _scoring(r, n, paths, sigma, inverse, info, gradient)
        target = _nonnegative(info, gradient, x)
        step = 1.0
        new = -np.inf
        for _ in range(6):
            for e in range(n_edges):
                trial[e] = x[e] + step * (target[e] - x[e])
            new = _log_likelihood(r, n, paths, trial, trial_sigma, trial_inverse)
            if new > value - 1e-9:
                break
            step *= 0.4
        if not new > value - 1e-9:
            break
        value = new
        moved = 0.0
        for e in range(n_edges):
            moved = max(moved, abs(trial[e] - x[e]))
            x[e] = trial[e]
        sigma, trial_sigma = trial_sigma, sigma
        inverse, trial_inverse = trial_inverse, inverse
        if moved < 1e-3:
            break
    return x, value, info


@njit(cache=True, nogil=True)
def _log_likelihood(r, n, paths, x, sigma, inverse):  # type: ignore[no-untyped-def]
    """The log-likelihood of lengths x; fills `sigma` and `inverse`. Minus infinity if singular."""
    m = r.shape[0]
    row = 0
    for i in range(m):
        sigma[i, i] = 1 + RIDGE
        for j in range(i + 1, m):
            t = 0.0
            for e in range(len(x)):
                if paths[row, e]:
                    t += x[e]
            sigma[i, j] = np.exp(-t)
            sigma[j, i] = sigma[i, j]
            row += 1
    log_det = invert(sigma, inverse)
    if np.isnan(log_det):
        return -np.inf
    trace = 0.0
    for i in range(m):
        for j in range(m):
            trace += inverse[i, j] * r[j, i]
    return -0.5 * n * (log_det + trace)


@njit(cache=True, nogil=True)
def invert(a, out):  # type: ignore[no-untyped-def]
    """Inverse of a positive definite matrix into `out`, by Cholesky; returns log det, NaN if
    not."""
    m = a.shape[0]
    lower = np.zeros((m, m))
    log_det = 0.0
    for j in range(m):
        t = a[j, j]
        for k in range(j):
            t -= lower[j, k] ** 2
        if not t > 0:
            return np.nan
        lower[j, j] = np.sqrt(t)
        log_det += np.log(t)
        for i in range(j + 1, m):
            t = a[i, j]
            for k in range(j):
                t -= lower[i, k] * lower[j, k]
            lower[i, j] = t / lower[j, j]
    root = np.zeros((m, m))  # inverse of lower
    for j in range(m):
        root[j, j] = 1 / lower[j, j]
        for i in range(j + 1, m):
            t = 0.0
            for k in range(j, i):
                t -= lower[i, k] * root[k, j]
            root[i, j] = t / lower[i, i]
    for i in range(m):
        for j in range(i + 1):
            t = 0.0
            for k in range(i, m):
                t += root[k, i] * root[k, j]
            out[i, j] = t
            out[j, i] = t
    return log_det


@njit(cache=True, nogil=True)
def _scoring(r, n, paths, sigma, inverse, info, gradient):  # type: ignore[no-untyped-def]
    """Information `n / 2 tr(S^-1 dS_e S^-1 dS_f)` and gradient `n / 2 tr(S^-1 dS_e (S^-1 R -
    I))`."""
    m, n_edges = r.shape[0], paths.shape[1]
    change = np.zeros((n_edges, m, m))  # S^-1 dS_e
    fitted = np.zeros((m, m))  # S^-1 R
    for i in range(m):
        for j in range(m):
            for k in range(m):
                fitted[i, j] += inverse[i, k] * r[k, j]
    for e in range(n_edges):
        row = 0
        for j in range(m):
            for k in range(j + 1, m):
                if paths[row, e]:
                    for i in range(m):
                        change[e, i, k] -= inverse[i, j] * sigma[j, k]
                        change[e, i, j] -= inverse[i, k] * sigma[j, k]
                row += 1
        t = 0.0
        for i in range(m):
            t -= change[e, i, i]
            for j in range(m):
                t += change[e, i, j] * fitted[j, i]
        gradient[e] = 0.5 * n * t
        for f in range(e + 1):
            t = 0.0
            for i in range(m):
                for j in range(m):
                    t += change[e, i, j] * change[f, j, i]
            info[e, f] = 0.5 * n * t
            info[f, e] = info[e, f]


@njit(cache=True, nogil=True)
def _nonnegative(info, gradient, x):  # type: ignore[no-untyped-def]
    """Maximise the quadratic model around x with lengths at or above zero, the most negative first.

    Solves `info y = info x + gradient` over the free lengths."""
    k = len(x)
    target = np.zeros(k)
    right = gradient.copy()
    for e in range(k):
        for f in range(k):
            right[e] += info[e, f] * x[f]
    free = np.arange(k)
    size = k
    while size:
        sub, solved = np.empty((size, size)), np.empty((size, size))
        for a in range(size):
            for b in range(size):
                sub[a, b] = info[free[a], free[b]]
            sub[a, a] = sub[a, a] * (1 + 1e-9) + 1e-9
        if np.isnan(invert(sub, solved)):
            return x.copy()
        worst = -1
        for e in range(k):
            target[e] = 0.0
        for a in range(size):
            for b in range(size):
                target[free[a]] += solved[a, b] * right[free[b]]
            if target[free[a]] < 0 and (worst < 0 or target[free[a]] < target[free[worst]]):
                worst = a
        if worst < 0:
            return target
        target[free[worst]] = 0.0
        size -= 1
        for a in range(worst, size):
            free[a] = free[a + 1]
    return target


@njit(cache=True, nogil=True)
def fit_star(r, n):  # type: ignore[no-untyped-def]
    """Distances `x` of m features from the one node in which they meet.

    Weighted least squares on `-log r_ij = x_i + x_j`, weights `n r^2 / (1 - r^2)^2`, each feature
    in turn until nothing moves; x stays at or above zero. O(rounds m^2).
    """
    m = r.shape[0]
    floor = 0.5 / np.sqrt(n)
    distance, weight = np.zeros((m, m)), np.zeros((m, m))
    x = np.zeros(m)
    for i in range(m):
        nearest = np.inf
        for j in range(m):
            if i != j:
                c = min(max(r[i, j], floor), 1.0)
                distance[i, j] = -np.log(c)
                weight[i, j] = c * c / ((1 - c * c) ** 2 + 1e-3)
                nearest = min(nearest, distance[i, j])
        x[i] = 0.5 * nearest
    for _ in range(100):
        moved = 0.0
        for i in range(m):
            top, bottom = 0.0, 0.0
            for j in range(m):
                if i != j:
                    top += weight[i, j] * (distance[i, j] - x[j])
                    bottom += weight[i, j]
            new = max(top / bottom, 0.0)
            moved = max(moved, abs(new - x[i]))
            x[i] = new
        if moved < 1e-7:
            break
    return x
