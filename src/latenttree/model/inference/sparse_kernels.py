"""Belief propagation for samples that differ from a default in few variables.

A variable's default is one of its states ("absent"). With `B_u(j)` the product of the messages
that the children of `u` send where everything below has its default, and `m0_v(j)` such a
message, a sample changes few factors:

    b_u(j) = B_u(j) prod_(leaves x) P(x | j) / P(default | j) prod_(children v) m_v(j) / m0_v(j)

over the leaves that have another state, and the children with such a leaf below. Only these
*touched* nodes are visited: O(touched nodes k^2 + other states k) a sample, however many variables
there are. Counts need no more: those of a part of the tree that is not touched are linear in the
posterior of the node above it, and are added once for all samples (`spread`).

With `c_u = b_u / B_u`, the product over touched leaves and children, and

    S_u(i, j) = B_u(i) P(u = i | j) / m0_u(j)

the ratio that `u` sends is `n_u(j) = sum_i c_u(i) S_u(i, j)`, a factor of `c` above; the posterior
of `u` is `c_u(i) sum_j S_u(i, j) q(j) / n_u(j)` with `q` that of the node above.

In the kernel the nodes with children ("inner", hidden or observed) are numbered parents first and
all have `k` states, those with fewer padded by zeros. The nodes of a sample are listed as paths:
from the home of a leaf up to a node that is listed. In the reverse order of the paths, each from
its lower end, children come before their parents. The lower bound is the reading of the other
states, 4 bytes each, and about 24 operations and 2 divisions for a touched node of two states.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.engine.kernels import kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LIKELIHOOD, COUNTS, POSTERIORS = range(3)

OWN, LOGS, PARENT_LOGS = 1, 2, 4
"""Flags of inner nodes: observed; product kept as a logarithm; the same of the parent."""

INNER = (1 << 32) - 1
"""Value of `Shape.start` for variables that are inner nodes."""

SMALL, LARGE = 2.0**-30, 2.0**30
"""A node's largest entry is brought back to 1 when it leaves this range."""

OPTIONS: dict[str, Any] = {"fastmath": {"contract"}}
ONCE: dict[str, Any] = {"inline": "always"}


class Shape(NamedTuple):
    """The part that does not depend on the parameters. Indices are unsigned, so that none counts
    from the end."""

    parent: NDArray[np.uint32]  # (H,) inner node above each; the root, which is the first: itself
    home: NDArray[np.uint32]  # (p,) parent of a leaf; an inner variable itself
    start: NDArray[np.uint32]  # (p,) first entry of each leaf in `ratio`; INNER for inner variables
    own: NDArray[np.int64]  # (H,) default state of observed inner nodes, -1 for hidden ones
    dims: NDArray[np.int64]  # (H,) states


class Numbers(NamedTuple):
    """A model, as ratios to the defaults.

    `message[u]` is `S_u(i, j)`, at the root `B(i) P(i)` for `j = 0`; where LOGS, without `B`, whose
    logarithm is `begin[u]`: `c` of such a node starts from it and is a logarithm, else from 1."""

    message: Floats  # (H, k^2)
    begin: Floats  # (H, k)
    ratio: Floats  # by leaf (d + 1, k): P(x | j) / P(default | j), unknown last; or logarithms
    kind: NDArray[np.uint8]  # (H,) sum of OWN, LOGS and PARENT_LOGS


class SparseBuffers(NamedTuple):
    """Buffers of one thread. `node[u]` holds `c`, `n` and `q`, the posterior times the weight, `k`
    each, and as many again unused."""

    node: Floats  # (H, 4 k)
    state: NDArray[np.int64]  # (H,) of observed inner nodes
    touched: NDArray[np.bool_]  # (H,) touched
    visit: NDArray[np.uint32]  # (H,) touched nodes, path after path
    first: NDArray[np.int64]  # (H + 1,) where paths begin
    ratio: Floats  # (k,)


def make_sparse_buffers(shape: Shape, k: int) -> SparseBuffers:
    """Buffers for one thread."""
    n = len(shape.parent)
    return SparseBuffers(
        np.zeros((n, 4 * k)),
        np.zeros(n, dtype=np.int64),
        np.zeros(n, dtype=np.bool_),
        np.zeros(n, dtype=np.uint32),
        np.zeros(n + 1, dtype=np.int64),
        np.zeros(k),
    )


