"""A region of the tree cut out and solved again: proposals for sweeps.

A region is a hidden node with the hidden nodes around it. Cut out, it is one unresolved node with
branches, each represented by its feature (the best linear predictor from the leaves behind it).
The branches are joined again, and the new topology is proposed only if it explains the correlations
between the branches better, by likelihood.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.distances.similarity import Similarity
from latenttree.engine import parallel
from latenttree.engine.kernels import kernel, subroutine
from latenttree.structure.branch_features import (
    BranchFeatures,
    feature_correlations,
)
from latenttree.structure.builder import Incidence, TreeBuilder, mix_bits
from latenttree.structure.joining import neighbour_joining
from latenttree.structure.lengths import fit_likelihood, leaf_sets, path_matrix

RADIUS = 2
"""Steps from the centre of a region to its hidden nodes."""

MAX_BRANCHES = 8
"""A region does not grow beyond so many branches."""

MOST_BRANCHES = 62
"""A wider node (of a fixed-epsilon grouping) is left alone: sets of branches are 64 bits."""

MAX_HIDDEN = 16
"""Hidden nodes of a region."""

CAUTIONS = (1.0, 4.0)
"""Standard errors that neighbour joining subtracts: one candidate topology for each."""

N_STEPS = 10

MIN_GAIN = 0.5
"""Log-likelihood that a new topology must gain: less can come from rounding and from lengths that
are not yet refitted."""


class Proposals(NamedTuple):
    """What to do with n regions.

    A region has hidden nodes `hidden`, centre first, directed edges `branches` from them to the
    branches, and edges `inner` between them. Its proposed tree has local numbers (branches first,
    then hidden). An unchanged tree has its edges in the order `branches`, `inner`. A region with
    `n_branches` zero is left alone."""

    n_hidden: NDArray[np.int64]  # (n,)
    hidden: NDArray[np.int64]  # (n, MAX_HIDDEN)
    n_branches: NDArray[np.int64]  # (n,)
    branches: NDArray[np.int64]  # (n, most branches)
    inner: NDArray[np.int64]  # (n, MAX_HIDDEN)
    n_edges: NDArray[np.int64]  # (n,)
    edges: NDArray[np.int64]  # (n, most edges, 2)
    lengths: NDArray[np.float64]  # (n, most edges)
    changed: NDArray[np.bool_]  # (n,) whether the topology is new
    gain: NDArray[np.float64]  # (n,) log-likelihood that a new topology gains

    @classmethod
    def empty(cls, n: int, most: int) -> Proposals:
        """Rows to be filled, for regions of up to `most` branches."""
        counts = [np.zeros(n, dtype=np.int64) for _ in range(3)]
        n_edges = 2 * most + MAX_HIDDEN
        return cls(
            counts[0],
            np.empty((n, MAX_HIDDEN), dtype=np.int64),
            counts[1],
            np.empty((n, most), dtype=np.int64),
            np.empty((n, MAX_HIDDEN), dtype=np.int64),
            counts[2],
            np.empty((n, n_edges, 2), dtype=np.int64),
            np.empty((n, n_edges)),
            np.zeros(n, dtype=np.bool_),
            np.zeros(n),
        )


def propose_regions(
    tree: TreeBuilder,
    incidence: Incidence,
    features: BranchFeatures,
    similarity: Similarity,
    centres: NDArray[np.int64],
    n_jobs: int,
) -> Proposals:
    """Proposals for the regions around `centres`, in parallel."""
    widest = int((incidence.first[centres + 1] - incidence.first[centres]).max())
    proposals = Proposals.empty(len(centres), min(max(widest, MAX_BRANCHES), MOST_BRANCHES))
    source, n = similarity.source, similarity.n_effective

    def work(start: int, stop: int) -> None:
        part: Any = Proposals._make(x[start:stop] for x in proposals)
        _propose(
            centres[start:stop], incidence, tree.length, tree.n_observed, features, source, n,
            N_STEPS, False, part,
        )  # fmt: skip

    parallel(work, len(centres), n_jobs, max(16, -(-len(centres) // 64)))
    return proposals


@subroutine
def _grow(start, n_hidden, first, directed, tail, length, n_observed, hidden, out):  # type: ignore[no-untyped-def]
    """Directed edges from `hidden[start:n_hidden]` to hidden nodes outside, shortest first, ties by
    the node's number, into `out`; returns how many."""
    n = 0
    for i in range(start, n_hidden):
        for q in range(first[hidden[i]], first[hidden[i] + 1]):
            d = directed[q]
            u = tail[d ^ 1]
            if u < n_observed or _position(u, hidden, n_hidden) >= 0:
                continue
            at = n
            x = length[d >> 1]
            while at > 0:
                t = out[at - 1]
                y = length[t >> 1]
                if y < x or (y == x and tail[t ^ 1] <= u):
                    break
                out[at] = t
                at -= 1
            out[at] = d
            n += 1
    return n


