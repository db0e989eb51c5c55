"""A spanning forest that grows: the exact one of all the edges added so far, in O(p) memory.

The maximum spanning tree of a graph lies in the union of those of its parts, so edges can come in
any pieces; an edge whose ends the forest already joins by stronger edges is dropped at once. The
order of edges is that of `spanning_tree`: strength, lower node, higher node.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from latenttree.engine.arrays import Floats, Ints
from latenttree.engine.kernels import kernel, subroutine

NEVER = np.iinfo(np.int64).max


class Forest(NamedTuple):
    """Edges from strong to weak, and the same as a shallow tree of nodes.

    Kruskal's rule joins the smaller piece to the larger; node v hangs on `parent[v]` since edge
    number `since[v]` (`NEVER` for a root). Depth is at most log2(p), and `since` grows upwards."""

    edges: Ints  # (m, 2) as (lower, higher)
    strength: Floats  # (m,) from strong to weak
    parent: Ints  # (p,)
    since: Ints  # (p,)
    core: Floats  # (p,) weakest edge from a node to the root of its piece


@kernel
def _kruskal(edges, strength, p):  # type: ignore[no-untyped-def]
    """Kruskal's rule on edges in order; numbers of the edges taken, and the tree of nodes."""
    parent = np.arange(p)
    since = np.full(p, NEVER)
    core = np.full(p, np.inf)
    size = np.ones(p, dtype=np.int64)
    taken = np.empty(min(max(p - 1, 0), len(edges)), dtype=np.int64)
    n = 0
    for e in range(len(edges)):
        a, b = edges[e, 0], edges[e, 1]
        while parent[a] != a:
            a = parent[a]
        while parent[b] != b:
            b = parent[b]
        if a == b:
            continue
        if size[a] < size[b]:
            a, b = b, a
        parent[b] = a
        since[b] = n
        size[a] += size[b]
        taken[n] = e
        n += 1
        if n == p - 1:
            break
    for v in range(p):
        u = v
        while parent[u] != u:
            core[v] = strength[taken[since[u]]]
            u = parent[u]
        if core[v] == np.inf and n < p - 1:
            core[v] = -np.inf
    return taken[:n], parent, since, core


@subroutine
def adds(parent, since, strength, a, b, value):  # type: ignore[no-untyped-def]
    """Whether an edge (a, b) of strength `value` may belong to the forest: its ends are not joined
    by stronger edges only. O(log p)."""
    while a != b:
        s, t = since[a], since[b]
        if s > t:
            a, b, s = b, a, t
        if s == NEVER or strength[s] <= value:
            return True
        a = parent[a]
    return False


def grown(p: int, edges: Ints, strength: Floats) -> Forest:
    """The forest of some edges, each as (lower, higher), in any order."""
    order = np.lexsort((edges[:, 1], edges[:, 0], -strength))
    edges, strength = edges[order], strength[order]
    taken, parent, since, core = _kruskal(edges, strength, p)
    return Forest(edges[taken], strength[taken], parent, since, core)


def extended(forest: Forest, edges: Ints, strength: Floats) -> Forest:
    """The forest of its own edges and some new ones."""
    both = np.concatenate([forest.edges, edges]), np.concatenate([forest.strength, strength])
    return grown(len(forest.parent), *both)
