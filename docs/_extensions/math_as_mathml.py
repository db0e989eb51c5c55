"""Formulas as MathML, which browsers draw by themselves: no script, nothing from a network."""

from __future__ import annotations

from typing import Any

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml


def inline(writer: Any, node: Any) -> None:
    """A formula within a sentence."""
    writer.body.append(tex2mathml(node.astext(), as_block=False))
    raise SkipNode


def block(writer: Any, node: Any) -> None:
    """A formula on lines of its own."""
    writer.body.append(f'<div class="formula">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
