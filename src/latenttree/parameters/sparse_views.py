"""Views of samples in which few variables are present: `z` of `(1, z)`, see `views`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from latenttree.engine import parallel
from latenttree.engine.kernels import kernel
from latenttree.model.inference.sparse_messages import Sender, Wanted
from latenttree.model.samples import Chunk
from latenttree.model.tree_model import TreeModel
from latenttree.parameters.views import Features, Views

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEAST = 1e-9
"""Probabilities of a model that only makes features are at least this: zeros of moments are
noise."""


def present_features(
    views: Views, looks: Sequence[Floats], model: TreeModel | None, n_jobs: int
) -> Features:
    """Features `(n_views, k - 1, n)` of chunks with CSR rows: of observed nodes by `looks`, of
    messages as posteriors of the node that sends them, `(p_1, ..., p_{k-1})`, by the model."""
    sent = np.flatnonzero(views.source[:, 1] >= 0)
    seen = np.flatnonzero(views.source[:, 1] < 0)
    nodes = views.source[seen, 0]
    r = looks[0].shape[1] - 1
    values = np.array([looks[a][:, 1:] for a in nodes.tolist()]).reshape(len(nodes), 2, r)
    tables = values.astype(np.float32)
    known: list[tuple[Sender, Wanted]] = []

    def look_up(chunk: Chunk) -> NDArray[np.float32]:
        out = np.empty((len(views.source), r, len(chunk)), dtype=np.float32)
        indptr, indices = chunk.columns.indptr, chunk.columns.indices
        parallel(
            lambda a, b: _look_up(indptr, indices, nodes, tables, seen, out, a, b),
            len(seen),
            n_jobs,
        )
        if len(sent):
            assert model is not None
            if not known:
                sender = Sender.of(model, chunk.rows, LEAST)
                assert sender is not None
                wanted = sender.wanted(views.source[sent], by_sum=True)
                assert wanted is not None
                known.append((sender, _placed(wanted, sent)))
            sender, wanted = known[0]
            sender.write(chunk.rows, wanted, out, n_jobs)
        return out

    return look_up


def _placed(wanted: Wanted, place: Ints) -> Wanted:
    """What goes to `i` goes to `place[i]`."""
    up, down = (np.where(x >= 0, place[x], -1) for x in (wanted.up, wanted.down))
    return wanted._replace(up=up, down=down)


@kernel
def _look_up(indptr, indices, nodes, tables, place, out, start, stop):  # type: ignore[no-untyped-def]
    """`out[place[v]]` = `tables[v, 1]` in the samples that have `nodes[v]`, else `tables[v, 0]`."""
    for v in range(start, stop):
        for i in range(out.shape[1]):
            row = out[place[v], i]
            row[:] = tables[v, 0, i]
            for q in range(indptr[nodes[v]], indptr[nodes[v] + 1]):
                row[indices[q]] = tables[v, 1, i]
