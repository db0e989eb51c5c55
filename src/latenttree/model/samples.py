"""The samples of a table, chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data import Table, one_hot_codes
from latenttree.data.row_access import take_rows
from latenttree.data.values import CODED, LazyRows, Values
from latenttree.engine import BLOCK, blocks
from latenttree.model.emissions import soft_evidence
from latenttree.model.inference import Evidence
from latenttree.model.tree_model import TreeModel
from latenttree.moments.subspace import coordinate_moments

Floats = NDArray[np.float64]

CHUNK_CODES = 1 << 24
"""Codes in a chunk, at most; at least a block of samples."""

CHUNK_VALUES = 1 << 19
"""The same where variables are not all categorical: their likelihoods are numbers for each of
them."""


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some samples.

    Attributes
    ----------
    rows : (n, p) categories, -1 where unknown and for variables of other families; or CSR rows of
        sparse binary variables.
    arrays : values of the variables of other families, see `data.values.Values`.
    weights : (n,) sample weights; None: all one.
    stored : (n, p) codes or CSR rows of the structural form; None where it is the codes.
    known : (n, p) False where a variable of `stored` rows is missing; None where none is.
    soft : further evidence, weights over the states of nodes, see `inference.Evidence`.
    """

    rows: Any
    arrays: Mapping[int, Any] = field(default_factory=dict)
    weights: Floats | None = None
    stored: Any = None
    known: NDArray[np.bool_] | None = None
    soft: Mapping[int, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    @cached_property
    def codes(self) -> NDArray[Any]:
        """(n, p) the categories as an array, whatever the form of the rows."""
        if sparse.issparse(self.rows):
            return np.asarray(self.rows.toarray() != 0).astype(np.uint8)
        return np.asarray(self.rows)

    @cached_property
    def columns(self) -> Any:
        """(n, p) the rows that are CSR as CSC."""
        return self.rows.tocsc()

    def evidence(self, model: TreeModel, n_jobs: int = 1) -> Evidence:
        """The evidence of the samples: codes, and the likelihoods of other values as soft evidence
        on the neighbours of their nodes."""
        emissions = {v: e for v, e in model.emissions.items() if v in self.arrays}
        if not emissions:
            return Evidence(self.rows, self.soft)
        soft, log_scale = soft_evidence(emissions, model.parents.tolist(), self.arrays, n_jobs)
        for v, weights in self.soft.items():
            soft[v] = soft[v] * weights if v in soft else weights
        return Evidence(self.rows, soft, log_scale)

    def take(self, index: Any) -> Chunk:
        """The samples of `index`."""
        others = (self.weights, self.stored, self.known)
        weights, stored, known = (None if x is None else take_rows(x, index) for x in others)
        arrays = LazyRows(self.arrays, index)
        soft = {v: x[index] if np.ndim(x) == 2 else x for v, x in self.soft.items()}
        return Chunk(take_rows(self.rows, index), arrays, weights, stored, known, soft)


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
        self.chunk_codes = chunk_codes
        self.table, self.keep = table if weights is None else table.replace(weights=weights), keep
        if keep is None:
            self.n_samples = self.table.total_weight
        else:
            counts = keep if self.table.weights is None else self.table.weights[keep]
            self.n_samples = float(counts.sum())

    def subsample(self, n: int) -> Samples:
        """About `n` of the samples, spread evenly; all where there are fewer."""
        chosen = None if self.keep is None else np.flatnonzero(self.keep)
        number = len(self.table) if chosen is None else len(chosen)
        if number <= n:
            return self
        places = spread_places(number, n)
        return Samples(self.table.subset_rows(places if chosen is None else chosen[places]))

    def __call__(self) -> Iterator[Chunk]:
        """The chunks, of a size that depends on the table alone."""
        most = self.chunk_codes
        if self.table.values is not None:
            most = min(most, CHUNK_VALUES)
        size = max(BLOCK, most // max(self.table.n_vars, 1) // BLOCK * BLOCK)
        for start, stop in blocks(self.table.n_samples, size):
            chunk = chunk_of(self.table, start, stop)
            yield chunk if self.keep is None else chunk.take(self.keep[start:stop])


def spread_places(n: int, m: int) -> NDArray[np.int64]:
    """`m` of `n` places, increasing, one at random in each of `m` ranges: no period shows."""
    edges = np.arange(m + 1) * n // max(m, 1)
    gaps = np.maximum(np.diff(edges), 1)
    return np.asarray(edges[:-1] + np.random.default_rng(0).integers(0, gaps), dtype=np.int64)


def chunk_of(table: Table, start: int, stop: int) -> Chunk:
    """Samples start:stop of a table."""
    weights = None if table.weights is None else table.weights[start:stop]
    if table.values is None:
        is_sparse = table.kind == "sparse_binary"
        rows = table.rows(start, stop) if is_sparse else codes_of(table, start, stop)
        return Chunk(rows, {}, weights)
    part: Values = table.values.rows(start, stop)
    known = None if table.kind == "codes" else table.known(start, stop)
    return Chunk(part.codes, part.arrays, weights, table.rows(start, stop), known)


Chunks = Callable[[], Iterable[Chunk | Evidence | NDArray[Any]]]
"""Gives all samples, chunk by chunk, at every call: as they are, as evidence, or as codes."""


def as_chunk(part: Chunk | Evidence | NDArray[Any]) -> Chunk:
    """Samples, evidence on them, or their codes alone."""
    if isinstance(part, Evidence):
        return Chunk(part.codes, soft=part.soft)
    return part if isinstance(part, Chunk) else Chunk(part)


def codes_of(table: Table, start: int, stop: int) -> NDArray[Any]:
    """Categories `(stop - start, p)` of some samples; of one-hot blocks the category in use."""
    rows: Any = table.rows(start, stop)
    if table.kind == "codes":
        return np.asarray(rows)
    if table.kind == "sparse_binary":
        return np.asarray(rows.toarray() != 0).astype(np.uint8)
    columns = rows.indices.reshape(stop - start, table.n_vars)
    return np.asarray(columns - table.offsets[:-1], dtype=np.int32)


def is_one_hot(table: Table) -> bool:
    """Whether every variable is a single category in every sample."""
    if table.values is not None:
        return False
    return table.kind != "blocks" or one_hot_codes(table) is not None


def model_dims(table: Table) -> NDArray[np.int64]:
    """States of every observed node: its categories, one for a node of another family."""
    if table.values is None:
        return table.dims
    return np.where([f in CODED for f in table.families], table.dims, 1)


def marginals(table: Table) -> list[NDArray[np.float64]]:
    """Frequencies of the categories of every variable; `[1]` for those of other families."""
    mean = coordinate_moments(table)[0]
    if table.kind == "sparse_binary":
        return [np.array([1 - m, m]) for m in mean]
    ends = zip(table.offsets[:-1], table.offsets[1:], table.families, strict=True)
    return [mean[a:b] if family in CODED else np.ones(1) for a, b, family in ends]


def category_bases(table: Table, basis: NDArray[Any]) -> list[Floats]:
    """Rows of a basis over stored coordinates by variable, `(d, n_directions)` each."""
    wide = np.asarray(basis, dtype=np.float64)
    if table.kind == "sparse_binary":
        return [np.stack([np.zeros(wide.shape[1]), row]) for row in wide]
    return [wide[a:b] for a, b in zip(table.offsets[:-1], table.offsets[1:], strict=True)]
