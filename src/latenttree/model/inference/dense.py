"""The dense backend: all nodes of the tree, for lanes of samples side by side.

Samples are answered in fixed pieces, whatever the number of threads, and sums over samples add the
pieces in order: answers do not depend on `n_jobs`.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.engine import blocks, parallel, single_threaded_blas
from latenttree.errors import DataError
from latenttree.model.inference import dense_learning as learning
from latenttree.model.inference import dense_posteriors as posteriors
from latenttree.model.inference import dense_states as states_of
from latenttree.model.inference.dense_lanes import LANE, WIDE, Work, fill_rows, make_work
from latenttree.model.inference.dense_messages import DEEP, DOWN, NODE, UP
from latenttree.model.inference.dense_plan import DIM, PLACE, WIDTH, DenseLayout, Plan
from latenttree.model.inference.distribution import Distribution, ranges
from latenttree.model.inference.evidence import (
    Evidence,
    Ones,
    check_codes,
    dense_codes,
    stacked_soft,
    unknown_code,
)
from latenttree.model.inference.messages import ancestors, message_weights

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SHORT_LANE, LANE_BYTES = 16, 1 << 20
"""Samples of ones that walk the tree together, where buffers for `LANE` would take more bytes."""

PIECE_CODES = 1 << 18
"""Codes in a piece: its table rows stay in the cache between being written and read."""

COUNT_BYTES = 1 << 28
"""Memory for partial sums: large tables are summed in fewer pieces, 4 at least."""


class DenseBackend:
    """Queries to one model, by the kernels of `dense_learning`, `dense_posteriors`,
    `dense_states`."""

    def __init__(self, model: Distribution) -> None:
        self.model = model
        self._plans: dict[Any, Plan | None] = {}

    def layout(
        self, soft: Sequence[tuple[int, int]] = (), buffered: Sequence[int] = (), ones: bool = False
    ) -> DenseLayout:
        """The layout for some kind of evidence, of all models of the tree."""
        where = ("dense", tuple(soft), tuple(buffered), ones)
        layouts: dict[Any, DenseLayout] = self.model.layouts
        if where not in layouts:
            layouts[where] = DenseLayout(self.model, dict(soft), buffered, ones)
        return layouts[where]

    def plan(self, layout: DenseLayout, maximise: bool = False) -> Plan | None:
        """The model in a layout of hard evidence; None where ones cannot be read as ratios."""
        key = (id(layout), maximise)
        if key not in self._plans:
            self._plans[key] = layout.load(self.model.flat, None, maximise)
        return self._plans[key]

    def reads_ones(self) -> bool:
        """Whether rows of ones can be read as ratios to zero."""
        return self.plan(self.layout(ones=True)) is not None

    def log_likelihood(self, evidence: Evidence, n_jobs: int, ones: bool = False) -> Floats:
        """`(n,)`; -inf where the evidence is impossible."""
        batch = _Batch(self, evidence, learning, learning.LIKELIHOOD, ones=ones)
        batch.run(n_jobs)
        return batch.log_likelihood

    def posteriors(
        self, evidence: Evidence, asked: Ints, n_jobs: int, ones: bool = False
    ) -> tuple[Floats, Floats]:
        """Of the nodes `asked`, side by side, NaN where impossible; and the log-likelihood."""
        dims = self.model.dims[asked]
        batch = _Batch(self, evidence, posteriors, posteriors.POSTERIORS, ones=ones)
        array = np.empty((batch.n, int(dims.sum())))
        source, columns = batch.rows_of(asked), np.cumsum(dims) - dims
        batch.run(n_jobs, node=asked, column=columns, source=source, values=array)
        return array, batch.log_likelihood

    def pairwise(self, evidence: Evidence, edges: Sequence[int], n_jobs: int) -> tuple[Floats, ...]:
        """`P(a, b | evidence)` of the two ends of edges, `(n, dims[a], dims[b])` each."""
        model = self.model
        ends = model.tree.edges[np.asarray(edges, dtype=np.int64)]
        below = [b if model.parents[b] == a else a for a, b in ends.tolist()]
        sizes = np.array([model.cpts[v].size for v in below], dtype=np.int64)
        place = np.full(model.tree.n_nodes, -1, dtype=np.int64)
        place[below] = np.cumsum(sizes) - sizes
        batch = _Batch(self, evidence, posteriors, posteriors.PAIRS, buffered=below)
        array = np.empty((batch.n, int(sizes.sum())))
        batch.run(n_jobs, node=place, values=array)
        found = []
        for (a, _), v in zip(ends.tolist(), below, strict=True):
            part = array[:, place[v] : place[v] + model.cpts[v].size]
            pair = part.reshape(batch.n, *model.cpts[v].shape)
            found.append(pair if v == a else pair.transpose(0, 2, 1))
        return tuple(found)

    def most_probable(self, evidence: Evidence, n_jobs: int) -> tuple[NDArray[np.int32], Floats]:
        """The most probable states of all nodes together, and `log P(states, evidence)`."""
        batch = _Batch(self, evidence, states_of, states_of.BEST, maximise=True)
        states = np.empty((batch.n, self.model.tree.n_nodes), dtype=np.int32)
        batch.run(n_jobs, node=np.array(self.model.order), states=states)
        return states, batch.log_likelihood

    def sample(
        self, n: int, rng: np.random.Generator, evidence: Evidence | None
    ) -> NDArray[np.int32]:
        """Draws of all nodes, `(n, n_nodes)`: forward filtering (up the tree), backward sampling
        (down), by inverse distribution functions from one uniform number for each node."""
        model = self.model
        codes = np.full((1, model.tree.n_observed), -1)
        if evidence is not None:
            codes = dense_codes(evidence.codes)
        if len(codes) not in (1, n):
            raise DataError(
                f"evidence on {len(codes)} samples for {n} draws",
                f"give one or {n}",
                value=len(codes),
            )
        known = Evidence(codes, {} if evidence is None else evidence.soft)
        batch = _Batch(self, known, states_of, states_of.DRAW, n=n)
        states = np.empty((n, model.tree.n_nodes), dtype=np.int32)
        shared = {"node": np.array(model.order), "cumulative": batch.cumulative()}
        for start, stop in blocks(n, batch.piece):
            uniform = rng.random((stop - start, model.tree.n_nodes))
            own = {"states": states[start:stop], "uniform": uniform}
            batch.answer(start, stop, own, shared)
        return states

    def counts(
        self, evidence: Evidence, weights: Floats, nodes: Ints, n_jobs: int, ones: bool = False
    ) -> tuple[Floats, Floats, Floats]:
        """Expected counts, laid out as `flat`; posteriors of `nodes`, which have neighbours below
        them, side by side; and the log-likelihood of every sample."""
        batch = _Batch(self, evidence, learning, learning.COUNTS, ones=ones)
        source = batch.rows_of(nodes)
        values = np.empty((batch.n, len(source)))
        size = len(batch.plan.table)
        total = batch.total(n_jobs, size, source=source, values=values, weight=weights)
        return batch.layout.counts(self.model.flat, total), values, batch.log_likelihood

    def squares(
        self, evidence: Evidence, weights: Floats, n_jobs: int, ones: bool = False
    ) -> Floats:
        """`sum_n w q^2` over the posteriors of all hidden nodes, side by side; a sample of
        probability zero adds nothing."""
        batch = _Batch(self, evidence, learning, learning.SQUARES, ones=ones)
        total = batch.total(n_jobs, batch.layout.n_rows, weight=weights)
        hidden = np.arange(self.model.tree.n_observed, self.model.tree.n_nodes)
        return np.asarray(total[batch.rows_of(hidden)])

    def messages(
        self,
        evidence: Evidence,
        edges: Ints,
        out: NDArray[np.float32],
        place: Ints,
        marginals: Sequence[Floats] | None,
        n_jobs: int,
        ones: bool = False,
    ) -> Floats:
        """Write the message along edge i, `(m, 2)`, to `out[place[i]]` `(states, n)`; see
        `Inference.messages`, and with `marginals` `Inference.write_posteriors`. Returns the
        log-likelihood. With `ones`, messages of impossible samples are not exact."""
        visit, scales = message_request(self.model, edges, place, marginals)
        batch = _Batch(self, evidence, learning, learning.MESSAGES, ones=ones)
        how = {"visit": visit, "scales": scales, "by_sum": marginals is not None}
        batch.run(n_jobs, messages=out, **how)
        return batch.log_likelihood


def message_request(
    model: Distribution, edges: Ints, place: Ints, marginals: Sequence[Floats] | None
) -> tuple[Ints, Floats]:
    """`Query.visit` and `Query.scales`: messages by the node at the lower end of their edge, after
    all nodes above them that they need."""
    is_up, weights = message_weights(model, edges, marginals)
    lower, above = np.where(is_up, *edges.T), ancestors(model, edges[~is_up, 0])
    needed, deep = np.zeros((2, model.tree.n_nodes), dtype=bool)
    deep[above] = needed[above] = needed[lower] = True
    nodes = np.asarray(model.order)[needed[model.order]]
    row = np.empty(len(needed), dtype=np.int64)
    row[nodes] = np.arange(len(nodes))
    visit = np.full((len(nodes), 4), -1, dtype=np.int64)
    visit[:, NODE], visit[:, DEEP] = nodes, deep[nodes]
    visit[row[lower], np.where(is_up, UP, DOWN)] = place
    scales = np.zeros((len(nodes), 2, weights.shape[1]))
    scales[row[lower], np.where(is_up, 0, 1)] = weights
    return visit, scales


PER_SAMPLE = ("values", "states", "weight", "uniform")


class _Batch:
    """Checked evidence, the plan, and the kernel of a module run over pieces of samples."""

    def __init__(
        self,
        backend: DenseBackend,
        evidence: Evidence,
        kernels: Any,
        task: int,
        n: int | None = None,
        buffered: Sequence[int] = (),
        maximise: bool = False,
        ones: bool = False,
    ) -> None:
        self.model, self.kernels, self.task = backend.model, kernels, task
        self.ones, self.by_ones = Ones.of(evidence.codes) if ones else NO_ONES, ones
        self.codes = evidence.codes if ones else check_codes(self.model, evidence)
        self.soft = stacked_soft(self.model, evidence)
        self.layout = backend.layout(list(self.soft.first.items()), buffered, ones)
        plan = backend.plan(self.layout, maximise) if not self.soft.first else None
        if plan is None:
            plan = self.layout.load(self.model.flat, self.soft.bits, maximise)
        assert plan is not None
        self.plan = plan
        self.n = self.codes.shape[0] if n is None else n
        self.log_likelihood = np.empty(self.n)
        self.width = LANE
        if ones and self.layout.n_rows * LANE * 8 > LANE_BYTES:
            self.width = SHORT_LANE
        lanes = PIECE_CODES // (self.width * max(1, self.layout.n_rows if ones else self.layout.p))
        self.piece = self.width * min(max(lanes, 4), 128)
        node = self.plan.node[: self.layout.p]
        steps = np.where(node[:, PLACE] < 0, node[:, WIDTH], 1)
        self._positions = np.ascontiguousarray(node[:, DIM]), steps
        self._buffers = threading.local()
        self._with_above = kernels is learning and task == learning.MESSAGES
        wide = int(self.plan.node[self.plan.order, DIM].max()) >= WIDE
        self._wide = True if wide else None

    def rows_of(self, nodes: Ints) -> Ints:
        """Buffer rows of the states of nodes, one after another; 0 for those without."""
        place, d = self.plan.node[nodes, PLACE], self.plan.node[nodes, DIM]
        return np.where(np.repeat(place, d) < 0, 0, ranges(place, d))

    def cumulative(self) -> Floats:
        """CPTs summed down their columns, laid out as the tables."""
        sums = np.zeros(len(self.plan.table))
        sums[self.layout.cpt_at] = np.concatenate(
            [np.cumsum(cpt, axis=0).ravel() for cpt in self.model.cpts]
        )
        return sums

    def run(self, n_jobs: int, **arrays: Any) -> None:
        """Fill the given arrays, which have a row for each sample or serve all of them."""

        def work(start: int, stop: int) -> None:
            self.answer(start, stop, *self._shares(start, stop, arrays))

        self._parallel(work, n_jobs, self.piece)

    def total(self, n_jobs: int, size: int, **arrays: Any) -> Floats:
        """The sum of `Query.counts`, of the given size, over all samples."""

        def work(start: int, stop: int) -> Floats:
            counts = np.zeros(size)
            for begin, end in blocks(stop - start, self.piece):
                own, shared = self._shares(start + begin, start + end, arrays)
                self.answer(start + begin, start + end, own, shared | {"counts": counts})
            return counts

        pieces = min(32, max(4, COUNT_BYTES // (8 * size)))
        span = -(-max(self.n, 1) // pieces)
        span = -(-span // self.piece) * self.piece if span > self.piece else self.piece
        total = np.zeros(size)
        for part in self._parallel(work, n_jobs, span):
            total += part
        return total

    def _parallel(self, work: Any, n_jobs: int, span: int) -> list[Any]:
        """Matrix products run on the thread of their piece."""
        with single_threaded_blas() if self._wide else nullcontext():
            return parallel(work, self.n, n_jobs, span)

    def _shares(
        self, start: int, stop: int, arrays: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Rows of some samples of the arrays that have rows, and the other arrays."""
        own = {k: a[start:stop] for k, a in arrays.items() if k in PER_SAMPLE}
        return own, {k: a for k, a in arrays.items() if k not in own}

    def answer(self, start: int, stop: int, own: dict[str, Any], shared: dict[str, Any]) -> None:
        """The kernel on samples `start:stop`; `own` are their rows of the arrays."""
        soft = self._rows_of(self.soft.weights, start, stop)
        n, ll = stop - start, self.log_likelihood[start:stop]
        rows, work = self._own_buffers(-(-n // self.width))
        if not self.by_ones:
            codes = self._rows_of(self.codes, start, stop)
            if fill_rows(codes, *self._positions, rows):
                raise unknown_code(self.model, self.codes)
        place = {"start": start} if "messages" in shared else {}
        query = self.kernels.Query(ll, **own, **shared, **place)
        indptr = self.ones.indptr[start : stop + 1] if self.by_ones else self.ones.indptr
        given = (self.plan, work, rows, soft, indptr, self.ones.leaf)
        self.kernels.answer(self.task, *given, n, self._wide, query)
        ll += self._rows_of(self.soft.log_scale, start, stop)

    def _own_buffers(self, n_lanes: int) -> tuple[NDArray[np.int32], Work]:
        """This thread's buffers, made once: fresh memory costs more than what is done with it."""
        own = self._buffers
        if not hasattr(own, "work"):
            own.work = make_work(self.plan, self.width, self._with_above)
            lanes = 1 if self.by_ones else self.piece // self.width
            own.rows = np.empty((lanes, self.layout.n_own + 1, self.width), dtype=np.int32)
        return own.rows[:n_lanes], own.work

    def _rows_of(self, array: NDArray[Any], start: int, stop: int) -> NDArray[Any]:
        """Rows of the evidence; one sample of it serves for all draws."""
        if len(array) == self.n:
            return array[start:stop]
        return np.array(np.broadcast_to(array, (stop - start, *array.shape[1:])), order="C")


NO_ONES = Ones(np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int32))
