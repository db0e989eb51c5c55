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

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.engine.kernels import kernel, subroutine
from latenttree.model.inference.plan import (
    CAREFUL,
    DIM,
    END,
    INNER,
    KNOWN,
    LEAVES,
    MESSAGE,
    PARENT,
    PLACE,
    RESCALE,
    SOFT,
    START,
    WIDTH,
    Plan,
)

LANE = 64
"""Samples that walk the tree together."""

BLOCK = 64
"""Columns of posteriors that are written together."""

# A product that may leave the range of floats starts at TOP; positive entries that fall below LOW
# are lifted by steps of 2^300, which are counted state by state. At least LOW stands before every
# factor, so that a factor of 1e-300 leaves a normal number.
TOP = 2.0**900
LOW = 2.0**600
STEP = 2.0**300
STEP_BITS = 300.0

SCALE, BITS, TOTAL, PART, WEIGHT = range(5)
"""Rows of `Work.lane`: likelihood taken out (times 2^BITS), root's total, scratch, weights."""

LIKELIHOOD, POSTERIORS, PAIRS, COUNTS, BEST, DRAW, MESSAGES = range(7)

Floats = NDArray[np.float64]
OPTIONS: dict[str, Any] = {"fastmath": {"contract"}}

# What is called in one place is inlined before compilation, what is called in several is compiled
# once, without an entry from Python: half the time to compile. Arguments that are literals would
# compile a callee again.
ONCE: dict[str, Any] = {"inline": "always"}


class Work(NamedTuple):
    """Buffers of one thread."""

    state: Floats  # (rows, LANE) b, then the posteriors
    message: Floats  # (message rows, LANE), then as many ones as a node has states
    ratio: Floats  # (most states, LANE)
    spare: Floats  # (most states, LANE) scratch
    lane: Floats  # (5, LANE)
    above: Floats  # (rows, LANE) joint with what is above; for messages alone


class Query(NamedTuple):
    """What is asked, and where the answers go; arrays that a task does not use are empty."""

    node: NDArray[np.int64]  # nodes asked for; PAIRS: the column of each node's pair, or -1
    column: NDArray[np.int64]  # first column of each
    source: NDArray[np.int64]  # buffer row of each column; MESSAGES: nodes in need of `above`
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
    node = plan.node
    rows = int(node[node[:, PLACE] >= 0, DIM].sum())
    message_rows = int(node[node[:, MESSAGE] >= 0, WIDTH].sum())
    most = int(node[plan.order, DIM].max())
    return Work(
        np.empty((rows, LANE)),
        np.ones((message_rows + most, LANE)),
        np.empty((most, LANE)),
        np.empty((most, LANE)),
        np.zeros((5, LANE)),
        np.empty((rows if task == MESSAGES else 0, LANE)),
    )


