"""Binary tree -> the tree that keeps what is more likely true than not.

Edges go a few at a time, weakest first, and their neighbours are tested again before they are
judged: a leaf that hardly belongs anywhere cuts a long edge into two short doubtful ones, and once
the first of them is gone the second is seen at its full length.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from latenttree.distances.correlations import cross, effective_samples
from latenttree.distances.similarity import Affinity
from latenttree.engine import parallel
from latenttree.engine.kernels import kernel, subroutine
from latenttree.structure.branch_features import branch_features, leading, star_correlations
from latenttree.structure.builder import Wiring
from latenttree.structure.edge_evidence import Edge, EdgeTest, EdgeTester
from latenttree.structure.flat_tree import GONE, Around, Flat
from latenttree.structure.lengths import fit_star
from latenttree.structure.support import Judge

CROWD = 5
"""A node of this degree stays where it is when one more edge is contracted into it."""

MAX_ROUNDS = 100


def contract_unsupported(
    wiring: Wiring,
    affinity: Affinity,
    tests: dict[Edge, EdgeTest],
    judge: Judge,
    min_support: float,
    agreement: dict[Edge, float] | None = None,
    n_jobs: int = 1,
) -> tuple[dict[Edge, EdgeTest], dict[Edge, float]]:
    """Contract, in place, edges with support below `min_support`, and refit the lengths around.

    A pendant edge is contracted into its observed end, which becomes an internal node. Edges that
    join independent parts (support zero) stay. `agreement` multiplies the support of an edge.
    Returns tests and supports of the edges that are left.
    """
    flat = Flat.of(wiring)
    rows = np.arange(len(flat.ends))
    ends = flat.pairs(rows)
    known = {row: tests[e] for row, e in enumerate(ends) if e in tests}
    agreed = np.array([(agreement or {}).get(e, 1.0) for e in ends])
    support = np.full(len(rows), np.nan)

    def judged(some: dict[int, EdgeTest]) -> None:
        edges = flat.pairs(np.array(list(some), dtype=np.int64))
        found = judge.supports(dict(zip(edges, some.values(), strict=True)))
        for row, e in zip(some, edges, strict=True):
            support[row] = found[e] * agreed[row]

    judged(known)
    tester = None
    for _ in range(MAX_ROUNDS):
        weak = np.flatnonzero((support > 0) & (support < min_support))
        around = tester.around if tester else flat.around()
        batch = _batch(flat, around, weak, support)
        if not batch:
            break
        if tester is None:
            tester = EdgeTester(flat, affinity, n_jobs)
        touched, moved = _contract(flat, around, batch)
        support[batch] = np.nan
        tester.update(moved)
        weak = np.flatnonzero((support > 0) & (support < min_support))
        again = tester.test(weak[touched[flat.ends[weak]].any(axis=1)])
        known |= again
        judged(again)
    left = rows[flat.ends[:, 0] != GONE]
    flat.into(wiring)
    refit_lengths(wiring, affinity, n_jobs)
    ends = flat.pairs(left)
    kept = [(e, row) for e, row in zip(ends, left.tolist(), strict=True) if row in known]
    return {e: known[row] for e, row in kept}, {e: float(support[row]) for e, row in kept}


def _batch(
    flat: Flat, around: Around, weak: NDArray[np.int64], support: NDArray[np.float64]
) -> list[int]:
    """The weakest edges, no two of which meet in a node that one of them might move."""
    ends = np.sort(flat.ends[weak], axis=1)
    # rounded, so that edges of equal support come in the same order everywhere
    order = np.lexsort((ends[:, 1], ends[:, 0], support[weak].round(9)))
    tails, degree = flat.ends.ravel(), np.diff(around.first)
    used: set[int] = set()
    batch = []
    for row, (a, b) in zip(weak[order].tolist(), ends[order].tolist(), strict=True):
        if a in used or b in used or b < flat.n_observed:
            continue
        batch.append(row)
        used.add(b)
        if degree[a] < CROWD:
            used.add(a)
        # the branches that tell where b is must not move either
        near = tails[around.slot[around.first[b] : around.first[b + 1]] ^ 1]
        used.update(near[degree[near] < CROWD].tolist())
    return batch


def _contract(
    flat: Flat, around: Around, batch: list[int]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Contract edges into their lower ends; the nodes that got something, and the edges that are
    around these."""
    slots: dict[int, list[int]] = {}

    def slots_of(v: int) -> list[int]:
        if v not in slots:
            slots[v] = around.slot[around.first[v] : around.first[v + 1]].tolist()
        return slots[v]

    tails = flat.ends.ravel()
    touched = np.zeros(flat.n_nodes, dtype=np.bool_)
    for row in batch:
        keep, drop = sorted(flat.ends[row].tolist())
        given = [s for s in slots_of(drop) if s >> 1 != row]
        tails[given] = keep
        slots[keep] = [s for s in slots_of(keep) if s >> 1 != row] + given
        flat.ends[row] = GONE
        touched[keep] = True
    return touched, touched[flat.ends].any(axis=1) & (flat.ends[:, 0] != GONE)


def refit_lengths(wiring: Wiring, affinity: Affinity, n_jobs: int = 1) -> None:
    """Fit, in place, the lengths around hidden nodes that contraction has made wider than three.

    What a contracted edge measured is spread over the branches that now meet. Around an observed
    node inside the tree every branch is measured from that node itself. An edge with both ends
    refitted gets the mean of the two."""
    flat = Flat.of(wiring)
    around = flat.around()
    features = branch_features(flat, around, affinity.source, affinity.width, n_jobs)
    degree = np.diff(around.first)
    hidden = np.arange(flat.n_nodes) >= flat.n_observed
    nodes = np.flatnonzero(degree >= np.where(hidden, 4, 2))
    found = np.full(2 * len(flat.ends), np.nan)

    def work(start: int, stop: int) -> None:
        part = nodes[start:stop]
        _refit(part, around, flat.n_observed, features, affinity.source, affinity.n, found)

    if len(nodes):
        parallel(work, len(nodes), n_jobs)
    both = found.reshape(-1, 2)
    fitted = ~np.isnan(both)
    count = fitted.sum(axis=1)
    mean = np.where(fitted, both, 0.0).sum(axis=1) / np.maximum(count, 1)
    flat.length = np.where(count > 0, mean, flat.length)
    flat.into(wiring)


@kernel
def _refit(nodes, around, n_observed, features, source, n, found):  # type: ignore[no-untyped-def]
    """Lengths of the edges around nodes, by slot, into `found`."""
    for v in nodes:
        slots = around.slot[around.first[v] : around.first[v + 1]]
        if v < n_observed:
            x = _from_observed(v, slots, features, source, n)
        else:
            r = star_correlations(slots, features, source)
            x = fit_star(r, effective_samples(source, n, leading(slots, features)))
        for i in range(len(slots)):
            s = slots[i]
            found[s] = max(x[i] + np.log(features.load[s]), 0.0)


@subroutine
def _from_observed(v, slots, features, source, n):  # type: ignore[no-untyped-def]
    """Distances of the features of slots from observed node v, by folded correlations."""
    x = np.empty(len(slots))
    own = np.array([v])
    block = np.empty((1, features.leaf.shape[1]))
    for i in range(len(slots)):
        s = slots[i]
        size = features.size[s]
        cross(source, own, features.leaf[s, :size], block)
        r = 0.0
        for q in range(size):
            r += features.weight[s, q] * abs(block[0, q])
        x[i] = -np.log(min(max(r, 0.5 / np.sqrt(n)), 1.0))
    return x
