"""Belief propagation over lanes of samples.

Buffers are `(states, LANE)`: a row for each state of each buffered node, the samples side by
side, so that every inner loop is over a lane and vectorises. With `b_v(i)` the likelihood of the
evidence below and at `v` given `v = i`, and `m_v(j)` the message to the parent `u = j`,

    m_v(j) = sum_i P(i | j) b_v(i),        b_u(j) = evidence_u(j) prod_v m_v(j)
    q_v(i) = b_v(i) sum_j P(i | j) r_v(j), r_v(j) = q_u(j) / m_v(j)

where `q` are the posteriors. The downward step divides a posterior by one of its own factors, so
zeros (0 / 0 = 0) and small numbers do no harm.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from latenttree.inference.plan import Plan

LANE = 32
"""Samples that walk the tree together."""

# A product of many factors in [0, 1] starts at TOP; entries that may have fallen too far are
# lifted above LOW by steps of 2^300, which the exponents count. At least 2^100 is kept before every
# factor, so that even a factor of 1e-300 leaves a normal number.
TOP = 2.0**900
LOW = 2.0**600
STEP = 2.0**300
STEP_BITS = 300.0
ROOM = 500.0
SMALL = 2.0**-32

LIKELIHOOD, POSTERIORS, PAIRS, COUNTS, BEST, DRAW, MESSAGES = range(7)

Floats = NDArray[np.float64]


class Work(NamedTuple):
    """Buffers of one thread."""

    state: Floats  # (rows, LANE) b, then the posteriors
    message: Floats  # (message rows, LANE)
    ratio: Floats  # (most states, LANE)
    lifted: NDArray[np.int64]  # (most states, LANE) steps taken out of a product
    scale: Floats  # (LANE,) taken out of the samples' likelihoods, times 2^bits
    bits: Floats  # (LANE,)
    total: Floats  # (LANE,)
    above: Floats  # (rows, LANE) joint with what is above; for messages alone


class Query(NamedTuple):
    """What is asked, and where the answers go; arrays that a task does not use are empty."""

    node: NDArray[np.int64]  # nodes asked for; PAIRS: the column of each node's pair, or -1
    column: NDArray[np.int64]  # first column of each
    weight: Floats  # (n,) of the samples, for counts
    uniform: Floats  # (n, n_nodes) for draws
    cumulative: Floats  # tables summed down their columns, laid out as the tables
    values: Floats  # (n, width) posteriors or pairs
    counts: Floats  # laid out as the tables
    states: NDArray[np.int32]  # (n, n_nodes)
    messages: NDArray[np.float32]  # (n, n_messages, most states of a hidden node)
    log_likelihood: Floats  # (n,)


def make_work(plan: Plan, task: int) -> Work:
    """Buffers for one thread."""
    rows, message_rows, most, _ = plan.sizes.tolist()
    return Work(
        np.empty((rows, LANE)),
        np.empty((message_rows, LANE)),
        np.empty((most, LANE)),
        np.empty((most, LANE), dtype=np.int64),
        np.empty(LANE),
        np.empty(LANE),
        np.empty(LANE),
        np.empty((rows if task == MESSAGES else 0, LANE)),
    )


@njit(cache=True, nogil=True)
def fill_rows(codes, dims, rows):  # type: ignore[no-untyped-def]
    """`rows[v, s]`: the table row of sample `s` at observed node `v`; unknown is row `dims[v]`.

    `codes` is `(n, p)`, `rows` `(p, n or more)`, the rest unknown. False where a code is no state.
    """
    n, p = codes.shape
    fine = True
    for begin in range(0, rows.shape[1], LANE):
        end = min(begin + LANE, n)
        for v in range(p):
            d = dims[v]
            for s in range(begin, end):
                c = np.int64(codes[s, v])
                fine &= -1 <= c < d
                rows[v, s] = c if c >= 0 else d
            for s in range(max(begin, end), begin + LANE):
                rows[v, s] = d
    return fine


@njit(cache=True, nogil=True)
def _start_product(out, u, plan, rows, at, soft, n):  # type: ignore[no-untyped-def]
    """`out = TOP * evidence at u itself`."""
    d = plan.dims[u]
    column = plan.soft[u]
    for i in range(d):
        for s in range(LANE):
            out[i, s] = TOP
    if column >= 0:
        for s in range(min(LANE, n - at)):
            for i in range(d):
                out[i, s] *= soft[at + s, column + i]
    if u < plan.sizes[3]:
        for s in range(LANE):
            known = rows[u, at + s]
            if known < d:
                for i in range(d):
                    if i != known:
                        out[i, s] = 0.0


@njit(cache=True, nogil=True)
def _lift(out, d, lifted, fresh):  # type: ignore[no-untyped-def]
    """Bring every positive entry of `out` above LOW, counting the steps."""
    if fresh:
        for i in range(d):
            for s in range(LANE):
                lifted[i, s] = 0
    for i in range(d):
        for s in range(LANE):
            while 0.0 < out[i, s] < LOW:
                out[i, s] *= STEP
                lifted[i, s] += 1


@njit(cache=True, nogil=True)
def _join(out, d, lifted, bits):  # type: ignore[no-untyped-def]
    """Undo the lifts relative to the least lifted state; what is 2^-900 of it or less is zero."""
    for s in range(LANE):
        least = 1 << 60
        for i in range(d):
            if out[i, s] > 0.0:
                least = min(least, lifted[i, s])
        if least == 1 << 60:
            continue
        bits[s] -= STEP_BITS * least
        for i in range(d):
            steps = lifted[i, s] - least
            if steps > 4:
                out[i, s] = 0.0
            for _ in range(min(steps, 4)):
                out[i, s] /= STEP


@njit(cache=True, nogil=True)
def _normalise(out, d, scale, bits):  # type: ignore[no-untyped-def]
    """Divide `out` by TOP, and by its largest entry in samples where that has become small."""
    smallest = 1.0
    top = np.empty(LANE)
    for s in range(LANE):
        top[s] = 0.0
    for i in range(d):
        for s in range(LANE):
            out[i, s] *= 1.0 / TOP
            top[s] = max(top[s], out[i, s])
    for s in range(LANE):
        smallest = min(smallest, top[s])
    if smallest >= SMALL:
        return
    for s in range(LANE):
        if not 0.0 < top[s] < SMALL:
            continue
        for i in range(d):
            out[i, s] /= top[s]
        scale[s] *= top[s]
        while scale[s] < 2.0**-200:
            scale[s] *= 2.0**200
            bits[s] -= 200.0


@njit(cache=True, nogil=True)
def _product(out, u, skip, plan, work, rows, at, soft, n):  # type: ignore[no-untyped-def]
    """`b_u` without the child `skip`: the evidence at `u` times its children's messages."""
    d = plan.dims[u]
    room = ROOM
    wide = False
    index = np.empty(LANE, dtype=np.int64)
    _start_product(out, u, plan, rows, at, soft, n)
    for c in plan.child[plan.indptr[u] : plan.indptr[u + 1]]:
        if c == skip:
            continue
        if plan.place[c] < 0:
            for s in range(LANE):
                index[s] = plan.start[c] + rows[c, at + s] * d
            for j in range(d):
                for s in range(LANE):
                    out[j, s] *= plan.table[index[s] + j]
        else:
            first = plan.message[c]
            for j in range(d):
                for s in range(LANE):
                    out[j, s] *= work.message[first + j, s]
        room -= plan.cost[c]
        if room < 0:
            _lift(out, d, work.lifted, not wide)
            wide = True
            room = ROOM
    if wide:
        _join(out, d, work.lifted, work.bits)
    _normalise(out, d, work.scale, work.bits)


