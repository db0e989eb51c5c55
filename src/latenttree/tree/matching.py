"""Trees that are handed over: as a `Tree`, as Newick text, or in something that has one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from latenttree.errors import DataError, described
from latenttree.phrases import listed
from latenttree.tree.names import hidden_names
from latenttree.tree.rooting import IntArray
from latenttree.tree.tree import Tree

SHOWN = 5
"""Names that an error lists."""

LEAST_INNER = 3
"""Neighbours of a labelled node of Newick text that may be hidden."""


def is_newick(text: Any) -> bool:
    """Whether this is text that means a tree, rather than a name."""
    return isinstance(text, str) and (text.rstrip().endswith(";") or "(" in text)


def as_tree(value: Any, observed: Sequence[str] | None = None) -> Tree:
    """The tree of a `Tree`, of Newick text, or of an object with `tree_` or `tree` (a fitted
    `LatentTree`, a model, simulated data). In Newick text `observed` are the observed nodes, where
    it has all of them."""
    if is_newick(value):
        return _read(value, observed)
    for found in (value, getattr(value, "tree_", None), getattr(value, "tree", None)):
        if isinstance(found, Tree):
            return found
    what = f"got {described(value)} in place of a tree"
    remedy = "pass a Tree, a fitted LatentTree, or Newick text that ends in ';'"
    raise DataError(what, remedy, value=value)


def tree_over(value: Any, names: Sequence[str]) -> Tree:
    """The tree of `value` with the observed nodes `names`, in this order; hidden nodes keep their
    names. Raises `DataError` where the tree has other observed nodes."""
    tree = as_tree(value, names)
    own, wanted = set(tree.observed_names), set(names)
    missing = [name for name in names if name not in own]
    unknown = [name for name in tree.observed_names if name not in wanted]
    if missing or unknown:
        parts = [f"the tree lacks {listed(missing, SHOWN)}"] if missing else []
        parts += [f"the table lacks {listed(unknown, SHOWN)}"] if unknown else []
        raise DataError(
            f"the observed nodes of structure are not the variables of the table: "
            f"{' and '.join(parts)}",
            "name every column once in the tree, and no other observed node; "
            "Tree.from_newick(text, observed=columns) takes all other inner nodes for hidden",
            value=missing or unknown,
            option="structure",
        )
    return tree.reorder(names, keep_names=True)


def hung_from_copies(tree: Tree, nodes: IntArray, length: float) -> Tree:
    """The same tree with the observed `nodes` as leaves, each of which hangs from a new hidden node
    in its place by an edge of this length; other names stay.

        a - x - b     becomes     a - h - b
                                      |
                                      x
    """
    copies = tree.n_nodes + np.arange(len(nodes))
    place = np.arange(tree.n_nodes)
    place[nodes] = copies
    edges = np.concatenate([place[tree.edges], np.column_stack([nodes, copies])])
    free = hidden_names(tree.observed_names, tree.n_nodes + len(nodes))
    names = [name for name in free if name not in tree.names][: len(nodes)]
    lengths = np.append(tree.lengths, np.full(len(nodes), length))
    signs = np.append(tree.signs, np.ones(len(nodes), dtype=np.int8))
    hung = Tree((*tree.names, *names), tree.n_observed, edges, lengths, signs)
    return hung.canonical(keep_names=True)


def _read(text: str, observed: Sequence[str] | None) -> Tree:
    """Newick text; other labelled inner nodes than `observed` are hidden where all of these are
    there."""
    guess = Tree.from_newick(text)
    if observed is None or not set(observed) <= set(guess.names):
        return guess
    others = set(guess.observed_names) - set(observed)
    if any(len(guess.neighbors(name)) < LEAST_INNER for name in others):
        return guess
    return Tree.from_newick(text, observed)
