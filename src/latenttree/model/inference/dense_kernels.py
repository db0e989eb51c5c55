"""Belief propagation over lanes of samples.

Buffers are `(states, lane)`: a row for each state of each buffered node, the samples side by
side, so that every inner loop is over a lane and vectorises. With `b_v(i)` the likelihood of the
evidence below and at `v` given `v = i`, and `m_v(j)` the message to the parent `u = j`,

    m_v(j) = sum_i P(i | j) b_v(i),        b_u(j) = evidence_u(j) prod_v m_v(j)
    q_v(i) = b_v(i) sum_j P(i | j) r_v(j), r_v(j) = q_u(j) / m_v(j)

where `q` are the posteriors. The downward step divides a posterior by one of its own factors, so
zeros (0 / 0 = 0) and small numbers do no harm. Sums over `WIDE` states or more are products of a
CPT and the `(states, lane)` matrix of messages, by BLAS.

Leaves are read from codes, row by row of their tables, or from CSR rows of ones, as ratios to zero
(see `dense_plan.Plan`): then a sample costs its ones, not all leaves.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.engine.kernels import kernel, subroutine
from latenttree.model.inference.dense_plan import (
    CAREFUL,
    DIM,
    END,
    INNER,
    LEAVES,
    MESSAGE,
    OWN,
    PARENT,
    PLACE,
    RESCALE,
    SOFT,
    START,
    WIDTH,
    Plan,
)

LANE = 64
"""Samples of codes that walk the tree together."""

WIDE = 16
"""From this number of states on, sums over states are matrix products, and leaves are read state by
state of one sample, not sample by sample of one state. With 8 states the call of BLAS costs more
than it saves: a log-likelihood takes 1.6 times as long as by loops, with 16 states 0.9 times, with
64 half."""

BLOCK = 64
"""Columns of posteriors that are written together."""

SCALE, BITS, TOTAL, PART, WEIGHT = range(5)
"""Rows of `Work.lane`: likelihood taken out (times 2^BITS), root's total, scratch, weights."""

LIKELIHOOD, POSTERIORS, PAIRS, COUNTS, BEST, DRAW, MESSAGES, SQUARES = range(8)

NODE, UP, DOWN, DEEP = range(4)
"""Columns of `Query.visit`: a node, the place of its message to its parent and of its parent's to
it (-1: not asked for), whether messages further down need what is above it."""

Floats = NDArray[np.float64]
OPTIONS: dict[str, Any] = {"fastmath": {"contract"}}

# What is called in one place is inlined before compilation, what is called in several is compiled
# once, without an entry from Python: half the time to compile. Arguments that are literals would
# compile a callee again.
ONCE: dict[str, Any] = {"inline": "always"}


class Work(NamedTuple):
    """Buffers of one thread."""

    state: Floats  # (rows, lane) b, then the posteriors
    message: Floats  # (message rows, lane), then as many ones as a node has states
    ratio: Floats  # (most states, lane)
    spare: Floats  # (most states, lane) scratch
    turned: Floats  # (lane, most states) scratch
    square: Floats  # (most states^2,) scratch
    lane: Floats  # (5, lane)
    above: Floats  # (rows, lane) joint with what is above; for messages alone


class Query(NamedTuple):
    """What is asked, and where the answers go; arrays that a task does not use are empty."""

    node: NDArray[np.int64]  # nodes asked for; PAIRS: the column of each node's pair, or -1
    column: NDArray[np.int64]  # first column of each
    source: NDArray[np.int64]  # buffer row of each column
    visit: NDArray[np.int64]  # (v, 4) MESSAGES: see NODE
    scales: Floats  # (v, 2, most states) MESSAGES: weights of the states up and down
    by_sum: bool  # MESSAGES: scaled to a sum of 1, the first state left out; not a largest entry
    weight: Floats  # (n,) of the samples, for counts and squares
    uniform: Floats  # (n, n_nodes) for draws
    cumulative: Floats  # tables summed down their columns, laid out as the tables
    values: Floats  # (n, width) posteriors or pairs
    counts: Floats  # laid out as the tables; SQUARES: as the rows of the buffers
    states: NDArray[np.int32]  # (n, n_nodes)
    messages: NDArray[np.float32]  # (n_messages, states, all samples)
    start: int  # the first sample, in `messages`
    log_likelihood: Floats  # (n,)


