"""The stage `annotate`: the sign and the support of every edge, in the tree itself."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np

from latenttree.data import Table
from latenttree.engine.arrays import Floats
from latenttree.model.signs import edge_signs, ordered_variables
from latenttree.refinement.fitted import Fitted
from latenttree.search.edge_lengths import implied_lengths
from latenttree.search.stage import Learned
from latenttree.tree import Tree


def annotate(learned: Learned, support: Floats, table: Table) -> Learned:
    """The same result, its tree with `signs` and `support` `(E,)`. An edge of support 0 joins parts
    without dependence and has no sign; without a model there are no signs. The edges of a tree that
    was given get the lengths that the model implies."""
    structure, fitted = learned.structure, learned.fitted
    if fitted is None:
        tree = structure.tree.with_evidence(support=support)
        return replace(learned, structure=replace(structure, tree=tree))
    ordered = ordered_variables(table.families, table.dims)
    signs = np.where(support != 0, edge_signs(fitted.model, ordered), 0)
    tree = structure.tree.with_evidence(signs=signs, support=support)
    if structure.shape == "given":
        tree = tree.with_lengths(implied_lengths(fitted.model))
    fitted = _on_tree(fitted, tree)
    return replace(learned, structure=replace(structure, tree=tree), fitted=fitted)


def _on_tree(fitted: Fitted, tree: Tree) -> Fitted:
    """The same fit on a tree of the same nodes and edges."""
    model = copy(fitted.model)
    object.__setattr__(model, "tree", tree)
    return replace(fitted, model=model)
