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
from latenttree.refine import LEAST_SHARE, OPENING

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TRIAL = 6
AHEAD = 6.0
"""After so many steps a fit is given up that so many more gains like the last would not save."""
LANE = 64
"""Samples that are worked on side by side."""

FEW_CATEGORIES = 4
"""Up to so many categories each is counted by itself, side by side."""

TINY = 1e-100
"""Beliefs that sum to less are scaled up before more is multiplied in."""


class Branches(NamedTuple):
    """What comes into a region, `n` samples of `m` branches."""

    codes: NDArray[np.int32]  # (m, n), for branches that are observed nodes; -1 where unknown
    sent: NDArray[np.float32]  # (m, k, n), for branches that are messages
    is_sent: NDArray[np.bool_]  # (m,)
    weights: Floats  # (n,) how often each sample counts


class _Layout(NamedTuple):
    """Nodes of the small tree as the kernel walks them: hidden ones, parents first."""

    hidden: Ints  # (H,) nodes, root first
    parent: Ints  # (H,) place of the parent among them, -1 at the root
    branch_parent: Ints  # (m,)
    start: Ints  # (H + m,) where each table begins: hidden nodes, then branches
    rows: Ints  # (H + m,)
    k: int


def as_branches(evidence: Evidence, k: int, weights: Floats | None = None) -> Branches:
    """Evidence on the branches of a region, for many fits."""
    n, m = evidence.codes.shape
    weights = np.ones(n) if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
    sent = np.zeros((m, k, n) if evidence.soft else (m, 1, 1), dtype=np.float32)
    is_sent = np.zeros(m, dtype=np.bool_)
    for i, told in evidence.soft.items():
        sent[i], is_sent[i] = told.T, True
    return Branches(np.ascontiguousarray(evidence.codes.T, dtype=np.int32), sent, is_sent, weights)


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
    problem = _Problem(
        layout.parent,
        layout.branch_parent,
        layout.start,
        layout.rows,
        layout.k,
        target * smoothing,
        *branches,
    )
    value = _climb(theta, problem, _work(problem, len(theta)), max_steps, least_gain, bar)
    tables: list[Floats] = [np.empty(0)] * model.tree.n_nodes
    for v, begin in zip(_nodes(model, layout), layout.start.tolist(), strict=True):
        shape = model.tables[v].shape
        tables[v] = theta[begin : begin + shape[0] * shape[1]].reshape(shape)
    return model.with_tables(tables), float(value)


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


class _Problem(NamedTuple):
    """What a fit does not change: the small tree, the prior counts and the branches."""

    parent: Ints
    branch_parent: Ints
    start: Ints
    rows: Ints
    k: int
    prior: Floats
    codes: NDArray[np.int32]
    sent: NDArray[np.float32]
    is_sent: NDArray[np.bool_]
    weights: Floats


class _Work(NamedTuple):
    """Buffers of a fit: counts like the parameters, and the messages of a lane of samples."""

    counts: Floats
    up: Floats  # (hidden, k, LANE) message of a hidden node to its parent
    down: Floats  # (hidden, k, LANE) posterior, times the weight of the sample
    arrived: Floats  # (branches, k, LANE) message of a branch
    belief: Floats  # (hidden, k, LANE) likelihood of all that is behind a hidden node
    lane: Floats  # (2, LANE) totals and ratios; logarithms of what was taken out
    logs: Floats  # (n,) log-likelihood of every sample


def _work(problem: _Problem, size: int) -> _Work:
    hidden, branches = len(problem.parent), len(problem.branch_parent)
    up, down, belief = (np.empty((hidden, problem.k, LANE)) for _ in range(3))
    arrived = np.empty((branches, problem.k, LANE))
    logs = np.empty(len(problem.weights))
    return _Work(np.empty(size), up, down, arrived, belief, np.empty((2, LANE)), logs)


@njit(cache=True, nogil=True)
def _climb(theta, problem, work, max_steps, least_gain, bar):  # type: ignore[no-untyped-def]
    """Squared-extrapolation EM, in place on `theta`; the objective reached, never lower than
    before."""
    one, two, far = np.empty_like(theta), np.empty_like(theta), np.empty_like(theta)
    value = _expect(theta, problem, work)
    taken = 0
    while taken < max_steps:
        before = value
        _maximise(problem, work.counts, one)
        value = _expect(one, problem, work)
        _maximise(problem, work.counts, two)
        _extrapolate(theta, one, two, far)
        _normalise(far, problem)
        reached = _expect(far, problem, work)
        taken += 2
        if reached >= value:
            theta[:] = far
            value = reached
        else:
            theta[:] = two
            value = _expect(theta, problem, work)
            taken += 1
        gain = value - before
        if gain < least_gain or (taken >= TRIAL and value + AHEAD * gain < bar):
            break
    return value


