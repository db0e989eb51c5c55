"""One edge against the branches around it: its length, its error, and whether its sides are
dependent at all."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.distances.similarity import Similarity
from latenttree.engine import parallel
from latenttree.engine.kernels import kernel, subroutine
from latenttree.structure.branch_features import (
    branch_features,
    feature_correlations,
    signed_correlation,
    update_features,
)
from latenttree.structure.builder import TreeBuilder
from latenttree.structure.lengths import fit_likelihood
from latenttree.structure.small_matrices import invert

TRIPLET, QUARTET = (
    np.array([list(row) for row in rows.split()]) == "1"
    for rows in ("110 101 011", "11000 10101 10011 01101 01011 00110")
)
"""Path matrices, see `lengths.path_matrix`, of three leaves at one node, and of 0 and 1 at one node
and 2 and 3 at another; the inner edge is the last."""

N_STEPS = 20

STAND_OUT = 1.3
"""A single pair shows dependence if it is this much stronger than the best of all noise pairs."""


class EdgeTests(NamedTuple):
    """Tests of m edges, one row each, by edge number."""

    edge: NDArray[np.int64]  # (m,) number of the edge, ascending
    ends: NDArray[np.int64]  # (m, 2) its nodes, the lower first
    length: NDArray[np.float64]  # (m,)
    standard_error: NDArray[np.float64]  # (m,) of the length
    dependence: NDArray[np.float64]
    """(m,) correlation between the two sides, in units of the largest that independent sides would
    show over all pairs"""

    def take(self, rows: NDArray[Any]) -> EdgeTests:
        """A copy of some of the tests."""
        return EdgeTests(*(column[rows] for column in self))

    def overwrite(self, newer: EdgeTests) -> None:
        """Replace, in place, the tests of the edges of `newer`."""
        rows = np.searchsorted(self.edge, newer.edge)
        for column, values in zip(self, newer, strict=True):
            column[rows] = values


class EdgeTester:
    """Tests of a tree's edges, from the features of its branches as they are now.

    An edge is tested between the two other branches at either end that correlate most with it; an
    edge to an observed node needs them at its hidden end only."""

    def __init__(self, tree: TreeBuilder, similarity: Similarity, n_jobs: int = 1) -> None:
        self.tree, self.similarity, self.n_jobs = tree, similarity, n_jobs
        self.incidence = tree.incidence()
        self.features = branch_features(
            tree, self.incidence, similarity.source, similarity.feature_leaves, n_jobs
        )

    def update(self, changed: NDArray[np.bool_]) -> None:
        """Take account of edges `changed` `(E,)` that got other ends or were removed."""
        self.incidence = self.tree.incidence()
        source = self.similarity.source
        update_features(self.features, self.tree, self.incidence, source, changed, self.n_jobs)

    def test(self, edges: NDArray[np.int64]) -> EdgeTests:
        """Tests of edges by number, without those between two observed nodes."""
        tree = self.tree
        edges = edges[tree.ends[edges].max(axis=1, initial=-1) >= tree.n_observed]
        results = np.empty((len(edges), 3))
        source, n = self.similarity.source, self.similarity.n_effective

        def work(start: int, stop: int) -> None:
            _test(
                edges[start:stop], self.incidence, tree.length, tree.n_observed, self.features,
                source, n, (TRIPLET, QUARTET), N_STEPS, results[start:stop],
            )  # fmt: skip

        if len(edges):
            parallel(work, len(edges), self.n_jobs, max(64, -(-len(edges) // 64)))
        return EdgeTests(edges, np.sort(tree.ends[edges], axis=1), *results.T.copy())


def edge_tests(tree: TreeBuilder, similarity: Similarity, n_jobs: int = 1) -> EdgeTests:
    """Tests of all edges that have a hidden end. Sorts the edges of the tree."""
    tree.sort()
    return EdgeTester(tree, similarity, n_jobs).test(np.arange(len(tree.ends)))


@subroutine
def _strongest(v, skip, incidence, length, features, out):  # type: ignore[no-untyped-def]
    """The two directed edges from v, other than `skip`, whose branches correlate most with v, into
    `out`."""
    best, second = np.inf, np.inf
    for q in range(incidence.first[v], incidence.first[v + 1]):
        d = incidence.edge[q]
        if d == skip:
            continue
        distance = length[d >> 1] - np.log(features.load[d])
        if distance < best:
            best, second = distance, best
            out[0], out[1] = d, out[0]
        elif distance < second:
            second = distance
            out[1] = d


@subroutine
def _standard_error(information, e):  # type: ignore[no-untyped-def]
    """Root of the e-th diagonal entry of the inverse information; a small ridge makes it
    invertible."""
    k = len(information)
    ridged, covariance = information.copy(), np.empty((k, k))
    for a in range(k):
        ridged[a, a] += 1e-9 * (information[a, a] + 1)
    if np.isnan(invert(ridged, covariance)):
        return np.inf
    return np.sqrt(max(covariance[e, e], 1e-300))


@kernel
def _test(edges, incidence, length, n_observed, features, source, n, paths, n_steps, out):  # type: ignore[no-untyped-def]
    """Length, standard error and dependence of edges into `out` `(edges, 3)`.

    `paths` are the path matrices of a triplet and of a quartet."""
    tail = incidence.tail
    branches = np.zeros(4, dtype=np.int64)
    for i in range(len(edges)):
        d = 2 * edges[i]
        if tail[d] > tail[d ^ 1]:
            d ^= 1  # from the lower to the higher node, which is hidden
        pendant = tail[d] < n_observed
        if pendant:
            branches[0] = d ^ 1
        else:
            _strongest(tail[d], d, incidence, length, features, branches[:2])
        m = 3 if pendant else 4
        _strongest(tail[d ^ 1], d ^ 1, incidence, length, features, branches[m - 2 : m])
        r, samples = feature_correlations(branches[:m], features, source, n)
        start = np.full(2 * m - 3, 0.5 if pendant else 0.3)
        x, _, information = fit_likelihood(r, samples, paths[m - 3], start, n_steps)
        e = 0 if pendant else 4
        out[i, 0], out[i, 1] = x[e], _standard_error(information, e)
        # Between independent sides signs cancel, and the kurtosis is Gaussian: all samples count.
        # Sides whose signs do not fit one tree may cancel too, but then single pairs stand out.
        together, single = signed_correlation(d, d ^ 1, features, source)
        n_pairs = incidence.n_behind[d] * incidence.n_behind[d ^ 1]
        together = max(together, single / STAND_OUT)
        out[i, 2] = together * np.sqrt(n / (2 * np.log(2.0 * n_pairs)))
