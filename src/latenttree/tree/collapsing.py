"""Which edges `Tree.collapse` contracts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from latenttree.errors import DataError, check_option
from latenttree.tree.numbering import merged_nodes
from latenttree.tree.rooting import IntArray

SHOWN_SUPPORT = 0.5
"""Inner edges of less support are contracted in what is shown."""


def checked_support(min_support: float, support: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """The support; raises where there is none, or where the bound is not in [0, 1]."""
    number = isinstance(min_support, int | float | np.number) and not isinstance(min_support, bool)
    possible = number and 0 <= min_support <= 1
    check_option("min_support", min_support, possible, "give a number from 0 to 1")
    if support is None:
        what = "the tree has no support by which to collapse it"
        raise DataError(what, "pass support=, one value for each edge", option="support")
    return support


def contractible(
    edges: IntArray, support: NDArray[np.float64], n_nodes: int, n_observed: int
) -> IntArray:
    """Places of those edges ``(m, 2)`` that can be contracted together, in increasing order.

    Edges between hidden nodes before others, then weakest first: an edge whose contraction would
    merge two observed nodes is left out."""
    near_observed = (edges < n_observed).any(axis=1)
    order = np.lexsort((support, near_observed))
    left_out: set[int] = set()

    def leave_out(i: int, low: int, high: int) -> None:
        left_out.add(i)

    merged_nodes(n_nodes, n_observed, edges[order], leave_out)
    return np.sort(np.delete(order, list(left_out)))
