"""Sparse matrices of .npz files as pairs of row and column, some at a time."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.data.blocks import complex_data
from latenttree.data.streams import array_header, read_values
from latenttree.errors import DataError

Entries = tuple[NDArray[Any], NDArray[Any]]

ENTRIES = 1 << 20
"""Entries read at once."""


class SparseFile:
    """A matrix that `scipy.sparse.save_npz` wrote: CSR, CSC or COO."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with zipfile.ZipFile(path) as archive:
            self.format = str(_whole(archive, "format").astype("S").item().decode())
            shape = _whole(archive, "shape")
        self.shape = (int(shape[0]), int(shape[1]))

    @property
    def streams(self) -> bool:
        return self.format in ("csr", "csc", "coo")

    def present(self, names: Sequence[str]) -> Iterator[Entries]:
        """Rows and columns of the values above zero; finite and not negative is checked."""
        with zipfile.ZipFile(self.path) as archive, _opened(archive, "data") as data:
            (total,), _, dtype = array_header(data)
            if dtype.kind == "c":
                raise complex_data()
            if dtype.kind not in "biuf":
                raise DataError(f"a sparse matrix must be numeric, got type {dtype}; convert it")
            for rows, columns in self._places(archive, total):
                values = read_values(data, len(rows), dtype)
                _check(values, rows, columns, names)
                some = values > 0
                yield rows[some].astype(np.int64), columns[some]

    def _places(self, archive: zipfile.ZipFile, total: int) -> Iterator[Entries]:
        if self.format == "coo":
            with _opened(archive, "row") as rows, _opened(archive, "col") as columns:
                yield from zip(_values(rows, total), _values(columns, total), strict=True)
            return
        ends = _whole(archive, "indptr")[1:]
        with _opened(archive, "indices") as file:
            start = 0
            for minor in _values(file, total):
                major = np.searchsorted(ends, np.arange(start, start + len(minor)), side="right")
                start += len(minor)
                yield (major, minor) if self.format == "csr" else (minor, major)


def _opened(archive: zipfile.ZipFile, name: str) -> Any:
    return archive.open(f"{name}.npy")


def _whole(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    with _opened(archive, name) as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def _values(file: Any, total: int) -> Iterator[NDArray[Any]]:
    _, _, dtype = array_header(file)
    for start in range(0, total, ENTRIES):
        yield read_values(file, min(ENTRIES, total - start), dtype)


def _check(
    values: NDArray[Any], rows: NDArray[Any], columns: NDArray[Any], names: Sequence[str]
) -> None:
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        i = int((~np.isfinite(values)).argmax())
        raise DataError(
            f"NaN or infinity (value {values[i]}) at row {rows[i]}, column {names[columns[i]]!r} "
            "of a sparse matrix; values must be finite: drop or fill it"
        )
    if values.dtype.kind in "if" and values.size and values.min() < 0:
        i = int((values < 0).argmax())
        raise DataError(
            f"negative value {values[i]} at row {rows[i]}, column {names[columns[i]]!r} of a "
            "sparse matrix; counts and presence must be >= 0: correct it, or pass real vectors as "
            "dense blocks"
        )
