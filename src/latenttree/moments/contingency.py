"""Contingency tables of all pairs of categorical variables at once, by counting.

One pass over the samples gives all second moments in any directions: with C the counts `(D, D)` of
all D categories, `E[z_a z_b^T] = basis_a^T C_ab basis_b / n`, exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.data import Table
from latenttree.data.chunk import Chunk
from latenttree.data.storage import CodedStorage, Storage
from latenttree.engine import parallel
from latenttree.engine.arrays import Floats, Ints
from latenttree.engine.kernels import kernel
from latenttree.moments.cooccurrence import count_bits
from latenttree.moments.mirror import STRIP
from latenttree.moments.packing import INCREMENT, bits_cost, category_bits

Counts = NDArray[np.uint32]

MAX_CATEGORIES = 4096
"""Largest number of categories of all variables for which counts of all pairs are held: 64 MiB."""

# Nanoseconds on one thread: a bit set, a value gathered, a multiply-add of BLAS in float32, a cell
# of the counts times a direction, an increment of a counter beyond the second cache.
SET_BIT = 2.0
GATHER = 1.0
MULTIPLY = 0.025
CELL = 1.0
FAR_INCREMENT = 4.0
NEAR_CELLS = 2**18


def cell_increments_cost(n_samples: float, n_vars: int, n_categories: int) -> float:
    """Nanoseconds to count all pairs of n_vars categories of every sample one by one."""
    each = INCREMENT if n_categories**2 <= NEAR_CELLS else FAR_INCREMENT
    return n_samples * n_vars * (n_vars + 1) / 2 * each


def packed_cost(n_samples: float, n_vars: int, n_categories: int) -> float:
    """Nanoseconds to count them by bits."""
    return float(bits_cost(n_samples, n_categories)) + SET_BIT * n_samples * n_vars


def counting_cost(n_samples: float, n_vars: int, n_categories: int) -> float:
    """Nanoseconds to count them by the cheaper way."""
    size = (n_samples, n_vars, n_categories)
    return min(cell_increments_cost(*size), packed_cost(*size))


def gram_cost(n_samples: float, n_vars: int, n_directions: int) -> float:
    """Nanoseconds for the second moments of features as a Gram product."""
    width = n_vars * n_directions
    return n_samples * (MULTIPLY * width * (width + 1) / 2 + GATHER * width)


def worth_counting(table: Table, n_directions: int) -> bool:
    """Whether counting all pairs of categories is less work than a Gram product of features.

    Only where nothing is missing and samples have no weights."""
    coded = isinstance(table.storage, CodedStorage)
    if not coded or table.weights is not None or table.has_missing:
        return False
    n, p, d = table.n_samples, table.n_vars, int(table.offsets[-1])
    if d > MAX_CATEGORIES:
        return False
    return counting_cost(n, p, d) + CELL * n_directions * d * d < gram_cost(n, p, n_directions)


@kernel
def _increment_cells(codes, offsets, counts, start, stop):  # type: ignore[no-untyped-def]
    """`counts[offsets[a] + codes[n, a], offsets[b] + codes[n, b]] += 1` for b <= a, start <= a <
    stop. Blocks of 64 samples stay in the cache for all variables."""
    for low in range(0, len(codes), 64):
        for a in range(start, stop):
            for n in range(low, min(low + 64, len(codes))):
                row = counts[offsets[a] + np.int64(codes[n, a])]
                for b in range(a + 1):
                    row[offsets[b] + np.int64(codes[n, b])] += np.uint32(1)


@dataclass(frozen=True, eq=False)
class CellCounts:
    """The pass: counts `(D, D)` of pairs on and below the diagonal, one sample after the other."""

    storage: Storage

    def start(self) -> Counts:
        """Zeros."""
        return np.zeros((int(self.storage.offsets[-1]),) * 2, np.uint32)

    def add(self, total: Counts, chunk: Chunk, n_jobs: int) -> None:
        """Add a chunk."""
        p, given = self.storage.n_vars, (self.storage.rows(chunk), self.storage.offsets, total)
        parallel(lambda a, b: _increment_cells(*given, a, b), p, n_jobs, max(1, p // 128))


def _by_bits(table: Table, n_jobs: int) -> Counts:
    """The same from categories as bits."""
    bits = category_bits(table, table.offsets, 0, n_jobs)
    counts = np.zeros((len(bits),) * 2, np.uint32)
    parallel(
        lambda a, b: count_bits(bits[a:b], bits[:b], counts[a:b, :b]), len(bits), n_jobs, STRIP
    )
    return counts


def contingency(table: Table, n_jobs: int = 1) -> Counts:
    """Numbers of samples `(D, D)` that have both of each two categories, by the cheaper way:
    n p^2 / 2 increments, or D^2 / 2 pairs of n / 64 words.

    Codes must not be missing; weights are ignored."""
    size = (table.n_samples, table.n_vars, int(table.offsets[-1]))
    fewer = cell_increments_cost(*size) < packed_cost(*size)
    counts = table.run(CellCounts(table.storage), n_jobs) if fewer else _by_bits(table, n_jobs)
    for low in range(0, len(counts), STRIP):  # only pairs below the diagonal were counted
        high = low + STRIP
        counts[:low, low:high] = counts[low:high, :low].T
        own = np.tril(counts[low:high, low:high])
        counts[low:high, low:high] = own + np.tril(own, -1).T
    return counts


def projected(counts: Counts, offsets: Ints, basis: NDArray[Any]) -> Floats:
    """`basis_a^T C_ab basis_b` of all pairs, `(p r, p r)` for r directions, in float64.

    D^2 r + D p r^2 multiply-adds."""
    p, n_directions = len(offsets) - 1, basis.shape[1]
    exact = basis.astype(np.float64)
    half = np.empty((len(counts), p * n_directions))
    for b, (low, high) in enumerate(pairwise(offsets)):
        half[:, b * n_directions : (b + 1) * n_directions] = counts[:, low:high] @ exact[low:high]
    both = [exact[low:high].T @ half[low:high] for low, high in pairwise(offsets)]
    return np.concatenate(both)