# Helpers take plain arrays, call nothing that may raise, and are inlined: otherwise the compiler
# counts references to the arrays at every node, which costs more than the work.


@kernel(**ONCE)
def _enter(k, leaf, state, shape, numbers, scratch):  # type: ignore[no-untyped-def]
    """The leaves of a sample that have another state than the default, and the nodes above them,
    listed in paths. Returns the number of paths."""
    parent, home, start, own = shape.parent, shape.home, shape.start, shape.own
    begin, ratio, kind = numbers.begin, numbers.ratio, numbers.kind
    work, known, touched, visit, first = (
        scratch.node, scratch.state, scratch.touched, scratch.visit, scratch.first,
    )  # fmt: skip
    paths, count = 0, 0
    for t in range(-1, len(leaf)):
        u = np.uint32(0) if t < 0 else home[leaf[t]]  # the root is entered in any case
        if not touched[u]:
            while not touched[u]:
                touched[u] = True
                visit[count] = u
                count += 1
                known[u] = own[u]
                for j in range(k):
                    work[u, j] = begin[u, j]
                u = parent[u]
            paths += 1
            first[paths] = count
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
    return paths


@kernel(**ONCE)
def apply_evidence(u, k, kind, own, d, c):  # type: ignore[no-untyped-def]
    """`c_u` from its factors, in place: own evidence, and from logarithms to numbers. Returns the
    logarithm of the scale."""
    logarithm = 0.0
    if kind & OWN:
        for j in range(k):
            if own not in (j, d):
                c[u, j] = -np.inf if kind & LOGS else 0.0
    if kind & LOGS:
        top = c[u, 0]
        for j in range(1, k):
            top = max(top, c[u, j])
        logarithm = top if top > -np.inf else 0.0
        for j in range(k):
            c[u, j] = np.exp(c[u, j] - logarithm)
    return logarithm


@kernel(**ONCE)
def _up(k, paths, shape, numbers, scratch):  # type: ignore[no-untyped-def]
    """All `c` and `n` of touched nodes, children first. Returns `P` as (number, logarithm)."""
    parent, dims, message, kinds = shape.parent, shape.dims, numbers.message, numbers.kind
    work, known, visit, first = scratch.node, scratch.state, scratch.visit, scratch.first
    total, factor, whole = 0.0, 1.0, 0.0
    for path in range(paths - 1, -1, -1):
        for t in range(first[path], first[path + 1]):
            u = visit[t]
            above, kind = parent[u], kinds[u]
            if kind & (OWN + LOGS):
                total += apply_evidence(u, k, kind, known[u], dims[u], work)
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
            for j in range(k):
                part = 0.0
                for i in range(k):
                    part += message[u, i * k + j] * work[u, i]
                work[u, k + j] = part
            if u == 0:
                whole = work[u, k]
            elif kind & PARENT_LOGS:
                for j in range(k):
                    work[above, j] += np.log(work[u, k + j])
            else:
                for j in range(k):
                    work[above, j] *= work[u, k + j]
    return whole, total + np.log(factor)


@kernel(**ONCE)
def _down(k, paths, weight, whole, shape, numbers, scratch, pairs):  # type: ignore[no-untyped-def]
    """Posteriors of touched nodes, times the weight; `pairs[u](i, j) += c_u(i) r_u(j)`."""
    parent, message = shape.parent, numbers.message
    work, visit, first, r = scratch.node, scratch.visit, scratch.first, scratch.ratio
    for path in range(paths):
        for t in range(first[path + 1] - 1, first[path] - 1, -1):
            u = visit[t]
            above = parent[u]
            for j in range(k):
                n = work[u, k + j]
                r[j] = work[above, 2 * k + j] / (n if n > 0.0 else 1.0)
            if u == 0:
                for j in range(k):
                    r[j] = weight / whole if j == 0 else 0.0
            for i in range(k):
                part = 0.0
                for j in range(k):
                    part += message[u, i * k + j] * r[j]
                    pairs[u, i * k + j] += work[u, i] * r[j]
                work[u, 2 * k + i] = work[u, i] * part


@kernel(**ONCE)
def _count(k, leaf, state, home, start, work, leaves):  # type: ignore[no-untyped-def]
    """`leaves(x, j) += w q_u(j)` of the leaves with another state than the default."""
    for t in range(len(leaf)):
        u, at = home[leaf[t]], start[leaf[t]]
        if at != INNER:
            x = state[t if len(state) > 1 else 0]
            for j in range(k):
                leaves[at + np.uint32(x * k + j)] += work[u, 2 * k + j]


