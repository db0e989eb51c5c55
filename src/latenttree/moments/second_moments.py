"""Second moments of the features of all pairs of variables, where nothing is missing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from latenttree.data import Table
from latenttree.data.chunk import Chunk
from latenttree.data.storage import Features
from latenttree.engine.arrays import Float32
from latenttree.moments.gram import gram


@dataclass(frozen=True, eq=False)
class WeightedColumns:
    """Features of all variables side by side, times the roots of the weights."""

    features: Features

    def of(self, chunk: Chunk, n_jobs: int) -> tuple[Float32, Float32]:
        """(n, p r), twice."""
        z = self.features.weighted(chunk, n_jobs)
        flat = z.reshape(len(z), -1)
        return flat, flat


def second_moments(table: Table, basis: Float32, offset: Float32, n_jobs: int) -> Float32:
    """Covariances `(p r, p r)` of the features of all pairs in r directions. One pass of
    n (p r)^2 / 2 multiply-adds."""
    columns = WeightedColumns(table.storage.features(basis, offset))
    sums = gram(columns, table, table.n_vars * basis.shape[1], n_jobs)
    sums /= np.float32(table.total_weight)
    return sums
