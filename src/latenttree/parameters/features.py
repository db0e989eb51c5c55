"""Features of the views of some samples: projections of observed variables, and messages.

A feature is `(1, z)` with as many entries as there are states (k). Of an observed variable `z` is a
projection; of a message the posterior of its source, `(p_1, ..., p_{k-1})`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from latenttree.data.chunk import Chunk
from latenttree.data.storage.vectors import project_rows
from latenttree.engine import parallel
from latenttree.engine.arrays import Float32, Floats, Ints
from latenttree.engine.kernels import kernel
from latenttree.model.inference import Inference
from latenttree.model.samples import evidence_of
from latenttree.model.tree_model import TreeModel
from latenttree.parameters.views import Views

RIDGE = 1e-9
"""Share of the variance that is added to the covariance of a projection before whitening."""

LEAST = 1e-9
"""Lower bound of the probabilities of a model of sparse samples that only provides features: zeros
are noise of the moments."""

TOGETHER = 64
"""Samples whose features are written together, so that their codes stay in the cache."""


class VectorProjections(NamedTuple):
    """Projections of variables that are stored as vectors x: `(1, z)` with `z = x basis - start`.

    Variable `a` has coordinates `offsets[a]:offsets[a + 1]`."""

    basis: Float32  # (coordinates, k - 1)
    start: Float32  # (p, k - 1)
    offsets: Ints


Projections = Sequence[Floats] | VectorProjections
"""For every variable `(d, k)` the values `(1, z)` of its categories; or projections of vectors."""


def leaf_projections(basis: Floats, marginal: Floats) -> Floats:
    """`(1, z)` of every category of a variable, `(d, k)`, with z centred and of unit covariance
    under the marginal `(d,)`; `basis` is `(d, k - 1)`. All may have the variable as first axis."""
    z = basis - marginal[..., None, :] @ basis
    covariance = (z * marginal[..., None]).swapaxes(-1, -2) @ z
    n_directions = basis.shape[-1]
    scale = np.trace(covariance, axis1=-2, axis2=-1)[..., None, None] / max(n_directions, 1)
    ridge = RIDGE * np.maximum(scale, 1e-300) * np.eye(n_directions)
    root = np.linalg.inv(np.linalg.cholesky(covariance + ridge))
    return np.concatenate([np.ones((*z.shape[:-1], 1)), z @ root.swapaxes(-1, -2)], axis=-1)


def all_leaf_projections(bases: Sequence[Floats], marginals: Sequence[Floats]) -> list[Floats]:
    """`leaf_projections` of every variable, computed together for equal numbers of categories."""
    sizes = np.array([len(m) for m in marginals])
    found: list[Floats] = [np.empty(0)] * len(sizes)
    for d in np.unique(sizes).tolist():
        some = np.flatnonzero(sizes == d).tolist()
        basis = np.stack([bases[a] for a in some])
        views = leaf_projections(basis, np.stack([marginals[a] for a in some]))
        for a, view in zip(some, views, strict=True):
            found[a] = view
    return found


def _category_tables(nodes: Ints, projections: Sequence[Floats]) -> tuple[Ints, Float32]:
    """Projections of the categories of all nodes, one after another, and where those of each
    begin."""
    values = [projections[a] for a in nodes.tolist()]
    sizes = np.array([len(part) for part in values], dtype=np.int64)
    return np.cumsum(sizes) - sizes, np.concatenate(values).astype(np.float32)


def _write_categories(
    chunk: Chunk, nodes: Ints, place: Ints, tables: Any, out: Float32, n_jobs: int
) -> None:
    """Write the projection of the category of node `nodes[i]` to view `place[i]` of `out`."""
    codes = chunk.stored if isinstance(chunk.stored, np.ndarray) else chunk.codes
    given = (codes, nodes, place, *tables, out)
    parallel(lambda a, b: _look_up(*given, a, b), len(nodes), n_jobs)


@kernel
def _look_up(codes, nodes, place, offsets, stacked, out, start, stop):  # type: ignore[no-untyped-def]
    """`out[place[v], :, n] = stacked[offsets[v] + codes[n, nodes[v]]]` for views start:stop; zero
    where the code is negative."""
    k = stacked.shape[1]
    row = np.empty(TOGETHER, dtype=np.int64)
    for low in range(0, len(codes), TOGETHER):
        block = codes[low : low + TOGETHER]
        for v in range(start, stop):
            for s in range(len(block)):
                c = block[s, nodes[v]]
                row[s] = offsets[v] + c if c >= 0 else -1
            for q in range(k):
                to = out[place[v], q, low : low + TOGETHER]
                for s in range(len(block)):
                    to[s] = stacked[row[s], q] if row[s] >= 0 else 0.0


def _vector_tables(nodes: Ints, projections: VectorProjections) -> tuple[Ints, Float32, Float32]:
    """The view of every coordinate (those of no view share the last), basis, and `(1, -start)` of
    each view."""
    n, basis = len(nodes), projections.basis
    place = np.full(len(projections.start), n)
    place[nodes] = np.arange(n)
    owner = np.repeat(place, np.diff(projections.offsets))
    wide = np.column_stack([np.zeros(len(basis), np.float32), basis])
    first = np.column_stack([np.ones(n), -projections.start[nodes]]).astype(np.float32)
    return owner, wide, first


def _write_vectors(
    chunk: Chunk, nodes: Ints, place: Ints, tables: Any, out: Float32, n_jobs: int
) -> None:
    """Write `(1, x basis - start)` of node `nodes[i]` to view `place[i]` of `out`."""
    (owner, basis, first), rows = tables, chunk.stored
    found = np.zeros((len(chunk), len(nodes) + 1, basis.shape[1]), dtype=np.float32)
    found[:, :-1] = first
    project_rows(rows.indptr, rows.indices, rows.data, owner, basis, found, 0, len(found))
    if chunk.known is not None:
        found[:, :-1] *= chunk.known[:, nodes, None]
    out[place] = found[:, :-1].transpose(1, 2, 0)


def _two_values(nodes: Ints, projections: Sequence[Floats]) -> tuple[Float32]:
    """`z` of both values of 0/1 variables, `(., 2, k - 1)`."""
    return (np.array([projections[a][:, 1:] for a in nodes.tolist()], dtype=np.float32),)


def _write_ones(
    chunk: Chunk, nodes: Ints, place: Ints, tables: Any, out: Float32, n_jobs: int
) -> None:
    """Write `z` of the value of 0/1 variable `nodes[i]` to view `place[i]` of `out`."""
    given = (chunk.columns.indptr, chunk.columns.indices, nodes, place, *tables, out)
    parallel(lambda a, b: _look_up_ones(*given, a, b), len(nodes), n_jobs)


@kernel
def _look_up_ones(indptr, indices, nodes, place, values, out, start, stop):  # type: ignore[no-untyped-def]
    """`out[place[v]]` = `values[v, 1]` in the samples with a one of `nodes[v]`, else `values[v,
    0]`."""
    for v in range(start, stop):
        for i in range(out.shape[1]):
            row = out[place[v], i]
            row[:] = values[v, 0, i]
            for q in range(indptr[nodes[v]], indptr[nodes[v] + 1]):
                row[indices[q]] = values[v, 1, i]


@dataclass(frozen=True, eq=False)
class ViewValues:
    """Features of views, `(1, z)`: projections of observed nodes; of messages under `model` (None
    where there are none) `(1, p_1, ..., p_{k-1})` with p the posterior of the source.

    `sparse`: those of CSR rows of 0/1 variables, `z` alone."""

    views: Views
    projections: Projections
    model: TreeModel | None = None
    sparse: bool = False

    @cached_property
    def _leaves(self) -> tuple[Ints, Ints]:
        """Observed nodes, in order, so that adjacent codes are read together, and their views."""
        place = np.flatnonzero(self.views.source[:, 1] < 0)
        place = place[np.argsort(self.views.source[place, 0], kind="stable")]
        return self.views.source[place, 0], place

    @cached_property
    def _writer(self) -> tuple[Callable[..., None], Any]:
        """What writes the features of observed nodes, and what it needs for all samples."""
        nodes, projections = self._leaves[0], self.projections
        if isinstance(projections, VectorProjections):
            return _write_vectors, _vector_tables(nodes, projections)
        if self.sparse:
            return _write_ones, _two_values(nodes, projections)
        return _write_categories, _category_tables(nodes, projections)

    @cached_property
    def _k(self) -> int:
        if self.model is not None:
            return int(self.model.dims[-1])
        if isinstance(self.projections, VectorProjections):
            return int(self.projections.basis.shape[1]) + 1
        return int(self.projections[0].shape[1]) if len(self.projections) else 1

    @cached_property
    def _inference(self) -> Inference:
        """Of the model without zeros."""
        assert self.model is not None
        return self.model.with_flat(np.maximum(self.model.flat, LEAST)).inference

    def of(self, chunk: Chunk, n_jobs: int) -> Float32:
        """(n_views, k, n) features of some samples, or (n_views, k - 1, n); zeros where one is
        missing."""
        n_views, n = len(self.views.source), len(chunk)
        out = np.empty((n_views, self._k - self.sparse, n), dtype=np.float32)
        if len(self._leaves[0]):
            write, tables = self._writer
            write(chunk, *self._leaves, tables, out, n_jobs)
        by_message = np.flatnonzero(self.views.source[:, 1] >= 0)
        if not len(by_message) or self.model is None:
            return out
        edges, evidence = self.views.source[by_message], evidence_of(chunk, self.model, n_jobs)
        marginals = self.model.marginals
        if self.sparse:
            write_posteriors = self._inference.write_posteriors
            write_posteriors(evidence, edges, out, by_message, marginals, n_jobs)
            return out
        prior = np.array([marginals[u] for u in edges[:, 0].tolist()]).reshape(-1, self._k)
        found = self.model.messages(evidence, edges, n_jobs)
        given = (found.transpose(1, 2, 0), prior, by_message, out)
        parallel(lambda a, b: _posteriors(*given, a, b), len(by_message), n_jobs)
        return out


@kernel
def _posteriors(messages, prior, place, out, start, stop):  # type: ignore[no-untyped-def]
    """`out[place[e]] = (1, p_1, ...)`, `p` in proportion to `messages[e] prior[e]`, `(k, n)` each;
    edges start:stop."""
    k, n = out.shape[1:]
    total = np.empty(n)
    for e in range(start, stop):
        to, own = out[place[e]], messages[e]
        total[:] = 0.0
        for j in range(k):
            for s in range(n):
                total[s] += own[j, s] * prior[e, j]
        to[0] = 1.0
        for j in range(1, k):
            for s in range(n):
                to[j, s] = own[j, s] * prior[e, j] / max(total[s], 1e-30)
