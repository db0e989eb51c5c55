"""What a notebook shows of a fitted model: five lines, a small tree, warnings."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from latenttree.phrases import counted, listed, supports_in_words
from latenttree.plots.colors import naming_order
from latenttree.report import Diagnostics
from latenttree.tree import Tree
from latenttree.tree.collapsing import SHOWN_SUPPORT

N_GROUPS, N_NAMES = 3, 4
"""Hidden variables that are described, and variables that each is described by."""

MOST_MESSAGES = 8


def model_html(name: str, tree: Tree, report: Diagnostics) -> str:
    """The page of a fitted model, `name` the class and its parameters."""
    lines = "".join(f"<li>{escape(line)}</li>" for line in learned_lines(tree, report))
    shown = tree if tree.support is None else tree.collapse(SHOWN_SUPPORT)
    svg = shown._repr_svg_()
    picture = f"<details><summary>tree</summary>{svg}</details>" if svg else ""
    return (
        f"<div><b>{escape(name)}</b><ul>{lines}</ul>{_messages(report)}{picture}"
        f"<details><summary>diagnostics</summary><pre>{escape(str(report))}</pre></details></div>"
    )


def learned_lines(tree: Tree, report: Diagnostics) -> list[str]:
    """What was learned, in five lines at most."""
    hidden = counted(tree.n_hidden, "hidden variable")
    sizes = f" with {report.sizes}" if tree.n_hidden else ""
    lines = [f"{counted(tree.n_observed, 'observed variable')}, {hidden}{sizes}"]
    largest = _largest_groups(tree)
    if largest:
        lines.append(f"largest groups: {'; '.join(largest)}")
    support = report.support[tree.internal_edges()] if len(report.support) else report.support
    line = supports_in_words(support, report.support_method, report.n_resamples)
    lines += [line] if line else []
    if report.fit is not None:
        lines.append(report.fit.summary())
    if report.stage_seconds:
        lines.append(f"learned in {sum(report.stage_seconds.values()):.1f} s")
    return lines


def _largest_groups(tree: Tree) -> list[str]:
    """The hidden variables with the most observed neighbours, as "h3: a, b, c"."""
    near = {
        h: [u for u in tree.neighbors(h).tolist() if u < tree.n_observed]
        for h in range(tree.n_observed, tree.n_nodes)
    }
    order = naming_order(tree, np.zeros(tree.n_observed, dtype=np.int64))
    rank = np.argsort(order)
    chosen = sorted(near, key=lambda h: -len(near[h]))[:N_GROUPS]
    texts = []
    for h in chosen:
        names = [tree.names[u] for u in sorted(near[h], key=lambda u: int(rank[u]))]
        if names:
            texts.append(f"{tree.names[h]}: {listed(names, N_NAMES)}")
    return texts


def _messages(report: Diagnostics) -> str:
    """Messages about the data and the fit, the first few of many."""
    if not report.messages:
        return ""
    shown: list[Any] = report.messages[:MOST_MESSAGES]
    left = len(report.messages) - len(shown)
    items = "".join(f"<li>{escape(str(message))}</li>" for message in shown)
    more = f"<li>{left} more in diagnostics_.messages</li>" if left > 0 else ""
    return f"<p>&#9888; {counted(len(report.messages), 'message')}</p><ul>{items}{more}</ul>"