@subroutine
def _region(centre, first, directed, tail, length, n_observed, hidden, branches):  # type: ignore[no-untyped-def]
    """The hidden nodes within `RADIUS` steps of a centre, nearest first, while branches stay few,
    into `hidden`, and the directed edges to the branches into `branches`; returns the numbers of
    both, zero branches where they are too many."""
    hidden[0] = centre
    n_hidden, start = np.int64(1), np.int64(0)  # literals would compile callees again
    n_branches = first[centre + 1] - first[centre]
    if n_branches > MOST_BRANCHES:
        return 1, 0
    reached = np.empty(4 * MAX_BRANCHES + 2 * MAX_HIDDEN, dtype=np.int64)
    for _ in range(RADIUS):
        if n_branches >= MAX_BRANCHES:
            break
        n_reached = _grow(
            start, n_hidden, first, directed, tail, length, n_observed, hidden, reached
        )
        start = n_hidden
        for q in range(n_reached):
            u = tail[reached[q] ^ 1]
            more = first[u + 1] - first[u] - 2
            if n_branches + more <= MAX_BRANCHES and n_hidden < MAX_HIDDEN:
                n_branches += more
                hidden[n_hidden] = u
                n_hidden += 1
    m = 0
    for i in range(n_hidden):
        for q in range(first[hidden[i]], first[hidden[i] + 1]):
            if _position(tail[directed[q] ^ 1], hidden, n_hidden) < 0:
                branches[m] = directed[q]
                m += 1
    return n_hidden, m


@subroutine
def _position(v, nodes, n):  # type: ignore[no-untyped-def]
    """Where v is among the first n nodes; -1 if it is not."""
    for i in range(n):
        if nodes[i] == v:
            return i
    return -1


@subroutine
def _local_tree(c, incidence, length, features, out):  # type: ignore[no-untyped-def]
    """Region c as it is, in local numbers, into `out`; returns the number of edges.

    A feature is farther away than the node it stands for, by minus the log of its load."""
    first, directed, tail = incidence.first, incidence.edge, incidence.tail
    n_hidden, m = out.n_hidden[c], out.n_branches[c]
    hidden, branches = out.hidden[c], out.branches[c]
    edges, lengths = out.edges[c], out.lengths[c]
    n_edges = m
    for i in range(m):
        d = branches[i]
        edges[i, 0], edges[i, 1] = i, m + _position(tail[d], hidden, n_hidden)
        lengths[i] = length[d >> 1] - np.log(features.load[d])
    for i in range(n_hidden):
        for q in range(first[hidden[i]], first[hidden[i] + 1]):
            at = _position(tail[directed[q] ^ 1], hidden, n_hidden)
            if at > i:
                out.inner[c, n_edges - m] = directed[q] >> 1
                edges[n_edges, 0], edges[n_edges, 1] = m + i, m + at
                lengths[n_edges] = length[directed[q] >> 1]
                n_edges += 1
    return n_edges


@subroutine
def _subtract_loads(branches, load, edges, lengths):  # type: ignore[no-untyped-def]
    """Lengths to the nodes that features stand for, instead of to the features; in place."""
    m = len(branches)
    for e in range(len(edges)):
        if edges[e, 0] < m:
            lengths[e] += np.log(load[branches[edges[e, 0]]])
        if edges[e, 1] < m:
            lengths[e] += np.log(load[branches[edges[e, 1]]])
        lengths[e] = max(lengths[e], 0.0)


@kernel
def _propose(centres, incidence, length, n_observed, features, source, n_all, steps, equal, out):  # type: ignore[no-untyped-def]
    """Join the branches of each region again, and propose the topology of highest likelihood."""
    for c in range(len(centres)):
        n_hidden, m = _region(
            centres[c], incidence.first, incidence.edge, incidence.tail, length, n_observed,
            out.hidden[c], out.branches[c],
        )  # fmt: skip
        out.n_hidden[c] = n_hidden
        if m <= 3:
            continue
        out.n_branches[c] = m
        branches, edges, lengths = out.branches[c, :m], out.edges[c], out.lengths[c]
        n_edges = _local_tree(c, incidence, length, features, out)
        r, n = feature_correlations(branches, features, source, n_all)
        x, best, _ = fit_likelihood(r, n, path_matrix(m, edges[:n_edges]), lengths[:n_edges], steps)
        for e in range(n_edges):
            lengths[e] = x[e]
        resolved = n_edges == 2 * m - 3
        old = topology_hash(m, edges[:n_edges])
        last, before = old, best
        for caution in CAUTIONS:
            new, start = neighbour_joining(r, n, caution, equal)
            topology = topology_hash(m, new)
            if topology in (old, last):
                continue
            last = topology
            x, value, _ = fit_likelihood(r, n, path_matrix(m, new), start, steps)
            if value > best + MIN_GAIN or not resolved:
                out.changed[c] = resolved = True
                best = value
                n_edges = len(new)
                for e in range(n_edges):  # assignments of slices take seconds to compile
                    edges[e, 0], edges[e, 1], lengths[e] = new[e, 0], new[e, 1], x[e]
        out.n_edges[c] = n_edges
        out.gain[c] = best - before
        _subtract_loads(branches, features.load, edges[:n_edges], lengths)


@subroutine
def topology_hash(m, edges):  # type: ignore[no-untyped-def]
    """A hash of the topology of a local tree, whatever the numbers of its hidden nodes: the sum of
    the hashes of the sets of leaves behind its internal edges."""
    sets = leaf_sets(m, edges)
    total = np.uint64(0)
    for e in range(len(edges)):
        if min(edges[e, 0], edges[e, 1]) >= m:
            total += mix_bits(sets[e])
    return total
