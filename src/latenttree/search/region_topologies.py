"""Topologies of a small region: the tree as it is, and the others that are worth a fit.

A tree over `m` branches is the set of its inner edges, and an inner edge is the set of branches on
its far side from branch 0, as the bits of a number. So a change of the tree is a change of a few
numbers, and equal trees are equal tuples.
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
"""Up to so many branches all ways to split a region in two are looked at."""

MAX_TRIED = 3
"""Shapes of one size that are fitted, of those whose Gaussian likelihood is not `FAR` below."""

FAR = 12.0
NEAR = 6.0
"""Shapes whose Gaussian likelihood is so much below that of the present shape are not fitted: of
those that gain in the end, hardly one in fifty, and by little."""

CAUTIONS = (1.0, 4.0)

FIRST_LENGTH = 0.3
FIRST_STEPS, MORE_STEPS = 2, 4
SLACK = 6.0
"""Steps towards the Gaussian likelihood of every shape, and of those that are so near the best."""


class Shape(NamedTuple):
    """A tree over branches 0..m-1, by the sets of branches that its inner edges cut off from branch
    0, largest first."""

    m: int
    splits: tuple[int, ...]

    @property
    def n_hidden(self) -> int:
        return len(self.splits) + 1

    def parents(self) -> tuple[list[int], list[int]]:
        """Parents of the hidden nodes and of the branches, as places among the hidden nodes: the
        one next to branch 0 first, its parent -1, then the far ends of the inner edges."""
        up = [-1] * self.n_hidden
        for i, split in enumerate(self.splits):
            up[i + 1] = _place(self.splits[:i], split)
        return up, [_place(self.splits, 1 << b) for b in range(self.m)]


def _place(splits: tuple[int, ...], inner: int) -> int:
    """The node below the smallest of these sets that holds `inner`; larger sets stand before."""
    return next((i + 1 for i in range(len(splits) - 1, -1, -1) if not inner & ~splits[i]), 0)


def shape_of(m: int, splits: Iterable[int]) -> Shape:
    """The shape with these inner edges, whichever side of each is given."""
    everything = (1 << m) - 1
    far = {everything ^ s if s & 1 else s for s in splits}
    return Shape(m, tuple(sorted(far, key=lambda s: (-s.bit_count(), s))))


def star(m: int) -> Shape:
    return Shape(m, ())


def splits_in_two(m: int) -> Iterator[Shape]:
    """All shapes with two hidden nodes: each has at least two branches."""
    for size in range(2, m - 1):
        for group in combinations(range(1, m), size):
            yield Shape(m, (sum(1 << i for i in group),))


def contracted(shape: Shape, split: int) -> Shape:
    """The shape without one of its inner edges."""
    return Shape(shape.m, tuple(s for s in shape.splits if s != split))


def contractions(shape: Shape, lengths: dict[int, float]) -> Iterator[Shape]:
    """The shape with its shortest inner edge contracted, then the next, down to the star."""
    for split in sorted(shape.splits, key=lambda s: lengths[s]):
        shape = contracted(shape, split)
        yield shape


def interchanges(shape: Shape, split: int) -> Iterator[Shape]:
    """Nearest-neighbour interchanges: a branch on one side of an edge for one on the other."""
    everything = (1 << shape.m) - 1
    above = [s for s in shape.splits if s != split and not split & ~s]
    around = above[-1] if above else everything ^ 1
    ours = _parts(shape, split)
    theirs = [s for s in _parts(shape, around) if s != split] + [everything ^ around]
    rest = [s for s in shape.splits if s != split]
    # with two branches on either side, moving the second of ours repeats moving the first
    for one in ours[:1] if len(ours) == len(theirs) == 2 else ours:
        for two in theirs:
            yield shape_of(shape.m, [*rest, split ^ one ^ two])


def _parts(shape: Shape, within: int) -> list[int]:
    """The largest sets of branches below the node at the near end of `within`."""
    parts, left = [], within
    for s in shape.splits:
        if s != within and not s & ~left:
            parts.append(s)
            left ^= s
    return parts + [1 << b for b in range(shape.m) if left >> b & 1]


def joined(r: Floats, n: float, caution: float) -> tuple[Shape, dict[int, float]]:
    """The tree that joins branches with correlations `r`, and the lengths of its inner edges."""
    m = len(r)
    edges, lengths = neighbour_joining(r, n, caution, False)
    below = [1 << b for b in range(m)] + [0] * m
    found = {}
    for (child, parent), length in zip(edges.tolist(), lengths.tolist(), strict=True):
        below[parent] |= below[child]
        if child >= m:
            (split,) = shape_of(m, [below[child]]).splits
            found[split] = length
    return shape_of(m, found), found


def other_shapes(present: Shape, r: Floats, n: float, size: int | None) -> list[Shape]:
    """Shapes to try for a region with branch correlations `r`, the most promising ones.

    Joined trees of the branches with their successive contractions down to the star, contractions
    and interchanges of the present shape, and two-node splits; of each size the ones of largest
    Gaussian likelihood. With `size`, only shapes with that many hidden nodes, and none that looks
    clearly worse than the present one."""
    by_size: dict[int, dict[Shape, None]] = {}
    for shape in _proposals(present, r, n):
        if (size is None or shape.n_hidden == size) and shape != present:
            by_size.setdefault(shape.n_hidden, {})[shape] = None
    if not by_size:
        return []
    start = np.full(present.m + len(present.splits), FIRST_LENGTH)
    lengths, own, _ = fit_likelihood(r, n, paths([present])[0], start, FIRST_STEPS + MORE_STEPS)
    least = -np.inf if size is None else own - NEAR
    chosen = []
    for shapes in by_size.values():
        scored = _scored(list(shapes), r, n, lengths, least)
        bar = max(least, scored[0][0] - FAR)
        chosen += [shape for value, shape in scored[:MAX_TRIED] if value > bar]
    return chosen


def _proposals(present: Shape, r: Floats, n: float) -> Iterator[Shape]:
    m = len(r)
    if m <= MAX_SPLIT:
        yield from splits_in_two(m)
    for caution in CAUTIONS:
        shape, lengths = joined(r, n, caution)
        yield shape
        yield from contractions(shape, lengths)
    for split in present.splits:
        yield contracted(present, split)
        yield from interchanges(present, split)


def _scored(
    shapes: list[Shape], r: Floats, n: float, lengths: Floats, least: float
) -> list[tuple[float, Shape]]:
    """Gaussian likelihoods of shapes of one size, largest first; roughly of those far behind.

    From the lengths of the present shape, those of its branches first."""
    m, between = shapes[0].m, paths(shapes)
    start = lengths
    if between.shape[2] != len(lengths):
        start = np.full(between.shape[2], FIRST_LENGTH)
        start[:m] = lengths[:m]
    rough = [fit_likelihood(r, n, each, start, FIRST_STEPS) for each in between]
    bar = max(least, max(value for _, value, _ in rough) - FAR) - SLACK
    found = []
    for shape, each, (x, value, _) in zip(shapes, between, rough, strict=True):
        if value > bar:
            value = fit_likelihood(r, n, each, x, MORE_STEPS)[1]
        found.append((float(value), shape))
    return sorted(found, key=lambda pair: -pair[0])


def paths(shapes: list[Shape]) -> NDArray[np.bool_]:
    """`(shapes, m (m - 1) / 2, m + inner)`: which edges lie between branches i < j: those of the
    branches, then the inner ones, of shapes of one size."""
    m = shapes[0].m
    own = [1 << b for b in range(m)]
    sets = np.array([[*own, *shape.splits] for shape in shapes], dtype=np.int64)
    sides = sets[:, None, :] >> np.arange(m)[:, None] & 1  # (shapes, m, edges)
    i, j = _pairs(m)
    return np.asarray(sides[:, i] != sides[:, j])


@lru_cache
def _pairs(m: int) -> tuple[Ints, Ints]:
    i, j = np.triu_indices(m, 1)
    return i, j
