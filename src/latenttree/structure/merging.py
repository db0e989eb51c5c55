"""Local trees -> one tree, by the union of the paths on which neighbouring groups disagree.

The paper's Procedure "Merging and Alignment Correction". Leaders i and j that are neighbours in the
spanning tree have between them the hidden nodes that group i found and those that group j found:

    group i:   i - a1 - a2 - j            union:   i - a1 - a2 - b2 - b1 - j
    group j:   i - b2 - b1 - j

Each keeps the nodes it found itself; where both found the same node, the link between the two
copies has length zero.
"""

from __future__ import annotations

import numpy as np

from latenttree.distances.similarity import Affinity
from latenttree.structure.builder import Wiring
from latenttree.structure.grouping import Group

TOLERANCE = 1e-9


def merge(affinity: Affinity, groups: list[Group]) -> Wiring:
    """Union of all local trees. Every observed node is a leaf, possibly at distance zero."""
    p = affinity.n_variables
    wiring = Wiring(p)
    if p == 2:
        (distance,) = _link_lengths(affinity, [(0, 1)])
        wiring.connect(0, 1, distance)
    leaders = {int(g.members[0]) for g in groups}
    ends: dict[tuple[int, int], tuple[int, float]] = {}
    for g in groups:
        ends.update(_place(wiring, g, leaders))
    pairs = [(i, j) for i, j in ends if i < j]
    for (i, j), distance in zip(pairs, _link_lengths(affinity, pairs), strict=True):
        (a, to_a), (b, to_b) = ends[(i, j)], ends[(j, i)]
        wiring.connect(a, b, max(distance - to_a - to_b, 0.0))
    return wiring


def _link_lengths(affinity: Affinity, pairs: list[tuple[int, int]]) -> list[float]:
    strength = np.abs(affinity.links(np.array(pairs, dtype=np.int64).reshape(-1, 2)))
    lengths: list[float] = (-np.log(np.maximum(strength, 1e-300))).tolist()
    return lengths


def _place(wiring: Wiring, g: Group, leaders: set[int]) -> dict[tuple[int, int], tuple[int, float]]:
    """Put a group's tree into the wiring, without the leaves that lead other groups.

    Returns for each of those, as `(leader, leaf)`, the node it hung from and how far that is from
    the leader."""
    members = g.members.tolist()
    m, leader = len(members), members[0]
    near: dict[int, list[tuple[int, float]]] = {}
    for (a, b), x in zip(g.edges.tolist(), g.lengths.tolist(), strict=True):
        near.setdefault(a, []).append((b, x))
        near.setdefault(b, []).append((a, x))
    number = {i: wiring.new() for i in near if i >= m}
    for i, v in enumerate(members):
        if i == 0 or v not in leaders:
            number[i] = v
    ends = {}
    position, stack = {0: 0.0}, [0]
    while stack:
        a = stack.pop()
        for b, x in near[a]:
            if b in position:
                continue
            position[b] = position[a] + x
            stack.append(b)
            if b in number:
                wiring.connect(number[a], number[b], x)
            else:
                ends[(leader, members[b])] = (number[a], position[a])
    return ends


def contract_zero(wiring: Wiring, tolerance: float = TOLERANCE) -> None:
    """Contract edges of length zero that have a hidden end; two observed nodes stay two.

    A hidden node becomes the observed node that it is nearest to over such edges, if there is one,
    so that no hidden node covers it; else it becomes one with the hidden nodes there. O(n)."""
    become = _zero_groups(wiring, tolerance)
    old, wiring.links = wiring.links, {v: {} for v, u in become.items() if u == v}
    for a, near in old.items():
        for b, length in near.items():
            if a < b and become[a] != become[b]:
                wiring.connect(become[a], become[b], length)


def _zero_groups(wiring: Wiring, tolerance: float) -> dict[int, int]:
    """The node that each node becomes: breadth first over short edges, from all observed nodes
    together, then from every hidden node that was not reached."""
    observed, hidden = list(range(wiring.n_observed)), wiring.hidden()
    become = {v: v for v in observed}
    for queue in (observed, *([v] for v in hidden)):
        if queue[0] in become and wiring.is_hidden(queue[0]):
            continue
        become.setdefault(queue[0], queue[0])
        for v in queue:
            for u, length in wiring.links[v].items():
                if length <= tolerance and u not in become:
                    become[u] = become[v]
                    queue.append(u)
    return become
