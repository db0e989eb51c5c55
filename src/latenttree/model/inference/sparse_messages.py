"""Messages of all inner nodes, for samples in which few variables are present.

The nodes with children ("inner") are visited for `LANE` samples side by side, and leaves only where
they are present: with `B_u(j) = prod_(leaves x of u) P(absent | j)`,

    b_u(j) = B_u(j) prod_(present x) P(present | j) / P(absent | j) prod_(inner children v) m_v(j)
    m_v(j) = sum_i P(v = i | j) b_v(i)
    a_v(i) = sum_j P(v = i | j) a_u(j) b_u(j) / m_v(j)

`b_v` is what lies below a node says, `a_v` all the rest; the factor of `P(v = i | j)` in `a_v` is
what leaves `u` towards `v`. O(inner nodes k^2 + present variables k) a sample; memory 3 k LANE
numbers for each inner node and thread. `b`, `a` and that factor have a largest entry of 1.
"""

from __future__ import annotations

import threading
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.engine import parallel
from latenttree.engine.kernels import kernel
from latenttree.model.inference.sparse_forms import LEAST_ENTRY, MOST_BITS, usable
from latenttree.model.tree_model import TreeModel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LANE = 16
"""Samples side by side."""

SPAN = 4 * LANE
"""Samples that a thread takes at once."""

SUMMED = 16
"""Pieces in which sums over samples are taken, at most."""

OPTIONS: dict[str, Any] = {"fastmath": {"contract", "reassoc"}}
ONCE: dict[str, Any] = {"inline": "always"}


class Nodes(NamedTuple):
    """A model by its inner nodes, each before those below it, neighbours near each other."""

    parent: Ints  # (H,) the root, which is the first: itself
    logs: NDArray[np.bool_]  # (H,) the product is kept as a logarithm
    own: Ints  # (H,) place among the observed inner nodes, -1 for hidden ones
    table: Floats  # (H, k, k) P(u = i | parent = j), at the root P(i) for j = 0; zero beyond
    base: Floats  # (H, k) B, the largest entry 1; or logarithms
    home: Ints  # (p,) the inner node above a leaf, or that an inner variable itself is
    inner: NDArray[np.bool_]  # (p,)
    ratio: Floats  # (p, k) P(present | j) / P(absent | j) of leaves; or logarithms


class MessageRequest(NamedTuple):
    """Messages to write, by the inner node at the lower end of their edge.

    A message is weighted, by state, and scaled to a sum of 1 (`by_sum`) or a largest entry of 1;
    states from `first` on are written."""

    up: Ints  # (H,) where what a node sends to its parent goes; -1: nowhere
    down: Ints  # (H,) where what its parent sends to it goes
    up_weight: Floats  # (H, k)
    down_weight: Floats  # (H, k)
    by_sum: bool
    first: int


Wanted = MessageRequest  # stale kernel caches unpickle this name


