"""Several starts, one answer: sweep from different trees and keep what they agree on.

Sweeps end in a local optimum of the likelihood. Local grouping starts nearest to the truth on
chains and uneven trees, global joining on balanced ones. Where data are few, optima of almost
equal likelihood differ, and the least expected error is had by majority rule: the share of the
optima that have an edge multiplies its support.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

from latenttree.distances.similarity import Affinity
from latenttree.structure.builder import Wiring
from latenttree.structure.edge_evidence import Edge, edge_tests
from latenttree.structure.support import fit_judge
from latenttree.structure.sweeps import sweep
from latenttree.structure.wide_joining import join_star

JOIN_LIMIT = 1500
"""Up to this many variables the sweeps also start from global joining, whose tree is
judged in O(p^3)."""

VOTE_LIMIT = 300
"""Up to this many variables all starts are tried where the first two disagree."""

TEMPERATURE = 4.0
"""An optimum votes with weight exp(-(log-likelihood it lacks) / 4)."""

JOINS = ((1.0, False), (0.0, False), (4.0, False), (0.0, True))
"""Ways to join globally: standard errors of caution, and whether far branches count like near."""


class Optimum(NamedTuple):
    """A swept tree, its log-likelihood, its edges as splits and the changes made by each sweep."""

    wiring: Wiring
    log_likelihood: float
    splits: dict[Edge, int]
    changes: list[int]


def best_tree(part: Affinity, merged: Wiring, n_jobs: int) -> tuple[Optimum, dict[Edge, float]]:
    """The swept tree that the others agree with most, and the agreement on each of its edges;
    none where there is a single start.

    Starts after the second are tried only where the first two disagree."""
    if not _has_rivals(part):
        changes = sweep(merged, part, n_jobs)
        return Optimum(merged, 0.0, {}, changes), {}
    optima: list[Optimum] = []
    for wiring in _starts(part, merged, n_jobs):
        changes = sweep(wiring, part, n_jobs)
        value = log_likelihood(wiring, part)
        optima.append(Optimum(wiring, value, edge_splits(wiring), changes))
        if len(optima) == 2 and _same(optima[0], optima[1], part, n_jobs):
            break
    highest = max(o.log_likelihood for o in optima)
    weights = np.exp([(o.log_likelihood - highest) / TEMPERATURE for o in optima])
    votes: dict[int, float] = {}
    for o, weight in zip(optima, weights / weights.sum(), strict=True):
        for split in o.splits.values():
            votes[split] = votes.get(split, 0.0) + float(weight)
    best = max(optima, key=lambda o: (sum(votes[s] for s in o.splits.values()), o.log_likelihood))
    return best, {edge: votes[split] for edge, split in best.splits.items()}


def _has_rivals(part: Affinity) -> bool:
    return part.width > 1 and 4 <= part.n_variables <= JOIN_LIMIT


def _starts(part: Affinity, merged: Wiring, n_jobs: int) -> Iterator[Wiring]:
    """Trees to sweep from; the first joining, one thread's work, goes on beside the first."""
    p, n = part.n_variables, part.typical_samples
    rho = np.abs(part.block(np.arange(p)))
    with ThreadPoolExecutor(1, thread_name_prefix="latenttree-join") as aside:
        first = aside.submit(join_star, rho, n, *JOINS[0]) if n_jobs > 1 else None
        yield merged
        yield Wiring.from_edges(p, *(first.result() if first else join_star(rho, n, *JOINS[0])))
    for caution, flat in JOINS[1:] if p <= VOTE_LIMIT else ():
        yield Wiring.from_edges(p, *join_star(rho, n, caution, flat))


def _same(one: Optimum, other: Optimum, part: Affinity, n_jobs: int) -> bool:
    """Whether two optima agree on all that the data support."""
    found = []
    for o in (one, other):
        tests = edge_tests(o.wiring, part, n_jobs)
        support = fit_judge(tests, o.wiring.n_observed).supports(tests)
        found.append({o.splits[e] for e, value in support.items() if value >= 0.5})
    return found[0] == found[1]


def edge_splits(wiring: Wiring) -> dict[Edge, int]:
    """For every edge `(a, b)`, a < b, the observed nodes on the side away from node 0, as bits."""
    parent = {0: -1}
    order = [0]
    for v in order:
        for u in wiring.links[v]:
            if u != parent[v]:
                parent[u] = v
                order.append(u)
    below = {v: 0 if wiring.is_hidden(v) else 1 << v for v in order}
    splits = {}
    for v in reversed(order[1:]):
        u = parent[v]
        below[u] |= below[v]
        splits[(min(u, v), max(u, v))] = below[v]
    return splits


def log_likelihood(wiring: Wiring, part: Affinity) -> float:
    """Gaussian log-likelihood of all affinities under the tree's path lengths. O(p^3)."""
    names = [str(i) for i in range(part.n_variables)]
    model = np.exp(-wiring.tree(names).path_lengths())
    model[np.diag_indices(len(model))] = 1 + 1e-6
    lower, _ = dpotrf(model, lower=True, clean=False, overwrite_a=True)
    log_det = 2 * float(np.log(np.diag(lower)).sum())
    half, _ = dpotri(lower, lower=True, overwrite_c=True)
    inverse = np.tril(half) + np.tril(half, -1).T
    rho = np.abs(part.block(np.arange(part.n_variables)))
    n = part.typical_samples
    return float(-0.5 * n * (log_det + (inverse * rho).sum()))
