"""Queries: likelihood, posteriors, pairs, most probable states, draws, expected counts, messages.

Samples are answered in fixed pieces, whatever the number of threads, and sums over samples add the
pieces in order: answers do not depend on `n_jobs`.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latenttree.engine import blocks, parallel
from latenttree.errors import DataError
from latenttree.model.inference import kernels
from latenttree.model.inference.evidence import (
    Evidence,
    check_codes,
    dense_codes,
    stacked_soft,
    unknown_code,
)
from latenttree.model.inference.kernels import LANE, Query
from latenttree.model.inference.plan import DIM, PLACE, START, WIDTH, Plan, make_plan
from latenttree.model.inference.sparse_forms import SparsePass, sparse_rows, usable
from latenttree.model.inference.sparse_messages import SparseMessages
from latenttree.model.tree_model import TreeModel

Floats = NDArray[np.float64]

PIECE_CODES = 1 << 18
"""Codes in a piece: its table rows stay in the cache between being written and read."""

COUNT_BYTES = 1 << 28
"""Memory for partial counts: large tables are counted in fewer pieces, 4 at least."""


@dataclass(frozen=True, eq=False)
class Posteriors:
    """Posterior distributions of nodes, sample by sample.

    Attributes
    ----------
    nodes : (m,) the nodes.
    values : for each node `(n, dims[v])`; views of `array`. NaN where the evidence of a sample has
        probability zero.
    array : (n, sum of dims) all of them side by side.
    log_likelihood : (n,) of the evidence; -inf where it has probability zero.
    """

    nodes: NDArray[np.int64]
    values: tuple[Floats, ...]
    array: Floats
    log_likelihood: Floats
    n_observed: int

    @cached_property
    def hidden(self) -> Floats:
        """(n, ...) the columns of the hidden nodes among `nodes`."""
        if (self.nodes >= self.n_observed).all():
            return self.array
        picked = [x for v, x in zip(self.nodes, self.values, strict=True) if v >= self.n_observed]
        return np.concatenate([self.array[:, :0], *picked], axis=1)


def log_likelihood(model: TreeModel, evidence: Evidence, n_jobs: int = 1) -> Floats:
    """`log P(evidence)` of every sample, `(n,)`; -inf where it is impossible."""
    sparse = _sparse_pass(model, evidence)
    if sparse is not None:
        return sparse.log_likelihood(sparse_rows(evidence.codes), n_jobs)
    batch = _Batch(model, evidence, kernels.LIKELIHOOD)
    batch.run(n_jobs)
    return batch.log_likelihood


def posteriors(
    model: TreeModel, evidence: Evidence, nodes: Sequence[int] | None = None, n_jobs: int = 1
) -> Posteriors:
    """`P(v | evidence)` of the given nodes, all hidden ones by default.

    An observed node whose value is unknown has its predictive distribution, a known one has all
    its weight on the value. O(sum over edges of dims[v] dims[parent]) a sample.
    """
    p = model.tree.n_observed
    asked = np.arange(p, model.tree.n_nodes) if nodes is None else np.array(nodes, dtype=np.int64)
    for v in asked[(asked < 0) | (asked >= model.tree.n_nodes)].tolist():
        last = model.tree.n_nodes - 1
        raise DataError(f"posterior of node {v}; nodes are 0..{last}", value=v, node=str(v))
    ends = np.cumsum(model.dims[asked])
    columns = ends - model.dims[asked]
    sparse = _sparse_pass(model, evidence)
    if sparse is not None and (sparse.layout.place[asked] >= 0).all():
        return _sparse_posteriors(sparse, evidence, asked, model, n_jobs)
    batch = _Batch(model, evidence, kernels.POSTERIORS)
    array = np.empty((batch.n, int(ends[-1]) if len(ends) else 0))
    source = _buffer_rows(batch.plan, asked)
    batch.run(n_jobs, node=asked, column=columns, source=source, values=array)
    return _as_posteriors(model, asked, array, batch.log_likelihood)


def _as_posteriors(
    model: TreeModel, asked: NDArray[np.int64], array: Floats, log_likelihood: Floats
) -> Posteriors:
    ends = np.cumsum(model.dims[asked])
    begin = (ends - model.dims[asked]).tolist()
    values = tuple(array[:, c:e] for c, e in zip(begin, ends.tolist(), strict=True))
    return Posteriors(asked, values, array, log_likelihood, model.tree.n_observed)


def _sparse_pass(model: TreeModel, evidence: Evidence) -> SparsePass | None:
    """The pass of the sparse kernels, where the evidence is sparse binary; else None."""
    if evidence.soft or not usable(model, evidence.codes):
        return None
    if model not in _SPARSE_PASSES:
        _SPARSE_PASSES[model] = SparsePass.of(model)
    return _SPARSE_PASSES[model]


def _sparse_posteriors(
    sparse: SparsePass, evidence: Evidence, asked: NDArray[np.int64], model: TreeModel, n_jobs: int
) -> Posteriors:
    k, dims = sparse.layout.k, model.dims[asked]
    within = np.arange(dims.sum()) - np.repeat(np.cumsum(dims) - dims, dims)
    columns = np.repeat(sparse.layout.place[asked] * k, dims) + within
    values, logs = sparse.posteriors(sparse_rows(evidence.codes), n_jobs)
    if not np.array_equal(columns, np.arange(values.shape[1])):
        values = values[:, columns]
    return _as_posteriors(model, asked, values, logs)


def pairwise(
    model: TreeModel, evidence: Evidence, edges: Sequence[int], n_jobs: int = 1
) -> tuple[Floats, ...]:
    """`P(a, b | evidence)` of the two ends of edges, `(n, dims[a], dims[b])` each.

    `edges` are indices into `model.tree.edges`; NaN where the evidence is impossible.
    """
    ends = model.tree.edges[np.asarray(edges, dtype=np.int64)]
    below = [b if model.parents[b] == a else a for a, b in ends.tolist()]
    sizes = np.array([model.cpts[v].size for v in below], dtype=np.int64)
    columns = np.cumsum(sizes) - sizes
    place = np.full(model.tree.n_nodes, -1, dtype=np.int64)
    place[below] = columns
    batch = _Batch(model, evidence, kernels.PAIRS, buffered=below)
    array = np.empty((batch.n, int(sizes.sum())))
    batch.run(n_jobs, node=place, values=array)
    found = []
    for (a, _), v in zip(ends.tolist(), below, strict=True):
        part = array[:, place[v] : place[v] + model.cpts[v].size]
        pair = part.reshape(batch.n, *model.cpts[v].shape)
        found.append(pair if v == a else pair.transpose(0, 2, 1))
    return tuple(found)


def most_probable(
    model: TreeModel, evidence: Evidence, n_jobs: int = 1
) -> tuple[NDArray[np.int32], Floats]:
    """The most probable states of all nodes, `(n, n_nodes)`, and `log P(states, evidence)`.

    Ties go to the lowest state, from the root down; states are -1 where the evidence is impossible.
    """
    batch = _Batch(model, evidence, kernels.BEST, maximise=True)
    states = np.empty((batch.n, model.tree.n_nodes), dtype=np.int32)
    batch.run(n_jobs, node=model.order.copy(), states=states)
    return states, batch.log_likelihood


def sample(
    model: TreeModel, n: int, rng: np.random.Generator, evidence: Evidence | None = None
) -> NDArray[np.int32]:
    """Exact draws of all nodes, `(n, n_nodes)`, given the evidence where there is some.

    With evidence on one sample all `n` draws are for it, else there is one draw for each of the
    `n` samples. Impossible evidence gives -1. Forward filtering (up the tree), backward sampling
    (down), by inverse distribution functions from one uniform number for each node.
    """
    codes = np.full((1, model.tree.n_observed), -1)
    if evidence is not None:
        codes = dense_codes(evidence.codes)
    if len(codes) not in (1, n):
        raise DataError(
            f"evidence on {len(codes)} samples for {n} draws", f"give one or {n}", value=len(codes)
        )
    known = Evidence(codes, {} if evidence is None else evidence.soft)
    batch = _Batch(model, known, kernels.DRAW, n=n)
    states = np.empty((n, model.tree.n_nodes), dtype=np.int32)
    shared = {"node": model.order.copy(), "cumulative": _cumulative(model, batch.plan)}
    for start, stop in blocks(n, batch.piece):
        uniform = rng.random((stop - start, model.tree.n_nodes))
        batch.answer(start, stop, {"states": states[start:stop], "uniform": uniform}, **shared)
    return states


def expected_counts(
    model: TreeModel, evidence: Evidence, n_jobs: int = 1, weights: ArrayLike | None = None
) -> tuple[tuple[Floats, ...], float]:
    """`E[# (v = i, parent = j) | evidence]` of every CPT, and the log-likelihood, summed.

    `weights` multiply the samples, in both sums. Impossible samples count nothing and make the
    log-likelihood -inf. Counts of large CPTs take `pieces * size` memory; see `COUNT_BYTES`.
    """
    n = len(evidence)
    w = np.ones(n) if weights is None else np.array(weights, dtype=np.float64)
    if w.shape != (n,):
        raise DataError(
            f"weights have shape {w.shape} for {n} samples", "give one each", value=w.shape
        )
    sparse = _sparse_pass(model, evidence)
    if sparse is not None:
        pairs, leaves, logs = sparse.sums(sparse_rows(evidence.codes), w, n_jobs)
        counts = sparse.layout.counts(sparse.loaded, pairs, leaves)
        return split_cpts(model, counts), weighted_total(w, logs)
    return _dense_counts(model, evidence, w, n_jobs)[:2]


def weighted_total(weights: Floats, logs: Floats) -> float:
    """`sum w log`; samples of weight zero may be impossible."""
    used = weights != 0
    return float(weights[used] @ logs[used])


def split_cpts(model: TreeModel, flat: Floats) -> tuple[Floats, ...]:
    """A flat array, row after row, as arrays with the shapes of the CPTs."""
    ends = np.cumsum([t.size for t in model.cpts])
    parts = np.split(flat, ends[:-1])
    return tuple(x.reshape(t.shape) for x, t in zip(parts, model.cpts, strict=True))


def counts_and_posteriors(
    model: TreeModel, evidence: Evidence, weights: Floats, nodes: Sequence[int], n_jobs: int = 1
) -> tuple[tuple[Floats, ...], float, Posteriors]:
    """`expected_counts`, and the posteriors of some nodes that have neighbours below them, in one
    pass; what a step of EM with emissions needs."""
    return _dense_counts(model, evidence, weights, n_jobs, nodes)


def _dense_counts(
    model: TreeModel, evidence: Evidence, w: Floats, n_jobs: int, nodes: Sequence[int] = ()
) -> tuple[tuple[Floats, ...], float, Posteriors]:
    batch = _Batch(model, evidence, kernels.COUNTS)
    size = len(batch.plan.table)
    asked = np.asarray(nodes, dtype=np.int64)
    source = _buffer_rows(batch.plan, asked)
    values = np.empty((batch.n, len(source)))

    def work(start: int, stop: int) -> Floats:
        counts = np.zeros(size)
        for begin in range(start, stop, batch.piece):
            end = min(begin + batch.piece, stop)
            own = {"weight": w[begin:end], "values": values[begin:end]}
            batch.answer(begin, end, own, counts=counts, source=source)
        return counts

    pieces = min(32, max(4, COUNT_BYTES // (8 * size)))
    span = -(-max(batch.n, 1) // pieces)
    span = -(-span // batch.piece) * batch.piece if span > batch.piece else batch.piece
    total = np.zeros(size)
    for part in parallel(work, batch.n, n_jobs, span):
        total += part
    found = _as_posteriors(model, asked, values, batch.log_likelihood)
    value = weighted_total(w, batch.log_likelihood)
    return _as_tables(model, batch.plan, total), value, found


def messages(
    model: TreeModel, evidence: Evidence, edges: ArrayLike, n_jobs: int = 1
) -> NDArray[np.float32]:
    """Messages of belief propagation out of hidden nodes, `(n, m, k)`.

    `edges` is `(m, 2)`: from a hidden node `u` to its neighbour `w`. The answer is the likelihood,
    over the states of `u`, of the evidence on the side of `u` when the edge is cut, scaled to a
    largest entry of 1 (all zero where that evidence is impossible). `k` is the largest number of
    states of these `u`; the entries beyond a node's own are zero.
    """
    pairs = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
    start, end = pairs.T
    fine = (model.parents[start] == end) | (model.parents[end] == start)
    for u, w in pairs[~fine | (start < model.tree.n_observed)].tolist():
        raise DataError(f"({u}, {w}) is no edge that leaves a hidden node", value=(u, w))
    k = int(model.dims[pairs[:, 0]].max(initial=1))
    sparse = None if evidence.soft else SparseMessages.of(model, evidence.codes)
    request = None if sparse is None else sparse.request(pairs, by_sum=False)
    if sparse is not None and request is not None:
        width = sparse.nodes.base.shape[1]
        values = np.zeros((len(pairs), width, len(evidence)), dtype=np.float32)
        sparse.write(evidence.codes, request, values, n_jobs)
        return values[:, :k].transpose(2, 0, 1)
    batch = _Batch(model, evidence, kernels.MESSAGES, marginals=True)
    out = np.zeros((batch.n, len(pairs), k), dtype=np.float32)
    node, column = (np.ascontiguousarray(x) for x in pairs.T)
    batch.run(n_jobs, node=node, column=column, source=_ancestors(model, node), messages=out)
    return out


PER_SAMPLE = ("values", "states", "messages", "weight", "uniform", "log_likelihood")

EMPTY: dict[str, Any] = {
    "node": np.empty(0, dtype=np.int64),
    "column": np.empty(0, dtype=np.int64),
    "source": np.empty(0, dtype=np.int64),
    "weight": np.empty(0),
    "uniform": np.empty((0, 0)),
    "cumulative": np.empty(0),
    "values": np.empty((0, 0)),
    "counts": np.empty(0),
    "states": np.empty((0, 0), dtype=np.int32),
    "messages": np.empty((0, 0, 0), dtype=np.float32),
}


_PLANS: WeakKeyDictionary[TreeModel, dict[Any, Plan]] = WeakKeyDictionary()
"""Plans of models for hard evidence, which many chunks of samples share."""


_SPARSE_PASSES: WeakKeyDictionary[TreeModel, SparsePass | None] = WeakKeyDictionary()
"""Passes of the sparse kernels, which many chunks share."""


def _plan_of(model: TreeModel, **layout: Any) -> Plan:
    known = _PLANS.setdefault(model, {})
    key = tuple(
        (name, value if isinstance(value, bool) else tuple(value))
        for name, value in sorted(layout.items())
    )
    if key not in known:
        known[key] = make_plan(model, {}, {}, **layout)
    return known[key]


class _Batch:
    """Checked evidence, the plan, and the kernel run over pieces of samples."""

    def __init__(
        self, model: TreeModel, evidence: Evidence, task: int, n: int | None = None, **layout: Any
    ) -> None:
        self.model, self.task = model, task
        self.codes = check_codes(model, evidence)
        self.soft = stacked_soft(model, evidence)
        self.plan: Plan = (
            make_plan(model, self.soft.first, self.soft.bits, **layout)
            if self.soft.first
            else _plan_of(model, **layout)
        )
        self.n = len(self.codes) if n is None else n
        self.log_likelihood = np.empty(self.n)
        lanes = PIECE_CODES // (LANE * max(1, self.codes.shape[1]))
        self.piece = LANE * min(max(lanes, 4), 128)
        node = self.plan.node[: self.codes.shape[1]]
        steps = np.where(node[:, PLACE] < 0, node[:, WIDTH], 1)
        self._positions = np.ascontiguousarray(node[:, DIM]), steps
        self._buffers = threading.local()

    def run(self, n_jobs: int, **arrays: Any) -> None:
        """Fill the given arrays, which have a row for each sample or serve all of them."""
        rows = {k: a for k, a in arrays.items() if k in PER_SAMPLE}
        rest = {k: a for k, a in arrays.items() if k not in PER_SAMPLE}

        def work(start: int, stop: int) -> None:
            self.answer(start, stop, {k: a[start:stop] for k, a in rows.items()}, **rest)

        parallel(work, self.n, n_jobs, self.piece)

    def answer(self, start: int, stop: int, own: dict[str, Any], **shared: Any) -> None:
        """The kernel on samples `start:stop`; `own` are their rows of the arrays."""
        codes = self._rows_of(self.codes, start, stop)
        soft = self._rows_of(self.soft.weights, start, stop)
        rows, work = self._own_buffers(-(-len(codes) // LANE))
        if kernels.fill_rows(codes, *self._positions, rows):
            raise unknown_code(self.model, self.codes)
        ll = self.log_likelihood[start:stop]
        query = Query(**(EMPTY | {"log_likelihood": ll} | own | shared))
        states = self.task in (kernels.BEST, kernels.DRAW)
        answer = kernels.run_states if states else kernels.run
        answer(self.task, self.plan, work, rows, soft, len(codes), query)
        ll += self._rows_of(self.soft.log_scale, start, stop)

    def _own_buffers(self, n_lanes: int) -> tuple[NDArray[np.int32], kernels.Work]:
        """This thread's buffers, made once: fresh memory costs more than what is done with it."""
        own = self._buffers
        if not hasattr(own, "work"):
            own.work = kernels.make_work(self.plan, self.task)
            shape = (self.piece // LANE, self.codes.shape[1] + 1, LANE)
            own.rows = np.empty(shape, dtype=np.int32)
        return own.rows[:n_lanes], own.work

    def _rows_of(self, array: NDArray[Any], start: int, stop: int) -> NDArray[Any]:
        """Rows of the evidence; one sample of it serves for all draws."""
        if len(array) == self.n:
            return array[start:stop]
        return np.array(np.broadcast_to(array, (stop - start, *array.shape[1:])), order="C")


def _ancestors(model: TreeModel, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The given nodes and all above them, parents first."""
    needed = np.zeros(model.tree.n_nodes, dtype=bool)
    needed[nodes] = True
    above = model.parents[nodes]
    while len(above := np.unique(above[above >= 0])):
        above = above[~needed[above]]
        needed[above] = True
        above = model.parents[above]
    return model.order[needed[model.order]]


def _buffer_rows(plan: Plan, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the states of nodes lie in the buffers, one after another; 0 for those without."""
    place, d = plan.node[nodes, PLACE], plan.node[nodes, DIM]
    ends = np.cumsum(d)
    within = np.arange(d.sum()) - np.repeat(ends - d, d)
    return np.where(np.repeat(place, d) < 0, 0, np.repeat(place, d) + within)


def _as_tables(model: TreeModel, plan: Plan, flat: Floats) -> tuple[Floats, ...]:
    """Flat counts as arrays like the tables; unknown values spread as the table says."""
    found = []
    for v, table in enumerate(model.cpts):
        begin = int(plan.node[v, START])
        counts = flat[begin : begin + table.size].reshape(table.shape)
        if v < model.tree.n_observed and plan.node[v, PLACE] < 0:
            unknown = flat[begin + table.size : begin + table.size + table.shape[1]]
            counts = counts + table * unknown
        found.append(counts)
    return tuple(found)


def _cumulative(model: TreeModel, plan: Plan) -> Floats:
    """Tables summed down their columns, laid out as the plan's."""
    flat = np.zeros(len(plan.table))
    for v, table in enumerate(model.cpts):
        begin = int(plan.node[v, START])
        flat[begin : begin + table.size] = np.cumsum(table, axis=0).ravel()
    return flat