@njit(cache=True, nogil=True)
def _extrapolate(theta, one, two, out):  # type: ignore[no-untyped-def]
    """As `refine` does from three models in a row, kept positive; not yet normalised."""
    step = 0.0
    bend = 0.0
    for i in range(len(theta)):
        step += (one[i] - theta[i]) ** 2
        bend += (two[i] - 2 * one[i] + theta[i]) ** 2
    stride = max(1.0, np.sqrt(step / max(bend, 1e-300)))
    for i in range(len(theta)):
        x = theta[i] + 2 * stride * (one[i] - theta[i])
        x += stride * stride * (two[i] - 2 * one[i] + theta[i])
        out[i] = max(x, LEAST_SHARE * two[i])


@njit(cache=True, nogil=True)
def _maximise(problem, counts, out):  # type: ignore[no-untyped-def]
    for i in range(len(out)):
        out[i] = counts[i] + problem.prior[i]
    _normalise(out, problem)


@njit(cache=True, nogil=True)
def _normalise(theta, problem):  # type: ignore[no-untyped-def]
    """Columns of all tables to sum one; the root's table has a single column."""
    start, rows = problem.start, problem.rows
    for t in range(len(start)):
        width = 1 if t == 0 else problem.k
        for j in range(width):
            total = 0.0
            for i in range(rows[t]):
                total += theta[start[t] + i * width + j]
            for i in range(rows[t]):
                at = start[t] + i * width + j
                theta[at] = theta[at] / total if total > 0 else 1.0 / rows[t]


@njit(cache=True, nogil=True)
def _expect(theta, problem, work):  # type: ignore[no-untyped-def]
    """Expected counts, written to `work.counts`; log-likelihood plus `prior . log theta`.

    Samples go by lanes, side by side. O(n k^2 (hidden nodes + messages)); a sample of probability
    zero is left out."""
    value = 0.0
    for i in range(len(theta)):
        work.counts[i] = 0.0
        if problem.prior[i] > 0.0:
            value += problem.prior[i] * np.log(max(theta[i], 1e-300))
    n = len(problem.weights)
    for low in range(0, n, LANE):
        size = min(LANE, n - low)
        _arrive(theta, low, size, problem, work)
        _ascend(theta, size, problem, work)
        value += _close(theta, low, size, problem, work)
        _descend(theta, size, problem, work)
        _count_branches(theta, low, size, problem, work)
    return value


@njit(cache=True, nogil=True)
def _take_in(belief, message, k, size, lane):  # type: ignore[no-untyped-def]
    """`belief *= message`, `(k, LANE)`; samples that become tiny are scaled to a sum of one."""
    total, taken = lane[0], lane[1]
    for j in range(k):
        to, own = belief[j], message[j]
        for s in range(size):
            to[s] *= own[s]
            total[s] = to[s] if j == 0 else total[s] + to[s]
    least = 1.0
    for s in range(size):
        least = min(least, total[s])
    if least >= TINY:
        return
    for s in range(size):
        if 0.0 < total[s] < TINY:
            taken[s] += np.log(total[s])
            for j in range(k):
                belief[j, s] /= total[s]


@njit(cache=True, nogil=True)
def _mix(theta, begin, rows, k, values, size, out):  # type: ignore[no-untyped-def]
    """`out[j] = sum_i theta[i, j] values[i]` for a table `(rows, k)` that begins at `begin`."""
    for j in range(k):
        to = out[j]
        for i in range(rows):
            p, own = theta[begin + i * k + j], values[i]
            for s in range(size):
                to[s] = p * own[s] if i == 0 else to[s] + p * own[s]


