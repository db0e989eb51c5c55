"""Likelihood, expected counts, squares of posteriors and messages: what learning asks for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.engine.kernels import kernel, subroutine
from latenttree.model.inference.dense_lanes import (
    FAST,
    NO_FLOATS,
    NO_INTS,
    ONCE,
    OPTIONS,
    WEIGHT,
    WIDE,
    Floats,
    Ints,
    enter_ones,
)
from latenttree.model.inference.dense_messages import write_messages
from latenttree.model.inference.dense_plan import (
    DIM,
    INNER,
    LEAVES,
    OWN,
    PARENT,
    PLACE,
    START,
    WIDTH,
)
from latenttree.model.inference.dense_propagation import (
    down,
    ratio_to_message,
    upward,
    write_likelihood,
    write_rows,
)

LIKELIHOOD, COUNTS, SQUARES, MESSAGES = range(4)


class Query(NamedTuple):
    """What is asked, and where the answers go; arrays that a task does not use are empty."""

    log_likelihood: Floats  # (n,)
    weight: Floats = NO_FLOATS  # (n,) of the samples, for counts and squares
    counts: Floats = NO_FLOATS  # laid out as the tables; SQUARES: as the rows of the buffers
    source: Ints = NO_INTS  # COUNTS: buffer rows of posteriors
    values: Floats = np.empty((0, 0))  # (n, width) these
    visit: Ints = np.empty((0, 4), dtype=np.int64)  # (v, 4) MESSAGES: see `dense_messages.NODE`
    scales: Floats = np.empty((0, 2, 0))  # (v, 2, most states) weights of the states up and down
    by_sum: bool = False  # scaled to a sum of 1, the first state left out; not a largest entry
    messages: NDArray[np.float32] = np.empty((0, 0, 0), dtype=np.float32)  # (., states, samples)
    start: int = 0  # the first sample, in `messages`


@subroutine(**FAST)
def _count_pairs(v, counts, node, table, work, wide):  # type: ignore[no-untyped-def]
    """`counts(i, j) += sum_s w b_v(i) P(i | j) r_v(j)`."""
    d, k, at = node[v, DIM], node[v, WIDTH], node[v, START]
    weight = work.lane[WEIGHT]
    if wide is not None and d >= WIDE and k >= WIDE:
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
def _downward(plan, work, rows, left, task, at, query, wide):  # type: ignore[no-untyped-def]
    """Posteriors of all buffered nodes, and on the way the counts of their edges."""
    node, table = plan.node, plan.table
    for s in range(rows.shape[1]):
        work.lane[WEIGHT, s] = query.weight[at + s] if s < left else 0.0
    for v in plan.order:
        ratio_to_message(v, node, work, 0.0)
        if task == COUNTS:
            _count_pairs(v, query.counts, node, table, work, wide)
        down(v, node, table, work.state, work.ratio, work.spare, wide)
        if wide is not None and task == COUNTS and node[v, DIM] >= WIDE:
            _count_wide_leaves(v, query.counts, plan, work, rows)
    if task == COUNTS and len(plan.base) == 0:
        for v in range(len(rows) - 1):
            if node[v, PLACE] < 0 and node[v, WIDTH] < WIDE:
                _count_leaf(v, query.counts, node, work, rows)


@kernel(**FAST, **ONCE)
def _add_squares(work, squares):  # type: ignore[no-untyped-def]
    """`squares += sum_s w q^2` of all rows of the buffers."""
    weight = work.lane[WEIGHT]
    for r in range(len(squares)):
        q, total = work.state[r], 0.0
        for s in range(len(weight)):
            total += weight[s] * q[s] * q[s]
        squares[r] += total


@kernel(**OPTIONS)
def answer(task, plan, work, rows, soft, indptr, leaf, n, wide, query):  # type: ignore[no-untyped-def]
    """Answer on `n` samples: one kernel for all tasks of learning, which share the way up.

    Samples are codes, `rows` as `fill_rows` makes them, or ones `leaf[indptr[s]:indptr[s + 1]]`;
    then `rows` is scratch for one lane. Where `wide` is None no node has `WIDE` states, and what
    these need is not compiled."""
    ones, width = len(plan.base) > 0, rows.shape[2]
    for lane in range(-(-n // width)):
        at = lane * width
        left = n - at
        own = rows[0 if ones else lane]
        if ones:
            enter_ones(plan, work.state, own, indptr, leaf, at, left)
        upward(plan, work, own, soft[at:], left, False, wide)
        write_likelihood(work.lane, left, plan.shift, query.log_likelihood, at)
        if task in (COUNTS, SQUARES):
            _downward(plan, work, own, left, task, at, query, wide)
        if task == COUNTS:
            write_rows(work, query.source, left, at, query.values)
        if task == COUNTS and ones:
            _count_ones(plan, work, query.counts, indptr, leaf, at, left)
        if task == SQUARES:
            _add_squares(work, query.counts)
        if task == MESSAGES:
            write_messages(plan, work, own, soft[at:], left, at, query, wide)
