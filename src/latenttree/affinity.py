"""Distances as affinities: one signed correlation for each pair, and how noisy it is.

`rho = sign * exp(-d / scale)` lies in [-1, 1] and multiplies along the tree. With `scale = k - 1` it
is the geometric mean of the `k - 1` canonical correlations, so that any number of states is treated
like a correlation from `n` effective samples: `Var(-log rho) = (1 - rho^2)^2 / (n rho^2)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.spanning import minimum_spanning_tree

EXACT = 1e200
"""Effective samples of distances without error."""

LONGEST = 200.0
"""Longest path in units of `scale`; longer ones are rescaled so that exp(-d) does not vanish."""


@dataclass(frozen=True, eq=False)
class Affinity:
    """Affinities `(p, p)`, oriented to be positive along the spanning tree `mst` `(p - 1, 2)`."""

    rho: NDArray[Any]
    n: float
    scale: float
    mst: NDArray[np.int64]

    @property
    def exact(self) -> bool:
        return self.n >= EXACT


def affinity(
    distances: NDArray[Any],
    standard_errors: NDArray[Any] | None = None,
    signs: NDArray[np.int8] | None = None,
    rank: int = 1,
    n: float | None = None,
) -> Affinity:
    """Affinities of a distance matrix; `standard_errors=None` says that the distances are exact.

    Infinite distances are affinity zero. The effective number of samples is `n` where it is known,
    else the median over the spanning tree's edges, the pairs that matter most, of what their standard
    errors imply.
    """
    mst = minimum_spanning_tree(distances)
    finite = distances[np.isfinite(distances)]
    scale = max(float(rank), float(finite.max(initial=0.0)) / LONGEST)
    rho = np.exp(-distances / distances.dtype.type(scale))
    np.fill_diagonal(rho, 1.0)
    if signs is not None:
        rho *= signs
        flip = _orientation(rho, mst)
        rho *= flip[:, None]
        rho *= flip[None, :]
    if n is None and standard_errors is None:
        n = EXACT
    elif n is None:
        n = _effective_samples(rho, np.asarray(standard_errors), scale, mst)
    return Affinity(rho, n, scale, mst)


def component(whole: Affinity, members: NDArray[np.int64]) -> Affinity:
    """The affinities of some variables that the spanning tree connects."""
    number = np.full(len(whole.rho), -1)
    number[members] = np.arange(len(members))
    inside = (number[whole.mst] >= 0).all(axis=1)
    rho = np.ascontiguousarray(whole.rho[np.ix_(members, members)])
    return Affinity(rho, whole.n, whole.scale, number[whole.mst[inside]])


def weak_links(whole: Affinity) -> NDArray[np.bool_]:
    """Edges of the spanning tree no stronger than the best of p pure-noise correlations."""
    p = len(whole.rho)
    strength = np.abs(whole.rho[whole.mst[:, 0], whole.mst[:, 1]])
    return np.asarray(strength * np.sqrt(whole.n) < np.sqrt(2 * np.log(max(p, 2))))


def _orientation(rho: NDArray[Any], mst: NDArray[np.int64]) -> NDArray[Any]:
    """A sign for every variable that makes the affinities along the spanning tree positive."""
    p = len(rho)
    neighbours: list[list[int]] = [[] for _ in range(p)]
    for a, b in mst.tolist():
        neighbours[a].append(b)
        neighbours[b].append(a)
    flip = np.zeros(p, dtype=rho.dtype)
    flip[0] = 1
    stack = [0]
    while stack:
        a = stack.pop()
        for b in neighbours[a]:
            if flip[b] == 0:
                flip[b] = flip[a] * (-1 if rho[a, b] < 0 else 1)
                stack.append(b)
    return flip


def _effective_samples(
    rho: NDArray[Any], errors: NDArray[Any], scale: float, mst: NDArray[np.int64]
) -> float:
    """`n` from `Var(d) = scale^2 (1 - rho^2)^2 / (n rho^2)` on the edges of the spanning tree."""
    r = np.clip(np.abs(rho[mst[:, 0], mst[:, 1]].astype(np.float64)), 1e-9, 0.999)
    e = np.maximum(errors[mst[:, 0], mst[:, 1]].astype(np.float64), 1e-12)
    known = np.isfinite(e)
    if not known.any():
        return 4.0
    n = (1 - r[known] ** 2) ** 2 * scale**2 / (r[known] * e[known]) ** 2
    return float(np.clip(np.median(n), 4.0, 1e15))