@njit(cache=True, nogil=True)
def _all_known(v, plan, rows, at):  # type: ignore[no-untyped-def]
    """Whether `v` is observed in every sample of the lane."""
    if v >= plan.sizes[3]:
        return False
    for s in range(LANE):
        if rows[v, at + s] == plan.dims[v]:
            return False
    return True


@njit(cache=True, nogil=True, fastmath={"contract"})
def _send(b, out, v, maximise, plan, rows, at):  # type: ignore[no-untyped-def]
    """`out(j) = sum_i P(i | j) b(i)`, or the maximum over `i`. O(dims[v] * dims[u]) a sample."""
    d = plan.dims[v]
    k = plan.dims[plan.parent[v]]
    start = plan.start[v]
    if _all_known(v, plan, rows, at):
        for s in range(LANE):
            i = rows[v, at + s]
            for j in range(k):
                out[j, s] = plan.table[start + i * k + j] * b[i, s]
        return
    for j in range(k):
        for s in range(LANE):
            out[j, s] = 0.0
        for i in range(d):
            t = plan.table[start + i * k + j]
            if maximise:
                for s in range(LANE):
                    out[j, s] = max(out[j, s], t * b[i, s])
            else:
                for s in range(LANE):
                    out[j, s] += t * b[i, s]