def make_work(plan: Plan, task: int, lane: int) -> Work:
    """Buffers for one thread."""
    node, order = plan.node, plan.order
    rows, most = int(node[order, DIM].sum()), int(node[order, DIM].max())
    message_rows = int(node[order[1:], WIDTH].sum())
    return Work(
        np.empty((rows, lane)),
        np.ones((message_rows + most, lane)),
        np.empty((most, lane)),
        np.empty((most, lane)),
        np.empty((lane, most)),
        np.empty(most * most),
        np.zeros((5, lane)),
        np.empty((rows if task == MESSAGES else 0, lane)),
    )


@kernel(**OPTIONS)
def fill_rows(codes, dims, steps, rows):  # type: ignore[no-untyped-def]
    """`rows[l, v, s]`: where sample `s` of lane `l` stands in the table of observed node `v`.

    The row of the table (unknown: row `dims[v]`) times `steps[v]`. `codes` is `(n, p)`, `rows`
    `(lanes, p + 1, LANE)`, its last row zero; samples beyond `n` are unknown. Returns the number of
    codes that are no states; those count as unknown.
    """
    n, p = codes.shape
    wrong = 0
    for lane in range(len(rows)):
        left = min(LANE, n - lane * LANE)
        for v in range(p):
            d, step = dims[v], steps[v]
            for s in range(left):
                c = np.int64(codes[lane * LANE + s, v])
                wrong += int(c < -1 or c >= d)
                rows[lane, v, s] = (c if 0 <= c < d else d) * step
            for s in range(left, LANE):
                rows[lane, v, s] = d * step
        rows[lane, p, :] = 0
    return wrong


@kernel(**ONCE)
def _enter_ones(plan, state, rows, indptr, leaf, at, left):  # type: ignore[no-untyped-def]
    """`b` of all nodes from their leaves alone, and codes of observed nodes inside, in place."""
    node, base, ratio = plan.node, plan.base, plan.ratio
    for r in range(len(base)):
        for s in range(state.shape[1]):
            state[r, s] = base[r]
    rows[:] = 0
    for s in range(min(left, state.shape[1])):
        for t in range(indptr[at + s], indptr[at + s + 1]):
            x = leaf[t]
            u = node[x, PARENT]
            if node[x, OWN] >= 0:
                rows[node[x, OWN], s] = 1
            elif node[u, CAREFUL] > 0:
                for j in range(node[x, WIDTH]):
                    state[node[u, PLACE] + j, s] += ratio[x, j]
            else:
                for j in range(node[x, WIDTH]):
                    state[node[u, PLACE] + j, s] *= ratio[x, j]


@subroutine(**OPTIONS)
def _own_evidence(out, first, u, logs, node, rows, soft, left):  # type: ignore[no-untyped-def]
    """`out *= evidence at u itself`, or `+=` its logarithms; `left` samples are in use."""
    d, own, column = node[u, DIM], node[u, OWN], node[u, SOFT]
    if column >= 0:
        for s in range(min(out.shape[1], left)):
            for i in range(d):
                x = soft[s, column + i]
                out[first + i, s] = out[first + i, s] + np.log(x) if logs else out[first + i, s] * x
    if own >= 0:
        never = -np.inf if logs else 0.0
        for i in range(d):
            for s in range(out.shape[1]):
                out[first + i, s] = out[first + i, s] if rows[own, s] in (i, d) else never


@subroutine(**OPTIONS)
def _times_leaves(out, first, d, fresh, q, end, node, child, table, rows):  # type: ignore[no-untyped-def]
    """`out(j) *= m(j)` of up to three leaves `child[q:end]`; `fresh`: `out(j) = ` their product.

    In the place of leaves that are not there stands the leaf beyond the last: it sends ones."""
    none = len(rows) - 1
    a = child[q]
    b = child[q + 1] if q + 1 < end else none
    c = child[q + 2] if q + 2 < end else none
    none_at = len(table) - d
    at_a = node[a, START]
    at_b = node[b, START] if b < none else none_at
    at_c = node[c, START] if c < none else none_at
    for j in range(d):
        for s in range(LANE):
            part = table[np.uint64(at_a + j + rows[a, s])] * table[np.uint64(at_b + j + rows[b, s])]
            part *= table[np.uint64(at_c + j + rows[c, s])]
            out[first + j, s] = part if fresh else out[first + j, s] * part


