"""Texts of the nodes of a picture, and which of them have room."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from latenttree.engine.arrays import Floats, Ints
from latenttree.errors import DataError, Option, Text, check_option
from latenttree.plots.canvas import shortened
from latenttree.tree import Tree

CHARACTER = 0.56
"""Width of a character, in sizes of the font."""

Labels = bool | Mapping[str, str] | Callable[[str], str]


def node_texts(tree: Tree, labels: Labels, max_label: int) -> tuple[str, ...]:
    """The text of every node: its name, or what ``labels`` makes of it; at most ``max_label``
    characters."""
    whole = isinstance(max_label, int | np.integer) and not isinstance(max_label, bool)
    check_option("max_label", max_label, whole and max_label >= 2, "pass a whole number from 2")
    if isinstance(labels, Mapping):
        named = {str(name): str(text) for name, text in labels.items()}
        if not named.keys() & set(tree.names):
            what = Text(Option("labels"), f" names no node of the tree, but {list(named)[:3]}")
            some = ", ".join(repr(name) for name in tree.names[:3])
            raise DataError(what, f"nodes are named {some}, ...", option="labels")
        texts = [named.get(name, name) for name in tree.names]
    elif callable(labels):
        texts = [str(labels(name)) for name in tree.names]
    else:
        known = isinstance(labels, bool | np.bool_)
        check_option("labels", labels, known, "pass True, False, a mapping or a function")
        texts = list(tree.names)
    return tuple(shortened(text, int(max_label)) for text in texts)


def chosen_nodes(tree: Tree, nodes: Any, option: str) -> tuple[int, ...]:
    """Numbers of nodes given as one name or number, or several; of hidden nodes that were
    contracted an error that says so."""
    if nodes is None:
        return ()
    one = isinstance(nodes, str | int | np.integer)
    return tuple(node_number(tree, node, option) for node in ([nodes] if one else nodes))


def node_number(tree: Tree, node: Any, option: str) -> int:
    """The number of a node, or an error that names the option."""
    try:
        return tree.index(node)
    except (KeyError, IndexError, TypeError):
        what = Text(Option(option), f": the tree that is drawn has no node {node!r}")
        remedy = Text(
            "name a variable or a hidden node; edges of little support are contracted, ",
            Option("min_support", 0),
            " draws all",
        )
        raise DataError(what, remedy, value=node, option=option) from None


def names_that_fit(places: Floats, priority: Sequence[int] | Ints, gap: float) -> Ints:
    """Nodes whose names fit with ``gap`` between them, taken in order of ``priority``."""
    taken: list[float] = []
    shown: list[int] = []
    for node in priority:
        place = float(places[node])
        at = int(np.searchsorted(taken, place))
        if all(abs(t - place) >= gap for t in taken[max(at - 1, 0) : at + 1]):
            taken.insert(at, place)
            shown.append(int(node))
    return np.array(sorted(shown), dtype=np.int64)


@dataclass
class Boxes:
    """Boxes ``(left, bottom, right, top)`` of horizontal texts placed so far, in points."""

    taken: Floats

    @classmethod
    def empty(cls) -> Boxes:
        """No texts yet."""
        return cls(np.empty((0, 4)))

    def place(self, xy: Floats, text: str, font: float) -> bool:
        """Whether a text centred at `xy` meets no other; if so, it takes its place."""
        half, height = CHARACTER * font * len(text) / 2 + 1, 0.6 * font + 0.5
        box = np.array([xy[0] - half, xy[1] - height, xy[0] + half, xy[1] + height])
        t = self.taken
        apart = (box[2] < t[:, 0]) | (box[0] > t[:, 2]) | (box[3] < t[:, 1]) | (box[1] > t[:, 3])
        if not apart.all():
            return False
        self.taken = np.vstack([t, box])
        return True
