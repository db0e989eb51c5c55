"""Two trees as text, one beside the other, with marks at the splits that they share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Literal

import numpy as np

from latenttree.cli.terminal import can_print
from latenttree.evaluation.comparison import TreeComparison
from latenttree.tree import Tree
from latenttree.tree.split_keys import BranchKeys

KEY = "\0"
"""Between what is drawn of a node and the key by which lines are aligned."""

GAP = "   "
BOX = "\u251c\u2500\u2514\u2502"

Line = tuple[str, str]
"""What is drawn, and the key."""


def side_by_side(found: TreeComparison, heads: Sequence[str], width: int) -> list[str]:
    """Lines of both trees, below each other where `width` has no room for both.

    Behind an inner node stands the number of the split of the edge above it, the same in both
    trees, or ``*`` where the other tree has it not."""
    roots = matching_roots(found)
    numbers = _numbers(found)
    columns = [
        [(head, ""), *_drawn(tree, root, own)]
        for head, tree, root, own in zip(
            heads, (found.first, found.second), roots, numbers, strict=True
        )
    ]
    left, right = ([text for text, _ in column] for column in columns)
    if max(map(len, left)) + len(GAP) + max(map(len, right)) > width:
        return [*left, "", *right]
    wide = max(map(len, left))
    return [f"{a:<{wide}}{GAP}{b}".rstrip() for a, b in _aligned(*columns)]


def matching_roots(found: TreeComparison) -> tuple[int, int]:
    """Nodes to hang both trees from: the ends, on the same side, of the shared inner split nearest
    to the centre of the first tree; the centres where there is none."""
    first, second = found.first, found.second
    centre = first.centre()
    rooted, above = first.rooted(centre), first.parent_edges(centre)
    shared = np.zeros(first.n_edges, dtype=np.bool_)
    inner = first.internal_edges()
    shared[inner] = found.match[inner] >= 0
    v = next((v for v in rooted.order[1:].tolist() if shared[above[v]]), None)
    if v is None:
        return centre, second.centre()
    u = int(rooted.parents[v])
    key = BranchKeys(first).behind(u, v)
    x, y = second.edges[found.match[above[v]]].tolist()
    return u, x if BranchKeys(second).behind(x, y) == key else y


def _numbers(found: TreeComparison) -> tuple[list[str], list[str]]:
    """For each edge its mark: of shared inner splits a number, of others "*" where the other tree
    lacks them."""
    inner = set(found.first.internal_edges().tolist())
    first = ["" if e >= 0 else "*" for e in found.match.tolist()]
    second = ["" if e >= 0 else "*" for e in found.back.tolist()]
    shared = [e for e in sorted(inner) if found.match[e] >= 0]
    for i, e in enumerate(shared, 1):
        first[e] = second[int(found.match[e])] = f"[{i}]"
    return first, second


def _drawn(tree: Tree, root: int, marks: Sequence[str]) -> list[Line]:
    """The lines of a tree, with keys: names of observed nodes, marks of shared splits."""
    above = tree.parent_edges(root).tolist()
    notes = {}
    for v, e in enumerate(above):
        mark = marks[e] if e >= 0 else ""
        key = tree.names[v] if v < tree.n_observed else mark.replace("*", "") or f"{KEY}{v}"
        notes[v] = f"{mark}{KEY}{key}"
    style: Literal["unicode", "ascii"] = "unicode" if can_print(BOX) else "ascii"
    text = tree.draw(root=root, style=style, notes=notes)
    return [_split(line) for line in text.splitlines()]


def _split(line: str) -> Line:
    text, _, key = line.partition(KEY)
    return text.rstrip(), key


def _aligned(left: Sequence[Line], right: Sequence[Line]) -> Iterator[tuple[str, str]]:
    """Texts side by side, so that lines with equal keys stand beside each other."""
    one_keys, other_keys = ([key for _, key in lines] for lines in (left, right))
    matcher = SequenceMatcher(None, one_keys, other_keys, autojunk=False)
    for _, a, b, c, d in matcher.get_opcodes():
        for one, other in zip_longest(left[a:b], right[c:d], fillvalue=("", "")):
            yield one[0], other[0]
