"""Distances as affinities: one signed correlation for each pair, and how noisy it is.

`rho = sign * exp(-d / scale)` lies in [-1, 1] and multiplies along the tree. With `scale = k - 1`
it is the geometric mean of the `k - 1` canonical correlations, so that any number of states is
treated like a correlation from `n` effective samples: `Var(-log rho) = (1 - rho^2)^2 / (n
rho^2)`. Topology and lengths are judged from magnitudes; signs only tell whether two parts are
dependent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from latenttree.correlations import (
    Source,
    dense_source,
    effective_samples,
    gather,
    gather_pairs,
)
from latenttree.data import Table
from latenttree.distances import Distances
from latenttree.moments.subspace import known_weights
from latenttree.spanning import minimum_spanning_tree

EXACT = 1e200
"""Effective samples of distances without error."""

WIDTH = 32
"""Leaves that stand for a branch; the others behind the edge add almost nothing."""

COPY_SAMPLES = 20

HEAVY = 2.0
"""Tails below this, on every edge of the spanning tree, are no reason to count samples apart."""

FEWEST_KNOWN = 60
MOST_DOUBT = 30.0
"""Standard errors beyond which more makes no difference."""

LONGEST = 200.0
"""Longest path in units of `scale`; longer ones are rescaled so that exp(-d) does not vanish."""


@dataclass(frozen=True, eq=False)
class Affinity:
    """Affinities `(p, p)`, oriented to be positive, and their spanning tree `mst` `(p - 1, 2)`.

    `n` effective samples in general; `n / tails[a, b]` for a pair whose correlation few samples
    carry (see `Distances.tails`). `excess[a, b]` is by how much the measured variance of the
    distance of a pair exceeds what these samples give a Gaussian one: near-copies differ in few
    samples, and a Gaussian correlation near one would be far too sure. A branch is seen through a
    combination of up to `width` of its leaves."""

    rho: NDArray[Any]
    n: float
    scale: float
    mst: NDArray[np.int64]
    tails: NDArray[np.float32] | None = None
    width: int = WIDTH
    excess: NDArray[np.float32] | None = None

    @property
    def exact(self) -> bool:
        return self.n >= EXACT

    @property
    def n_variables(self) -> int:
        return len(self.rho)

    @cached_property
    def source(self) -> Source:
        """The affinities for compiled kernels."""
        return dense_source(self.rho, self.tails, self.excess)

    def block(self, members: NDArray[np.int64]) -> NDArray[np.float64]:
        """Affinities between some variables, `(m, m)`."""
        out = np.empty((len(members), len(members)))
        gather(self.source, members, out)
        return out

    def links(self, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        """Affinities of pairs `(m, 2)`."""
        return self._of_pairs(pairs, 0)

    def _of_pairs(self, pairs: NDArray[np.int64], kind: int) -> NDArray[np.float64]:
        out = np.empty(len(pairs))
        gather_pairs(self.source, pairs, kind, out)
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
        return Affinity(rho, EXACT, scale, mst)
    return Affinity(rho, _effective_samples(rho, standard_errors, scale, mst), scale, mst)


def estimated_affinity(found: Distances) -> Affinity:
    """Affinities of estimated distances: signed roots of the determinants, oriented."""
    rank = found.rank
    strength = np.abs(found.determinants)
    mst = minimum_spanning_tree(-_trusted(strength, found))
    if rank > 1:
        strength **= 1 / rank
    rho = np.copysign(strength, found.determinants)
    np.minimum(rho, 1.0, out=rho)
    flip = _orientation(rho, mst)
    rho *= flip[:, None]
    rho *= flip[None, :]
    tails = found.tails
    if tails is not None and tails[mst[:, 0], mst[:, 1]].max(initial=1.0) < HEAVY:
        tails = None
    excess = _measured_excess(found, rho)
    # where only some pairs are near-copies, the far ones decide, and are as sure as Gaussian ones
    if len(mst) and np.median(excess[mst[:, 0], mst[:, 1]]) < HEAVY:
        return Affinity(rho, float(found.n_samples * rank), float(rank), mst, tails)
    return Affinity(rho, float(found.n_samples * rank), float(rank), mst, tails, excess=excess)


def _trusted(strength: NDArray[Any], found: Distances) -> NDArray[Any]:
    """Strengths by which neighbours are chosen: one that does not stand out of its noise, as those
    of a variable that few samples have, counts less by as much as it may err."""
    noisy = ~found.measurable
    if not noisy.any():
        return strength
    doubt = np.exp(-np.minimum(found.standard_errors[noisy], MOST_DOUBT))
    trusted = strength.copy()
    trusted[noisy] *= doubt.astype(strength.dtype)
    return trusted


def _measured_excess(found: Distances, rho: NDArray[Any]) -> NDArray[np.float32]:
    """Measured variances of the distances of all pairs over those of Gaussian correlations `rho`
    from as many samples, `rank^2 (1 - rho^2)^2 tails / (n rank rho^2)`; at least 1."""
    square = np.asarray(rho, dtype=np.float32) ** 2
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        excess = found.standard_errors**2 * square
        excess *= found.n_samples / found.rank / (1 - square) ** 2
    if found.tails is not None:
        excess /= found.tails
    excess[~np.isfinite(excess)] = 1.0
    return np.clip(excess, 1.0, 6e4).astype(np.float32)


def set_aside(found: Distances, table: Table) -> Distances:
    """The distances without those of variables that too few samples have, `FEWEST_KNOWN` or less
    and under a tenth: their noise would put others in the wrong place. They are joined without
    support."""
    known = known_weights(table)
    aside = known < min(FEWEST_KNOWN, 0.1 * table.total_weight)
    if not aside.any():
        return found
    determinants = found.determinants.copy()
    determinants[aside], determinants[:, aside] = 0.0, 0.0
    np.fill_diagonal(determinants, 1.0)
    return replace(found, determinants=determinants)


def mark_copies(whole: Affinity, table: Table) -> Affinity:
    """Set the affinity of variables that are exact copies of each other to one, in place.

    Only edges of the spanning tree need a look. Rare variables that happen to coincide are no
    copies: each value needs `COPY_SAMPLES` samples."""
    strength = np.abs(whole.rho[whole.mst[:, 0], whole.mst[:, 1]])
    for a, b in whole.mst[strength > 0.8].tolist():
        if table.is_copy(a, b, COPY_SAMPLES):
            whole.rho[a, b] = whole.rho[b, a] = 1.0
    return whole


def component(whole: Affinity, members: NDArray[np.int64]) -> Affinity:
    """The affinities of some variables that the spanning tree connects."""
    number = np.full(len(whole.rho), -1)
    number[members] = np.arange(len(members))
    inside = (number[whole.mst] >= 0).all(axis=1)
    rho = np.ascontiguousarray(whole.rho[np.ix_(members, members)])
    tails, excess = (
        None if x is None else x[np.ix_(members, members)] for x in (whole.tails, whole.excess)
    )
    mst = number[whole.mst[inside]]
    return Affinity(rho, whole.n, whole.scale, mst, tails, whole.width, excess)


def _orientation(rho: NDArray[Any], mst: NDArray[np.int64]) -> NDArray[Any]:
    """A sign for every variable that makes affinities positive, decided by all pairs together.

    Clusters merge along the spanning tree, strongest edge first, and turn to each other by the sign
    of `sum rho |rho|` over all pairs between them: where single pairs are noise, their sum is not.
    Each pair is looked at once, O(p^2)."""
    strength = np.abs(rho[mst[:, 0], mst[:, 1]])
    order = mst[np.argsort(-strength, kind="stable")]
    found: NDArray[np.float64] = _turn(rho, order)
    return found.astype(rho.dtype)


@njit(cache=True, nogil=True)
def _turn(rho, order):  # type: ignore[no-untyped-def]
    """Signs of the variables; `order` holds the spanning tree's edges in the order of merging."""
    p = rho.shape[0]
    sign = np.ones(p)
    leader = np.arange(p)
    size = np.ones(p, dtype=np.int64)
    following = np.full(p, -1)  # next member of the same cluster
    last = np.arange(p)
    for e in range(len(order)):
        a, b = leader[order[e, 0]], leader[order[e, 1]]
        if size[a] < size[b]:
            a, b = b, a
        total = 0.0
        j = b
        while j >= 0:
            row = rho[j]
            i = a
            while i >= 0:
                total += sign[i] * sign[j] * row[i] * abs(row[i])
                i = following[i]
            j = following[j]
        j = b
        while j >= 0:
            if total < 0:
                sign[j] = -sign[j]
            leader[j] = a
            j = following[j]
        following[last[a]] = b
        last[a] = last[b]
        size[a] += size[b]
    return sign


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
