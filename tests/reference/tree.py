"""Trees by walking: nothing here is fast, and nothing is clever."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from latenttree.tree import Tree

Split = frozenset[frozenset[str]]


def neighbours(tree: Tree, node: int) -> list[int]:
    """Neighbours found by looking at every edge."""
    pairs = tree.edges.tolist()
    return sorted([b for a, b in pairs if a == node] + [a for a, b in pairs if b == node])


def walk(tree: Tree, start: int, cut: int | None = None) -> dict[int, float]:
    """Distance from ``start`` to every node that can be reached without the edge ``cut``."""
    distance = {start: 0.0}
    to_visit = [start]
    while to_visit:
        v = to_visit.pop()
        for e, (a, b) in enumerate(tree.edges.tolist()):
            if e == cut or v not in (a, b):
                continue
            u = b if v == a else a
            if u not in distance:
                distance[u] = distance[v] + float(tree.lengths[e])
                to_visit.append(u)
    return distance


def path_lengths(tree: Tree) -> NDArray[np.float64]:
    p = tree.n_observed
    rows = [walk(tree, i) for i in range(p)]
    return np.array([[rows[i][j] for j in range(p)] for i in range(p)]).reshape(p, p)


def splits(tree: Tree) -> list[Split]:
    """For each edge, the two sets of observed names that its removal leaves."""
    everyone = frozenset(tree.observed_names)
    result = []
    for e, (a, _) in enumerate(tree.edges.tolist()):
        side = frozenset(tree.names[v] for v in walk(tree, a, cut=e) if v < tree.n_observed)
        result.append(frozenset({side, everyone - side}))
    return result


def is_trivial(split: Split) -> bool:
    return min(len(side) for side in split) < 2


def same_topology(a: Tree, b: Tree) -> bool:
    """Buneman: a tree whose nodes of degree 1 and 2 are labelled is known by its splits."""
    return set(a.observed_names) == set(b.observed_names) and set(splits(a)) == set(splits(b))


def split_errors(truth: Tree, estimate: Tree) -> tuple[int, int]:
    true, found = set(splits(truth)), set(splits(estimate))
    return len(true - found), len(found - true)


def normalized_robinson_foulds(a: Tree, b: Tree) -> float:
    of_a, of_b = set(splits(a)), set(splits(b))
    internal = [s for tree in (of_a, of_b) for s in tree if not is_trivial(s)]
    pendant = [s for s in of_a ^ of_b if is_trivial(s)]
    largest = len(internal) + len(pendant)
    return len(of_a ^ of_b) / largest if largest else 0.0


def groups(tree: Tree) -> list[set[str]]:
    p = tree.n_observed
    around = [{v for v in neighbours(tree, h) if v < p} for h in range(p, tree.n_nodes)]
    return [{tree.names[v] for v in group} for group in around if group]


def structure_error(truth: Tree, estimate: Tree) -> float:
    found, true = groups(estimate), groups(truth)
    errors = [min(len(g - t) / len(g) for t in true) for g in found]
    return sum(errors) / len(errors)
