"""Lengths of a star's tree by maximum likelihood, as if its features were Gaussian.

The model: unit variances and `Sigma_ij = exp(-T_ij)`, `T` the path lengths between the features.
Stars are small (ten branches or so), so the linear algebra is written out: no call into LAPACK is
worth its overhead at this size, and kernels compile in a fraction of the time.
"""

from __future__ import annotations

import numpy as np

from latenttree.engine.kernels import kernel, subroutine

RIDGE = 1e-6
"""Added to the variances, so that two features that are copies of each other are no singularity."""

LEAST_GAIN = 1e-3
"""A fit ends with a step that gains less log-likelihood: lengths are then right to a twentieth of
their standard errors."""

FAINT = 1e-200
"""Correlations below this are nothing to divide by."""


@kernel
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


@kernel
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
        gained = new - value
        value = new
        moved = 0.0
        for e in range(n_edges):
            moved = max(moved, abs(trial[e] - x[e]))
            x[e] = trial[e]
        sigma, trial_sigma = trial_sigma, sigma
        inverse, trial_inverse = trial_inverse, inverse
        if moved < 1e-3 or gained < LEAST_GAIN:
            break
    return x, value, info


@subroutine
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


@kernel
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


@subroutine
def _scoring(r, n, paths, sigma, inverse, info, gradient):  # type: ignore[no-untyped-def]
    """Information `n / 2 tr(S^-1 dS_e S^-1 dS_f)` and gradient `n / 2 tr(S^-1 dS_e (S^-1 R -
    I))`.

    Edge e parts the features into two sides, and `S` between them has rank one: `dS_e = -(u v^T +
    v u^T)`, u on the side of feature 0, v on the other. So all comes from the products of u and v
    with `S^-1` and with `S^-1 R S^-1 - S^-1`."""
    m, n_edges = r.shape[0], paths.shape[1]
    one, other = np.zeros((n_edges, m)), np.zeros((n_edges, m))
    for e in range(n_edges):
        for i in range(m):
            if i > 0 and paths[i - 1, e]:
                continue
            far, root = i, 0.0  # the feature on the other side that is nearest to i
            for k in range(1, m):
                if paths[k - 1, e] and sigma[i, k] > root:
                    far, root = k, sigma[i, k]
            if root > FAINT:
                for k in range(m):
                    if k > 0 and paths[k - 1, e]:
                        other[e, k] = sigma[i, k] / root
                    else:
                        one[e, k] = sigma[far, k]
                break
    half, misfit = np.zeros((m, m)), np.zeros((m, m))
    for i in range(m):
        for k in range(m):
            x = inverse[i, k]
            for j in range(m):
                half[i, j] += x * r[k, j]
        for k in range(m):
            x = half[i, k]
            for j in range(m):
                misfit[i, j] += x * inverse[k, j]
        for j in range(m):
            misfit[i, j] -= inverse[i, j]
    a, b = np.zeros((n_edges, m)), np.zeros((n_edges, m))  # S^-1 u, S^-1 v
    for e in range(n_edges):
        for k in range(m):
            x, y = one[e, k], other[e, k]
            if x != 0.0:
                for j in range(m):
                    a[e, j] += x * inverse[k, j]
            if y != 0.0:
                for j in range(m):
                    b[e, j] += y * inverse[k, j]
        t = 0.0
        for k in range(m):
            if one[e, k] != 0.0:
                part = 0.0
                for j in range(m):
                    part += misfit[k, j] * other[e, j]
                t += one[e, k] * part
        gradient[e] = -n * t
        for f in range(e + 1):
            uu, uv, vu, vv = 0.0, 0.0, 0.0, 0.0
            for k in range(m):
                uu += a[e, k] * one[f, k]
                uv += a[e, k] * other[f, k]
                vu += b[e, k] * one[f, k]
                vv += b[e, k] * other[f, k]
            info[e, f] = n * (uu * vv + uv * vu)
            info[f, e] = info[e, f]


@subroutine
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
    lower, solved = np.empty((k, k)), np.empty(k)
    size = k
    while size:
        if not _solve(info, right, free, size, lower, solved):
            return x.copy()
        worst = -1
        for a in range(size):
            if solved[a] < 0 and (worst < 0 or solved[a] < solved[worst]):
                worst = a
        if worst < 0:
            for a in range(size):
                target[free[a]] = solved[a]
            return target
        size -= 1
        for a in range(worst, size):
            free[a] = free[a + 1]
    return target


@subroutine
def _solve(info, right, free, size, lower, solved):  # type: ignore[no-untyped-def]
    """Solve `info y = right` over the rows `free[:size]`, by Cholesky, the diagonal slightly
    raised; whether that was possible."""
    for i in range(size):
        for j in range(i + 1):
            t = info[free[i], free[j]]
            if i == j:
                t = t * (1 + 1e-9) + 1e-9
            for k in range(j):
                t -= lower[i, k] * lower[j, k]
            if i > j:
                lower[i, j] = t / lower[j, j]
            elif t > 0:
                lower[i, i] = np.sqrt(t)
            else:
                return False
        t = right[free[i]]
        for k in range(i):
            t -= lower[i, k] * solved[k]
        solved[i] = t / lower[i, i]
    for i in range(size - 1, -1, -1):
        t = solved[i]
        for k in range(i + 1, size):
            t -= lower[k, i] * solved[k]
        solved[i] = t / lower[i, i]
    return True


@kernel
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
