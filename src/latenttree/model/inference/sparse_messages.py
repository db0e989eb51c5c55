"""Messages and posteriors of sparse binary samples under one model, by `sparse_message_kernels`."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.engine import parallel
from latenttree.model.inference.sparse_forms import LEAST_ENTRY, MOST_BITS, usable
from latenttree.model.inference.sparse_message_kernels import (
    LANE,
    MessageRequest,
    Nodes,
    preorder,
    run,
    run_two,
)
from latenttree.model.tree_model import TreeModel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SPAN = 4 * LANE
"""Samples that a thread takes at once."""

SUMMED = 16
"""Upper bound of the number of pieces in which sums over samples are taken."""


class SparseMessages:
    """Messages under one model."""

    def __init__(self, model: TreeModel, nodes: Nodes, place: Ints) -> None:
        self.model, self.nodes, self.place = model, nodes, place
        self._own = threading.local()

    @classmethod
    def of(cls, model: TreeModel, rows: Any, least: float = 0.0) -> SparseMessages | None:
        """For CSR rows of zeros and ones; None where the dense kernels must be used.

        Entries of CPTs are raised to `least`; without it, models with zeros that prevent ratios
        are left to the dense kernels."""
        if model.emissions or not usable(model, rows):
            return None
        flat = np.concatenate([t.ravel() for t in model.cpts])
        nodes, place, smallest = _nodes(model, np.maximum(flat, least) if least else flat)
        return cls(model, nodes, place) if smallest >= LEAST_ENTRY else None

    def request(self, edges: Ints, by_sum: bool) -> MessageRequest | None:
        """Messages along `edges` `(m, 2)`, as posteriors of their sources without the first state
        (`by_sum`), or as likelihoods; None where an end is a leaf."""
        if (self.place[edges] < 0).any():
            return None
        k, n = self.nodes.base.shape[1], len(self.nodes.base)
        prior = np.zeros((n, k))
        sources = np.unique(edges[:, 0])
        dims = self.model.dims[sources]
        states = np.repeat(sources, dims)
        ends = np.cumsum(dims)
        within = np.arange(len(states)) - np.repeat(ends - dims, dims)
        known = [self.model.marginals[u] for u in sources.tolist()]
        prior[self.place[states], within] = np.concatenate([np.empty(0), *known])
        there = prior >= 1e-300
        ups, downs = np.full(n, -1), np.full(n, -1)
        is_up = self.model.parents[edges[:, 0]] == edges[:, 1]
        ups[self.place[edges[is_up, 0]]] = np.flatnonzero(is_up)
        downs[self.place[edges[~is_up, 1]]] = np.flatnonzero(~is_up)
        over = prior[self.nodes.parent]
        if by_sum:
            return MessageRequest(ups, downs, prior, (over > 0).astype(float), True, 1)
        turned = np.divide(1.0, over, where=over >= 1e-300, out=np.zeros_like(over))
        return MessageRequest(ups, downs, there.astype(float), turned, False, 0)

    def write(
        self, rows: Any, request: MessageRequest, out: NDArray[np.float32], n_jobs: int
    ) -> None:
        """Fill the messages of CSR rows, `out` `(m, states, n)`."""
        no_weights, no_squares = np.empty(0), np.empty((0, 0))

        def work(start: int, stop: int) -> None:
            self._run(rows, start, stop, request, out, no_weights, no_squares)

        parallel(work, rows.shape[0], n_jobs, SPAN)

    def squares(self, rows: Any, weights: Floats, n_jobs: int) -> Floats:
        """`sum_n w q^2` over the posteriors `q` of all inner nodes, `(H, k)`; a sample of
        probability zero adds nothing."""
        n, nowhere = rows.shape[0], np.full(len(self.nodes.base), -1)
        nothing = np.empty((0, 0))
        request = MessageRequest(nowhere, nowhere, nothing, nothing, True, 0)
        out = np.empty((0, 0, 0), dtype=np.float32)

        def work(start: int, stop: int) -> Floats:
            total = np.zeros(self.nodes.base.shape)
            self._run(rows, start, stop, request, out, weights, total)
            return total

        span = max(SPAN, -(-n // SUMMED))
        return np.asarray(sum(parallel(work, n, n_jobs, span), np.zeros(self.nodes.base.shape)))

    def _run(
        self,
        rows: Any,
        start: int,
        stop: int,
        request: MessageRequest,
        out: Any,
        weights: Any,
        squares: Any,
    ) -> None:
        size, k = self.nodes.base.shape
        if not hasattr(self._own, "work"):
            self._own.work = np.empty((3, size, k, LANE))
            self._own.known = np.empty((int(self.nodes.own.max()) + 1, LANE), dtype=np.int64)
        kernel = run_two if k == 2 else partial(run, k)
        own, bounds = self._own, rows.indptr
        kernel(
            start,
            stop,
            bounds,
            rows.indices,
            self.nodes,
            request,
            own.work,
            own.known,
            out,
            weights,
            squares,
        )


def _nodes(model: TreeModel, flat: Floats) -> tuple[Nodes, Ints, float]:
    """A model with these flat CPTs, the place of every node, -1 for leaves, and the smallest
    probability that something is divided by."""
    p, parents, dims = model.tree.n_observed, model.parents, model.dims
    is_inner = np.zeros(len(dims), dtype=bool)
    is_inner[parents[parents >= 0]] = True
    is_inner[model.root] = True
    place = preorder(parents, model.order, is_inner)
    inner = np.empty(int(is_inner.sum()), dtype=np.int64)
    inner[place[is_inner]] = np.flatnonzero(is_inner)
    above = parents[inner]
    parent = place[np.where(above < 0, model.root, above)]
    own = np.where(inner < p, np.cumsum(inner < p) - 1, -1)
    table, inside = _inner_cpts(model, flat, inner)
    leaves = np.flatnonzero(~is_inner[:p])
    home = place[np.where(is_inner[:p], np.arange(p), np.maximum(parents[:p], 0))]
    zero, one = _leaf_cpts(model, flat, leaves, table.shape[1])
    least = min(table.min(where=inside, initial=1.0), zero.min(initial=1.0))
    if least <= 0.0:
        return Nodes(*[np.empty(0)] * 8), place, 0.0  # type: ignore[arg-type]
    with np.errstate(divide="ignore"):
        ratio = np.log(one) - np.log(zero)
    base = _log_bases(np.log(zero), home[leaves], dims[inner])
    logs = _bits(table, inside, base, ratio, parent, home[leaves]) > MOST_BITS * np.log(2)
    base[~logs] = np.exp(base[~logs])
    ratios = np.zeros((p, table.shape[1]))
    ratios[leaves] = np.where(logs[home[leaves], None], ratio, np.exp(ratio))
    nodes = Nodes(parent, logs, own, table, base, home, is_inner[:p], ratios)
    return nodes, place, float(least)


def _starts(model: TreeModel) -> tuple[Ints, Ints]:
    """Width and first entry of every CPT in the flat array."""
    parents, dims = model.parents, model.dims
    width = np.where(parents < 0, 1, dims[np.maximum(parents, 0)])
    return width, np.cumsum(dims * width) - dims * width


def _inner_cpts(model: TreeModel, flat: Floats, inner: Ints) -> tuple[Floats, NDArray[np.bool_]]:
    """`(H, k, k)` CPTs of inner nodes padded by zeros, and where they are not padding."""
    width, first = _starts(model)
    k = int(model.dims[inner].max())
    i, j = np.indices((k, k))
    v = inner[:, None, None]
    inside = (i < model.dims[v]) & (j < width[v])
    return np.where(inside, flat[np.where(inside, first[v] + i * width[v] + j, 0)], 0.0), inside


def _leaf_cpts(model: TreeModel, flat: Floats, leaves: Ints, k: int) -> tuple[Floats, Floats]:
    """`P(0 | j)` and `P(1 | j)` of binary leaves, `(n_leaves, k)`, padded by ones."""
    width, first = _starts(model)
    inside = np.arange(k) < width[leaves, None]
    at = np.where(inside, first[leaves, None] + np.arange(k), 0)
    zero = np.where(inside, flat[at], 1.0)
    return zero, np.where(inside, flat[at + np.where(inside, width[leaves, None], 0)], 1.0)


def _log_bases(log_zero: Floats, home: Ints, dims: Ints) -> Floats:
    """`log B`, `(H, k)`, with a largest entry of 0; -inf for states beyond a node's own."""
    n, k = len(dims), log_zero.shape[1]
    states = np.arange(k)
    at = home[:, None] * k + states
    base = np.bincount(at.ravel(), log_zero.ravel(), minlength=n * k).astype(np.float64)
    base = base.reshape(n, k)
    base[states >= dims[:, None]] = -np.inf
    base -= base.max(axis=1, keepdims=True)
    return base


def _bits(
    table: Floats,
    inside: NDArray[np.bool_],
    base: Floats,
    ratio: Floats,
    parent: Ints,
    home: Ints,
) -> Floats:
    """(H,) bound of the logarithm of the product at each inner node, up or down."""
    n = len(base)
    far = np.where(np.isfinite(ratio), np.abs(ratio), 0.0).max(axis=1, initial=0.0)
    bits = np.where(np.isfinite(base), -base, 0.0).max(axis=1)
    bits = np.bincount(home, far, minlength=n) + bits
    smallest = -np.log(table.min(axis=(1, 2), where=inside, initial=1.0))
    return np.asarray(bits + np.bincount(parent[1:], smallest[1:], minlength=n), dtype=np.float64)
