"""Belief propagation for samples that differ from a default in few variables.

A variable's default is one of its states ("absent"). With `B_u(j)` the product of the messages
that the children of `u` send where everything below has its default, and `m0_v(j)` such a
message, a sample changes few factors:

    b_u(j) = B_u(j) prod_(leaves x) P(x | j) / P(default | j) prod_(children v) m_v(j) / m0_v(j)

over the leaves that have another state, and the children with such a leaf below. Only these
*touched* nodes are visited: O(touched nodes k^2 + other states k) a sample, however many variables
there are. Counts need no more: what a part of the tree that is not touched adds is linear in the
posterior of the node above it, and so is added once for all samples (`Layout.spread`).

In the kernel the nodes with children ("inner", hidden or observed) are numbered parents first and
all have `k` states, those with fewer padded by zeros. The lower bound is the reading of the other
states, 4 bytes each, and about 30 operations and 2 divisions for a touched node of two states.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LIKELIHOOD, COUNTS, POSTERIORS = range(3)

OWN, LOGS, SENT = 1, 2, 4
"""Kinds of inner nodes: observed; the product as a logarithm; that of the node above it."""

INNER = (1 << 32) - 1
"""In the place of the start of a variable that is an inner node."""

SMALL, LARGE = 2.0**-30, 2.0**30
"""A node's largest entry is brought back to 1 when it leaves this range."""

OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}
ONCE: dict[str, Any] = {"inline": "always"}


class Shape(NamedTuple):
    """What stays the same from model to model. Unsigned, so that no index is taken from the end."""

    parent: NDArray[np.uint32]  # (H,) inner node above each; the root, which is the first: itself
    depth: NDArray[np.uint32]  # (H,)
    level: NDArray[np.uint32]  # (depths + 1,) where the nodes of each depth begin
    home: NDArray[
        np.uint32
    ]  # (p,) the inner node above a leaf, or that an inner variable itself is
    start: NDArray[np.uint32]  # (p,) first entry of each leaf in `ratio`; INNER for inner variables
    own: NDArray[
        np.int64
    ]  # (H,) default state of an inner node that is observed, -1 for hidden ones
    dims: NDArray[np.int64]  # (H,) states


class Numbers(NamedTuple):
    """A model, as ratios to the defaults.

    `node[u]` holds `P(u = i | parent = j)`, `(k, k)` (at the root `P(i)` for `j = 0`), then
    `1 / m0(j)`, then `B(j)` with a largest entry of 1 (logarithms where LOGS): with two states a
    line of the cache."""

    node: Floats  # (H, k (k + 2))
    ratio: Floats  # by leaf (d + 1, k): P(x | j) / P(default | j), unknown last; or logarithms
    kind: NDArray[np.uint8]  # (H,) sum of OWN, LOGS and SENT


class Scratch(NamedTuple):
    """Buffers of one thread. `node[u]` holds `b`, the message and `q`, the posterior times the
    weight, `k` each, and as many again unused."""

    node: Floats  # (H, 4 k)
    state: NDArray[np.int64]  # (H,) of observed inner nodes
    seen: NDArray[np.bool_]  # (H,) touched
    visit: NDArray[np.uint32]  # (H,) touched nodes, by depth
    touched: NDArray[np.int64]  # (depths,) number of touched nodes of each depth
    ratio: Floats  # (k,)


def make_scratch(shape: Shape, k: int) -> Scratch:
    """Buffers for one thread."""
    n = len(shape.parent)
    return Scratch(
        np.zeros((n, 4 * k)),
        np.zeros(n, dtype=np.int64),
        np.zeros(n, dtype=np.bool_),
        np.zeros(n, dtype=np.uint32),
        np.zeros(len(shape.level) - 1, dtype=np.int64),
        np.zeros(k),
    )


# Helpers take plain arrays, call nothing that may raise, and are inlined: otherwise the compiler
# counts references to the arrays at every node, which costs more than the work.


