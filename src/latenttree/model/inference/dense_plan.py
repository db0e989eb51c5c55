"""A model as flat arrays for the dense kernels."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.model.inference.distribution import (
    Distribution,
    inner_nodes,
    preorder,
    ranges,
    widths,
)

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# Columns of `Plan.node`.
PARENT, DIM, WIDTH, START, PLACE, MESSAGE, SOFT, OWN, LEAVES, INNER, END, CAREFUL, RESCALE = range(
    13
)

PLAIN_BITS = 900.0
"""A product whose factors together shrink it by no more than 2^-900 needs no watching."""

SLACK_BITS = 100.0
"""A node whose largest entry may be below 2^-100 is scaled to a largest entry of 1."""

RATIO_BITS = 500.0
"""A product of ratios that may leave 2^-500 .. 2^500 is a sum of logarithms."""

LEAST_ENTRY = 2.0**-200
"""Models with smaller entries in CPTs of inner nodes are not expressed in ratios to zero."""


class Plan(NamedTuple):
    """Tree, tables and places of buffers.

    A *buffered* node has rows in the lane buffers, one for each state: every node with children,
    the root, and leaves with soft evidence. The other leaves are known or unknown: a known one is
    a row of its table, an unknown one the extra row that every observed node's table ends with.

    Columns of `node`: PARENT (-1 at the root), DIM states, WIDTH states of the parent, START of
    the table, PLACE and MESSAGE first rows of the buffers (-1 without), SOFT first column of soft
    evidence (-1 without), OWN row of a buffered node's own codes (-1 without), children
    `child[LEAVES:INNER]` without and `child[INNER:END]` with a buffer, CAREFUL where a product may
    leave the range of floats and is a sum of logarithms, RESCALE where it is to be scaled.

    For CSR rows of ones, leaves are no children: the product of the leaves of a node is `base`
    times the `ratio` P(1 | j) / P(0 | j) of each one, logarithms where CAREFUL.
    """

    node: Ints  # (n_nodes, 13)
    order: Ints  # (n_buffered,) buffered nodes, parents first, subtrees together
    child: Ints  # (n_nodes - 1,)
    table: Floats  # all P(v | parent), row after row; observed nodes have one row more; then ones
    logs: Floats  # logarithms of the tables of leaves below CAREFUL nodes; empty without any
    base: Floats  # (rows,) product of P(0 | j) of the leaves, largest 1; empty for codes
    ratio: Floats  # (p, most states) of leaves; empty for codes
    shift: float  # log of the scale of `base`, to be added to log-likelihoods


class DenseLayout:
    """The part of plans that does not depend on the parameters.

    `soft` is the first column of every node with soft evidence, `buffered` are leaves that need a
    buffer besides those; `by_ones` lays out for CSR rows of ones."""

    def __init__(
        self,
        model: Distribution,
        soft: Mapping[int, int],
        buffered: Collection[int] = (),
        by_ones: bool = False,
    ) -> None:
        self.p, self.dims, self.by_ones = model.tree.n_observed, model.dims, by_ones
        self.root, self.width = model.root, widths(model)
        self.inner = inner_nodes(model)
        self.inner[[*soft, *buffered]] = True
        self._place_tables()
        # NumPy 1 gives a part of a memory map that cannot be written, and that is another kernel
        self.order = np.array(preorder(model, self.inner))
        self.node = self._nodes(np.asarray(model.parents), soft)
        self.child = self._children()
        self.leaves = np.flatnonzero(~self.inner[: self.p])

    def _place_tables(self) -> None:
        """Where the CPTs are in `Plan.table`, and the extra row of every observed node."""
        dims, width, p = self.dims, self.width, self.p
        sizes = dims * width
        sizes[:p] += width[:p]
        self.start = np.cumsum(sizes) - sizes
        self.size = int(sizes.sum() + dims.max())
        self.cpt_at = ranges(self.start, dims * width)
        self.extra = ranges((self.start + dims * width)[:p], width[:p])
        flat_ends = np.cumsum(dims * width)
        self.first = flat_ends - dims * width
        column = self.cpt_at[: flat_ends[p - 1]] - np.repeat(self.start[:p], (dims * width)[:p])
        column %= np.repeat(width[:p], (dims * width)[:p])
        begin = (self.start + dims * width)[:p]
        self.unknown_at = np.repeat(begin, (dims * width)[:p]) + column

    def _nodes(self, parents: Ints, soft: Mapping[int, int]) -> Ints:
        n = len(parents)
        node = np.full((n, 13), -1, dtype=np.int64)
        node[:, PARENT], node[:, DIM] = parents, self.dims
        node[:, START], node[:, WIDTH] = self.start, self.width
        dims, sent = self.dims[self.order], self.width[self.order]
        sent[0] = 0
        node[self.order, PLACE] = np.cumsum(dims) - dims
        node[self.order, MESSAGE] = np.cumsum(sent) - sent
        node[self.root, MESSAGE] = -1
        self.n_rows, self.n_messages = int(dims.sum()), int(sent.sum())
        node[list(soft), SOFT] = list(soft.values())
        own = np.flatnonzero(self.inner[: self.p])
        node[own, OWN] = np.arange(len(own)) if self.by_ones else own
        self.n_own = len(own) if self.by_ones else self.p
        return node

    def _children(self) -> Ints:
        """Children of every node, first those without a buffer; sets LEAVES, INNER and END."""
        node, inner = self.node, self.inner
        parent = node[:, PARENT]
        has = parent >= 0
        counts = np.bincount(parent[has], minlength=len(node))
        node[:, END] = np.cumsum(counts)
        node[:, INNER] = node[:, END] - np.bincount(parent[has & inner], minlength=len(node))
        node[:, LEAVES] = node[:, INNER] if self.by_ones else node[:, END] - counts
        return np.lexsort((inner, parent))[1:]  # the root, with -1, comes first

    # ---- parameters -------------------------------------------------------------------

    def load(
        self, flat: Floats, soft_bits: Mapping[int, float] | None = None, maximise: bool = False
    ) -> Plan | None:
        """The plan of a model; None where zeros prevent ratios. O(size of the tables).

        The extra row of an observed node is what an unknown value sends to the parent: the column
        sums, which are one, or with `maximise` the column maxima."""
        table = np.ones(self.size)
        table[self.cpt_at] = flat
        if maximise:
            table[self.extra] = 0.0
            np.maximum.at(table, self.unknown_at, flat[: len(self.unknown_at)])
        if self.by_ones:
            return self._by_ratios(flat, table)
        node = self.node.copy()
        self._watch(node, table, soft_bits or {})
        logs = self._logs(node, table) if node[:, CAREFUL].any() else np.empty(0)
        return Plan(node, self.order, self.child, table, logs, np.empty(0), np.empty((0, 0)), 0.0)

    def _watch(self, node: Ints, table: Floats, soft_bits: Mapping[int, float]) -> None:
        """Sets CAREFUL and RESCALE from how far products can fall, in bits, for any evidence.

        A leaf's message is at least the smallest positive entry of its table. So is any other
        node's, times the node's largest entry; where the table has zeros, times its smallest
        positive entry."""
        smallest = np.minimum.reduceat(table, self.start)
        bits = -np.log2(np.minimum.reduceat(np.where(table > 0, table, 1.0), self.start))
        drop, positive, parents = bits.tolist(), (smallest > 0).tolist(), node[:, PARENT].tolist()
        of_leaves = np.where(node[:, PLACE] < 0, bits, 0.0)
        fall = np.bincount(np.maximum(parents, 0), of_leaves, minlength=len(node)).tolist()
        careful, rescale = [0] * len(node), [0] * len(node)
        for v in self.order[::-1].tolist():
            low = fall[v] + soft_bits.get(v, 0.0)
            careful[v] = int(low > PLAIN_BITS)
            rescale[v] = int(low > SLACK_BITS or low + drop[v] > PLAIN_BITS)
            if parents[v] >= 0:
                slack = 0.0 if rescale[v] else low
                fall[parents[v]] += drop[v] + (slack if positive[v] else low)
        node[:, CAREFUL], node[:, RESCALE] = careful, rescale

    def _logs(self, node: Ints, table: Floats) -> Floats:
        """Logarithms of the tables of leaves below CAREFUL nodes."""
        careful = node[node[self.leaves, PARENT], CAREFUL] > 0
        some = self.leaves[careful]
        at = ranges(self.start[some], (self.dims[some] + 1) * self.width[some])
        logs = np.zeros(self.size)
        with np.errstate(divide="ignore"):
            logs[at] = np.log(table[at])
        return logs

    def _by_ratios(self, flat: Floats, table: Floats) -> Plan | None:
        """For rows of ones: leaves as ratios to zero."""
        node, order, leaves = self.node.copy(), self.order, self.leaves
        k = int(self.dims[order].max())
        inside = np.arange(k) < self.width[leaves, None]
        at = np.where(inside, self.first[leaves, None] + np.arange(k), 0)
        zero = np.where(inside, flat[at], 1.0)
        one = np.where(inside, flat[at + self.width[leaves, None] * inside], 1.0)
        bits = -np.log(np.minimum.reduceat(table, self.start)[order])
        if np.exp(-bits.max()) < LEAST_ENTRY or not (zero > 0).all():
            return None
        with np.errstate(divide="ignore"):
            ratio = np.log(one) - np.log(zero)
        place = np.empty(len(node), dtype=np.int64)
        place[order] = np.arange(len(order))
        home = place[node[leaves, PARENT]]
        base, shift = _log_bases(np.log(zero), home, self.dims[order])
        far = np.where(np.isfinite(ratio), np.abs(ratio), 0.0).max(axis=1, initial=0.0)
        reach = np.bincount(home, far, minlength=len(order))
        reach += np.where(np.isfinite(base), -base, 0.0).max(axis=1)
        reach += np.bincount(place[node[order[1:], PARENT]], bits[1:], minlength=len(order))
        careful = reach > RATIO_BITS * np.log(2)
        node[order, CAREFUL], node[order, RESCALE] = careful, 1
        base[~careful] = np.exp(base[~careful])
        ratios = np.ones((self.p, k))
        ratios[leaves] = np.where(careful[home, None], ratio, np.exp(ratio))
        own = np.arange(k) < self.dims[order, None]
        return Plan(node, order, self.child, table, np.empty(0), base[own], ratios, shift)

    # ---- counts -----------------------------------------------------------------------

    def counts(self, flat: Floats, total: Floats) -> Floats:
        """Counts laid out as the model's `flat`, from those laid out as the table.

        Unknown values are spread as the CPT says. Of rows of ones, zeros are what the ones of a
        leaf leave of the posteriors above it."""
        found = total[self.cpt_at]
        if total[self.extra].any():
            n = len(self.unknown_at)
            found[:n] += flat[:n] * total[self.unknown_at]
        if self.by_ones and len(self.leaves):
            order, leaves, k = self.order, self.leaves, self.width[self.leaves]
            row = np.repeat(np.arange(self.n_rows), np.repeat(self.width[order], self.dims[order]))
            own = found[ranges(self.first[order], (self.dims * self.width)[order])]
            above = ranges(self.node[self.node[leaves, PARENT], PLACE], k)
            zero = ranges(self.first[leaves], k)
            rest = np.bincount(row, own, self.n_rows)[above] - found[zero + np.repeat(k, k)]
            found[zero] = np.maximum(rest, 0.0)
        return found


def _log_bases(log_zero: Floats, home: Ints, dims: Ints) -> tuple[Floats, float]:
    """`log prod P(0 | j)` of the leaves of every node, `(H, k)`, with a largest entry of 0; -inf
    for states beyond a node's own. And the sum of what was subtracted."""
    n, k = len(dims), log_zero.shape[1]
    states = np.arange(k)
    at = home[:, None] * k + states
    base = np.bincount(at.ravel(), log_zero.ravel(), minlength=n * k).astype(np.float64)
    base = base.reshape(n, k)
    base[states >= dims[:, None]] = -np.inf
    top = base.max(axis=1, keepdims=True)
    return base - top, float(top.sum())
