"""Features of the views of sparse binary samples: `z` of `(1, z)`, see `views`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from latenttree.data.chunk import Chunk
from latenttree.engine import parallel
from latenttree.engine.arrays import Float32, Floats, Ints
from latenttree.engine.kernels import kernel
from latenttree.model.inference import Evidence, Inference
from latenttree.model.tree_model import TreeModel
from latenttree.parameters.views import Views

LEAST = 1e-9
"""Lower bound of the probabilities of a model that only provides features: zeros are noise of the
moments."""


@dataclass(frozen=True, eq=False)
class SparseViewValues:
    """Features `z` of views of CSR rows, without the leading 1: `projections` of observed nodes,
    and for messages the posteriors of their sources under `model`, `(p_1, ..., p_{k-1})`."""

    views: Views
    projections: Sequence[Floats]
    model: TreeModel | None = None

    @cached_property
    def _leaves(self) -> tuple[Ints, Float32, Ints]:
        """Observed nodes, their values `(., 2, k - 1)`, and their views."""
        place = np.flatnonzero(self.views.source[:, 1] < 0)
        nodes = self.views.source[place, 0]
        exact = [self.projections[a][:, 1:] for a in nodes.tolist()]
        values = np.array(exact).reshape(len(nodes), 2, self._n_directions)
        return nodes, values.astype(np.float32), place

    @property
    def _n_directions(self) -> int:
        return int(self.projections[0].shape[1]) - 1

    @cached_property
    def _inference(self) -> Inference:
        """Of the model without zeros."""
        assert self.model is not None
        return self.model.with_flat(np.maximum(self.model.flat, LEAST)).inference

    def of(self, chunk: Chunk, n_jobs: int) -> Float32:
        """(n_views, k - 1, n) features of some samples."""
        shape = (len(self.views.source), self._n_directions, len(chunk))
        out = np.empty(shape, dtype=np.float32)
        (nodes, values, place), columns = self._leaves, chunk.columns
        given = (columns.indptr, columns.indices, nodes, values, place, out)
        parallel(lambda a, b: _look_up(*given, a, b), len(nodes), n_jobs)
        by_message = np.flatnonzero(self.views.source[:, 1] >= 0)
        if len(by_message):
            edges, evidence = self.views.source[by_message], Evidence(chunk.rows)
            marginals = self.model.marginals if self.model is not None else ()
            self._inference.write_posteriors(evidence, edges, out, by_message, marginals, n_jobs)
        return out


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
