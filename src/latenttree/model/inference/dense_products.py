"""Products of messages, with evidence, at a node; and sums over its states: lanes of samples."""

from __future__ import annotations

import numpy as np

from latenttree.engine.kernels import kernel, subroutine
from latenttree.model.inference.dense_lanes import BITS, LANE, ONCE, OPTIONS, PART, SCALE, WIDE
from latenttree.model.inference.dense_plan import (
    CAREFUL,
    DIM,
    END,
    INNER,
    LEAVES,
    MESSAGE,
    OWN,
    PLACE,
    RESCALE,
    SOFT,
    START,
)


@subroutine(**OPTIONS)
def own_evidence(out, first, u, logs, node, rows, soft, left):  # type: ignore[no-untyped-def]
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
def rescale(out, first, d, lane):  # type: ignore[no-untyped-def]
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
def careful_product(out, first, u, skip, plan, work, rows, soft, left):  # type: ignore[no-untyped-def]
    """`b_u` without the child `skip` (-1: none), whatever the range of the factors, by logarithms;
    largest entry 1. Leaves that are ones have been entered; then no child is skipped."""
    node, d, known = plan.node, plan.node[u, DIM], plan.node[u, CAREFUL] > 0
    if len(plan.base) == 0:
        out[first : first + d] = 0.0
    own_evidence(out, first, u, d > 0, node, rows, soft, left)
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
def product(u, node, child, table, out, plan, work, rows, soft, left, wide):  # type: ignore[no-untyped-def]
    """`b_u`: the evidence at `u` times its children's messages. Leaves that are ones have been
    entered."""
    d, first, inner, entered = node[u, DIM], node[u, PLACE], node[u, INNER], len(plan.base) > 0
    if node[u, CAREFUL] > 0:
        careful_product(out, first, u, np.int64(-1), plan, work, rows, soft, left)
        return
    fresh = not (entered or node[u, SOFT] >= 0 or node[u, OWN] >= 0)
    if not fresh:
        if not entered:
            out[first : first + d] = 1.0
        own_evidence(out, first, u, node[u, CAREFUL] > 0, node, rows, soft, left)
    if wide is not None and d >= WIDE and node[u, LEAVES] < inner:
        _times_wide_leaves(out, first, u, fresh, node, child, table, rows, work.turned)
        fresh = False
    for q in range(node[u, LEAVES], inner if d < WIDE else 0, 3):
        _times_leaves(out, first, d, fresh, q, inner, node, child, table, rows)
        fresh = False
    for q in range(inner, node[u, END], 3):
        _times_messages(out, first, d, fresh, q, node[u, END], node, child, work.message)
        fresh = False
    if node[u, RESCALE] > 0:
        rescale(out, first, d, work.lane)


@subroutine(**OPTIONS)
def matrix_product(out, to, n_out, source, first, count, stride, table, at):  # type: ignore[no-untyped-def]
    """The same as `_mix`, for many states."""
    cpt, rows = table[at : at + n_out * count], source[first : first + count]
    if stride == 1:
        np.dot(cpt.reshape(n_out, count), rows, out[to : to + n_out])
    else:
        np.dot(cpt.reshape(count, n_out).T, rows, out[to : to + n_out])


@subroutine(**OPTIONS)
def mix(out, to, n_out, step, source, first, count, stride, table, at):  # type: ignore[no-untyped-def]
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
def largest(out, to, n_out, step, source, first, count, stride, table, at):  # type: ignore[no-untyped-def]
    """As `_mix`, with the maximum for the sum."""
    for j in range(n_out):
        for s in range(out.shape[1]):
            out[to + j, s] = 0.0
        for c in range(count):
            t = table[at + j * step + c * stride]
            for s in range(out.shape[1]):
                out[to + j, s] = max(out[to + j, s], t * source[first + c, s])
