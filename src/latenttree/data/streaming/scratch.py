"""Arrays on disk: parts that are written once and read back, and arrays too large for memory.

Files have no name (or lose it at once where the system allows), so nothing is left behind, however
the process ends.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.errors import DataError, Option, Text

_ALIGNED = 64  # arrays begin at multiples of this


class Segment(NamedTuple):
    """The position of an array in a file."""

    offset: int
    dtype: Any
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Size in the file."""
        return int(np.prod(self.shape)) * np.dtype(self.dtype).itemsize


Part = Segment | NDArray[Any]


class ScratchFolder:
    """An unnamed file that arrays are added to and read back from; where `held`, they stay in
    memory instead.

    Reading copies to memory that is freed with the copy; pages of a map would stay."""

    def __init__(self, folder: str | Path | None = None, held: bool = False) -> None:
        self.folder, self.held, self.size = folder, held, 0
        if not held:
            self._file = _unnamed_file(folder)

    def add(self, array: NDArray[Any]) -> Part:
        """Append an array."""
        array = np.ascontiguousarray(array)
        if self.held:
            return array
        part = Segment(self.size, array.dtype, array.shape)
        self.size += array.nbytes
        self.write(part.offset, array)
        return part

    def read(self, part: Part) -> NDArray[Any]:
        """An array that was added."""
        if not isinstance(part, Segment):
            return part
        array = np.empty(part.shape, dtype=part.dtype)
        if array.size:
            self._file.seek(part.offset)
            self._file.readinto(array.data.cast("B"))
        return array

    def reserve(self, shape: tuple[int, ...], dtype: Any) -> Segment:
        """Room for an array at the end of the file, to be filled by `write`."""
        whole = Segment(self.size + -self.size % _ALIGNED, np.dtype(dtype), shape)
        self.size = whole.offset + whole.nbytes
        return whole

    def mapped(self, parts: Iterable[Segment]) -> list[NDArray[Any]]:
        """The arrays as views of one private map of the file: writing to them does not
        change it."""
        self._file.flush()
        if not self.size:
            return [np.empty(part.shape, part.dtype) for part in parts]
        memory = ScratchMap(self._file.fileno(), 0, access=mmap.ACCESS_COPY)
        memory.folder = self.folder
        return [
            np.frombuffer(memory, part.dtype, int(np.prod(part.shape)), part.offset).reshape(
                part.shape
            )
            if part.nbytes
            else np.empty(part.shape, part.dtype)
            for part in parts
        ]

    def write(self, offset: int, array: NDArray[Any]) -> None:
        """Write a contiguous array to its place in the file."""
        if not array.size:
            return
        try:
            self._file.seek(offset)
            self._file.write(array.data.cast("B"))
            self._file.flush()  # or a full disk would show later, elsewhere
        except OSError as error:
            raise DataError(
                f"no room for scratch files in {str(self.folder or tempfile.gettempdir())!r} "
                f"after {offset / 2**30:.2f} GiB ({error.strerror})",
                Text(
                    "pass ",
                    Option("scratch"),
                    " with a folder that has room, or raise ",
                    Option("memory_limit"),
                ),
                value=offset,
                path=str(self.folder or tempfile.gettempdir()),
                option="scratch",
            ) from error


def _unnamed_file(folder: str | Path | None) -> Any:
    try:
        return tempfile.TemporaryFile(dir=folder, prefix="latenttree-")
    except OSError as error:
        raise DataError(
            f"cannot write scratch files in {str(folder or tempfile.gettempdir())!r} ("
            f"{error.strerror})",
            Text("pass ", Option("scratch"), " with a folder that exists and has room"),
            path=str(folder or tempfile.gettempdir()),
            option="scratch",
        ) from error


class Growing:
    """An array that is filled by appending rows: one in memory, or a segment of a file."""

    def __init__(self, place: NDArray[Any] | Segment, scratch: ScratchFolder | None) -> None:
        self.place, self._scratch, self.n = place, scratch, 0

    def append(self, rows: NDArray[Any]) -> None:
        """The next rows."""
        if isinstance(self.place, Segment):
            assert self._scratch is not None
            rows = np.ascontiguousarray(rows, dtype=self.place.dtype)
            n_bytes = self.place.nbytes // max(self.place.shape[0], 1)
            self._scratch.write(self.place.offset + self.n * n_bytes, rows)
        else:
            self.place[self.n : self.n + len(rows)] = rows
        self.n += len(rows)


class Arrays:
    """Arrays that come in parts of rows: in memory, or beyond `room` bytes in a mapped file."""

    def __init__(self, room: int, folder: str | Path | None = None) -> None:
        self._room, self._folder = room, folder
        self._scratch: ScratchFolder | None = None
        self._arrays: list[Growing] = []

    def new(self, shape: tuple[int, ...], dtype: Any) -> Growing:
        """The next array, whose rows are to be appended."""
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        if size <= self._room:
            self._room -= size
            array = Growing(np.empty(shape, dtype), None)
        else:
            self._scratch = self._scratch or ScratchFolder(self._folder)
            array = Growing(self._scratch.reserve(shape, dtype), self._scratch)
        self._arrays.append(array)
        return array

    def add(self, parts: Iterable[NDArray[Any]], shape: tuple[int, ...], dtype: Any) -> None:
        """The next array; together the parts have this shape."""
        array = self.new(shape, dtype)
        for part in parts:
            array.append(part)

    def finish(self) -> list[NDArray[Any]]:
        """All arrays, in the order they were added."""
        for array in self._arrays:
            if array.n != array.place.shape[0]:
                raise ValueError(f"parts of {array.n} rows for an array of {array.place.shape}")
        parts = [array.place for array in self._arrays if isinstance(array.place, Segment)]
        mapped = iter([] if self._scratch is None else self._scratch.mapped(parts))
        return [
            next(mapped) if isinstance(array.place, Segment) else array.place
            for array in self._arrays
        ]


# ---- pages of maps ----------------------------------------------------------------------

PAGES = 1 << 23
"""Bytes of a scratch file that may be mapped to memory besides what is read next."""


class ScratchMap(mmap.mmap):
    """A map of a scratch file: how many of its bytes were read since its pages were released, and
    from how many on they are."""

    n_read = 0
    max_read = PAGES
    folder: str | Path | None = None


def about_to_read(array: Any, n_bytes: int) -> None:
    """Release the pages of a scratch file that were read before, where these are many.

    Call it before each part of a pass over an array that may lie in a scratch file. Parts that were
    read before stay valid: their pages are read again when they are used."""
    memory = map_of(array)
    if isinstance(memory, ScratchMap):
        if memory.n_read + n_bytes > memory.max_read:
            release(memory)
            memory.n_read = 0
        memory.n_read += n_bytes


def map_of(array: Any) -> mmap.mmap | None:
    """The memory map that an array is a view of, if any."""
    while array is not None:
        if isinstance(array, mmap.mmap):
            return array
        array = array.obj if isinstance(array, memoryview) else getattr(array, "base", None)
    return None


def release(array: Any) -> None:
    """Release the pages of a map that were read: they count as memory of the process until others
    need it. They are read from the file again when they are used."""
    memory = map_of(array)
    if memory is not None and hasattr(mmap, "MADV_DONTNEED") and os.name == "posix":
        memory.madvise(mmap.MADV_DONTNEED)
