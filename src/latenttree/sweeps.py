"""Consistency sweeps: cut small regions of the tree open and solve them anew.

With samples, near ties in the spanning tree make different groups choose different surrogates for
one hidden node, so the merged tree has branches in the wrong place. A region is a hidden node
with the hidden nodes around it; cut out, it is a star of branches, each summarised by its feature
(the best linear combination of all the leaves behind it). The star is joined anew, and the new
topology is taken only if it explains the correlations between the branches better, by likelihood.
Regions are judged in parallel, changes that touch each other wait for the next sweep, and only
regions near a change are looked at again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from latenttree.affinity import Affinity
from latenttree.engine import parallel
from latenttree.features import Features, branch_features, star_correlations
from latenttree.lengths import fit_likelihood, path_matrix
from latenttree.stars import join
from latenttree.wiring import Wiring

MAX_SWEEPS = 50
SETTLED = 1000
"""Nodes for each change of a sweep beyond which the tree is settled."""
RADIUS = 2
MAX_BRANCHES = 8
MOST_BRANCHES = 62
"""A wider region (one node of a fixed-epsilon grouping) is left alone: its leaves are 64 bits."""
CAUTIONS = (1.0, 4.0)
N_STEPS = 10
MIN_GAIN = 0.5
"""Log-likelihood that a new topology must gain: less is rounding and stale lengths."""


class Region(NamedTuple):
    """Hidden nodes `inside`, and the `(inside, outside)` edges where branches begin."""

    inside: list[int]
    branches: list[tuple[int, int]]


class Verdict(NamedTuple):
    """What to do with a region: its tree (branches first, then hidden), and whether it is new."""

    region: Region
    edges: NDArray[np.int64]
    lengths: NDArray[np.float64]
    changed: bool


def sweep(
    wiring: Wiring, affinity: Affinity, n_jobs: int = 1, max_sweeps: int = MAX_SWEEPS
) -> list[int]:
    """Re-solve regions, in place, until none changes; the number of changes in each sweep."""
    changes: list[int] = []
    centres = wiring.hidden()
    while centres and len(changes) < max_sweeps:
        features = branch_features(wiring, affinity.source, affinity.width)
        verdicts = judge_all(wiring, features, affinity, centres, n_jobs)
        changed, centres = _apply(wiring, verdicts)
        changes.append(changed)
        if changed * SETTLED <= len(wiring.links):
            break
    return changes


def judge_all(
    wiring: Wiring, features: Features, affinity: Affinity, centres: list[int], n_jobs: int
) -> list[Verdict]:
    """Verdicts on the regions around `centres`, in parallel."""

    def work(start: int, stop: int) -> list[Verdict]:
        regions = [region_around(wiring, centres[i]) for i in range(start, stop)]
        return [
            judge(wiring, features, affinity, r)
            for r in regions
            if 3 < len(r.branches) <= MOST_BRANCHES
        ]

    parts: list[Any] = parallel(work, len(centres), n_jobs)
    return [verdict for part in parts for verdict in part]


def region_around(
    wiring: Wiring, centre: int, radius: int = RADIUS, max_branches: int = MAX_BRANCHES
) -> Region:
    """The hidden nodes within `radius` steps, nearest first, while branches stay few."""
    links = wiring.links
    inside, ring, n_branches = [centre], [centre], len(links[centre])
    member = {centre}
    for _ in range(radius):
        reached = sorted(
            (links[v][u], u)
            for v in ring
            for u in links[v]
            if wiring.is_hidden(u) and u not in member
        )
        ring = []
        for _, u in reached:
            if n_branches + len(links[u]) - 2 <= max_branches:
                n_branches += len(links[u]) - 2
                ring.append(u)
                member.add(u)
        inside += ring
    branches = [(v, u) for v in inside for u in links[v] if u not in member]
    return Region(inside, branches)


def judge(wiring: Wiring, features: Features, affinity: Affinity, region: Region) -> Verdict:
    """Join the region's star anew, and keep whichever topology is likelier."""
    slots, edges, lengths = region_arrays(wiring, features, region)
    r = star_correlations(slots, features.leaf, features.weight, features.size, affinity.source)
    m, n = len(slots), affinity.samples(features.leading(slots))
    lengths, best, _ = fit_likelihood(r, n, path_matrix(m, edges), lengths, N_STEPS)
    seen = {topology_hash(m, edges)}
    changed, resolved = False, len(edges) == 2 * m - 3
    for caution in CAUTIONS:
        new, start = join(r, n, caution, False)
        splits = topology_hash(m, new)
        if splits in seen:
            continue
        seen.add(splits)
        fitted, value, _ = fit_likelihood(r, n, path_matrix(m, new), start, N_STEPS)
        if value > best + MIN_GAIN or not resolved:
            changed = resolved = True
            edges, lengths, best = new, fitted, value
    return Verdict(region, edges, lengths - _offsets(edges, features.load[slots]), changed)


