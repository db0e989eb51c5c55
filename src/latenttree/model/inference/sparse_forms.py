"""Models, counts and samples in the form that `sparse_kernels` reads and fills."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from latenttree.engine import parallel
from latenttree.errors import DataError
from latenttree.model.inference import sparse_kernels as sparse
from latenttree.model.inference import sparse_two_states as two
from latenttree.model.inference.sparse_kernels import (
    COUNTS,
    LIKELIHOOD,
    POSTERIORS,
    Numbers,
    Shape,
)
from latenttree.model.tree_model import TreeModel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_BITS = 500.0
"""A product that may leave 2^-500 .. 2^500 is kept as a logarithm."""

LEAST_ENTRY = 2.0**-200
"""Models with smaller entries in CPTs of inner nodes are left to the dense kernels."""

LEAST_PIECE = 128
PIECES = 32
PIECE_BYTES = 1 << 28
"""Memory for partial counts: with many variables they are summed in fewer pieces, 4 at least."""


class RootedModel(NamedTuple):
    """A tree as a layout needs it: `n_observed` observed nodes first, then hidden ones."""

    n_observed: int
    dims: Ints  # states of each node
    parents: Ints  # -1 at the root
    order: Ints  # parents first
    root: int

    @classmethod
    def of(cls, model: TreeModel) -> RootedModel:
        """The rooted tree of a model."""
        return cls(model.tree.n_observed, model.dims, model.parents, model.order, model.root)


class LoadedModel(NamedTuple):
    """A model laid out for the kernel."""

    numbers: Numbers
    message: Floats  # (H, k, k) as `Numbers.message`
    default: Floats  # (H, k) `B` where LOGS, and the indicator of the own default state
    leaf: Floats  # entries of leaves, laid out as `Numbers.ratio`, but not divided
    shift: float  # log P of a sample of defaults alone, up to the root


class SparseLayout:
    """Places of all numbers, for models of one tree given as flat CPTs row after row.

    Parameters
    ----------
    model : any model of the tree, or the tree alone.
    default : (p,) state of each variable that samples leave out.
    """

    def __init__(self, model: TreeModel | RootedModel, default: ArrayLike = 0) -> None:
        rooted = model if isinstance(model, RootedModel) else RootedModel.of(model)
        self.p, dims, parents = rooted.n_observed, rooted.dims, rooted.parents
        self.default = np.broadcast_to(np.asarray(default, dtype=np.int64), self.p)
        self.nodes = _inner_nodes(rooted)
        self.place = np.full(len(dims), -1, dtype=np.int64)
        self.place[self.nodes] = np.arange(len(self.nodes))
        self.k = int(dims[self.nodes].max())
        width = np.where(parents < 0, 1, dims[parents])
        ends = np.cumsum(dims * width)
        self.size = int(ends[-1])
        self._place_inner(dims, width, ends - dims * width)
        self.leaves = np.flatnonzero(self.place[: self.p] < 0)
        start = self._place_leaves(dims, width, ends - dims * width)
        home = self.place[np.maximum(parents[: self.p], 0)]
        is_leaf = self.place[: self.p] < 0
        home = np.where(is_leaf, home, self.place[: self.p])
        self.home = home[self.leaves]
        observed = self.nodes < self.p
        own = np.where(observed, self.default[np.minimum(self.nodes, self.p - 1)], -1)
        self.parent = self.place[
            np.where(parents[self.nodes] < 0, rooted.root, parents[self.nodes])
        ]
        start = np.where(is_leaf, start, sparse.INNER)
        above, home32, begin = (x.astype(np.uint32) for x in (self.parent, home, start))
        self.shape = Shape(above, home32, begin, own, dims[self.nodes])

    def _place_inner(self, dims: Ints, width: Ints, first: Ints) -> None:
        """`inner_at` `(H, k, k)`: entries of inner nodes in the flat CPTs; padding at a zero."""
        i, j = np.indices((self.k, self.k))
        v = self.nodes[:, None, None]
        self.is_inner = (i < dims[v]) & (j < width[v])
        self.inner_at = np.where(self.is_inner, first[v] + i * width[v] + j, self.size)

    def _place_leaves(self, dims: Ints, width: Ints, first: Ints) -> Ints:
        """`leaf_at`: entries of leaves, `(d + 1, k)` each; the unknown and padding at a one."""
        count = (dims[self.leaves] + 1) * self.k
        start = np.zeros(self.p, dtype=np.int64)
        start[self.leaves] = np.cumsum(count) - count
        v = np.repeat(self.leaves, count)
        self.leaf_of = np.repeat(np.arange(len(self.leaves)), count)
        x, j = np.divmod(np.arange(len(v)) - start[v], self.k)
        self.is_leaf = (x < dims[v]) & (j < width[v])
        self.leaf_at = np.where(self.is_leaf, first[v] + x * width[v] + j, self.size + 1)
        self.is_unknown = x == dims[v]
        self.is_default = x == self.default[v]
        self.column = self.leaf_of * self.k + j
        return start

    def load(self, flat: Floats) -> LoadedModel | None:
        """The model with these flat CPTs; None where a zero prevents ratios to the default."""
        whole = np.concatenate([flat[: self.size], [0.0, 1.0]])
        table, leaf = whole[self.inner_at], whole[self.leaf_at]
        absent = leaf[self.is_default].reshape(-1, self.k)
        if np.where(self.is_inner, table, 1.0).min() < LEAST_ENTRY or not (absent > 0).all():
            return None
        with np.errstate(divide="ignore"):
            log_ratio = np.log(leaf) - np.log(absent).ravel()[self.column]
        log_base, fold, shift = self._defaults(table, np.log(absent))
        logs = self._bits(table, log_base, fold, log_ratio) > MOST_BITS
        base = np.exp(np.where(logs[:, None], 0.0, log_base))
        begin = np.where(logs[:, None], log_base, np.isfinite(log_base))
        kept = logs[self.home][self.leaf_of]
        ratio = np.where(kept, log_ratio, np.exp(np.where(kept, 0.0, log_ratio)))
        default = np.where(logs[:, None], np.exp(log_base), begin)
        own = self.shape.own[:, None]
        default = np.where((own < 0) | (own == np.arange(self.k)), default, 0.0)
        message = table * fold[:, None, :]
        message[0] = table[0]
        message *= base[:, :, None]
        numbers = Numbers(message.reshape(len(table), -1), begin, ratio, self._kinds(logs))
        return LoadedModel(numbers, message, default, leaf, shift)

    def _kinds(self, logs: NDArray[np.bool_]) -> NDArray[np.uint8]:
        kind = sparse.OWN * (self.shape.own >= 0) + sparse.LOGS * logs
        return np.asarray(kind + sparse.PARENT_LOGS * logs[self.parent], dtype=np.uint8)

    def _defaults(self, table: Floats, log_absent: Floats) -> tuple[Floats, Floats, float]:
        """`log B_u(j)`, `1 / m0_u(j)` and the logarithm of the scale of `B`.

        The largest entry of `B` is 1; of an observed node that of its default state."""
        k, n = self.k, len(self.parent)
        states, own = np.arange(k), self.shape.own[:, None]
        at = self.home[:, None] * k + states
        total = np.bincount(at.ravel(), log_absent.ravel(), minlength=n * k).astype(np.float64)
        total = total.reshape(n, k)
        total[states >= self.shape.dims[:, None]] = -np.inf
        barred = np.where((own < 0) | (own == states), 0.0, -np.inf)
        used = self.is_inner[:, 0]
        message, shift = sparse.defaults(self.shape.parent, table, barred, used, total)
        return total, np.where(used, 1 / message, 0.0), shift

    def _bits(self, table: Floats, log_base: Floats, fold: Floats, log_ratio: Floats) -> Floats:
        """How far the product at each inner node can go from 1, in powers of two."""
        shape, n = self.shape, len(self.parent)
        far = np.where(np.isfinite(log_ratio), np.abs(log_ratio), 0.0)
        bits = np.zeros(n)
        if len(self.leaves):
            most = np.maximum.reduceat(far, shape.start[self.leaves]) / np.log(2)
            bits += np.bincount(self.home, most, minlength=n)
        far = np.where(np.isfinite(log_base), np.abs(log_base), 0.0)
        bits += _by_row(np.maximum, far) / np.log(2)
        least = _by_row(np.minimum, np.where(self.is_inner, table, 1.0))
        message = 30.0 - np.log2(least) + np.log2(np.maximum(_by_row(np.maximum, fold), 1.0))
        message[0] = 0.0
        return bits + np.bincount(self.parent, message, minlength=n)

    def counts(self, loaded: LoadedModel, pairs: Floats, leaves: Floats) -> Floats:
        """Flat counts from those of touched nodes, which `pairs` and `leaves` hold.

        Where `u` is not touched its pair with the node above is `B_u(i) P(i | j) q(j) / m0_u(j)`:
        linear in the posterior `q` above, whose sum over those samples is all that is needed."""
        found = loaded.message * pairs.reshape(loaded.message.shape)
        total = np.einsum("uij->ui", found)
        share = loaded.default[:, :, None] * loaded.message
        sparse.spread(self.shape.parent, share, found, total)
        flat = np.zeros(self.size)
        flat[self.inner_at[self.is_inner]] = found[self.is_inner]
        counted = self._leaf_counts(loaded, leaves, total)
        flat[self.leaf_at[self.is_leaf]] = counted[self.is_leaf]
        return flat

    def _leaf_counts(self, loaded: LoadedModel, leaves: Floats, total: Floats) -> Floats:
        """The default has what the other states leave; the unknown is spread as the CPT says."""
        size = len(self.leaves) * self.k
        others = np.bincount(self.column, leaves, minlength=size)
        rest = np.maximum(total[self.home].ravel() - others, 0.0)
        counted = np.where(self.is_default, rest[self.column], leaves)
        if not leaves[self.is_unknown].any():
            return counted
        unknown = np.bincount(self.column[self.is_unknown], leaves[self.is_unknown], minlength=size)
        return np.asarray(counted + loaded.leaf * unknown[self.column])


def _by_row(ufunc: np.ufunc, array: Floats) -> Floats:
    """A reduction of the few entries of each of many rows, column by column: rows one by one are
    ten times slower."""
    return np.asarray(ufunc.reduce(np.ascontiguousarray(array.reshape(len(array), -1).T), axis=0))


def _inner_nodes(tree: RootedModel) -> Ints:
    """The root and all nodes with children, parents first."""
    inner = np.zeros(len(tree.dims), dtype=bool)
    inner[tree.parents[tree.parents >= 0]] = True
    inner[tree.root] = True
    return np.asarray(tree.order[inner[tree.order]])


class SparseRows(NamedTuple):
    """Samples by the variables that do not have their default."""

    indptr: Ints  # (n + 1,)
    leaf: NDArray[np.int32]  # variables
    state: NDArray[np.int32]  # their states, the number of states where unknown; or the only one

    def __len__(self) -> int:
        return len(self.indptr) - 1


def sparse_rows(rows: Any) -> SparseRows:
    """CSR rows of zeros and ones; nothing is copied but the row pointers."""
    leaf = np.asarray(rows.indices, dtype=np.int32)
    return SparseRows(np.asarray(rows.indptr, dtype=np.int64), leaf, np.ones(1, dtype=np.int32))


def departures(codes: NDArray[Any], default: Ints, dims: Ints) -> SparseRows:
    """The values of `(n, p)` codes, -1 where unknown, that are not the default. O(n p)."""
    row, leaf = np.nonzero(codes != default)
    state = codes[row, leaf].astype(np.int32)
    state = np.where(state < 0, dims[leaf], state).astype(np.int32)
    if len(state) == 1:  # one alone would be taken for all
        state = np.repeat(state, 2)
    indptr = np.searchsorted(row, np.arange(len(codes) + 1))
    return SparseRows(indptr.astype(np.int64), leaf.astype(np.int32), state)


def usable(model: TreeModel, rows: Any) -> bool:
    """Whether rows are CSR rows of binary variables, for which the sparse kernels are faster."""
    if not issparse(rows):
        return False
    p = model.tree.n_observed
    if rows.shape[1] != p:
        raise DataError(
            f"rows have {rows.shape[1]} variables, the model {p}",
            "give one column for each variable of the model",
            value=rows.shape[1],
        )
    return bool((model.dims[:p] == 2).all())


class SparsePass:
    """Runs the kernel over pieces of the samples, which do not depend on the number of threads."""

    def __init__(self, layout: SparseLayout, loaded: LoadedModel) -> None:
        self.layout, self.loaded = layout, loaded
        self._own = threading.local()

    @classmethod
    def of(cls, model: TreeModel) -> SparsePass | None:
        """For one model; None where the dense kernels must be used."""
        layout = SparseLayout(model)
        loaded = layout.load(np.concatenate([t.ravel() for t in model.cpts]))
        return None if loaded is None else cls(layout, loaded)

    def log_likelihood(self, samples: SparseRows, n_jobs: int) -> Floats:
        """`(n,)`."""
        logs = np.empty(len(samples))
        self._pieces(LIKELIHOOD, samples, np.empty(0), np.empty((1, 0)), logs, n_jobs)
        return logs + self.loaded.shift

    def posteriors(self, samples: SparseRows, n_jobs: int) -> tuple[Floats, Floats]:
        """Of all inner nodes, `(n, H k)`, NaN where impossible; and the log-likelihood."""
        logs = np.empty(len(samples))
        values = np.full((len(samples), len(self.layout.nodes) * self.layout.k), np.nan)
        self._pieces(POSTERIORS, samples, np.ones(len(samples)), values, logs, n_jobs)
        return values, logs + self.loaded.shift

    def sums(
        self, samples: SparseRows, weights: Floats, n_jobs: int
    ) -> tuple[Floats, Floats, Floats]:
        """`pairs`, `leaves` and the log-likelihood of every sample."""
        logs = np.empty(len(samples))
        parts = self._pieces(COUNTS, samples, weights, np.empty((1, 0)), logs, n_jobs)
        pairs, leaves = self._blank()
        for pair, leaf in parts:
            pairs += pair
            leaves += leaf
        return pairs, leaves, logs + self.loaded.shift

    def _blank(self) -> tuple[Floats, Floats]:
        numbers = self.loaded.numbers
        return np.zeros_like(numbers.message), np.zeros_like(numbers.ratio)

    def _pieces(
        self,
        task: int,
        samples: SparseRows,
        weights: Floats,
        values: Floats,
        logs: Floats,
        jobs: int,
    ) -> list[tuple[Floats, Floats]]:
        numbers, nothing = self.loaded.numbers, (np.empty((0, 0)), np.empty(0))

        shape, k = self.layout.shape, self.layout.k
        kernel = two.run if k == 2 else partial(sparse.run, k)

        def work(start: int, stop: int) -> tuple[Floats, Floats]:
            if not hasattr(self._own, "scratch"):
                made = (
                    two.make_two_state_buffers(shape)
                    if k == 2
                    else sparse.make_sparse_buffers(shape, k)
                )
                self._own.scratch = made
            pairs, leaves = nothing if task == LIKELIHOOD else self._blank()
            kernel(
                task,
                samples.indptr[start : stop + 1],
                samples.leaf,
                samples.state,
                weights[start:stop],
                shape,
                numbers,
                self._own.scratch,
                pairs,
                leaves,
                values[start:stop] if task == POSTERIORS else values,
                logs[start:stop],
            )
            return pairs, leaves

        size = 8 * (numbers.message.size + numbers.ratio.size)
        pieces = min(PIECES, max(4, PIECE_BYTES // size)) if task == COUNTS else PIECES
        span = max(LEAST_PIECE, -(-len(samples) // pieces))
        return parallel(work, len(samples), jobs, span)