@kernel(**OPTIONS)
def fill_rows(codes, dims, steps, rows):  # type: ignore[no-untyped-def]
    """`rows[l, v, s]`: where sample `s` of lane `l` stands in the table of observed node `v`.

    The row of the table (unknown: row `dims[v]`) times `steps[v]`. `codes` is `(n, p)`, `rows`
    `(ceil(n / LANE), p + 1, LANE)`, its last row zero; samples beyond `n` are unknown. Returns
    the number of codes that are no states; those count as unknown.
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


@subroutine(**OPTIONS)
def _own_evidence(out, first, u, top, node, rows, soft, left):  # type: ignore[no-untyped-def]
    """`out = top * evidence at u itself`; `left` samples of the lane are in use."""
    d = node[u, DIM]
    column = node[u, SOFT]
    for i in range(d):
        for s in range(out.shape[1]):
            out[first + i, s] = top
    if column >= 0:
        for s in range(min(LANE, left)):
            for i in range(d):
                out[first + i, s] *= soft[s, column + i]
    if u < len(rows) - 1:
        for i in range(d):
            for s in range(out.shape[1]):
                known = rows[u, s]
                out[first + i, s] *= 1.0 if known in (i, d) else 0.0


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
            small = scale < 2.0**-100
            scale *= 2.0**300 if small else 1.0
            lane[BITS, s] -= 300.0 if small else 0.0
        lane[SCALE, s] = scale
        lane[PART, s] = 1.0 / top
    for i in range(d):
        for s in range(out.shape[1]):
            out[first + i, s] *= lane[PART, s]


@subroutine(**OPTIONS)
def _message_of(c, j, s, node, table, message, rows):  # type: ignore[no-untyped-def]
    """Entry `j` of the message of a child with or without a buffer."""
    if node[c, PLACE] >= 0:
        return message[node[c, MESSAGE] + j, s]
    return table[node[c, START] + rows[c, s] + j]


@subroutine(**OPTIONS)
def _join(out, first, d, lifted, lane):  # type: ignore[no-untyped-def]
    """Undo TOP and the lifts relative to the least lifted state; below 2^-700 of it is zero."""
    for s in range(out.shape[1]):
        least = np.inf
        for i in range(d):
            if out[first + i, s] > 0.0:
                least = min(least, lifted[i, s])
        if least < np.inf:
            lane[BITS, s] -= STEP_BITS * least
            for i in range(d):
                steps = min(max(lifted[i, s] - least, 0.0), 3.0)  # a zero may have fewer
                out[first + i, s] = out[first + i, s] / TOP * 2.0 ** (-STEP_BITS * steps)
                if lifted[i, s] > least + 3.0:
                    out[first + i, s] = 0.0


@subroutine(**OPTIONS)
def _careful_product(out, first, u, skip, node, child, table, work, rows, soft, left):  # type: ignore[no-untyped-def]
    """`b_u` without the child `skip`, whatever the range of the factors; largest entry 1.

    Lifts the positive entries above LOW before every factor, and once more at the end."""
    d = node[u, DIM]
    _own_evidence(out, first, u, TOP, node, rows, soft, left)
    work.spare[:d] = 0.0
    for q in range(node[u, LEAVES], node[u, END] + 1):
        c = child[q] if q < node[u, END] else skip
        for j in range(d):
            for s in range(out.shape[1]):
                x = out[first + j, s]
                while 0.0 < x < LOW:
                    x *= STEP
                    work.spare[j, s] += 1.0
                if c != skip:
                    x *= _message_of(c, j, s, node, table, work.message, rows)
                out[first + j, s] = x
    _join(out, first, d, work.spare, work.lane)
    _rescale(out, first, d, work.lane)


@kernel(**ONCE)
def _product(u, node, child, table, work, rows, soft, left):  # type: ignore[no-untyped-def]
    """`b_u`: the evidence at `u` times its children's messages."""
    d, first = node[u, DIM], node[u, PLACE]
    if node[u, CAREFUL] > 0:
        _careful_product(
            work.state, first, u, np.int64(-1), node, child, table, work, rows, soft, left
        )
        return
    fresh = node[u, SOFT] < 0 and u >= len(rows) - 1
    if not fresh:
        _own_evidence(work.state, first, u, 1.0, node, rows, soft, left)
    for q in range(node[u, LEAVES], node[u, INNER], 3):
        _times_leaves(work.state, first, d, fresh, q, node[u, INNER], node, child, table, rows)
        fresh = False
    for q in range(node[u, INNER], node[u, END], 3):
        _times_messages(work.state, first, d, fresh, q, node[u, END], node, child, work.message)
        fresh = False
    if node[u, RESCALE] > 0:
        _rescale(work.state, first, d, work.lane)


