"""Neighbour joining of very many branches, in time quadratic in their number.

`neighbour_joining` compares all pairs of features before every join, which is cubic. Here each
feature remembers its best partner, and only these pairs are compared (the visible set of fast
neighbour joining, Elias and Lagergren 2005). Over an additive tree a true pair of siblings is
always among them, so that the tree stays exact; over samples, all partners are searched for again
whenever a quarter of the features are gone. NumPy rather than a kernel, so that Ctrl-C works.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from latenttree.engine import blocks, single_threaded_blas
from latenttree.structure.joining import LOWEST, best_predictor, neighbour_joining

Floats = NDArray[np.float64]
EdgesAndLengths = tuple[NDArray[np.int64], Floats]

MAX_NARROW = 500
"""Most features for which all pairs are compared before every join."""

JOINED_SHARE = 1 / 4
"""Share of the features that are joined before all partners are searched for again."""

PAIRS_PER_BLOCK = 1 << 15
"""Pairs in a block of rows: its temporary arrays stay in cache."""


def resolve_node(
    r: Floats, n: float, caution: float, equal_weights: bool, max_narrow: int = MAX_NARROW
) -> EdgesAndLengths:
    """`neighbour_joining` of any number of branches: the same arguments and results.

    More than `max_narrow` branches are joined by their best partners until that many are left.
    O(m^2) for m branches."""
    if len(r) <= max_narrow:
        edges, lengths = neighbour_joining(r, n, caution, equal_weights)
        return edges, lengths
    joining = _WideJoining(r.copy(), n, caution, equal_weights)
    with single_threaded_blas():  # sums do not depend on the number of threads
        while len(joining.node) > max_narrow:
            left = len(joining.node)
            joining.join_some(min(max(1, int(left * JOINED_SHARE)), left - max_narrow))
    return joining.finish()


class _WideJoining:
    """Features that are not yet joined, one a row, with the edges made so far.

    `c` are their correlations, `node` the node of the tree that each stands for, `load` its
    correlation with that node; joined rows stay, of weight zero, until `join_some` ends."""

    def __init__(self, c: Floats, n: float, caution: float, equal_weights: bool) -> None:
        self.c, self.n, self.caution, self.equal_weights = c, n, caution, equal_weights
        self.node = np.arange(len(c))
        self.load = np.ones(len(c))
        self.next_node = len(c)
        self.edges: list[tuple[int, int]] = []
        self.lengths: list[float] = []

    def join_some(self, n_joins: int) -> None:
        """Find all partners, join the best pairs among them, and drop the rows that were joined."""
        self._weigh()
        self._find_partners()
        for _ in range(n_joins):
            i = int(np.argmax(self._pair_scores()))
            self._join(i, int(self.partner[i]))
        left = np.flatnonzero(self.weight)
        self.c = self.c[np.ix_(left, left)]
        self.node, self.load = self.node[left], self.load[left]

    def finish(self) -> EdgesAndLengths:
        """All edges and lengths, after joining the features that are left."""
        edges, lengths = neighbour_joining(self.c, self.n, self.caution, self.equal_weights)
        m = len(self.node)
        # a combined feature is farther away than the node it stands for
        ends = edges.min(axis=1)
        of_feature = ends < m
        lengths[of_feature] += np.log(self.load[ends[of_feature]])
        number = np.concatenate([self.node, self.next_node + np.arange(m)])
        return (
            np.concatenate([np.array(self.edges), number[edges]]),
            np.concatenate([np.array(self.lengths), np.maximum(lengths, 0.0)]),
        )

    # ---- weights and partners ----------------------------------------------------------

    def _distances(self, correlations: Floats) -> tuple[Floats, Floats, Floats]:
        """Correlations raised out of the noise, distances and variances, as in
        `log_distances`."""
        x = np.clip(correlations, 0.5 / np.sqrt(self.n), 1.0)
        square = x * x
        return x, -np.log(x), ((1 - square) ** 2 + 1e-12) / (self.n * square)

    def _blocks(self) -> list[slice]:
        """Slices of rows that are worked on together."""
        m = len(self.node)
        return [slice(*rows) for rows in blocks(m, max(1, PAIRS_PER_BLOCK // m))]

    def _weigh(self) -> None:
        """Weights of all rows, and of each row the weighted sums of its distances and errors."""
        m = len(self.node)
        self.weight, self.top = np.ones(m), 1.0
        if not self.equal_weights:
            near = np.concatenate([self._near(self.c[rows]) for rows in self._blocks()])
            self.top = float(near.max())
            self.weight = np.maximum(near / self.top, 1e-200)
        self.total, self.noise = np.empty(m), np.empty(m)
        for rows in self._blocks():
            _, d, v = self._distances(self.c[rows])
            own = np.arange(len(d)), np.arange(rows.start, rows.start + len(d))
            d[own] = v[own] = 0.0
            self.total[rows], self.noise[rows] = d @ self.weight, v @ self.weight**2

    def _near(self, c: Floats) -> Floats:
        """Sums of the squared correlations of rows with the others."""
        x = np.clip(c, 0.5 / np.sqrt(self.n), 1.0)
        return np.asarray(np.einsum("...k,...k->...", x, x) - 1.0)  # without its own

    def _find_partners(self) -> None:
        """The partner of largest score of every row, and the distance and variance of the pair."""
        m = len(self.node)
        self.partner = np.empty(m, dtype=np.int64)
        self.apart, self.variance = np.empty(m), np.empty(m)
        for rows in self._blocks():
            _, d, v = self._distances(self.c[rows])
            one = self.weight[rows, None], self.total[rows, None], self.noise[rows, None]
            score = self._scores(d, v, one, (self.weight, self.total, self.noise))
            here = np.arange(len(d))
            score[here, here + rows.start] = LOWEST
            best = score.argmax(axis=1)
            self.partner[rows] = best
            self.apart[rows], self.variance[rows] = d[here, best], v[here, best]

    def _scores(
        self, d: Floats, v: Floats, one: tuple[Floats, ...], other: tuple[Floats, ...]
    ) -> Floats:
        """`Q - caution * se(Q)` of pairs at distance `d` (see `neighbour_joining`), from the
        weights, sums of distances and sums of errors of both ends."""
        (wa, ta, na), (wb, tb, nb) = one, other
        rest, skew = self.weight.sum() - (wa + wb), wa - wb
        variance = na + nb + (rest * rest - (wa * wa + wb * wb)) * v
        q = ta + tb - rest * d + (ta - tb + skew * d) * (skew / rest)
        q -= self.caution * np.sqrt(np.maximum(variance, 0.0))
        return np.asarray(0.5 * q)

    def _pair_scores(self) -> Floats:
        """Scores of all rows with their partners."""
        ends = self.weight, self.total, self.noise
        other = tuple(x[self.partner] for x in ends)
        score = self._scores(self.apart, self.variance, ends, other)
        score[self.weight == 0] = LOWEST
        return score

    # ---- one join ----------------------------------------------------------------------

    def _join(self, i: int, j: int) -> None:
        """Make row i the feature of the parent of i and j, and row j one of no weight."""
        halves = self._parent_distances(i, j)
        self._connect(i, j, halves)
        wi, wj, self.load[i] = best_predictor(*np.exp(-np.array(halves)))
        self._subtract(i, j)
        row = wi * self.c[i] + wj * self.c[j]
        row[i] = 1.0
        self.c[i], self.c[:, i] = row, row
        self.node[i] = self.next_node
        self.next_node += 1
        self._add(i, j)

    def _parent_distances(self, i: int, j: int) -> tuple[float, float]:
        """Distances of i and of j to their parent, as in `joining._parent_distances`."""
        _, d, v = self._distances(self.c[[i, j]])
        w = np.where(self.weight > 0, 1.0 / (v[0] + v[1]), 0.0)
        w[[i, j]] = 0.0
        whole = float(d[0, j])
        tilt = float(w @ (d[0] - d[1]) / w.sum())
        half = min(max(0.5 * (whole + tilt), 0.0), whole)
        return half, whole - half

    def _connect(self, i: int, j: int, halves: tuple[float, float]) -> None:
        """Edges of rows i and j to a new node."""
        for child, half in zip((i, j), halves, strict=True):
            self.edges.append((int(self.node[child]), self.next_node))
            self.lengths.append(max(half + float(np.log(self.load[child])), 0.0))

    def _subtract(self, i: int, j: int) -> None:
        """Take rows i and j out of the sums of the others."""
        _, d, v = self._distances(self.c[[i, j]])
        w = self.weight[[i, j]]
        self.total -= w @ d
        self.noise -= w**2 @ v
        self.weight[[i, j]] = 0.0

    def _add(self, i: int, j: int) -> None:
        """Weigh the new row i, add it to the sums of the others, and find its partner; it becomes
        the partner of those whose partner was i or j."""
        x, d, v = self._distances(self.c[i])
        d[i] = v[i] = 0.0
        alive = self.weight > 0
        near = float((x * x) @ alive)
        self.weight[i] = 1.0 if self.equal_weights else max(near / self.top, 1e-200)
        self.total += self.weight[i] * d
        self.noise += self.weight[i] ** 2 * v
        self.total[i], self.noise[i] = self.weight @ d, self.weight**2 @ v
        one = self.weight[i], self.total[i], self.noise[i]
        score = self._scores(d, v, one, (self.weight, self.total, self.noise))
        orphaned = (self.partner == i) | (self.partner == j)
        self.partner[orphaned] = i
        self.apart[orphaned], self.variance[orphaned] = d[orphaned], v[orphaned]
        best = int(np.argmax(np.where(alive, score, LOWEST)))
        self.partner[i], self.apart[i], self.variance[i] = best, d[best], v[best]
