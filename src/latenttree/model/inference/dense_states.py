"""States of all nodes, for lanes of samples: the best ones, or a draw."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.engine.kernels import kernel, subroutine
from latenttree.model.inference.dense_lanes import NO_FLOATS, ONCE, OPTIONS, TOTAL, Floats, Ints
from latenttree.model.inference.dense_plan import DIM, PARENT, PLACE, START, WIDTH
from latenttree.model.inference.dense_propagation import upward, write_likelihood

BEST, DRAW = range(2)


class Query(NamedTuple):
    """What is asked, and where the answers go."""

    log_likelihood: Floats  # (n,)
    states: NDArray[np.int32]  # (n, n_nodes)
    node: Ints  # all nodes, parents first
    uniform: Floats = np.empty((0, 0))  # (n, n_nodes) for draws
    cumulative: Floats = NO_FLOATS  # tables summed down their columns, laid out as the tables


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
def answer(task, plan, work, rows, soft, indptr, leaf, n, wide, query):  # type: ignore[no-untyped-def]
    """States of all nodes of `n` samples: the best ones, or a draw. Samples are codes."""
    width = rows.shape[2]
    for lane in range(len(rows)):
        at = lane * width
        left = n - at
        upward(plan, work, rows[lane], soft[at:], left, task == BEST, wide)
        write_likelihood(work.lane, left, plan.shift, query.log_likelihood, at)
        _assign(plan, work, rows[lane], left, task, at, query)