@njit(**ONCE)
def _enter(k, leaf, state, shape, numbers, scratch):  # type: ignore[no-untyped-def]
    """The leaves of a sample that have another state than the default; the nodes above them begin
    with `B`, and are listed by depth."""
    parent, depths, level, home, start = (
        shape.parent, shape.depth, shape.level, shape.home, shape.start,
    )  # fmt: skip
    node, ratio, kind, own = numbers.node, numbers.ratio, numbers.kind, shape.own
    work, known, seen, visit, count = (
        scratch.node, scratch.state, scratch.seen, scratch.visit, scratch.touched,
    )  # fmt: skip
    base = k * (k + 1)
    for t in range(-1, len(leaf)):
        u = np.uint32(0) if t < 0 else home[leaf[t]]  # the root is entered in any case
        while not seen[u]:
            seen[u] = True
            visit[level[depths[u]] + count[depths[u]]] = u
            count[depths[u]] += 1
            known[u] = own[u]
            for j in range(k):
                work[u, j] = node[u, base + j]
            u = parent[u]
        if t < 0:
            continue
        u, x = home[leaf[t]], state[t if len(state) > 1 else 0]
        at = start[leaf[t]] + np.uint32(x * k)
        if start[leaf[t]] == INNER:
            known[u] = x
        elif kind[u] & LOGS:
            for j in range(k):
                work[u, j] += ratio[at + np.uint32(j)]
        else:
            for j in range(k):
                work[u, j] *= ratio[at + np.uint32(j)]


@njit(**ONCE)
def _settle(u, k, kind, own, d, b):  # type: ignore[no-untyped-def]
    """`b_u` from its factors: own evidence, and from logarithms back to numbers. Returns the
    logarithm of what was taken out."""
    logarithm = 0.0
    if kind & OWN:
        for j in range(k):
            if own not in (j, d):
                b[u, j] = -np.inf if kind & LOGS else 0.0
    if kind & LOGS:
        top = b[u, 0]
        for j in range(1, k):
            top = max(top, b[u, j])
        logarithm = top if top > -np.inf else 0.0
        for j in range(k):
            b[u, j] = np.exp(b[u, j] - logarithm)
    return logarithm


@njit(**ONCE)
def _up(k, shape, numbers, scratch):  # type: ignore[no-untyped-def]
    """All `b` and messages of touched nodes, deepest first. Returns `P` as (number, logarithm)."""
    parent, level, dims, node, kinds = (
        shape.parent, shape.level, shape.dims, numbers.node, numbers.kind,
    )  # fmt: skip
    work, known, visit, count = scratch.node, scratch.state, scratch.visit, scratch.touched
    fold = k * k
    total, factor = 0.0, 1.0
    for depth in range(len(count) - 1, -1, -1):
        for t in range(level[depth], level[depth] + count[depth]):
            u = visit[t]
            above, kind = parent[u], kinds[u]
            if kind & (OWN + LOGS):
                total += _settle(u, k, kind, known[u], dims[u], work)
            top = work[u, 0]
            for j in range(1, k):
                top = max(top, work[u, j])
            if top > 0.0 and (top < SMALL or top > LARGE):
                for j in range(k):
                    work[u, j] /= top
                factor *= top
                if factor < 1e-100 or factor > 1e100:
                    total += np.log(factor)
                    factor = 1.0
            if depth == 0:
                continue
            for j in range(k):
                part = 0.0
                for i in range(k):
                    part += node[u, i * k + j] * work[u, i]
                work[u, k + j] = part
            if kind & SENT:
                for j in range(k):
                    work[above, j] += np.log(work[u, k + j] * node[u, fold + j])
            else:
                for j in range(k):
                    work[above, j] *= work[u, k + j] * node[u, fold + j]
    whole = 0.0
    for i in range(k):
        whole += node[0, i * k] * work[0, i]
    return whole, total + np.log(factor)


@njit(**ONCE)
def _down(k, weight, whole, shape, numbers, scratch, pairs):  # type: ignore[no-untyped-def]
    """Posteriors of touched nodes, times the weight; `pairs[u](i, j) += b_u(i) r_u(j)`."""
    parent, level, node = shape.parent, shape.level, numbers.node
    work, visit, count, r = scratch.node, scratch.visit, scratch.touched, scratch.ratio
    for depth in range(len(count)):
        for t in range(level[depth], level[depth] + count[depth]):
            u = visit[t]
            above = parent[u]
            for j in range(k):
                m = work[u, k + j]
                r[j] = work[above, 2 * k + j] / (m if m > 0.0 else 1.0)
            if depth == 0:
                for j in range(k):
                    r[j] = weight / whole if j == 0 else 0.0
            for i in range(k):
                part = 0.0
                for j in range(k):
                    part += node[u, i * k + j] * r[j]
                    pairs[u, i * k + j] += work[u, i] * r[j]
                work[u, 2 * k + i] = work[u, i] * part


