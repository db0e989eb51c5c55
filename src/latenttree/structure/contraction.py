"""Binary tree -> the tree of the edges that are more likely real than not.

Edges go a few at a time, weakest first, and their neighbours are tested again before they are
judged: a leaf whose place is uncertain cuts a long edge into two short doubtful ones, and once the
first of them is contracted the second is tested at its full length.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from latenttree.distances.correlations import cross_block
from latenttree.distances.similarity import Similarity
from latenttree.engine import parallel
from latenttree.engine.kernels import kernel, subroutine
from latenttree.structure.branch_features import (
    branch_features,
    feature_correlation,
    feature_correlations,
)
from latenttree.structure.builder import REMOVED, Incidence, TreeBuilder
from latenttree.structure.edge_evidence import EdgeTester, EdgeTests
from latenttree.structure.lengths import fit_unresolved_node, pair_distance
from latenttree.structure.support import SupportModel

WIDE_DEGREE = 5
"""A node of this degree hardly moves when one more edge is contracted into it."""

MAX_ROUNDS = 100

FITTED_TOGETHER = 256
"""Branches of a node whose lengths are fitted together, at most; the others are measured from
these. Memory and time of all pairs would be those of the whole table around a node that joins
thousands of variables without dependence."""


def contract_unsupported(
    tree: TreeBuilder,
    similarity: Similarity,
    tests: EdgeTests,
    model: SupportModel,
    min_support: float,
    agreement: NDArray[np.float64] | None = None,
    n_jobs: int = 1,
) -> EdgeTests:
    """Contract, in place, edges with support below `min_support`, and refit the lengths around.

    `tests` are those of `edge_tests`, which sorted the tree's edges. A pendant edge is contracted
    into its observed end, which becomes an internal node. Edges that join independent parts
    (support zero) stay. `agreement` `(E,)` multiplies the support of an edge.
    Writes `support` and `standard_error` of the edges that are left, and returns their tests; edges
    of the result are sorted, and `edge` of the tests are their new numbers.
    """
    agreement = np.ones(len(tree.ends)) if agreement is None else agreement
    support = np.full(len(tree.ends), np.nan)
    support[tests.edge] = model.supports(tests) * agreement[tests.edge]
    tests = tests.take(np.arange(len(tests.edge)))
    tester = None
    for _ in range(MAX_ROUNDS):
        weak = np.flatnonzero((support > 0) & (support < min_support))
        incidence = tester.incidence if tester else tree.incidence()
        batch = _batch(tree, incidence, weak, support)
        if not batch:
            break
        if tester is None:
            tester = EdgeTester(tree, similarity, n_jobs)
        touched, changed = _contract(tree, incidence, batch)
        support[batch] = np.nan
        tester.update(changed)
        weak = np.flatnonzero((support > 0) & (support < min_support))
        again = tester.test(weak[touched[tree.ends[weak]].any(axis=1)])
        tests.overwrite(again)
        support[again.edge] = model.supports(again) * agreement[again.edge]
    tree.support[tests.edge] = support[tests.edge]
    tree.standard_error[tests.edge] = tests.standard_error
    tests = _sorted_tests(tests, tree)
    refit_lengths(tree, similarity, n_jobs)
    return tests


def _sorted_tests(tests: EdgeTests, tree: TreeBuilder) -> EdgeTests:
    """Tests of the edges that are left, numbered as they will be when the tree is sorted."""
    ends = np.sort(tree.ends, axis=1)
    order = np.lexsort((ends[:, 1], ends[:, 0]))
    number = np.empty(len(ends), dtype=np.int64)
    number[order] = np.arange(len(ends)) - int((ends[:, 0] == REMOVED).sum())
    tests = tests._replace(edge=number[tests.edge], ends=ends[tests.edge])
    rows = np.argsort(tests.edge, kind="stable")
    return tests.take(rows[tests.edge[rows] >= 0])


def _batch(
    tree: TreeBuilder,
    incidence: Incidence,
    weak: NDArray[np.int64],
    support: NDArray[np.float64],
) -> list[int]:
    """The weakest edges, no two of which meet in a node that one of them might move."""
    ends = np.sort(tree.ends[weak], axis=1)
    # rounded, so that edges of equal support come in the same order on all machines
    order = np.lexsort((ends[:, 1], ends[:, 0], support[weak].round(9)))
    degree = np.diff(incidence.first)
    used: set[int] = set()
    batch = []
    for edge, (a, b) in zip(weak[order].tolist(), ends[order].tolist(), strict=True):
        if a in used or b in used or b < tree.n_observed:
            continue
        batch.append(edge)
        used.add(b)
        if degree[a] < WIDE_DEGREE:
            used.add(a)
        # the branches that determine where b is must not move either
        leaving = incidence.edge[incidence.first[b] : incidence.first[b + 1]]
        near = incidence.tail[leaving ^ 1]
        used.update(near[degree[near] < WIDE_DEGREE].tolist())
    return batch


def _contract(
    tree: TreeBuilder, incidence: Incidence, batch: list[int]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Contract edges into their lower ends, in place; returns the nodes `(n_nodes,)` that took over
    edges, and the edges `(E,)` that meet there."""
    leaving: dict[int, list[int]] = {}

    def leaving_node(v: int) -> list[int]:
        if v not in leaving:
            leaving[v] = incidence.edge[incidence.first[v] : incidence.first[v + 1]].tolist()
        return leaving[v]

    tail = tree.ends.ravel()
    touched = np.zeros(tree.n_nodes, dtype=np.bool_)
    for edge in batch:
        keep, drop = sorted(tree.ends[edge].tolist())
        given = [d for d in leaving_node(drop) if d >> 1 != edge]
        tail[given] = keep
        leaving[keep] = [d for d in leaving_node(keep) if d >> 1 != edge] + given
        tree.ends[edge] = REMOVED
        touched[keep] = True
    return touched, touched[tree.ends].any(axis=1) & (tree.ends[:, 0] != REMOVED)


