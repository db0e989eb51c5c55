"""One edge against the branches around it: its length, its error, and whether it joins anything."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.distances.correlations import effective_samples
from latenttree.distances.similarity import Affinity
from latenttree.engine import parallel
from latenttree.engine.kernels import kernel, subroutine
from latenttree.structure.branch_features import (
    branch_features,
    leading,
    signed_correlation,
    star_correlations,
    update_features,
)
from latenttree.structure.builder import Wiring
from latenttree.structure.flat_tree import Flat
from latenttree.structure.lengths import fit_likelihood, invert, path_matrix

Edge = tuple[int, int]

QUARTET = path_matrix.py_func(4, np.array([[0, 4], [1, 4], [2, 5], [3, 5], [4, 5]]))
TRIPLET = path_matrix.py_func(3, np.array([[0, 3], [1, 3], [2, 3]]))
N_STEPS = 20
STAND_OUT = 1.3
"""A single pair shows dependence if it is this much stronger than the best of all noise pairs."""


class EdgeTest(NamedTuple):
    """Length of an edge, its standard error, and the correlation between its two sides in units of
    what the best of all pairs between independent sides would show."""

    length: float
    error: float
    link: float = np.inf

    @property
    def z(self) -> float:
        return self.length / self.error


@subroutine
def _standard_error(info, e):  # type: ignore[no-untyped-def]
    """Root of the e-th diagonal entry of the inverse information, ridged where it is singular."""
    k = len(info)
    ridged, covariance = info.copy(), np.empty((k, k))
    for a in range(k):
        ridged[a, a] += 1e-9 * (info[a, a] + 1)
    if np.isnan(invert(ridged, covariance)):
        return np.inf
    return np.sqrt(max(covariance[e, e], 1e-300))


class EdgeTester:
    """Tests of a tree's edges, from the features of its branches as they are now.

    An edge is tested between the two strongest other branches at either end, those that know best
    where their end is; an edge to an observed node needs them at its hidden end only."""

    def __init__(self, flat: Flat, affinity: Affinity, n_jobs: int = 1) -> None:
        self.flat, self.affinity, self.n_jobs = flat, affinity, n_jobs
        self.around = flat.around()
        self.features = branch_features(flat, self.around, affinity.source, affinity.width, n_jobs)

    def update(self, moved: NDArray[np.bool_]) -> None:
        """Look at the tree again, in which some edges are new or have other ends."""
        self.around = self.flat.around()
        source = self.affinity.source
        update_features(self.features, self.flat, self.around, source, moved, self.n_jobs)

    def test(self, rows: NDArray[np.int64]) -> dict[int, EdgeTest]:
        """Tests of edges by number, without those between two observed nodes."""
        flat = self.flat
        rows = rows[flat.ends[rows].max(axis=1, initial=-1) >= flat.n_observed]
        tails, found = flat.ends.ravel(), np.empty((len(rows), 3))
        source, n = self.affinity.source, self.affinity.n

        def work(start: int, stop: int) -> None:
            _test(
                rows[start:stop], self.around, tails, flat.length, flat.n_observed, self.features,
                source, n, (TRIPLET, QUARTET), N_STEPS, found[start:stop],
            )  # fmt: skip

        if len(rows):
            parallel(work, len(rows), self.n_jobs, max(64, -(-len(rows) // 64)))
        tests = (EdgeTest(*test) for test in found.tolist())
        return dict(zip(rows.tolist(), tests, strict=True))


@subroutine
def _strongest(v, but, around, length, features, out):  # type: ignore[no-untyped-def]
    """Slots of the two branches at v, other than slot `but`, most correlated with v."""
    best, second = np.inf, np.inf
    for q in range(around.first[v], around.first[v + 1]):
        s = around.slot[q]
        if s == but:
            continue
        distance = length[s >> 1] - np.log(features.load[s])
        if distance < best:
            best, second = distance, best
            out[0], out[1] = s, out[0]
        elif distance < second:
            second = distance
            out[1] = s


@kernel
def _test(rows, around, tails, length, n_observed, features, source, n, paths, n_steps, found):  # type: ignore[no-untyped-def]
    """Length, error and link of edges into `found` `(edges, 3)`.

    `paths` are those of a triplet and of a quartet."""
    slots = np.zeros(4, dtype=np.int64)
    for i in range(len(rows)):
        s = 2 * rows[i]
        if tails[s] > tails[s ^ 1]:
            s ^= 1  # from the lower to the higher node, which is hidden
        pendant = tails[s] < n_observed
        if pendant:
            slots[0] = s ^ 1
        else:
            _strongest(tails[s], s, around, length, features, slots[:2])
        m = 3 if pendant else 4
        _strongest(tails[s ^ 1], s ^ 1, around, length, features, slots[m - 2 : m])
        r = star_correlations(slots[:m], features, source)
        samples = effective_samples(source, n, leading(slots[:m], features))
        start = np.full(2 * m - 3, 0.5 if pendant else 0.3)
        x, _, info = fit_likelihood(r, samples, paths[m - 3], start, n_steps)
        e = 0 if pendant else 4
        found[i, 0], found[i, 1] = x[e], _standard_error(info, e)
        # between independent sides signs cancel, and tails are not heavy: all samples count;
        # sides whose signs do not fit one tree may cancel too, but then single pairs stand out
        together, single = signed_correlation(s, s ^ 1, features, source)
        n_pairs = around.behind[s] * around.behind[s ^ 1]
        together = max(together, single / STAND_OUT)
        found[i, 2] = together * np.sqrt(n / (2 * np.log(2.0 * n_pairs)))


def edge_tests(wiring: Wiring, affinity: Affinity, n_jobs: int = 1) -> dict[Edge, EdgeTest]:
    """Tests of all edges `(a, b)`, a < b, that have a hidden end."""
    flat = Flat.of(wiring)
    tests = EdgeTester(flat, affinity, n_jobs).test(np.arange(len(flat.ends)))
    ends = flat.pairs(np.array(list(tests), dtype=np.int64))
    return dict(zip(ends, tests.values(), strict=True))
