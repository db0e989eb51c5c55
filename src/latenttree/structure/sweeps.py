"""Consistency sweeps: cut small regions of the tree out and solve them again.

With samples, near ties in the spanning tree make different MST groups choose different surrogates
for one hidden node, so the merged tree has branches in the wrong place. All regions are judged in
parallel (`sweep_regions`); changes that overlap wait for the next sweep, and only regions near a
change are judged again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.distances.similarity import Similarity
from latenttree.engine.kernels import kernel, subroutine
from latenttree.structure.branch_features import branch_features, update_features
from latenttree.structure.builder import Incidence, TreeBuilder
from latenttree.structure.lengths import leaf_sets
from latenttree.structure.sweep_regions import MAX_HIDDEN, Proposals, propose_regions

MAX_SWEEPS = 50

NODES_PER_CHANGE = 1000
"""Sweeps end when a sweep makes no more than one change for so many nodes."""

MAX_REPEATS = 2
"""A change is refused if all of its splits have come so often before: sweeps go in circles."""

MIN_MOVE = 1e-9
"""A length that changes by less has not changed."""


class SplitCounts(NamedTuple):
    """Splits that the tree ever had, as hashes, and how often each was introduced."""

    hash: NDArray[np.uint64]  # ascending
    times: NDArray[np.int64]

    @classmethod
    def of_tree(cls, incidence: Incidence) -> SplitCounts:
        """The splits of all edges."""
        by_side = incidence.split_hash.reshape(-1, 2)
        return cls(*np.unique(by_side.min(axis=1), return_counts=True))

    def add(self, more: NDArray[np.uint64]) -> SplitCounts:
        """With more splits, each counted once."""
        together = np.concatenate([self.hash, more])
        hashes, place = np.unique(together, return_inverse=True)
        times = np.bincount(place, np.concatenate([self.times, np.ones(len(more))]))
        return SplitCounts(hashes, times.astype(np.int64))


def sweep(
    tree: TreeBuilder, similarity: Similarity, n_jobs: int = 1, max_sweeps: int = MAX_SWEEPS
) -> list[int]:
    """Re-solve regions, in place, until none changes; returns the number of changes of each sweep.
    Sorts the edges first."""
    changes: list[int] = []
    tree.sort()
    centres = tree.hidden()
    if not len(centres) or not max_sweeps:
        return changes
    incidence = tree.incidence()
    features = branch_features(
        tree, incidence, similarity.source, similarity.feature_leaves, n_jobs
    )
    splits = SplitCounts.of_tree(incidence)
    while True:
        proposals = propose_regions(tree, incidence, features, similarity, centres, n_jobs)
        step = _apply(tree, incidence, proposals, splits)
        centres, splits = step.centres, step.splits
        changes.append(step.n_changes)
        settled = step.n_changes * NODES_PER_CHANGE <= len(tree.ends) + 1
        if settled or not len(centres) or len(changes) == max_sweeps:
            break
        incidence = tree.incidence()
        if 2 * len(tree.ends) > len(features.size):
            features = branch_features(
                tree, incidence, similarity.source, similarity.feature_leaves, n_jobs
            )
        else:
            update_features(features, tree, incidence, similarity.source, step.changed, n_jobs)
    return changes


class _Sweep(NamedTuple):
    """The result of one sweep: the number of changed regions, the centres of the regions to judge
    next, the edges `(E,)` with other ends or lengths, and all splits so far."""

    n_changes: int
    centres: NDArray[np.int64]
    changed: NDArray[np.bool_]
    splits: SplitCounts


KEPT, TAKEN, WAITS, REFUSED = range(4)
"""What becomes of a region: only its lengths are refitted; its new topology is taken; it overlaps
with a change and waits for the next sweep; its new topology is refused."""


def _apply(
    tree: TreeBuilder, incidence: Incidence, proposals: Proposals, splits: SplitCounts
) -> _Sweep:
    """Rewire the tree, in place, largest gain first."""
    judged = np.flatnonzero(proposals.n_branches)
    gain = np.where(proposals.changed, proposals.gain, -np.inf)[judged]
    order = judged[np.argsort(-gain, kind="stable")]
    touched = np.zeros(tree.n_nodes, dtype=np.int8)
    state = np.full(len(proposals.n_branches), KEPT, dtype=np.int8)
    room = int(proposals.n_edges[proposals.changed].sum()) + proposals.edges.shape[1]
    added = np.empty(room, dtype=np.uint64)
    n_added = _choose(order, proposals, incidence, tuple(splits), touched, state, added)
    taken = order[state[order] == TAKEN]
    n_nodes = tree.n_nodes
    changed = _rewire_all(tree, proposals, judged[state[judged] == KEPT], taken)
    waiting = proposals.hidden[np.flatnonzero(state == WAITS), 0]
    around = np.flatnonzero(touched == 1)
    around = around[around >= tree.n_observed]
    centres = np.concatenate([waiting, around, np.arange(n_nodes, tree.n_nodes)])
    centres = np.intersect1d(centres, tree.hidden())
    return _Sweep(len(taken), centres, changed, splits.add(added[:n_added]))


@subroutine
def _new_splits(branches, edges, split_hash, out):  # type: ignore[no-untyped-def]
    """Hashes of the splits of a local tree's internal edges into `out`; returns how many."""
    m = len(branches)
    sets = leaf_sets(m, edges)
    total = split_hash[branches[0]] + split_hash[branches[0] ^ 1]
    n = 0
    for e in range(len(edges)):
        if min(edges[e, 0], edges[e, 1]) >= m:
            behind = np.uint64(0)
            for v in range(m):
                if sets[e] >> np.uint64(v) & np.uint64(1) == 1:
                    behind += split_hash[branches[v]]
            out[n] = min(behind, total - behind)
            n += 1
    return n


