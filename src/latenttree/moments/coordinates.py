"""Means and variances of all stored coordinates, in one pass; cached as long as the table lives."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from weakref import WeakKeyDictionary

import numpy as np

from latenttree.data import Table
from latenttree.data.chunk import Chunk
from latenttree.data.storage import Storage
from latenttree.engine import BLOCK, Gathered, Summed, blocks
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
    total = table.run(Summed(partial(_known_weights, table.storage), table.n_vars))
    return np.maximum(total, 1e-300)


def _known_weights(storage: Storage, chunk: Chunk, n_jobs: int) -> Floats:
    """Those of a chunk, block by block."""
    known = np.asarray(storage.known(chunk))
    weights = np.ones(len(chunk)) if chunk.weights is None else chunk.weights
    return np.add.reduce([weights[a:b] @ known[a:b] for a, b in blocks(len(chunk))])


def feature_means(table: Table, basis: Float32, mean: Floats) -> Float32:
    """Means `(p, n_directions)` of the features, from the coordinates' means."""
    own, p = table.storage.owners, table.n_vars
    columns = [np.bincount(own, mean * column, p) for column in np.asarray(basis, np.float32).T]
    return np.stack(columns, axis=1).astype(np.float32)


def weighted_features(table: Table, basis: Float32, offset: Float32, n_jobs: int) -> Float32:
    """Features `z_a = basis_a^T x_a` `(n, p, r)` of all samples in r directions less their means
    `offset` `(p, r)`, times the square roots of the weights; zero where a variable is missing."""
    parts = table.run(Gathered(table.storage.features(basis, offset).weighted), n_jobs)
    empty = np.empty((0, *offset.shape), dtype=np.float32)
    return parts[0] if len(parts) == 1 else np.concatenate(parts or [empty])
