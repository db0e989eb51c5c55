"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from latenttree.errors import DataError


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path beside ``path`` to write to; it takes the place of ``path`` at the end.

    On any exception, Ctrl-C included, the temporary file goes and ``path`` stays as it was.
    """
    target = Path(path)
    check_folder(target)
    # Beside the target, so that the final rename stays inside one file system.
    partial = target.with_name(f".{target.stem}-{secrets.token_hex(4)}{target.suffix}")
    try:
        yield partial
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)


def check_target(
    path: str | os.PathLike[str], suffixes: Sequence[str], problem: str, remedy: str
) -> Path:
    """``path``, or an error where no file of one of the suffixes can be written there: ``problem``
    with the name for its braces. Call it before long work."""
    target = Path(path)
    if target.suffix.lower() not in suffixes:
        raise DataError(problem.format(repr(target.name)), remedy, path=str(path))
    check_folder(target)
    return target


def check_folder(path: Path) -> None:
    """Raise where a file could not be written for want of a folder."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {path.parent} does not exist; create it first")
