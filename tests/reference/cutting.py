"""`Tree.cut` from the matrix of all pairs, with every split of every group."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from tests.reference import tree as reference

from latenttree.tree import Tree


def similarities(tree: Tree, signed: bool) -> NDArray[np.float64]:
    """`exp(-d / 2)` without the edges of leaves, times the sign of the path; no sign is +1."""
    p, found = tree.n_observed, np.ones((tree.n_observed, tree.n_observed))
    for e, (a, b) in enumerate(tree.edges.tolist()):
        leaf = 1 in (len(reference.neighbours(tree, a)), len(reference.neighbours(tree, b)))
        weight = 1.0 if leaf else np.exp(-tree.lengths[e] / 2)
        beyond = np.isin(np.arange(p), list(reference.walk(tree, a, cut=e)))
        crossing = beyond[:, None] != beyond[None, :]
        found[crossing] *= -weight if signed and tree.signs[e] < 0 else weight
    return found


def possible_splits(
    tree: Tree, group: NDArray[np.bool_], signed: bool, size: int = 1
) -> list[NDArray[np.bool_]]:
    """One half of each split of a group: at every edge, and by the signs of paths; both halves have
    `size` members or more."""
    p = tree.n_observed
    sides = [
        np.isin(np.arange(p), list(reference.walk(tree, int(b), cut=e)))
        for e, (_, b) in enumerate(tree.edges.tolist())
    ]
    if signed:
        sides.append(similarities(tree, True)[0] > 0)
    halves = [side & group for side in sides]
    return [half for half in halves if min(half.sum(), (group & ~half).sum()) >= size]


def score(labels: NDArray[np.int64], similarity: NDArray[np.float64]) -> float:
    """Sum over groups of (similarities of their pairs) / size."""
    total = 0.0
    for g in np.unique(labels):
        here = labels == g
        block = similarity[np.ix_(here, here)]
        total += (block.sum() - np.trace(block)) / 2 / here.sum()
    return float(total)


def best_next_score(tree: Tree, labels: NDArray[np.int64], signed: bool, size: int = 1) -> float:
    """The largest score with one group more, of all splits of all groups; -inf without any."""
    similarity, new = similarities(tree, signed), int(labels.max()) + 1
    scores = (
        score(np.where(half, new, labels), similarity)
        for g in range(new)
        for half in possible_splits(tree, labels == g, signed, size)
    )
    return max(scores, default=-np.inf)