@subroutine(**OPTIONS)
def _times_wide_leaves(out, first, u, fresh, node, child, table, rows, turned):  # type: ignore[no-untyped-def]
    """The same for all leaves of a node of many states: rows of tables are read whole."""
    d = node[u, DIM]
    for s in range(LANE):
        product = turned[s]
        for j in range(d):
            product[j] = 1.0
        for q in range(node[u, LEAVES], node[u, INNER]):
            own = table[node[child[q], START] + rows[child[q], s] :]
            for j in range(d):
                product[j] *= own[j]
    for j in range(d):
        for s in range(LANE):
            out[first + j, s] = turned[s, j] if fresh else out[first + j, s] * turned[s, j]


@subroutine(**OPTIONS)
def _times_messages(out, first, d, fresh, q, end, node, child, message):  # type: ignore[no-untyped-def]
    """The same for up to three children with buffers; the last `d` rows of `message` are ones."""
    a = node[child[q], MESSAGE]
    b = node[child[q + 1], MESSAGE] if q + 1 < end else len(message) - d
    c = node[child[q + 2], MESSAGE] if q + 2 < end else len(message) - d
    for j in range(d):
        for s in range(out.shape[1]):
            part = message[a + j, s] * message[b + j, s] * message[c + j, s]
            out[first + j, s] = part if fresh else out[first + j, s] * part


@subroutine(**OPTIONS)
def _rescale(out, first, d, lane):  # type: ignore[no-untyped-def]
    """Divide every sample by its largest entry, which goes into SCALE and BITS."""
    for s in range(out.shape[1]):
        lane[PART, s] = 0.0
    for i in range(d):
        for s in range(out.shape[1]):
            lane[PART, s] = max(lane[PART, s], out[first + i, s])
    for s in range(out.shape[1]):
        top = lane[PART, s] if lane[PART, s] > 0.0 else 1.0
        scale = lane[SCALE, s] * top
        for _ in range(3):
            small, large = scale < 2.0**-100, scale > 2.0**200
            scale *= 2.0**300 if small else (2.0**-300 if large else 1.0)
            lane[BITS, s] += 300.0 if large else (-300.0 if small else 0.0)
        lane[SCALE, s] = scale
        lane[PART, s] = 1.0 / top
    for i in range(d):
        for s in range(out.shape[1]):
            out[first + i, s] *= lane[PART, s]


@subroutine(**OPTIONS)
def _careful_product(out, first, u, skip, plan, work, rows, soft, left):  # type: ignore[no-untyped-def]
    """`b_u` without the child `skip` (-1: none), whatever the range of the factors, by logarithms;
    largest entry 1. Leaves that are ones have been entered; then no child is skipped."""
    node, d, known = plan.node, plan.node[u, DIM], plan.node[u, CAREFUL] > 0
    if len(plan.base) == 0:
        out[first : first + d] = 0.0
    _own_evidence(out, first, u, d > 0, node, rows, soft, left)
    for q in range(node[u, LEAVES], node[u, END]):
        c, sent = plan.child[q], node[plan.child[q], MESSAGE]
        at = node[c, START]
        for j in range(d if c != skip else 0):
            if node[c, PLACE] >= 0:
                for s in range(out.shape[1]):
                    out[first + j, s] += np.log(work.message[sent + j, s])
            elif known:
                for s in range(out.shape[1]):
                    out[first + j, s] += plan.logs[np.uint64(at + j + rows[c, s])]
            else:
                for s in range(out.shape[1]):
                    out[first + j, s] += np.log(plan.table[at + j + rows[c, s]])
    for s in range(out.shape[1]):
        top = -np.inf
        for i in range(d):
            top = max(top, out[first + i, s])
        top = top if top > -np.inf else 0.0
        work.lane[BITS, s] += top / np.log(2.0)
        for i in range(d):
            out[first + i, s] = np.exp(out[first + i, s] - top)


@kernel(**ONCE)
def _product(u, node, child, table, out, plan, work, rows, soft, left):  # type: ignore[no-untyped-def]
    """`b_u`: the evidence at `u` times its children's messages. Leaves that are ones have been
    entered."""
    d, first, inner, entered = node[u, DIM], node[u, PLACE], node[u, INNER], len(plan.base) > 0
    if node[u, CAREFUL] > 0:
        _careful_product(out, first, u, np.int64(-1), plan, work, rows, soft, left)
        return
    fresh = not (entered or node[u, SOFT] >= 0 or node[u, OWN] >= 0)
    if not fresh:
        if not entered:
            out[first : first + d] = 1.0
        _own_evidence(out, first, u, node[u, CAREFUL] > 0, node, rows, soft, left)
    if d >= WIDE and node[u, LEAVES] < inner:
        _times_wide_leaves(out, first, u, fresh, node, child, table, rows, work.turned)
        fresh = False
    for q in range(node[u, LEAVES], inner if d < WIDE else 0, 3):
        _times_leaves(out, first, d, fresh, q, inner, node, child, table, rows)
        fresh = False
    for q in range(inner, node[u, END], 3):
        _times_messages(out, first, d, fresh, q, node[u, END], node, child, work.message)
        fresh = False
    if node[u, RESCALE] > 0:
        _rescale(out, first, d, work.lane)