@subroutine(**OPTIONS)
def _mix(out, to, n_out, step, source, first, count, stride, table, at):  # type: ignore[no-untyped-def]
    """`out(to + j, s) = sum_c table[at + j step + c stride] source(first + c, s)`, j < n_out.

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
    known = v < len(rows) - 1
    if known:
        for s in range(state.shape[1]):
            known &= rows[v, s] < d
    if known:
        for s in range(state.shape[1]):
            i = rows[v, s]
            for j in range(k):
                message[first + j, s] = table[start + i * k + j] * state[place + i, s]
    elif maximise:
        _largest(message, first, k, one, state, place, d, k, table, start)
    else:
        _mix(message, first, k, one, state, place, d, k, table, start)


@kernel(**ONCE)
def _upward(plan, work, rows, soft, left, maximise):  # type: ignore[no-untyped-def]
    """All `b` and `m`, from the leaves to the root, and the root's total."""
    node, table, order = plan.node, plan.table, plan.order
    for s in range(rows.shape[1]):
        work.lane[SCALE, s] = 1.0
        work.lane[BITS, s] = 0.0
    for q in range(len(order) - 1, -1, -1):
        _product(order[q], node, plan.child, table, work, rows, soft, left)
        if q > 0:
            _send(order[q], maximise, node, table, work.state, work.message, rows)
    place, d, start = node[order[0], PLACE], node[order[0], DIM], node[order[0], START]
    to, one = np.int64(TOTAL), np.int64(1)
    if maximise:
        _largest(work.lane, to, one, one, work.state, place, d, one, table, start)
    else:
        _mix(work.lane, to, one, one, work.state, place, d, one, table, start)


@subroutine(**OPTIONS)
def _down(v, node, table, state, ratio, spare):  # type: ignore[no-untyped-def]
    """`b_v` becomes `q_v`, given the ratio `r_v`."""
    k, d, place = node[v, WIDTH], node[v, DIM], node[v, PLACE]
    zero, one = np.int64(0), np.int64(1)
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
    for s in range(min(LANE, left)):
        for i in range(node[v, DIM]):
            b = work.state[node[v, PLACE] + i, s]
            for j in range(k):
                part = b * table[node[v, START] + i * k + j] * work.ratio[j, s]
                values[at + s, column + i * k + j] = part


@subroutine(fastmath={"contract", "reassoc"})
def _count_pairs(v, counts, node, table, work):  # type: ignore[no-untyped-def]
    """`counts(i, j) += sum_s w b_v(i) P(i | j) r_v(j)`."""
    k = node[v, WIDTH]
    weight = work.lane[WEIGHT]
    for i in range(node[v, DIM]):
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


@kernel(**ONCE)
def _downward(plan, work, rows, left, task, at, query):  # type: ignore[no-untyped-def]
    """Posteriors of all buffered nodes, and on the way the pairs and counts of their edges."""
    node, table = plan.node, plan.table
    if task == COUNTS:
        for s in range(rows.shape[1]):
            work.lane[WEIGHT, s] = query.weight[at + s] if s < left else 0.0
    for v in plan.order:
        _ratio(v, node, work, task == COUNTS)
        if task == COUNTS:
            _count_pairs(v, query.counts, node, table, work)
        elif task == PAIRS and query.node[v] >= 0:
            _pair(v, query.node[v], query.values, node, table, work, left, at)
        _down(v, node, table, work.state, work.ratio, work.spare)
    if task == COUNTS:
        for v in range(len(rows) - 1):
            if node[v, PLACE] < 0:
                _count_leaf(v, query.counts, node, work, rows)


@subroutine(**OPTIONS)
def _write_leaf(v, values, column, node, table, work, rows, left, at):  # type: ignore[no-untyped-def]
    """Posterior of a leaf without a buffer: what is known, or `sum_j P(i | j) q_u(j)`."""
    d, k, start = node[v, DIM], node[v, WIDTH], node[v, START]
    place = node[node[v, PARENT], PLACE]
    for s in range(min(LANE, left)):
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
        for s in range(min(LANE, left)):
            for c in range(begin, end):
                query.values[at + s, c] = work.state[np.uint64(query.source[c]), s]
    for q in range(len(query.node)):
        v, column = query.node[q], query.column[q]
        if plan.node[v, PLACE] < 0:
            _write_leaf(v, query.values, column, plan.node, plan.table, work, rows, left, at)


@subroutine(**OPTIONS)
def _write_likelihood(lane, left, out, at):  # type: ignore[no-untyped-def]
    for s in range(min(LANE, left)):
        out[at + s] = -np.inf
        if lane[TOTAL, s] > 0.0:
            scaled = np.log(lane[TOTAL, s]) + np.log(lane[SCALE, s])
            out[at + s] = scaled + lane[BITS, s] * np.log(2.0)


