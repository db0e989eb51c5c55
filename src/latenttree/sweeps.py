"""Consistency sweeps: cut small regions of the tree open and solve them again until nothing improves.

With samples, near ties in the spanning tree make different groups choose different surrogates for one
hidden node, so the merged tree has branches in the wrong place. A region is a hidden node with the
hidden nodes around it; cut out, it is a star of branches, each summarised by its feature (the best
linear combination of all the leaves behind it). The star is joined anew, and the new topology is taken
only if it explains the correlations between the branches better, by likelihood. Regions are judged in
parallel, changes that touch each other wait for the next sweep, and only regions near a change are
looked at again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from latenttree.affinity import Affinity
from latenttree.engine import parallel
from latenttree.features import Features, branch_features, star_correlations
from latenttree.stars import fit_lengths, fit_likelihood, join, path_matrix
from latenttree.wiring import Wiring

MAX_SWEEPS = 50
RADIUS = 2
MAX_BRANCHES = 10
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
    """Re-solve regions of `wiring`, in place, until no region changes; changes made by each sweep."""
    changes: list[int] = []
    centres = wiring.hidden()
    while centres and len(changes) < max_sweeps:
        features = branch_features(wiring)
        verdicts = judge_all(wiring, features, affinity, centres, n_jobs)
        changed, centres = _apply(wiring, verdicts)
        changes.append(changed)
        if not changed:
            break
    return changes


def judge_all(
    wiring: Wiring, features: Features, affinity: Affinity, centres: list[int], n_jobs: int
) -> list[Verdict]:
    """Verdicts on the regions around `centres`, in parallel."""

    def work(start: int, stop: int) -> list[Verdict]:
        regions = [region_around(wiring, centres[i]) for i in range(start, stop)]
        return [judge(wiring, features, affinity, r) for r in regions if len(r.branches) > 3]

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
    changed, new_edges, new_lengths = _judge(
        slots,
        edges,
        lengths,
        features.leaf,
        features.weight,
        features.size,
        affinity.rho,
        affinity.n,
    )
    return Verdict(
        region, new_edges, new_lengths - _offsets(new_edges, features.load[slots]), changed
    )


def region_arrays(
    wiring: Wiring, features: Features, region: Region
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Slots of the branches, and the region's tree with features as leaves: edges and lengths."""
    index, links = features.slots.index, wiring.links
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


@njit(cache=True, nogil=True)
def _judge(slots, edges, lengths, leaf, weight, size, rho, n):  # type: ignore[no-untyped-def]
    """The likeliest of the present topology and those that joining proposes, with its lengths."""
    r = star_correlations(slots, leaf, weight, size, rho)
    m = len(slots)
    paths = path_matrix(m, edges)
    x, _ = fit_lengths(r, n, paths, lengths)
    best_x, best, _ = fit_likelihood(r, n, paths, x, 10)
    best_edges = edges
    changed = False
    binary = len(edges) == 2 * m - 3
    seen = _split_sets(m, edges)
    for caution in (1.0, 4.0):
        new, x = join(r, n, caution, False)
        key = _split_sets(m, new)
        if len(key) == len(seen) and (key == seen).all():
            continue
        seen = key
        paths = path_matrix(m, new)
        x, _ = fit_lengths(r, n, paths, x)
        x, value, _ = fit_likelihood(r, n, paths, x, 10)
        if value > best + MIN_GAIN or not binary:
            changed, binary = True, True
            best, best_x, best_edges = value, x, new
    return changed, best_edges, best_x


@njit(cache=True, nogil=True)
def _split_sets(m, edges):  # type: ignore[no-untyped-def]
    """Sorted bit sets of the leaves on the far side of leaf 0, one for each internal edge."""
    n_nodes = len(edges) + 1
    parent = np.full(n_nodes, -1, dtype=np.int64)
    order = np.zeros(n_nodes, dtype=np.int64)
    seen = np.zeros(n_nodes, dtype=np.bool_)
    seen[0] = True
    found = 1
    q = 0
    while q < found:
        v = order[q]
        for e in range(len(edges)):
            for side in range(2):
                if edges[e, side] == v and not seen[edges[e, 1 - side]]:
                    seen[edges[e, 1 - side]] = True
                    parent[edges[e, 1 - side]] = v
                    order[found] = edges[e, 1 - side]
                    found += 1
        q += 1
    bits = np.zeros(n_nodes, dtype=np.int64)
    count = 0
    out = np.zeros(n_nodes, dtype=np.int64)
    for q in range(n_nodes - 1, 0, -1):
        v = order[q]
        if v < m:
            bits[v] |= np.int64(1) << np.int64(v)
        elif parent[v] != 0:
            out[count] = bits[v]
            count += 1
        bits[parent[v]] |= bits[v]
    return np.sort(out[:count])


def _apply(wiring: Wiring, verdicts: list[Verdict]) -> tuple[int, list[int]]:
    """Rewire, first come first served; the number of changes, and where to look next."""
    touched: set[int] = set()
    again: set[int] = set()
    changed = 0
    for verdict in verdicts:
        inside, branches = verdict.region
        if not touched.isdisjoint(inside):
            again.update(v for v in inside if v in wiring.links)
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
