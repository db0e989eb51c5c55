"""The kernel of `sparse_kernels` for nodes of two states, the common case, in registers.

Values of a sample are stored by place in the list of touched nodes, so that they stay in the first
cache, and along a path they stay in registers. Down the tree the posteriors `q` of a node
are linear in those of the node above it,

    q_u(i) = sum_j [S_u(i, j) c_u(i) / n_u(j)] q(j)

with factors that do not wait for `q`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.engine.kernels import kernel
from latenttree.model.inference.sparse_kernels import (
    COUNTS,
    INNER,
    LARGE,
    LIKELIHOOD,
    LOGS,
    ONCE,
    OPTIONS,
    OWN,
    SMALL,
    Shape,
    apply_evidence,
)

Floats = NDArray[np.float64]


class TwoStateBuffers(NamedTuple):
    """Buffers of one thread."""

    product: Floats  # (H, 2) product of the factors of leaves and of paths that end at a node
    state: NDArray[np.int64]  # (H,) of observed inner nodes
    place: NDArray[np.int32]  # (H,) in the list of touched nodes, or -1
    visit: NDArray[np.uint32]  # (H,) touched nodes, path after path
    first: NDArray[np.int64]  # (H + 1,) where paths begin; the root is the first path
    factors: Floats  # (H, 4) c and n, by place
    q: Floats  # (H, 2) the posterior times the weight, by place


def make_two_state_buffers(shape: Shape) -> TwoStateBuffers:
    """Buffers for one thread."""
    n = len(shape.parent)
    return TwoStateBuffers(
        np.zeros((n, 2)),
        np.zeros(n, dtype=np.int64),
        np.full(n, -1, dtype=np.int32),
        np.zeros(n, dtype=np.uint32),
        np.zeros(n + 1, dtype=np.int64),
        np.zeros((n, 4)),
        np.zeros((n, 2)),
    )


@kernel(**ONCE)
def _enter(leaf, state, shape, numbers, scratch):  # type: ignore[no-untyped-def]
    """See `sparse_kernels._enter`."""
    parent, home, start, own = shape.parent, shape.home, shape.start, shape.own
    begin, ratio, kind = numbers.begin, numbers.ratio, numbers.kind
    product, known, place, visit, first = (
        scratch.product, scratch.state, scratch.place, scratch.visit, scratch.first,
    )  # fmt: skip
    place[0], visit[0], first[1], known[0] = 0, 0, 1, own[0]
    product[0, 0], product[0, 1] = begin[0, 0], begin[0, 1]
    paths, count = 1, 1
    for t in range(len(leaf)):
        u = home[leaf[t]]
        if place[u] < 0:
            while place[u] < 0:
                place[u] = count
                visit[count] = u
                count += 1
                product[u, 0], product[u, 1] = 1.0, 1.0
                if kind[u]:
                    known[u] = own[u]
                    product[u, 0], product[u, 1] = begin[u, 0], begin[u, 1]
                u = parent[u]
            paths += 1
            first[paths] = count
            u = home[leaf[t]]
        x = state[t if len(state) > 1 else 0]
        at = start[leaf[t]] + np.uint32(x * 2)
        if start[leaf[t]] == INNER:
            known[u] = x
        elif kind[u] & LOGS:
            product[u, 0] += ratio[at]
            product[u, 1] += ratio[at + np.uint32(1)]
        else:
            product[u, 0] *= ratio[at]
            product[u, 1] *= ratio[at + np.uint32(1)]
    return paths


@kernel(**ONCE)
def _up(paths, shape, numbers, scratch):  # type: ignore[no-untyped-def]
    """See `sparse_kernels._up`."""
    parent, dims, message, kinds = shape.parent, shape.dims, numbers.message, numbers.kind
    product, known, visit, first, factors = (
        scratch.product, scratch.state, scratch.visit, scratch.first, scratch.factors,
    )  # fmt: skip
    total, factor, n0, n1 = 0.0, 1.0, 1.0, 1.0
    for path in range(paths - 1, -1, -1):
        n0, n1, u = 1.0, 1.0, np.uint32(0)
        for t in range(first[path], first[path + 1]):
            u = visit[t]
            kind = kinds[u]
            if kind & LOGS:
                product[u, 0] += np.log(n0)
                product[u, 1] += np.log(n1)
                n0, n1 = 1.0, 1.0
            if kind & (OWN + LOGS):
                total += apply_evidence(u, 2, kind, known[u], dims[u], product)
            c0, c1 = product[u, 0] * n0, product[u, 1] * n1
            top = max(c0, c1)
            if top > 0.0 and (top < SMALL or top > LARGE):
                c0 /= top
                c1 /= top
                factor *= top
                if factor < 1e-100 or factor > 1e100:
                    total += np.log(factor)
                    factor = 1.0
            n0 = message[u, 0] * c0 + message[u, 2] * c1
            n1 = message[u, 1] * c0 + message[u, 3] * c1
            factors[t, 0], factors[t, 1], factors[t, 2], factors[t, 3] = c0, c1, n0, n1
        above = parent[u]
        if path > 0 and kinds[above] & LOGS:
            product[above, 0] += np.log(n0)
            product[above, 1] += np.log(n1)
        elif path > 0:
            product[above, 0] *= n0
            product[above, 1] *= n1
    return n0, total + np.log(factor)


@kernel(**ONCE)
def _down(paths, weight, whole, shape, numbers, scratch, pairs):  # type: ignore[no-untyped-def]
    """See `sparse_kernels._down`."""
    parent, message = shape.parent, numbers.message
    place, visit, first, factors, q = (
        scratch.place, scratch.visit, scratch.first, scratch.factors, scratch.q,
    )  # fmt: skip
    r = weight / whole
    q[0, 0], q[0, 1] = factors[0, 0] * message[0, 0] * r, factors[0, 1] * message[0, 2] * r
    pairs[0, 0] += factors[0, 0] * r
    pairs[0, 2] += factors[0, 1] * r
    for path in range(1, paths):
        above = np.uint32(place[parent[visit[first[path + 1] - 1]]])
        q0, q1 = q[above, 0], q[above, 1]
        for t in range(first[path + 1] - 1, first[path] - 1, -1):
            u, n0, n1 = visit[t], factors[t, 2], factors[t, 3]
            i0, i1 = 1.0 / (n0 if n0 > 0.0 else 1.0), 1.0 / (n1 if n1 > 0.0 else 1.0)
            g00, g01, g10, g11 = (
                factors[t, 0] * i0, factors[t, 0] * i1, factors[t, 1] * i0, factors[t, 1] * i1,
            )  # fmt: skip
            pairs[u, 0] += g00 * q0
            pairs[u, 1] += g01 * q1
            pairs[u, 2] += g10 * q0
            pairs[u, 3] += g11 * q1
            q0, q1 = (
                (message[u, 0] * g00) * q0 + (message[u, 1] * g01) * q1,
                (message[u, 2] * g10) * q0 + (message[u, 3] * g11) * q1,
            )
            q[t, 0], q[t, 1] = q0, q1


@kernel(**ONCE)
def _count(leaf, state, home, start, place, q, leaves):  # type: ignore[no-untyped-def]
    """See `sparse_kernels._count`."""
    for t in range(len(leaf)):
        at = start[leaf[t]]
        if at != INNER:
            here = np.uint32(place[home[leaf[t]]])
            at += np.uint32(2 * state[t if len(state) > 1 else 0])
            leaves[at] += q[here, 0]
            leaves[at + np.uint32(1)] += q[here, 1]


@kernel(**ONCE)
def _write(shape, numbers, place, q, out):  # type: ignore[no-untyped-def]
    """See `sparse_kernels._write`; what is above a node is written before it."""
    parent, own, message, begin, kind = (
        shape.parent, shape.own, numbers.message, numbers.begin, numbers.kind,
    )  # fmt: skip
    for u in range(len(parent)):
        for i in range(2):
            if place[u] >= 0:
                out[2 * u + i] = q[place[u], i]
            else:
                above = 2 * parent[u]
                part = message[u, 2 * i] * out[above] + message[u, 2 * i + 1] * out[above + 1]
                part *= np.exp(begin[u, i]) if kind[u] & LOGS else 1.0
                out[2 * u + i] = part if own[u] in (-1, i) else 0.0


@kernel(**OPTIONS)
def run(  # type: ignore[no-untyped-def]
    task, indptr, leaf, state, weight, shape, numbers, scratch, pairs, leaves, values, logs
):
    """See `sparse_kernels.run`."""
    visit, place, first = scratch.visit, scratch.place, scratch.first
    for s in range(len(indptr) - 1):
        here = leaf[indptr[s] : indptr[s + 1]]
        x = state[indptr[s] : indptr[s + 1]] if len(state) > 1 else state
        w = weight[s] if task == COUNTS else 1.0
        paths = _enter(here, x, shape, numbers, scratch)
        whole, logarithm = _up(paths, shape, numbers, scratch)
        logs[s] = np.log(whole) + logarithm if whole > 0.0 else -np.inf
        if task != LIKELIHOOD and whole > 0.0:
            _down(paths, w, whole, shape, numbers, scratch, pairs)
            if task == COUNTS:
                _count(here, x, shape.home, shape.start, place, scratch.q, leaves)
            else:
                _write(shape, numbers, place, scratch.q, values[s])
        for t in range(first[paths]):
            place[visit[t]] = -1
