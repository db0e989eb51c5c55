"""The boundary around all code that reads a file: whatever goes wrong is a DataError that
names it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from latenttree.errors import DataError, Option, Text


@contextmanager
def reading(
    path: str | os.PathLike[str], valid: str = "", remedy: str = "write or download it again"
) -> Iterator[None]:
    """Turn exceptions of libraries about a file into a DataError that names it, with the original
    as its cause; give a DataError without the file's name that name.

    `valid` names what the file should hold, where inner errors already tell the remedy."""
    name = Path(path).name
    try:
        yield
    except FileNotFoundError:
        raise  # it names the file, and is what Python calls it
    except DataError as error:
        error.within("" if name in str(error) else name, path=str(path))
        raise
    except MemoryError as error:
        raise DataError(
            f"reading {name} takes more memory than there is ({_message(error)})",
            Text(
                "if it is so large, pass a lower ",
                Option("memory_limit"),
                f", which reads it part by part; if not, it is damaged: {remedy}",
            ),
            path=str(path),
        ) from error
    except Exception as error:  # parsers promise no closed list
        if valid:
            raise DataError(
                f"{name} holds no valid {valid}: {_message(error)}", path=str(path)
            ) from error
        raise DataError(
            f"cannot read {name}: {_message(error)}",
            f"it is cut or damaged: {remedy}",
            path=str(path),
        ) from error


def _message(error: BaseException) -> str:
    """The message of an error, cut short: it may quote a hostile file."""
    return str(error)[:500] or type(error).__name__
