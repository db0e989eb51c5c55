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

from latenttree.engine.kernels import kernel
from latenttree.model.inference.dense_plan import CAREFUL, DIM, OWN, PARENT, PLACE, WIDTH, Plan

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

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
NO_FLOATS, NO_INTS = np.empty(0), np.empty(0, dtype=np.int64)

OPTIONS: dict[str, Any] = {"fastmath": {"contract"}}
FAST: dict[str, Any] = {"fastmath": {"contract", "reassoc"}}

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


def make_work(plan: Plan, lane: int, with_above: bool) -> Work:
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
        np.empty((rows if with_above else 0, lane)),
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
def enter_ones(plan, state, rows, indptr, leaf, at, left):  # type: ignore[no-untyped-def]
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