@njit(cache=True, nogil=True)
def _upward(plan, work, rows, at, soft, n, maximise):  # type: ignore[no-untyped-def]
    """All `b` and `m`, from the leaves to the root, and the root's total."""
    for s in range(LANE):
        work.scale[s] = 1.0
        work.bits[s] = 0.0
        work.total[s] = 0.0
    root = plan.order[0]
    for q in range(len(plan.order) - 1, -1, -1):
        v = plan.order[q]
        b = work.state[plan.place[v] : plan.place[v] + plan.dims[v]]
        _product(b, v, -1, plan, work, rows, at, soft, n)
        if v != root:
            first = plan.message[v]
            out = work.message[first : first + plan.dims[plan.parent[v]]]
            _send(b, out, v, maximise, plan, rows, at)
    for i in range(plan.dims[root]):
        prior = plan.table[plan.start[root] + i]
        for s in range(LANE):
            part = prior * work.state[plan.place[root] + i, s]
            work.total[s] = max(work.total[s], part) if maximise else work.total[s] + part


@njit(cache=True, nogil=True)
def _root_posterior(plan, work):  # type: ignore[no-untyped-def]
    root = plan.order[0]
    for i in range(plan.dims[root]):
        prior = plan.table[plan.start[root] + i]
        row = plan.place[root] + i
        for s in range(LANE):
            if work.total[s] > 0.0:
                work.state[row, s] = prior * work.state[row, s] / work.total[s]


@njit(cache=True, nogil=True)
def _ratio(v, plan, work):  # type: ignore[no-untyped-def]
    """`r_v(j) = q_u(j) / m_v(j)`, zero where the message is."""
    u = plan.parent[v]
    for j in range(plan.dims[u]):
        q = plan.place[u] + j
        m = plan.message[v] + j
        for s in range(LANE):
            below = work.message[m, s]
            work.ratio[j, s] = work.state[q, s] / below if below > 0.0 else 0.0


@njit(cache=True, nogil=True, fastmath={"contract"})
def _down(v, plan, work, rows, at):  # type: ignore[no-untyped-def]
    """`b_v` becomes `q_v`."""
    k = plan.dims[plan.parent[v]]
    first = plan.place[v]
    for i in range(plan.dims[v]):
        start = plan.start[v] + i * k
        row = np.zeros(LANE)
        for j in range(k):
            t = plan.table[start + j]
            for s in range(LANE):
                row[s] += t * work.ratio[j, s]
        for s in range(LANE):
            work.state[first + i, s] *= row[s]


