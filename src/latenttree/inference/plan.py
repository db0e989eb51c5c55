"""A model as flat arrays for the kernels."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.model import TreeModel

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

ANY = 1e9
"""Cost of a child whose message has no lower bound: look after every product."""


class Plan(NamedTuple):
    """Tree, tables and places of buffers.

    A *buffered* node has rows in the lane buffers, one for each state: every node with children,
    the root, and leaves with soft evidence. The other leaves are known or unknown: a known one is
    a row of its table, an unknown one the extra row that every observed node's table ends with.
    """

    order: Ints  # (n_buffered,) buffered nodes, parents first
    parent: Ints  # (n_nodes,) -1 at the root
    dims: Ints  # (n_nodes,)
    indptr: Ints  # (n_nodes + 1,) children of v: child[indptr[v]:indptr[v + 1]]
    child: Ints
    table: Floats  # all P(v | parent), row after row; observed nodes have one row more
    start: Ints  # (n_nodes,) where the table of v begins
    place: Ints  # (n_nodes,) first buffer row of the states of v, -1 without a buffer
    message: Ints  # (n_nodes,) first row of the message of v to its parent
    soft: Ints  # (n_nodes,) first column of the soft evidence of v, or -1
    cost: Floats  # (n_nodes,) bits by which a message of v may shrink a product
    marginal: Floats  # P(v) of all nodes, one after another; empty unless asked for
    known: Ints  # (n_nodes,) first entry of v in `marginal`
    sizes: Ints  # buffer rows, message rows, most states, observed nodes


def make_plan(
    model: TreeModel,
    soft: Mapping[int, int],
    *,
    buffered: Collection[int] = (),
    maximise: bool = False,
    marginals: bool = False,
) -> Plan:
    """Lay a model out; `buffered` are leaves that need a buffer besides those with evidence.

    The extra row of an observed node is what an unknown value sends to the parent: the column
    sums, which are one, or with `maximise` the column maxima. O(size of the tables).
    """
    tree, parent, dims = model.tree, model.parents, model.dims
    n, p = tree.n_nodes, tree.n_observed
    inner = np.zeros(n, dtype=bool)
    inner[parent[parent >= 0]] = True
    inner[[model.root, *soft, *buffered]] = True
    width = np.where(parent < 0, 1, dims[parent])
    table, start = _flat_tables(model, maximise)
    place, rows = _places(inner, dims)
    sends = inner & (parent >= 0)
    message, message_rows = _places(sends, width)
    indptr, child = _children(parent)
    soft_place = np.full(n, -1, dtype=np.int64)
    soft_place[list(soft)] = list(soft.values())
    return Plan(
        model.order[inner[model.order]],
        parent,
        dims,
        indptr,
        child,
        table,
        start,
        place,
        message,
        soft_place,
        _costs(table, start, inner),
        np.concatenate(model.marginals) if marginals else np.empty(0),
        np.concatenate([[0], np.cumsum(dims)[:-1]]),
        np.array([rows, message_rows, dims.max(), p], dtype=np.int64),
    )


def _flat_tables(model: TreeModel, maximise: bool) -> tuple[Floats, Ints]:
    p = model.tree.n_observed
    parts: list[Floats] = []
    for v, table in enumerate(model.tables):
        parts.append(table.ravel())
        if v < p:
            parts.append(table.max(axis=0) if maximise else np.ones(table.shape[1]))
    sizes = np.array([t.size for t in model.tables], dtype=np.int64)
    sizes[:p] += [t.shape[1] for t in model.tables[:p]]
    return np.concatenate(parts), np.concatenate([[0], np.cumsum(sizes)[:-1]])


def _places(chosen: NDArray[np.bool_], sizes: Ints) -> tuple[Ints, int]:
    """First row of each chosen node when they lie one after another; -1 for the others."""
    ends = np.cumsum(np.where(chosen, sizes, 0))
    return np.where(chosen, ends - sizes, -1), int(ends[-1])


def _children(parent: Ints) -> tuple[Ints, Ints]:
    """Children of every node as rows of a sparse matrix, in increasing order."""
    counts = np.bincount(parent[parent >= 0], minlength=len(parent))
    child = np.argsort(parent, kind="stable")[1:]  # the root, with -1, comes first
    return np.concatenate([[0], np.cumsum(counts)]), child


def _costs(table: Floats, start: Ints, inner: NDArray[np.bool_]) -> Floats:
    """Bits by which a product may shrink when a child's message goes in.

    A leaf sends a row of its table. Any other node sends at least the smallest entry of its
    table times the largest of its own states (2^-32 or more), unless the table has zeros."""
    smallest = np.minimum.reduceat(table, start)
    positive = np.minimum.reduceat(np.where(table > 0, table, 1.0), start)
    bits = -np.log2(positive) + np.where(inner, 40.0, 1.0)
    return np.where(inner & (smallest <= 0), ANY, bits)
