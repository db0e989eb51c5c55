"""The boundary around everything that reads a file: whatever is wrong is a DataError."""

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
    """What libraries raise about a file becomes a DataError that names it, with the original as its
    cause; a DataError that does not name the file is given its name.

    `valid` says what a file should hold where the errors inside say what to do."""
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
    """The words of an error, which may quote a hostile file."""
    return str(error)[:500] or type(error).__name__