@njit(cache=True, nogil=True)
def _pair(v, column, values, plan, work, at, n):  # type: ignore[no-untyped-def]
    """`P(v = i, u = j | evidence) = b_v(i) P(i | j) r_v(j)` into `dims[v] * dims[u]` columns."""
    k = plan.dims[plan.parent[v]]
    for s in range(min(LANE, n - at)):
        for i in range(plan.dims[v]):
            b = work.state[plan.place[v] + i, s]
            for j in range(k):
                part = b * plan.table[plan.start[v] + i * k + j] * work.ratio[j, s]
                values[at + s, column + i * k + j] = part


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def _count_pairs(v, counts, weight, plan, work):  # type: ignore[no-untyped-def]
    """`counts(i, j) += sum_s w b_v(i) P(i | j) r_v(j)`."""
    k = plan.dims[plan.parent[v]]
    for i in range(plan.dims[v]):
        b = plan.place[v] + i
        for j in range(k):
            here = plan.start[v] + i * k + j
            part = 0.0
            for s in range(LANE):
                part += weight[s] * work.state[b, s] * work.ratio[j, s]
            counts[here] += plan.table[here] * part


@njit(cache=True, nogil=True)
def _count_leaf(v, counts, weight, plan, work, rows, at):  # type: ignore[no-untyped-def]
    """`counts(x, j) += w q_u(j)` for a leaf without a buffer; unknown values in the extra row."""
    u = plan.parent[v]
    k = plan.dims[u]
    for s in range(LANE):
        here = plan.start[v] + rows[v, at + s] * k
        for j in range(k):
            counts[here + j] += weight[s] * work.state[plan.place[u] + j, s]


@njit(cache=True, nogil=True)
def _count_root(counts, weight, plan, work):  # type: ignore[no-untyped-def]
    root = plan.order[0]
    for i in range(plan.dims[root]):
        for s in range(LANE):
            counts[plan.start[root] + i] += weight[s] * work.state[plan.place[root] + i, s]


@njit(cache=True, nogil=True)
def _downward(plan, work, rows, at, n, task, query):  # type: ignore[no-untyped-def]
    """Posteriors of all buffered nodes, and on the way the pairs and counts of their edges."""
    weight = np.zeros(LANE)
    if task == COUNTS:
        for s in range(min(LANE, n - at)):
            weight[s] = query.weight[at + s] if work.total[s] > 0.0 else 0.0
    _root_posterior(plan, work)
    if task == COUNTS:
        _count_root(query.counts, weight, plan, work)
    for v in plan.order[1:]:
        _ratio(v, plan, work)
        if task == COUNTS:
            _count_pairs(v, query.counts, weight, plan, work)
        elif task == PAIRS and query.node[v] >= 0:
            _pair(v, query.node[v], query.values, plan, work, at, n)
        _down(v, plan, work, rows, at)
    if task == COUNTS:
        for v in range(plan.sizes[3]):
            if plan.place[v] < 0:
                _count_leaf(v, query.counts, weight, plan, work, rows, at)


@njit(cache=True, nogil=True)
def _write_leaf(v, column, values, plan, work, rows, at, n):  # type: ignore[no-untyped-def]
    """Posterior of a leaf without a buffer: what is known, or `sum_j P(i | j) q_u(j)`."""
    u = plan.parent[v]
    k = plan.dims[u]
    d = plan.dims[v]
    for s in range(min(LANE, n - at)):
        known = rows[v, at + s]
        for i in range(d):
            part = 0.0
            if known == d:
                for j in range(k):
                    part += plan.table[plan.start[v] + i * k + j] * work.state[plan.place[u] + j, s]
            elif known == i:
                part = 1.0
            values[at + s, column + i] = part


@njit(cache=True, nogil=True)
def _write_posteriors(plan, work, rows, at, n, query):  # type: ignore[no-untyped-def]
    for q in range(len(query.node)):
        v = query.node[q]
        column = query.column[q]
        if plan.place[v] < 0:
            _write_leaf(v, column, query.values, plan, work, rows, at, n)
            continue
        for s in range(min(LANE, n - at)):
            for i in range(plan.dims[v]):
                query.values[at + s, column + i] = work.state[plan.place[v] + i, s]


