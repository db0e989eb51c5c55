"""The file: a page with its style, its scripts and its data inside.

The map is drawn by scripts of our own: WebGL 2, or a 2D canvas where there is no graphics card.
They know supports, signs and levels of topics, and are a tenth of the size of phylocanvas.gl or
Plotly's scattergl; `make bench TABLE=page` times them.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

MODULES = ("data", "colours", "flat", "gl", "view", "scene", "labels", "panel", "search", "main")
"""Scripts in `assets/`, each after those that it imports."""

IMPORT = re.compile(r"^import\b[^;]*;\n", re.MULTILINE)
EXPORT = re.compile(r"^export (?=async |function |class |const )", re.MULTILINE)


def document(title: str, about: str, edge_key: str, content: Mapping[str, Any]) -> str:
    """The text of the page; ``about`` and ``edge_key`` are HTML, the title is plain text.

    Data is compressed JSON in base64, so that no name in it can end the script that holds it."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    packed = gzip.compress(text.encode(), 6, mtime=0)
    return Template(asset("page.html")).substitute(
        title=escape(title),
        about=about,
        edge_key=edge_key,
        style=asset("page.css"),
        script=script(),
        data=base64.b64encode(packed).decode("ascii"),
    )


def script() -> str:
    """All modules as one: without imports, since modules cannot be imported from within a page, and
    with names that are different in all of them."""
    return "\n".join(EXPORT.sub("", IMPORT.sub("", asset(f"{name}.js"))) for name in MODULES)


def asset(name: str) -> str:
    """The text of a file in `assets/`."""
    return (files("latenttree.page") / "assets" / name).read_text(encoding="utf8")
