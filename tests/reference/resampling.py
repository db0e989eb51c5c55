"""How often splits are found in trees, by sets of names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from latenttree.tree import Tree


def splits_of(tree: Tree) -> list[frozenset[frozenset[str]]]:
    """For every edge the names on either side."""
    found = []
    for a, b in tree.edges.tolist():
        side, todo = {a}, [a]
        while todo:
            for u in tree.neighbors(todo.pop()).tolist():
                if u not in side and u != b:
                    side.add(u)
                    todo.append(u)
        names = frozenset(tree.names[v] for v in side if v < tree.n_observed)
        found.append(frozenset([names, frozenset(tree.observed_names) - names]))
    return found


def slow_split_counts(tree: Tree, trees: Sequence[Tree]) -> NDArray[np.int64]:
    """(E,) in how many trees each edge's split is found."""
    others = [set(splits_of(other)) for other in trees]
    return np.array([sum(split in other for other in others) for split in splits_of(tree)])
