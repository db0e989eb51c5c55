"""Two trees as text, one beside the other, with marks at the splits that they share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest

import numpy as np

from latenttree.cli.terminal import can_print
from latenttree.engine.arrays import Ints
from latenttree.evaluation.comparison import TreeComparison
from latenttree.tree import Tree
from latenttree.tree.drawing import MARKS
from latenttree.tree.split_keys import BranchKeys

GAP = "   "
BOX = "\u251c\u2500\u2514\u2502"

ROOT = "\0root"
"""Key of the nodes that the trees hang from."""

Line = tuple[str, str]
"""What is drawn, and the key."""


def side_by_side(found: TreeComparison, heads: Sequence[str], width: int) -> list[str]:
    """Lines of both trees, below each other where `width` has no room for both.

    Behind an inner node stands the number of the split of the edge above it, the same in both
    trees, or ``*`` where the other tree has it not."""
    trees, marks = (found.first, found.second), _numbers(found)
    order, _, _ = max(trees, key=lambda tree: tree.n_edges).edge_intervals()
    columns = [
        [(head, ""), *_drawn(tree, root, own, np.argsort(order))]
        for head, tree, root, own in zip(heads, trees, matching_roots(found), marks, strict=True)
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


def _drawn(tree: Tree, root: int, marks: Sequence[str], rank: Ints) -> list[Line]:
    """The lines of a tree, branches in the order of the least `rank` of their observed nodes. Keys
    are marks of shared splits, else names of observed nodes."""
    style = MARKS["unicode" if can_print(BOX) else "ascii"]
    above, children = tree.parent_edges(root).tolist(), _children(tree, root, rank)
    lines: list[Line] = []
    stack = [("", "", root)]
    while stack:
        head, margin, v = stack.pop()
        mark = marks[above[v]] if above[v] >= 0 else ""
        own = tree.names[v] if v < tree.n_observed else f"\0{v}"  # a key that no other line has
        own = ROOT if v == root else own
        lines.append((f"{head}{tree.names[v]} {mark}", own if mark in ("", "*") else mark))
        for i, u in enumerate(reversed(children[v])):
            first, below = style[1::2] if i == 0 else style[::2]
            stack.append((margin + first, margin + below, u))
    return [(text.rstrip(), key) for text, key in lines]


def _children(tree: Tree, root: int, rank: Ints) -> list[list[int]]:
    """Of each node, by the least rank of the observed nodes in their branches."""
    parents, order = tree.rooted(root)
    least = np.full(tree.n_nodes, tree.n_observed)
    least[: tree.n_observed] = rank
    children: list[list[int]] = [[] for _ in range(tree.n_nodes)]
    for v in order[:0:-1].tolist():
        least[parents[v]] = min(least[parents[v]], least[v])
        children[int(parents[v])].append(v)
    return [sorted(some, key=lambda v: int(least[v])) for some in children]


def _aligned(left: Sequence[Line], right: Sequence[Line]) -> Iterator[tuple[str, str]]:
    """Texts side by side, so that lines with equal keys stand beside each other."""
    one_keys, other_keys = ([key for _, key in lines] for lines in (left, right))
    matcher = SequenceMatcher(None, one_keys, other_keys, autojunk=False)
    for _, a, b, c, d in matcher.get_opcodes():
        for one, other in zip_longest(left[a:b], right[c:d], fillvalue=("", "")):
            yield one[0], other[0]