@njit(**ONCE)
def _count(k, leaf, state, home, start, work, leaves):  # type: ignore[no-untyped-def]
    """`leaves(x, j) += w q_u(j)` of the leaves with another state than the default."""
    for t in range(len(leaf)):
        u, at = home[leaf[t]], start[leaf[t]]
        if at != INNER:
            x = state[t if len(state) > 1 else 0]
            for j in range(k):
                leaves[at + np.uint32(x * k + j)] += work[u, 2 * k + j]


@njit(**ONCE)
def _write(k, parent, own, node, kind, seen, work, out):  # type: ignore[no-untyped-def]
    """Posteriors of all inner nodes; of one that is not touched from the node above it."""
    fold, base = k * k, k * (k + 1)
    for u in range(len(parent)):
        if not seen[u]:
            for i in range(k):
                part = 0.0
                for j in range(k):
                    given = node[u, i * k + j] * node[u, fold + j]
                    part += given * work[parent[u], 2 * k + j]
                b = np.exp(node[u, base + i]) if kind[u] & LOGS else node[u, base + i]
                work[u, 2 * k + i] = part * b if own[u] in (-1, i) else 0.0
        for i in range(k):
            out[u * k + i] = work[u, 2 * k + i]


@njit(**ONCE)
def _clear(level, visit, count, seen):  # type: ignore[no-untyped-def]
    for depth in range(len(count)):
        for t in range(level[depth], level[depth] + count[depth]):
            seen[visit[t]] = False
        count[depth] = 0


@njit(**ONCE)
def _sample(  # type: ignore[no-untyped-def]
    k, task, leaf, state, weight, shape, numbers, scratch, pairs, leaves, out
):
    """One sample; returns its log-likelihood."""
    _enter(k, leaf, state, shape, numbers, scratch)
    whole, logarithm = _up(k, shape, numbers, scratch)
    if task != LIKELIHOOD and whole > 0.0:
        _down(k, weight, whole, shape, numbers, scratch, pairs)
        work = scratch.node
        if task == COUNTS:
            _count(k, leaf, state, shape.home, shape.start, work, leaves)
        else:
            seen = scratch.seen
            _write(k, shape.parent, shape.own, numbers.node, numbers.kind, seen, work, out)
    _clear(shape.level, scratch.visit, scratch.touched, scratch.seen)
    return np.log(whole) + logarithm if whole > 0.0 else -np.inf


@njit(**ONCE)
def _samples(  # type: ignore[no-untyped-def]
    k, task, indptr, leaf, state, weight, shape, numbers, scratch, pairs, leaves, values, logs
):
    for s in range(len(indptr) - 1):
        here = leaf[indptr[s] : indptr[s + 1]]
        x = state[indptr[s] : indptr[s + 1]] if len(state) > 1 else state
        w = weight[s] if task == COUNTS else 1.0
        out = values[s if task == POSTERIORS else 0]
        logs[s] = _sample(k, task, here, x, w, shape, numbers, scratch, pairs, leaves, out)


@njit(cache=True, **OPTIONS)
def run(  # type: ignore[no-untyped-def]
    k, task, indptr, leaf, state, weight, shape, numbers, scratch, pairs, leaves, values, logs
):
    """Answer for samples `leaf[indptr[s]:indptr[s + 1]]`, whose states are `state`, or all the
    only one of `state`.

    Fills `logs` `(n,)` (relative to the default, -inf where impossible); COUNTS adds to `pairs`
    `(H, k^2)` and `leaves` (as `ratio`), POSTERIORS fills `values` `(n, H k)`.
    """
    _samples(
        k, task, indptr, leaf, state, weight, shape, numbers, scratch, pairs, leaves, values, logs
    )


@njit(cache=True, **OPTIONS)
def run_two(  # type: ignore[no-untyped-def]
    task, indptr, leaf, state, weight, shape, numbers, scratch, pairs, leaves, values, logs
):
    """The same for two states, with all loops over states unrolled: a third less time."""
    _samples(
        2, task, indptr, leaf, state, weight, shape, numbers, scratch, pairs, leaves, values, logs
    )
