"""CLGrouping with recursive grouping (Choi, Tan, Anandkumar, Willsky 2011, "CLRG").

Start from the minimum spanning tree. For each of its inner nodes i in turn, run a local method
(here recursive grouping; in `clnj` neighbour joining) on i and its present neighbours and put the
result in the place of the star:

        a   b                 a   b
         \\ /                   \\ /
      c - i - d     becomes      h - i
                                 |
                                 h' - c, d

The local method thus sees few nodes, near each other, whose distances are reliable.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from latenttree.engine.arrays import Floats
from latenttree.evaluation.baselines._shared import (
    EdgeList,
    Neighbors,
    check_distances,
    edges_of,
    merge_short_edges,
    neighbors_of,
    tidy_hidden,
)
from latenttree.evaluation.baselines.chow_liu import spanning_edges
from latenttree.evaluation.baselines.recursive_grouping import GroupingRules, group_edges, rules_for
from latenttree.tree import Tree

# Distances (m, m) of a group, its leader first, to the edges of its local tree.
LocalMethod = Callable[[Floats], EdgeList]


def clrg(
    D: ArrayLike,
    n_samples: float = math.inf,
    names: Sequence[str] | None = None,
    *,
    random_state: int = 0,
) -> Tree:
    """Return the CLGrouping tree; parameters as in `recursive_grouping`.

    With exact additive distances the result is exact. Cost O(p^2 + sum of cubes of the
    sizes of the neighbourhoods), a round.
    """
    distances, names = check_distances(D, names)
    rules = rules_for(n_samples, float(distances.max()))
    rng = np.random.default_rng(random_state)
    return grouped_tree(distances, names, rules, lambda block: group_edges(block, rules, rng))


def grouped_tree(
    distances: Floats, names: tuple[str, ...], rules: GroupingRules, local: LocalMethod
) -> Tree:
    """CLGrouping with any local method; of the rules `shortest` and `merge_below` count here."""
    n_observed = len(distances)
    neighbors = neighbors_of(*spanning_edges(distances), n_observed)
    surrogates = _Surrogates(distances)
    for leader in _inner_nodes(neighbors):
        _regroup(leader, neighbors, surrogates, rules.shortest, local)

    merged = merge_short_edges(n_observed, *edges_of(neighbors), rules.merge_below)
    return Tree.build(names, *tidy_hidden(n_observed, *merged))


class _Surrogates:
    """The observed node that stands for each node, and how far it is away.

    A hidden node is represented by the leader whose neighbourhood it was found in. The way
    from there to the rest of the tree leads through the hidden node, hence
    d(h, k) = d(surrogate, k) - d(surrogate, h).
    """

    def __init__(self, distances: Floats) -> None:
        self.distances = distances
        self.node = list(range(len(distances)))
        self.offset = [0.0] * len(distances)

    def add(self, surrogate: int, offset: float) -> int:
        """Enter a new hidden node and return its number."""
        self.node.append(surrogate)
        self.offset.append(offset)
        return len(self.node) - 1

    def between(self, nodes: list[int], shortest: float) -> Floats:
        """Return the distances (m, m) between nodes with different surrogates."""
        surrogate = [self.node[v] for v in nodes]
        offset = np.array([self.offset[v] for v in nodes])
        block = self.distances[np.ix_(surrogate, surrogate)] - offset[:, None] - offset[None, :]
        np.maximum(block, np.where(offset[:, None] + offset[None, :] > 0, shortest, 0), out=block)
        np.fill_diagonal(block, 0.0)
        return block


def _inner_nodes(neighbors: Neighbors) -> list[int]:
    """Return the nodes with two neighbours or more, largest degree first."""
    inner = [node for node, row in neighbors.items() if len(row) > 1]
    return sorted(inner, key=lambda node: (-len(neighbors[node]), node))


def _regroup(
    leader: int,
    neighbors: Neighbors,
    surrogates: _Surrogates,
    shortest: float,
    local_method: LocalMethod,
) -> None:
    """Replace the star around `leader` by the tree of the local method, in place."""
    group = [leader, *sorted(neighbors[leader])]
    if len(group) < 3:
        return
    distances = _group_distances(group, neighbors[leader], surrogates, shortest)
    local = neighbors_of(*local_method(distances), len(group))
    from_leader = _path_lengths_from(0, local)
    number = dict(enumerate(group))
    for node in sorted(local):
        if node >= len(group):
            number[node] = surrogates.add(leader, from_leader[node])

    for neighbor in group[1:]:
        del neighbors[neighbor][leader]
    neighbors[leader] = {}
    for node, row in local.items():
        around = neighbors.setdefault(number[node], {})
        around.update({number[other]: length for other, length in row.items()})


def _group_distances(
    group: list[int], star: dict[int, float], surrogates: _Surrogates, shortest: float
) -> Floats:
    """Return the distances within a group whose first node is the leader.

    Two neighbours can have one surrogate when an earlier grouping, misled by noise, made
    this leader an inner node. Their distance then is the present one, through the leader.
    """
    block = surrogates.between(group, shortest)
    stand_in = np.array([surrogates.node[v] for v in group])
    to_leader = np.array([0.0, *(star[v] for v in group[1:])])
    same = stand_in[:, None] == stand_in[None, :]
    np.fill_diagonal(same, False)
    block[same] = (to_leader[:, None] + to_leader[None, :])[same]
    return block


def _path_lengths_from(root: int, neighbors: Neighbors) -> dict[int, float]:
    """Return the distance along the tree from `root` to every node."""
    away = {root: 0.0}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        for other, length in neighbors[node].items():
            if other not in away:
                away[other] = away[node] + length
                waiting.append(other)
    return away
