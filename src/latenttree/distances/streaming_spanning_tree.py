"""The spanning tree of 0/1 variables without any matrix: a sweep over strips of pairs.

Variables are ranked (see `moments.cooccurrence`). Rows come in rounds; row a of a round is counted
against all ranks before it, a strip of rows at a time, and an edge whose ends the forest of the
earlier rounds already joins by stronger edges is dropped at once:

- row a against the ranks before its round. With `b*` the strongest of them, another edge (a, b) can
  only belong to the tree if it is stronger than the forest's path from b* to b: else the path by
  way of b* is stronger throughout.
- pairs within the round, once the forest has its rows.

Both tests are O(log p), behind one of a few vector instructions that almost all pairs fail. Work:
that of the counts, and p^2 / 2 multiplications; memory: O(p) and a strip for every thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.distances.spanning_forest import Forest, adds, extended, grown
from latenttree.distances.spanning_tree import noise_penalised, sorted_edges
from latenttree.engine import parallel
from latenttree.engine.arrays import Floats, Ints
from latenttree.engine.kernels import kernel, subroutine
from latenttree.moments.binary import binary_pair, damped_inverse_sd
from latenttree.moments.cooccurrence import Packed, pair_count, tile_counts

FIRST_ROUND = 64
ROUND = 2048
"""Rows of the first round and of the largest; each is twice the one before, so that the forest
always has at least as many rows as a round."""

STRIP = 16
"""Rows of a strip: their counts against 100,000 ranks are 6 MB."""

PAIRS_PER_TEST = 64
"""Pairs that one vectorised test rules out together."""

SLACK = 1 - 1e-6
"""Single precision rounds strengths by less."""


class Marginals(NamedTuple):
    """Packed samples, and by rank the means and damped inverse standard deviations `(p,)`."""

    packed: Packed
    mean: Floats
    inverse_sd: Floats
    n: float


def packed_marginals(packed: Packed) -> Marginals:
    """Means and damped inverse standard deviations of packed variables."""
    n = float(packed.n_samples)
    mean = packed.support / n
    return Marginals(packed, mean, damped_inverse_sd(mean, n), n)


@subroutine
def _strength(marginals, a, b, count):  # type: ignore[no-untyped-def]
    """Noise-penalised correlation of two ranks, b < a, rounded as in a matrix of single
    precision."""
    one, other, n = marginals.mean[a], marginals.mean[b], marginals.n
    covariance = count / n - one * other
    rho, error, _ = binary_pair(
        covariance, one, other, marginals.inverse_sd[a], marginals.inverse_sd[b], n
    )
    return noise_penalised(np.float64(np.float32(abs(rho))), np.float64(np.float32(error)))


@subroutine
def _any_above(marginals, a, row, low, high, level, core):  # type: ignore[no-untyped-def]
    """How many of the ranks low:high have a correlation with a of at least `min(level, core)`."""
    mean, inverse_sd = marginals.mean[a], marginals.inverse_sd[a]
    share = 1 / marginals.n
    hits = 0
    for b in range(low, high):
        rho = abs(row[b] * share - mean * marginals.mean[b]) * inverse_sd * marginals.inverse_sd[b]
        hits += rho >= min(level, core[b]) * SLACK
    return hits


@subroutine
def _strongest(marginals, a, row, stop, core):  # type: ignore[no-untyped-def]
    """The rank below `stop` of largest strength with a, -1 if all are zero, and the strength."""
    best, strongest = 0.0, -1
    for low in range(0, stop, PAIRS_PER_TEST):
        high = min(low + PAIRS_PER_TEST, stop)
        if _any_above(marginals, a, row, low, high, best, core) == 0:
            continue
        for b in range(low, high):
            value = _strength(marginals, a, b, row[b])
            if value > best:
                best, strongest = value, b
    return strongest, best


@subroutine
def _more(edges, strength):  # type: ignore[no-untyped-def]
    """Room for twice as many edges."""
    n = len(edges)
    wide, longer = np.empty((2 * n, 2), dtype=np.int64), np.empty(2 * n)
    wide[:n], longer[:n] = edges, strength
    return wide, longer


@subroutine
def _row_edges(marginals, forest, core, a, row, start, stop, at, best, edges, strength, n):  # type: ignore[no-untyped-def]
    """Edges from rank a to ranks start:stop that are stronger than the forest's paths from rank
    `at`, or as strong as `best`, added to `edges` and `strength` from place n on; these and the new
    n."""
    order = marginals.packed.order
    level = min(core[at], best)
    for low in range(start, stop, PAIRS_PER_TEST):
        high = min(low + PAIRS_PER_TEST, stop)
        if _any_above(marginals, a, row, low, high, level, core) == 0:
            continue
        for b in range(low, high):
            rho = abs(row[b] / marginals.n - marginals.mean[a] * marginals.mean[b])
            rho *= marginals.inverse_sd[a] * marginals.inverse_sd[b]
            if rho < min(level, core[b]) * SLACK:
                continue
            value = _strength(marginals, a, b, row[b])
            if value <= 0.0:
                continue  # the first forest holds all edges of strength zero that matter
            if value < best and not adds(
                forest.parent, forest.since, forest.strength, order[at], order[b], value
            ):
                continue
            if n == len(edges):
                edges, strength = _more(edges, strength)
            edges[n, 0] = min(order[a], order[b])
            edges[n, 1] = max(order[a], order[b])
            strength[n] = value
            n += 1
    return edges, strength, n


@kernel
def _strip(marginals, forest, core, first, start, stop, inside):  # type: ignore[no-untyped-def]
    """Edges of rows start:stop of the round that begins at `first` to ranks before it; the counts
    of pairs within the round go to `inside`."""
    none = np.full(len(core), np.inf)
    counts = np.empty((stop - start, stop), dtype=np.uint32)
    tile_counts(marginals.packed, start, stop, 0, stop, counts)
    edges, strength = np.empty((256, 2), dtype=np.int64), np.empty(256)
    n = 0
    for a in range(start, stop):
        row = counts[a - start]
        for b in range(first, a):
            inside[a - first, b - first] = row[b]
        at, best = _strongest(marginals, a, row, first, none)
        if at >= 0:
            edges, strength, n = _row_edges(
                marginals, forest, core, a, row, 0, first, at, best, edges, strength, n
            )
    return edges[:n], strength[:n]


@kernel
def _within(marginals, forest, core, first, start, stop, inside):  # type: ignore[no-untyped-def]
    """Edges of rows start:stop to the ranks before them in their own round."""
    edges, strength = np.empty((256, 2), dtype=np.int64), np.empty(256)
    row = np.zeros(stop, dtype=np.uint32)
    n = 0
    for a in range(start, stop):
        row[first:a] = inside[a - first, : a - first]
        edges, strength, n = _row_edges(
            marginals, forest, core, a, row, first, a, a, np.inf, edges, strength, n
        )
    return edges[:n], strength[:n]


@kernel
def _first_row(marginals, start, stop, strength):  # type: ignore[no-untyped-def]
    """Strengths of variable 0 with variables start:stop."""
    rank = marginals.packed.rank
    for v in range(start, stop):
        a, b = max(rank[0], rank[v]), min(rank[0], rank[v])
        strength[v] = _strength(marginals, a, b, pair_count(marginals.packed, 0, v))


def strongest_counted_tree(marginals: Marginals, n_jobs: int, largest: int = ROUND) -> Ints:
    """Edges `(p - 1, 2)` of the strongest spanning tree, the same as `strongest_tree` of the
    matrices."""
    p = len(marginals.mean)
    forest = _first_forest(marginals, n_jobs)
    waiting: list[Any] = []
    for first, last in _rounds(p, largest):
        inside = np.zeros((last - first,) * 2, dtype=np.uint32)
        core = forest.core[marginals.packed.order]
        before = _pieces(_strip, marginals, forest, core, (first, last), inside, n_jobs)
        forest = _joined(forest, waiting + before)
        core = forest.core[marginals.packed.order]
        # these edges can be added a round later: the forest is a valid bound without them
        waiting = _pieces(_within, marginals, forest, core, (first, last), inside, n_jobs)
    return sorted_edges(_joined(forest, waiting).edges)


def _rounds(p: int, largest: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows that grow with the number of rows before them."""
    first = 0
    while first < p:
        last = min(first + min(max(first, FIRST_ROUND), largest), p)
        yield first, last
        first = last


def _first_forest(marginals: Marginals, n_jobs: int) -> Forest:
    """The edges of variable 0: of edges of strength zero no others belong to the tree."""
    p = len(marginals.mean)
    strength = np.zeros(p)
    parallel(lambda a, b: _first_row(marginals, a, b, strength), p, n_jobs)
    edges = np.column_stack([np.zeros(p, dtype=np.int64), np.arange(p)])
    return grown(p, edges[1:], strength[1:])


def _pieces(
    kernel: Any,
    marginals: Marginals,
    forest: Forest,
    core: Floats,
    rows: tuple[int, int],
    inside: NDArray[np.uint32],
    n_jobs: int,
) -> list[Any]:
    """Edges that a kernel finds in strips of the rows of a round."""
    first, last = rows

    def work(start: int, stop: int) -> Any:
        return kernel(marginals, forest, core, first, first + start, first + stop, inside)

    return parallel(work, last - first, n_jobs, STRIP)


def _joined(forest: Forest, pieces: list[Any]) -> Forest:
    """The forest with pieces of `(edges, strengths)` added."""
    if not pieces:
        return forest
    edges = np.concatenate([piece[0] for piece in pieces])
    return extended(forest, edges, np.concatenate([piece[1] for piece in pieces]))
