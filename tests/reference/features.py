"""Branches as features, from the covariance of the whole tree: nothing is passed along edges."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from tests.reference.adjacency import Adjacency

Matrix = NDArray[np.float64]


def node_distances(tree: Adjacency, start: int) -> dict[int, float]:
    """Distance from `start` to every node, by walking."""
    distance, stack = {start: 0.0}, [start]
    while stack:
        v = stack.pop()
        for u, x in tree.links[v].items():
            if u not in distance:
                distance[u] = distance[v] + x
                stack.append(u)
    return distance


def behind(tree: Adjacency, u: int, v: int) -> list[int]:
    """Observed nodes on the side of v when the edge u - v is cut, v included."""
    seen, stack = {u, v}, [v]
    while stack:
        for w in tree.links[stack.pop()]:
            if w not in seen:
                seen.add(w)
                stack.append(w)
    return sorted(x for x in seen - {u} if x < tree.n_observed)


def covariance(tree: Adjacency, rows: list[int], columns: list[int]) -> Matrix:
    """`exp(-path length)`: the model has unit variances."""
    found = {a: node_distances(tree, a) for a in rows}
    return np.array([[np.exp(-found[a][b]) for b in columns] for a in rows])


def best_predictor(tree: Adjacency, u: int, v: int) -> tuple[Matrix, float]:
    """Weights over all observed nodes of the best linear predictor of v from those behind u -> v,
    scaled to unit variance, and its correlation with v."""
    leaves = behind(tree, u, v)
    own = covariance(tree, leaves, leaves)
    cross = covariance(tree, leaves, [v])[:, 0]
    w = np.linalg.solve(own, cross)
    w /= np.sqrt(w @ own @ w)
    weights = np.zeros(tree.n_observed)
    weights[leaves] = w
    return weights, float(w @ cross)
