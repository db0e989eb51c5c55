"""Rows of a table in any order, also where it lies in a mapped file.

In memory, rows are taken where they stand. In a file they would be read page by page, each page
many times, so they are dealt into piles first: rows of the file in turn, each to the pile of its
new place; then each pile is put in order by itself. Two passes, whatever the size.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.scratch import Arrays, Part, Scratch, about_to_read, map_of
from latenttree.data.table import Table, Values
from latenttree.engine import blocks

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Places = NDArray[Any]

LEAST_PILE, MOST_PILE = 1 << 21, 1 << 25
"""Bytes of the rows of a pile, and of rows that are dealt together: more for large tables, so that
what is written to a pile at once is not too little."""


def taken(table: Table, places: Places, weights: Floats | None) -> Table:
    """The rows at `places`, each perhaps several times, with these weights. What was mapped is
    mapped again, in a file in the same folder."""
    changes: dict[str, Any] = {"n_samples": len(places), "weights": weights}
    if table.codes is not None:
        changes["codes"] = _rows(table.codes, places)
    if table.matrix is not None:
        changes["matrix"] = _csr(table.matrix, places)
    if table.missing is not None:
        changes["missing"] = _rows(table.missing, places)
    if table.values is not None:
        changes["values"] = _values(table.values, places)
    return table.replace(**changes)


def _values(values: Values, places: Places) -> Values:
    arrays = {
        v: _csr(x, places) if sparse.issparse(x) else _rows(x, places)
        for v, x in values.arrays.items()
    }
    return Values(values.families, _rows(values.codes, places), arrays)


def _rows(array: NDArray[Any], places: Places) -> NDArray[Any]:
    if not any(array.strides):  # a view of a single value
        return np.broadcast_to(array[:1], (len(places), *array.shape[1:]))
    memory = map_of(array)
    if memory is None:
        return np.ascontiguousarray(array[places])
    width = max(array.nbytes // max(len(array), 1), 1)
    piles = Piles(places, len(array), width, getattr(memory, "folder", None))
    found = Arrays(0, piles.folder)
    shape = (len(places), *array.shape[1:])
    found.add(piles.dealt(array), shape, array.dtype)
    return found.finish()[0]


def _csr(matrix: sparse.csr_array, places: Places) -> sparse.csr_array:
    """Rows of a CSR with sorted indices, which stay sorted."""
    memory = map_of(matrix.indices)
    if memory is None:
        found = sparse.csr_array(matrix[places])
    else:
        found = _mapped_csr(matrix, places, getattr(memory, "folder", None))
    found.has_sorted_indices = True
    return found


def _mapped_csr(matrix: sparse.csr_array, places: Places, folder: Any) -> sparse.csr_array:
    lengths = np.diff(matrix.indptr)[places]
    indptr = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(matrix.indptr.dtype)
    width = 8 * matrix.nnz // max(matrix.shape[0], 1) + 8
    found, shape = Arrays(0, folder), (int(indptr[-1]),)
    for name in ("indices", "data"):
        values = getattr(matrix, name)
        piles = RaggedPiles(places, matrix.shape[0], width, folder, np.asarray(matrix.indptr))
        found.add(piles.dealt(values), shape, values.dtype)
    indices, data = found.finish()
    return sparse.csr_array(
        (data, indices, indptr), shape=(len(places), matrix.shape[1]), copy=False
    )


class Piles:
    """Rows of a file on their way to new places.

    `places` `(m,)` says which of `n` rows each of the new ones is; `width` are bytes of a row."""

    def __init__(self, places: Places, n: int, width: int, folder: Any) -> None:
        self.folder, self.n, self.places = folder, n, places
        n_bytes = min(max(int(np.sqrt(n * width * 2**14)), LEAST_PILE), MOST_PILE)
        self.size = max(1, n_bytes // width)
        self._to = np.argsort(places, kind="stable").astype(places.dtype)  # new places by old ones
        self._ends = np.searchsorted(
            places, np.arange(0, n + self.size, self.size), sorter=self._to
        )

    def dealt(self, values: NDArray[Any]) -> Iterator[NDArray[Any]]:
        """The rows of an array in a file at their new places, pile by pile."""
        scratch = Scratch(self.folder)
        piles: list[list[Part]] = [[] for _ in range(0, len(self.places), self.size)]
        for block, start in enumerate(range(0, self.n, self.size)):
            rows = self.read(values, start, min(start + self.size, self.n))
            new = self._to[self._ends[block] : self._ends[block + 1]]
            pile = new // self.size
            order = np.argsort(pile, kind="stable")
            ends = np.searchsorted(pile[order], np.arange(len(piles) + 1))
            for i in np.flatnonzero(np.diff(ends)).tolist():
                own = self.places[new[order[ends[i] : ends[i + 1]]]].astype(np.int64) - start
                piles[i].append(scratch.add(self.pick(rows, own)))
        for i, parts in enumerate(piles):
            places = self.places[i * self.size : (i + 1) * self.size]
            order = np.argsort(places, kind="stable")  # rows came in the order of the file
            yield self.arranged([scratch.read(part) for part in parts], i * self.size + order)

    def read(self, values: NDArray[Any], start: int, stop: int) -> Any:
        """Rows start:stop."""
        about_to_read(values, values[start:stop].nbytes)
        return values[start:stop]

    def pick(self, rows: Any, which: Ints) -> NDArray[Any]:
        """Some of the rows that were read, as they are written."""
        return np.asarray(rows[which])

    def arranged(self, parts: list[NDArray[Any]], new: Ints) -> NDArray[Any]:
        """The rows of a pile by their new places."""
        return np.asarray(np.concatenate(parts)[np.argsort(new)])


def _by_old_place(places: Places, n: int) -> Places:
    """New places in the order of the old ones: `np.argsort(places, kind="stable")`, for which a
    permutation needs no sorting, and half the memory."""
    if len(places) == n:
        found = np.empty_like(places)
        found[places] = np.arange(n, dtype=places.dtype)
        steps = blocks(n, 1 << 20)
        if all((places[found[i:j]] == np.arange(i, j)).all() for i, j in steps):
            return found
    return np.argsort(places, kind="stable").astype(places.dtype)


class RaggedPiles(Piles):
    """The same where row `i` is `values[ends[i]:ends[i + 1]]`."""

    def __init__(self, places: Places, n: int, width: int, folder: Any, ends: NDArray[Any]) -> None:
        super().__init__(places, n, width, folder)
        self._offsets, self._lengths = ends, np.diff(ends)[places]

    def read(self, values: NDArray[Any], start: int, stop: int) -> Any:
        ends = self._offsets[start : stop + 1]
        about_to_read(values, values[ends[0] : ends[-1]].nbytes)
        return _ragged(values[ends[0] : ends[-1]], ends - ends[0])

    def pick(self, rows: Any, which: Ints) -> NDArray[Any]:
        return np.asarray(rows[which].data)

    def arranged(self, parts: list[NDArray[Any]], new: Ints) -> NDArray[Any]:
        ends = np.concatenate([[0], np.cumsum(self._lengths[new])])
        return np.asarray(_ragged(np.concatenate(parts), ends)[np.argsort(new)].data)


def _ragged(values: NDArray[Any], ends: NDArray[Any]) -> sparse.csr_array:
    """Rows of different lengths, which can be taken in any order."""
    width = max(int(np.diff(ends).max(initial=0)), 1)
    columns = np.zeros(len(values), dtype=np.int64)
    return sparse.csr_array((values, columns, ends), shape=(len(ends) - 1, width))