@njit(cache=True, nogil=True)
def _blank_impossible(work, at, n, values):  # type: ignore[no-untyped-def]
    """Samples of probability zero have no posterior: NaN."""
    for s in range(min(LANE, n - at)):
        if not work.total[s] > 0.0:
            for i in range(values.shape[1]):
                values[at + s, i] = np.nan


@njit(cache=True, nogil=True)
def _write_likelihood(work, at, n, out):  # type: ignore[no-untyped-def]
    for s in range(min(LANE, n - at)):
        if work.total[s] > 0.0:
            out[at + s] = np.log(work.total[s]) + np.log(work.scale[s]) + work.bits[s] * np.log(2.0)
        else:
            out[at + s] = -np.inf


@njit(cache=True, nogil=True)
def _cavity(out, u, skip, plan, work, rows, at, soft, n):  # type: ignore[no-untyped-def]
    """What all but the child `skip` say about `u`, as a joint with `u`, largest entry 1.

    The product over the others is `b_u / m_skip`; it is taken anew where that message is so small
    that its part of the product may have been lost.
    """
    d = plan.dims[u]
    top = np.zeros(LANE)
    lost = False
    for j in range(d):
        for s in range(LANE):
            m = _message_of(skip, j, s, plan, work, rows, at)
            lost |= m < 1e-100
            out[j, s] = work.state[plan.place[u] + j, s] / m if m > 0.0 else 0.0
    if lost:
        _product(out, u, skip, plan, work, rows, at, soft, n)
    for j in range(d):
        for s in range(LANE):
            top[s] = max(top[s], out[j, s])
    for s in range(LANE):
        top[s] = 1.0 / top[s] if top[s] > 0.0 else 0.0
    for j in range(d):
        for s in range(LANE):
            out[j, s] *= top[s] * work.above[plan.place[u] + j, s]
    _unit_top(out, d)


@njit(cache=True, nogil=True)
def _message_of(c, j, s, plan, work, rows, at):  # type: ignore[no-untyped-def]
    """Entry `j` of the message of a child with or without a buffer."""
    if plan.place[c] >= 0:
        return work.message[plan.message[c] + j, s]
    return plan.table[plan.start[c] + rows[c, at + s] * plan.dims[plan.parent[c]] + j]


@njit(cache=True, nogil=True)
def _unit_top(out, d):  # type: ignore[no-untyped-def]
    """Scale every sample to a largest entry of 1."""
    for s in range(LANE):
        top = 0.0
        for j in range(d):
            top = max(top, out[j, s])
        if top > 0.0:
            for j in range(d):
                out[j, s] /= top


@njit(cache=True, nogil=True)
def _all_above(plan, work, rows, at, soft, n):  # type: ignore[no-untyped-def]
    """`above_v(i)`: the evidence that is not below `v`, joint with `v = i`; largest entry 1."""
    root = plan.order[0]
    for i in range(plan.dims[root]):
        for s in range(LANE):
            work.above[plan.place[root] + i, s] = plan.table[plan.start[root] + i]
    for v in plan.order[1:]:
        u = plan.parent[v]
        k = plan.dims[u]
        _cavity(work.ratio, u, v, plan, work, rows, at, soft, n)
        for i in range(plan.dims[v]):
            here = plan.place[v] + i
            for s in range(LANE):
                work.above[here, s] = 0.0
            for j in range(k):
                t = plan.table[plan.start[v] + i * k + j]
                for s in range(LANE):
                    work.above[here, s] += t * work.ratio[j, s]
        _unit_top(work.above[plan.place[v] : plan.place[v] + plan.dims[v]], plan.dims[v])


@njit(cache=True, nogil=True)
def _write_messages(plan, work, rows, at, soft, n, query):  # type: ignore[no-untyped-def]
    """Likelihood over the states of `u` of what is on its side of the edge `u - w`.

    A state that has probability zero without any evidence gets zero in both directions."""
    for q in range(len(query.node)):
        u, w = query.node[q], query.column[q]
        d = plan.dims[u]
        up = plan.parent[u] == w
        if not up:
            _cavity(work.ratio, u, w, plan, work, rows, at, soft, n)
        for i in range(d):
            p = plan.marginal[plan.known[u] + i]
            weight = 0.0 if p < 1e-300 else (1.0 if up else 1.0 / p)
            for s in range(LANE):
                part = work.state[plan.place[u] + i, s] if up else work.ratio[i, s]
                work.ratio[i, s] = part * weight
        _unit_top(work.ratio, d)
        for s in range(min(LANE, n - at)):
            for i in range(d):
                query.messages[at + s, q, i] = work.ratio[i, s]


