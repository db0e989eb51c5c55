"""Features of the views of sparse binary samples: `z` of `(1, z)`, see `views`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from latenttree.engine import parallel
from latenttree.engine.kernels import kernel
from latenttree.model.inference.sparse_messages import MessageRequest, SparseMessages
from latenttree.model.samples import Chunk
from latenttree.model.tree_model import TreeModel
from latenttree.parameters.features import Features
from latenttree.parameters.views import Views

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEAST = 1e-9
"""Lower bound of the probabilities of a model that only provides features: zeros are noise of the
moments."""


def sparse_features(
    views: Views, projections: Sequence[Floats], model: TreeModel | None, n_jobs: int
) -> Features:
    """Features `(n_views, n_directions, n)` of chunks with CSR rows: `projections` of observed
    nodes, and for messages the posteriors of their sources under `model`, `(p_1, ..., p_{k-1})`."""
    by_message = np.flatnonzero(views.source[:, 1] >= 0)
    by_value = np.flatnonzero(views.source[:, 1] < 0)
    nodes = views.source[by_value, 0]
    n_directions = projections[0].shape[1] - 1
    exact = np.array([projections[a][:, 1:] for a in nodes.tolist()]).reshape(
        len(nodes), 2, n_directions
    )
    values = exact.astype(np.float32)
    cached: list[tuple[SparseMessages, MessageRequest]] = []

    def features(chunk: Chunk) -> NDArray[np.float32]:
        out = np.empty((len(views.source), n_directions, len(chunk)), dtype=np.float32)
        indptr, indices = chunk.columns.indptr, chunk.columns.indices
        parallel(
            lambda a, b: _look_up(indptr, indices, nodes, values, by_value, out, a, b),
            len(by_value),
            n_jobs,
        )
        if len(by_message):
            assert model is not None
            if not cached:
                sparse_messages = SparseMessages.of(model, chunk.rows, LEAST)
                assert sparse_messages is not None
                request = sparse_messages.request(views.source[by_message], by_sum=True)
                assert request is not None
                cached.append((sparse_messages, _placed(request, by_message)))
            sparse_messages, request = cached[0]
            sparse_messages.write(chunk.rows, request, out, n_jobs)
        return out

    return features


def _placed(request: MessageRequest, place: Ints) -> MessageRequest:
    """The same request, with message `i` written to `place[i]`."""
    up, down = (np.where(x >= 0, place[x], -1) for x in (request.up, request.down))
    return request._replace(up=up, down=down)


@kernel
def _look_up(indptr, indices, nodes, values, place, out, start, stop):  # type: ignore[no-untyped-def]
    """`out[place[v]]` = `values[v, 1]` in the samples with a one of `nodes[v]`, else `values[v,
    0]`."""
    for v in range(start, stop):
        for i in range(out.shape[1]):
            row = out[place[v], i]
            row[:] = values[v, 0, i]
            for q in range(indptr[nodes[v]], indptr[nodes[v] + 1]):
                row[indices[q]] = values[v, 1, i]
