"""The model of given hidden states, counted sample by sample; variables near a node by paths."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from latenttree.tree import Tree

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def slow_counted_cpts(
    tree: Tree,
    root: int,
    codes: Ints,
    weights: Floats,
    labels: Sequence[Ints],
    shares: Sequence[Floats],
    n_states: Sequence[int],
    kept: float,
) -> list[Floats]:
    """CPTs of all nodes: `kept` of the counts of samples that have both ends, the rest the
    marginal; an unseen state of the parent has the marginal alone. Codes below 0 are missing."""
    p, parents = tree.n_observed, tree.rooted(root).parents.tolist()
    cpts = []
    for v, u in enumerate(parents):
        own = codes[:, v] if v < p else labels[v - p]
        above = labels[u - p] if u >= 0 else np.zeros(len(codes), dtype=np.int64)
        marginal = shares[v] if v < p else _with_one_each(own, weights, n_states[v - p])
        counts = np.zeros((len(marginal), n_states[u - p] if u >= 0 else 1))
        for x, y, w in zip(own.tolist(), above.tolist(), weights.tolist(), strict=True):
            if x >= 0:
                counts[x, y] += w
        for j, total in enumerate(counts.sum(axis=0)):
            column = counts[:, j] / total if total else marginal
            counts[:, j] = kept * column + (1 - kept) * marginal
        cpts.append(counts)
    return cpts


def _with_one_each(labels: Ints, weights: Floats, k: int) -> Floats:
    """The distribution of states, with one pseudo-sample for each."""
    total = np.ones(k)
    for x, w in zip(labels.tolist(), weights.tolist(), strict=True):
        total[x] += w
    return total / total.sum()


def slow_distances(tree: Tree, hidden: int, shortest: float) -> Floats:
    """(p,) lengths of the paths from a hidden node, every edge at least `shortest`."""
    length = {frozenset(e): x for e, x in zip(tree.edges.tolist(), tree.lengths, strict=True)}
    found = []
    for x in range(tree.n_observed):
        path = tree.path(hidden, x)
        steps = (frozenset(pair) for pair in pairwise(path))
        found.append(sum(max(length[step], shortest) for step in steps))
    return np.array(found)
