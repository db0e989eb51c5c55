"""Belief propagation for samples that are zero in most of their binary variables.

With `B_u(j)` the product of the messages that the children of `u` send where everything below is
zero, and `m0_v(j)` such a message, a sample changes few factors:

    b_u(j) = B_u(j) prod_(leaves x) P(1 | j) / P(0 | j) prod_(children v) m_v(j) / m0_v(j)

over the leaves that are one, and the children with such a leaf below. Only these *touched* nodes
are visited: O(touched nodes k^2 + ones k) a sample, however many variables there are. Counts need
no more: those of a part of the tree that is not touched are linear in the posterior of the node
above it, and are added once for all samples (`spread`).

With `c_u = b_u / B_u`, the product over touched leaves and children, and

    S_u(i, j) = B_u(i) P(u = i | j) / m0_u(j)

the ratio that `u` sends is `n_u(j) = sum_i c_u(i) S_u(i, j)`, a factor of `c` above. Down the tree
the posteriors `q` of a node are linear in those of the node above it,

    q_u(i) = sum_j [S_u(i, j) c_u(i) / n_u(j)] q(j)

with factors that do not wait for `q`.

In the kernel the nodes with children ("inner", hidden or observed) are numbered parents first and
all have `k` states, those with fewer padded by zeros. The nodes of a sample are listed as paths:
from the parent of a leaf up to a node that is listed. In the reverse order of the paths, each from
its lower end, children come before their parents. Values of a sample are stored by place in that
list, so that they stay in the first cache. The lower bound is the reading of the ones, 4 bytes
each, and about 24 operations and 2 divisions for a touched node of two states.

`k` is the length of the argument `states`: of a tuple it is a constant, and all loops over states
are unrolled.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.engine.kernels import kernel

Floats = NDArray[np.float64]

LIKELIHOOD, COUNTS, POSTERIORS, SQUARES, MESSAGES = range(5)

OWN, LOGS = 1, 2
"""Flags of inner nodes: observed; product kept as a logarithm."""

SMALL, LARGE = 2.0**-30, 2.0**30
"""A node's largest entry is brought back to 1 when it leaves this range."""

TOGETHER = 16
"""Samples whose messages are written together: 64 bytes of each row."""

OPTIONS: dict[str, Any] = {"fastmath": {"contract", "reassoc"}}
ONCE: dict[str, Any] = {"inline": "always"}


class Shape(NamedTuple):
    """The part that does not depend on the parameters. Indices are unsigned, so that none counts
    from the end."""

    parent: NDArray[np.uint32]  # (H,) inner node above each; the root, which is the first: itself
    home: NDArray[np.uint32]  # (p,) parent of a leaf; an inner variable itself
    inner: NDArray[np.bool_]  # (p,) variables that are inner nodes
    own: NDArray[np.int64]  # (H,) 0 for observed inner nodes, -1 for hidden ones


class SparseNumbers(NamedTuple):
    """A model, as ratios to zero.

    `message[u]` is `S_u(i, j)`, at the root `B(i) P(i)` for `j = 0`; where LOGS, without `B`, whose
    logarithm is `begin[u]`: `c` of such a node starts from it and is a logarithm, else from 1."""

    message: Floats  # (H, k^2)
    begin: Floats  # (H, k)
    ratio: Floats  # (p, k) P(1 | j) / P(0 | j) of leaves; or logarithms
    kind: NDArray[np.uint8]  # (H,) sum of OWN and LOGS


class SparseBuffers(NamedTuple):
    """Buffers of one thread."""

    product: Floats  # (H, k) product of the factors of leaves and of paths that end at a node
    state: NDArray[np.int64]  # (H,) of observed inner nodes
    place: NDArray[np.int32]  # (H,) in the list of touched nodes, or -1
    visit: NDArray[np.uint32]  # (H,) touched nodes, path after path
    first: NDArray[np.int64]  # (H + 1,) where paths begin; the root is the first path
    factors: Floats  # (H, 2 k) c and n, by place
    q: Floats  # (H, k) the posterior times the weight, by place


