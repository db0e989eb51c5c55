"""Signs of edges: products along paths, what contraction leaves of them, and when two agree.

The sign of an edge is that of the correlation of its ends, 0 where they have none. A hidden node
may be turned round, which turns the signs of all its edges; the product along a path between
observed nodes stays.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from latenttree.tree.rooting import IntArray, ParentEdges

SignArray = NDArray[np.int8]


def node_signs(rooted: ParentEdges, signs: SignArray) -> tuple[SignArray, IntArray]:
    """For every node its sign relative to its part, ``(n_nodes,)`` +1 or -1, and its part.

    Parts are joined by edges without sign. The path between two nodes of one part has the product
    of their two signs; between two parts there is none."""
    n = len(rooted.parents)
    sign, part = [1] * n, list(range(n))
    parents, edges, known = rooted.parents.tolist(), rooted.edges.tolist(), signs.tolist()
    for v in rooted.order[1:].tolist():
        s = known[edges[v]]
        if s:
            sign[v], part[v] = sign[parents[v]] * s, part[parents[v]]
    return np.array(sign, dtype=np.int8), np.array(part, dtype=np.int64)


def path_signs(rooted: ParentEdges, signs: SignArray, n_observed: int) -> SignArray:
    """``(p, p)`` signs of the paths between observed nodes; 0 where an edge has none."""
    sign, part = (a[:n_observed] for a in node_signs(rooted, signs))
    joined = part[:, None] == part[None, :]
    return np.asarray(np.outer(sign, sign) * joined, dtype=np.int8)


def contracted_signs(
    rooted: ParentEdges, edges: IntArray, signs: SignArray, merged: IntArray
) -> SignArray:
    """Signs of edges ``(E, 2)`` when every node `v` merges into ``merged[v]``.

    A node that merges over a path of sign -1 is turned round first, so that the signs of paths
    stay; over a path without sign, the signs of its other edges are lost."""
    sign, part = node_signs(rooted, signs)
    turn = sign * sign[merged] * (part == part[merged])
    a, b = edges.T
    return np.asarray(signs * turn[a] * turn[b], dtype=np.int8)


def signs_agree(rooted: ParentEdges, n_observed: int, one: SignArray, other: SignArray) -> bool:
    """Whether two signings of one tree give every path between observed nodes the same sign,
    wherever both give it one."""
    difference, part = (a[:n_observed] for a in node_signs(rooted, (one * other).astype(np.int8)))
    sums = np.bincount(part, weights=difference)
    return bool((np.abs(sums) == np.bincount(part)).all())
