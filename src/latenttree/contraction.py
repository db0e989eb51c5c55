"""Binary tree -> the tree that keeps what is more likely true than not.

Edges go a few at a time, weakest first, and their neighbours are tested again before they are
judged: a leaf that hardly belongs anywhere cuts a long edge into two short doubtful ones, and once
the first of them is gone the second is seen at its full length.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from latenttree.affinity import Affinity
from latenttree.edges import Edge, EdgeTest, EdgeTester
from latenttree.features import Features, branch_features, direct_correlations, star_correlations
from latenttree.lengths import fit_star
from latenttree.support import Judge
from latenttree.wiring import Wiring

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
) -> tuple[dict[Edge, EdgeTest], dict[Edge, float]]:
    """Contract, in place, edges with support below `min_support`, and refit the lengths around.

    A pendant edge is contracted into its observed end, which becomes an internal node. Edges that
    join independent parts (support zero) stay. `agreement` multiplies the support of an edge.
    Returns tests and supports of the edges that are left.
    """
    agreement = dict(agreement or {})
    tests = dict(tests)

    def judged(some: dict[Edge, EdgeTest]) -> dict[Edge, float]:
        return {e: s * agreement.get(e, 1.0) for e, s in judge.supports(some).items()}

    support = judged(tests)
    for _ in range(MAX_ROUNDS):
        batch = _batch(wiring, support, min_support)
        if not batch:
            break
        touched = set()
        for a, b in batch:
            _contract(wiring, a, b, tests, support, agreement)
            touched.add(a)
        tester = EdgeTester(wiring, affinity)
        weak = [
            e
            for e, s in support.items()
            if 0 < s < min_support and (e[0] in touched or e[1] in touched)
        ]
        again = {e: test for e in weak if (test := tester.test(*e)) is not None}
        tests |= again
        support |= judged(again)
    refit_lengths(wiring, affinity)
    return tests, support


def _batch(wiring: Wiring, support: dict[Edge, float], min_support: float) -> list[Edge]:
    """The weakest edges, no two of which meet in a node that one of them might move."""
    weak = sorted((s, e) for e, s in support.items() if 0 < s < min_support)
    used: set[int] = set()
    batch = []
    for _, (a, b) in weak:
        if a in used or b in used or not wiring.is_hidden(b):
            continue
        batch.append((a, b))
        used.add(b)
        if len(wiring.links[a]) < CROWD:
            used.add(a)
        # the branches that tell where b is must not move either
        used.update(u for u in wiring.links[b] if len(wiring.links[u]) < CROWD)
    return batch


def _contract(
    wiring: Wiring,
    keep: int,
    drop: int,
    tests: dict[Edge, EdgeTest],
    support: dict[Edge, float],
    agreement: dict[Edge, float],
) -> None:
    """Contract an edge and carry over what is known about the edges of the node that goes."""
    moved = [u for u in wiring.links[drop] if u != keep]
    wiring.contract(keep, drop)
    for known in (tests, support, agreement):
        known.pop((keep, drop), None)
        for u in moved:
            old, new = _ordered(drop, u), _ordered(keep, u)
            if old in known:
                known[new] = known.pop(old)  # type: ignore[assignment]


def _ordered(a: int, b: int) -> Edge:
    return (a, b) if a < b else (b, a)


def refit_lengths(wiring: Wiring, affinity: Affinity) -> None:
    """Fit, in place, the lengths around hidden nodes that contraction has made wider than three.

    What a contracted edge measured is spread over the branches that now meet. Around an observed
    node inside the tree every branch is measured from that node itself. An edge with both ends
    refitted gets the mean of the two."""
    features = branch_features(wiring, affinity.source, affinity.width)
    number = features.slots.number
    found: dict[Edge, list[float]] = {}
    for v in wiring.links:
        slots = np.array(list(number[v].values()))
        if len(slots) < (4 if wiring.is_hidden(v) else 2):
            continue
        x = _star_lengths(v, slots, features, affinity) + np.log(features.load[slots])
        for u, length in zip(number[v], x, strict=True):
            found.setdefault(_ordered(u, v), []).append(max(float(length), 0.0))
    for (a, b), lengths in found.items():
        wiring.connect(a, b, float(np.mean(lengths)))


def _star_lengths(
    v: int, slots: NDArray[np.int64], f: Features, affinity: Affinity
) -> NDArray[np.float64]:
    """Distances from node v to the features of the branches around it."""
    if v < affinity.n_variables:
        r = direct_correlations(v, slots, f.leaf, f.weight, f.size, affinity.source)
        return np.asarray(-np.log(np.clip(r, 0.5 / np.sqrt(affinity.n), 1.0)))
    r = star_correlations(slots, f.leaf, f.weight, f.size, affinity.source)
    return np.asarray(fit_star(r, affinity.samples(f.leading(slots))))
