"""Arrays in .npy and .npz files, whose declared sizes are checked against the sizes of
the files."""

from __future__ import annotations

import math
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.errors import DataError

MAX_DEFLATE_RATIO = 1032
"""No byte of a deflated file unpacks to more bytes than this."""

_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


class Header(NamedTuple):
    """Shape, order and type of an array."""

    shape: tuple[int, ...]
    by_columns: bool
    dtype: np.dtype[Any]

    @property
    def n_values(self) -> int:
        """Values of the array."""
        return math.prod(self.shape)  # of Python's integers, which do not overflow


def array_header(file: Any, size: int) -> Header:
    """What the .npy that begins here declares; `size` is its length in bytes, header included."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy reads the header as a Python literal
        version = np.lib.format.read_magic(file)
        if version not in _HEADERS:
            raise DataError(
                f"version {version} of the .npy format is not known", "save it again", value=version
            )
        shape, by_columns, dtype = _HEADERS[version](file)
    if dtype.hasobject:
        raise DataError("it holds Python objects, which are not read", "save numbers or text")
    header = Header(shape, by_columns and len(shape) > 1, dtype)
    there = size - file.tell()
    if min(shape, default=0) < 0 or not dtype.itemsize or header.n_values * dtype.itemsize > there:
        raise DataError(
            f"an array of shape {shape} and type {dtype} is declared, but "
            f"{max(there, 0):,} bytes are there",
            "it is cut or damaged: save it again",
            value=header.shape,
        )
    return header


def read_values(file: Any, n: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """(n,) the next values of a file."""
    data = file.read(n * dtype.itemsize)
    if len(data) != n * dtype.itemsize:
        raise EOFError(f"{n} values expected, {len(data) // dtype.itemsize} found")
    return np.frombuffer(data, dtype)


@contextmanager
def opened_npy(path: Path) -> Iterator[tuple[IO[bytes], Header]]:
    """The values of a .npy as a stream, and what it declares."""
    with path.open("rb") as file:
        yield file, array_header(file, path.stat().st_size)


def load_npy(path: Path) -> NDArray[Any]:
    """The array of a .npy file, in memory."""
    with opened_npy(path) as (file, header):
        flat = np.fromfile(file, header.dtype, header.n_values)
    return flat.reshape(header.shape, order="F" if header.by_columns else "C")


class Npz:
    """An .npz archive; a member is unpacked only if the file can hold what it declares."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with zipfile.ZipFile(path) as archive:
            infos = {info.filename: info for info in archive.infolist()}
        self._infos = {name.removesuffix(".npy"): info for name, info in infos.items()}

    @property
    def names(self) -> list[str]:
        """Names of the arrays."""
        return list(self._infos)

    @contextmanager
    def opened(self, name: str) -> Iterator[tuple[IO[bytes], Header]]:
        """The values of an array as a stream, and what it declares."""
        if name not in self._infos:
            raise DataError(
                f"it has no array {name!r}",
                f"its arrays are {', '.join(self.names[:5])}",
                value=name,
            )
        info = self._infos[name]
        _check_member(info, self.path.stat().st_size)
        with zipfile.ZipFile(self.path) as archive, archive.open(info) as file:
            yield file, array_header(file, info.file_size)

    def read(self, name: str) -> NDArray[Any]:
        """An array, in memory."""
        with self.opened(name) as (file, header):
            flat = read_values(file, header.n_values, header.dtype)
        return flat.reshape(header.shape, order="F" if header.by_columns else "C")

    def only(self) -> str:
        """The name of the only array."""
        if len(self._infos) != 1:
            raise DataError(
                f"{self.path.name} has {len(self._infos)} arrays ({', '.join(self.names[:5])})",
                "it must hold one array, or a sparse matrix written by scipy.sparse.save_npz",
                value=tuple(self.names),
            )
        return self.names[0]


def is_sparse(members: Sequence[str]) -> bool:
    """Whether an archive holds a matrix that `scipy.sparse.save_npz` wrote."""
    return "format" in members and "shape" in members


def _check_member(info: zipfile.ZipInfo, size: int) -> None:
    known = info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
    if not known or info.flag_bits & 0x1:
        raise DataError(
            f"its member {info.filename!r} is encrypted or packed by method {info.compress_type}",
            "write it with numpy.savez or scipy.sparse.save_npz",
            value=info.compress_type,
        )
    if info.file_size > MAX_DEFLATE_RATIO * min(info.compress_size, size):
        raise DataError(
            f"its member {info.filename!r} declares {info.file_size:,} bytes, which "
            f"{info.compress_size:,} of {size:,} cannot hold",
            "it is cut or damaged: write it again",
            value=info.file_size,
        )
