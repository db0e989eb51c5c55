"""What of a tree some of its variables show: parameters of their correlations, and the pairs
around each hidden node."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import nsmallest

import numpy as np

from latenttree.engine.arrays import Ints
from latenttree.tree import Tree

Adjacency = dict[int, set[int]]


def n_correlation_parameters(tree: Tree, widths: Mapping[int, int], directions: Ints) -> int:
    """Free parameters of the correlations between variables with `widths` columns by node, in a
    tree whose hidden node h has `directions[h]` dimensions (states less one).

    In the tree of those variables alone (other leaves pruned, nodes of degree two contracted),

    `sum_edges r_a r_b - sum_hidden r_h (r_h - 1) / 2`:

    each edge has a matrix of correlations between its ends, and a hidden node may be rotated. With
    one dimension and one column each, that is the number of edges. A hidden node has no more
    dimensions than the columns outside its widest branch, nor than its neighbours but the widest
    have, since these show all that it correlates: so no node may be rotated in more ways than it
    has correlations. At most the number of correlations."""
    near = _induced(tree, set(widths))
    size = {v: widths[v] if v in widths else int(directions[v]) for v in near}
    for h, columns in _columns_by_branch(near, widths).items():
        if h not in widths:
            size[h] = min(size[h], sum(columns) - max(columns))
    _bound_by_neighbours(near, size, widths)
    edges = sum(size[v] * size[u] for v in near for u in near[v] if u < v)
    turns = sum(size[h] * (size[h] - 1) // 2 for h in near if h not in widths)
    total, own = sum(widths.values()), sum(width**2 for width in widths.values())
    return min(edges - turns, (total**2 - own) // 2)


def _bound_by_neighbours(near: Adjacency, size: dict[int, int], widths: Mapping[int, int]) -> None:
    """Lower `size` in place until no hidden node has more dimensions than its neighbours other
    than the widest have together."""
    todo = [h for h in near if h not in widths]
    while todo:
        h = todo.pop()
        around = [size[u] for u in near[h]]
        most = sum(around) - max(around)
        if most < size[h]:
            size[h] = most
            todo += [u for u in near[h] if u not in widths]


def _induced(tree: Tree, used: set[int]) -> Adjacency:
    """Neighbours in the smallest tree of the used nodes, without other nodes of degree two."""
    near = {v: set(tree.neighbors(v).tolist()) for v in range(tree.n_nodes)}
    todo = [v for v in near if v not in used and len(near[v]) <= 1]
    while todo:
        v = todo.pop()
        for u in near.pop(v):
            near[u].discard(v)
            if u not in used and len(near[u]) <= 1:
                todo.append(u)
    for v in [v for v in near if v not in used and len(near[v]) == 2]:
        a, b = near.pop(v)
        near[a] = near[a] - {v} | {b}
        near[b] = near[b] - {v} | {a}
    return near


def _columns_by_branch(near: Adjacency, widths: Mapping[int, int]) -> dict[int, list[int]]:
    """For each node the columns in each of its branches."""
    if not near:
        return {}
    root = next(iter(near))
    parent, order = {root: -1}, [root]
    for v in order:
        for u in near[v] - {parent[v]}:
            parent[u] = v
            order.append(u)
    below = {v: widths.get(v, 0) for v in near}
    for v in order[:0:-1]:
        below[parent[v]] += below[v]
    total = below[root]
    return {
        v: [below[u] if parent[u] == v else total - below[v] for u in near[v]] or [0] for v in near
    }


def nearest_by_branch(tree: Tree, used: Ints) -> list[list[int]]:
    """For each hidden node the nearest used variable of each of its branches, by path length;
    branches without one are left out. O(n_nodes)."""
    rooted = tree.rooted(tree.n_observed if tree.n_hidden else 0)
    parents, order = rooted.parents.tolist(), rooted.order.tolist()
    lengths = np.nan_to_num(np.maximum(tree.lengths, 0), posinf=1e9)
    long = {frozenset(e): x for e, x in zip(tree.edges.tolist(), lengths.tolist(), strict=True)}
    none = (np.inf, -1)
    own = [none] * tree.n_nodes
    for v in used.tolist():
        own[v] = (0.0, v)
    up, near = list(own), [dict[int, tuple[float, int]]() for _ in range(tree.n_nodes)]
    for v in order[:0:-1]:
        u = parents[v]
        near[u][v] = (up[v][0] + long[frozenset((u, v))], up[v][1])
        up[u] = min(up[u], near[u][v])
    for u in order:  # parents first: what comes from above is known
        candidates = [(own[u], -1), *((x, w) for w, x in near[u].items())]
        best = nsmallest(2, candidates)
        for v in [v for v in near[u] if v != parents[u]]:
            distance, nearest = next((x for x, w in best if w != v), none)
            near[v][u] = (distance + long[frozenset((u, v))], nearest)
    hidden = range(tree.n_observed, tree.n_nodes)
    return [[x[1] for x in near[h].values() if x[1] >= 0] for h in hidden]
