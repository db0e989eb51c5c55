"""How much memory reading may take, and how much a file would."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

from latenttree.data.textfile import suffix_of
from latenttree.errors import DataError

_TIMES = {".npy": 3, ".csv": 6, ".tsv": 6, ".txt": 6}
"""Bytes in memory for a byte of a file, while all of it is read at once: roughly, and rather more
than less."""

_COMPRESSED = 4  # of text


def memory_needed(path: Path) -> int:
    """Bytes that reading a file at once takes, roughly; 0 where it is always read so."""
    size, suffix = path.stat().st_size, suffix_of(path)
    if suffix == ".npz":
        return _of_archive(path)
    if suffix == ".parquet":
        return _of_parquet(path)
    times = _TIMES.get(suffix, 0)
    return size * times * (_COMPRESSED if suffix != path.suffix.lower() else 1)


def _of_archive(path: Path) -> int:
    try:
        with zipfile.ZipFile(path) as archive:
            found = {info.filename: info.file_size for info in archive.infolist()}
    except (zipfile.BadZipFile, OSError):  # told where it is read
        return 0
    return sum(found.values()) * (6 if "shape.npy" in found else 3)


def _of_parquet(path: Path) -> int:
    """Values take 8 bytes, texts 60; three times over."""
    from latenttree.data.streams import parquet_file

    with parquet_file(path) as file:
        widths = [60 if re.search("string|binary", str(t)) else 8 for t in file.schema_arrow.types]
        return int(3 * file.metadata.num_rows * sum(widths))


# ---- limits -----------------------------------------------------------------------------

_SIZE = re.compile(r"\s*([\d.]+)\s*([KMGT]?)(i?)B?\s*", re.IGNORECASE)


def limit_bytes(memory_limit: Any) -> int:
    """Bytes of a limit: a number of them, or text as "500MB" or "8GiB"; half of what is free if
    None."""
    if memory_limit is None:
        return available_memory() // 2
    found = _SIZE.fullmatch(str(memory_limit))
    try:
        if found is None or isinstance(memory_limit, bool):
            raise ValueError
        base = 1024 if found[3] else 1000
        size = float(found[1]) * base ** " KMGT".index(found[2].upper() or " ")
    except ValueError:
        size = 0.0
    if size < 1:
        raise DataError(
            f"memory_limit={memory_limit!r}: give a number of bytes, or text like '500MB' or '8GiB'"
        )
    return int(size)


def available_memory() -> int:
    """Bytes that are free, or that the system would free."""
    try:
        with open("/proc/meminfo") as file:
            found = re.search(r"MemAvailable:\s+(\d+) kB", file.read())
        return int(found[1]) * 1024 if found else 1 << 32
    except OSError:
        return _pages() or 1 << 32


def _pages() -> int:
    import os

    try:
        return int(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return 0
