"""A tree that is handed over, as the structure of a fit."""

from __future__ import annotations

from dataclasses import replace

from latenttree.data import Table
from latenttree.phrases import listed
from latenttree.structure.leaf_variables import SHORT, misplaced
from latenttree.structure.learn import Structure
from latenttree.tree import Tree
from latenttree.tree.matching import hung_from_copies

SHOWN = 5
"""Variables that a note names."""


def given_structure(tree: Tree, table: Table, gaussian: bool) -> Structure:
    """The tree as it is, over the variables of the table, all of its edges taken for true.

    A number has no states for others to depend on: unless hidden variables are real themselves, one
    that has several neighbours in the tree, or an observed one, hangs from a new hidden node in its
    place, which a note says."""
    notes: tuple[str, ...] = ()
    if not gaussian and table.values is not None and tree.n_observed > 2:
        moved = misplaced(tree, tuple(table.values.arrays))
        if len(moved):
            some = listed([tree.names[v] for v in moved], SHOWN)
            notes = (
                f"in the tree {some} stood between other variables, where a number cannot be; a "
                "hidden variable took each place",
            )
            tree = hung_from_copies(tree, moved, SHORT)
    return replace(Structure.of_tree(tree), shape="given", notes=notes)
