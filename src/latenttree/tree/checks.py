"""Checks of the arrays that a tree is made of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latenttree.errors import DataError
from latenttree.tree.rooting import IntArray
from latenttree.tree.signs import SignArray

FloatArray = NDArray[np.float64]

LEAST_DEGREE = 3  # of a hidden node


def as_edges(edges: ArrayLike) -> IntArray:
    """A copy as ``(E, 2)`` int64."""
    array = np.asarray(edges)
    if array.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        what = f"edges have shape {array.shape} and type {array.dtype}"
        raise DataError(what, "pass an (E, 2) array of integers", value=array.shape, option="edges")
    return np.array(array, dtype=np.int64)


def as_lengths(lengths: ArrayLike, n_edges: int) -> FloatArray:
    """A copy as ``(E,)`` float64, finite and not negative."""
    array = np.array(lengths, dtype=np.float64)
    if array.shape != (n_edges,):
        what = f"lengths have shape {array.shape} for {n_edges} edges"
        raise DataError(what, "pass one length for each edge", value=array.shape, option="lengths")
    bad = np.flatnonzero(~(np.isfinite(array) & (array >= 0)))
    if bad.size:
        raise DataError(
            f"length {array[bad[0]]} of edge {bad[0]} is not a finite number >= 0 "
            f"({bad.size} such lengths)",
            "clip or drop them first",
            value=float(array[bad[0]]),
            option="lengths",
        )
    return array


def as_signs(signs: ArrayLike | None, n_edges: int) -> SignArray:
    """A copy as ``(E,)`` int8 of +1, -1 and 0; zeros where there are none."""
    if signs is None:
        return np.zeros(n_edges, dtype=np.int8)
    array = np.asarray(signs)
    if array.shape != (n_edges,):
        what = f"signs have shape {array.shape} for {n_edges} edges"
        raise DataError(what, "pass one sign for each edge", value=array.shape, option="signs")
    bad = np.flatnonzero(~np.isin(array, (-1, 0, 1)))
    if bad.size:
        what = f"sign {array[bad[0]]!r} of edge {bad[0]} is none of +1, -1 and 0"
        remedy = "pass 0 where an edge has no sign"
        raise DataError(what, remedy, value=array[bad[0]], option="signs")
    return array.astype(np.int8)


def as_support(support: ArrayLike | None, n_edges: int) -> FloatArray | None:
    """A copy as ``(E,)`` float64, NaN where unknown; None stays None."""
    if support is None:
        return None
    array = np.array(support, dtype=np.float64)
    if array.shape != (n_edges,):
        what = f"support has shape {array.shape} for {n_edges} edges"
        raise DataError(what, "pass one for each edge", value=array.shape, option="support")
    return array


def check_edges(edges: IntArray, n_nodes: int) -> None:
    """There are as many edges as a tree has, between nodes that exist."""
    if len(edges) != n_nodes - 1:
        what = f"a tree of {n_nodes} nodes has {n_nodes - 1} edges, got {len(edges)}"
        remedy = "check that edges join every node exactly once"
        raise DataError(what, remedy, value=len(edges), option="edges")
    if edges.size and not 0 <= edges.min() <= edges.max() < n_nodes:
        what = f"edges name nodes {edges.min()}..{edges.max()}"
        remedy = f"there are names for 0..{n_nodes - 1}"
        raise DataError(what, remedy, value=int(edges.max()), option="edges")


def check_connected(n_reached: int, names: Sequence[str]) -> None:
    """All nodes are connected to the first; with ``n - 1`` edges, there is then no cycle."""
    if n_reached != len(names):
        raise DataError(
            f"edges hold a cycle: only {n_reached} of {len(names)} nodes are connected to "
            f"{names[0]!r}",
            "remove the edge that closes the cycle",
            value=n_reached,
            option="edges",
        )


def check_degrees(degree: IntArray, names: Sequence[str], n_observed: int) -> None:
    """Every hidden node has at least three neighbours."""
    weak = n_observed + np.flatnonzero(degree[n_observed:] < LEAST_DEGREE)
    if weak.size:
        name, n_neighbours = names[weak[0]], int(degree[weak[0]])
        what = (
            f"hidden node {name!r} has {n_neighbours} neighbours, a hidden node needs at least "
            f"{LEAST_DEGREE} ({weak.size} such nodes)"
        )
        raise DataError(what, "contract one of its edges", value=n_neighbours, node=name)
