"""Files of text, compressed or not."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedReader, FileIO, TextIOWrapper
from pathlib import Path
from typing import IO, Any, TextIO, cast

from latenttree.data.files.boundary import reading
from latenttree.engine.progress import tell_share
from latenttree.errors import DataError

# How a compressed file starts, what opens it, and how its name ends.
_COMPRESSED: dict[bytes, tuple[Callable[..., Any], str]] = {
    b"\x1f\x8b": (gzip.open, ".gz"),
    b"\xfd7zXZ": (lzma.open, ".xz"),
    b"BZh": (bz2.open, ".bz2"),
}
_BUFFER = 1 << 18  # bytes


def suffix_of(path: Path) -> str:
    """The suffix of a name in lower case, without that of a compressed file."""
    endings = {ending for _, ending in _COMPRESSED.values()}
    suffix = path.suffix.lower()
    return Path(path.stem).suffix.lower() if suffix in endings else suffix


def check_file(path: Path) -> None:
    """The path is that of a file with content."""
    if not path.is_file():
        raise DataError(
            f"no file {str(path)!r}",
            f"check the path (current folder: {Path.cwd()})",
            path=str(path),
        )
    if path.stat().st_size == 0:
        raise DataError(
            f"file {str(path)!r} is empty (0 bytes)", "write or download it again", path=str(path)
        )


@contextmanager
def open_bytes(path: Path) -> Iterator[tuple[IO[bytes], Watched]]:
    """The bytes of a file, and what reports how much was read; gzip, xz and bzip2 are recognised by
    their first bytes."""
    check_file(path)
    with reading(path), Watched(path) as watched, BufferedReader(watched, _BUFFER) as source:
        yield _uncompressed(source), watched


@contextmanager
def open_text(path: Path) -> Iterator[TextIO]:
    """The text of a UTF-8 file, compressed or not."""
    with open_bytes(path) as (source, _):
        try:
            with TextIOWrapper(source, encoding="utf-8-sig", newline="") as file:
                yield file
        except UnicodeDecodeError as error:
            raise DataError(
                f"{path.name} is not UTF-8 text (byte {error.object[error.start]:#x} at "
                f"position {error.start})",
                "save it as UTF-8",
                value=error.object[error.start],
                path=str(path),
            ) from error


class Watched(FileIO):
    """A file that reports how much of it was read; `tell_share` where another thread reads it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._total, self._done = path.stat().st_size, 0
        self._name = path.name

    def readinto(self, buffer: Any) -> int:
        """Read bytes to a buffer, and report."""
        n = super().readinto(buffer) or 0
        self._done += n
        self.tell_share()
        return n

    def tell_share(self) -> None:
        """Report it to the stage of the calling thread."""
        tell_share(self._name, self._done, self._total)


def _uncompressed(source: Any) -> IO[bytes]:
    start = source.peek(8)
    for mark, (opener, _) in _COMPRESSED.items():
        if start.startswith(mark):
            return cast("IO[bytes]", opener(source, "rb"))
    return cast("IO[bytes]", source)
