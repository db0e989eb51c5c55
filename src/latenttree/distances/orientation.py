"""A sign for every variable that makes correlations positive."""

from __future__ import annotations

from typing import Any

import numpy as np

from latenttree.distances.correlation_source import CorrelationSource
from latenttree.distances.correlations import CORRELATION, cross_block, values_of_pairs
from latenttree.engine.arrays import Float32, Ints
from latenttree.engine.kernels import kernel, subroutine

NEAREST = 64
"""Variables on either side of an edge that decide the relative sign of the two sides."""


def orientation(source: CorrelationSource, mst: Ints) -> Float32:
    """A sign `(p,)` for every variable, such that correlations are mostly positive.

    Clusters merge along the spanning tree, strongest edge first. Their relative sign is that of
    `sum rho |rho|` over the pairs between the `NEAREST` variables of each to the edge: where single
    pairs are noise, their sum is not. O(p NEAREST^2)."""
    strength = values_of_pairs(source, mst, CORRELATION)
    order = mst[np.argsort(-np.abs(strength), kind="stable")]
    p = len(source.rows)
    directed = np.concatenate([order, order[:, ::-1]])
    by_node = np.argsort(directed[:, 0], kind="stable")
    first = np.searchsorted(directed[by_node, 0], np.arange(p + 1))
    signs: Any = _merge(source, order, first, directed[by_node, 1], by_node % max(len(mst), 1))
    return np.asarray(signs, dtype=np.float32)


@subroutine
def _nearest(node, edge, first, near, since, seen, mark, out):  # type: ignore[no-untyped-def]
    """Nodes connected to `node` by edges before number `edge`, nearest first, into `out`; returns
    how many, at most the size of `out`. `seen[v] == mark` at nodes that were reached."""
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
def _merge(source, order, first, near, since):  # type: ignore[no-untyped-def]
    """Signs of the variables, `(p,)`.

    `order` `(p - 1, 2)` are the edges in the order of merging; the neighbours of node v are
    `near[first[v]:first[v + 1]]`, along edges number `since`.

    Clusters are a disjoint-set forest: `flip` of a node multiplies its own sign and the signs of
    all below it, so that a cluster changes sign without a walk."""
    p = len(first) - 1
    parent = np.full(p, -1)  # the cluster that a cluster has joined
    flip = np.ones(p)  # sign relative to that cluster
    size = np.ones(p, dtype=np.int64)
    seen = np.full(p, -1)
    one, other = np.empty(NEAREST, dtype=np.int64), np.empty(NEAREST, dtype=np.int64)
    own, theirs, block = np.empty(NEAREST), np.empty(NEAREST), np.empty((NEAREST, NEAREST))
    for e in range(len(order)):
        n = _nearest(order[e, 0], e, first, near, since, seen, 2 * e, one)
        m = _nearest(order[e, 1], e, first, near, since, seen, 2 * e + 1, other)
        for i in range(n):
            own[i] = _sign_of(one[i], parent, flip)[0]
        for j in range(m):
            theirs[j] = _sign_of(other[j], parent, flip)[0]
        cross_block(source, one[:n], other[:m], block)
        total = 0.0
        for i in range(n):
            for j in range(m):
                rho = block[i, j]
                total += own[i] * theirs[j] * rho * abs(rho)
        a = _sign_of(order[e, 0], parent, flip)[1]
        b = _sign_of(order[e, 1], parent, flip)[1]
        if size[a] < size[b]:
            a, b = b, a
        parent[b] = a
        flip[b] = -1.0 if total < 0 else 1.0
        size[a] += size[b]
    sign = np.empty(p)
    for v in range(p):
        sign[v] = _sign_of(v, parent, flip)[0]
    return sign


@subroutine
def _sign_of(v, parent, flip):  # type: ignore[no-untyped-def]
    """Sign of a node relative to the root of its cluster, and that root. O(log p)."""
    sign = 1.0
    while parent[v] >= 0:
        sign *= flip[v]
        v = parent[v]
    return sign, v
