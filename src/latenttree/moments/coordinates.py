"""Means and variances of all stored coordinates, in one pass; cached as long as the table lives."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from latenttree.data import Table
from latenttree.data.chunk import Chunk
from latenttree.data.storage import Storage
from latenttree.engine import BLOCK, blocks
from latenttree.engine.arrays import Float32, Floats


@dataclass(frozen=True, eq=False)
class _Cached:
    """What is computed once for a table; read-only."""

    sums: Floats
    mean: Floats
    variance: Floats


_CACHE: WeakKeyDictionary[Table, _Cached] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class CoordinateSums:
    """The pass: sums of coordinates and of their squares from `middle`, see `Storage.add_sums`."""

    storage: Storage
    middle: Floats

    def start(self) -> Floats:
        """Zeros."""
        return self.storage.no_sums()

    def add(self, total: Floats, chunk: Chunk, n_jobs: int) -> None:
        """Add a chunk."""
        self.storage.add_sums(total, chunk, self.middle, n_jobs)


@dataclass(frozen=True, eq=False)
class KnownWeights:
    """The pass: weight `(p,)` of the samples that have each variable."""

    storage: Storage

    def start(self) -> Floats:
        """Zeros."""
        return np.zeros(self.storage.n_vars)

    def add(self, total: Floats, chunk: Chunk, n_jobs: int) -> None:
        """Add a chunk, block by block."""
        known = self.storage.known(chunk)
        weights = np.ones(len(chunk)) if chunk.weights is None else chunk.weights
        for start, stop in blocks(len(chunk), BLOCK):
            total += weights[start:stop] @ np.asarray(known)[start:stop]


def coordinate_moments(table: Table, n_jobs: int = 1) -> tuple[Floats, Floats]:
    """Mean and variance `(coordinates,)`, over the samples that have the coordinate's variable.

    One pass, an addition for each stored value (three for vectors); read-only, cached."""
    found = _cached(table, n_jobs)
    return found.mean, found.variance


def coordinate_sums(table: Table, n_jobs: int = 1) -> Floats:
    """Of codes and of sparse binary variables the weight of the samples with each coordinate,
    `(coordinates,)`; read-only, cached."""
    return _cached(table, n_jobs).sums


def _cached(table: Table, n_jobs: int) -> _Cached:
    if table not in _CACHE:
        storage = table.storage
        middle = storage.middle(table.subset_rows(slice(0, BLOCK)).chunk(0, BLOCK))
        sums = table.run(CoordinateSums(storage, middle), n_jobs)
        found = _Cached(sums, *storage.mean_and_variance(sums, middle, known_weights(table)))
        for array in (found.sums, found.mean, found.variance):
            array.flags.writeable = False
        _CACHE[table] = found
    return _CACHE[table]


def known_weights(table: Table) -> Floats:
    """Weight `(p,)` of the samples that have each variable, at least 1e-300."""
    if not table.has_missing:
        return np.full(table.n_vars, max(table.total_weight, 1e-300))
    return np.maximum(table.run(KnownWeights(table.storage)), 1e-300)


def feature_means(table: Table, basis: Float32, mean: Floats) -> Float32:
    """Means `(p, n_directions)` of the features, from the coordinates' means."""
    own, p = table.storage.owners, table.n_vars
    columns = [np.bincount(own, mean * column, p) for column in np.asarray(basis, np.float32).T]
    return np.stack(columns, axis=1).astype(np.float32)
