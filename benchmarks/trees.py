"""Trees as JSON, the tree over some of the variables, and what is around a word."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.evaluation.baselines._shared import tidy_hidden
from latenttree.tree import Tree


def arrays_of(tree: Tree) -> dict[str, Any]:
    """A tree as JSON knows it."""
    return {
        "names": list(tree.observed_names),
        "edges": tree.edges.tolist(),
        "lengths": tree.lengths.tolist(),
    }


def tree_of(arrays: Mapping[str, Any]) -> Tree:
    """The tree of `arrays_of`."""
    return Tree.build(arrays["names"], np.array(arrays["edges"]), np.array(arrays["lengths"]))


def restricted(tree: Tree, names: Sequence[str]) -> Tree:
    """The tree over some of the variables: their splits, all lengths between them. O(n)."""
    kept = [tree.index(name) for name in names]
    number = np.full(tree.n_nodes, -1, dtype=np.int64)
    number[kept] = np.arange(len(kept))
    others = np.flatnonzero(number < 0)
    number[others] = len(kept) + np.arange(len(others))
    edges, lengths = tidy_hidden(len(kept), number[tree.edges], tree.lengths)
    return Tree.build([tree.names[v] for v in kept], edges, lengths)


def neighbourhood(tree: Tree, name: str, n_words: int = 25) -> Tree:
    """The tree over the observed nodes nearest to a variable, counted in edges, then in length."""
    start = tree.index(name)
    order: list[tuple[int, float, int]] = []
    seen, waiting = {start}, deque([(0, 0.0, start)])
    length_of = _lengths(tree)
    while waiting and len(order) < n_words:
        level = []
        while waiting:
            steps, far, node = waiting.popleft()
            if node < tree.n_observed:
                order.append((steps, far, node))
            for other in tree.neighbors(node).tolist():
                if other not in seen:
                    seen.add(other)
                    far_there = far + length_of[min(node, other), max(node, other)]
                    level.append((steps + 1, far_there, other))
        waiting.extend(sorted(level))
    near = [tree.names[node] for _, _, node in sorted(order)[:n_words]]
    return restricted(tree, near)


def _lengths(tree: Tree) -> dict[tuple[int, int], float]:
    pairs = np.sort(tree.edges, axis=1).tolist()
    return {(a, b): x for (a, b), x in zip(pairs, tree.lengths.tolist(), strict=True)}


def nearest(
    tree: Tree, support: NDArray[np.float64], name: str, n_words: int = 12
) -> list[tuple[str, float]]:
    """The observed nodes nearest to a variable with the lengths of the paths to them, which do not
    cross edges of support 0. `O(n log n)`."""
    start, length_of = tree.index(name), _lengths(tree)
    weak = {tuple(sorted(edge)) for edge in tree.edges[~(support > 0)].tolist()}
    parents, order = (a.tolist() for a in tree.rooted(start))
    far = np.zeros(tree.n_nodes)
    for v in order[1:]:
        edge = min(parents[v], v), max(parents[v], v)
        far[v] = np.inf if edge in weak else far[parents[v]] + length_of[edge]
    near = [v for v in np.argsort(far[: tree.n_observed], kind="stable").tolist() if v != start]
    return [(tree.names[v], float(far[v])) for v in near[:n_words] if np.isfinite(far[v])]


def families(tree: Tree, most: int = 40) -> list[list[str]]:
    """The observed neighbours of each hidden node, largest families first."""
    p = tree.n_observed
    found = []
    for h in range(p, tree.n_nodes):
        near = [tree.names[v] for v in tree.neighbors(h).tolist() if v < p]
        if len(near) > 1:
            found.append(near)
    return sorted(found, key=lambda names: (-len(names), names))[:most]