class Request(NamedTuple):
    """Nodes whose posteriors are asked for, or needed; and messages, which are products by state,
    weighted and scaled to a sum of 1 without the first state (`by_sum`), or a largest entry of 1.

    Message `e` goes to `out[place[e]]`, `(width, all samples)`. A message up is `weight c`, one
    down from the parent of `v` is `weight q / n_v`: what is the same in all samples, `B` or
    `1 / m0_v`, is a part of the weights."""

    node: NDArray[np.int64]  # nodes of the posteriors, parents first; of messages, parents of `low`
    up: NDArray[np.int64]  # (H,) the message of a node to its parent, or -1
    low: NDArray[np.int64]  # nodes to which messages of their parents go
    down: NDArray[np.int64]  # those messages
    weight: Floats  # (m, k)
    default: NDArray[np.float32]  # (m, width) messages up from nodes that are not touched
    place: NDArray[np.int64]  # (m,)
    by_sum: bool


def make_sparse_buffers(shape: Shape, k: int) -> SparseBuffers:
    """Buffers for one thread."""
    n = len(shape.parent)
    return SparseBuffers(
        np.zeros((n, k)),
        np.zeros(n, dtype=np.int64),
        np.full(n, -1, dtype=np.int32),
        np.zeros(n, dtype=np.uint32),
        np.zeros(n + 1, dtype=np.int64),
        np.zeros((n, 2 * k)),
        np.zeros((n, k)),
    )


# Helpers take plain arrays, call nothing that may raise, and are inlined: otherwise the compiler
# counts references to the arrays at every node, which costs more than the work.


@kernel(**ONCE)
def _enter(k, leaf, shape, numbers, work):  # type: ignore[no-untyped-def]
    """The leaves of a sample that are one, and the nodes above them, listed in paths. Returns the
    number of paths."""
    parent, home, inner, own = shape.parent, shape.home, shape.inner, shape.own
    begin, ratio, kind = numbers.begin, numbers.ratio, numbers.kind
    product, known, place, visit, first = (
        work.product, work.state, work.place, work.visit, work.first,
    )  # fmt: skip
    place[0], visit[0], first[1], known[0] = 0, 0, 1, own[0]
    for j in range(k):
        product[0, j] = begin[0, j]
    paths, count = 1, 1
    for t in range(len(leaf)):
        x = np.uint32(leaf[t])
        u = home[x]
        if place[u] < 0:
            while place[u] < 0:
                place[u] = count
                visit[count] = u
                count += 1
                for j in range(k):
                    product[u, j] = 1.0
                if kind[u]:
                    known[u] = own[u]
                    for j in range(k):
                        product[u, j] = begin[u, j]
                u = parent[u]
            paths += 1
            first[paths] = count
            u = home[x]
        if inner[x]:
            known[u] = 1
        elif kind[u] & LOGS:
            for j in range(k):
                product[u, j] += ratio[x, j]
        else:
            for j in range(k):
                product[u, j] *= ratio[x, j]
    return paths


@kernel(**ONCE)
def _apply_evidence(k, u, kind, own, c):  # type: ignore[no-untyped-def]
    """`c_u` from its factors, in place: own evidence, and from logarithms to numbers. Returns the
    logarithm of the scale."""
    logarithm = 0.0
    if kind & OWN:
        for j in range(k):
            if own != j:
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
def _up(k, paths, shape, numbers, work):  # type: ignore[no-untyped-def]
    """All `c` and `n` of touched nodes, children first. Returns `P` as (number, logarithm)."""
    parent, message, kinds = shape.parent, numbers.message, numbers.kind
    product, known, visit, first, factors = (
        work.product, work.state, work.visit, work.first, work.factors,
    )  # fmt: skip
    total, factor = 0.0, 1.0
    for path in range(paths - 1, -1, -1):
        u, begin, end = np.uint32(0), first[path], first[path + 1]
        for t in range(begin, end):
            u = visit[t]
            kind = kinds[u]
            if kind & (OWN + LOGS):
                if t > begin and kind & LOGS:
                    for j in range(k):
                        product[u, j] += np.log(factors[t - 1, k + j])
                total += _apply_evidence(k, u, kind, known[u], product)
            if t > begin and not kind & LOGS:
                for j in range(k):
                    factors[t, j] = product[u, j] * factors[t - 1, k + j]
            else:
                for j in range(k):
                    factors[t, j] = product[u, j]
            top = factors[t, 0]
            for j in range(1, k):
                top = max(top, factors[t, j])
            if top > 0.0 and (top < SMALL or top > LARGE):
                for j in range(k):
                    factors[t, j] /= top
                factor *= top
                if factor < 1e-100 or factor > 1e100:
                    total += np.log(factor)
                    factor = 1.0
            for i in range(0, k - k % 4, 4):
                at, c = i * k, factors[t, i]
                d, e, f = factors[t, i + 1], factors[t, i + 2], factors[t, i + 3]
                for j in range(k):
                    n = message[u, at + j] * c + message[u, at + k + j] * d
                    n += message[u, at + 2 * k + j] * e + message[u, at + 3 * k + j] * f
                    factors[t, k + j] = n if i == 0 else factors[t, k + j] + n
            for i in range(k - k % 4, k):
                for j in range(k):
                    n = message[u, i * k + j] * factors[t, i]
                    factors[t, k + j] = n if i == 0 else factors[t, k + j] + n
        above = parent[u]
        if path > 0 and kinds[above] & LOGS:
            for j in range(k):
                product[above, j] += np.log(factors[end - 1, k + j])
        elif path > 0:
            for j in range(k):
                product[above, j] *= factors[end - 1, k + j]
    return factors[0, k], total + np.log(factor)


