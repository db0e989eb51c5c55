"""CLRG-EM: the tree of CLGrouping, its parameters by EM from random starts.

What the paper compares itself with: structure first, from distances alone, then EM that knows
nothing of the moments.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from latenttree.data import Table, as_table, check_n_states
from latenttree.distances.estimate import estimate_distances
from latenttree.evaluation.baselines.clrg import clrg
from latenttree.evaluation.baselines.random_em import RandomEM, random_em


def clrg_em(
    X: Any, n_states: int, *, random_state: int = 0, n_jobs: int = 1, **options: Any
) -> RandomEM:
    """Learn a CLRG tree from the information distances of `X`, then `random_em` on it.

    The distances are those that `LatentTree` uses. Parameters, `options` too, as in `random_em`.
    """
    table = X if isinstance(X, Table) else as_table(X)
    check_n_states(table, n_states)
    found = estimate_distances(table, n_states, random_state=random_state, n_jobs=n_jobs)
    tree = clrg(found.values.astype(np.float64), found.n_samples, table.names)
    return random_em(tree, table, n_states, random_state=random_state, n_jobs=n_jobs, **options)
