"""Posteriors of nodes, and of the two ends of edges, for lanes of samples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from latenttree.engine.kernels import kernel, subroutine
from latenttree.model.inference.dense_lanes import NO_INTS, OPTIONS, TOTAL, Floats, Ints, enter_ones
from latenttree.model.inference.dense_plan import DIM, PARENT, PLACE, START, WIDTH
from latenttree.model.inference.dense_propagation import (
    down,
    ratio_to_message,
    upward,
    write_likelihood,
    write_rows,
)

POSTERIORS, PAIRS = range(2)


class Query(NamedTuple):
    """What is asked, and where the answers go."""

    log_likelihood: Floats  # (n,)
    values: Floats  # (n, width) posteriors or pairs
    node: Ints  # nodes asked for; PAIRS: the column of each node's pair, or -1
    column: Ints = NO_INTS  # first column of each
    source: Ints = NO_INTS  # buffer row of each column


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


@kernel(**OPTIONS)
def answer(  # type: ignore[no-untyped-def]
    task, plan, work, rows, soft, indptr, leaf, n, wide, query
):
    """Posteriors of nodes, or pairs of their edges, of `n` samples given as in `dense_learning`."""
    ones, width, node, table = len(plan.base) > 0, rows.shape[2], plan.node, plan.table
    for lane in range(-(-n // width)):
        at = lane * width
        left = n - at
        own = rows[0 if ones else lane]
        if ones:
            enter_ones(plan, work.state, own, indptr, leaf, at, left)
        upward(plan, work, own, soft[at:], left, False, wide)
        write_likelihood(work.lane, left, plan.shift, query.log_likelihood, at)
        for v in plan.order:
            ratio_to_message(v, node, work, np.nan)
            if task == PAIRS and query.node[v] >= 0:
                _pair(v, query.node[v], query.values, node, table, work, left, at)
            down(v, node, table, work.state, work.ratio, work.spare, wide)
        if task == PAIRS:
            continue
        write_rows(work, query.source, left, at, query.values)
        for q in range(len(query.node)):
            v, column = query.node[q], query.column[q]
            if node[v, PLACE] < 0:
                _write_leaf(v, query.values, column, node, table, work, own, left, at)
