"""Local recursive grouping: one MST group of observed variables -> one local tree.

An MST group is the closed neighbourhood of an internal node of the spanning tree; that node is its
leader. By default members are joined by noise-aware neighbour joining (`resolve_node`), which never
gets stuck and needs no threshold; `epsilon` switches to the fixed tests of the paper's Procedure
"LRG with Parameter Estimation".
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.distances.similarity import Similarity
from latenttree.engine import parallel
from latenttree.structure.wide_joining import resolve_node

CAUTION = 1.0
"""Standard errors that neighbour joining subtracts from the quality of a pair."""


class MSTGroup(NamedTuple):
    """A leader with its neighbours, and the local tree over them.

    Node i of the local tree is member i, hidden nodes follow; every member is a leaf."""

    members: NDArray[np.int64]  # (m,) leader first
    edges: NDArray[np.int64]  # (E, 2)
    lengths: NDArray[np.float64]  # (E,)


def mst_neighbourhoods(mst: NDArray[np.int64], n_observed: int) -> list[NDArray[np.int64]]:
    """Closed neighbourhoods of the internal nodes of a spanning tree, leader first."""
    near: list[list[int]] = [[] for _ in range(n_observed)]
    for a, b in mst.tolist():
        near[a].append(b)
        near[b].append(a)
    return [
        np.array([leader, *sorted(near[leader])], dtype=np.int64)
        for leader in range(n_observed)
        if len(near[leader]) > 1
    ]


def group_all(
    similarity: Similarity, n_jobs: int = 1, epsilon: float | None = None
) -> list[MSTGroup]:
    """All MST groups with their local trees, in parallel, by leader."""
    members = mst_neighbourhoods(similarity.mst, similarity.n_variables)

    def work(start: int, stop: int) -> list[MSTGroup]:
        return [group(similarity, members[i], epsilon) for i in range(start, stop)]

    parts: list[Any] = parallel(work, len(members), n_jobs) if members else []
    return [one for part in parts for one in part]


def group(
    similarity: Similarity, members: NDArray[np.int64], epsilon: float | None = None
) -> MSTGroup:
    """The local tree over one group."""
    r = np.abs(similarity.block(members))
    if epsilon is not None:
        edges, lengths = threshold_grouping(-np.log(np.maximum(r, 1e-300)), epsilon)
    else:
        samples = similarity.effective_samples(members)
        edges, lengths = resolve_node(r, samples, CAUTION, similarity.exact)
    return MSTGroup(members, edges, lengths)


def threshold_grouping(
    distances: NDArray[np.float64], epsilon: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The paper's recursive grouping with fixed `epsilon`; every member ends as a leaf.

    In each round, members whose differences `Phi(i, j; k) = d(i, k) - d(j, k)` agree over all k
    within `epsilon` are one family and get a hidden parent (a parent among the members shows as a
    leaf at distance zero). A round in which no family passes joins the pair that comes nearest to
    passing, so that a group never gets stuck.
    """
    d = distances.copy()
    np.fill_diagonal(d, 0.0)
    m = len(d)
    active, edges, lengths, next_node = list(range(m)), [], [], m
    node = list(range(m))
    while len(active) > 3:
        spread = _spreads(d[np.ix_(active, active)])
        families = _families(spread, epsilon)
        if len(families) == 1:
            break
        at_start = list(active)
        for family in families:
            if len(family) == 1:
                continue
            rows = [at_start[i] for i in family]
            family_rows = set(rows)
            others = [a for a in active if a not in family_rows]
            to_parent = _parent_distances(d, rows, others)
            for row, length in zip(rows, to_parent.tolist(), strict=True):
                edges.append((node[row], next_node))
                lengths.append(max(length, 0.0))
            keep = rows[0]
            new = (d[np.ix_(rows, others)] - to_parent[:, None]).mean(axis=0)
            d[keep, others] = d[others, keep] = np.maximum(new, 0.0)
            node[keep] = next_node
            next_node += 1
            active = [a for a in active if a == keep or a not in family_rows]
    if len(active) == 2:
        edges.append((node[active[0]], node[active[1]]))
        lengths.append(float(d[active[0], active[1]]))
    elif len(active) > 2:
        edges += [(node[row], next_node) for row in active]
        lengths += np.maximum(_centre_distances(d[np.ix_(active, active)]), 0.0).tolist()
    return np.array(edges, dtype=np.int64).reshape(-1, 2), np.array(lengths, dtype=np.float64)


def _spreads(d: NDArray[np.float64]) -> NDArray[np.float64]:
    """`max_k Phi - min_k Phi` for every pair, k over the others: zero for siblings."""
    m = len(d)
    spread = np.full((m, m), np.inf)
    for i in range(1, m):
        phi, j = d[i] - d[:i], np.arange(i)
        phi[:, i] = phi[j, j] = phi[j, np.where(j > 0, 0, 2 if i == 1 else 1)]  # another k
        spread[i, :i] = spread[:i, i] = phi.max(axis=1) - phi.min(axis=1)
    return spread


def _families(spread: NDArray[np.float64], epsilon: float) -> list[list[int]]:
    """Rows whose pairs are all within `epsilon`, as one family each; where no pair is, the pair of
    least spread is a family."""
    m = len(spread)
    if spread.min() > epsilon:
        pair = list(divmod(int(np.argmin(spread)), m))
        return [pair, *([a] for a in range(m) if a not in pair)]
    families: list[list[int]] = []
    for i in range(m):
        for family in families:
            if all(spread[i, j] <= epsilon for j in family):
                family.append(i)
                break
        else:
            families.append([i])
    return families


def _parent_distances(
    d: NDArray[np.float64], rows: list[int], others: list[int]
) -> NDArray[np.float64]:
    """Distances of a family's members to their parent: means over siblings j and witnesses k of
    `(d_ij + d_ik - d_jk) / 2`."""
    within, n = d[np.ix_(rows, rows)], len(rows)
    away = d[np.ix_(rows, others)].mean(axis=1)
    siblings_away = (away.sum() - away) / (n - 1)
    return np.asarray(0.5 * (within.sum(axis=1) / (n - 1) + away - siblings_away))


def _centre_distances(d: NDArray[np.float64]) -> NDArray[np.float64]:
    """Distances of leaves to the one node in which they meet: means over pairs of others a, b of
    `(d_ia + d_ib - d_ab) / 2`."""
    n, total = len(d) - 1, d.sum(axis=1)
    return np.asarray((total - d.sum() / (2 * n)) / (n - 1))
