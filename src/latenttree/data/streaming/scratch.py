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
        self._write(array)
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

    def join(self, parts: Iterable[NDArray[Any]], shape: tuple[int, ...], dtype: Any) -> Segment:
        """Append an array whose rows come in parts; together they have this shape."""
        self._write(np.zeros(-self.size % _ALIGNED, dtype=np.uint8))
        whole = Segment(self.size, np.dtype(dtype), shape)
        for part in parts:
            self._write(np.ascontiguousarray(part, dtype=dtype))
        if self.size - whole.offset != whole.nbytes:
            raise ValueError(f"parts of {self.size - whole.offset} bytes for {whole}")
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

    def _write(self, array: NDArray[Any]) -> None:
        if not array.size:
            return
        try:
            self._file.seek(self.size)
            self._file.write(array.data.cast("B"))
            self._file.flush()  # or a full disk would show later, elsewhere
        except OSError as error:
            raise DataError(
                f"no room for scratch files in {str(self.folder or tempfile.gettempdir())!r} "
                f"after {self.size / 2**30:.2f} GiB ({error.strerror})",
                Text(
                    "pass ",
                    Option("scratch"),
                    " with a folder that has room, or raise ",
                    Option("memory_limit"),
                ),
                value=self.size,
                path=str(self.folder or tempfile.gettempdir()),
                option="scratch",
            ) from error
        self.size += array.nbytes


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


class Arrays:
    """Arrays that come in parts of rows: in memory, or beyond `room` bytes in a mapped file."""

    def __init__(self, room: int, folder: str | Path | None = None) -> None:
        self._room, self._folder = room, folder
        self._scratch: ScratchFolder | None = None
        self._found: list[NDArray[Any] | Segment] = []

    def add(self, parts: Iterable[NDArray[Any]], shape: tuple[int, ...], dtype: Any) -> None:
        """The next array; together the parts have this shape."""
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        if size <= self._room:
            self._room -= size
            self._found.append(_filled(parts, shape, dtype))
            return
        if self._scratch is None:
            self._scratch = ScratchFolder(self._folder)
        self._found.append(self._scratch.join(parts, shape, dtype))

    def finish(self) -> list[NDArray[Any]]:
        """All arrays, in the order they were added."""
        parts = [array for array in self._found if isinstance(array, Segment)]
        mapped = iter([] if self._scratch is None else self._scratch.mapped(parts))
        return [next(mapped) if isinstance(array, Segment) else array for array in self._found]


def _filled(parts: Iterable[NDArray[Any]], shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    whole, start = np.empty(shape, dtype=dtype), 0
    for part in parts:
        whole[start : start + len(part)] = part
        start += len(part)
    if start != len(whole):
        raise ValueError(f"parts of {start} rows for an array of {len(whole)}")
    return whole


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