@subroutine(**OPTIONS)
def _matrix_product(out, to, n_out, source, first, count, stride, table, at):  # type: ignore[no-untyped-def]
    """The same as `_mix`, for many states."""
    cpt, rows = table[at : at + n_out * count], source[first : first + count]
    if stride == 1:
        np.dot(cpt.reshape(n_out, count), rows, out[to : to + n_out])
    else:
        np.dot(cpt.reshape(count, n_out).T, rows, out[to : to + n_out])


@subroutine(**OPTIONS)
def _mix(out, to, n_out, step, source, first, count, stride, table, at):  # type: ignore[no-untyped-def]
    """`out(to + j, s) = sum_c table[at + j step + c stride] source(first + c, s)`, j < n_out.

    One of `step` and `stride` is 1: a CPT, as it is or transposed, times `(count, lane)` numbers.
    Three rows of the source at a time; rows beyond `count` get weight zero."""
    for c in range(0, count, 3):
        x = first + c
        y = x + 1 if c + 1 < count else x
        z = x + 2 if c + 2 < count else x
        for j in range(n_out):
            here = at + j * step + c * stride
            tx = table[here]
            ty = table[here + stride] if c + 1 < count else 0.0
            tz = table[here + 2 * stride] if c + 2 < count else 0.0
            if c == 0:
                for s in range(out.shape[1]):
                    part = tx * source[x, s] + ty * source[y, s] + tz * source[z, s]
                    out[to + j, s] = part
            else:
                for s in range(out.shape[1]):
                    part = tx * source[x, s] + ty * source[y, s] + tz * source[z, s]
                    out[to + j, s] += part


@subroutine(**OPTIONS)
def _largest(out, to, n_out, step, source, first, count, stride, table, at):  # type: ignore[no-untyped-def]
    """As `_mix`, with the maximum for the sum."""
    for j in range(n_out):
        for s in range(out.shape[1]):
            out[to + j, s] = 0.0
        for c in range(count):
            t = table[at + j * step + c * stride]
            for s in range(out.shape[1]):
                out[to + j, s] = max(out[to + j, s], t * source[first + c, s])


@kernel(**ONCE)
def _send(v, maximise, node, table, state, message, rows):  # type: ignore[no-untyped-def]
    """`m_v(j) = sum_i P(i | j) b_v(i)`, or the maximum over `i`. O(dims[v] dims[u]) a sample.

    Where the lane knows `v` in all samples, a look into the table: O(dims[u])."""
    d, k, start, one = node[v, DIM], node[v, WIDTH], node[v, START], np.int64(1)
    first, place = node[v, MESSAGE], node[v, PLACE]
    own = node[v, OWN]
    known = own >= 0
    if known:
        for s in range(state.shape[1]):
            known &= rows[own, s] < d
    if known:
        for s in range(state.shape[1]):
            i = rows[own, s]
            for j in range(k):
                message[first + j, s] = table[start + i * k + j] * state[place + i, s]
    elif maximise:
        _largest(message, first, k, one, state, place, d, k, table, start)
    elif d >= WIDE and k >= WIDE:
        _matrix_product(message, first, k, state, place, d, k, table, start)
    else:
        _mix(message, first, k, one, state, place, d, k, table, start)


@kernel(**ONCE)
def _upward(plan, work, rows, soft, left, maximise):  # type: ignore[no-untyped-def]
    """All `b` and `m`, from the leaves to the root, and the root's total."""
    node, table, order, child = plan.node, plan.table, plan.order, plan.child
    state, message = work.state, work.message
    for s in range(rows.shape[1]):
        work.lane[SCALE, s] = 1.0
        work.lane[BITS, s] = 0.0
    for q in range(len(order) - 1, -1, -1):
        u = order[q]
        _product(u, node, child, table, state, plan, work, rows, soft, left)
        if q > 0:
            _send(u, maximise, node, table, state, message, rows)
    place, d, start = node[order[0], PLACE], node[order[0], DIM], node[order[0], START]
    to, one = np.int64(TOTAL), np.int64(1)
    if maximise:
        _largest(work.lane, to, one, one, work.state, place, d, one, table, start)
    else:
        _mix(work.lane, to, one, one, work.state, place, d, one, table, start)


