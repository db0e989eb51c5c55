"""How much memory reading a file at once would take."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

from latenttree.data.textfile import suffix_of

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