@kernel
def _choose(order, proposals, incidence, splits, touched, state, added):  # type: ignore[no-untyped-def]
    """What becomes of each region, into `state`; `touched[v]` is set to 1 at nodes around a region
    that is rewired, 2 inside. Returns how many splits were `added`."""
    hashes, times = splits
    n_added = 0
    for c in order:
        n_hidden, m, n_edges = proposals.n_hidden[c], proposals.n_branches[c], proposals.n_edges[c]
        near = 0
        for i in range(n_hidden):
            near = max(near, touched[proposals.hidden[c, i]])
        if near == 2 or (near == 1 and proposals.changed[c]):
            state[c] = WAITS
            continue
        if not proposals.changed[c]:
            continue
        branches, edges = proposals.branches[c, :m], proposals.edges[c, :n_edges]
        n = _new_splits(branches, edges, incidence.split_hash, added[n_added:])
        state[c] = REFUSED
        for q in range(n_added, n_added + n):
            at = np.searchsorted(hashes, added[q])
            if at == len(hashes) or hashes[at] != added[q] or times[at] < MAX_REPEATS:
                state[c] = TAKEN
        if state[c] == TAKEN:
            n_added += n
            for d in branches:
                v = incidence.tail[d ^ 1]
                touched[v] = max(touched[v], 1)
            for i in range(n_hidden):
                touched[proposals.hidden[c, i]] = 2
    return n_added


def _rewire_all(
    tree: TreeBuilder, proposals: Proposals, kept: NDArray[np.int64], taken: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Set the lengths of regions `kept`, replace regions `taken`; returns the edges `(E,)` that
    have other ends or lengths."""
    before = tree.length.copy()
    _set_lengths(tree, proposals, kept)
    changed = np.abs(tree.length - before) > MIN_MOVE
    rewired = [edge for c in taken.tolist() for edge in _rewire(tree, proposals, c)]
    n_new = len(tree.ends) - len(changed)
    if n_new:
        changed = np.concatenate([changed, np.ones(n_new, dtype=np.bool_)])
    changed[rewired] = True
    return changed


def _set_lengths(tree: TreeBuilder, proposals: Proposals, kept: NDArray[np.int64]) -> None:
    """Lengths of regions that keep their topology; where regions overlap, the last one counts."""
    most = proposals.branches.shape[1]
    m, n_edges = proposals.n_branches[kept, None], proposals.n_edges[kept, None]
    place = np.arange(most + MAX_HIDDEN)
    to_branches = proposals.branches[kept][:, np.minimum(place, most - 1)] >> 1
    inner = np.take_along_axis(proposals.inner[kept], np.clip(place - m, 0, MAX_HIDDEN - 1), 1)
    edges = np.where(place < m, to_branches, inner)
    used = place < n_edges
    tree.length[edges[used]] = proposals.lengths[kept][:, : len(place)][used]


def _rewire(tree: TreeBuilder, proposals: Proposals, c: int) -> list[int]:
    """Replace a region by its proposed tree; returns the edges that were reused.

    Edges to branches keep their numbers, internal ones get the numbers of old ones."""
    m, n_hidden = int(proposals.n_branches[c]), int(proposals.n_hidden[c])
    branches = proposals.branches[c, :m].tolist()
    free = proposals.inner[c, : n_hidden - 1].tolist()
    n_edges = int(proposals.n_edges[c])
    shift = tree.n_nodes - m
    reused: list[int] = []
    new_ends: list[tuple[int, int]] = []
    new_lengths: list[float] = []
    pairs = np.sort(proposals.edges[c, :n_edges], axis=1).tolist()
    for (a, b), length in zip(pairs, proposals.lengths[c, :n_edges].tolist(), strict=True):
        if a < m:
            edge = branches[a] >> 1
            tree.ends[edge, branches[a] & 1] = shift + b
        elif free:
            edge = free.pop()
            tree.ends[edge] = shift + a, shift + b
        else:
            new_ends.append((shift + a, shift + b))
            new_lengths.append(length)
            continue
        tree.length[edge] = length
        reused.append(edge)
    if new_ends:
        tree.add(new_ends, new_lengths)
    tree.n_nodes += n_edges + 1 - m
    return reused
