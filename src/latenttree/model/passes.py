"""Passes over samples under one model: log-likelihood, expected sufficient statistics, squares."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.data.chunk import Chunk
from latenttree.engine.passes import add_totals
from latenttree.model.column_groups import ColumnGroups, Statistics
from latenttree.model.emissions import sums_of
from latenttree.model.inference import Evidence, Posteriors, counts_and_posteriors, log_likelihood
from latenttree.model.inference.queries import weighted_total
from latenttree.model.inference.sparse_forms import SparseLayout, SparsePass, sparse_rows, usable
from latenttree.model.samples import evidence_of
from latenttree.model.tree_model import TreeModel

Floats = NDArray[np.float64]


def weights_of(chunk: Chunk) -> Floats:
    """(n,) weights of the samples."""
    return np.ones(len(chunk)) if chunk.weights is None else chunk.weights


@dataclass(frozen=True, eq=False)
class LogLikelihood:
    """`sum_n w_n log P(x_n)`, as an array of one number."""

    model: TreeModel

    def start(self) -> Floats:
        """No samples."""
        return np.zeros(1)

    def add(self, total: Floats, chunk: Chunk, n_jobs: int) -> None:
        """Add the samples of a chunk."""
        groups, found = self._groups, None
        if groups is not None:
            found = groups.log_likelihood(self.model.flat, self.model, chunk, n_jobs)
        if found is None:
            found = log_likelihood(self.model, evidence_of(chunk, self.model, n_jobs), n_jobs)
        total += found.sum() if chunk.weights is None else chunk.weights @ found

    @cached_property
    def _groups(self) -> ColumnGroups | None:
        return ColumnGroups.of(self.model)


class ExpectedSums(NamedTuple):
    """Expected sufficient statistics, which add over samples.

    counts : `E[# (v = i, parent = j)]` of all CPTs, one after another, each row by row.
    statistics : `(T, n_states)` sums of the statistics of each emission, by node.
    value : the log-likelihood.
    """

    counts: Floats
    statistics: Statistics
    value: float

    def times(self, factor: float) -> ExpectedSums:
        """All sums times a factor."""
        statistics = {v: factor * x for v, x in self.statistics.items()}
        return ExpectedSums(factor * self.counts, statistics, factor * self.value)

    def plus(self, other: ExpectedSums) -> ExpectedSums:
        """The sums over the samples of both."""
        statistics = {v: x + other.statistics[v] for v, x in self.statistics.items()}
        return ExpectedSums(self.counts + other.counts, statistics, self.value + other.value)


@dataclass(frozen=True, eq=False)
class ExpectedCounts:
    """The E-step: `finish(total)` are the expected sufficient statistics of all samples.

    A total has what was counted by each kind of propagation, since untouched parts of the tree are
    added for all samples at once, in `finish`."""

    model: TreeModel

    def start(self) -> dict[str, Any]:
        """No samples."""
        return {"value": np.zeros(1), "statistics": {}}

    def add(self, total: dict[str, Any], chunk: Chunk, n_jobs: int) -> None:
        """Add the samples of a chunk."""
        weights = weights_of(chunk)
        rows = None if self._group_pass is None else self._groups.sparse_rows(chunk)
        if self._group_pass is not None and rows is not None:
            pairs, leaves, logs = self._group_pass.sums(rows, weights, n_jobs)
            part = {"groups": (pairs, leaves), "value": _one(weighted_total(weights, logs))}
        else:
            part = self._counted(chunk, evidence_of(chunk, self.model, n_jobs), weights, n_jobs)
        add_totals(total, part)

    def finish(self, total: dict[str, Any]) -> ExpectedSums:
        """The sums of a total."""
        counts, statistics = np.zeros(self.model.flat.size), dict(total["statistics"])
        if "dense" in total:
            counts += total["dense"]
        if "sparse" in total:
            assert self._sparse_pass is not None
            counts += self._sparse_pass.layout.counts(self._sparse_pass.loaded, *total["sparse"])
        if "groups" in total:
            assert self._group_pass is not None
            flat = self._group_pass.layout.counts(self._group_pass.loaded, *total["groups"])
            part, found = self._groups.split(flat)
            counts += part
            add_totals(statistics, found)
        return ExpectedSums(counts, statistics, float(total["value"][0]))

    def _counted(
        self, chunk: Chunk, evidence: Evidence, weights: Floats, n_jobs: int
    ) -> dict[str, Any]:
        model, sparse = self.model, None
        if not evidence.soft and not self._parents and usable(model, evidence.codes):
            sparse = self._sparse_pass
        if sparse is not None:
            pairs, leaves, logs = sparse.sums(sparse_rows(evidence.codes), weights, n_jobs)
            return {"sparse": (pairs, leaves), "value": _one(weighted_total(weights, logs))}
        counts, value, found = counts_and_posteriors(
            model, evidence, weights, self._parents, n_jobs
        )
        dense = np.concatenate([c.ravel() for c in counts])
        statistics = self._statistics(chunk, found, n_jobs) if self._parents else {}
        return {"dense": dense, "statistics": statistics, "value": _one(value)}

    def _statistics(self, chunk: Chunk, found: Posteriors, n_jobs: int) -> Statistics:
        """Sums of the statistics of every emission, weighted by the posteriors of its neighbour."""
        weighted = dict(zip(found.nodes.tolist(), found.values, strict=True))
        if chunk.weights is not None:
            weighted = {u: x * chunk.weights[:, None] for u, x in weighted.items()}
        emissions = self.model.emissions
        by_variable = {v: weighted[int(self.model.parents[v])] for v in emissions}
        return sums_of(emissions, chunk.arrays, by_variable, n_jobs)

    @cached_property
    def _parents(self) -> list[int]:
        """Neighbours of the variables with emissions."""
        return sorted({int(self.model.parents[v]) for v in self.model.emissions})

    @cached_property
    def _groups(self) -> Any:
        return ColumnGroups.of(self.model)

    @cached_property
    def _group_pass(self) -> SparsePass | None:
        loaded = None if self._groups is None else self._groups.load(self.model.flat, self.model)
        return None if loaded is None else SparsePass(self._groups.layout, loaded)

    @cached_property
    def _sparse_pass(self) -> SparsePass | None:
        layouts = self.model.layouts
        if "sparse" not in layouts:
            layouts["sparse"] = SparseLayout(self.model)
        loaded = layouts["sparse"].load(self.model.flat)
        return None if loaded is None else SparsePass(layouts["sparse"], loaded)


def _one(value: float) -> Floats:
    return np.array([value])


@dataclass(frozen=True, eq=False)
class StatisticSums:
    """Sums of the statistics `(T, 1)` of every emission, whatever the hidden states, and the total
    weight; `finish(total)` are their means."""

    model: TreeModel

    def start(self) -> dict[str, Any]:
        """No samples."""
        return {"statistics": {}, "weight": np.zeros(1)}

    def add(self, total: dict[str, Any], chunk: Chunk, n_jobs: int) -> None:
        """Add the samples of a chunk."""
        if not self.model.emissions:
            return
        weights, groups = weights_of(chunk), ColumnGroups.of(self.model)
        found = None if groups is None else groups.sums(chunk)
        if found is None:
            columns = dict.fromkeys(self.model.emissions, weights[:, None])
            found = sums_of(self.model.emissions, chunk.arrays, columns, n_jobs)
        add_totals(total, {"statistics": found, "weight": _one(float(weights.sum()))})

    def finish(self, total: dict[str, Any]) -> Statistics:
        """Means `(T,)` over the samples."""
        return {v: part[:, 0] / total["weight"] for v, part in total["statistics"].items()}
