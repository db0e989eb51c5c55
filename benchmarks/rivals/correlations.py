"""Trees that other methods learn from correlations, for tables of real data.

All see the same `(p, p)` matrix of correlations; each is returned as a `Tree` with lengths.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.rivals.hierarchies import from_linkage
from benchmarks.rivals.scikit_bio import joined
from latenttree.evaluation.baselines import chow_liu
from latenttree.tree import Tree

Matrix = NDArray[np.float64]

LEAST = 1e-6
"""Correlations below this are as good as none: `-log` is bounded by it."""


def agglomerative(
    correlation: Matrix, names: Sequence[str], signed: bool = False, method: str = "average"
) -> Tree:
    """Linkage on `1 - |correlation|`, or on `1 - correlation` if signs matter."""
    strength = correlation if signed else np.abs(correlation)
    apart = np.maximum(1 - strength, 0.0)
    np.fill_diagonal(apart, 0.0)
    return linked(apart, names, method)


def linked(distance: Matrix, names: Sequence[str], method: str = "average") -> Tree:
    """The dendrogram of any distances."""
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    return from_linkage(linkage(squareform(distance, checks=False), method=method), names)


def information(correlation: Matrix, signed: bool = False) -> Matrix:
    """`-log |correlation|`, which adds along a tree of single correlations; with `signed`
    correlations below zero are none."""
    strength = correlation if signed else np.abs(correlation)
    distance = -np.log(np.clip(strength, LEAST, 1.0))
    np.fill_diagonal(distance, 0.0)
    return np.asarray((distance + distance.T) / 2)


def correlation_rivals(
    correlation: Matrix, names: Sequence[str], signed: bool = False
) -> dict[str, Tree]:
    """What the rivals make of one matrix of correlations."""
    distance = information(correlation)
    return {
        "agglomerative, average": agglomerative(correlation, names, signed),
        "agglomerative, Ward": agglomerative(correlation, names, signed, "ward"),
        "neighbour joining": joined(distance, names),
        "Chow-Liu": chow_liu(distance, names),
    }
