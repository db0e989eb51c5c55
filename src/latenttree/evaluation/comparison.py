"""`TreeComparison`: which splits two trees share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from latenttree.engine.arrays import Bools, Ints
from latenttree.errors import DataError
from latenttree.evaluation.baselines._shared import tidy_hidden
from latenttree.phrases import counted
from latenttree.tree import Tree
from latenttree.tree.split_keys import split_keys

LEAST_SHARED = 3
"""Variables that two trees must have in common to be compared."""


@dataclass(frozen=True)
class TreeComparison:
    """Two trees over the same observed nodes, numbered alike.

    Attributes
    ----------
    first, second : the trees, with their own names of hidden nodes.
    match : (E,) for each edge of the first the edge of the second with the same split, or -1.
    """

    first: Tree
    second: Tree
    match: Ints

    @cached_property
    def back(self) -> Ints:
        """(E,) for each edge of the second the edge of the first with the same split, or -1."""
        back = np.full(self.second.n_edges, -1, dtype=np.int64)
        shared = np.flatnonzero(self.match >= 0)
        back[self.match[shared]] = shared
        return back

    @property
    def distance(self) -> int:
        """The Robinson-Foulds distance, as `metrics.robinson_foulds`."""
        return int(np.sum(self.match < 0) + np.sum(self.back < 0))

    @property
    def normalized(self) -> float:
        """The distance over the number of splits that could differ, 0 where there are none."""
        pendant = np.ones(self.first.n_edges, dtype=np.bool_)
        pendant[self.first.internal_edges()] = False
        n_pendant = int(np.sum(pendant & (self.match >= 0)))
        largest = self.first.n_edges + self.second.n_edges - 2 * n_pendant
        return self.distance / largest if largest else 0.0


def compare_trees(first: Tree, second: Tree) -> TreeComparison:
    """Match the splits of two trees by their keys, over the variables that both have.
    `O(n log n)`."""
    other = set(second.observed_names)
    shared = [name for name in first.observed_names if name in other]
    if len(shared) < LEAST_SHARED:
        what = f"the trees have {counted(len(shared), 'variable')} in common"
        raise DataError(what, "compare trees over the same variables", value=shared)
    first, second = (restricted(tree, shared) for tree in (first, second))
    own, theirs = split_keys(first), split_keys(second)
    order = np.argsort(theirs)
    place = np.minimum(np.searchsorted(theirs[order], own), len(order) - 1)
    found: Ints = order[place]
    return TreeComparison(first, second, np.where(theirs[found] == own, found, -1))


def restricted(tree: Tree, names: Sequence[str]) -> Tree:
    """The tree over some of its observed nodes, in this order: paths between them stay as long as
    they are. Hidden nodes keep their names; signs and support stay where all are kept. `O(n)`."""
    if len(names) == tree.n_observed:
        return tree.reorder(names, keep_names=True)
    kept = [tree.index(name) for name in names]
    rest = np.setdiff1d(np.arange(tree.n_nodes), kept).tolist()
    order = np.array(kept + rest)
    numbers = np.empty(tree.n_nodes, dtype=np.int64)
    numbers[order] = np.arange(tree.n_nodes)
    edges, lengths = tidy_hidden(len(names), numbers[tree.edges], tree.lengths)
    left = np.union1d(np.arange(len(names)), edges)
    own_names = tuple(tree.names[v] for v in order[left].tolist())
    found = Tree(own_names, len(names), np.searchsorted(left, edges), lengths)
    return found.canonical(keep_names=True)


def smaller_sides(tree: Tree, edges: Ints) -> list[list[str]]:
    """Names of the observed nodes on the smaller side of each edge; of equal sides that without the
    first observed node. Ascending by size."""
    order, begin, end = tree.edge_intervals()
    sides: list[list[str]] = []
    for e in edges.tolist():
        inside: Bools = np.zeros(tree.n_observed, dtype=np.bool_)
        inside[order[begin[e] : end[e]]] = True
        if 2 * inside.sum() > tree.n_observed:
            inside = ~inside
        sides.append([tree.names[v] for v in np.flatnonzero(inside).tolist()])
    return sorted(sides, key=len)