@njit(cache=True, nogil=True)
def _best_state(v, x, s, plan, work, known):  # type: ignore[no-untyped-def]
    """The first state of `v` with the largest `P(i | x) b_v(i)`; `x` is the parent's state."""
    if known < plan.dims[v]:
        return known
    k = 1 if plan.parent[v] < 0 else plan.dims[plan.parent[v]]
    best = 0
    largest = -1.0
    for i in range(plan.dims[v]):
        part = plan.table[plan.start[v] + i * k + x]
        if plan.place[v] >= 0:
            part *= work.state[plan.place[v] + i, s]
        if part > largest:
            best, largest = i, part
    return best


@njit(cache=True, nogil=True)
def _drawn_state(v, x, s, plan, work, known, uniform, cumulative):  # type: ignore[no-untyped-def]
    """A draw from `P(i | x) b_v(i)` by its distribution function."""
    d = plan.dims[v]
    if known < d:
        return known
    k = 1 if plan.parent[v] < 0 else plan.dims[plan.parent[v]]
    start = plan.start[v] + x
    if plan.place[v] < 0:
        goal = uniform * cumulative[start + (d - 1) * k]
        low, high = 0, d - 1
        while low < high:
            middle = (low + high) // 2
            if cumulative[start + middle * k] > goal:
                high = middle
            else:
                low = middle + 1
        return low
    total = 0.0
    for i in range(d):
        total += plan.table[start + i * k] * work.state[plan.place[v] + i, s]
    goal = uniform * total
    total = 0.0
    last = 0
    for i in range(d):
        part = plan.table[start + i * k] * work.state[plan.place[v] + i, s]
        total += part
        if part > 0.0:
            last = i
            if total > goal:
                break
    return last


@njit(cache=True, nogil=True)
def _assign(order, plan, work, rows, at, n, task, query):  # type: ignore[no-untyped-def]
    """States of all nodes from the root down: the best ones, or a draw. -1 where impossible."""
    p = plan.sizes[3]
    for s in range(min(LANE, n - at)):
        state = query.states[at + s]
        for v in order:
            if not work.total[s] > 0.0:
                state[v] = -1
                continue
            x = 0 if plan.parent[v] < 0 else state[plan.parent[v]]
            known = rows[v, at + s] if v < p else plan.dims[v]
            if task == BEST:
                state[v] = _best_state(v, x, s, plan, work, known)
            else:
                u = query.uniform[at + s, v]
                state[v] = _drawn_state(v, x, s, plan, work, known, u, query.cumulative)


@njit(cache=True, nogil=True)
def run(task, plan, work, rows, soft, n, query):  # type: ignore[no-untyped-def]
    """Answer a query on `n` samples; one kernel for all tasks, so that one is compiled."""
    for at in range(0, n, LANE):
        _upward(plan, work, rows, at, soft, n, task == BEST)
        _write_likelihood(work, at, n, query.log_likelihood)
        if task == POSTERIORS or task == PAIRS or task == COUNTS:
            _downward(plan, work, rows, at, n, task, query)
        if task == POSTERIORS:
            _write_posteriors(plan, work, rows, at, n, query)
        if task == POSTERIORS or task == PAIRS:
            _blank_impossible(work, at, n, query.values)
        if task == MESSAGES:
            _all_above(plan, work, rows, at, soft, n)
            _write_messages(plan, work, rows, at, soft, n, query)
        if task == BEST or task == DRAW:
            _assign(query.node, plan, work, rows, at, n, task, query)
