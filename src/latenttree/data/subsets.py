"""Random parts of a table that copy nothing: two halves, or a part held out.

`TableSubset` reads the rows of the whole table as they are requested. Weights are frequencies: a
sample of weight w stands for w draws, the last of them perhaps a fraction.

`distances` and `refinement` call this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.chunk import Chunk, chunk_size
from latenttree.data.row_access import take_rows
from latenttree.data.table import SHARED, IntArray, Table
from latenttree.data.values import Values
from latenttree.engine import THREADS, Pass, merged

Total = TypeVar("Total")
Floats = NDArray[np.float64]

MAX_DRAWS = 1 << 26
"""Draws that are permuted one by one; beyond, each weight is thinned by a binomial number."""


@dataclass(frozen=True)
class Restricted(Generic[Total]):
    """A pass over some of the samples: those at `positions`, ascending (None: all), with `weights`
    in the same order (None: their own)."""

    inner: Pass[Total]
    positions: IntArray | None
    weights: Floats | None

    def start(self) -> Total:
        """The sum over no samples."""
        return self.inner.start()

    def add(self, total: Total, chunk: Chunk, n_jobs: int) -> None:
        """Add those of the samples that are in a chunk."""
        here = slice(chunk.start, chunk.stop)
        if self.positions is not None:
            here = slice(*np.searchsorted(self.positions, [chunk.start, chunk.stop]).tolist())
            chunk = replace(chunk.take(self.positions[here] - chunk.start), start=here.start)
        if self.weights is not None:
            chunk = replace(chunk, weights=self.weights[here])
        if len(chunk):
            self.inner.add(total, chunk, n_jobs)

    def merge(self, total: Total, other: Total) -> None:
        """As the pass does."""
        merged(self.inner, total, other)


COPIED_CODES = 1 << 22
"""Codes in a chunk that is copied, at most."""


class TableSubset(Table):
    """The samples `positions` of the table `whole`, perhaps with other weights; itself a table.

    Chunks and rows are copied from `whole` when they are requested.
    """

    whole: Table
    positions: IntArray

    def __init__(self, table: Table, positions: IntArray, weights: Floats | None = None) -> None:
        whole = table
        if isinstance(table, TableSubset):
            whole, positions = table.whole, table.positions[positions]
        fields = {"whole": whole, "positions": positions, "weights": weights}
        fields["n_samples"] = len(positions)
        for name in (*SHARED, "engine"):
            fields[name] = getattr(whole, name)
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    def families(self) -> tuple[str, ...]:
        """(p,) the family of every variable."""
        return self.whole.families

    @property
    def n_stored(self) -> int | None:
        """Stored coordinates, as many for each sample as in the whole table: about right, without
        reading any."""
        whole = self.whole.n_stored
        if whole is None:
            return None
        return -(-whole * self.n_samples // max(self.whole.n_samples, 1))

    @property
    def block_widths(self) -> dict[int, int]:
        """Those of the whole table."""
        return self.whole.block_widths

    @cached_property
    def has_missing(self) -> bool:
        """Whether the whole table has missing values."""
        return self.whole.has_missing

    @cached_property
    def codes(self) -> NDArray[Any] | None:
        """Codes of the samples: a copy."""
        return self._taken(self.whole.codes)

    @cached_property
    def matrix(self) -> sparse.csr_array | None:
        """Stored coordinates of the samples: a copy."""
        return self._taken(self.whole.matrix)

    @cached_property
    def missing(self) -> NDArray[np.bool_] | None:
        """Where variables are missing: a copy."""
        return self._taken(self.whole.missing)

    @cached_property
    def values(self) -> Values | None:
        """Values of the samples, each array copied when it is first used."""
        return None if self.whole.values is None else self.whole.values.take(self.positions)

    def _taken(self, array: Any) -> Any:
        return None if array is None else take_rows(array, self.positions)

    @property
    def has_values(self) -> bool:
        """Whether the whole table has values."""
        return self.whole.has_values

    def _chunk_size(self) -> int:
        """Fewer samples than in chunks of a whole table, as they are copied."""
        return chunk_size(self.n_vars, self.has_values, COPIED_CODES)

    def chunk(self, start: int, stop: int) -> Chunk:
        """Samples start:stop: a copy of them."""
        part = self.subset_rows(slice(start, stop))
        return replace(part.chunk(0, stop - start), start=start)

    def at_source(self, pass_: Pass[Total]) -> tuple[Table, Pass[Total]]:
        """The whole table, and the pass over all its samples that reads these."""
        return self.whole, Restricted(pass_, self.positions, self.weights)

    def subset_rows(self, index: NDArray[Any] | Sequence[int] | slice) -> Table:
        """The samples of `index`, copied from the whole table."""
        weights = None if self.weights is None else self.weights[index]
        return self.whole.subset_rows(self.positions[index]).replace(weights=weights)


def halves(table: Table) -> tuple[Table, Table]:
    """Half of the samples at random, and the others; always the same ones.

    Every draw of a sample of weight w is in one half or the other, independently: equal samples are
    not shared out evenly, or the halves would repeat each other's noise. Nothing is copied."""
    first = draw_weights(table, -(-n_draws(table) // 2), np.random.default_rng(0))
    if table.weights is None:
        chosen = first > 0
        one, other = np.flatnonzero(chosen), np.flatnonzero(~chosen)
        return TableSubset(table, one), TableSubset(table, other)
    return reweighted(table, first), reweighted(table, table.weights - first)


def n_draws(table: Table) -> int:
    """The total weight, rounded up."""
    return int(np.ceil(table.total_weight))


def draw_weights(
    table: Table, m: int, rng: np.random.Generator, max_draws: int = MAX_DRAWS
) -> Floats:
    """(n,) the weight of each sample in a part of `m` draws at random, without replacement; with
    weights and more than `max_draws` draws, of about `m`."""
    n = n_draws(table)
    if table.weights is not None and n > max_draws:
        return _thinned(table.weights, m / n, rng)
    order = np.arange(n, dtype=np.min_scalar_type(n))
    rng.shuffle(order)
    chosen = order < m
    if table.weights is None:
        return chosen.astype(np.float64)
    before: Floats = np.cumsum(chosen, dtype=order.dtype) - chosen
    ends = np.minimum(np.concatenate([[0.0], np.cumsum(table.weights)]), n)
    last = np.minimum(ends.astype(np.int64), n - 1)
    return np.asarray(np.diff(before[last] + (ends - last) * chosen[last]))


def reweighted(table: Table, weights: Floats) -> TableSubset:
    """The same samples with other weights; without those of weight zero."""
    used = np.flatnonzero(weights > 0)
    return TableSubset(table, used, weights[used])


def _thinned(weights: Floats, share: float, rng: np.random.Generator) -> Floats:
    """(n,) the whole part of each weight thinned by a binomial number, the fraction kept or not."""
    whole = np.floor(weights)
    rest = (rng.random(len(weights)) < share) * (weights - whole)
    return np.asarray(rng.binomial(whole.astype(np.int64), share) + rest)


def without_unused(table: Table, n_directions: int) -> tuple[Table, IntArray | None]:
    """The table without coordinates that no sample has, and the numbers of those that are left; the
    table itself and None unless most coordinates go and every variable keeps more than
    `n_directions + 1`.

    With a million columns of which a sample has a hundred, work for every coordinate would take
    longer than work for every value. Only where there are fewer values than coordinates: their new
    numbers, the only copy, take less than a number for each coordinate."""
    width = int(table.offsets[-1])
    if table.kind != "blocks" or table.engine is not THREADS or (table.n_stored or 0) > width:
        return table, None
    matrix = table.matrix
    assert matrix is not None
    is_used = np.zeros(width, dtype=bool)
    is_used[matrix.indices] = True
    ends = np.concatenate([[0], np.cumsum(is_used)])[table.offsets].astype(np.int64)
    if 2 * ends[-1] > width or (np.diff(ends) <= n_directions + 1).any():
        return table, None
    number = np.cumsum(is_used, dtype=matrix.indices.dtype) - 1
    stored = (matrix.data, number[matrix.indices], matrix.indptr)
    small = sparse.csr_array(stored, shape=(table.n_samples, int(ends[-1])))
    return table.replace(matrix=small, offsets=ends, dims=np.diff(ends)), np.flatnonzero(is_used)
