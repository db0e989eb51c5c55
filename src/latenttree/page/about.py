"""What the page says of itself: what was learned, how well it fits, what a tree does not tell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from latenttree.phrases import counted
from latenttree.report import Diagnostics
from latenttree.tree import Tree

CAVEATS = (
    "<b>No causes.</b> An edge says that two variables go together; it has no direction. What lies "
    "behind a variable tells nothing more about those before it, once the variable is known.",
    "<b>Hidden variables are summaries.</b> Each one stands for what its neighbours share. Its "
    "name and its words are a reading of it; nobody measured it.",
    "<b>Only the strongest ties.</b> Between any two variables there is one path. Where variables "
    "hang together in more than one way, the tree shows one of them.",
    "<b>An estimate.</b> Other samples may give other edges; support is the chance that an edge "
    "comes back. Dotted edges have little.",
    "<b>Distance on the map</b> has no meaning of its own; the length of an edge in the tables "
    "has: the larger, the weaker the tie.",
)
KEYS = (
    ("/", "search"),
    ("+ −", "zoom"),
    ("arrows", "move the map"),
    ("0", "the whole tree"),
    ("Esc", "close, show all again"),
    ("d", "light or dark"),
    ("?", "this page"),
)


def about_html(tree: Tree, diagnostics: Diagnostics) -> str:
    """The HTML of the dialogue "About"."""
    fit = diagnostics.fit
    observed = counted(tree.n_observed, "observed variable")
    hidden = counted(tree.n_hidden, "hidden variable")
    lines = [
        "<h2>What this shows</h2>",
        f"<p>A latent tree of {observed} and {hidden}: each hidden variable explains why its "
        "neighbours go together.</p>",
        "" if fit is None else f"<p><b>Fit:</b> {escape(fit.summary())}.</p>",
        "<h3>What a tree does not tell</h3>",
        _items(CAVEATS),
        _messages(diagnostics.messages),
        "<h3>Keys</h3>",
        "<p>" + " &nbsp; ".join(f"<kbd>{k}</kbd> {escape(what)}" for k, what in KEYS) + "</p>",
    ]
    return "\n".join(line for line in lines if line)


def edge_key(tree: Tree) -> str:
    """What the lines of the map mean, as far as they occur."""
    parts = []
    if tree.support is not None and len(tree.internal_edges()):
        parts += ["thick: more support", "dotted: little or none"]
    if (tree.signs < 0).any():
        parts.append("dashed: negative")
    return "; ".join([*parts, "small grey: hidden"] if tree.n_hidden else parts)


def _messages(messages: Sequence[str]) -> str:
    if not messages:
        return ""
    return "<h3>Notes of the fit</h3>\n" + _items(escape(str(text)) for text in messages)


def _items(lines: Iterable[str]) -> str:
    return "<ul>\n" + "\n".join(f"<li>{line}</li>" for line in lines) + "\n</ul>"
