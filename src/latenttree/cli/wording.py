"""Texts of the library in the words of the command line: options become flags.

`words` turns the parts of a `latenttree.errors.Text` into text. A parameter that the command line
does not have is named as Python names it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from latenttree.errors import NO_VALUE, DataError, Option, Phrase, render

SAME_NAMES = (
    "arity code color_by columns delimiter drop_constant family groups handle_unknown hidden "
    "ignore layout level max_iter max_lines memory_limit method min_count min_size min_support "
    "missing observed_as_leaves refine roll_up sample search since smoothing support time "
    "title tree until vocab weights"
)
FLAGS: Mapping[str, str] = {name: f"--{name.replace('_', '-')}" for name in SAME_NAMES.split()} | {
    "edge_length": "--length",
    "levels": "--topics",
    "n_categories": "--categories",
    "n_observed": "--variables",
    "n_jobs": "--threads",
    "n_words": "--words",
    "n_resamples": "--resamples",
    "n_samples": "-n",
    "n_states": "--states",
    "random_state": "--seed",
    "sample_weight": "--weights",
}
"""The flag of each parameter of the library that the command line has."""

SPECIAL: Mapping[tuple[str, Any], str] = {
    ("delimiter", "\t"): "--delimiter tab",
    ("refine", "em"): "--refine",
    ("scores", True): "--hidden gaussian",
}
"""Options that the command line writes in its own way, by name and value."""

PHRASES: Mapping[str, str] = {
    "drop column": "leave it out by --ignore NAME",
    "figures of fit": "`latenttree show --json` has all figures",
    "keep all samples": "",
    "make categorical": "write it as a word",
    "map columns": " FILE:CODE:TARGET",
    "mark missing": "empty the cell",
    "or groups": "",
    "or names": "",
    "other samples": "of other samples",
    "outside codes": "that the model does not know",
    "try protein": "",
}
"""The command line's words for a `Phrase`, by its key; empty where it has no such option."""


def words(part: Option | Phrase) -> str:
    """A part of a text as the command line writes it."""
    if isinstance(part, Phrase):
        return PHRASES.get(part.key, part.text)
    for key, text in SPECIAL.items():  # values need not be hashable
        if key == (part.name, part.value):
            return text
    flag = FLAGS.get(part.name)
    return str(part) if flag is None else " ".join(_arguments(flag, part.value))


def in_words(text: str) -> str:
    """A note of the library in the words of the command line, on one line."""
    return " ".join(render(text, words).split())


def error_in_words(error: BaseException) -> str:
    """The message of an error in the words of the command line, on one line."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    text = error.render(words) if isinstance(error, DataError) else str(error)
    return " ".join(text.split()) or type(error).__name__


def _arguments(flag: str, value: Any) -> Iterator[str]:
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
        yield f"{flag} {shlex.quote(str(value))}"
