"""Characters that a terminal cannot show or Python could not read: a locale without UTF-8."""

from __future__ import annotations

import io
import sys
from typing import Any


def print_all_characters() -> None:
    """Write what a stream cannot hold as an escape such as ``\\xe9``, and never stop there."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def can_print(text: str) -> bool:
    """Whether the terminal, or the file behind ``>``, can hold a text as it is."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def typed(value: Any) -> Any:
    """A text, or a list of texts, as it was typed on a terminal in UTF-8 whatever the locale: bytes
    that the locale has no characters for come from Python as surrogates.

    >>> typed("gr\\udcc3\\udcb6n")
    'gr\xf6n'
    """
    if isinstance(value, list | tuple):
        return type(value)(map(typed, value))
    if not isinstance(value, str):
        return value
    try:
        return value.encode("utf-8", "surrogateescape").decode("utf-8")
    except UnicodeError:
        return value
