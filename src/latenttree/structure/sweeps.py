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
from numpy.typing import NDArray

from latenttree.distances.correlations import effective_samples
from latenttree.distances.similarity import Affinity
from latenttree.engine import parallel
from latenttree.engine.kernels import kernel, subroutine
from latenttree.structure.branch_features import (
    Features,
    branch_features,
    leading,
    star_correlations,
    update_features,
)
from latenttree.structure.builder import Wiring
from latenttree.structure.flat_tree import Around, Flat, mixed
from latenttree.structure.joining import join
from latenttree.structure.lengths import fit_likelihood, path_matrix

MAX_SWEEPS = 50
SETTLED = 1000
"""Nodes for each change of a sweep beyond which the tree is settled."""
RADIUS = 2
MAX_BRANCHES = 8
MOST_BRANCHES = 62
"""A wider region (one node of a fixed-epsilon grouping) is left alone: its leaves are 64 bits."""
MOST_INSIDE = 16
MOST_TIMES = 2
"""A change that only brings splits that came so often before is refused: sweeps go in circles."""
CAUTIONS = (1.0, 4.0)
N_STEPS = 10
MIN_GAIN = 0.5
"""Log-likelihood that a new topology must gain: less is rounding and stale lengths."""
STILL = 1e-9
"""An edge whose length moves less than this has not moved."""


class Verdicts(NamedTuple):
    """What to do with n regions: hidden nodes `inside`, centre first, `slots` from them to the
    branches, edges `inner` between them, and the region's tree: local numbers (branches first, then
    hidden), lengths, and whether it is new. An old tree has its edges in the order `slots`,
    `inner`. A region without slots is left alone."""

    n_inside: NDArray[np.int64]  # (n,)
    inside: NDArray[np.int64]  # (n, MOST_INSIDE)
    n_slots: NDArray[np.int64]  # (n,)
    slots: NDArray[np.int64]  # (n, most branches)
    inner: NDArray[np.int64]  # (n, MOST_INSIDE)
    n_edges: NDArray[np.int64]  # (n,)
    edges: NDArray[np.int64]  # (n, most edges, 2)
    lengths: NDArray[np.float64]  # (n, most edges)
    changed: NDArray[np.bool_]  # (n,)
    gain: NDArray[np.float64]  # (n,) log-likelihood that a new tree gains

    @classmethod
    def none(cls, n: int, most: int) -> Verdicts:
        """Rows that are still to be filled, for regions of up to `most` branches."""
        counts = [np.zeros(n, dtype=np.int64) for _ in range(3)]
        n_edges = 2 * most + MOST_INSIDE
        return cls(
            counts[0],
            np.empty((n, MOST_INSIDE), dtype=np.int64),
            counts[1],
            np.empty((n, most), dtype=np.int64),
            np.empty((n, MOST_INSIDE), dtype=np.int64),
            counts[2],
            np.empty((n, n_edges, 2), dtype=np.int64),
            np.empty((n, n_edges)),
            np.zeros(n, dtype=np.bool_),
            np.zeros(n),
        )


def sweep(
    wiring: Wiring, affinity: Affinity, n_jobs: int = 1, max_sweeps: int = MAX_SWEEPS
) -> list[int]:
    """Re-solve regions, in place, until none changes; the number of changes in each sweep."""
    changes: list[int] = []
    flat = Flat.of(wiring)
    centres = flat.hidden()
    if not len(centres) or not max_sweeps:
        return changes
    around = flat.around()
    features = branch_features(flat, around, affinity.source, affinity.width, n_jobs)
    splits = Splits.of(flat, around)
    while True:
        verdicts = judge_all(flat, around, features, affinity, centres, n_jobs)
        changed, centres, moved, splits = _apply(flat, around, verdicts, splits)
        changes.append(changed)
        settled = changed * SETTLED <= len(flat.ends) + 1
        if settled or not len(centres) or len(changes) == max_sweeps:
            break
        around = flat.around()
        if 2 * len(flat.ends) > len(features.size):
            features = branch_features(flat, around, affinity.source, affinity.width, n_jobs)
        else:
            update_features(features, flat, around, affinity.source, moved, n_jobs)
    flat.into(wiring)
    return changes