@kernel(**ONCE)
def _down(k, paths, weight, whole, shape, numbers, work, counting, pairs):  # type: ignore[no-untyped-def]
    """Posteriors of touched nodes, times the weight; `n` becomes `1 / n`. Where `counting`,
    `pairs[u](i, j) += c_u(i) q(j) / n_u(j)`."""
    parent, message = shape.parent, numbers.message
    place, visit, first, factors, q = work.place, work.visit, work.first, work.factors, work.q
    r = weight / whole
    for i in range(k):
        q[0, i] = factors[0, i] * message[0, i * k] * r
        if counting:
            pairs[0, i * k] += factors[0, i] * r
    for path in range(1, paths):
        above = np.uint32(place[parent[visit[first[path + 1] - 1]]])
        for t in range(first[path + 1] - 1, first[path] - 1, -1):
            u = visit[t]
            for j in range(k):
                n = factors[t, k + j]
                factors[t, k + j] = 1.0 / (n if n > 0.0 else 1.0)
            for i in range(k):
                part = 0.0
                for j in range(k):
                    g = factors[t, i] * factors[t, k + j]
                    if counting:
                        pairs[u, i * k + j] += g * q[above, j]
                    part += (message[u, i * k + j] * g) * q[above, j]
                q[t, i] = part
            above = np.uint32(t)


@kernel(**ONCE)
def _count(k, leaf, shape, place, q, leaves):  # type: ignore[no-untyped-def]
    """`leaves(x, j) += w q_u(j)` of the leaves that are one."""
    for t in range(len(leaf)):
        x = np.uint32(leaf[t])
        if not shape.inner[x]:
            here = np.uint32(place[shape.home[x]])
            for j in range(k):
                leaves[x, j] += q[here, j]


@kernel(**ONCE)
def _write(k, nodes, shape, numbers, place, q, out):  # type: ignore[no-untyped-def]
    """Posteriors of nodes to `out` `(H k,)`; of one that is not touched from the node above it,
    which is written before it."""
    parent, own, message, begin, kind = (
        shape.parent, shape.own, numbers.message, numbers.begin, numbers.kind,
    )  # fmt: skip
    for t in range(len(nodes)):
        u = np.uint32(nodes[t])
        for i in range(k):
            if place[u] >= 0:
                out[u * k + i] = q[place[u], i]
            else:
                part = 0.0
                for j in range(k):
                    part += message[u, i * k + j] * out[k * parent[u] + j]
                part *= np.exp(begin[u, i]) if kind[u] & LOGS else 1.0
                out[k * u + i] = part if own[u] in (-1, i) else 0.0


@kernel(**ONCE)
def _scaled(k, by_sum, x, out, s):  # type: ignore[no-untyped-def]
    """`x` `(k,)`, scaled, to `out` `(width, TOGETHER)`."""
    total, first = 0.0, int(by_sum)
    for j in range(k):
        total = total + x[j] if by_sum else max(total, x[j])
    factor = 1.0 / total if total > 1e-300 else 0.0
    for j in range(first, min(k, len(out) + first)):
        out[j - first, s] = x[j] * factor


