"""Trees of merges and of nested groups, as unrooted trees."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from latenttree.tree import Tree

Floats = NDArray[np.float64]


def from_linkage(linkage: Floats, names: Sequence[str]) -> Tree:
    """The dendrogram of a SciPy linkage `(p - 1, 4)` as an unrooted tree.

    An edge is half the difference of the heights of its ends, so that the path between two leaves
    is the height at which they join. The root has two neighbours only and gives way to one edge.
    """
    p = len(names)
    height = np.concatenate([np.zeros(p), linkage[:, 2]])
    pairs = linkage[:, :2].astype(np.int64)
    parent = np.repeat(np.arange(p, 2 * p - 1), 2)
    child = pairs.ravel()
    edges = np.column_stack([child, parent])[:-2]
    lengths = ((height[parent] - height[child]) / 2)[:-2]
    a, b = pairs[-1].tolist()
    across = height[-1] - (height[a] + height[b]) / 2
    return Tree.build(names, np.vstack([edges, [[a, b]]]), np.append(lengths, across))


def from_groups(names: Sequence[str], groups: Iterable[Iterable[str]]) -> Tree:
    """The tree whose internal splits are the given nested groups of names; edges of length 1.

    Groups of fewer than two names or of all but one, and groups given twice, add nothing.
    """
    place = {name: i for i, name in enumerate(names)}
    sets = {frozenset(place[name] for name in group) for group in groups}
    whole = len(names)
    inner = sorted((s for s in sets if 1 < len(s) < whole - 1), key=len)
    inner = _without_complements(inner, whole)
    edges, hidden = [], {members: whole + i for i, members in enumerate(inner)}
    top: dict[int, int] = {v: v for v in range(whole)}  # outermost node so far around each leaf
    for members in inner:
        for node in sorted({top[v] for v in members}):
            edges.append((node, hidden[members]))
        top.update(dict.fromkeys(members, hidden[members]))
    root = whole + len(inner)
    edges += [(node, root) for node in sorted(set(top.values()))]
    return Tree.build(names, np.array(edges), np.ones(len(edges)))


def _without_complements(groups: list[frozenset[int]], whole: int) -> list[frozenset[int]]:
    """Of a group and its complement, which are one split, only the smaller."""
    everything = frozenset(range(whole))
    kept: dict[frozenset[int], None] = {}
    for members in groups:
        if everything - members not in kept:
            kept[members] = None
    return list(kept)


def from_layers(names: Sequence[str], layers: Sequence[Sequence[int]]) -> Tree:
    """The tree of groups, groups of groups and so on: `layers[0][v]` is the group of variable v,
    `layers[i][g]` the group that group g of the layer below is in."""
    groups: list[list[str]] = []
    label = np.arange(len(names))
    for layer in layers:
        label = np.asarray(layer)[label]
        for g in np.unique(label).tolist():
            groups.append([names[v] for v in np.flatnonzero(label == g).tolist()])
    return from_groups(names, groups)


__all__ = ["from_groups", "from_layers", "from_linkage"]
