"""Distances as affinities: one signed correlation for each pair, and how noisy it is.

`rho = sign * exp(-d / scale)` lies in [-1, 1] and multiplies along the tree. With `scale = k - 1`
it is the geometric mean of the `k - 1` canonical correlations, so that any number of states is
treated like a correlation from `n` effective samples: `Var(-log rho) = (1 - rho^2)^2 / (n
rho^2)`. Topology and lengths are judged from magnitudes; signs only tell whether two parts are
dependent.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.data import Table
from latenttree.distances.correlations import (
    Source,
    dense_source,
    effective_samples,
    gather,
    gather_pairs,
)
from latenttree.distances.estimate import Distances
from latenttree.distances.orientation import orientation
from latenttree.distances.spanning_tree import minimum_spanning_tree, strongest_tree
from latenttree.moments.subspace import known_weights

EXACT = 1e200
"""Effective samples of distances without error."""

WIDTH = 32
"""Leaves that stand for a branch; the others behind the edge add almost nothing."""

COPY_SAMPLES = 20

HEAVY = 2.0
"""Tails below this, on every edge of the spanning tree, are no reason to count samples apart."""

FEWEST_KNOWN = 60

LONGEST = 200.0
"""Longest path in units of `scale`; longer ones are rescaled so that exp(-d) does not vanish."""

NO_PAIRS = np.empty((0, 2), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Affinity:
    """Affinities of p variables, oriented to be positive, and their spanning tree `mst`
    `(p - 1, 2)`.

    `n` effective samples in general; `n / tail(a, b)` for a pair whose correlation few samples
    carry (see `Distances.tails`). `excess(a, b)` is by how much the measured variance of the
    distance of a pair exceeds what these samples give a Gaussian one: near-copies differ in few
    samples, and a Gaussian correlation near one would be far too sure. A branch is seen through a
    combination of up to `width` of its leaves. `copies` `(c, 2)` are edges of the spanning tree
    whose ends are one variable seen twice: their affinity is 1, whatever the source says."""

    source: Source
    n: float
    scale: float
    mst: NDArray[np.int64]
    width: int = WIDTH
    copies: NDArray[np.int64] = field(default_factory=lambda: NO_PAIRS)

    @property
    def exact(self) -> bool:
        return self.n >= EXACT

    @property
    def n_variables(self) -> int:
        return len(self.source.rows)

    @property
    def rho(self) -> NDArray[np.float64]:
        """All affinities `(p, p)`, in a new matrix."""
        return self.block(np.arange(self.n_variables))

    def block(self, members: NDArray[np.int64]) -> NDArray[np.float64]:
        """Affinities between some variables, `(m, m)`."""
        out = np.empty((len(members), len(members)))
        gather(self.source, members, out)
        if len(self.copies):
            number = np.full(self.n_variables, -1)
            number[members] = np.arange(len(members))
            a, b = number[self.copies[(number[self.copies] >= 0).all(axis=1)]].T
            out[a, b] = out[b, a] = 1.0
        return out

    def links(self, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        """Affinities of pairs `(m, 2)`."""
        out = self._of_pairs(pairs, 0)
        if len(self.copies):
            place = np.array([self.n_variables, 1])
            known = np.sort(self.copies, axis=1) @ place
            out[np.isin(np.sort(pairs, axis=1) @ place, known)] = 1.0
        return out

    def _of_pairs(self, pairs: NDArray[np.int64], kind: int) -> NDArray[np.float64]:
        out = np.empty(len(pairs))
        gather_pairs(self.source, np.ascontiguousarray(pairs), kind, out)
        return out

    def samples(self, variables: NDArray[np.int64]) -> float:
        """Effective samples behind the correlations of some variables (`effective_samples`)."""
        return float(effective_samples(self.source, self.n, variables))

    def link_samples(self) -> NDArray[np.float64]:
        """Effective samples behind every edge of the spanning tree."""
        return self.n / (self._of_pairs(self.mst, 1) * self._of_pairs(self.mst, 2))

    @cached_property
    def typical_samples(self) -> float:
        """Effective samples behind a typical edge of the spanning tree."""
        return float(np.median(self.link_samples())) if len(self.mst) else self.n


def matrix_affinity(
    rho: NDArray[Any],
    n: float,
    scale: float = 1.0,
    mst: NDArray[np.int64] = NO_PAIRS,
    tails: NDArray[np.float32] | None = None,
) -> Affinity:
    """Affinities that are given as a matrix `(p, p)`."""
    return Affinity(dense_source(rho, tails), float(n), scale, mst)


def affinity(distances: NDArray[Any], standard_errors: NDArray[Any] | None = None) -> Affinity:
    """Affinities of a matrix of distances; `standard_errors=None` says that they are exact.

    Infinite distances are affinity zero. The effective number of samples is the median over the
    spanning tree's edges, the pairs that matter most, of what their standard errors imply.
    """
    finite = distances[np.isfinite(distances)]
    scale = max(1.0, float(finite.max(initial=0.0)) / LONGEST)
    rho = np.exp(-distances / scale)
    mst = minimum_spanning_tree(distances)
    if standard_errors is None:
        return matrix_affinity(rho, EXACT, scale, mst)
    return matrix_affinity(rho, _effective_samples(rho, standard_errors, scale, mst), scale, mst)


def estimated_affinity(found: Distances, aside: NDArray[np.bool_] | None = None) -> Affinity:
    """Affinities of estimated distances: signed roots of the determinants, oriented. Where a
    determinant is a correlation, its matrix is not copied.

    Variables `aside` have affinity zero to all others."""
    mst = strongest_tree(found.determinants, found.standard_errors, aside)
    source = dense_source(
        _rooted(found.determinants, found.rank),
        found.tails,
        found.standard_errors,
        n=found.n_samples,
        rank=found.rank,
    )
    return oriented(source, mst, aside)


def _rooted(determinants: NDArray[Any], rank: int) -> NDArray[Any]:
    """Signed roots of determinants: the geometric means of `rank` correlations."""
    if rank == 1:
        return determinants
    roots = np.abs(determinants)
    roots **= 1 / rank
    return np.copysign(roots, determinants, out=roots)


def oriented(
    source: Source, mst: NDArray[np.int64], aside: NDArray[np.bool_] | None = None
) -> Affinity:
    """Affinities of a source whose strongest spanning tree is known: the signs of the variables,
    and whether tails and measured errors count."""
    if aside is not None and aside.any():
        sign = np.where(aside, np.float32(0), np.float32(1))
        source = source._replace(sign=sign)
    source = source._replace(sign=source.sign * orientation(source, mst))
    n = float(source.n * source.rank)
    whole = Affinity(source, n, float(source.rank), mst)
    heavy = source.heavy and whole._of_pairs(mst, 1).max(initial=1.0) >= HEAVY
    # where only some pairs are near-copies, the far ones decide, and are as sure as Gaussian ones
    measured = bool(source.measured and len(mst) and np.median(whole._of_pairs(mst, 2)) >= HEAVY)
    return replace(whole, source=source._replace(heavy=bool(heavy), measured=measured))


def hardly_known(table: Table) -> NDArray[np.bool_]:
    """Variables `(p,)` that too few samples have, `FEWEST_KNOWN` or less and under a tenth: their
    noise would put others in the wrong place. They are joined without support."""
    known = known_weights(table)
    return np.asarray(known < min(FEWEST_KNOWN, 0.1 * table.total_weight))


def set_aside(found: Distances, table: Table) -> Distances:
    """The distances without those of variables that are hardly known."""
    aside = hardly_known(table)
    if not aside.any():
        return found
    determinants = found.determinants.copy()
    determinants[aside], determinants[:, aside] = 0.0, 0.0
    np.fill_diagonal(determinants, 1.0)
    return replace(found, determinants=determinants)


def mark_copies(whole: Affinity, table: Table) -> Affinity:
    """The same with an affinity of one for variables that are exact copies of each other.

    Only edges of the spanning tree need a look. Rare variables that happen to coincide are no
    copies: each value needs `COPY_SAMPLES` samples."""
    strong = whole.mst[np.abs(whole.links(whole.mst)) > 0.8]
    same = [table.is_copy(a, b, COPY_SAMPLES) for a, b in strong.tolist()]
    return replace(whole, copies=strong[np.array(same, dtype=np.bool_)])


def component(whole: Affinity, members: NDArray[np.int64]) -> Affinity:
    """The affinities of some variables that the spanning tree connects; nothing is copied."""
    number = np.full(whole.n_variables, -1)
    number[members] = np.arange(len(members))
    mst, copies = (number[x] for x in (whole.mst, whole.copies))
    rows, sign = whole.source.rows[members], whole.source.sign[members]
    source = whole.source._replace(rows=rows, sign=sign)
    return replace(
        whole,
        source=source,
        mst=mst[(mst >= 0).all(axis=1)],
        copies=copies[(copies >= 0).all(axis=1)],
    )


def _effective_samples(
    rho: NDArray[Any], errors: NDArray[Any], scale: float, mst: NDArray[np.int64]
) -> float:
    """`n` from `Var(d) = scale^2 (1 - rho^2)^2 / (n rho^2)` on the edges of the spanning tree."""
    r = np.clip(np.abs(rho[mst[:, 0], mst[:, 1]].astype(np.float64)), 1e-9, 0.999)
    e = np.maximum(errors[mst[:, 0], mst[:, 1]].astype(np.float64), 1e-12)
    known = np.isfinite(e)
    if not known.any():
        return 4.0
    n = (1 - r[known] ** 2) ** 2 * scale**2 / (r[known] * e[known]) ** 2
    return float(np.clip(np.median(n), 4.0, 1e15))
