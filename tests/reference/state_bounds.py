"""How many states a hidden node can use, by walking every branch with numbers of any size."""

from __future__ import annotations

from math import inf, prod

import numpy as np
from numpy.typing import NDArray

from latenttree.tree import Tree

Ints = NDArray[np.int64]


def slow_most_states(tree: Tree, dims: Ints, limit: int) -> Ints:
    """(n_hidden,) the fewest configurations of all branches but one, between two and `limit`."""

    def configurations(v: int, u: int) -> float:
        """Of the branch at v, seen from its neighbour u."""
        if v < tree.n_observed:
            return int(dims[v]) or inf
        return prod(configurations(w, v) for w in tree.neighbors(v).tolist() if w != u)

    found = []
    for v in range(tree.n_observed, tree.n_nodes):
        fewest = min(configurations(v, u) for u in tree.neighbors(v).tolist())
        found.append(min(max(fewest, 2), limit))
    return np.array(found, dtype=np.int64)