@kernel(**ONCE)
def _write(k, parent, own, message, begin, kind, touched, work, out):  # type: ignore[no-untyped-def]
    """Posteriors of all inner nodes; of one that is not touched from the node above it."""
    for u in range(len(parent)):
        if not touched[u]:
            for i in range(k):
                part = 0.0
                for j in range(k):
                    part += message[u, i * k + j] * work[parent[u], 2 * k + j]
                part *= np.exp(begin[u, i]) if kind[u] & LOGS else 1.0
                work[u, 2 * k + i] = part if own[u] in (-1, i) else 0.0
        for i in range(k):
            out[u * k + i] = work[u, 2 * k + i]


@kernel(**ONCE)
def _sample(  # type: ignore[no-untyped-def]
    k, task, leaf, state, weight, shape, numbers, scratch, pairs, leaves, out
):
    """One sample; returns its log-likelihood."""
    paths = _enter(k, leaf, state, shape, numbers, scratch)
    whole, logarithm = _up(k, paths, shape, numbers, scratch)
    touched, visit = scratch.touched, scratch.visit
    if task != LIKELIHOOD and whole > 0.0:
        _down(k, paths, weight, whole, shape, numbers, scratch, pairs)
        work = scratch.node
        if task == COUNTS:
            _count(k, leaf, state, shape.home, shape.start, work, leaves)
        else:
            parent, own, message, begin = shape.parent, shape.own, numbers.message, numbers.begin
            _write(k, parent, own, message, begin, numbers.kind, touched, work, out)
    for t in range(scratch.first[paths]):
        touched[visit[t]] = False
    return np.log(whole) + logarithm if whole > 0.0 else -np.inf


@kernel(**OPTIONS)
def run(  # type: ignore[no-untyped-def]
    k, task, indptr, leaf, state, weight, shape, numbers, scratch, pairs, leaves, values, logs
):
    """Answer for samples `leaf[indptr[s]:indptr[s + 1]]`, whose states are `state`, or all the
    only one of `state`.

    Fills `logs` `(n,)` (relative to the default, -inf where impossible); COUNTS adds to `pairs`
    `(H, k^2)` and `leaves` (as `ratio`), POSTERIORS fills `values` `(n, H k)`.
    """
    for s in range(len(indptr) - 1):
        here = leaf[indptr[s] : indptr[s + 1]]
        x = state[indptr[s] : indptr[s + 1]] if len(state) > 1 else state
        w = weight[s] if task == COUNTS else 1.0
        out = values[s if task == POSTERIORS else 0]
        logs[s] = _sample(k, task, here, x, w, shape, numbers, scratch, pairs, leaves, out)


@kernel(**OPTIONS)
def defaults(parent, table, barred, used, total):  # type: ignore[no-untyped-def]
    """From the `log` product of the leaves of every inner node, `total` `(H, k)`, to `log B` with a
    largest entry of 0, in place; returns `m0` `(H, k)` and the sum of the logarithms of the scales.

    `barred` is -inf for states that the own default of a node excludes."""
    n, k = total.shape
    message, belief, taken = np.empty((n, k)), np.empty(k), 0.0
    for u in range(n - 1, -1, -1):
        top = -np.inf
        for i in range(k):
            top = max(top, total[u, i] + barred[u, i])
        for i in range(k):
            belief[i] = np.exp(total[u, i] + barred[u, i] - top)
            total[u, i] -= top
        taken += top
        for j in range(k):
            part = 0.0 if used[u, j] else 1.0
            for i in range(k):
                part += table[u, i, j] * belief[i]
            message[u, j] = part
            if u > 0:
                total[parent[u], j] += np.log(part)
    return message, taken


@kernel(**OPTIONS)
def spread(parent, share, found, total):  # type: ignore[no-untyped-def]
    """Add the counts of samples that do not touch a node to its pairs `found` `(H, k, k)` and sums
    of posteriors `total` `(H, k)`, in place; parents first."""
    n, k = total.shape
    for u in range(1, n):
        for j in range(k):
            rest = total[parent[u], j]
            for i in range(k):
                rest -= found[u, i, j]
            rest = max(rest, 0.0)
            for i in range(k):
                part = share[u, i, j] * rest
                found[u, i, j] += part
                total[u, i] += part
