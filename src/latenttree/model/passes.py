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
from latenttree.model.inference import Evidence, Posteriors
from latenttree.model.inference.evidence import Ones
from latenttree.model.inference.interface import weighted_total
from latenttree.model.inference.sparse import SparseBackend
from latenttree.model.samples import evidence_of
from latenttree.model.tree_model import TreeModel

Floats = NDArray[np.float64]


def weights_of(chunk: Chunk) -> Floats:
    """(n,) weights of the samples."""
    return np.ones(len(chunk)) if chunk.weights is None else chunk.weights


@dataclass(frozen=True, eq=False)
class _OfModel:
    """A pass under one model; one of column groups alone has a propagation of its own."""

    model: TreeModel

    @cached_property
    def _groups(self) -> ColumnGroups | None:
        return ColumnGroups.of(self.model)

    @cached_property
    def _group_backend(self) -> SparseBackend | None:
        return None if self._groups is None else self._groups.backend()


@dataclass(frozen=True, eq=False)
class LogLikelihood(_OfModel):
    """`sum_n w_n log P(x_n)`, as an array of one number."""

    def start(self) -> Floats:
        """No samples."""
        return np.zeros(1)

    def add(self, total: Floats, chunk: Chunk, n_jobs: int) -> None:
        """Add the samples of a chunk."""
        rows = None if self._groups is None else self._groups.ones(chunk)
        backend = None if rows is None else self._group_backend
        if rows is not None and backend is not None:
            found = backend.log_likelihood(rows, n_jobs)
        else:
            found = self.model.log_likelihood(evidence_of(chunk, self.model, n_jobs), n_jobs)
        total += found.sum() if chunk.weights is None else chunk.weights @ found


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
class ExpectedCounts(_OfModel):
    """The E-step: `finish(total)` are the expected sufficient statistics of all samples.

    A total has what was counted by each kind of propagation, since untouched parts of the tree are
    added for all samples at once, in `finish`."""

    def start(self) -> dict[str, Any]:
        """No samples."""
        return {"value": np.zeros(1), "statistics": {}}

    def add(self, total: dict[str, Any], chunk: Chunk, n_jobs: int) -> None:
        """Add the samples of a chunk."""
        weights, backend = weights_of(chunk), self._group_backend
        rows = None if self._groups is None else self._groups.ones(chunk)
        if backend is not None and rows is not None:
            part = _touched("groups", backend, rows, weights, n_jobs)
        else:
            part = self._counted(chunk, evidence_of(chunk, self.model, n_jobs), weights, n_jobs)
        add_totals(total, part)

    def finish(self, total: dict[str, Any]) -> ExpectedSums:
        """The sums of a total."""
        counts, statistics = np.zeros(self.model.flat.size), dict(total["statistics"])
        if "dense" in total:
            counts += total["dense"]
        if "sparse" in total:
            counts += _flat_counts(self.model.inference.sparse, total["sparse"])
        if "groups" in total and self._groups is not None:
            part, found = self._groups.split(_flat_counts(self._group_backend, total["groups"]))
            counts += part
            add_totals(statistics, found)
        return ExpectedSums(counts, statistics, float(total["value"][0]))

    def _counted(
        self, chunk: Chunk, evidence: Evidence, weights: Floats, n_jobs: int
    ) -> dict[str, Any]:
        model = self.model
        nodes = np.array(sorted({int(model.parents[v]) for v in model.emissions}), dtype=np.int64)
        backend, ones = model.inference.backend(evidence)
        if backend is not None and not len(nodes):
            return _touched("sparse", backend, Ones.of(evidence.codes), weights, n_jobs)
        dense = model.inference.dense
        counts, array, logs = dense.counts(evidence, weights, nodes, n_jobs, ones)
        found = Posteriors.of(model, nodes, array, logs)
        statistics = self._statistics(chunk, found, n_jobs) if len(nodes) else {}
        value = np.array([weighted_total(weights, logs)])
        return {"dense": counts, "statistics": statistics, "value": value}

    def _statistics(self, chunk: Chunk, found: Posteriors, n_jobs: int) -> Statistics:
        """Sums of the statistics of every emission, weighted by the posteriors of its neighbour."""
        weighted = dict(zip(found.nodes.tolist(), found.values, strict=True))
        if chunk.weights is not None:
            weighted = {u: x * chunk.weights[:, None] for u, x in weighted.items()}
        emissions = self.model.emissions
        by_variable = {v: weighted[int(self.model.parents[v])] for v in emissions}
        return sums_of(emissions, chunk.arrays, by_variable, n_jobs)


def _touched(
    name: str, backend: SparseBackend, rows: Ones, weights: Floats, n_jobs: int
) -> dict[str, Any]:
    """The part of a total that the sparse backend counts."""
    pairs, leaves, logs = backend.sums(rows, weights, n_jobs)
    return {name: (pairs, leaves), "value": np.array([weighted_total(weights, logs)])}


def _flat_counts(backend: SparseBackend | None, total: tuple[Floats, Floats]) -> Floats:
    """Counts of all samples from those of touched nodes."""
    assert backend is not None
    return backend.layout.counts(backend.loaded, *total)


@dataclass(frozen=True, eq=False)
class PosteriorSquares(_OfModel):
    """`sum_n w q^2` over the posteriors of all hidden nodes, side by side."""

    def start(self) -> Floats:
        """No samples."""
        return np.zeros(int(self.model.dims[self.model.tree.n_observed :].sum()))

    def add(self, total: Floats, chunk: Chunk, n_jobs: int) -> None:
        """Add the samples of a chunk."""
        evidence = evidence_of(chunk, self.model, n_jobs)
        total += self.model.inference.squares(evidence, weights_of(chunk), n_jobs)


@dataclass(frozen=True, eq=False)
class StatisticSums(_OfModel):
    """Sums of the statistics `(T, 1)` of every emission, whatever the hidden states, and the total
    weight; `finish(total)` are their means."""

    def start(self) -> dict[str, Any]:
        """No samples."""
        return {"statistics": {}, "weight": np.zeros(1)}

    def add(self, total: dict[str, Any], chunk: Chunk, n_jobs: int) -> None:
        """Add the samples of a chunk."""
        if not self.model.emissions:
            return
        weights = weights_of(chunk)
        found = None if self._groups is None else self._groups.sums(chunk)
        if found is None:
            columns = dict.fromkeys(self.model.emissions, weights[:, None])
            found = sums_of(self.model.emissions, chunk.arrays, columns, n_jobs)
        add_totals(total, {"statistics": found, "weight": weights.sum(keepdims=True)})

    def finish(self, total: dict[str, Any]) -> Statistics:
        """Means `(T,)` over the samples."""
        return {v: part[:, 0] / total["weight"] for v, part in total["statistics"].items()}