@subroutine(**OPTIONS)
def _down(v, node, table, state, ratio, spare):  # type: ignore[no-untyped-def]
    """`state(i) *= sum_j P(i | j) ratio(j)`: `b_v` becomes `q_v`, given the ratio `r_v`."""
    k, d, place = node[v, WIDTH], node[v, DIM], node[v, PLACE]
    zero, one = np.int64(0), np.int64(1)
    if d >= WIDE and k >= WIDE:
        _matrix_product(spare, zero, d, ratio, zero, k, one, table, node[v, START])
    else:
        _mix(spare, zero, d, k, ratio, zero, k, one, table, node[v, START])
    for i in range(d):
        for s in range(state.shape[1]):
            state[place + i, s] *= spare[i, s]


@subroutine(**OPTIONS)
def _ratio(v, node, work, count):  # type: ignore[no-untyped-def]
    """`r_v(j) = q_u(j) / m_v(j)`; where the message is zero so is the posterior.

    At the root 1 / total; NaN where a sample is impossible, from where it spreads."""
    state, message, ratio, lane = work.state, work.message, work.ratio, work.lane
    if node[v, PARENT] < 0:
        for s in range(ratio.shape[1]):
            total = lane[TOTAL, s]
            ratio[0, s] = 1.0 / total if total > 0.0 else (0.0 if count else np.nan)
        return
    place, sent = node[node[v, PARENT], PLACE], node[v, MESSAGE]
    for j in range(node[v, WIDTH]):
        for s in range(ratio.shape[1]):
            m = message[sent + j, s]
            ratio[j, s] = state[place + j, s] / (m if m > 0.0 else 1.0)


@subroutine(**OPTIONS)
def _pair(v, column, values, node, table, work, left, at):  # type: ignore[no-untyped-def]
    """`P(v = i, u = j | evidence) = b_v(i) P(i | j) r_v(j)` into `dims[v] * dims[u]` columns."""
    k = node[v, WIDTH]
    for s in range(min(work.lane.shape[1], left)):
        for i in range(node[v, DIM]):
            b = work.state[node[v, PLACE] + i, s]
            for j in range(k):
                part = b * table[node[v, START] + i * k + j] * work.ratio[j, s]
                values[at + s, column + i * k + j] = part


@subroutine(fastmath={"contract", "reassoc"})
def _count_pairs(v, counts, node, table, work):  # type: ignore[no-untyped-def]
    """`counts(i, j) += sum_s w b_v(i) P(i | j) r_v(j)`."""
    d, k, at = node[v, DIM], node[v, WIDTH], node[v, START]
    weight = work.lane[WEIGHT]
    if d >= WIDE and k >= WIDE:
        for i in range(d):
            for s in range(work.lane.shape[1]):
                work.spare[i, s] = weight[s] * work.state[node[v, PLACE] + i, s]
        pairs = work.square[: d * k].reshape(d, k)
        np.dot(work.spare[:d], work.ratio[:k].T, pairs)
        for c in range(d * k):
            counts[at + c] += table[at + c] * work.square[c]
        return
    for i in range(d):
        b = work.state[node[v, PLACE] + i]
        for j in range(k):
            here = node[v, START] + i * k + j
            r = work.ratio[j]
            part = 0.0
            for s in range(work.lane.shape[1]):
                part += weight[s] * b[s] * r[s]
            counts[here] += table[here] * part


@subroutine(**OPTIONS)
def _count_leaf(v, counts, node, work, rows):  # type: ignore[no-untyped-def]
    """`counts(x, j) += w q_u(j)` for a leaf without a buffer; unknown values in the extra row."""
    place = node[node[v, PARENT], PLACE]
    weight = work.lane[WEIGHT]
    for j in range(node[v, WIDTH]):
        posterior = work.state[place + j]
        entries = counts[node[v, START] + j :]
        for s in range(rows.shape[1]):
            entries[np.uint64(rows[v, s])] += weight[s] * posterior[s]


