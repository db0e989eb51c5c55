"""Counts of pairs by sets and loops, and what follows from them sample by sample."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def together(X: NDArray[Any]) -> NDArray[np.int64]:
    """How many rows have both, for all pairs of 0/1 columns `(n, p)`."""
    rows = [set(np.flatnonzero(x).tolist()) for x in X.T]
    return np.array([[len(one & other) for other in rows] for one in rows], dtype=np.int64)


def contingency(codes: NDArray[Any], dims: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many rows have each two of all categories `(D, D)`."""
    start = np.concatenate([[0], np.cumsum(dims)]).astype(int)
    counts = np.zeros((start[-1], start[-1]), dtype=np.int64)
    for row in codes:
        used = [start[a] + int(c) for a, c in enumerate(row)]
        for i in used:
            for j in used:
                counts[i, j] += 1
    return counts


def increments(X: NDArray[Any], frequent: NDArray[np.bool_]) -> int:
    """Pairs of different columns that a row has, but for those of two frequent ones."""
    total = 0
    for row in X:
        used = np.flatnonzero(row)
        total += sum(
            not (frequent[a] and frequent[b]) for i, a in enumerate(used) for b in used[:i]
        )
    return total


def binary_pair(x: Floats, y: Floats, w: Floats, damping: float) -> tuple[float, float, float]:
    """Correlation, its relative error by the influence of every sample, and the tail; `damping`
    occurrences are added to the variances."""
    n = w.sum()
    x, y = x - w @ x / n, y - w @ y / n
    x, y = (z / np.sqrt((w @ z**2 + damping) / n) for z in (x, y))
    rho = float(w @ (x * y) / n)
    influence = x * y / rho - (x**2 + y**2) / 2
    spread = w @ influence**2 / n - (w @ influence / n) ** 2
    tail = float(w @ (x**2 * y**2) / n) / (1 + 2 * rho**2)
    return rho, float(np.sqrt(spread / n)), max(tail, 1.0)