def judge_all(
    flat: Flat,
    around: Around,
    features: Features,
    affinity: Affinity,
    centres: NDArray[np.int64],
    n_jobs: int,
) -> Verdicts:
    """Verdicts on the regions around `centres`, in parallel."""
    widest = int((around.first[centres + 1] - around.first[centres]).max())
    found = Verdicts.none(len(centres), min(max(widest, MAX_BRANCHES), MOST_BRANCHES))
    tails, source = flat.ends.ravel(), affinity.source

    def work(start: int, stop: int) -> None:
        part: Any = Verdicts._make(x[start:stop] for x in found)
        _judge(
            centres[start:stop], around, tails, flat.length, flat.n_observed,
            features, source, affinity.n, N_STEPS, False, part,
        )  # fmt: skip

    parallel(work, len(centres), n_jobs, max(16, -(-len(centres) // 64)))
    return found


@subroutine
def _region(centre, first, slot, tails, length, n_observed, inside, slots):  # type: ignore[no-untyped-def]
    """The hidden nodes within `RADIUS` steps of a centre, nearest first, while branches stay few,
    and the slots to the branches; the numbers of both, no slots where they are too many."""
    inside[0] = centre
    n_inside, start = 1, 0
    n_branches = first[centre + 1] - first[centre]
    if n_branches > MOST_BRANCHES:
        return 1, 0
    reached = np.empty(4 * MAX_BRANCHES + 2 * MOST_INSIDE, dtype=np.int64)
    for _ in range(RADIUS):
        if n_branches >= MAX_BRANCHES:
            break
        n_reached = 0
        for i in range(start, n_inside):
            for q in range(first[inside[i]], first[inside[i] + 1]):
                s = slot[q]
                u = tails[s ^ 1]
                if u < n_observed or _place(u, inside, n_inside) >= 0:
                    continue
                at = n_reached
                x = length[s >> 1]
                while at > 0:
                    t = reached[at - 1]
                    y = length[t >> 1]
                    if y < x or (y == x and tails[t ^ 1] <= u):
                        break
                    reached[at] = t
                    at -= 1
                reached[at] = s
                n_reached += 1
        start = n_inside
        for q in range(n_reached):
            u = tails[reached[q] ^ 1]
            more = first[u + 1] - first[u] - 2
            if n_branches + more <= MAX_BRANCHES and n_inside < MOST_INSIDE:
                n_branches += more
                inside[n_inside] = u
                n_inside += 1
    m = 0
    for i in range(n_inside):
        for q in range(first[inside[i]], first[inside[i] + 1]):
            if _place(tails[slot[q] ^ 1], inside, n_inside) < 0:
                slots[m] = slot[q]
                m += 1
    return n_inside, m


@subroutine
def _place(v, nodes, n):  # type: ignore[no-untyped-def]
    """Where v is among the first n nodes; -1 if it is not."""
    for i in range(n):
        if nodes[i] == v:
            return i
    return -1


@kernel
def _judge(centres, around, tails, length, n_observed, features, source, n_all, steps, flat, found):  # type: ignore[no-untyped-def]
    """Join the star of each region anew, and keep whichever topology is likelier.

    A feature is farther away than the node it stands for, by minus the log of its load."""
    first, slot = around.first, around.slot
    for c in range(len(centres)):
        inside = found.inside[c]
        n_inside, m = _region(
            centres[c], first, slot, tails, length, n_observed, inside, found.slots[c]
        )
        found.n_inside[c] = n_inside
        if m <= 3:
            continue
        found.n_slots[c] = m
        slots, edges, lengths = found.slots[c, :m], found.edges[c], found.lengths[c]
        n_edges = m
        for i in range(m):
            s = slots[i]
            edges[i, 0], edges[i, 1] = i, m + _place(tails[s], inside, n_inside)
            lengths[i] = length[s >> 1] - np.log(features.load[s])
        for i in range(n_inside):
            for q in range(first[inside[i]], first[inside[i] + 1]):
                at = _place(tails[slot[q] ^ 1], inside, n_inside)
                if at > i:
                    found.inner[c, n_edges - m] = slot[q] >> 1
                    edges[n_edges, 0], edges[n_edges, 1] = m + i, m + at
                    lengths[n_edges] = length[slot[q] >> 1]
                    n_edges += 1
        r = star_correlations(slots, features, source)
        n = effective_samples(source, n_all, leading(slots, features))
        x, best, _ = fit_likelihood(r, n, path_matrix(m, edges[:n_edges]), lengths[:n_edges], steps)
        for e in range(n_edges):
            lengths[e] = x[e]
        resolved = n_edges == 2 * m - 3
        old = topology_hash(m, edges[:n_edges])
        seen, before = old, best
        for caution in CAUTIONS:
            new, start = join(r, n, caution, flat)
            splits = topology_hash(m, new)
            if splits in (old, seen):
                continue
            seen = splits
            x, value, _ = fit_likelihood(r, n, path_matrix(m, new), start, steps)
            if value > best + MIN_GAIN or not resolved:
                found.changed[c] = resolved = True
                best = value
                n_edges = len(new)
                for e in range(n_edges):  # assignments of slices take seconds to compile
                    edges[e, 0], edges[e, 1], lengths[e] = new[e, 0], new[e, 1], x[e]
        found.n_edges[c] = n_edges
        found.gain[c] = best - before
        for e in range(n_edges):
            if edges[e, 0] < m:
                lengths[e] += np.log(features.load[slots[edges[e, 0]]])
            if edges[e, 1] < m:
                lengths[e] += np.log(features.load[slots[edges[e, 1]]])
            lengths[e] = max(lengths[e], 0.0)


@subroutine
def _rooted(n_edges, edges):  # type: ignore[no-untyped-def]
    """Nodes of a star's tree from leaf 0, parents first, and their parents."""
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
    return order, parent


@kernel
def topology_hash(m, edges):  # type: ignore[no-untyped-def]
    """A number for the topology of a star's tree, whatever the numbers of its hidden nodes.

    The sum over edges inside of a 64-bit mix of the set of leaves away from leaf 0, as bits."""
    n_edges = len(edges)
    order, parent = _rooted(n_edges, edges)
    bits = np.zeros(n_edges + 1, dtype=np.uint64)
    total = np.uint64(0)
    for q in range(n_edges, 0, -1):
        v = order[q]
        if v < m:
            bits[v] |= np.uint64(1) << np.uint64(v)
        elif parent[v] > 0:
            total += mixed(bits[v])
        bits[parent[v]] |= bits[v]
    return total


# ---- choice ----------------------------------------------------------------------------------


class Splits(NamedTuple):
    """Splits that the tree ever had, as numbers, and how often each came."""

    number: NDArray[np.uint64]  # ascending
    times: NDArray[np.int64]

    @classmethod
    def of(cls, flat: Flat, around: Around) -> Splits:
        """Those of all edges."""
        both = around.mark.reshape(-1, 2)
        return cls(*np.unique(both.min(axis=1), return_counts=True))

    def and_also(self, more: NDArray[np.uint64]) -> Splits:
        """With more splits, each once."""
        together = np.concatenate([self.number, more])
        number, place = np.unique(together, return_inverse=True)
        times = np.bincount(place, np.concatenate([self.times, np.ones(len(more))]))
        return Splits(number, times.astype(np.int64))


@subroutine
def _new_splits(slots, edges, mark, out):  # type: ignore[no-untyped-def]
    """Numbers of the splits of a star's inner edges into `out`; how many."""
    m, n_edges = len(slots), len(edges)
    order, parent = _rooted(n_edges, edges)
    behind = np.zeros(n_edges + 1, dtype=np.uint64)
    total = mark[slots[0]] + mark[slots[0] ^ 1]
    n = 0
    for q in range(n_edges, 0, -1):
        v = order[q]
        if v < m:
            behind[v] = mark[slots[v]]
        elif parent[v] > 0:
            out[n] = min(behind[v], total - behind[v])
            n += 1
        behind[parent[v]] += behind[v]
    return n


KEPT, TAKEN, WAITS, REFUSED = range(4)


@kernel
def _choose(order, found, tails, mark, splits, touched, state, added):  # type: ignore[no-untyped-def]
    """What becomes of each region, into `state`; `touched[v]` is 1 at nodes around a region that is
    rewired, 2 inside. Returns how many splits were `added`."""
    number, times = splits
    n_added = 0
    for c in order:
        n_inside, m, n_edges = found.n_inside[c], found.n_slots[c], found.n_edges[c]
        near = 0
        for i in range(n_inside):
            near = max(near, touched[found.inside[c, i]])
        if near == 2 or (near == 1 and found.changed[c]):
            state[c] = WAITS
            continue
        if not found.changed[c]:
            continue
        slots = found.slots[c, :m]
        n = _new_splits(slots, found.edges[c, :n_edges], mark, added[n_added:])
        state[c] = REFUSED
        for q in range(n_added, n_added + n):
            at = np.searchsorted(number, added[q])
            if at == len(number) or number[at] != added[q] or times[at] < MOST_TIMES:
                state[c] = TAKEN
        if state[c] == TAKEN:
            n_added += n
            for s in slots:
                touched[tails[s ^ 1]] = max(touched[tails[s ^ 1]], 1)
            for i in range(n_inside):
                touched[found.inside[c, i]] = 2
    return n_added


def _apply(
    flat: Flat, around: Around, found: Verdicts, splits: Splits
) -> tuple[int, NDArray[np.int64], NDArray[np.bool_], Splits]:
    """Rewire, most gain first; the number of changes, where to look next, the edges that moved, and
    all splits so far."""
    judged = np.flatnonzero(found.n_slots)
    gain = np.where(found.changed, found.gain, -np.inf)[judged]
    order = judged[np.argsort(-gain, kind="stable")]
    tails = flat.ends.ravel()
    touched = np.zeros(flat.n_nodes, dtype=np.int8)
    state = np.full(len(found.n_slots), KEPT, dtype=np.int8)
    room = int(found.n_edges[found.changed].sum())
    added = np.empty(room + found.edges.shape[1], dtype=np.uint64)
    n_added = _choose(order, found, tails, around.mark, tuple(splits), touched, state, added)
    taken = order[state[order] == TAKEN]
    before = flat.length.copy()
    _set_lengths(flat, found, judged[state[judged] == KEPT])
    moved = np.abs(flat.length - before) > STILL
    rewired, fresh = [], flat.n_nodes
    for c in taken.tolist():
        rewired += _rewire(flat, found, c)
    if len(moved) < len(flat.ends):
        moved = np.concatenate([moved, np.ones(len(flat.ends) - len(moved), dtype=np.bool_)])
    moved[rewired] = True
    waiting = found.inside[np.flatnonzero(state == WAITS), 0]
    hidden = np.flatnonzero(touched == 1)
    look = np.concatenate(
        [waiting, hidden[hidden >= flat.n_observed], np.arange(fresh, flat.n_nodes)]
    )
    look = np.intersect1d(look, flat.hidden())
    return len(taken), look, moved, splits.and_also(added[:n_added])


def _set_lengths(flat: Flat, found: Verdicts, kept: NDArray[np.int64]) -> None:
    """Lengths of regions that stay as they are; where regions overlap, the last one counts."""
    most = found.slots.shape[1]
    m, n_edges = found.n_slots[kept, None], found.n_edges[kept, None]
    place = np.arange(most + MOST_INSIDE)
    from_slots = found.slots[kept][:, np.minimum(place, most - 1)] >> 1
    from_inner = np.take_along_axis(found.inner[kept], np.clip(place - m, 0, MOST_INSIDE - 1), 1)
    rows = np.where(place < m, from_slots, from_inner)
    used = place < n_edges
    flat.length[rows[used]] = found.lengths[kept][:, : len(place)][used]


def _rewire(flat: Flat, found: Verdicts, c: int) -> list[int]:
    """Replace a region by its new tree; its edges.

    Edges to branches keep their numbers, those inside get the numbers of old ones."""
    m, n_inside = int(found.n_slots[c]), int(found.n_inside[c])
    slots, free = found.slots[c, :m].tolist(), found.inner[c, : n_inside - 1].tolist()
    n_edges = int(found.n_edges[c])
    n_hidden = n_edges + 1 - m
    fresh = flat.n_nodes - m
    rows, added = [], []
    for (a, b), x in zip(
        found.edges[c, :n_edges].tolist(), found.lengths[c, :n_edges].tolist(), strict=True
    ):
        a, b = min(a, b), max(a, b)
        if a < m:
            row = slots[a] >> 1
            flat.ends[row, slots[a] & 1] = fresh + b
        elif free:
            row = free.pop()
            flat.ends[row] = fresh + a, fresh + b
        else:
            added.append(((fresh + a, fresh + b), x))
            continue
        flat.length[row] = x
        rows.append(row)
    if added:
        flat.add([pair for pair, _ in added], [x for _, x in added])
    flat.n_nodes += n_hidden
    return rows
