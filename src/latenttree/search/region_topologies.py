"""Topologies of a small region: the current one, and others that are worth a fit.

A tree over `m` branches is the set of its inner edges, and an inner edge is the set of branches on
its far side from branch 0, as the bits of an integer. So a change of the tree changes a few
integers, and equal trees are equal tuples.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.structure.joining import neighbour_joining
from latenttree.structure.lengths import fit_likelihood

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_SPLIT = 6
"""Up to this number of branches, all splits of a region in two are tried."""

MAX_TRIED = 3
"""Upper bound of the number of topologies of one size that are fitted."""

FAR = 12.0
"""Topologies whose Gaussian log-likelihood is this much below the best are not fitted."""

NEAR = 6.0
"""Nor are those of the same size whose Gaussian log-likelihood is this much below that of the
current topology: less than one in fifty of those that gain in the end, and by little."""

CAUTIONS = (1.0, 4.0)
"""Values of the option `caution` of neighbour joining that are tried."""

FIRST_LENGTH = 0.3
"""Length of all edges at the start of a Gaussian fit."""

FIRST_STEPS, MORE_STEPS = 2, 4
SLACK = 6.0
"""Newton steps of the Gaussian fit of every topology, and further ones of those within `SLACK` of
the threshold."""


class Topology(NamedTuple):
    """A tree over branches 0..m-1, by the sets of branches that its inner edges cut off from branch
    0, largest first."""

    m: int
    splits: tuple[int, ...]

    @property
    def n_hidden(self) -> int:
        """Number of hidden nodes."""
        return len(self.splits) + 1

    def parents(self) -> tuple[list[int], list[int]]:
        """Parents of the hidden nodes and of the branches, as places among the hidden nodes: the
        one next to branch 0 first, its parent -1, then the far ends of the inner edges."""
        up = [-1] * self.n_hidden
        for i, split in enumerate(self.splits):
            up[i + 1] = _place(self.splits[:i], split)
        return up, [_place(self.splits, 1 << b) for b in range(self.m)]


def _place(splits: tuple[int, ...], inner: int) -> int:
    """The node at the far end of the smallest of these sets that contains `inner`; sets are sorted
    by decreasing size."""
    return next((i + 1 for i in range(len(splits) - 1, -1, -1) if not inner & ~splits[i]), 0)


def topology_of(m: int, splits: Iterable[int]) -> Topology:
    """The topology with these inner edges; either side of each may be given."""
    everything = (1 << m) - 1
    far = {everything ^ s if s & 1 else s for s in splits}
    return Topology(m, tuple(sorted(far, key=lambda s: (-s.bit_count(), s))))


def star(m: int) -> Topology:
    """The topology with a single hidden node."""
    return Topology(m, ())


def splits_in_two(m: int) -> Iterator[Topology]:
    """All topologies with two hidden nodes, which have at least two branches each."""
    for size in range(2, m - 1):
        for group in combinations(range(1, m), size):
            yield Topology(m, (sum(1 << i for i in group),))


def contracted(topology: Topology, split: int) -> Topology:
    """The topology without one of its inner edges."""
    return Topology(topology.m, tuple(s for s in topology.splits if s != split))


def contractions(topology: Topology, lengths: dict[int, float]) -> Iterator[Topology]:
    """The topology with its shortest inner edge contracted, then the next shortest, down to the
    star."""
    for split in sorted(topology.splits, key=lambda s: lengths[s]):
        topology = contracted(topology, split)
        yield topology


def interchanges(topology: Topology, split: int) -> Iterator[Topology]:
    """Nearest-neighbour interchanges: a branch on one side of an edge for one on the other."""
    everything = (1 << topology.m) - 1
    above = [s for s in topology.splits if s != split and not split & ~s]
    around = above[-1] if above else everything ^ 1
    ours = _parts(topology, split)
    theirs = [s for s in _parts(topology, around) if s != split] + [everything ^ around]
    rest = [s for s in topology.splits if s != split]
    # with two branches on either side, moving the second of ours repeats moving the first
    for one in ours[:1] if len(ours) == len(theirs) == 2 else ours:
        for two in theirs:
            yield topology_of(topology.m, [*rest, split ^ one ^ two])


def _parts(topology: Topology, within: int) -> list[int]:
    """The largest sets of branches below the node at the near end of `within`."""
    parts, left = [], within
    for s in topology.splits:
        if s != within and not s & ~left:
            parts.append(s)
            left ^= s
    return parts + [1 << b for b in range(topology.m) if left >> b & 1]


def joined_topology(r: Floats, n: float, caution: float) -> tuple[Topology, dict[int, float]]:
    """The tree by neighbour joining of branches with correlations `r`, and the lengths of its inner
    edges."""
    m = len(r)
    edges, lengths = neighbour_joining(r, n, caution, False)
    below = [1 << b for b in range(m)] + [0] * m
    found = {}
    for (child, parent), length in zip(edges.tolist(), lengths.tolist(), strict=True):
        below[parent] |= below[child]
        if child >= m:
            (split,) = topology_of(m, [below[child]]).splits
            found[split] = length
    return topology_of(m, found), found


def other_topologies(current: Topology, r: Floats, n: float, size: int | None) -> list[Topology]:
    """Topologies to fit to a region with branch correlations `r` from `n` samples.

    Neighbour-joining trees of the branches with their successive contractions down to the star,
    contractions and interchanges of the current topology, and splits in two; of each size the ones
    of largest Gaussian likelihood. With `size`, only topologies with that many hidden nodes, and
    none that is clearly less likely than the current one."""
    by_size: dict[int, dict[Topology, None]] = {}
    for topology in _proposals(current, r, n):
        if (size is None or topology.n_hidden == size) and topology != current:
            by_size.setdefault(topology.n_hidden, {})[topology] = None
    if not by_size:
        return []
    start = np.full(current.m + len(current.splits), FIRST_LENGTH)
    lengths, own, _ = fit_likelihood(r, n, paths([current])[0], start, FIRST_STEPS + MORE_STEPS)
    least = -np.inf if size is None else own - NEAR
    chosen = []
    for topologies in by_size.values():
        scored = _scored(list(topologies), r, n, lengths, least)
        bar = max(least, scored[0][0] - FAR)
        chosen += [topology for value, topology in scored[:MAX_TRIED] if value > bar]
    return chosen


def _proposals(current: Topology, r: Floats, n: float) -> Iterator[Topology]:
    """All topologies that are considered; some more than once."""
    m = len(r)
    if m <= MAX_SPLIT:
        yield from splits_in_two(m)
    for caution in CAUTIONS:
        topology, lengths = joined_topology(r, n, caution)
        yield topology
        yield from contractions(topology, lengths)
    for split in current.splits:
        yield contracted(current, split)
        yield from interchanges(current, split)


def _scored(
    topologies: list[Topology], r: Floats, n: float, lengths: Floats, least: float
) -> list[tuple[float, Topology]]:
    """Gaussian log-likelihoods of topologies of one size, largest first; approximate for those far
    below the best. `lengths` are those of the current topology, branches first: the start."""
    m, between = topologies[0].m, paths(topologies)
    start = lengths
    if between.shape[2] != len(lengths):
        start = np.full(between.shape[2], FIRST_LENGTH)
        start[:m] = lengths[:m]
    rough = [fit_likelihood(r, n, each, start, FIRST_STEPS) for each in between]
    bar = max(least, max(value for _, value, _ in rough) - FAR) - SLACK
    found = []
    for topology, each, (x, value, _) in zip(topologies, between, rough, strict=True):
        if value > bar:
            value = fit_likelihood(r, n, each, x, MORE_STEPS)[1]
        found.append((float(value), topology))
    return sorted(found, key=lambda pair: -pair[0])


def paths(topologies: list[Topology]) -> NDArray[np.bool_]:
    """`(topologies, m (m - 1) / 2, m + inner)`: whether an edge lies on the path between branches
    i < j. The edges of the branches come first, then the inner ones. All of one size."""
    m = topologies[0].m
    own = [1 << b for b in range(m)]
    sets = np.array([[*own, *topology.splits] for topology in topologies], dtype=np.int64)
    sides = sets[:, None, :] >> np.arange(m)[:, None] & 1  # (topologies, m, edges)
    i, j = _pairs(m)
    return np.asarray(sides[:, i] != sides[:, j])


@lru_cache
def _pairs(m: int) -> tuple[Ints, Ints]:
    i, j = np.triu_indices(m, 1)
    return i, j
