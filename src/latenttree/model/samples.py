"""The samples of a table, chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from latenttree.data import Table
from latenttree.data.chunk import CHUNK_CODES, Chunk, chunk_size
from latenttree.data.storage import BinaryStorage
from latenttree.data.subsets import Restricted, TableSubset
from latenttree.data.values import CODED
from latenttree.engine import THREADS, Pass, blocks
from latenttree.model.emissions import soft_evidence
from latenttree.model.inference import Evidence
from latenttree.model.tree_model import TreeModel
from latenttree.moments.subspace import coordinate_moments

Floats = NDArray[np.float64]
Total = TypeVar("Total")


def evidence_of(chunk: Chunk, model: TreeModel, n_jobs: int = 1) -> Evidence:
    """The evidence of some samples: codes, and the likelihoods of other values as soft evidence on
    the neighbours of their nodes."""
    emissions = {v: e for v, e in model.emissions.items() if v in chunk.arrays}
    if not emissions:
        return Evidence(chunk.rows, chunk.soft)
    soft, log_scale = soft_evidence(emissions, model.parents.tolist(), chunk.arrays, n_jobs)
    for v, weights in chunk.soft.items():
        soft[v] = soft[v] * weights if v in soft else weights
    return Evidence(chunk.rows, soft, log_scale)


class Samples:
    """Samples that can be read again and again, in the same chunks every time.

    `keep` `(n_samples,)` marks the samples that are read, where some are held out; `weights` are
    sample weights other than those of the table. A chunk has at most `chunk_codes` values, at least
    a block of samples. `n_samples` is the total weight."""

    def __init__(
        self,
        table: Table,
        keep: NDArray[np.bool_] | None = None,
        weights: Floats | None = None,
        chunk_codes: int = CHUNK_CODES,
    ) -> None:
        self.table, self.keep, self.weights, self.chunk_codes = table, keep, weights, chunk_codes
        counts = table.weights if weights is None else weights
        if counts is None:
            self.n_samples = float(table.n_samples if keep is None else keep.sum())
        else:
            self.n_samples = float((counts if keep is None else counts[keep]).sum())

    def __len__(self) -> int:
        return len(self.table) if self.keep is None else int(self.keep.sum())

    @property
    def is_sparse(self) -> bool:
        """Whether samples are CSR rows of 0/1 variables."""
        return isinstance(self.table.storage, BinaryStorage)

    def sizes(self) -> list[int]:
        """Number of samples in each chunk."""
        size = chunk_size(self.table.n_vars, self.table.has_values, self.chunk_codes)
        ranges = blocks(self.table.n_samples, size)
        keep = self.keep
        return [b - a if keep is None else int(keep[a:b].sum()) for a, b in ranges]

    def draws(self) -> NDArray[np.int64]:
        """The place of the sample of every draw, ascending: a sample of weight 3 has three."""
        weights = self.weights if self.weights is not None else self.table.weights
        if weights is None:
            return np.arange(len(self))
        ends = np.cumsum(weights if self.keep is None else weights[self.keep])
        n_draws = max(round(float(ends[-1])), 1)
        places = np.searchsorted(ends, np.arange(n_draws) + 0.5, side="right")
        return np.minimum(places, len(ends) - 1)

    def of_draws(self, places: NDArray[np.int64]) -> Samples:
        """The samples of some draws, each with the number of its draws as weight."""
        if self.weights is None and self.table.weights is None:
            return self.subset(np.sort(places))
        once, counts = np.unique(places, return_counts=True)
        return Samples(TableSubset(self.table, self._at(once)[0], counts.astype(np.float64)))

    def subset(self, places: NDArray[np.int64]) -> Samples:
        """The samples at `places`, ascending; nothing is copied."""
        some, weights = self._at(places)
        if weights is None and self.table.weights is not None:
            weights = self.table.weights[some]
        return Samples(TableSubset(self.table, some, weights))

    def subsample(self, n: int) -> Samples:
        """About `n` of the samples, spread evenly, copied; all where there are fewer."""
        if len(self) <= n:
            return self
        some, weights = self._at(spread_places(len(self), n))
        return Samples(self.table.subset_rows(some), weights=weights)

    def _at(self, places: NDArray[np.int64]) -> tuple[NDArray[np.int64], Floats | None]:
        """Positions in the table of some samples, and their weights where these are not its own."""
        some = places if self.keep is None else np.flatnonzero(self.keep)[places]
        return some, None if self.weights is None else self.weights[some]

    def run(self, pass_: Pass[Total], n_jobs: int = 1) -> Total:
        """The total of a pass over the samples."""
        return self.table.engine.run(pass_, self, n_jobs)

    def at_source(self, pass_: Pass[Total]) -> tuple[Table, Pass[Total]]:
        """The table, and the pass over all its samples that reads these."""
        if self.keep is None and self.weights is None:
            return self.table.at_source(pass_)
        positions = None if self.keep is None else np.flatnonzero(self.keep)
        weights = self.weights
        if positions is not None and weights is not None:
            weights = weights[positions]
        return self.table.at_source(Restricted(pass_, positions, weights))

    def chunks(self) -> Iterator[Chunk]:
        """The chunks, of a size that depends on the table alone."""
        size = chunk_size(self.table.n_vars, self.table.has_values, self.chunk_codes)
        done = 0
        for start, stop in blocks(self.table.n_samples, size):
            chunk = self.table.chunk(start, stop)
            if self.weights is not None:
                chunk = replace(chunk, weights=self.weights[start:stop])
            if self.keep is not None:
                chunk = replace(chunk.take(self.keep[start:stop]), start=done)
            done += len(chunk)
            yield chunk


def spread_places(n: int, m: int) -> NDArray[np.int64]:
    """`m` of `n` places, increasing, one at random in each of `m` ranges: no period shows."""
    edges = np.arange(m + 1) * n // max(m, 1)
    gaps = np.maximum(np.diff(edges), 1)
    return np.asarray(edges[:-1] + np.random.default_rng(0).integers(0, gaps), dtype=np.int64)


def as_chunk(part: Chunk | Evidence | NDArray[Any]) -> Chunk:
    """Samples, evidence on them, or their codes alone."""
    if isinstance(part, Evidence):
        return Chunk(part.codes, soft=part.soft)
    return part if isinstance(part, Chunk) else Chunk(part)


class InMemory:
    """Samples that are given in parts: chunks, evidence, or codes alone. `n_samples` is their total
    weight."""

    def __init__(self, parts: Iterable[Chunk | Evidence | NDArray[Any]]) -> None:
        self._parts: list[Chunk] = []
        for chunk in map(as_chunk, parts):
            self._parts.append(replace(chunk, start=sum(map(len, self._parts))))
        weights = [len(c) if c.weights is None else c.weights.sum() for c in self._parts]
        self.n_samples = float(sum(weights))

    def __len__(self) -> int:
        return sum(self.sizes())

    @property
    def is_sparse(self) -> bool:
        """Whether samples are CSR rows of 0/1 variables."""
        return any(issparse(part.rows) for part in self._parts)

    def sizes(self) -> list[int]:
        """Number of samples in each part."""
        return list(map(len, self._parts))

    def subset(self, places: NDArray[np.int64]) -> InMemory:
        """The samples at `places`, ascending."""
        ends = np.cumsum([0, *self.sizes()])
        cuts = np.searchsorted(places, ends)
        found = [
            part.take(places[a:b] - start)
            for part, start, a, b in zip(self._parts, ends, cuts, cuts[1:], strict=False)
            if b > a
        ]
        return InMemory(found)

    def chunks(self) -> Iterator[Chunk]:
        """The parts."""
        return iter(self._parts)

    def run(self, pass_: Pass[Total], n_jobs: int = 1) -> Total:
        """The total of a pass over the samples."""
        return THREADS.run(pass_, self, n_jobs)


def model_dims(table: Table) -> NDArray[np.int64]:
    """States of every observed node: its categories, one for a node of another family."""
    return np.where([f in CODED for f in table.families], table.dims, 1)


def marginals(table: Table) -> list[NDArray[np.float64]]:
    """Frequencies of the categories of every variable; `[1]` for those of other families."""
    shares = table.storage.by_category(coordinate_moments(table)[0], "rest")
    pairs = zip(shares, table.families, strict=True)
    return [share if family in CODED else np.ones(1) for share, family in pairs]
