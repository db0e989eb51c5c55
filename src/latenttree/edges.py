"""One edge against the branches around it: its length, its error, and whether it joins anything."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from latenttree.affinity import Affinity
from latenttree.features import branch_features, signed_correlation, star_correlations
from latenttree.lengths import fit_likelihood, invert, path_matrix
from latenttree.wiring import Slots, Wiring

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


def quartet_test(r: NDArray[np.float64], n: float) -> EdgeTest:
    """The middle edge of four branches (0, 1 | 2, 3)."""
    lengths, _, info = fit_likelihood(r, n, QUARTET, np.full(5, 0.3), N_STEPS)
    return EdgeTest(float(lengths[4]), float(_standard_error(info, 4)))


def pendant_test(r: NDArray[np.float64], n: float) -> EdgeTest:
    """The edge to branch 0 of three."""
    lengths, _, info = fit_likelihood(r, n, TRIPLET, np.full(3, 0.5), N_STEPS)
    return EdgeTest(float(lengths[0]), float(_standard_error(info, 0)))


@njit(cache=True, nogil=True)
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
    """Tests of a wiring's edges, from the features of its branches as they are now.

    An edge is tested between the two strongest other branches at either end, those that know best
    where their end is; an edge to an observed node needs them at its hidden end only."""

    def __init__(self, wiring: Wiring, affinity: Affinity) -> None:
        self.wiring, self.affinity = wiring, affinity
        self.features = branch_features(wiring, affinity.source, affinity.width)
        self.behind = observed_behind(self.features.slots, wiring.n_observed)

    def test(self, a: int, b: int) -> EdgeTest | None:
        """The test of edge `(a, b)`, a < b; None between two observed nodes."""
        if not self.wiring.is_hidden(b):
            return None
        number = self.features.slots.number
        link = self._link(number[a][b], number[b][a])
        far = self._strongest(b, a)
        if not self.wiring.is_hidden(a):
            return pendant_test(*self._star([number[b][a], *far]))._replace(link=link)
        return quartet_test(*self._star([*self._strongest(a, b), *far]))._replace(link=link)

    def _strongest(self, v: int, but: int) -> list[int]:
        """Slots of the two branches at v, other than `but`, most correlated with v."""
        load, number = self.features.load, self.features.slots.number[v]
        lengths = self.wiring.links[v]
        strength = sorted((lengths[u] - np.log(load[e]), e) for u, e in number.items() if u != but)
        return [e for _, e in strength[:2]]

    def _star(self, slots: list[int]) -> tuple[NDArray[np.float64], float]:
        f, rows = self.features, np.array(slots)
        r = star_correlations(rows, f.leaf, f.weight, f.size, self.affinity.source)
        return r, self.affinity.samples(f.leading(rows))

    def _link(self, one: int, other: int) -> float:
        # between independent sides signs cancel, and tails are not heavy: all samples count;
        # sides whose signs do not fit one tree may cancel too, but then single pairs stand out
        f = self.features
        r, single = signed_correlation(one, other, f.leaf, f.weight, f.size, self.affinity.source)
        r = max(r, single / STAND_OUT)
        n_pairs = self.behind[one] * self.behind[other]
        return float(r * np.sqrt(self.affinity.n / (2 * np.log(2 * n_pairs))))


def observed_behind(slots: Slots, n_observed: int) -> NDArray[np.int64]:
    """Number of observed nodes behind every slot."""
    below = (np.arange(len(slots.order)) < n_observed).astype(np.int64)
    count = np.zeros(len(slots.nbr), dtype=np.int64)
    for v in slots.order[:0:-1].tolist():
        up = slots.parent_slot[v]
        down = slots.back[up]
        count[down] = below[v]
        count[up] = n_observed - below[v]
        below[slots.nbr[up]] += below[v]
    return count


def edge_tests(wiring: Wiring, affinity: Affinity) -> dict[Edge, EdgeTest]:
    """Tests of all edges `(a, b)`, a < b, that have a hidden end."""
    tester = EdgeTester(wiring, affinity)
    tests = {(a, b): tester.test(a, b) for a, b in wiring.edges()}
    return {edge: test for edge, test in tests.items() if test is not None}
