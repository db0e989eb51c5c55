"""Several starting trees, one result: sweep from each and keep what the results agree on.

Sweeps end in a local optimum of the likelihood. Local grouping starts nearest to the truth on
chains and uneven trees, global neighbour joining on balanced ones. Where data are few, optima of
almost equal likelihood differ, and majority rule has the least expected error: the share of the
optima that have an edge multiplies its support.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotri

from latenttree.distances.similarity import Similarity
from latenttree.structure.builder import TreeBuilder
from latenttree.structure.edge_evidence import edge_tests
from latenttree.structure.support import fit_support
from latenttree.structure.sweeps import sweep
from latenttree.structure.wide_joining import resolve_node

JOIN_LIMIT = 1500
"""Up to this many variables the sweeps also start from global joining, whose tree is
judged in O(p^3)."""

VOTE_LIMIT = 300
"""Up to this many variables all starts are tried where the first two disagree."""

TEMPERATURE = 4.0
"""An optimum votes with weight exp(-(highest log-likelihood - its own) / 4)."""

JOININGS = ((1.0, False), (0.0, False), (4.0, False), (0.0, True))
"""Arguments `caution` and `equal_weights` of global neighbour joining, one pair for each start."""

Edge = tuple[int, int]


class Optimum(NamedTuple):
    """A swept tree, its log-likelihood, the split of each of its edges `(a, b)`, a < b, as bits,
    and the number of changes of each sweep."""

    tree: TreeBuilder
    log_likelihood: float
    splits: dict[Edge, int]
    changes: list[int]


def best_tree(
    part: Similarity, merged: TreeBuilder, n_jobs: int, quick: bool = False
) -> tuple[Optimum, NDArray[np.float64]]:
    """The swept tree that the others agree with most, edges sorted, and the agreement `(E,)` on
    each of its edges; 1 where there is a single start.

    Starts after the second are tried only where the first two disagree, and not where it must be
    `quick`."""
    if not _has_rivals(part):
        changes = sweep(merged, part, n_jobs)
        merged.sort()
        return Optimum(merged, 0.0, {}, changes), np.ones(len(merged.ends))
    optima: list[Optimum] = []
    for tree in _starts(part, merged, n_jobs):
        changes = sweep(tree, part, n_jobs)
        value = tree_log_likelihood(tree, part)
        optima.append(Optimum(tree, value, edge_splits(tree), changes))
        if len(optima) == 2 and (quick or _agree(optima[0], optima[1], part, n_jobs)):
            break
    votes = _votes(optima)
    best = max(optima, key=lambda o: (sum(votes[s] for s in o.splits.values()), o.log_likelihood))
    best.tree.sort()
    agreement = [votes[best.splits[a, b]] for a, b in best.tree.ends.tolist()]
    return best, np.array(agreement)


def _votes(optima: list[Optimum]) -> dict[int, float]:
    """For every split the share of the votes of the optima that have it."""
    highest = max(o.log_likelihood for o in optima)
    weights = np.exp([(o.log_likelihood - highest) / TEMPERATURE for o in optima])
    votes: dict[int, float] = {}
    for o, weight in zip(optima, weights / weights.sum(), strict=True):
        for split in o.splits.values():
            votes[split] = votes.get(split, 0.0) + float(weight)
    return votes


def _has_rivals(part: Similarity) -> bool:
    return part.feature_leaves > 1 and 4 <= part.n_variables <= JOIN_LIMIT


def _starts(part: Similarity, merged: TreeBuilder, n_jobs: int) -> Iterator[TreeBuilder]:
    """Trees to sweep from. The first joining takes one thread, which runs while the caller works
    on the merged tree."""
    p, n = part.n_variables, part.typical_samples
    rho = np.abs(part.rho)
    with ThreadPoolExecutor(1, thread_name_prefix="latenttree-join") as pool:
        first = pool.submit(resolve_node, rho, n, *JOININGS[0]) if n_jobs > 1 else None
        yield merged
        yield TreeBuilder(p, *(first.result() if first else resolve_node(rho, n, *JOININGS[0])))
    for caution, equal_weights in JOININGS[1:] if p <= VOTE_LIMIT else ():
        yield TreeBuilder(p, *resolve_node(rho, n, caution, equal_weights))


def _agree(one: Optimum, other: Optimum, part: Similarity, n_jobs: int) -> bool:
    """Whether two optima have the same supported splits."""
    return _supported_splits(one, part, n_jobs) == _supported_splits(other, part, n_jobs)


def _supported_splits(optimum: Optimum, part: Similarity, n_jobs: int) -> set[int]:
    tests = edge_tests(optimum.tree, part, n_jobs)
    support = fit_support(tests, part.n_variables).supports(tests)
    return {optimum.splits[a, b] for a, b in tests.ends[support >= 0.5].tolist()}


def edge_splits(tree: TreeBuilder) -> dict[Edge, int]:
    """For every edge `(a, b)`, a < b, the observed nodes on the side away from node 0, as bits."""
    incidence = tree.incidence()
    order = incidence.order.tolist()
    parent = incidence.tail[incidence.parent_edge ^ 1].tolist()
    below = [1 << v if v < tree.n_observed else 0 for v in range(tree.n_nodes)]
    splits = {}
    for v in reversed(order[1:]):
        u = parent[v]
        below[u] |= below[v]
        splits[min(u, v), max(u, v)] = below[v]
    return splits


def tree_log_likelihood(tree: TreeBuilder, part: Similarity) -> float:
    """Gaussian log-likelihood `-n / 2 (log det Sigma + tr Sigma^-1 |rho|)` of all similarities,
    `Sigma = exp(-path lengths)`. O(p^3)."""
    names = [str(i) for i in range(part.n_variables)]
    model = np.exp(-tree.tree(names).path_lengths())
    model[np.diag_indices(len(model))] = 1 + 1e-6
    lower, _ = dpotrf(model, lower=True, clean=False, overwrite_a=True)
    log_det = 2 * float(np.log(np.diag(lower)).sum())
    half, _ = dpotri(lower, lower=True, overwrite_c=True)
    inverse = np.tril(half) + np.tril(half, -1).T
    rho = np.abs(part.rho)
    n = part.typical_samples
    return float(-0.5 * n * (log_det + (inverse * rho).sum()))
