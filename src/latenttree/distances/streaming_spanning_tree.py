"""The spanning tree of 0/1 variables without any matrix: a sweep over strips of pairs.

Variables are ranked (see `moments.cooccurrence`). Rows come in rounds; row a of a round is counted
against all ranks before it, a strip of rows at a time, and what the forest of the rounds before
already joins by stronger edges is dropped at once:

- row a against the ranks before its round. With `b*` the strongest of them, another edge (a, b) can
  only belong to the tree if it is stronger than the forest's path from b* to b: else a goes round
  by way of b*.
- pairs within the round, once the forest knows its rows.

Both tests are O(log p), behind one of a few vector instructions that almost all pairs fail. Work:
that of the counts, and p^2 / 2 multiplications; memory: O(p) and a strip for every thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.distances.spanning_forest import Forest, adds, grown, joined
from latenttree.distances.spanning_tree import doubted, sorted_edges
from latenttree.engine import parallel
from latenttree.engine.kernels import kernel, subroutine
from latenttree.moments.binary import binary_pair, damped_root
from latenttree.moments.cooccurrence import Packed, pair_count, tile_counts

FIRST_ROUND = 64
ROUND = 2048
"""Rows of the first round and of the largest; each is twice the one before, so that the forest
always knows as many rows as a round has."""

STRIP = 16
"""Rows of a strip: their counts against 100,000 ranks are 6 MB."""

GLANCE = 64
"""Pairs that are looked at together."""

SLACK = 1 - 1e-6
"""Single precision rounds strengths by less."""


class Sides(NamedTuple):
    """What the strength of a pair needs besides its count, by rank."""

    store: Packed
    mean: NDArray[np.float64]
    root: NDArray[np.float64]
    n: float


def weighed(store: Packed) -> Sides:
    """Means and damped standard deviations of the variables of a store."""
    n = float(store.n_samples)
    mean = store.support / n
    return Sides(store, mean, damped_root(mean, n), n)


@subroutine
def _strength(sides, a, b, count):  # type: ignore[no-untyped-def]
    """Doubted strength of two ranks, b < a, from what a matrix in single precision would hold."""
    one, other, n = sides.mean[a], sides.mean[b], sides.n
    second = count / n - one * other
    rho, error, _ = binary_pair(second, one, other, sides.root[a], sides.root[b], n)
    return doubted(np.float64(np.float32(abs(rho))), np.float64(np.float32(error)))


@subroutine
def _any_above(sides, a, row, low, high, level, core):  # type: ignore[no-untyped-def]
    """How many of the ranks low:high have a correlation with a of at least `min(level, core)`."""
    mean, root = sides.mean[a], sides.root[a]
    share = 1 / sides.n
    hits = 0
    for b in range(low, high):
        rho = abs(row[b] * share - mean * sides.mean[b]) * root * sides.root[b]
        hits += rho >= min(level, core[b]) * SLACK
    return hits


@subroutine
def _strongest(sides, a, row, stop, core):  # type: ignore[no-untyped-def]
    """The rank below `stop` of largest strength with a."""
    best, found = 0.0, -1
    for low in range(0, stop, GLANCE):
        high = min(low + GLANCE, stop)
        if _any_above(sides, a, row, low, high, best, core) == 0:
            continue
        for b in range(low, high):
            value = _strength(sides, a, b, row[b])
            if value > best:
                best, found = value, b
    return found, best


@subroutine
def _more(edges, strength):  # type: ignore[no-untyped-def]
    """Room for twice as many edges."""
    n = len(edges)
    wide, longer = np.empty((2 * n, 2), dtype=np.int64), np.empty(2 * n)
    wide[:n], longer[:n] = edges, strength
    return wide, longer


@subroutine
def _row_edges(sides, forest, core, a, row, start, stop, at, best, edges, strength, n):  # type: ignore[no-untyped-def]
    """Edges from rank a to ranks start:stop that are stronger than the forest's paths from rank
    `at`, or as strong as `best`, added to `edges` and `strength` from place n on; these and the new
    n."""
    order = sides.store.order
    level = min(core[at], best)
    for low in range(start, stop, GLANCE):
        high = min(low + GLANCE, stop)
        if _any_above(sides, a, row, low, high, level, core) == 0:
            continue
        for b in range(low, high):
            rho = abs(row[b] / sides.n - sides.mean[a] * sides.mean[b])
            rho *= sides.root[a] * sides.root[b]
            if rho < min(level, core[b]) * SLACK:
                continue
            value = _strength(sides, a, b, row[b])
            if value <= 0.0:
                continue  # those that matter are there from the start
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
def _strip(sides, forest, core, first, start, stop, inside):  # type: ignore[no-untyped-def]
    """Edges of rows start:stop of the round that begins at `first` to ranks before it; the counts
    of pairs within the round go to `inside`."""
    none = np.full(len(core), np.inf)
    counts = np.empty((stop - start, stop), dtype=np.uint32)
    tile_counts(sides.store, start, stop, 0, stop, counts)
    edges, strength = np.empty((256, 2), dtype=np.int64), np.empty(256)
    n = 0
    for a in range(start, stop):
        row = counts[a - start]
        for b in range(first, a):
            inside[a - first, b - first] = row[b]
        at, best = _strongest(sides, a, row, first, none)
        if at >= 0:
            edges, strength, n = _row_edges(
                sides, forest, core, a, row, 0, first, at, best, edges, strength, n
            )
    return edges[:n], strength[:n]


@kernel
def _within(sides, forest, core, first, start, stop, inside):  # type: ignore[no-untyped-def]
    """Edges of rows start:stop to the ranks before them in their own round."""
    edges, strength = np.empty((256, 2), dtype=np.int64), np.empty(256)
    row = np.zeros(stop, dtype=np.uint32)
    n = 0
    for a in range(start, stop):
        row[first:a] = inside[a - first, : a - first]
        edges, strength, n = _row_edges(
            sides, forest, core, a, row, first, a, a, np.inf, edges, strength, n
        )
    return edges[:n], strength[:n]


@kernel
def _star(sides, start, stop, strength):  # type: ignore[no-untyped-def]
    """Strengths of variable 0 with variables start:stop."""
    rank = sides.store.rank
    for v in range(start, stop):
        a, b = max(rank[0], rank[v]), min(rank[0], rank[v])
        strength[v] = _strength(sides, a, b, pair_count(sides.store, 0, v))


def strongest_counted_tree(sides: Sides, n_jobs: int, largest: int = ROUND) -> NDArray[np.int64]:
    """Edges `(p - 1, 2)` of the strongest spanning tree, the same that `strongest_tree` finds in
    the matrices."""
    p = len(sides.mean)
    forest = _first_forest(sides, n_jobs)
    waiting: list[Any] = []
    for first, last in _rounds(p, largest):
        inside = np.zeros((last - first,) * 2, dtype=np.uint32)
        core = forest.core[sides.store.order]
        found = waiting + _pieces(_strip, sides, forest, core, (first, last), inside, n_jobs)
        forest = _joined(forest, found)
        core = forest.core[sides.store.order]
        # what they add may come late: the forest is one of real edges with them or without
        waiting = _pieces(_within, sides, forest, core, (first, last), inside, n_jobs)
    return sorted_edges(_joined(forest, waiting).edges)


def _rounds(p: int, largest: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows that grow with the number of rows before them."""
    first = 0
    while first < p:
        last = min(first + min(max(first, FIRST_ROUND), largest), p)
        yield first, last
        first = last


def _first_forest(sides: Sides, n_jobs: int) -> Forest:
    """The edges of variable 0: of edges of strength zero no others belong to the tree."""
    p = len(sides.mean)
    strength = np.zeros(p)
    parallel(lambda a, b: _star(sides, a, b, strength), p, n_jobs)
    edges = np.column_stack([np.zeros(p, dtype=np.int64), np.arange(p)])
    return grown(p, edges[1:], strength[1:])


def _pieces(
    kernel: Any,
    sides: Sides,
    forest: Forest,
    core: NDArray[np.float64],
    rows: tuple[int, int],
    inside: NDArray[np.uint32],
    n_jobs: int,
) -> list[Any]:
    """Edges that a kernel finds in strips of the rows of a round."""
    first, last = rows

    def work(start: int, stop: int) -> Any:
        return kernel(sides, forest, core, first, first + start, first + stop, inside)

    return parallel(work, last - first, n_jobs, STRIP)


def _joined(forest: Forest, found: list[Any]) -> Forest:
    if not found:
        return forest
    edges = np.concatenate([piece[0] for piece in found])
    return joined(forest, edges, np.concatenate([piece[1] for piece in found]))
