"""Every variable as a short vector, its feature `z_a = basis_a^T x_a`, of many samples at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from latenttree.data import Table
from latenttree.data.chunk import Chunk
from latenttree.data.storage import Features
from latenttree.engine.arrays import Float32


@dataclass(frozen=True, eq=False)
class AllFeatures:
    """The pass: features of all samples, times the roots of their weights; for few samples."""

    features: Features

    def start(self) -> list[Float32]:
        """None."""
        return []

    def add(self, total: list[Float32], chunk: Chunk, n_jobs: int) -> None:
        """Add those of a chunk."""
        total.append(self.features.weighted(chunk, n_jobs))


def weighted_features(table: Table, basis: Float32, offset: Float32, n_jobs: int) -> Float32:
    """Features `(n, p, r)` of all samples in r directions less their means `offset` `(p, r)`, times
    the square roots of the weights; zero where a variable is missing."""
    parts = table.run(AllFeatures(table.storage.features(basis, offset)), n_jobs)
    empty = np.empty((0, *offset.shape), dtype=np.float32)
    return parts[0] if len(parts) == 1 else np.concatenate(parts or [empty])