@njit(cache=True, nogil=True)
def _arrive(theta, low, size, problem, work):  # type: ignore[no-untyped-def]
    """Messages of the branches of samples `low` on, multiplied into `belief`."""
    n_hidden, k = len(problem.parent), problem.k
    work.belief[:] = 1.0
    work.lane[1, :] = 0.0
    for b in range(len(problem.branch_parent)):
        begin, arrived = problem.start[n_hidden + b], work.arrived[b]
        if problem.is_sent[b]:
            for j in range(k):
                to = arrived[j]
                for i in range(k):
                    p, own = theta[begin + i * k + j], problem.sent[b, i, low : low + size]
                    for s in range(size):
                        to[s] = p * own[s] if i == 0 else to[s] + p * own[s]
        else:
            codes = problem.codes[b, low : low + size]
            for j in range(k):
                to = arrived[j]
                for s in range(size):
                    to[s] = theta[begin + codes[s] * k + j] if codes[s] >= 0 else 1.0
        _take_in(work.belief[problem.branch_parent[b]], arrived, k, size, work.lane)


@njit(cache=True, nogil=True)
def _ascend(theta, size, problem, work):  # type: ignore[no-untyped-def]
    """From the branches to the root."""
    k = problem.k
    for h in range(len(problem.parent) - 1, 0, -1):
        _mix(theta, problem.start[h], k, k, work.belief[h], size, work.up[h])
        _take_in(work.belief[problem.parent[h]], work.up[h], k, size, work.lane)


@njit(cache=True, nogil=True)
def _close(theta, low, size, problem, work):  # type: ignore[no-untyped-def]
    """Posteriors of the root, times weights, to `down[0]`; the weighted log-likelihood."""
    k, total, value = problem.k, work.lane[0], 0.0
    for j in range(k):
        to, own, p = work.down[0, j], work.belief[0, j], theta[j]
        for s in range(size):
            to[s] = p * own[s]
            total[s] = to[s] if j == 0 else total[s] + to[s]
    weights = problem.weights[low : low + size]
    for s in range(size):
        possible = total[s] > 0.0
        found = np.log(total[s]) + work.lane[1, s] if possible else 0.0
        value += weights[s] * found
        work.logs[low + s] = found
        total[s] = weights[s] / total[s] if possible else 0.0
    for j in range(k):
        to = work.down[0, j]
        for s in range(size):
            to[s] *= total[s]
    return value


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _sum(values, size):  # type: ignore[no-untyped-def]
    total = 0.0
    for s in range(size):
        total += values[s]
    return total


@njit(cache=True, nogil=True)
def _ratio(above, below, size, out):  # type: ignore[no-untyped-def]
    """`out = above / below`, 0 / 0 = 0."""
    for s in range(size):
        out[s] = above[s] / below[s] if below[s] > 0.0 else 0.0


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _descend(theta, size, problem, work):  # type: ignore[no-untyped-def]
    """From the root to all hidden nodes: posteriors, and counts of their tables."""
    k, down, counts, r = problem.k, work.down, work.counts, work.lane[0]
    for j in range(k):
        counts[j] += _sum(down[0, j], size)
    for h in range(1, len(problem.parent)):
        begin = problem.start[h]
        for j in range(k):
            _ratio(down[problem.parent[h], j], work.up[h, j], size, r)
            for i in range(k):
                p, own, to, total = theta[begin + i * k + j], work.belief[h, i], down[h, i], 0.0
                for s in range(size):
                    x = p * own[s] * r[s]
                    total += x
                    to[s] = x if j == 0 else to[s] + x
                counts[begin + i * k + j] += total


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _count_branches(theta, low, size, problem, work):  # type: ignore[no-untyped-def]
    """Counts of the tables of the branches, given the posteriors of the hidden nodes."""
    n_hidden, k, counts, r = len(problem.parent), problem.k, work.counts, work.lane[0]
    for b in range(len(problem.branch_parent)):
        begin, h = problem.start[n_hidden + b], problem.branch_parent[b]
        codes = problem.codes[b, low : low + size]
        for j in range(k):
            own = work.down[h, j]
            if problem.is_sent[b]:
                _ratio(own, work.arrived[b, j], size, r)
                for i in range(k):
                    sent, total = problem.sent[b, i, low : low + size], 0.0
                    for s in range(size):
                        total += sent[s] * r[s]
                    counts[begin + i * k + j] += theta[begin + i * k + j] * total
            elif problem.rows[n_hidden + b] <= FEW_CATEGORIES:
                for c in range(problem.rows[n_hidden + b]):
                    total = 0.0
                    for s in range(size):
                        total += own[s] if codes[s] == c else 0.0
                    counts[begin + c * k + j] += total
            else:
                for s in range(size):
                    if codes[s] >= 0:
                        counts[begin + codes[s] * k + j] += own[s]
