"""Belief propagation over all inner nodes, for sparse binary samples.

The nodes with children ("inner") are visited for `LANE` samples side by side, and leaves only where
they are one: with `B_u(j) = prod_(leaves x of u) P(x = 0 | j)`,

    b_u(j) = B_u(j) prod_(leaves x that are 1) P(1 | j) / P(0 | j) prod_(inner children v) m_v(j)
    m_v(j) = sum_i P(v = i | j) b_v(i)
    a_v(i) = sum_j P(v = i | j) a_u(j) b_u(j) / m_v(j)

`b_v` is the likelihood of the evidence below a node, `a_v` of all the rest; the factor of
`P(v = i | j)` in `a_v` is the message from `u` to `v`. O(inner nodes k^2 + ones k) a sample; memory
3 k LANE numbers for each inner node and thread. `b`, `a` and that factor have a largest entry of 1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.engine.kernels import kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LANE = 16
"""Samples side by side."""

OPTIONS: dict[str, Any] = {"fastmath": {"contract", "reassoc"}}
ONCE: dict[str, Any] = {"inline": "always"}


class Nodes(NamedTuple):
    """A model by its inner nodes in preorder: each before those below it, subtrees together."""

    parent: Ints  # (H,) the root, which is the first: itself
    logs: NDArray[np.bool_]  # (H,) the product is kept as a logarithm
    own: Ints  # (H,) place among the observed inner nodes, -1 for hidden ones
    table: Floats  # (H, k, k) P(u = i | parent = j), at the root P(i) for j = 0; zero beyond
    base: Floats  # (H, k) B, the largest entry 1; or logarithms
    home: Ints  # (p,) parent of a leaf; an inner variable itself
    inner: NDArray[np.bool_]  # (p,)
    ratio: Floats  # (p, k) P(1 | j) / P(0 | j) of leaves; or logarithms


class MessageRequest(NamedTuple):
    """Messages to write, by the inner node at the lower end of their edge.

    A message is weighted, by state, and scaled to a sum of 1 (`by_sum`) or a largest entry of 1;
    states from `first` on are written."""

    up: Ints  # (H,) place of the message of a node to its parent; -1: not requested
    down: Ints  # (H,) place of the message of the parent to a node; -1: not requested
    up_weight: Floats  # (H, k)
    down_weight: Floats  # (H, k)
    by_sum: bool
    first: int


@kernel
def preorder(parents, order, chosen):  # type: ignore[no-untyped-def]
    """Places of the chosen nodes in preorder: each before all below it, subtrees together; -1 for
    the others. All ancestors of a chosen node are chosen; `order` has parents first."""
    n = len(parents)
    size, place, free = np.zeros(n, np.int64), np.full(n, -1, np.int64), np.zeros(n, np.int64)
    for t in range(n - 1, -1, -1):
        v = order[t]
        if chosen[v]:
            size[v] += 1
            if parents[v] >= 0:
                size[parents[v]] += size[v]
    for v in order:
        if chosen[v]:
            u = parents[v]
            place[v] = 0 if u < 0 else free[u]
            if u >= 0:
                free[u] += size[v]
            free[v] = place[v] + 1
    return place


# Helpers are inlined: otherwise the compiler counts references to the arrays at every node. Loops
# over samples end at the length of an array: one of constant length is unrolled before samples are
# taken side by side.


@kernel(**ONCE)
def _scaled(k, at, values):  # type: ignore[no-untyped-def]
    """`values[at]` `(k, LANE)` with a largest entry of 1; zeros stay."""
    for s in range(values.shape[2]):
        top = values[at, 0, s]
        for j in range(1, k):
            top = max(top, values[at, j, s])
        scale = 1.0 / (top if top > 0.0 else 1.0)
        for j in range(k):
            values[at, j, s] *= scale


@kernel(**ONCE)
def _numbers(k, u, b):  # type: ignore[no-untyped-def]
    """From logarithms to numbers, the largest 1."""
    for s in range(b.shape[2]):
        top = b[u, 0, s]
        for j in range(1, k):
            top = max(top, b[u, j, s])
        top = top if top > -np.inf else 0.0
        for j in range(k):
            b[u, j, s] = np.exp(b[u, j, s] - top)


@kernel(**ONCE)
def _enter(k, indptr, leaf, low, high, nodes, b, known):  # type: ignore[no-untyped-def]
    """`b` of all inner nodes without their inner children."""
    home, inner, ratio, own, base = nodes.home, nodes.inner, nodes.ratio, nodes.own, nodes.base
    logs = nodes.logs
    for u in range(len(base)):
        for j in range(k):
            for s in range(b.shape[2]):
                b[u, j, s] = base[u, j]
    known[:] = 0
    for s in range(high - low):
        for t in range(indptr[low + s], indptr[low + s + 1]):
            x = leaf[t]
            u = home[x]
            if inner[x]:
                known[own[u], s] = 1
                continue
            if logs[u]:
                for j in range(k):
                    b[u, j, s] += ratio[x, j]
            else:
                for j in range(k):
                    b[u, j, s] *= ratio[x, j]


@kernel(**ONCE)
def _up(k, nodes, b, m, known):  # type: ignore[no-untyped-def]
    """All `b` and `m`, from below."""
    parent, logs, own, table = nodes.parent, nodes.logs, nodes.own, nodes.table
    for u in range(len(parent) - 1, -1, -1):
        if logs[u]:
            _numbers(k, u, b)
        if own[u] >= 0:
            for j in range(k):
                for s in range(b.shape[2]):
                    b[u, j, s] = b[u, j, s] if known[own[u], s] == j else 0.0
        _scaled(k, u, b)
        if u == 0:
            continue
        above = parent[u]
        for j in range(k):
            for s in range(b.shape[2]):
                part = 0.0
                for i in range(k):
                    part += table[u, i, j] * b[u, i, s]
                m[u, j, s] = part
        for j in range(k):
            for s in range(b.shape[2]):
                if logs[above]:
                    b[above, j, s] += np.log(m[u, j, s])
                else:
                    b[above, j, s] *= m[u, j, s]


@kernel(**ONCE)
def _weighted(k, at, values, weight, row, by_sum, e):  # type: ignore[no-untyped-def]
    """`e[:k]` = `values[at]` weighted by `weight[row]`, `e[k]` the factor that scales it to
    a sum, or a largest entry, of 1."""
    for s in range(e.shape[1]):
        e[k, s] = 1e-300
    for j in range(k):
        for s in range(e.shape[1]):
            e[j, s] = values[at, j, s] * weight[row, j]
    for j in range(k):
        if by_sum:
            for s in range(e.shape[1]):
                e[k, s] += e[j, s]
        else:
            for s in range(e.shape[1]):
                e[k, s] = max(e[k, s], e[j, s])
    for s in range(e.shape[1]):
        e[k, s] = 1.0 / e[k, s]


@kernel(**ONCE)
def _put(k, first, e, place, low, high, out):  # type: ignore[no-untyped-def]
    """`out[place, :, low:high] = e`, scaled."""
    for j in range(first, k):
        for s in range(high - low):
            out[place, j - first, low + s] = e[j, s] * e[k, s]


@kernel(**ONCE)
def _down(k, nodes, b, m, a, c, e, low, high, request, out, weights, squares):  # type: ignore[no-untyped-def]
    """All `a`, from above; messages and squares on the way."""
    parent, table = nodes.parent, nodes.table
    up, down, by_sum, first = request.up, request.down, request.by_sum, request.first
    up_weight, down_weight, one = request.up_weight, request.down_weight, np.ones((1, k))
    for v in range(len(parent)):
        u = parent[v]
        for j in range(k):
            for s in range(b.shape[2]):
                message = m[v, j, s]
                c[0, j, s] = a[u, j, s] * b[u, j, s] / (message if message > 0.0 else 1.0)
        if v == 0:
            for j in range(k):
                for s in range(b.shape[2]):
                    c[0, j, s] = 1.0 if j == 0 else 0.0
        _scaled(k, 0, c)
        for i in range(k):
            for s in range(b.shape[2]):
                part = 0.0
                for j in range(k):
                    part += table[v, i, j] * c[0, j, s]
                a[v, i, s] = part
        if down[v] >= 0:
            _weighted(k, 0, c, down_weight, v, by_sum, e)
            _put(k, first, e, down[v], low, high, out)
        if up[v] >= 0:
            _weighted(k, v, b, up_weight, v, by_sum, e)
            _put(k, first, e, up[v], low, high, out)
        if len(squares):
            for j in range(k):
                for s in range(b.shape[2]):
                    c[0, j, s] = a[v, j, s] * b[v, j, s]
            _weighted(k, 0, c, one, 0, True, e)
            for j in range(k):
                total = 0.0
                for s in range(high - low):
                    q = e[j, s] * e[k, s]
                    total += weights[low + s] * q * q
                squares[v, j] += total


@kernel(**ONCE)
def _samples(  # type: ignore[no-untyped-def]
    k, start, stop, indptr, leaf, nodes, request, work, known, out, weights, squares
):
    """Samples start:stop, lane by lane."""
    b, m, a = work[0], work[1], work[2]
    c, e = np.empty((1, k, LANE)), np.empty((k + 1, LANE))
    for low in range(start, stop, LANE):
        high = min(low + LANE, stop)
        _enter(k, indptr, leaf, low, high, nodes, b, known)
        _up(k, nodes, b, m, known)
        a[0], m[0] = 1.0, 1.0
        _down(k, nodes, b, m, a, c, e, low, high, request, out, weights, squares)


@kernel(**OPTIONS)
def run(  # type: ignore[no-untyped-def]
    k, start, stop, indptr, leaf, nodes, request, work, known, out, weights, squares
):
    """Samples start:stop, whose ones are the variables `leaf[indptr[s]:indptr[s + 1]]`.

    Fills columns start:stop of `out`, and adds to `squares` where it is not empty."""
    _samples(k, start, stop, indptr, leaf, nodes, request, work, known, out, weights, squares)


@kernel(**OPTIONS)
def run_two(  # type: ignore[no-untyped-def]
    start, stop, indptr, leaf, nodes, request, work, known, out, weights, squares
):
    """The same for two states, with all loops over states unrolled."""
    _samples(2, start, stop, indptr, leaf, nodes, request, work, known, out, weights, squares)
