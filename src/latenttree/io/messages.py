"""Notes of a fit in JSON: plain strings, and beside them the parts of those that name options.

A note is a string; a `latenttree.errors.Text` among them also has parts, so that each surface words
its options itself. Files hold the strings in the words of Python, and the parts under the number of
the note. Where the parts do not add up to the string, the string alone is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from latenttree.errors import NO_VALUE, Option, Phrase, Text
from latenttree.io.json_text import plain


def parts_of(messages: Sequence[str]) -> dict[str, list[Any]]:
    """The parts of every `Text` with options or phrases, by its number."""
    parts = {}
    for i, message in enumerate(messages):
        if isinstance(message, Text) and not all(isinstance(part, str) for part in message.parts):
            try:
                parts[str(i)] = [_encoded(part) for part in message.parts]
            except TypeError:  # a value that JSON cannot hold: the string alone is kept
                continue
    return parts


def with_parts(messages: Sequence[str], parts: Any) -> list[str]:
    """The messages, as `Text` where `parts` has the parts of one."""
    known = parts if isinstance(parts, dict) else {}
    return [_text(message, known.get(str(i))) for i, message in enumerate(messages)]


def _encoded(part: str | Option | Phrase) -> Any:
    if isinstance(part, Option):
        value = {} if part.value is NO_VALUE else {"value": plain(part.value, part.name)}
        return {"option": part.name} | value
    if isinstance(part, Phrase):
        return {"phrase": part.key, "text": part.text}
    return str(part)


def _text(message: str, parts: Any) -> str:
    if not isinstance(message, str) or not isinstance(parts, list):
        return message
    decoded = [_decoded(part) for part in parts]
    text = Text(*(part for part in decoded if part is not None))
    return text if text == message else message


def _decoded(part: Any) -> str | Option | Phrase | None:
    match part:
        case str():
            return part
        case {"option": str(name)}:
            return Option(name, part.get("value", NO_VALUE))
        case {"phrase": str(key), "text": str(text)}:
            return Phrase(key, text)
    return None
