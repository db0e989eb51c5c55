"""The way up and the way down the tree, for lanes of samples: see `dense_lanes`."""

from __future__ import annotations

import numpy as np

from latenttree.engine.kernels import kernel, subroutine
from latenttree.model.inference.dense_lanes import BITS, BLOCK, ONCE, OPTIONS, SCALE, TOTAL, WIDE
from latenttree.model.inference.dense_plan import DIM, MESSAGE, OWN, PARENT, PLACE, START, WIDTH
from latenttree.model.inference.dense_products import largest, matrix_product, mix, product


@kernel(**ONCE)
def _send(v, maximise, node, table, state, message, rows, wide):  # type: ignore[no-untyped-def]
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
        largest(message, first, k, one, state, place, d, k, table, start)
    elif wide is not None and d >= WIDE and k >= WIDE:
        matrix_product(message, first, k, state, place, d, k, table, start)
    else:
        mix(message, first, k, one, state, place, d, k, table, start)


@kernel(**ONCE)
def upward(plan, work, rows, soft, left, maximise, wide):  # type: ignore[no-untyped-def]
    """All `b` and `m`, from the leaves to the root, and the root's total."""
    node, table, order, child = plan.node, plan.table, plan.order, plan.child
    state, message = work.state, work.message
    for s in range(rows.shape[1]):
        work.lane[SCALE, s] = 1.0
        work.lane[BITS, s] = 0.0
    for q in range(len(order) - 1, -1, -1):
        u = order[q]
        product(u, node, child, table, state, plan, work, rows, soft, left, wide)
        if q > 0:
            _send(u, maximise, node, table, state, message, rows, wide)
    place, d, start = node[order[0], PLACE], node[order[0], DIM], node[order[0], START]
    to, one = np.int64(TOTAL), np.int64(1)
    if maximise:
        largest(work.lane, to, one, one, work.state, place, d, one, table, start)
    else:
        mix(work.lane, to, one, one, work.state, place, d, one, table, start)


@subroutine(**OPTIONS)
def down(v, node, table, state, ratio, spare, wide):  # type: ignore[no-untyped-def]
    """`state(i) *= sum_j P(i | j) ratio(j)`: `b_v` becomes `q_v`, given the ratio `r_v`."""
    k, d, place = node[v, WIDTH], node[v, DIM], node[v, PLACE]
    zero, one = np.int64(0), np.int64(1)
    if wide is not None and d >= WIDE and k >= WIDE:
        matrix_product(spare, zero, d, ratio, zero, k, one, table, node[v, START])
    else:
        mix(spare, zero, d, k, ratio, zero, k, one, table, node[v, START])
    for i in range(d):
        for s in range(state.shape[1]):
            state[place + i, s] *= spare[i, s]


@subroutine(**OPTIONS)
def ratio_to_message(v, node, work, impossible):  # type: ignore[no-untyped-def]
    """`r_v(j) = q_u(j) / m_v(j)`; where the message is zero so is the posterior.

    At the root 1 / total; `impossible` where a sample is that, from where it spreads."""
    state, message, ratio, lane = work.state, work.message, work.ratio, work.lane
    if node[v, PARENT] < 0:
        for s in range(ratio.shape[1]):
            total = lane[TOTAL, s]
            ratio[0, s] = 1.0 / total if total > 0.0 else impossible
        return
    place, sent = node[node[v, PARENT], PLACE], node[v, MESSAGE]
    for j in range(node[v, WIDTH]):
        for s in range(ratio.shape[1]):
            m = message[sent + j, s]
            ratio[j, s] = state[place + j, s] / (m if m > 0.0 else 1.0)


@subroutine(**OPTIONS)
def write_likelihood(lane, left, shift, out, at):  # type: ignore[no-untyped-def]
    """`log P(evidence)` of every sample of a lane to `out[at:]`."""
    for s in range(min(lane.shape[1], left)):
        out[at + s] = -np.inf
        if lane[TOTAL, s] > 0.0:
            scaled = np.log(lane[TOTAL, s]) + np.log(lane[SCALE, s])
            out[at + s] = scaled + lane[BITS, s] * np.log(2.0) + shift


@kernel(**ONCE)
def write_rows(work, source, left, at, values):  # type: ignore[no-untyped-def]
    """Rows `source` of the posteriors, a block that stays in the cache at a time."""
    for begin in range(0, len(source), BLOCK):
        end = min(begin + BLOCK, len(source))
        for s in range(min(work.lane.shape[1], left)):
            for c in range(begin, end):
                values[at + s, c] = work.state[np.uint64(source[c]), s]