@njit(cache=True, nogil=True)
def topology_hash(m, edges):  # type: ignore[no-untyped-def]
    """A number for the topology of a star's tree, whatever the numbers of its hidden nodes.

    The sum over edges inside of a 64-bit mix of the set of leaves away from leaf 0, as bits."""
    n_edges = len(edges)
    parent = np.full(n_edges + 1, -2, dtype=np.int64)
    order = np.zeros(n_edges + 1, dtype=np.int64)
    parent[0] = -1
    found = 1
    for q in range(n_edges + 1):
        v = order[q]
        for e in range(n_edges):
            u = -1
            if edges[e, 0] == v:
                u = edges[e, 1]
            elif edges[e, 1] == v:
                u = edges[e, 0]
            if u >= 0 and parent[u] == -2:
                parent[u] = v
                order[found] = u
                found += 1
    bits = np.zeros(n_edges + 1, dtype=np.uint64)
    total = np.uint64(0)
    for q in range(n_edges, 0, -1):
        v = order[q]
        if v < m:
            bits[v] |= np.uint64(1) << np.uint64(v)
        elif parent[v] > 0:
            x = bits[v] * np.uint64(0x9E3779B97F4A7C15)
            x ^= x >> np.uint64(29)
            x *= np.uint64(0xBF58476D1CE4E5B9)
            total += x ^ (x >> np.uint64(32))
        bits[parent[v]] |= bits[v]
    return total


def region_arrays(
    wiring: Wiring, features: Features, region: Region
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Slots of the branches, and the region's tree with features as leaves: edges and lengths."""
    index, links = features.slots.number, wiring.links
    slots = np.array([index[v][u] for v, u in region.branches], dtype=np.int64)
    m = len(slots)
    number = {v: m + i for i, v in enumerate(region.inside)}
    pairs = [(i, number[v], links[v][u]) for i, (v, u) in enumerate(region.branches)]
    pairs += [
        (number[v], number[u], x)
        for v in region.inside
        for u, x in links[v].items()
        if u in number and number[v] < number[u]
    ]
    edges = np.array([(a, b) for a, b, _ in pairs], dtype=np.int64)
    lengths = np.array([x for _, _, x in pairs])
    return slots, edges, lengths + _offsets(edges, features.load[slots])


def _offsets(edges: NDArray[np.int64], load: NDArray[np.float64]) -> NDArray[np.float64]:
    """A feature is farther away than the node it stands for, by minus the log of its load."""
    m = len(load)
    first, second = edges[:, 0], edges[:, 1]
    extra = -np.log(load)
    return np.asarray(
        np.where(first < m, extra[np.minimum(first, m - 1)], 0.0)
        + np.where(second < m, extra[np.minimum(second, m - 1)], 0.0)
    )


def _apply(wiring: Wiring, verdicts: list[Verdict]) -> tuple[int, list[int]]:
    """Rewire, first come first served; the number of changes, and where to look next."""
    touched: set[int] = set()
    again: set[int] = set()
    changed = 0
    for verdict in verdicts:
        inside, branches = verdict.region
        if not touched.isdisjoint(inside):
            again.add(inside[0])
            continue
        if not verdict.changed:
            _set_lengths(wiring, verdict)
            continue
        changed += 1
        outside = [u for _, u in branches]
        new = _rewire(wiring, verdict)
        touched.update(inside, outside, new)
        again.update(new, outside)
    return changed, sorted(v for v in again if wiring.is_hidden(v) and v in wiring.links)


def _set_lengths(wiring: Wiring, verdict: Verdict) -> None:
    inside, branches = verdict.region
    names = [u for _, u in branches] + inside
    for (a, b), x in zip(verdict.edges.tolist(), verdict.lengths.tolist(), strict=True):
        wiring.connect(names[a], names[b], max(x, 0.0))


def _rewire(wiring: Wiring, verdict: Verdict) -> list[int]:
    """Replace the region by its new tree; returns the new hidden nodes."""
    inside, branches = verdict.region
    names = [u for _, u in branches]
    for v in inside:
        wiring.remove(v)
    n_hidden = len(verdict.edges) + 1 - len(branches)
    new = [wiring.new() for _ in range(n_hidden)]
    names += new
    for (a, b), x in zip(verdict.edges.tolist(), verdict.lengths.tolist(), strict=True):
        wiring.connect(names[a], names[b], max(x, 0.0))
    return new
