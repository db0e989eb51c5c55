"""Lengths of a small tree over branches, by Gaussian maximum likelihood.

The model: features of unit variance with `Sigma_ij = exp(-T_ij)`, T the path lengths between them.
"""

from __future__ import annotations

import numpy as np

from latenttree.engine.kernels import kernel, subroutine
from latenttree.structure.small_matrices import invert, nonnegative_step

RIDGE = 1e-6
"""Added to the variances, so that Sigma is not singular where two features are copies."""

MIN_GAIN = 1e-3
"""A fit ends with a step that gains less log-likelihood: lengths are then within a twentieth of
their standard errors of the optimum."""

MIN_DIVISOR = 1e-200
"""Smaller correlations are not divided by."""


@subroutine
def leaf_sets(m, edges):  # type: ignore[no-untyped-def]
    """`(E,)` for each edge of a local tree the leaves 0..m-1 on its side away from leaf 0, as bits;
    m is at most 64. O(E^2)."""
    n_edges = len(edges)
    above = np.full(n_edges + 1, -1, dtype=np.int64)  # edge to the parent
    order = np.zeros(n_edges + 1, dtype=np.int64)  # nodes from leaf 0, parents first
    n_reached = 1
    for q in range(n_edges + 1):
        for e in range(n_edges):
            for i in range(2):
                if edges[e, i] == order[q] and e != above[order[q]]:
                    above[edges[e, 1 - i]] = e
                    order[n_reached] = edges[e, 1 - i]
                    n_reached += 1
    sets = np.zeros(n_edges, dtype=np.uint64)
    for q in range(n_edges, 0, -1):
        v = order[q]
        e = above[v]
        if v < m:
            sets[e] |= np.uint64(1) << np.uint64(v)
        beyond = above[edges[e, 0] + edges[e, 1] - v]
        if beyond >= 0:
            sets[beyond] |= sets[e]
    return sets


@subroutine
def path_matrix(m, edges):  # type: ignore[no-untyped-def]
    """`(m (m - 1) / 2, E)` booleans: which edges lie on the path between leaves i < j. O(m^2 E)."""
    sets = leaf_sets(m, edges)
    paths = np.empty((m * (m - 1) // 2, len(edges)), dtype=np.bool_)
    row = 0
    for i in range(m):
        for j in range(i + 1, m):
            for e in range(len(edges)):
                sides = (sets[e] >> np.uint64(i)) ^ (sets[e] >> np.uint64(j))
                paths[row, e] = sides & np.uint64(1) == 1
            row += 1
    return paths


@kernel
def fit_likelihood(r, n, paths, lengths, n_steps):  # type: ignore[no-untyped-def]
    """Fisher scoring on `-n / 2 (log det Sigma + tr Sigma^-1 R)` from `lengths`.

    `dSigma_ij / dx_e = -Sigma_ij` where edge e lies between i and j; lengths stay at or above zero.
    Returns lengths `(E,)`, the log-likelihood and the information matrix `(E, E)` of the last step.
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
        target = nonnegative_step(info, gradient, x)
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
        if moved < 1e-3 or gained < MIN_GAIN:
            break
    return x, value, info


@subroutine
def _log_likelihood(r, n, paths, x, sigma, inverse):  # type: ignore[no-untyped-def]
    """The log-likelihood of lengths x, minus infinity if Sigma is singular; writes `sigma` and
    `inverse` `(m, m)`."""
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


@subroutine
def _factor_derivatives(sigma, paths, one, other):  # type: ignore[no-untyped-def]
    """`dSigma_e = -(u v^T + v u^T)` for every edge e: u into `one`, v into `other` `(E, m)`.

    Edge e parts the features into two sides, and Sigma between them has rank one. u is on the side
    of feature 0, v on the other."""
    m = len(sigma)
    for e in range(len(one)):
        for i in range(m):
            if i > 0 and paths[i - 1, e]:
                continue
            far, root = i, 0.0  # the feature on the other side that is nearest to i
            for k in range(1, m):
                if paths[k - 1, e] and sigma[i, k] > root:
                    far, root = k, sigma[i, k]
            if root > MIN_DIVISOR:
                for k in range(m):
                    if k > 0 and paths[k - 1, e]:
                        other[e, k] = sigma[i, k] / root
                    else:
                        one[e, k] = sigma[far, k]
                break


@subroutine
def _misfit(r, inverse):  # type: ignore[no-untyped-def]
    """`S^-1 R S^-1 - S^-1`, `(m, m)`."""
    m = len(r)
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
    return misfit


@subroutine
def _scoring(r, n, paths, sigma, inverse, info, gradient):  # type: ignore[no-untyped-def]
    """Information `n / 2 tr(S^-1 dS_e S^-1 dS_f)` into `info` `(E, E)`, and gradient
    `n / 2 tr(S^-1 dS_e (S^-1 R - I))` into `gradient` `(E,)`, S = Sigma.

    With `dS_e = -(u v^T + v u^T)` all comes from the products of u and v with `S^-1` and with
    `S^-1 R S^-1 - S^-1`."""
    m, n_edges = r.shape[0], paths.shape[1]
    one, other = np.zeros((n_edges, m)), np.zeros((n_edges, m))
    _factor_derivatives(sigma, paths, one, other)
    misfit = _misfit(r, inverse)
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
def pair_distance(r, n):  # type: ignore[no-untyped-def]
    """Distance of two features with correlation r in n samples, not beyond what noise shows, and
    its weight."""
    c = min(max(r, 0.5 / np.sqrt(n)), 1.0)
    return -np.log(c), c * c / ((1 - c * c) ** 2 + 1e-3)


@subroutine
def fit_unresolved_node(r, n):  # type: ignore[no-untyped-def]
    """Distances `x >= 0` `(m,)` of m features from the one node in which they meet.

    Weighted least squares on `-log r_ij = x_i + x_j`, weights `n r^2 / (1 - r^2)^2`, one feature at
    a time until x converges. O(rounds m^2).
    """
    m = r.shape[0]
    distance, weight = np.zeros((m, m)), np.zeros((m, m))
    x = np.zeros(m)
    for i in range(m):
        nearest = np.inf
        for j in range(m):
            if i != j:
                distance[i, j], weight[i, j] = pair_distance(r[i, j], n)
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
