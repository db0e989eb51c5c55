"""Texts of the library in the words of the command line: options become flags.

`words` turns the parts of a `latenttree.errors.Text` into text. A parameter that the command line
does not have is named as Python names it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from latenttree.cli import remedies
from latenttree.errors import NO_VALUE, DataError, Option, Phrase, worded

FLAGS: Mapping[str, str] = {
    "code": "--code",
    "delimiter": "--delimiter",
    "drop_constant": "--drop-constant",
    "family": "--family",
    "groups": "--groups",
    "hidden": "--hidden",
    "ignore": "--ignore",
    "layout": "--layout",
    "max_iter": "--max-iter",
    "max_lines": "--max-lines",
    "memory_limit": "--memory-limit",
    "method": "--method",
    "min_count": "--min-count",
    "min_support": "--min-support",
    "n_jobs": "--threads",
    "n_samples": "-n",
    "n_states": "--states",
    "random_state": "--seed",
    "refine": "--refine",
    "roll_up": "--roll-up",
    "sample": "--sample",
    "search": "--search",
    "since": "--since",
    "smoothing": "--smoothing",
    "time": "--time",
    "tree": "--tree",
    "until": "--until",
    "vocab": "--vocab",
    "weights": "--weights",
}
"""The flag of each parameter of the library that the command line has."""

LIBRARY_ONLY: frozenset[str] = frozenset()
"""Parameters that only Python has; texts that reach the command line can name them."""

PHRASES: Mapping[str, str] = {}
"""What the command line says for a `Phrase`, by its key."""

VALUES: Mapping[tuple[str, Any], str] = {("delimiter", "\t"): "tab"}
"""Values that are written differently on the command line."""


def words(part: Option | Phrase) -> str:
    """A part of a text as the command line writes it."""
    if isinstance(part, Phrase):
        return PHRASES.get(part.key, part.text)
    flag = FLAGS.get(part.name)
    return str(part) if flag is None else " ".join(_arguments(part.name, flag, part.value))


def in_words(text: str) -> str:
    """A note of the library in the words of the command line, on one line."""
    return remedies.in_words(" ".join(worded(text, words).split()))


def error_in_words(error: BaseException) -> str:
    """What an error says, in the words of the command line, on one line."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    text = error.worded(words) if isinstance(error, DataError) else str(error)
    return remedies.in_words(" ".join(text.split()) or type(error).__name__)


def _arguments(name: str, flag: str, value: Any) -> Iterator[str]:
    """`flag` with its value, repeated where it has several: `--family age=poisson`."""
    if value is NO_VALUE or value is True:
        yield flag
    elif value is False or value is None:
        yield f"--no-{flag.removeprefix('--')}"
    elif isinstance(value, Mapping):
        yield from (f"{flag} {shlex.quote(f'{key}={item}')}" for key, item in value.items())
    elif isinstance(value, list | tuple):
        yield from (f"{flag} {shlex.quote(str(item))}" for item in value)
    else:
        yield f"{flag} {shlex.quote(VALUES.get((name, value), str(value)))}"
