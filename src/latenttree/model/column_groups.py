"""E-step where every variable is a group of codes, at the cost of the codes that occur.

Relative to "none of the codes", the likelihood of a column group given the state `j` is

    P(x | j) / P(none | j) = s_j prod_(codes c in x) o_cj,    o = q / (1 - q),

so the codes and "some of them" are leaves of two states to the sparse kernels, with CPTs `(1, o_c)`
and `(P(none), s P(none))`, which need not sum to one. These leaves are the stored coordinates of a
table, so that its rows are read without conversion.
"""

from __future__ import annotations

import numpy as np

from latenttree.data.chunk import Chunk
from latenttree.engine.arrays import Floats
from latenttree.model.emissions import MultiHot
from latenttree.model.inference.evidence import Ones
from latenttree.model.inference.sparse import RootedTree, SparseBackend, SparseLayout
from latenttree.model.tree_model import TreeModel

Statistics = dict[int, Floats]
"""Sums of the statistics of emissions, `(T, n_states)`, by node."""


class ColumnGroups:
    """The column groups of a model, as leaves of the sparse kernels."""

    def __init__(self, model: TreeModel) -> None:
        self.model, p = model, model.tree.n_observed
        widths = [len(_group(model, v).codes) for v in range(p)]
        self.offsets = np.concatenate([[0], np.cumsum(np.array(widths) + 1)])
        self.k = model.dims[model.parents[:p]]
        self.first = int(self.k.sum())  # a row of ones for each

    @classmethod
    def of(cls, model: TreeModel) -> ColumnGroups | None:
        """Of a model all of whose variables are groups of codes; else None."""
        p = model.tree.n_observed
        hot = (isinstance(model.emissions.get(v), MultiHot) for v in range(p))
        return cls(model) if model.root >= p and all(hot) else None

    @property
    def layout(self) -> SparseLayout:
        """Of the tree whose leaves are "some" and the codes of each group."""
        if "groups" not in self.model.layouts:
            self.model.layouts["groups"] = self._layout()
        layout: SparseLayout = self.model.layouts["groups"]
        return layout

    def _layout(self) -> SparseLayout:
        model, p, size = self.model, self.model.tree.n_observed, int(self.offsets[-1])
        group = np.repeat(np.arange(p), np.diff(self.offsets))
        above = model.parents[p:]
        parents = np.concatenate([model.parents[group], above])
        parents = np.where(parents < 0, -1, parents - p + size)
        dims = np.concatenate([np.full(size, 2), model.dims[p:]])
        hidden = model.order[model.order >= p] - p + size
        order = np.concatenate([hidden, np.arange(size)])
        return SparseLayout(RootedTree(size, dims, parents, order, model.root - p + size))

    def ones(self, chunk: Chunk) -> Ones | None:
        """Samples as the kernel reads them; None where values are missing or more is known."""
        rows = chunk.stored
        if rows is None or chunk.known is not None or chunk.soft:
            return None
        if rows.shape[1] != self.offsets[-1] or not (rows.data == 1).all():
            return None
        return Ones.of(rows)

    def backend(self) -> SparseBackend | None:
        """The propagation of the model; None where numbers are too small for it."""
        model = self.model
        parts = [
            leaf_tables(_group(model, v), int(self.k[v])) for v in range(model.tree.n_observed)
        ]
        leaves = np.concatenate([part.ravel() for part in parts])
        if not (leaves > 0).all():
            return None
        loaded = self.layout.load(np.concatenate([leaves, model.flat[self.first :]]))
        return None if loaded is None else SparseBackend(self.layout, loaded)

    def split(self, counts: Floats) -> tuple[Floats, Statistics]:
        """Counts of the CPTs of the model, and those of "some" and of codes as statistics."""
        at, statistics, leaves = 0, Statistics(), []
        for v in range(self.model.tree.n_observed):
            k, width = int(self.k[v]), int(self.offsets[v + 1] - self.offsets[v])
            part = counts[at : at + 2 * k * width].reshape(width, 2, k)
            at += part.size
            some = part[0, 1]
            none = part[0, 0]
            statistics[v] = np.concatenate([(none + some)[None], none[None], part[1:, 1]])
            leaves.append(none + some)
        return np.concatenate([*leaves, counts[at:]]), statistics

    def sums(self, chunk: Chunk) -> Statistics | None:
        """Sums of the statistics `(T, 1)` of every group; None where values are missing."""
        samples = self.ones(chunk)
        if samples is None:
            return None
        weights = None
        if chunk.weights is not None:
            weights = np.repeat(chunk.weights, np.diff(samples.indptr))
        counts = np.bincount(samples.leaf, weights, int(self.offsets[-1]))
        total = len(chunk) if chunk.weights is None else float(chunk.weights.sum())
        ends = zip(self.offsets[:-1].tolist(), self.offsets[1:].tolist(), strict=True)
        return {
            v: np.concatenate([[total, total - counts[a]], counts[a + 1 : b]])[:, None]
            for v, (a, b) in enumerate(ends)
        }


def leaf_tables(group: MultiHot, k: int) -> Floats:
    """`(1 + d, 2, k)`: absent and present, of "some" and then of every code."""
    row, _, odds = np.split(group.natural(), [1, 2])
    found = np.ones((1 + len(odds), 2, k))
    found[0, 0], found[0, 1] = group.none, np.exp(row[0])
    found[1:, 1] = np.exp(odds)
    return found


def _group(model: TreeModel, v: int) -> MultiHot:
    group = model.emissions[v]
    assert isinstance(group, MultiHot)
    return group
