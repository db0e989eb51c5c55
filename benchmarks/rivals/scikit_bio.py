"""scikit-bio: neighbour joining."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.rivals import Answer, Floats, Rival, Task
from latenttree.tree import Tree


class Neighbours(Rival):
    """`skbio.tree.nj` on the information distances that all get."""

    name = "scikit-bio NJ"
    needs = ("skbio",)
    install = "scikit-bio"

    def fit(self, task: Task) -> Answer:
        """The tree of neighbour joining."""
        return Answer(tree=joined(task.distances(), task.table.names))


def joined(distance: Floats, names: Sequence[str]) -> Tree:
    """The tree of scikit-bio's neighbour joining; lengths below zero become zero."""
    ids = [str(i) for i in range(len(names))]  # names may hold what Newick gives a meaning
    symmetric = (distance + distance.T) / 2
    np.fill_diagonal(symmetric, 0.0)
    found: Any = import_module("skbio.tree").nj(
        import_module("skbio").DistanceMatrix(symmetric, ids)
    )
    number: dict[int, int] = {}
    edges, lengths, fresh = [], [], len(ids)
    for node in found.preorder():
        if node.is_tip():
            number[id(node)] = int(node.name)
        else:
            number[id(node)], fresh = fresh, fresh + 1
        if node.parent is not None:
            edges.append((number[id(node.parent)], number[id(node)]))
            lengths.append(max(float(node.length), 0.0))
    return Tree.build(names, np.array(edges), np.array(lengths))


RIVALS = (Neighbours(),)