@kernel(**ONCE)
def _message(k, count, request, shape, work, q, block, s, x):  # type: ignore[no-untyped-def]
    """Messages of a sample with `count` touched nodes to `block` `(m, width, TOGETHER)`."""
    parent, place, visit, factors = shape.parent, work.place, work.visit, work.factors
    weight, by_sum = request.weight, request.by_sum
    for t in range(count):
        e = request.up[visit[t]]
        if e >= 0:
            for j in range(k):
                x[j] = factors[t, j] * weight[e, j]
            _scaled(k, by_sum, x, block[e], s)
    for i in range(len(request.low)):
        v, e = np.uint32(request.low[i]), request.down[i]
        at = k * parent[v]
        for j in range(k):
            x[j] = q[at + j] * weight[e, j]
        if place[v] >= 0:
            for j in range(k):
                x[j] *= factors[np.uint32(place[v]), k + j]
        _scaled(k, by_sum, x, block[e], s)


@kernel(**ONCE)
def _flush(request, block, first, count, out):  # type: ignore[no-untyped-def]
    """The messages of `count` samples from `first` on to `out`; `block` has the defaults again."""
    for e in range(len(block)):
        for j in range(block.shape[1]):
            to, start = out[request.place[e], j, first:], request.default[e, j]
            for s in range(count):
                to[s] = block[e, j, s]
            for s in range(block.shape[2]):
                block[e, j, s] = start


@kernel(**OPTIONS)
def run_sparse(  # type: ignore[no-untyped-def]
    states, task, indptr, leaf, weight, shape, numbers, work, request, pairs, leaves, values,
    start, out, logs,
):  # fmt: skip
    """Answer for samples with ones `leaf[indptr[s]:indptr[s + 1]]`.

    Fills `logs` `(n,)` (relative to zeros alone, -inf where impossible). COUNTS adds to `pairs`
    `(H, k^2)` and `leaves` `(p, k)`; POSTERIORS fills `values` `(n, H k)`; SQUARES adds `w q^2` to
    `pairs` `(1, H k)`, and MESSAGES fills samples `start, ...` of `out` `(., width, all samples)`,
    both with `values` `(1, H k)` as scratch. Messages of impossible samples are not filled.
    """
    k, n, visit, place, first = len(states), len(indptr) - 1, work.visit, work.place, work.first
    block, x = np.empty((len(request.place), out.shape[1], TOGETHER), np.float32), np.empty(k)
    if task == MESSAGES:
        _flush(request, block, 0, 0, out)
    for s in range(n):
        here = leaf[indptr[s] : indptr[s + 1]]
        w = weight[s] if task == COUNTS else 1.0
        paths = _enter(k, here, shape, numbers, work)
        whole, logarithm = _up(k, paths, shape, numbers, work)
        logs[s] = np.log(whole) + logarithm if whole > 0.0 else -np.inf
        if task != LIKELIHOOD and whole > 0.0:
            _down(k, paths, w, whole, shape, numbers, work, task == COUNTS, pairs)
            if task == COUNTS:
                _count(k, here, shape, place, work.q, leaves)
            else:
                q = values[s if task == POSTERIORS else 0]
                _write(k, request.node, shape, numbers, place, work.q, q)
                if task == SQUARES:
                    for i in range(len(q)):
                        pairs[0, i] += weight[s] * q[i] * q[i]
                if task == MESSAGES:
                    count = first[paths]
                    _message(k, count, request, shape, work, q, block, s % TOGETHER, x)
        for t in range(first[paths]):
            place[visit[t]] = -1
        if task == MESSAGES and ((s + 1) % TOGETHER == 0 or s + 1 == n):
            _flush(request, block, start + s - s % TOGETHER, s % TOGETHER + 1, out)


@kernel(**OPTIONS)
def zero_messages(parent, table, barred, used, total):  # type: ignore[no-untyped-def]
    """From the `log` product of the leaves of every inner node, `total` `(H, k)`, to `log B` with a
    largest entry of 0, in place; returns `m0` `(H, k)` and the sum of the logarithms of the scales.

    `barred` is -inf for states that an observed inner node does not have where it is zero."""
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