@subroutine(**OPTIONS)
def _count_wide_leaves(u, counts, plan, work, rows):  # type: ignore[no-untyped-def]
    """The same for all leaves of a node of many states: rows of counts are written whole."""
    node, d, turned = plan.node, plan.node[u, DIM], work.turned
    for j in range(d):
        for s in range(rows.shape[1]):
            turned[s, j] = work.lane[WEIGHT, s] * work.state[node[u, PLACE] + j, s]
    for q in range(node[u, LEAVES], node[u, INNER]):
        v = plan.child[q]
        for s in range(rows.shape[1]):
            own, to = turned[s], counts[node[v, START] + rows[v, s] :]
            for j in range(d):
                to[j] += own[j]


@kernel(**ONCE)
def _count_ones(plan, work, counts, indptr, leaf, at, left):  # type: ignore[no-untyped-def]
    """`counts(1, j) += w q_u(j)` of the leaves that are one."""
    node = plan.node
    for s in range(min(left, work.lane.shape[1])):
        for t in range(indptr[at + s], indptr[at + s + 1]):
            x = leaf[t]
            if node[x, OWN] < 0:
                place, k, w = node[node[x, PARENT], PLACE], node[x, WIDTH], work.lane[WEIGHT, s]
                for j in range(k):
                    counts[node[x, START] + k + j] += w * work.state[place + j, s]


@kernel(**ONCE)
def _downward(plan, work, rows, left, task, at, query):  # type: ignore[no-untyped-def]
    """Posteriors of all buffered nodes, and on the way the pairs and counts of their edges."""
    node, table, counting = plan.node, plan.table, task in (COUNTS, SQUARES)
    if counting:
        for s in range(rows.shape[1]):
            work.lane[WEIGHT, s] = query.weight[at + s] if s < left else 0.0
    for v in plan.order:
        _ratio(v, node, work, counting)
        if task == COUNTS:
            _count_pairs(v, query.counts, node, table, work)
        elif task == PAIRS and query.node[v] >= 0:
            _pair(v, query.node[v], query.values, node, table, work, left, at)
        _down(v, node, table, work.state, work.ratio, work.spare)
        if task == COUNTS and node[v, DIM] >= WIDE:
            _count_wide_leaves(v, query.counts, plan, work, rows)
    if task == COUNTS and len(plan.base) == 0:
        for v in range(len(rows) - 1):
            if node[v, PLACE] < 0 and node[v, WIDTH] < WIDE:
                _count_leaf(v, query.counts, node, work, rows)


@kernel(fastmath={"contract", "reassoc"}, inline="always")
def _add_squares(work, squares):  # type: ignore[no-untyped-def]
    """`squares += sum_s w q^2` of all rows of the buffers."""
    weight = work.lane[WEIGHT]
    for r in range(len(squares)):
        q, total = work.state[r], 0.0
        for s in range(len(weight)):
            total += weight[s] * q[s] * q[s]
        squares[r] += total


@subroutine(**OPTIONS)
def _write_leaf(v, values, column, node, table, work, rows, left, at):  # type: ignore[no-untyped-def]
    """Posterior of a leaf without a buffer: what is known, or `sum_j P(i | j) q_u(j)`."""
    d, k, start = node[v, DIM], node[v, WIDTH], node[v, START]
    place = node[node[v, PARENT], PLACE]
    for s in range(min(rows.shape[1], left)):
        known = rows[v, s] // k
        for i in range(d):
            part = 0.0 if work.lane[TOTAL, s] > 0.0 else np.nan
            if known == d:
                for j in range(k):
                    part += table[start + i * k + j] * work.state[place + j, s]
            elif known == i:
                part += 1.0
            values[at + s, column + i] = part


@kernel(**ONCE)
def _write_posteriors(plan, work, rows, left, at, query):  # type: ignore[no-untyped-def]
    """Buffered nodes by their rows, a block that stays in the cache at a time; then the leaves."""
    for begin in range(0, len(query.source), BLOCK):
        end = min(begin + BLOCK, len(query.source))
        for s in range(min(rows.shape[1], left)):
            for c in range(begin, end):
                query.values[at + s, c] = work.state[np.uint64(query.source[c]), s]
    for q in range(len(query.node)):
        v, column = query.node[q], query.column[q]
        if plan.node[v, PLACE] < 0:
            _write_leaf(v, query.values, column, plan.node, plan.table, work, rows, left, at)


