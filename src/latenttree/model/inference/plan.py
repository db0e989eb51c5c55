"""A model as flat arrays for the kernels."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.model.tree_model import TreeModel

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# Columns of `Plan.node`.
PARENT, DIM, WIDTH, START, PLACE, MESSAGE, SOFT, LEAVES, INNER, END, CAREFUL, RESCALE, KNOWN = (
    range(13)
)

PLAIN_BITS = 900.0
"""A product whose factors together shrink it by no more than 2^-900 needs no watching."""

SLACK_BITS = 100.0
"""A node whose largest entry may be below 2^-100 is scaled to a largest entry of 1."""


class Plan(NamedTuple):
    """Tree, tables and places of buffers.

    A *buffered* node has rows in the lane buffers, one for each state: every node with children,
    the root, and leaves with soft evidence. The other leaves are known or unknown: a known one is
    a row of its table, an unknown one the extra row that every observed node's table ends with.

    Columns of `node`: PARENT (-1 at the root), DIM states, WIDTH states of the parent, START of
    the table, PLACE and MESSAGE first rows of the buffers (-1 without), SOFT first column of soft
    evidence (-1 without), children `child[LEAVES:INNER]` without and `child[INNER:END]` with a
    buffer, CAREFUL where a product may leave the range of floats, RESCALE where it is to be scaled,
    KNOWN first entry in `marginal`.
    """

    node: Ints  # (n_nodes, 13)
    order: Ints  # (n_buffered,) buffered nodes, parents first
    child: Ints  # (n_nodes - 1,)
    table: Floats  # all P(v | parent), row after row; observed nodes have one row more; then ones
    marginal: Floats  # P(v) of all nodes, one after another; empty unless asked for


def make_plan(
    model: TreeModel,
    soft: Mapping[int, int],
    soft_bits: Mapping[int, float],
    *,
    buffered: Collection[int] = (),
    maximise: bool = False,
    marginals: bool = False,
) -> Plan:
    """Lay a model out; `buffered` are leaves that need a buffer besides those with evidence.

    The extra row of an observed node is what an unknown value sends to the parent: the column
    sums, which are one, or with `maximise` the column maxima. O(size of the tables).
    """
    parent, dims, n = model.parents, model.dims, model.tree.n_nodes
    inner = np.zeros(n, dtype=bool)
    inner[parent[parent >= 0]] = True
    inner[[model.root, *soft, *buffered]] = True
    table, start = _flat_tables(model, maximise)
    node = np.empty((n, 13), dtype=np.int64)
    node[:, PARENT], node[:, DIM], node[:, START] = parent, dims, start
    node[:, WIDTH] = np.where(parent < 0, 1, dims[parent])
    node[:, PLACE] = _places(inner, dims)
    node[:, MESSAGE] = _places(inner & (parent >= 0), node[:, WIDTH])
    node[:, SOFT] = -1
    node[list(soft), SOFT] = list(soft.values())
    node[:, KNOWN] = np.cumsum(dims) - dims
    child = _children(node, inner)
    # NumPy 1 gives a part of a memory map that cannot be written, and that is another kernel
    order = np.asarray(model.order)[inner[model.order]]
    _watch(node, order, child, table, soft_bits)
    return Plan(
        node, order, child, table, np.concatenate(model.marginals) if marginals else np.empty(0)
    )


def _flat_tables(model: TreeModel, maximise: bool) -> tuple[Floats, Ints]:
    p = model.tree.n_observed
    parts: list[Floats] = []
    for v, table in enumerate(model.cpts):
        parts.append(table.ravel())
        if v < p:
            parts.append(table.max(axis=0) if maximise else np.ones(table.shape[1]))
    parts.append(np.ones(model.dims.max()))
    sizes = np.array([t.size for t in model.cpts], dtype=np.int64)
    sizes[:p] += [t.shape[1] for t in model.cpts[:p]]
    return np.concatenate(parts), np.cumsum(sizes) - sizes


def _places(chosen: NDArray[np.bool_], sizes: Ints) -> Ints:
    """First row of each chosen node when they lie one after another; -1 for the others."""
    return np.where(chosen, np.cumsum(np.where(chosen, sizes, 0)) - sizes, -1)


def _children(node: Ints, inner: NDArray[np.bool_]) -> Ints:
    """Children of every node, first those without a buffer; sets LEAVES, INNER and END."""
    parent = node[:, PARENT]
    has = parent >= 0
    counts = np.bincount(parent[has], minlength=len(node))
    node[:, END] = np.cumsum(counts)
    node[:, LEAVES] = node[:, END] - counts
    node[:, INNER] = node[:, END] - np.bincount(parent[has & inner], minlength=len(node))
    return np.lexsort((inner, parent))[1:]  # the root, with -1, comes first


def _watch(
    node: Ints, order: Ints, child: Ints, table: Floats, soft_bits: Mapping[int, float]
) -> None:
    """Sets CAREFUL and RESCALE from how far products can fall, in bits, for any evidence.

    A leaf's message is at least the smallest positive entry of its table. So is any other node's,
    times the node's largest entry; where the table has zeros, times its smallest positive entry.
    """
    starts = node[:, START]
    smallest = np.minimum.reduceat(table, starts)
    bits = -np.log2(np.minimum.reduceat(np.where(table > 0, table, 1.0), starts))
    drop, positive, parents = bits.tolist(), (smallest > 0).tolist(), node[:, PARENT].tolist()
    fall = np.bincount(
        np.maximum(parents, 0), np.where(node[:, PLACE] < 0, bits, 0.0), minlength=len(node)
    ).tolist()
    careful, rescale = [0] * len(node), [0] * len(node)
    for v in order[::-1].tolist():
        low = fall[v] + soft_bits.get(v, 0.0)
        careful[v] = int(low > PLAIN_BITS)
        rescale[v] = int(low > SLACK_BITS or low + drop[v] > PLAIN_BITS)
        if parents[v] >= 0:
            slack = 0.0 if rescale[v] else low
            fall[parents[v]] += drop[v] + (slack if positive[v] else low)
    node[:, CAREFUL], node[:, RESCALE] = careful, rescale
