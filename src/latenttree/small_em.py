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
TINY = 1e-100
"""Beliefs that sum to less are scaled up before more is multiplied in."""


class Branches(NamedTuple):
    """What comes into a region, `n` samples of `m` branches."""

    codes: NDArray[np.int32]  # (n, m), for branches that are observed nodes; -1 where unknown
    sent: NDArray[np.float32]  # (n, m, k), for branches that are messages
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
    sent = np.zeros((n, m, k if evidence.soft else 1), dtype=np.float32)
    is_sent = np.zeros(m, dtype=np.bool_)
    for i, told in evidence.soft.items():
        sent[:, i], is_sent[i] = told, True
    return Branches(np.ascontiguousarray(evidence.codes, dtype=np.int32), sent, is_sent, weights)


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
    """Buffers of a fit: counts like the parameters, and one sample's messages."""

    counts: Floats
    up: Floats  # (hidden, k) message of a hidden node to its parent
    down: Floats  # (hidden, k) posterior
    arrived: Floats  # (branches, k) message of a branch
    belief: Floats  # (hidden, k) likelihood of all that is behind a hidden node


def _work(problem: _Problem, size: int) -> _Work:
    hidden, branches = len(problem.parent), len(problem.branch_parent)
    up, down, belief = (np.empty((hidden, problem.k)) for _ in range(3))
    return _Work(np.empty(size), up, down, np.empty((branches, problem.k)), belief)


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

    O(n k^2 (hidden nodes + messages)); a sample of probability zero is left out."""
    value = 0.0
    for i in range(len(theta)):
        work.counts[i] = 0.0
        if problem.prior[i] > 0.0:
            value += problem.prior[i] * np.log(max(theta[i], 1e-300))
    for s in range(len(problem.codes)):
        log_sample = _arrive(theta, s, problem, work) + _ascend(theta, problem, work)
        if log_sample > -np.inf:
            value += problem.weights[s] * log_sample
            for j in range(problem.k):
                work.down[0, j] *= problem.weights[s]
            _descend(theta, problem, work)
            _count_branches(theta, s, problem, work)
    return value


@njit(cache=True, nogil=True)
def _arrive(theta, s, problem, work):  # type: ignore[no-untyped-def]
    """Messages of the branches of sample `s`, multiplied into `belief`; the logarithm of what
    was divided out on the way."""
    n_hidden, k, belief = len(problem.parent), problem.k, work.belief
    log_scale = 0.0
    for h in range(n_hidden):
        for j in range(k):
            belief[h, j] = 1.0
    for b in range(len(problem.branch_parent)):
        begin = problem.start[n_hidden + b]
        code = problem.codes[s, b]
        if problem.is_sent[b]:
            for j in range(k):
                total = 0.0
                for i in range(k):
                    total += theta[begin + i * k + j] * problem.sent[s, b, i]
                work.arrived[b, j] = total
        elif code >= 0:
            for j in range(k):
                work.arrived[b, j] = theta[begin + code * k + j]
        else:
            continue
        h = problem.branch_parent[b]
        total = 0.0
        for j in range(k):
            belief[h, j] *= work.arrived[b, j]
            total += belief[h, j]
        if 0.0 < total < TINY:
            log_scale += np.log(total)
            for j in range(k):
                belief[h, j] /= total
    return log_scale


@njit(cache=True, nogil=True)
def _ascend(theta, problem, work):  # type: ignore[no-untyped-def]
    """From the branches to the root, whose posterior goes to `down[0]`; the log-likelihood."""
    k, belief = problem.k, work.belief
    log_scale = 0.0
    for h in range(len(problem.parent) - 1, 0, -1):
        top = 0.0
        for i in range(k):
            top += belief[h, i]
        if top > 0.0:
            log_scale += np.log(top)
            for i in range(k):
                belief[h, i] /= top
        for j in range(k):
            total = 0.0
            for i in range(k):
                total += theta[problem.start[h] + i * k + j] * belief[h, i]
            work.up[h, j] = total
            belief[problem.parent[h], j] *= total
    scale = 0.0
    for j in range(k):
        work.down[0, j] = theta[j] * belief[0, j]
        scale += work.down[0, j]
    if scale <= 0.0:
        return -np.inf
    for j in range(k):
        work.down[0, j] /= scale
    return log_scale + np.log(scale)


@njit(cache=True, nogil=True)
def _descend(theta, problem, work):  # type: ignore[no-untyped-def]
    """From the root to all hidden nodes: posteriors, and counts of their tables."""
    k, down, counts = problem.k, work.down, work.counts
    for j in range(k):
        counts[j] += down[0, j]
    for h in range(1, len(problem.parent)):
        begin = problem.start[h]
        for i in range(k):
            down[h, i] = 0.0
        for j in range(k):
            if work.up[h, j] > 0.0:
                r = down[problem.parent[h], j] / work.up[h, j]
                for i in range(k):
                    x = theta[begin + i * k + j] * work.belief[h, i] * r
                    counts[begin + i * k + j] += x
                    down[h, i] += x


@njit(cache=True, nogil=True)
def _count_branches(theta, s, problem, work):  # type: ignore[no-untyped-def]
    """Counts of the tables of the branches, given the posteriors of the hidden nodes."""
    n_hidden, k, counts = len(problem.parent), problem.k, work.counts
    for b in range(len(problem.branch_parent)):
        begin = problem.start[n_hidden + b]
        h, code = problem.branch_parent[b], problem.codes[s, b]
        if problem.is_sent[b]:
            for j in range(k):
                if work.arrived[b, j] > 0.0:
                    r = work.down[h, j] / work.arrived[b, j]
                    for i in range(k):
                        x = theta[begin + i * k + j] * problem.sent[s, b, i] * r
                        counts[begin + i * k + j] += x
        elif code >= 0:
            for j in range(k):
                counts[begin + code * k + j] += work.down[h, j]
