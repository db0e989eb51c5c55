"""SciPy sparse matrices in .npz files: as a whole, or as pairs of row and column in parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.columns.blocks import checked_csr
from latenttree.data.files.boundary import reading
from latenttree.data.files.npy import Npz, is_sparse, load_npy, read_values
from latenttree.data.files.text import suffix_of
from latenttree.data.sparse_checks import (
    PARTS,
    REBUILD,
    check_ends,
    check_indices,
    check_parts,
    check_size,
)
from latenttree.errors import DataError

Entries = tuple[NDArray[Any], NDArray[Any]]

ENTRIES = 1 << 20
"""Entries read at once."""


class SparseFile:
    """A matrix that `scipy.sparse.save_npz` wrote: CSR, CSC or COO."""

    def __init__(self, path: Path, read_entries: int = ENTRIES) -> None:
        self._archive, self._read_entries = Npz(path), read_entries
        self.format, self.shape = format_of(self._archive), shape_of(self._archive)
        with self._archive.opened("data") as (_, header):
            self._n_stored = header.n_values
        check_size(self.shape, self._n_stored)

    @property
    def streams(self) -> bool:
        """Whether the format can be read in parts."""
        return self.format in ("csr", "csc", "coo")

    def positive_entries(self, names: Sequence[str]) -> Iterator[Entries]:
        """Rows and columns of the values above zero; checks that values are finite and >= 0."""
        with self._archive.opened("data") as (data, (_, _, dtype)):
            checked_csr(np.empty((0, len(names)), dtype), names)
            for rows, columns in self._places():
                values = read_values(data, len(rows), dtype)
                _check(values, rows, columns, names)
                some = values > 0
                yield rows[some].astype(np.int64), columns[some]

    def _places(self) -> Iterator[Entries]:
        if self.format == "coo":
            rows, columns = self._indices("row", 0), self._indices("col", 1)
            yield from zip(rows, columns, strict=True)
            return
        by_rows = self.format == "csr"
        ends = self._archive.read("indptr")
        check_ends(ends, self.shape[0 if by_rows else 1], self._n_stored)
        start = 0
        for minor in self._indices("indices", 1 if by_rows else 0, int(ends[-1])):
            stop = start + len(minor)
            low, high = np.searchsorted(ends, [start, stop]) - [1, 0]
            lengths = np.diff(np.clip(ends[max(low, 0) : high + 1], start, stop))
            major = np.repeat(np.arange(max(low, 0), high), lengths)
            start = stop
            yield (major, minor) if by_rows else (minor, major)

    def _indices(self, name: str, axis: int, total: int | None = None) -> Iterator[NDArray[Any]]:
        """The numbers of rows (axis 0) or columns (1) of the values, or of the first `total`."""
        with self._archive.opened(name) as (file, header):
            if header.shape != (self._n_stored,):
                raise DataError(
                    f"a sparse matrix is damaged: {self._n_stored:,} values, but {name!r} of "
                    f"shape {header.shape}",
                    "write it again",
                    value=header.shape,
                )
            total = self._n_stored if total is None else total
            for start in range(0, total, self._read_entries):
                n = min(self._read_entries, total - start)
                indices = read_values(file, n, header.dtype)
                check_indices(indices, self.shape[axis], ("row", "column")[axis])
                yield indices


def _check(
    values: NDArray[Any], rows: NDArray[Any], columns: NDArray[Any], names: Sequence[str]
) -> None:
    """Raise as for a matrix in memory where a value is negative or not finite."""
    bad = ~(values >= 0) | (values == np.inf)
    if bad.any():
        i = [int(bad.argmax())]
        shape = (int(rows[i[0]]) + 1, len(names))
        checked_csr(sparse.coo_array((values[i], (rows[i], columns[i])), shape=shape), names)


def load_sparse(archive: Npz) -> Any:
    """The matrix that `scipy.sparse.save_npz` wrote."""
    kind, shape = format_of(archive), shape_of(archive)
    parts = {name: archive.read(name) for name in PARTS[kind]}
    check_parts(kind, shape, parts)
    check_size(shape, parts["data"].size)
    data, *where = parts.values()
    made: Any = getattr(sparse, f"{kind}_array")
    if kind == "coo":
        return made((data, tuple(where)), shape=shape)
    return made((data, *where), shape=shape)


def format_of(archive: Npz) -> str:
    """The format of the matrix in an archive, one of `PARTS`."""
    value = archive.read("format")
    kind = value.astype("S").item() if value.size == 1 and value.dtype.kind in "US" else b""
    name = kind.decode("ascii", "replace")
    if name not in PARTS:
        raise DataError(
            f"its format {name[:20]!r} is none of {', '.join(PARTS)}", REBUILD, value=name
        )
    return name


def shape_of(archive: Npz) -> tuple[int, int]:
    """Rows and columns of the matrix in an archive."""
    shape = archive.read("shape")
    if shape.shape != (2,) or shape.dtype.kind not in "iu" or int(shape.min()) < 0:
        raise DataError(
            f"its shape {shape.tolist()!r:.80} is no number of rows and columns",
            REBUILD,
            value=shape.tolist(),
        )
    return int(shape[0]), int(shape[1])


def load_arrays(path: Path) -> Any:
    """The only array, or the sparse matrix, of a .npy or .npz file."""
    with reading(
        path, remedy="write it again with numpy.save, numpy.savez or scipy.sparse.save_npz"
    ):
        if suffix_of(path) == ".npy":
            return load_npy(path)
        archive = Npz(path)
        return load_sparse(archive) if is_sparse(archive.names) else archive.read(archive.only())
