"""A tree as lines of text, however large the tree is: what is left out is counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from latenttree.tree import Tree

Style = Literal["unicode", "ascii"]

MAX_LINES = 1000
MAX_DEPTH = 100


class _Marks(NamedTuple):
    """What stands before a node, before the last of its family, and before those below them."""

    child: str
    last_child: str
    below: str
    below_last: str


MARKS: dict[str, _Marks] = {
    "unicode": _Marks("├── ", "└── ", "│   ", "    "),
    "ascii": _Marks("|-- ", "`-- ", "|   ", "    "),
}


def draw(
    tree: Tree,
    lengths: bool = False,
    root: str | int | None = None,
    *,
    style: Style = "unicode",
    max_lines: int | None = MAX_LINES,
    max_depth: int | None = MAX_DEPTH,
    notes: Mapping[int, str] | None = None,
) -> str:
    """A text drawing; see :meth:`latenttree.tree.Tree.draw`. `notes` stand behind the names of
    nodes."""
    if style not in MARKS:
        raise ValueError(f"style={style!r}: give 'unicode' or 'ascii'")
    _check_limit("max_lines", max_lines, 2)
    _check_limit("max_depth", max_depth, 1)
    start = min(tree.n_observed, tree.n_nodes - 1) if root is None else tree.index(root)
    hung = _Hung(tree, start, lengths, notes or {})
    n_shown = hung.n_shown(max_lines, max_depth)
    return "\n".join(hung.lines(n_shown, MARKS[style]))


def _check_limit(name: str, value: Any, least: int) -> None:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if value is not None and not (whole and value >= least):
        raise ValueError(f"{name}={value!r}: give a whole number from {least}, or None for all")


class _Hung:
    """A tree hung from a root. Nodes that are shown come first in breadth-first order, so that all
    below a node that is left out is left out too."""

    def __init__(self, tree: Tree, root: int, lengths: bool, notes: Mapping[int, str]) -> None:
        rooted = tree.rooted(root)
        self.tree, self.root, self.notes = tree, root, notes
        self.parents, self.order = rooted.parents.tolist(), rooted.order.tolist()
        self.via = tree.parent_edges(root).tolist() if lengths else None
        self.children: list[list[int]] = [[] for _ in range(tree.n_nodes)]
        for v in self.order[1:]:
            self.children[self.parents[v]].append(v)

    def n_shown(self, max_lines: int | None, max_depth: int | None) -> int:
        """How many nodes, in their order, fit within the limits with a line more for every node
        below which some are left out."""
        n = len(self.order)
        most = n if max_depth is None else self._within(max_depth)
        if max_lines is None:
            return most
        place = {v: i for i, v in enumerate(self.order)}
        more = np.zeros(n + 2, dtype=np.int64)  # by how much such lines grow with one node more
        for v in self.order:
            if self.children[v]:
                more[place[v] + 1] += 1
                more[place[self.children[v][-1]] + 1] -= 1
        n_lines = np.arange(n + 1) + np.cumsum(more)[: n + 1]
        return max(1, int(np.flatnonzero(n_lines[: most + 1] <= max_lines)[-1]))

    def _within(self, max_depth: int) -> int:
        """Nodes of at most a depth."""
        depth = [0] * len(self.order)
        for v in self.order[1:]:
            depth[v] = depth[self.parents[v]] + 1
        return sum(d <= max_depth for d in depth)

    def lines(self, n_shown: int, marks: _Marks) -> list[str]:
        shown = set(self.order[:n_shown])
        n_left_out = self._left_out(n_shown)
        lines: list[str] = []
        stack: list[tuple[str, str, int]] = [("", "", self.root)]
        while stack:
            head, margin, v = stack.pop()
            if v < 0:  # those left out below node ~v
                lines.append(head + _more(n_left_out[~v], self.tree.names[~v]))
                continue
            lines.append(head + self._text(v))
            below = [u for u in self.children[v] if u in shown]
            if n_left_out[v]:
                below.append(~v)
            for i, u in enumerate(reversed(below)):
                mark, rest = marks[1::2] if i == 0 else marks[::2]
                stack.append((margin + mark, margin + rest, u))
        return lines

    def _left_out(self, n_shown: int) -> list[int]:
        """For each node that is shown, how many nodes are left out of the branches that begin with
        a child that is not."""
        n_below = [0] * len(self.order)
        for v in reversed(self.order[n_shown:]):
            n_below[self.parents[v]] += n_below[v] + 1
        return n_below

    def _text(self, v: int) -> str:
        text = self.tree.names[v]
        if v in self.notes:
            text += f" {self.notes[v]}"
        if self.via is not None and v != self.root:
            text += f" {self.tree.lengths[self.via[v]]:.4g}"
        return text


def _more(n: int, name: str) -> str:
    return f"... {n:,} more node{'s' if n > 1 else ''} below {name}"
