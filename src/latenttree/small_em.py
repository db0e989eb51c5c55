"""EM over a model of a few nodes, all in one kernel: thousands of small fits cost milliseconds.

The same algorithm as `refine`, for a tree whose leaves are branches of a larger one: a branch is a
column of codes, or a message over the states of the node that sends it. Parameters live in one flat
vector: `P(root)`, then `P(child | parent)` of every other hidden node, then of every branch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from latenttree.inference import Evidence
from latenttree.model import TreeModel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

OPENING = 1e-3
LEAST_SHARE = 0.1
TRIAL = 6
AHEAD = 6.0
"""After so many steps a fit is given up that so many more gains like the last would not save."""
TINY = 1e-100
"""Beliefs that sum to less are scaled up before more is multiplied in."""


class Branches(NamedTuple):
    """What comes into a region, `n` samples of `m` branches."""

    codes: NDArray[np.int32]  # (n, m), for branches that are observed nodes; -1 where unknown
    sent: NDArray[np.float32]  # (n, m, k), for branches that are messages
    is_sent: NDArray[np.bool_]  # (m,)


class _Layout(NamedTuple):
    """Nodes of the small tree as the kernel walks them: hidden ones, parents first."""

    hidden: Ints  # (H,) nodes, root first
    parent: Ints  # (H,) place of the parent among them, -1 at the root
    branch_parent: Ints  # (m,)
    start: Ints  # (H + m,) where each table begins: hidden nodes, then branches
    rows: Ints  # (H + m,)
    k: int


def as_branches(evidence: Evidence, k: int) -> Branches:
    """Evidence on the branches of a region, for many fits."""
    n, m = evidence.codes.shape
    sent = np.zeros((n, m, k if evidence.soft else 1), dtype=np.float32)
    is_sent = np.zeros(m, dtype=np.bool_)
    for i, weights in evidence.soft.items():
        sent[:, i], is_sent[i] = weights, True
    return Branches(np.ascontiguousarray(evidence.codes, dtype=np.int32), sent, is_sent)


def fit_small(
    model: TreeModel,
    branches: Branches,
    smoothing: float,
    max_steps: int,
    least_gain: float,
    bar: float = -np.inf,
) -> tuple[TreeModel, float]:
    """EM from `model` until two steps gain less than `least_gain`, or too little to reach `bar`;
    the model and its objective."""
    layout = _layout(model)
    target = _flat([_spread(model, v) for v in _nodes(model, layout)])
    theta = _flat([model.tables[v] for v in _nodes(model, layout)])
    theta = (1 - OPENING) * theta + OPENING * target
    value = _climb(
        theta,
        target * smoothing,
        layout.parent,
        layout.branch_parent,
        layout.start,
        layout.rows,
        layout.k,
        branches.codes,
        branches.sent,
        branches.is_sent,
        max_steps,
        least_gain,
        bar,
    )
    tables: list[Floats] = [np.empty(0)] * model.tree.n_nodes
    for v, begin in zip(_nodes(model, layout), layout.start.tolist(), strict=True):
        shape = model.tables[v].shape
        tables[v] = theta[begin : begin + shape[0] * shape[1]].reshape(shape)
    return TreeModel(model.tree, model.root, tuple(tables)), float(value)


def _layout(model: TreeModel) -> _Layout:
    m = model.tree.n_observed
    hidden = np.array([v for v in model.order.tolist() if v >= m], dtype=np.int64)
    place = {v: i for i, v in enumerate(hidden.tolist())}
    parent = np.array([place.get(int(model.parents[v]), -1) for v in hidden], dtype=np.int64)
    branch_parent = np.array([place[int(model.parents[i])] for i in range(m)], dtype=np.int64)
    nodes = [*hidden.tolist(), *range(m)]
    sizes = np.array([model.tables[v].size for v in nodes], dtype=np.int64)
    rows = np.array([len(model.tables[v]) for v in nodes], dtype=np.int64)
    k = int(model.dims[hidden[0]])
    return _Layout(hidden, parent, branch_parent, np.cumsum(sizes) - sizes, rows, k)


def _nodes(model: TreeModel, layout: _Layout) -> list[int]:
    return [*layout.hidden.tolist(), *range(model.tree.n_observed)]


def _spread(model: TreeModel, v: int) -> Floats:
    """Where pseudo-samples go: as a branch's marginal, evenly over the states of a hidden node."""
    d, width = model.tables[v].shape
    column = model.marginals[v] if v < model.tree.n_observed else np.full(d, 1 / d)
    return np.repeat(column[:, None], width, axis=1)


def _flat(tables: list[Floats]) -> Floats:
    return np.concatenate([t.ravel() for t in tables])


