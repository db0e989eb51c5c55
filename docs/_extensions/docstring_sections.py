"""Sections of docstrings (Parameters, Returns, ...) as reStructuredText.

An entry is a line `name : text` or `name, name`, further lines indented. Where the first line is a
type, the rest is a sentence that begins with a capital; otherwise both are one running text. Both
become an entry of a definition list. What stands between single backticks is a link where it is the
name of something that has a page, and code otherwise.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.domains.python import PyXRefRole

ENTRY = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: : (.*))?$")
SECTIONS = {"Parameters", "Attributes", "Returns", "Raises", "Examples", "Notes", "Yields"}


def sections(lines: list[str]) -> list[str]:
    """The docstring with headings as rubrics and entries as definition lists."""
    found: list[str] = []
    i, within = 0, ""
    while i < len(lines):
        if i + 1 < len(lines) and is_heading(lines[i], lines[i + 1]):
            within = lines[i].strip()
            found += ["", f".. rubric:: {within}", ""]
            i += 2
        elif within in {"Parameters", "Attributes", "Returns", "Raises"} and is_entry(lines, i):
            end = end_of_entry(lines, i)
            found += entry(lines[i], lines[i + 1 : end])
            i = end
        else:
            found.append(lines[i])
            i += 1
    return found


def is_heading(line: str, below: str) -> bool:
    """Whether a line is the heading of a section, underlined by dashes."""
    return line.strip() in SECTIONS and bool(re.fullmatch(r"-{3,}", below.strip()))


def is_entry(lines: list[str], i: int) -> bool:
    """Whether line `i` begins an entry: names, with a text after a colon or in lines below."""
    match = ENTRY.match(lines[i])
    below = lines[i + 1] if i + 1 < len(lines) else ""
    return match is not None and (match[2] is not None or below[:1].isspace())


def end_of_entry(lines: list[str], start: int) -> int:
    """The line after the indented lines below an entry."""
    end = start + 1
    while end < len(lines) and (not lines[end] or lines[end][0].isspace()):
        end += 1
    return end


def entry(first: str, below: list[str]) -> list[str]:
    """One entry of a definition list."""
    match = ENTRY.match(first)
    assert match is not None
    text, rest = match[2] or "", [line.strip() for line in below if line.strip()]
    is_type = bool(text and rest) and rest[0][0].isupper() and text[-1:] not in ".,;"
    body = [text, "", *rest] if is_type else [*filter(None, [text]), *rest]
    return [f"``{match[1]}``", *(f"    {line}".rstrip() for line in body), ""]


def process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Rewrite the docstring that autodoc has read."""
    lines[:] = sections(lines)


def name_role(role: str, rawtext: str, text: str, *rest: Any, **options: Any) -> Any:
    """A link to an object of Python, or code where the text is no name of one."""
    if re.fullmatch(r"[A-Za-z_][\w.]*( <[\w.]+>)?", text):
        of_class = re.fullmatch(r"[A-Z]\w*\.\w+", text)  # in whatever module: found by a dot
        name = f".{text}" if of_class else text
        return PyXRefRole()("py:obj", rawtext, name, *rest, **options)
    return [nodes.literal(rawtext, text.replace("\0", "\\"))], []


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_role("name", name_role)
    app.connect("autodoc-process-docstring", process)
    return {"parallel_read_safe": True}
