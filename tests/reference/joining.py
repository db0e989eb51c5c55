"""Unresolved nodes in plain NumPy: joining by its definition, likelihood by its formula."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from latenttree.distances.similarity import (
    Similarity,
    similarity_from_distances,
    similarity_from_matrix,
)

Matrix = NDArray[np.float64]
Pairs = list[tuple[int, int]]

RIDGE = 1e-6  # the package adds this to the unit variances


def log_distance(r: float, n: float) -> tuple[float, float]:
    """`-log r` and its variance `(1 - r^2)^2 / (n r^2)`, r from half a standard error to 1."""
    x = min(max(r, 0.5 / np.sqrt(n)), 1.0)
    return -np.log(x), ((1 - x**2) ** 2 + 1e-12) / (n * x**2)


def neighbour_joining(
    r: Matrix, n: float, caution: float, equal_weights: bool
) -> tuple[Pairs, list[float]]:
    """Best-first joining. Every cluster is kept as its weights over the leaves, so that all
    correlations come from `r` itself, anew in each round."""
    m = len(r)
    weights = list(np.eye(m))
    node, load = list(range(m)), [1.0] * m
    active, edges, lengths = list(range(m)), [], []
    while len(active) > 3:
        d, v = _distances(r, n, weights, active)
        i, j = _best_pair(d, v, active, caution, equal_weights)
        to_i, to_j = _parent_distances(d, v, i, j, [k for k in active if k not in (i, j)])
        combined = best_predictor(np.exp(-to_i), np.exp(-to_j))
        new_node = m + len(edges) // 2
        for row, half in ((i, to_i), (j, to_j)):
            edges.append((node[row], new_node))
            lengths.append(max(half + np.log(load[row]), 0.0))
        weights[i] = combined[0] * weights[i] + combined[1] * weights[j]
        node[i], load[i] = new_node, combined[2]
        active.remove(j)
    d, _ = _distances(r, n, weights, active)
    if len(active) == 2:
        i, j = active
        return [(node[i], node[j])], [d[i, j]]
    new_node = m + len(edges) // 2
    for s in range(3):
        i, j, k = (active[(s + t) % 3] for t in range(3))
        edges.append((node[i], new_node))
        lengths.append(max((d[i, j] + d[i, k] - d[j, k]) / 2 + np.log(load[i]), 0.0))
    return edges, lengths


Distances = dict[tuple[int, int], float]


def _distances(
    r: Matrix, n: float, weights: list[Matrix], active: list[int]
) -> tuple[Distances, Distances]:
    d, v = {}, {}
    for i, j in itertools.permutations(active, 2):
        d[i, j], v[i, j] = log_distance(float(weights[i] @ r @ weights[j]), n)
    return d, v


def _best_pair(
    d: Distances, v: Distances, active: list[int], caution: float, equal_weights: bool
) -> tuple[int, int]:
    """The pair (i, j) with parent u of largest `Q = sum_k w_k d(k, u)` less its noise."""
    near = {k: sum(np.exp(-2 * d[k, x]) for x in active if x != k) for k in active}
    w = {k: 1.0 if equal_weights else near[k] / max(near.values()) for k in active}
    best, pair = -np.inf, (active[0], active[1])
    for i, j in ((active[a], active[b]) for a in range(len(active)) for b in range(a)):
        rest = [k for k in active if k not in (i, j)]
        total = sum(w[k] for k in rest)
        tilt = sum(w[k] * (d[i, k] - d[j, k]) for k in rest) / total
        q = sum(w[k] * (d[i, k] + d[j, k] - d[i, j]) / 2 for k in rest)
        q += w[i] * (d[i, j] + tilt) / 2 + w[j] * (d[i, j] - tilt) / 2
        variance = sum(w[k] ** 2 * (v[i, k] + v[j, k]) for k in rest) + total**2 * v[i, j]
        q -= caution * np.sqrt(variance) / 2
        if q > best:
            best, pair = q, (i, j)
    return pair


def _parent_distances(
    d: Distances, v: Distances, i: int, j: int, rest: list[int]
) -> tuple[float, float]:
    precision = np.array([1 / (v[i, k] + v[j, k]) for k in rest])
    tilt = np.average([d[i, k] - d[j, k] for k in rest], weights=precision)
    to_i = float(np.clip((d[i, j] + tilt) / 2, 0.0, d[i, j]))
    return to_i, d[i, j] - to_i


def best_predictor(a: float, b: float) -> tuple[float, float, float]:
    """Best linear predictor of a node from two features that meet in it, by normal equations."""
    if max(a, b) >= 1 - 1e-14:
        return (1.0, 0.0, 1.0) if a >= 1 - 1e-14 else (0.0, 1.0, 1.0)
    covariance = np.array([[1.0, a * b], [a * b, 1.0]])
    w = np.linalg.solve(covariance, np.array([a, b]))
    w /= np.sqrt(w @ covariance @ w)
    return float(w[0]), float(w[1]), float(w @ [a, b])


def edges_between(edges: Any, i: int, j: int) -> list[int]:
    """Edges on the path from i to j, by walking."""
    near: dict[int, list[tuple[int, int]]] = {}
    for e, (a, b) in enumerate(np.asarray(edges).tolist()):
        near.setdefault(a, []).append((b, e))
        near.setdefault(b, []).append((a, e))
    stack: list[tuple[int, list[int]]] = [(i, [])]
    seen = {i}
    while stack:
        v, path = stack.pop()
        if v == j:
            return sorted(path)
        for u, e in near[v]:
            if u not in seen:
                seen.add(u)
                stack.append((u, [*path, e]))
    raise ValueError(f"no path from {i} to {j}")


def between(m: int, edges: Any) -> Matrix:
    """`(m, m, E)`: 1 where an edge lies between two leaves."""
    found = np.zeros((m, m, len(edges)))
    for i, j in itertools.permutations(range(m), 2):
        found[i, j, edges_between(edges, i, j)] = 1
    return found


def path_lengths(m: int, edges: Any, lengths: Any) -> Matrix:
    """Distances between leaves 0..m-1."""
    return np.asarray(between(m, edges) @ np.asarray(lengths))


def model_covariance(m: int, edges: Any, lengths: Any) -> Matrix:
    """`Sigma_ij = exp(-T_ij)`, ridged as in the package."""
    return np.asarray(np.exp(-path_lengths(m, edges, lengths)) + RIDGE * np.eye(m))


def log_likelihood(r: Matrix, n: float, edges: Any, lengths: Any) -> float:
    """`-n / 2 (log det Sigma + tr Sigma^-1 R)`."""
    return _gaussian(r, n, model_covariance(len(r), edges, lengths))


def _gaussian(r: Matrix, n: float, sigma: Matrix) -> float:
    return float(-0.5 * n * (np.linalg.slogdet(sigma)[1] + np.trace(np.linalg.solve(sigma, r))))


def fit_likelihood(r: Matrix, n: float, edges: Any) -> tuple[Matrix, float]:
    """Maximum likelihood lengths by a general optimiser, numerical gradients, three starts."""
    best: Any = None
    paths, ridge = between(len(r), edges), RIDGE * np.eye(len(r))
    for start in (0.1, 0.5, 1.0):
        found = minimize(
            lambda x: -_gaussian(r, n, np.exp(-paths @ x) + ridge) / n,
            np.full(len(edges), start),
            bounds=[(0.0, 20.0)] * len(edges),
            method="L-BFGS-B",
            options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 2000},
        )
        if best is None or found.fun < best.fun:
            best = found
    return best.x, -best.fun * n


def information(n: float, edges: Any, m: int, lengths: Matrix) -> Matrix:
    """Fisher information `n / 2 tr(Sigma^-1 dSigma_e Sigma^-1 dSigma_f)`, slopes by differences."""
    step = 1e-6
    inverse = np.linalg.inv(model_covariance(m, edges, lengths))
    slopes = []
    for e in range(len(lengths)):
        shift = np.eye(len(lengths))[e] * step
        up = model_covariance(m, edges, lengths + shift)
        down = model_covariance(m, edges, lengths - shift)
        slopes.append(inverse @ (up - down) / (2 * step))
    return np.array([[0.5 * n * np.trace(a @ b) for b in slopes] for a in slopes])


def random_binary(rng: np.random.Generator, m: int) -> NDArray[np.int64]:
    """A random binary tree over leaves 0..m-1, hidden m..2m-3, by inserting leaves into edges."""
    if m == 2:
        return np.array([[0, 1]])
    edges = [(0, m), (1, m), (2, m)]
    for leaf in range(3, m):
        spot, new_node = int(rng.integers(len(edges))), m + leaf - 2
        a, b = edges[spot]
        edges[spot] = (a, new_node)
        edges += [(b, new_node), (leaf, new_node)]
    return np.array(edges, dtype=np.int64)


def sampled_correlations(rng: np.random.Generator, sigma: Matrix, n: int) -> Matrix:
    """Correlations of `n` Gaussian samples from `sigma`."""
    x = rng.standard_normal((n, len(sigma))) @ np.linalg.cholesky(sigma).T
    return np.asarray(np.corrcoef(x, rowvar=False))


def with_samples(distances: Matrix, n: float) -> Similarity:
    """Exact similarities that pass for those of `n` samples."""
    whole = similarity_from_distances(distances)
    return similarity_from_matrix(whole.rho, float(n), whole.distance_scale, whole.mst)