@njit(cache=True, nogil=True)
def _climb(  # type: ignore[no-untyped-def]
    theta,
    prior,
    parent,
    branch_parent,
    start,
    rows,
    k,
    codes,
    sent,
    is_sent,
    max_steps,
    least_gain,
    bar,
):
    """Squared-extrapolation EM, in place on `theta`; the objective reached, never lower than
    before."""
    size = len(theta)
    counts = np.empty(size)
    one, two, far = np.empty(size), np.empty(size), np.empty(size)
    n_hidden, m = len(parent), len(branch_parent)
    up, down, arrived = np.empty((n_hidden, k)), np.empty((n_hidden, k)), np.empty((m, k))
    belief = np.empty((n_hidden, k))
    value = _expect(
        theta, prior, parent, branch_parent, start, rows, k, codes, sent, is_sent, counts,
        up, down, arrived, belief,
    )  # fmt: skip
    taken = 0
    while taken < max_steps:
        before = value
        _maximise(counts, prior, start, rows, k, one)
        value = _expect(
            one, prior, parent, branch_parent, start, rows, k, codes, sent, is_sent, counts,
            up, down, arrived, belief,
        )  # fmt: skip
        _maximise(counts, prior, start, rows, k, two)
        step = 0.0
        bend = 0.0
        for i in range(size):
            step += (one[i] - theta[i]) ** 2
            bend += (two[i] - 2 * one[i] + theta[i]) ** 2
        stride = max(1.0, np.sqrt(step / max(bend, 1e-300)))
        for i in range(size):
            x = theta[i] + 2 * stride * (one[i] - theta[i])
            x += stride * stride * (two[i] - 2 * one[i] + theta[i])
            far[i] = max(x, LEAST_SHARE * two[i])
        _normalise(far, start, rows, k)
        reached = _expect(
            far, prior, parent, branch_parent, start, rows, k, codes, sent, is_sent, counts,
            up, down, arrived, belief,
        )  # fmt: skip
        taken += 2
        if reached >= value:
            theta[:] = far
            value = reached
        else:
            theta[:] = two
            value = _expect(
                theta, prior, parent, branch_parent, start, rows, k, codes, sent, is_sent, counts,
                up, down, arrived, belief,
            )  # fmt: skip
            taken += 1
        gain = value - before
        if gain < least_gain or (taken >= TRIAL and value + AHEAD * gain < bar):
            break
    return value


@njit(cache=True, nogil=True)
def _maximise(counts, prior, start, rows, k, out):  # type: ignore[no-untyped-def]
    for i in range(len(out)):
        out[i] = counts[i] + prior[i]
    _normalise(out, start, rows, k)


@njit(cache=True, nogil=True)
def _normalise(theta, start, rows, k):  # type: ignore[no-untyped-def]
    """Columns of all tables to sum one; the root's table has a single column."""
    for t in range(len(start)):
        width = 1 if t == 0 else k
        for j in range(width):
            total = 0.0
            for i in range(rows[t]):
                total += theta[start[t] + i * width + j]
            for i in range(rows[t]):
                at = start[t] + i * width + j
                theta[at] = theta[at] / total if total > 0 else 1.0 / rows[t]


@njit(cache=True, nogil=True)
def _expect(  # type: ignore[no-untyped-def]
    theta, prior, parent, branch_parent, start, rows, k, codes, sent, is_sent, counts,
    up, down, arrived, belief,
):  # fmt: skip
    """Expected counts, written to `counts`; log-likelihood plus `prior . log theta`.

    O(n k^2 (hidden nodes + messages)); a sample of probability zero is left out."""
    n_hidden, m = len(parent), len(branch_parent)
    value = 0.0
    for i in range(len(theta)):
        counts[i] = 0.0
        if prior[i] > 0.0:
            value += prior[i] * np.log(max(theta[i], 1e-300))
    for s in range(len(codes)):
        log_sample = 0.0
        for h in range(n_hidden):
            for j in range(k):
                belief[h, j] = 1.0
        for b in range(m):
            begin = start[n_hidden + b]
            h = branch_parent[b]
            if is_sent[b]:
                for j in range(k):
                    total = 0.0
                    for i in range(k):
                        total += theta[begin + i * k + j] * sent[s, b, i]
                    arrived[b, j] = total
            elif codes[s, b] >= 0:
                begin += codes[s, b] * k
                for j in range(k):
                    arrived[b, j] = theta[begin + j]
            else:
                continue
            total = 0.0
            for j in range(k):
                belief[h, j] *= arrived[b, j]
                total += belief[h, j]
            if 0.0 < total < TINY:
                log_sample += np.log(total)
                for j in range(k):
                    belief[h, j] /= total
        for h in range(n_hidden - 1, 0, -1):
            top = 0.0
            for i in range(k):
                top += belief[h, i]
            if top > 0.0:
                log_sample += np.log(top)
                for i in range(k):
                    belief[h, i] /= top
            for j in range(k):
                total = 0.0
                for i in range(k):
                    total += theta[start[h] + i * k + j] * belief[h, i]
                up[h, j] = total
                belief[parent[h], j] *= total
        scale = 0.0
        for j in range(k):
            down[0, j] = theta[j] * belief[0, j]
            scale += down[0, j]
        if scale <= 0.0:
            continue
        value += log_sample + np.log(scale)
        for j in range(k):
            down[0, j] /= scale
            counts[j] += down[0, j]
        for h in range(1, n_hidden):
            for i in range(k):
                down[h, i] = 0.0
            for j in range(k):
                if up[h, j] > 0.0:
                    r = down[parent[h], j] / up[h, j]
                    for i in range(k):
                        x = theta[start[h] + i * k + j] * belief[h, i] * r
                        counts[start[h] + i * k + j] += x
                        down[h, i] += x
        for b in range(m):
            begin = start[n_hidden + b]
            h = branch_parent[b]
            if is_sent[b]:
                for j in range(k):
                    if arrived[b, j] > 0.0:
                        r = down[h, j] / arrived[b, j]
                        for i in range(k):
                            x = theta[begin + i * k + j] * sent[s, b, i] * r
                            counts[begin + i * k + j] += x
            elif codes[s, b] >= 0:
                begin += codes[s, b] * k
                for j in range(k):
                    counts[begin + j] += down[h, j]
    return value