@subroutine(**OPTIONS)
def _write_likelihood(lane, left, shift, out, at):  # type: ignore[no-untyped-def]
    for s in range(min(lane.shape[1], left)):
        out[at + s] = -np.inf
        if lane[TOTAL, s] > 0.0:
            scaled = np.log(lane[TOTAL, s]) + np.log(lane[SCALE, s])
            out[at + s] = scaled + lane[BITS, s] * np.log(2.0) + shift


@subroutine(**OPTIONS)
def _cavity(u, skip, plan, work, rows, soft, left):  # type: ignore[no-untyped-def]
    """`ratio` = what all but the child `skip` say about `u`, as a joint with `u`, largest entry 1.

    The product over the others is `b_u / m_skip`; it is taken anew where that message is so small
    that its part of the product may have been lost. Of ones no possible message is so small.
    """
    node, table, out = plan.node, plan.table, work.ratio
    d, place, zero = node[u, DIM], node[u, PLACE], np.int64(0)
    lost = 0
    sent = node[skip, MESSAGE]
    if sent < 0:  # a leaf: its row of the table, where there is a buffer for it
        sent = len(work.message) - d
        for j in range(d):
            for s in range(rows.shape[1]):
                work.message[sent + j, s] = table[node[skip, START] + rows[skip, s] + j]
    for j in range(d):
        for s in range(rows.shape[1]):
            m = work.message[sent + j, s]
            lost += m < 1e-100
            part = work.state[place + j, s] / (m if m > 0.0 else 1.0)
            out[j, s] = part * work.above[place + j, s]
    if node[skip, MESSAGE] < 0:
        work.message[sent:] = 1.0
    if lost > 0 and len(plan.base) == 0:
        _careful_product(out, zero, u, skip, plan, work, rows, soft, left)
        for j in range(d):
            for s in range(rows.shape[1]):
                out[j, s] *= work.above[place + j, s]
    _rescale(out, zero, d, work.lane)


@subroutine(**OPTIONS)
def _write_message(values, first_row, d, weight, to, work, at, left, query):  # type: ignore[no-untyped-def]
    """`values[first_row:]`, weighted by state and scaled, to message `to`."""
    total, e = work.lane[PART], work.spare
    for s in range(len(total)):
        total[s] = 0.0
    for j in range(d):
        for s in range(len(total)):
            x = values[first_row + j, s] * weight[j]
            e[j, s] = x
            total[s] = total[s] + x if query.by_sum else max(total[s], x)
    for s in range(len(total)):
        total[s] = 1.0 / total[s] if total[s] > 1e-300 else 0.0
    left_out = int(query.by_sum)
    for j in range(left_out, d):
        out = query.messages[to, j - left_out, query.start + at :]
        for s in range(min(len(total), left)):
            out[s] = e[j, s] * total[s]


@kernel(**ONCE)
def _write_messages(plan, work, rows, soft, left, at, query):  # type: ignore[no-untyped-def]
    """Messages up and down the edges above `query.visit`, parents first.

    `above_v(i)` is the evidence that is not below `v`, joint with `v = i`; largest entry 1. The
    message down to `v` is the same of its parent, without what is below `v`, divided by the
    marginal; that is a part of the weights."""
    node, zero = plan.node, np.int64(0)
    for q in range(len(query.visit)):
        v = query.visit[q, NODE]
        first, d, k = node[v, PLACE], node[v, DIM], node[v, WIDTH]
        if query.visit[q, UP] >= 0:
            up = query.visit[q, UP]
            _write_message(work.state, first, d, query.scales[q, 0], up, work, at, left, query)
        if query.visit[q, DOWN] < 0 and query.visit[q, DEEP] == 0:
            continue
        if node[v, PARENT] < 0:
            work.ratio[0] = 1.0
        else:
            _cavity(node[v, PARENT], v, plan, work, rows, soft, left)
        if query.visit[q, DOWN] >= 0:
            down = query.visit[q, DOWN]
            _write_message(work.ratio, zero, k, query.scales[q, 1], down, work, at, left, query)
        if query.visit[q, DEEP] > 0:
            work.above[first : first + d] = 1.0
            _down(v, node, plan.table, work.above, work.ratio, work.spare)
            _rescale(work.above, first, d, work.lane)


@subroutine(**OPTIONS)
def _best_state(v, x, s, node, table, state):  # type: ignore[no-untyped-def]
    """The first state of `v` with the largest `P(i | x) b_v(i)`; `x` is the parent's state."""
    best = 0
    largest = -1.0
    for i in range(node[v, DIM]):
        part = table[node[v, START] + i * node[v, WIDTH] + x]
        if node[v, PLACE] >= 0:
            part *= state[node[v, PLACE] + i, s]
        if part > largest:
            best, largest = i, part
    return best