def refit_lengths(tree: TreeBuilder, similarity: Similarity, n_jobs: int = 1) -> None:
    """Fit, in place, the lengths around hidden nodes of degree four or more and around observed
    nodes inside the tree. Sorts the edges.

    The length of a contracted edge is shared by the branches that now meet. Around an observed node
    inside the tree every branch is measured from that node itself. An edge with both ends refitted
    gets the mean of the two."""
    tree.sort()
    incidence = tree.incidence()
    features = branch_features(
        tree, incidence, similarity.source, similarity.feature_leaves, n_jobs
    )
    hidden = np.arange(tree.n_nodes) >= tree.n_observed
    nodes = np.flatnonzero(np.diff(incidence.first) >= np.where(hidden, 4, 2))
    lengths = np.full(2 * len(tree.ends), np.nan)
    source, n = similarity.source, similarity.n_effective

    def work(start: int, stop: int) -> None:
        _refit(nodes[start:stop], incidence, tree.n_observed, features, source, n, lengths)

    if len(nodes):
        parallel(work, len(nodes), n_jobs)
    by_end = lengths.reshape(-1, 2)
    fitted = ~np.isnan(by_end)
    count = fitted.sum(axis=1)
    mean = np.where(fitted, by_end, 0.0).sum(axis=1) / np.maximum(count, 1)
    tree.length = np.where(count > 0, mean, tree.length)


@kernel
def _refit(nodes, incidence, n_observed, features, source, n, lengths):  # type: ignore[no-untyped-def]
    """Lengths of the edges around nodes, by directed edge, into `lengths` `(2E,)`."""
    for v in nodes:
        branches = incidence.edge[incidence.first[v] : incidence.first[v + 1]]
        if v < n_observed:
            x = _distances_from_observed(v, branches, features, source, n)
        else:
            x = _distances_from_hidden(branches, features, source, n)
        for i in range(len(branches)):
            d = branches[i]
            lengths[d] = max(x[i] + np.log(features.load[d]), 0.0)


@subroutine
def _distances_from_hidden(branches, features, source, n):  # type: ignore[no-untyped-def]
    """Distances of features from the hidden node in which they meet."""
    m = len(branches)
    if m <= FITTED_TOGETHER:
        return fit_unresolved_node(*feature_correlations(branches, features, source, n))
    some = np.arange(FITTED_TOGETHER) * m // FITTED_TOGETHER
    r, n_pair = feature_correlations(branches[some], features, source, n)
    known = fit_unresolved_node(r, n_pair)
    width = features.leaf.shape[1]
    block, x = np.empty((width, width)), np.empty(m)
    for i in range(m):
        top, bottom = 0.0, 0.0
        for j in range(FITTED_TOGETHER):
            if some[j] != i:
                r_ij = feature_correlation(branches[i], branches[some[j]], features, source, block)
                distance, weight = pair_distance(r_ij, n_pair)
                top += weight * (distance - known[j])
                bottom += weight
        x[i] = max(top / bottom, 0.0)
    for j in range(FITTED_TOGETHER):
        x[some[j]] = known[j]
    return x


@subroutine
def _distances_from_observed(v, branches, features, source, n):  # type: ignore[no-untyped-def]
    """Distances of features from observed node v, by the magnitudes of their correlations."""
    x = np.empty(len(branches))
    own = np.array([v])
    block = np.empty((1, features.leaf.shape[1]))
    for i in range(len(branches)):
        d = branches[i]
        size = features.size[d]
        cross_block(source, own, features.leaf[d, :size], block)
        r = 0.0
        for q in range(size):
            r += features.weight[d, q] * abs(block[0, q])
        x[i] = -np.log(min(max(r, 0.5 / np.sqrt(n)), 1.0))
    return x
