"""A sign for every variable that makes correlations positive."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.distances.correlations import Source, correlation, gather_pairs
from latenttree.engine.kernels import kernel, subroutine

NEAREST = 64
"""Variables on either side of an edge that say which way the sides turn to each other."""


def orientation(source: Source, mst: NDArray[np.int64]) -> NDArray[np.float32]:
    """A sign for every variable, decided by many pairs together.

    Clusters merge along the spanning tree, strongest edge first, and turn to each other by the sign
    of `sum rho |rho|` over the pairs between the `NEAREST` variables of each to the edge: where
    single pairs are noise, their sum is not. O(p NEAREST^2)."""
    strength = np.empty(len(mst))
    gather_pairs(source, mst, 0, strength)
    order = mst[np.argsort(-np.abs(strength), kind="stable")]
    p = len(source.rows)
    flat = np.concatenate([order, order[:, ::-1]])
    by_node = np.argsort(flat[:, 0], kind="stable")
    first = np.searchsorted(flat[by_node, 0], np.arange(p + 1))
    found: Any = _turn(source, order, first, flat[by_node, 1], by_node % max(len(mst), 1))
    return np.asarray(found, dtype=np.float32)


@subroutine
def _around(node, edge, first, near, since, seen, mark, out):  # type: ignore[no-untyped-def]
    """Nodes around `node` that edges before number `edge` connect, nearest first, into `out`; how
    many, at most all of `out`."""
    out[0] = node
    seen[node] = mark
    n = 1
    q = 0
    while q < n and n < len(out):
        v = out[q]
        q += 1
        for s in range(first[v], first[v + 1]):
            u = near[s]
            if since[s] < edge and seen[u] != mark:
                seen[u] = mark
                out[n] = u
                n += 1
                if n == len(out):
                    break
    return n


@kernel
def _turn(source, order, first, near, since):  # type: ignore[no-untyped-def]
    """Signs of the variables; `order` holds the spanning tree's edges in the order of merging, the
    neighbours of node v are `near[first[v]:first[v + 1]]`, along edges number `since`.

    A cluster that turns is not walked: `flip` of a node counts for itself and, by the tree of
    clusters, for all below it."""
    p = len(first) - 1
    up = np.full(p, -1)  # the cluster that a cluster has joined
    flip = np.ones(p)  # sign against that cluster
    size = np.ones(p, dtype=np.int64)
    seen = np.full(p, -1)
    one, other = np.empty(NEAREST, dtype=np.int64), np.empty(NEAREST, dtype=np.int64)
    own, theirs = np.empty(NEAREST), np.empty(NEAREST)
    for e in range(len(order)):
        n = _around(order[e, 0], e, first, near, since, seen, 2 * e, one)
        m = _around(order[e, 1], e, first, near, since, seen, 2 * e + 1, other)
        for i in range(n):
            own[i] = _sign_of(one[i], up, flip)[0]
        for j in range(m):
            theirs[j] = _sign_of(other[j], up, flip)[0]
        total = 0.0
        for i in range(n):
            for j in range(m):
                rho = correlation(source, one[i], other[j])
                total += own[i] * theirs[j] * rho * abs(rho)
        a = _sign_of(order[e, 0], up, flip)[1]
        b = _sign_of(order[e, 1], up, flip)[1]
        if size[a] < size[b]:
            a, b = b, a
        up[b] = a
        flip[b] = -1.0 if total < 0 else 1.0
        size[a] += size[b]
    sign = np.empty(p)
    for v in range(p):
        sign[v] = _sign_of(v, up, flip)[0]
    return sign


@subroutine
def _sign_of(v, up, flip):  # type: ignore[no-untyped-def]
    """Sign of a node against the root of its cluster, and that root; O(log p) steps."""
    sign = 1.0
    while up[v] >= 0:
        sign *= flip[v]
        v = up[v]
    return sign, v