@subroutine(**OPTIONS)
def _cavity(u, skip, plan, work, rows, soft, left):  # type: ignore[no-untyped-def]
    """`ratio` = what all but the child `skip` say about `u`, as a joint with `u`, largest entry 1.

    The product over the others is `b_u / m_skip`; it is taken anew where that message is so small
    that its part of the product may have been lost.
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
    if lost > 0:
        _careful_product(out, zero, u, skip, node, plan.child, table, work, rows, soft, left)
        for j in range(d):
            for s in range(rows.shape[1]):
                out[j, s] *= work.above[place + j, s]
    _rescale(out, zero, d, work.lane)


@kernel(**ONCE)
def _all_above(plan, work, rows, soft, left, nodes):  # type: ignore[no-untyped-def]
    """`above_v(i)`: the evidence that is not below `v`, joint with `v = i`; largest entry 1.

    `nodes` are those in need of it, parents first."""
    node, zero, one = plan.node, np.int64(0), np.int64(1)
    for v in nodes:
        first, d, k = node[v, PLACE], node[v, DIM], node[v, WIDTH]
        if node[v, PARENT] < 0:
            work.ratio[0] = 1.0
        else:
            _cavity(node[v, PARENT], v, plan, work, rows, soft, left)
        _mix(work.above, first, d, k, work.ratio, zero, k, one, plan.table, node[v, START])
        _rescale(work.above, first, d, work.lane)


@kernel(**ONCE)
def _write_messages(plan, work, rows, soft, left, at, query):  # type: ignore[no-untyped-def]
    """Likelihood over the states of `u` of what is on its side of the edge `u - w`.

    A state that has probability zero without any evidence gets zero in both directions."""
    node, ratio = plan.node, work.ratio
    for q in range(len(query.node)):
        u, w = query.node[q], query.column[q]
        d = node[u, DIM]
        up = node[u, PARENT] == w
        if not up:
            _cavity(u, w, plan, work, rows, soft, left)
        for i in range(d):
            p = plan.marginal[node[u, KNOWN] + i]
            weight = 0.0 if p < 1e-300 else (1.0 if up else 1.0 / p)
            for s in range(rows.shape[1]):
                part = work.state[node[u, PLACE] + i, s] if up else ratio[i, s]
                ratio[i, s] = part * weight
        _rescale(ratio, np.int64(0), d, work.lane)
        for s in range(min(LANE, left)):
            for i in range(d):
                query.messages[at + s, q, i] = ratio[i, s]


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
    for s in range(min(LANE, left)):
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
def run(task, plan, work, rows, soft, n, query):  # type: ignore[no-untyped-def]
    """Answer a query on `n` samples: one kernel for all tasks that learning needs."""
    for lane in range(len(rows)):
        at = lane * LANE
        left = n - at
        _upward(plan, work, rows[lane], soft[at:], left, False)
        _write_likelihood(work.lane, left, query.log_likelihood, at)
        if task in (POSTERIORS, PAIRS, COUNTS):
            _downward(plan, work, rows[lane], left, task, at, query)
        if task in (POSTERIORS, COUNTS):
            _write_posteriors(plan, work, rows[lane], left, at, query)
        if task == MESSAGES:
            _all_above(plan, work, rows[lane], soft[at:], left, query.source)
            _write_messages(plan, work, rows[lane], soft[at:], left, at, query)


@kernel(**OPTIONS)
def run_states(task, plan, work, rows, soft, n, query):  # type: ignore[no-untyped-def]
    """The same for states of all nodes, which no fit asks for: the best ones, or a draw."""
    for lane in range(len(rows)):
        at = lane * LANE
        left = n - at
        _upward(plan, work, rows[lane], soft[at:], left, task == BEST)
        _write_likelihood(work.lane, left, query.log_likelihood, at)
        _assign(plan, work, rows[lane], left, task, at, query)
