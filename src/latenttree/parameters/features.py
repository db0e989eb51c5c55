"""Features of the views of some samples: projections of observed variables, and messages.

A feature is `(1, z)` with as many entries as there are states (k). Of an observed variable `z` is a
projection; of a message the posterior of its source, `(p_1, ..., p_{k-1})`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.data.storage.vectors import project_rows
from latenttree.engine import parallel
from latenttree.engine.kernels import kernel
from latenttree.model.inference import messages
from latenttree.model.samples import Chunk, evidence_of
from latenttree.model.tree_model import TreeModel
from latenttree.parameters.views import Views

RIDGE = 1e-9
"""Share of the variance that is added to the covariance of a projection before whitening."""

TOGETHER = 64
"""Samples whose features are written together, so that their codes stay in the cache."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Features = Callable[[Chunk], NDArray[np.float32]]
"""Maps some samples to the features of all views, `(n_views, k, n)`; zeros where one is missing."""


class VectorProjections(NamedTuple):
    """Projections of variables that are stored as vectors x: `(1, z)` with `z = x basis - start`.

    Variable `a` has coordinates `offsets[a]:offsets[a + 1]`."""

    basis: NDArray[np.float32]  # (coordinates, k - 1)
    start: NDArray[np.float32]  # (p, k - 1)
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


def leaf_features(views: Views, projections: Projections, n_jobs: int = 1) -> Features:
    """Features of views that are all observed nodes."""
    k = (
        projections.basis.shape[1] + 1
        if isinstance(projections, VectorProjections)
        else len(projections[0].T)
    )
    write = _leaf_writer(views.source[:, 0], projections, np.arange(len(views.source)), n_jobs)

    def features(chunk: Chunk) -> NDArray[np.float32]:
        out = np.empty((len(views.source), k, len(chunk)), dtype=np.float32)
        write(chunk, out)
        return out

    return features


Writer = Callable[[Chunk, NDArray[np.float32]], None]
"""Writes the features of some views of some samples into an array `(n_views, k, n)`."""


def _leaf_writer(nodes: Ints, projections: Projections, place: Ints, n_jobs: int) -> Writer:
    """A writer of the features of observed nodes to the views `place`."""
    if isinstance(projections, VectorProjections):
        return _vectors(nodes, projections, place)
    return _categories(nodes, projections, place, n_jobs)


def _categories(nodes: Ints, values: Sequence[Floats], place: Ints, n_jobs: int) -> Writer:
    """A writer of `values[a]`, `(d_a, k)`, for the node `a` of each view."""
    used = [values[a] for a in nodes.tolist()]
    stacked = np.concatenate(used or [np.empty((0, 1))]).astype(np.float32)
    sizes = np.array([len(part) for part in used], dtype=np.int64)
    offsets = np.cumsum(sizes) - sizes
    order = np.argsort(nodes, kind="stable")  # adjacent codes are read together
    by_node = nodes[order], offsets[order], place[order]

    def write(chunk: Chunk, out: NDArray[np.float32]) -> None:
        codes = chunk.stored if isinstance(chunk.stored, np.ndarray) else chunk.codes
        parallel(lambda a, b: _look_up(codes, *by_node, stacked, out, a, b), len(nodes), n_jobs)

    return write


@kernel
def _look_up(codes, nodes, offsets, place, stacked, out, start, stop):  # type: ignore[no-untyped-def]
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


def _vectors(nodes: Ints, projections: VectorProjections, places: Ints) -> Writer:
    """A writer of `(1, x basis - start)` for the node of each view."""
    place = np.full(
        len(projections.start), len(nodes)
    )  # variables without a view share the last place
    place[nodes] = np.arange(len(nodes))
    owner = np.repeat(place, np.diff(projections.offsets))
    basis = np.column_stack([np.zeros(len(projections.basis), np.float32), projections.basis])
    first = np.column_stack([np.ones(len(nodes)), -projections.start[nodes]]).astype(np.float32)

    def write(chunk: Chunk, out: NDArray[np.float32]) -> None:
        rows: Any = chunk.stored
        found = np.zeros((len(chunk), len(nodes) + 1, basis.shape[1]), dtype=np.float32)
        found[:, :-1] = first
        project_rows(rows.indptr, rows.indices, rows.data, owner, basis, found, 0, len(found))
        if chunk.known is not None:
            found[:, :-1] *= chunk.known[:, nodes, None]
        out[places] = found[:, :-1].transpose(1, 2, 0)

    return write


def message_features(
    views: Views, projections: Projections, model: TreeModel, n_jobs: int
) -> Features:
    """Features of messages under `model`, `(1, p_1, ..., p_{k-1})` with p the posterior of the
    source; of observed nodes as in `leaf_features`."""
    by_message = np.flatnonzero(views.source[:, 1] >= 0)
    by_value = np.flatnonzero(views.source[:, 1] < 0)
    leaves = _leaf_writer(views.source[by_value, 0], projections, by_value, n_jobs)
    k = int(model.dims[-1])
    prior = np.array([model.marginals[u] for u in views.source[by_message, 0].tolist()]).reshape(
        -1, k
    )

    def features(chunk: Chunk) -> NDArray[np.float32]:
        out = np.empty((len(views.source), k, len(chunk)), dtype=np.float32)
        if len(by_value):
            leaves(chunk, out)
        if len(by_message):
            m = messages(
                model, evidence_of(chunk, model, n_jobs), views.source[by_message], n_jobs=n_jobs
            )
            parallel(
                lambda a, b: _posteriors(m, prior, by_message, out, a, b), len(by_message), n_jobs
            )
        return out

    return features


@kernel
def _posteriors(m, prior, place, out, start, stop):  # type: ignore[no-untyped-def]
    """`out[place[e], :, s] = (1, p_1, ...)`, `p` in proportion to `m[s, e] prior[e]`; edges
    start:stop."""
    k = prior.shape[1]
    for low in range(0, len(m), TOGETHER):
        block = m[low : low + TOGETHER]
        for e in range(start, stop):
            to = out[place[e], :, low : low + TOGETHER]
            for s in range(len(block)):
                total = 0.0
                for j in range(k):
                    total += block[s, e, j] * prior[e, j]
                total = max(total, 1e-30)
                to[0, s] = 1.0
                for j in range(1, k):
                    to[j, s] = block[s, e, j] * prior[e, j] / total
