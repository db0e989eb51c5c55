"""A tree as lines of text; of a large tree what is left out is counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from latenttree.errors import check_option
from latenttree.tree.rooting import ParentEdges, children_of, levels

Style = Literal["unicode", "ascii"]


class _Marks(NamedTuple):
    """Prefixes of a node, of the last child of its parent, and of the nodes below these."""

    child: str
    last_child: str
    below: str
    below_last: str


MARKS: dict[str, _Marks] = {
    "unicode": _Marks("├── ", "└── ", "│   ", "    "),
    "ascii": _Marks("|-- ", "`-- ", "|   ", "    "),
}


def draw_text(
    rooted: ParentEdges,
    names: Sequence[str],
    labels: Sequence[str],
    *,
    style: Style = "unicode",
    max_lines: int | None = None,
    max_depth: int | None = None,
) -> str:
    """The drawing of `Tree.draw`: a line with the label of each node."""
    check_option("style", style, style in MARKS, "give 'unicode' or 'ascii'")
    for name, limit, least in (("max_lines", max_lines, 2), ("max_depth", max_depth, 1)):
        whole = isinstance(limit, int | np.integer) and not isinstance(limit, bool)
        possible = limit is None or (whole and limit >= least)
        check_option(name, limit, possible, f"give a whole number from {least}, or None for all")
    drawing = _Drawing(rooted, names, labels)
    n_shown = drawing.n_shown(max_lines, max_depth)
    return "\n".join(drawing.lines(n_shown, MARKS[style]))


class _Drawing:
    """A rooted tree to be drawn. The nodes that are shown come first in breadth-first order, so
    that everything below a node that is left out is left out too."""

    def __init__(self, rooted: ParentEdges, names: Sequence[str], labels: Sequence[str]) -> None:
        self.rooted, self.names, self.labels = rooted, names, labels
        self.parents, self.order = rooted.parents.tolist(), rooted.order.tolist()
        self.children = children_of(rooted)

    def n_shown(self, max_lines: int | None, max_depth: int | None) -> int:
        """How many nodes, in breadth-first order, fit within the limits; every node below which
        some are left out takes one line more."""
        n = len(self.order)
        most = n if max_depth is None else sum(d <= max_depth for d in levels(self.rooted))
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

    def lines(self, n_shown: int, marks: _Marks) -> list[str]:
        """The drawing, depth first; a stack, so that depth costs no recursion."""
        shown = set(self.order[:n_shown])
        n_left_out = self._left_out(n_shown)
        lines: list[str] = []
        stack: list[tuple[str, str, int]] = [("", "", self.order[0])]
        while stack:
            head, margin, v = stack.pop()
            if v < 0:  # those left out below node ~v
                lines.append(head + _more(n_left_out[~v], self.names[~v]))
                continue
            lines.append(head + self.labels[v])
            below = [u for u in self.children[v] if u in shown]
            if n_left_out[v]:
                below.append(~v)
            for i, u in enumerate(reversed(below)):
                mark, rest = marks[1::2] if i == 0 else marks[::2]
                stack.append((margin + mark, margin + rest, u))
        return lines

    def _left_out(self, n_shown: int) -> list[int]:
        """For each node that is shown, how many nodes are left out in the branches that begin with
        a child that is not shown."""
        n_below = [0] * len(self.order)
        for v in reversed(self.order[n_shown:]):
            n_below[self.parents[v]] += n_below[v] + 1
        return n_below


def _more(n: int, name: str) -> str:
    return f"... {n:,} more node{'s' if n > 1 else ''} below {name}"
