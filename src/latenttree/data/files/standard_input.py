"""Standard input as a file."""

from __future__ import annotations

import atexit
import shutil
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory


def stored(path: str | Path) -> Path:
    """The path itself; for "-" that of a file with all of standard input, which is read once."""
    return _standard_input() if str(path) == "-" else Path(path)


@cache
def _standard_input() -> Path:
    """`stdin.parquet` where it begins so, else `stdin.tsv` where its first line has tabs and no
    commas, else `stdin.csv`; it goes when Python ends."""
    folder = TemporaryDirectory(prefix="latenttree-")
    atexit.register(folder.cleanup)
    written = Path(folder.name, "stdin")
    with written.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    with written.open("rb") as file:
        first = file.readline(1 << 20)
    tabs = b"\t" in first and b"," not in first
    suffix = ".parquet" if first.startswith(b"PAR1") else ".tsv" if tabs else ".csv"
    return written.rename(written.with_suffix(suffix))