@subroutine(**OPTIONS)
def _drawn_leaf(v, x, uniform, node, cumulative):  # type: ignore[no-untyped-def]
    """A draw from `P(. | x)` by bisection of the distribution function."""
    d, k, start = node[v, DIM], node[v, WIDTH], node[v, START] + x
    goal = uniform * cumulative[start + (d - 1) * k]
    low, high = 0, d - 1
    while low < high:
        middle = (low + high) // 2
        if cumulative[start + middle * k] > goal:
            high = middle
        else:
            low = middle + 1
    return low


@subroutine(**OPTIONS)
def _drawn_state(v, x, s, uniform, node, table, state):  # type: ignore[no-untyped-def]
    """A draw from `P(i | x) b_v(i)`: the first state at which its sum passes the goal."""
    goal = np.inf
    last = 0
    for _ in range(2):
        total = 0.0
        for i in range(node[v, DIM]):
            part = table[node[v, START] + i * node[v, WIDTH] + x] * state[node[v, PLACE] + i, s]
            total += part
            if part > 0.0:
                last = i
            if total > goal:
                return last
        goal = uniform * total
    return last


@kernel(**ONCE)
def _assign(plan, work, rows, left, task, at, query):  # type: ignore[no-untyped-def]
    """States of all nodes from the root down: the best ones, or a draw. -1 where impossible.

    `query.node` holds all nodes, parents first."""
    node, table = plan.node, plan.table
    for s in range(min(rows.shape[1], left)):
        states = query.states[at + s]
        for v in query.node:
            parent = node[v, PARENT]
            x = 0 if parent < 0 else states[parent]
            at_row = node[v, DIM]
            if v < len(rows) - 1:
                at_row = rows[v, s] // (node[v, WIDTH] if node[v, PLACE] < 0 else 1)
            if not work.lane[TOTAL, s] > 0.0:
                states[v] = -1
            elif at_row < node[v, DIM]:
                states[v] = at_row
            elif task == BEST:
                states[v] = _best_state(v, x, s, node, table, work.state)
            elif node[v, PLACE] < 0:
                states[v] = _drawn_leaf(v, x, query.uniform[at + s, v], node, query.cumulative)
            else:
                u = query.uniform[at + s, v]
                states[v] = _drawn_state(v, x, s, u, node, table, work.state)


@kernel(**OPTIONS)
def answer(task, plan, work, rows, soft, indptr, leaf, n, query):  # type: ignore[no-untyped-def]
    """Answer a query on `n` samples: one kernel for all tasks that learning needs.

    Samples are codes, `rows` as `fill_rows` makes them, or ones `leaf[indptr[s]:indptr[s + 1]]`;
    then `rows` is scratch for one lane."""
    ones, width = len(plan.base) > 0, rows.shape[2]
    for lane in range(-(-n // width)):
        at = lane * width
        left = n - at
        own = rows[0 if ones else lane]
        if ones:
            _enter_ones(plan, work.state, own, indptr, leaf, at, left)
        _upward(plan, work, own, soft[at:], left, False)
        _write_likelihood(work.lane, left, plan.shift, query.log_likelihood, at)
        if task in (POSTERIORS, PAIRS, COUNTS, SQUARES):
            _downward(plan, work, own, left, task, at, query)
        if task in (POSTERIORS, COUNTS):
            _write_posteriors(plan, work, own, left, at, query)
        if task == COUNTS and ones:
            _count_ones(plan, work, query.counts, indptr, leaf, at, left)
        if task == SQUARES:
            _add_squares(work, query.counts)
        if task == MESSAGES:
            _write_messages(plan, work, own, soft[at:], left, at, query)


@kernel(**OPTIONS)
def answer_states(task, plan, work, rows, soft, n, query):  # type: ignore[no-untyped-def]
    """The same for states of all nodes, which no fit asks for: the best ones, or a draw."""
    width = rows.shape[2]
    for lane in range(len(rows)):
        at = lane * width
        left = n - at
        _upward(plan, work, rows[lane], soft[at:], left, task == BEST)
        _write_likelihood(work.lane, left, plan.shift, query.log_likelihood, at)
        _assign(plan, work, rows[lane], left, task, at, query)
