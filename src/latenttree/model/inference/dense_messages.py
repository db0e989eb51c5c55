"""Messages along edges, both ways, for lanes of samples: see `dense_lanes`."""

from __future__ import annotations

import numpy as np

from latenttree.engine.kernels import kernel, subroutine
from latenttree.model.inference.dense_lanes import ONCE, OPTIONS, PART
from latenttree.model.inference.dense_plan import DIM, MESSAGE, PARENT, PLACE, START, WIDTH
from latenttree.model.inference.dense_products import careful_product, rescale
from latenttree.model.inference.dense_propagation import down

NODE, UP, DOWN, DEEP = range(4)
"""Columns of `Query.visit`: a node, the place of its message to its parent and of its parent's to
it (-1: not asked for), whether messages further down need what is above it."""


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
        careful_product(out, zero, u, skip, plan, work, rows, soft, left)
        for j in range(d):
            for s in range(rows.shape[1]):
                out[j, s] *= work.above[place + j, s]
    rescale(out, zero, d, work.lane)


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
def write_messages(plan, work, rows, soft, left, at, query, wide):  # type: ignore[no-untyped-def]
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
            to = query.visit[q, DOWN]
            _write_message(work.ratio, zero, k, query.scales[q, 1], to, work, at, left, query)
        if query.visit[q, DEEP] > 0:
            work.above[first : first + d] = 1.0
            down(v, node, plan.table, work.above, work.ratio, work.spare, wide)
            rescale(work.above, first, d, work.lane)
