"""Branches as features, from the covariance of the whole tree: nothing is passed along edges."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from latenttree.structure.builder import Wiring

Matrix = NDArray[np.float64]


def node_distances(wiring: Wiring, start: int) -> dict[int, float]:
    """Distance from `start` to every node, by walking."""
    distance, stack = {start: 0.0}, [start]
    while stack:
        v = stack.pop()
        for u, x in wiring.links[v].items():
            if u not in distance:
                distance[u] = distance[v] + x
                stack.append(u)
    return distance


def behind(wiring: Wiring, u: int, v: int) -> list[int]:
    """Observed nodes on the side of v when the edge u - v is cut, v included."""
    seen, stack = {u, v}, [v]
    while stack:
        for w in wiring.links[stack.pop()]:
            if w not in seen:
                seen.add(w)
                stack.append(w)
    return sorted(x for x in seen - {u} if x < wiring.n_observed)


def covariance(wiring: Wiring, rows: list[int], columns: list[int]) -> Matrix:
    """`exp(-path length)`: the model has unit variances."""
    found = {a: node_distances(wiring, a) for a in rows}
    return np.array([[np.exp(-found[a][b]) for b in columns] for a in rows])


def best_predictor(wiring: Wiring, u: int, v: int) -> tuple[Matrix, float]:
    """Weights over all observed nodes of the best linear predictor of v from those behind u -> v,
    scaled to unit variance, and its correlation with v."""
    leaves = behind(wiring, u, v)
    own = covariance(wiring, leaves, leaves)
    cross = covariance(wiring, leaves, [v])[:, 0]
    w = np.linalg.solve(own, cross)
    w /= np.sqrt(w @ own @ w)
    weights = np.zeros(wiring.n_observed)
    weights[leaves] = w
    return weights, float(w @ cross)