class SparseMessages:
    """Messages under one model."""

    def __init__(self, model: TreeModel, nodes: Nodes, place: Ints) -> None:
        self.model, self.nodes, self.place = model, nodes, place
        self._own = threading.local()

    @classmethod
    def of(cls, model: TreeModel, rows: Any, least: float = 0.0) -> SparseMessages | None:
        """For CSR rows of zeros and ones; None where others must do it.

        Smaller entries of tables are taken to be `least`; without it, zeros that stand in the way
        of ratios are left to others."""
        if model.emissions or not usable(model, rows):
            return None
        flat = np.concatenate([t.ravel() for t in model.cpts])
        nodes, place, smallest = _nodes(model, np.maximum(flat, least) if least else flat)
        return cls(model, nodes, place) if smallest >= LEAST_ENTRY else None

    def request(self, edges: Ints, by_sum: bool) -> MessageRequest | None:
        """Messages along `edges` `(m, 2)`, as posteriors of the sender without its first state
        (`by_sum`), or as likelihoods; None where an end is a leaf."""
        if (self.place[edges] < 0).any():
            return None
        k, n = self.nodes.base.shape[1], len(self.nodes.base)
        prior = np.zeros((n, k))
        sender = np.unique(edges[:, 0])
        dims = self.model.dims[sender]
        states = np.repeat(sender, dims)
        ends = np.cumsum(dims)
        within = np.arange(len(states)) - np.repeat(ends - dims, dims)
        known = [self.model.marginals[u] for u in sender.tolist()]
        prior[self.place[states], within] = np.concatenate([np.empty(0), *known])
        there = prior >= 1e-300
        ups, downs = np.full(n, -1), np.full(n, -1)
        is_up = self.model.parents[edges[:, 0]] == edges[:, 1]
        ups[self.place[edges[is_up, 0]]] = np.flatnonzero(is_up)
        downs[self.place[edges[~is_up, 1]]] = np.flatnonzero(~is_up)
        over = prior[self.nodes.parent]
        if by_sum:
            return MessageRequest(ups, downs, prior, (over > 0).astype(float), True, 1)
        turned = np.divide(1.0, over, where=over >= 1e-300, out=np.zeros_like(over))
        return MessageRequest(ups, downs, there.astype(float), turned, False, 0)

    def write(
        self, rows: Any, request: MessageRequest, out: NDArray[np.float32], n_jobs: int
    ) -> None:
        """Fill the messages of CSR rows, `out` `(m, states, n)`."""
        no_weights, no_squares = np.empty(0), np.empty((0, 0))

        def work(start: int, stop: int) -> None:
            self._run(rows, start, stop, request, out, no_weights, no_squares)

        parallel(work, rows.shape[0], n_jobs, SPAN)

    def squares(self, rows: Any, weights: Floats, n_jobs: int) -> Floats:
        """`sum_n w q^2` over the posteriors `q` of all inner nodes, `(H, k)`; a sample of
        probability zero adds nothing."""
        n, nowhere = rows.shape[0], np.full(len(self.nodes.base), -1)
        nothing = np.empty((0, 0))
        request = MessageRequest(nowhere, nowhere, nothing, nothing, True, 0)
        out = np.empty((0, 0, 0), dtype=np.float32)

        def work(start: int, stop: int) -> Floats:
            total = np.zeros(self.nodes.base.shape)
            self._run(rows, start, stop, request, out, weights, total)
            return total

        span = max(SPAN, -(-n // SUMMED))
        return np.asarray(sum(parallel(work, n, n_jobs, span), np.zeros(self.nodes.base.shape)))

    def _run(
        self,
        rows: Any,
        start: int,
        stop: int,
        request: MessageRequest,
        out: Any,
        weights: Any,
        squares: Any,
    ) -> None:
        size, k = self.nodes.base.shape
        if not hasattr(self._own, "work"):
            self._own.work = np.empty((3, size, k, LANE))
            self._own.known = np.empty((int(self.nodes.own.max()) + 1, LANE), dtype=np.int64)
        kernel = run_two if k == 2 else partial(run, k)
        own, bounds = self._own, rows.indptr
        kernel(
            start,
            stop,
            bounds,
            rows.indices,
            self.nodes,
            request,
            own.work,
            own.known,
            out,
            weights,
            squares,
        )


def _nodes(model: TreeModel, flat: Floats) -> tuple[Nodes, Ints, float]:
    """A model with these tables, the place of every node, -1 for leaves, and the smallest
    probability that something is divided by."""
    p, parents, dims = model.tree.n_observed, model.parents, model.dims
    is_inner = np.zeros(len(dims), dtype=bool)
    is_inner[parents[parents >= 0]] = True
    is_inner[model.root] = True
    place = preorder(parents, model.order, is_inner)
    inner = np.empty(int(is_inner.sum()), dtype=np.int64)
    inner[place[is_inner]] = np.flatnonzero(is_inner)
    above = parents[inner]
    parent = place[np.where(above < 0, model.root, above)]
    own = np.where(inner < p, np.cumsum(inner < p) - 1, -1)
    width = np.where(parents < 0, 1, dims[np.maximum(parents, 0)])
    first = np.cumsum(dims * width) - dims * width
    n, k = len(inner), int(dims[inner].max())
    states = np.arange(k)
    i, j = np.indices((k, k))
    v = inner[:, None, None]
    inside = (i < dims[v]) & (j < width[v])
    table = np.where(inside, flat[np.where(inside, first[v] + i * width[v] + j, 0)], 0.0)
    leaves = np.flatnonzero(~is_inner[:p])
    home = place[np.where(is_inner[:p], np.arange(p), np.maximum(parents[:p], 0))]
    there = states < width[leaves, None]
    at = np.where(there, first[leaves, None] + states, 0)
    absent = np.where(there, flat[at], 1.0)
    present = np.where(there, flat[at + np.where(there, width[leaves, None], 0)], 1.0)
    least = min(table.min(where=inside, initial=1.0), absent.min(initial=1.0))
    if least <= 0.0:
        return Nodes(*[np.empty(0)] * 8), place, 0.0  # type: ignore[arg-type]
    with np.errstate(divide="ignore"):
        ratio = np.log(present) - np.log(absent)
    at = home[leaves, None] * k + states
    base = np.bincount(at.ravel(), np.log(absent).ravel(), minlength=n * k).astype(np.float64)
    base = base.reshape(n, k)
    base[states >= dims[inner, None]] = -np.inf
    base -= base.max(axis=1, keepdims=True)
    far = np.where(np.isfinite(ratio), np.abs(ratio), 0.0).max(axis=1, initial=0.0)
    bits = np.bincount(home[leaves], far, minlength=n)
    bits += np.where(np.isfinite(base), -base, 0.0).max(axis=1)
    sent = -np.log(table.min(axis=(1, 2), where=inside, initial=1.0))
    bits += np.bincount(parent[1:], sent[1:], minlength=n)
    logs = bits > MOST_BITS * np.log(2)
    base[~logs] = np.exp(base[~logs])
    ratios = np.zeros((p, k))
    ratios[leaves] = np.where(logs[home[leaves], None], ratio, np.exp(ratio))
    nodes = Nodes(parent, logs, own, table, base, home, is_inner[:p], ratios)
    return nodes, place, float(least)


@kernel
def preorder(parents, order, chosen):  # type: ignore[no-untyped-def]
    """Places of the chosen nodes, each before all below it and these next to each other; -1 for
    the others. All above a chosen node are chosen; `order` has parents first."""
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
    """`e[:k]` = `values[at]` weighted by `weight[row]`, `e[k]` what scales it to a sum, or a
    largest entry, of 1."""
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
    """`out[place, :, low:high]` = what `e` holds, scaled."""
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
                sent = m[v, j, s]
                c[0, j, s] = a[u, j, s] * b[u, j, s] / (sent if sent > 0.0 else 1.0)
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
    """Samples start:stop, which have the variables `leaf[indptr[s]:indptr[s + 1]]`.

    Fills columns start:stop of `out`, and adds to `squares` where it is not empty."""
    _samples(k, start, stop, indptr, leaf, nodes, request, work, known, out, weights, squares)


@kernel(**OPTIONS)
def run_two(  # type: ignore[no-untyped-def]
    start, stop, indptr, leaf, nodes, request, work, known, out, weights, squares
):
    """The same for two states, with all loops over states unrolled."""
    _samples(2, start, stop, indptr, leaf, nodes, request, work, known, out, weights, squares)
