"""Parameter error by trying every labelling of every hidden node."""

from __future__ import annotations

from collections import defaultdict
from itertools import permutations

import numpy as np

from latenttree.model.tree_model import TreeModel


def parameter_error(found: TreeModel, true: TreeModel) -> float:
    """For models of one shape in which every leaf has a hidden neighbour in both trees."""
    groups = defaultdict(list)
    for x in range(true.tree.n_observed):
        if len(true.tree.neighbors(x)) != 1:
            continue
        (u,), (w,) = true.tree.neighbors(x), found.tree.neighbors(true.tree.names[x])
        A, A_hat = true.conditional(x, u), found.conditional(true.tree.names[x], w)
        groups[u, w].append((A, A_hat))
    errors: list[float] = []
    for group in groups.values():
        k = group[0][0].shape[1]
        tried = [
            [float(np.sqrt(((A - A_hat[:, list(order)]) ** 2).sum())) for A, A_hat in group]
            for order in permutations(range(k))
        ]
        errors += min(tried, key=lambda candidate: sum(e**2 for e in candidate))
    return float(np.mean(errors))
