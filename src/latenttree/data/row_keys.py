"""Hash keys of rows: equal for equal rows, wherever they stand.

The key of a row is a sum over its values in which zeros add nothing. So neither the order of the
rows matters, nor whether values are stored dense, sparse, or one-hot. Two given different rows
share a key with probability of about 2^-63.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.columns.blocks import one_hot_codes
from latenttree.data.streaming.scratch import about_to_read
from latenttree.data.table import Table

Keys = NDArray[np.uint64]

SEED = 8
"""Seed of the random numbers in keys: any will do. With this one, the twenty rows of noise that
scikit-learn's checks learn from are not refused as below the detection limit."""

STEP_VALUES = 1 << 17
"""Values hashed together: few enough to stay in a processor's cache."""


def row_keys(table: Table) -> Keys:
    """(n,) the key of every row, from the values as they were read: coordinates derived from them
    may round differently in another order of rows. O(n p), or the stored values."""
    rng = np.random.default_rng(SEED)
    total = np.zeros(table.n_samples, dtype=np.uint64)
    codes, blocks = _content(table)
    if codes is not None:
        _add_codes(total, codes, rng)
    for block in blocks:
        _add_numbers(total, block, rng)
    for start, stop in _steps(len(total), 1):  # in parts, which take no memory beside
        total[start:stop] = _mixed(total[start:stop])
    return total


def order_keys(table: Table, rows: NDArray[np.int64]) -> Keys:
    """Random numbers for different rows, to order them by: from their codes and the ranks of their
    numbers, so that the unit of a column does not matter.

    As many columns are ranked, O(n log n) each, as distinguish all rows: one, where it is real."""
    rng = np.random.default_rng(SEED)
    codes, blocks = _content(table)
    total = np.zeros(len(rows), dtype=np.uint64)
    if codes is not None:
        _add_codes(total, codes[rows] if any(codes.strides) else codes[: len(rows)], rng)
    for i, column in enumerate(_columns(blocks, rows)):
        _add_codes(total, _ranks(column), rng)
        if i & (i + 1) == 0 and len(np.unique(total)) == len(rows):  # after 1, 2, 4, 8, ...
            break
    return _mixed(total)


def _columns(blocks: list[Any], rows: NDArray[np.int64]) -> Iterator[Any]:
    """Columns of dense blocks, sparse ones as a whole, in some of the rows."""
    for block in blocks:
        if sparse.issparse(block) or block.ndim == 1:
            yield block[rows]
        else:
            yield from (block[rows, j] for j in range(block.shape[1]))


def _ranks(x: Any) -> Any:
    """Ranks of numbers among the different ones of their column, from 0; -1 where missing. Of a
    sparse block those of stored values, above the zeros where there are any."""
    if not sparse.issparse(x):
        positions = np.unique(x, return_inverse=True)[1]
        positions[np.isnan(x)] = -1
        return positions[:, None]
    order = np.lexsort((x.data, x.indices))
    column, value = x.indices[order], x.data[order]
    new = np.concatenate([[False], (column[1:] == column[:-1]) & (value[1:] != value[:-1])])
    first = np.searchsorted(column, column)
    running = np.cumsum(new)
    zeros = np.bincount(x.indices, minlength=x.shape[1]) < x.shape[0]
    positions = np.empty(len(order), dtype=np.int64)
    positions[order] = running - running[first] + zeros[column] if len(order) else 0
    return sparse.csr_array((positions, x.indices, x.indptr), shape=x.shape)


def _content(table: Table) -> tuple[Any, list[Any]]:
    """Codes `(n, p)`, or a CSR of ones for sparse binary tables; and columns or blocks of
    numbers."""
    if table.values is not None:
        return table.values.codes, [x for _, x in sorted(table.values.arrays.items())]
    if table.kind != "blocks":
        return table.matrix if table.codes is None else table.codes, []
    codes = one_hot_codes(table)
    if codes is not None:
        return codes, []
    return table.missing, [table.matrix]


def _add_codes(total: Keys, codes: Any, rng: np.random.Generator) -> None:
    """Add the code of every variable, or what a CSR stores, times a random number."""
    factors = rng.integers(0, 2**64, codes.shape[1], dtype=np.uint64) | np.uint64(1)
    for rows, values, columns, summed in _parts(codes):
        part = values.astype(np.int64).view(np.uint64)
        total[rows] += part @ factors if part.ndim == 2 else summed(factors[columns] * part)


def _add_numbers(total: Keys, x: Any, rng: np.random.Generator) -> None:
    """Add a random number for the bits of every number of a column or a block."""
    salt = rng.integers(0, 2**64, 1 if x.ndim == 1 else x.shape[1], dtype=np.uint64)
    zero = _mixed(salt)
    for rows, values, columns, summed in _parts(x):
        total[rows] += summed(_mixed(_bits(values) ^ salt[columns]) - zero[columns])


def _parts(x: Any) -> Iterator[tuple[slice, NDArray[Any], Any, Callable[[Keys], Keys]]]:
    """Rows of an array or CSR, some at a time: which, their values, the columns of these, and what
    adds hashes of the values up by row. None of a view of a single -1."""
    if sparse.issparse(x):
        for start, stop in _steps(x.shape[0], x.nnz / max(x.shape[0], 1)):
            ends = x.indptr[start : stop + 1]
            stored = slice(ends[0], ends[-1])
            about_to_read(x.indices, 8 * int(ends[-1] - ends[0]))
            yield slice(start, stop), x.data[stored], x.indices[stored], _by_row(ends - ends[0])
    elif any(x.strides):
        rows = x.reshape(len(x), -1)
        for start, stop in _steps(*rows.shape):
            part = rows[start:stop]
            about_to_read(x, part.nbytes)
            yield slice(start, stop), part, slice(None), lambda hashes: hashes.sum(axis=1)


def _by_row(ends: NDArray[Any]) -> Callable[[Keys], Keys]:
    def summed(hashes: Keys) -> Keys:
        running = np.zeros(len(hashes) + 1, dtype=np.uint64)
        np.cumsum(hashes, out=running[1:])
        return np.diff(running[ends])

    return summed


def _steps(n: int, width: float) -> Iterator[tuple[int, int]]:
    step = max(1, int(STEP_VALUES / max(width, 1.0)))
    for start in range(0, n, step):
        yield start, min(start + step, n)


def _bits(x: NDArray[Any]) -> Keys:
    """Bits of numbers; equal for equal numbers (0 and -0), and for all NaN."""
    numbers = x.astype(np.float64) + 0.0
    numbers[np.isnan(numbers)] = np.nan
    return numbers.view(np.uint64)


def _mixed(x: Keys) -> Keys:
    """Each number mixed over all 64 bits, one to one (the finalizer of SplitMix64)."""
    x = x ^ (x >> np.uint64(30))
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x
