"""The sparse backend: samples one by one, through the nodes above their ones alone."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.engine import parallel
from latenttree.model.inference import sparse_kernels as sparse
from latenttree.model.inference.dense_plan import LEAST_ENTRY, RATIO_BITS
from latenttree.model.inference.distribution import Distribution
from latenttree.model.inference.evidence import Ones
from latenttree.model.inference.messages import ancestors, message_weights
from latenttree.model.inference.sparse_kernels import (
    COUNTS,
    LIKELIHOOD,
    MESSAGES,
    POSTERIORS,
    SQUARES,
    Request,
    Shape,
    SparseNumbers,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEAST_PIECE = 64
PIECES = 32
PIECE_BYTES = 1 << 28
"""Memory for partial counts: with many variables they are summed in fewer pieces, 4 at least."""


class RootedTree(NamedTuple):
    """A tree as a layout needs it: `n_observed` observed nodes first, then hidden ones."""

    n_observed: int
    dims: Ints  # states of each node; two of observed ones
    parents: Ints  # -1 at the root
    order: Ints  # parents first
    root: int

    @classmethod
    def of(cls, model: Distribution) -> RootedTree:
        """The rooted tree of a model."""
        return cls(model.tree.n_observed, model.dims, model.parents, model.order, model.root)


class LoadedModel(NamedTuple):
    """A model laid out for the kernel."""

    numbers: SparseNumbers
    message: Floats  # (H, k, k) as `SparseNumbers.message`
    base: Floats  # (H, k) `B`, 1 where LOGS
    fold: Floats  # (H, k) `1 / m0`
    default: Floats  # (H, k) `B` where LOGS, and the indicator of zero where observed
    shift: float  # log P of a sample of zeros alone, up to the root


class SparseLayout:
    """Places of all numbers, for models of one tree given as flat CPTs row after row."""

    def __init__(self, tree: RootedTree) -> None:
        self.p, dims, parents = tree.n_observed, tree.dims, tree.parents
        inner = np.zeros(len(dims), dtype=bool)
        inner[parents[parents >= 0]] = True
        inner[tree.root] = True
        self.nodes = np.asarray(tree.order[inner[tree.order]])
        self.place = np.full(len(dims), -1, dtype=np.int64)
        self.place[self.nodes] = np.arange(len(self.nodes))
        self.dims, self.k = dims[self.nodes], int(dims[self.nodes].max())
        width = np.where(parents < 0, 1, dims[parents])
        ends = np.cumsum(dims * width)
        self.size = int(ends[-1])
        first = ends - dims * width
        i, j = np.indices((self.k, self.k))
        v = self.nodes[:, None, None]
        self.is_inner = (i < dims[v]) & (j < width[v])
        self.inner_at = np.where(self.is_inner, first[v] + i * width[v] + j, self.size)
        self.leaves = np.flatnonzero(~inner[: self.p])
        self.is_leaf = np.arange(self.k) < width[self.leaves, None]
        at = first[self.leaves, None] + np.arange(self.k)
        self.zero_at = np.where(self.is_leaf, at, self.size + 1)
        self.one_at = np.where(self.is_leaf, at + width[self.leaves, None], self.size + 1)
        home = np.where(inner[: self.p], np.arange(self.p), np.maximum(parents[: self.p], 0))
        self.home = self.place[home[self.leaves]]
        above = parents[self.nodes]
        self.parent = self.place[np.where(above < 0, tree.root, above)]
        own = np.where(self.nodes < self.p, 0, -1)
        of_variable = self.place[home].astype(np.uint32)
        self.shape = Shape(self.parent.astype(np.uint32), of_variable, inner[: self.p].copy(), own)

    def load(self, flat: Floats) -> LoadedModel | None:
        """The model with these flat CPTs; None where zeros prevent ratios to zero."""
        whole = np.concatenate([flat[: self.size], [0.0, 1.0]])
        table, zero, one = whole[self.inner_at], whole[self.zero_at], whole[self.one_at]
        if np.where(self.is_inner, table, 1.0).min() < LEAST_ENTRY or not (zero > 0).all():
            return None
        with np.errstate(divide="ignore"):
            log_ratio = np.log(one) - np.log(zero)
        log_base, fold, shift = self._zeros(table, np.log(zero))
        logs = self._bits(table, log_base, fold, log_ratio) > RATIO_BITS
        base = np.exp(np.where(logs[:, None], 0.0, log_base))
        begin = np.where(logs[:, None], log_base, np.isfinite(log_base))
        ratio = np.ones((self.p, self.k))
        kept = logs[self.home][:, None]
        ratio[self.leaves] = np.where(kept, log_ratio, np.exp(np.where(kept, 0.0, log_ratio)))
        default = np.where(logs[:, None], np.exp(log_base), begin)
        own = self.shape.own[:, None]
        default = np.where((own < 0) | (own == np.arange(self.k)), default, 0.0)
        message = table * fold[:, None, :]
        message[0] = table[0]
        message *= base[:, :, None]
        kind = np.asarray(sparse.OWN * (own[:, 0] >= 0) + sparse.LOGS * logs, dtype=np.uint8)
        numbers = SparseNumbers(message.reshape(len(table), -1), begin, ratio, kind)
        return LoadedModel(numbers, message, base, fold, default, shift)

    def _zeros(self, table: Floats, log_zero: Floats) -> tuple[Floats, Floats, float]:
        """`log B_u(j)`, `1 / m0_u(j)` and the logarithm of the scale of `B`.

        The largest entry of `B` is 1; of an observed node that of zero."""
        k, n = self.k, len(self.parent)
        states, own = np.arange(k), self.shape.own[:, None]
        at = self.home[:, None] * k + states
        total = np.bincount(at.ravel(), log_zero.ravel(), minlength=n * k).astype(np.float64)
        total = total.reshape(n, k)
        total[states >= self.dims[:, None]] = -np.inf
        barred = np.where((own < 0) | (own == states), 0.0, -np.inf)
        used = self.is_inner[:, 0]
        message, shift = sparse.zero_messages(self.shape.parent, table, barred, used, total)
        return total, np.where(used, 1 / message, 0.0), shift

    def _bits(self, table: Floats, log_base: Floats, fold: Floats, log_ratio: Floats) -> Floats:
        """How far the product at each inner node can go from 1, in powers of two."""
        n = len(self.parent)
        far = np.where(np.isfinite(log_ratio), np.abs(log_ratio), 0.0)
        bits = np.bincount(self.home, _by_row(np.maximum, far), minlength=n) / np.log(2)
        far = np.where(np.isfinite(log_base), np.abs(log_base), 0.0)
        bits += _by_row(np.maximum, far) / np.log(2)
        least = _by_row(np.minimum, np.where(self.is_inner, table, 1.0))
        message = 30.0 - np.log2(least) + np.log2(np.maximum(_by_row(np.maximum, fold), 1.0))
        message[0] = 0.0
        return np.asarray(bits + np.bincount(self.parent, message, minlength=n))

    def counts(self, loaded: LoadedModel, pairs: Floats, leaves: Floats) -> Floats:
        """Flat counts from those of touched nodes, which `pairs` and `leaves` hold.

        Where `u` is not touched its pair with the node above is `B_u(i) P(i | j) q(j) / m0_u(j)`:
        linear in the posterior `q` above, whose sum over those samples is all that is needed. Zeros
        are what the ones of a leaf leave of the posteriors above it."""
        found = loaded.message * pairs.reshape(loaded.message.shape)
        total = np.einsum("uij->ui", found)
        share = loaded.default[:, :, None] * loaded.message
        sparse.spread(self.shape.parent, share, found, total)
        flat = np.zeros(self.size)
        flat[self.inner_at[self.is_inner]] = found[self.is_inner]
        ones = leaves[self.leaves]
        flat[self.one_at[self.is_leaf]] = ones[self.is_leaf]
        flat[self.zero_at[self.is_leaf]] = np.maximum(total[self.home] - ones, 0.0)[self.is_leaf]
        return flat


def _by_row(ufunc: np.ufunc, array: Floats) -> Floats:
    """A reduction of the few entries of each of many rows, column by column: rows one by one are
    ten times slower."""
    return np.asarray(ufunc.reduce(np.ascontiguousarray(array.reshape(len(array), -1).T), axis=0))


class SparseBackend:
    """Queries to one model, by `sparse_kernels`."""

    def __init__(self, layout: SparseLayout, loaded: LoadedModel) -> None:
        self.layout, self.loaded = layout, loaded
        self._own = threading.local()

    @classmethod
    def of(cls, model: Distribution) -> SparseBackend | None:
        """For one model; None where zeros prevent ratios to zero."""
        layout = model.layouts.get("sparse")
        if layout is None:
            layout = model.layouts["sparse"] = SparseLayout(RootedTree.of(model))
        loaded = layout.load(model.flat)
        return None if loaded is None else cls(layout, loaded)

    def log_likelihood(self, samples: Ones, n_jobs: int) -> Floats:
        """`(n,)`."""
        return self._pieces(LIKELIHOOD, samples, n_jobs)[1]

    def posteriors(self, samples: Ones, asked: Ints, n_jobs: int) -> tuple[Floats, Floats]:
        """Of inner nodes, side by side, NaN where impossible; and the log-likelihood."""
        layout = self.layout
        values = np.full((len(samples), len(layout.nodes) * layout.k), np.nan)
        logs = self._pieces(POSTERIORS, samples, n_jobs, values=values)[1]
        place, states = layout.place[asked][:, None], np.arange(layout.k)
        columns = (place * layout.k + states)[states < layout.dims[place]]
        if not np.array_equal(columns, np.arange(values.shape[1])):
            values = values[:, columns]
        return values, logs

    def sums(self, samples: Ones, weights: Floats, n_jobs: int) -> tuple[Floats, Floats, Floats]:
        """`pairs`, `leaves` and the log-likelihood of every sample; see `SparseLayout.counts`."""
        parts, logs = self._pieces(COUNTS, samples, n_jobs, weights)
        pairs, leaves = self._blank(COUNTS)
        for pair, leaf in parts:
            pairs += pair
            leaves += leaf
        return pairs, leaves, logs

    def squares(self, samples: Ones, weights: Floats, nodes: Ints, n_jobs: int) -> Floats:
        """`sum_n w q^2` over the posteriors of inner nodes, side by side; a sample of probability
        zero adds nothing."""
        layout = self.layout
        total = self._blank(SQUARES)[0]
        for part, _ in self._pieces(SQUARES, samples, n_jobs, weights)[0]:
            total += part
        place = layout.place[nodes]
        inside = np.arange(layout.k) < layout.dims[place][:, None]
        return np.asarray(total.reshape(-1, layout.k)[place][inside])

    def messages(
        self,
        model: Distribution,
        samples: Ones,
        edges: Ints,
        out: NDArray[np.float32],
        place: Ints,
        marginals: Sequence[Floats] | None,
        n_jobs: int,
    ) -> Floats:
        """Write messages of the model along edges between inner nodes, as `DenseBackend.messages`
        does; those of impossible samples are not written. Returns the log-likelihood."""
        request = self._request(model, edges, out.shape[1], place, marginals)
        return self._pieces(MESSAGES, samples, n_jobs, request=request, out=out)[1]

    def _request(
        self,
        model: Distribution,
        edges: Ints,
        width: int,
        place: Ints,
        marginals: Sequence[Floats] | None,
    ) -> Request:
        """What the kernel needs to write messages."""
        layout, loaded = self.layout, self.loaded
        is_up, weight = message_weights(model, edges, marginals)
        source, target = layout.place[edges].T
        k, up = layout.k, np.full(len(layout.nodes), -1)
        weight = np.pad(weight, ((0, 0), (0, max(0, k - weight.shape[1]))))[:, :k]
        up[source[is_up]] = np.flatnonzero(is_up)
        weight *= np.where(is_up[:, None], loaded.base[source], loaded.fold[target])
        default = weight * loaded.default[source]
        by_sum = marginals is not None
        total = default.sum(axis=1) if by_sum else default.max(axis=1, initial=0.0)
        default *= (is_up / np.where(total > 1e-300, total, 1.0))[:, None]
        needed = layout.place[ancestors(model, edges[~is_up, 0])]
        return Request(
            needed,
            up,
            np.ascontiguousarray(target[~is_up]),
            np.flatnonzero(~is_up),
            np.ascontiguousarray(weight),
            default[:, int(by_sum) : width + int(by_sum)].astype(np.float32),
            place,
            by_sum,
        )

    def _blank(self, task: int) -> tuple[Floats, Floats]:
        """Sums over no samples."""
        numbers = self.loaded.numbers
        if task == COUNTS:
            return np.zeros_like(numbers.message), np.zeros_like(numbers.ratio)
        return np.zeros((1, numbers.begin.size if task == SQUARES else 0)), np.empty((0, 0))

    def _pieces(
        self,
        task: int,
        samples: Ones,
        n_jobs: int,
        weights: Floats | None = None,
        values: Floats | None = None,
        request: Request | None = None,
        out: NDArray[np.float32] | None = None,
    ) -> tuple[list[tuple[Floats, Floats]], Floats]:
        """The sums of every piece of the samples, and the log-likelihoods."""
        numbers, logs = self.loaded.numbers, np.empty(len(samples))
        shape, k = self.layout.shape, self.layout.k
        states: Any = (0.0, 0.0) if k == 2 else np.zeros(k)
        asked = self._all_nodes() if request is None else request
        to = np.empty((0, 0, 0), dtype=np.float32) if out is None else out
        weight = np.empty(0) if weights is None else weights

        def work(start: int, stop: int) -> tuple[Floats, Floats]:
            if not hasattr(self._own, "work"):
                self._own.work = sparse.make_sparse_buffers(shape, k)
                self._own.scratch = np.empty((1, numbers.begin.size))
            pairs, leaves = self._blank(task)
            sparse.run_sparse(
                states,
                task,
                samples.indptr[start : stop + 1],
                samples.leaf,
                weight[start:stop],
                shape,
                numbers,
                self._own.work,
                asked,
                pairs,
                leaves,
                self._own.scratch if values is None else values[start:stop],
                start,
                to,
                logs[start:stop],
            )
            return pairs, leaves

        size = 8 * (numbers.message.size + numbers.ratio.size)
        pieces = min(PIECES, max(4, PIECE_BYTES // size)) if task == COUNTS else PIECES
        span = max(LEAST_PIECE, -(-len(samples) // pieces))
        return parallel(work, len(samples), n_jobs, span), logs + self.loaded.shift

    def _all_nodes(self) -> Request:
        """The posteriors of all inner nodes, and no messages."""
        nothing, n = np.empty(0, dtype=np.int64), len(self.layout.nodes)
        nowhere, numbers = np.empty((0, 0), dtype=np.float32), np.empty((0, 0))
        none = (nothing, nothing, nothing, numbers, nowhere, nothing)
        return Request(np.arange(n), *none, by_sum=False)
