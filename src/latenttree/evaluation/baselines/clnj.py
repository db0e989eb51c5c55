"""CLGrouping with neighbour joining as its local method (Choi et al. 2011, "CLNJ")."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from latenttree.engine.arrays import Floats
from latenttree.evaluation.baselines._shared import EdgeList, check_distances, merge_short_edges
from latenttree.evaluation.baselines.clrg import grouped_tree
from latenttree.evaluation.baselines.neighbor_joining import neighbor_joining_edges
from latenttree.evaluation.baselines.recursive_grouping import rules_for
from latenttree.tree import Tree


def clnj(D: ArrayLike, n_samples: float = math.inf, names: Sequence[str] | None = None) -> Tree:
    """Return the CLGrouping tree whose groups are solved by neighbour joining.

    Neighbour joining makes leaves of all members and a binary tree over them; edges shorter than
    the rule of the authors (`-log 0.9`; rounding where distances are exact) are contracted, so
    that larger families and observed inner nodes come out. Parameters as in `recursive_grouping`.

    With exact additive distances the result is exact. Cost as that of `clrg`.
    """
    distances, names = check_distances(D, names)
    rules = rules_for(n_samples, float(distances.max()))

    def local(block: Floats) -> EdgeList:
        edges, lengths = neighbor_joining_edges(block)
        return merge_short_edges(len(block), edges, np.maximum(lengths, 0.0), rules.merge_below)

    return grouped_tree(distances, names, rules, local)
