"""Distances as similarities: one signed correlation for each pair, and how noisy it is.

`rho = sign * exp(-d / distance_scale)` lies in [-1, 1] and multiplies along the tree. With
`distance_scale = n_directions` it is the geometric mean of the `n_directions` canonical
correlations, so that any number of states is treated like a correlation from n effective samples:
`Var(-log rho) = (1 - rho^2)^2 / (n rho^2)`. Topology and lengths are judged from magnitudes; signs
only tell whether two parts are dependent.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.data import Table
from latenttree.distances.correlation_source import CorrelationSource, dense_source
from latenttree.distances.correlations import (
    CORRELATION,
    KURTOSIS_RATIO,
    VARIANCE_INFLATION,
    correlation_block,
    effective_pair_samples,
    values_of_pairs,
)
from latenttree.distances.estimate import Distances
from latenttree.distances.orientation import orientation
from latenttree.distances.spanning_tree import minimum_spanning_tree, strongest_tree
from latenttree.engine.arrays import Bools, Float32, Floats, Ints
from latenttree.moments.coordinates import known_weights

EXACT = 1e200
"""Effective samples of distances without error."""

FEATURE_LEAVES = 32
"""Leaves in the feature of a branch; the others behind the edge add almost nothing."""

COPY_SAMPLES = 20
"""Samples of each value that show two equal variables to be copies."""

MIN_RATIO = 2.0
"""Kurtosis ratios are used where the largest on an edge of the spanning tree is at least this, and
variance inflations where their median over the edges is at least this. Otherwise all pairs are
treated as Gaussian."""

FEWEST_KNOWN = 60
"""A variable with fewer known samples, and in under a tenth of all, is excluded."""

LONGEST = 200.0
"""Largest distance in units of `distance_scale`. Where distances are larger the scale is too, so
that `exp(-d / distance_scale)` does not underflow."""

NO_PAIRS = np.empty((0, 2), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Similarity:
    """Similarities of p variables, oriented to be positive, and their spanning tree.

    Attributes
    ----------
    source : where correlations of pairs come from.
    n_effective : number of samples n in `Var(-log rho) = (1 - rho^2)^2 / (n rho^2)`, for a pair
        that is jointly Gaussian. For other pairs it is divided by the kurtosis ratio, see
        `Distances.kurtosis`, and the variance is multiplied by the variance inflation: two
        near-copies differ in few samples, so their distance is less certain than the formula says.
    distance_scale : distances are `-distance_scale log |rho|`.
    mst : (p - 1, 2) edges of the minimum spanning tree.
    feature_leaves : number of leaves in the feature of a branch.
    copies : (c, 2) edges of the spanning tree between exact copies: their similarity is 1, whatever
        the source says.
    gaps : whether values are missing: kurtosis ratios then contain the share that is not.
    """

    source: CorrelationSource
    n_effective: float
    distance_scale: float
    mst: Ints
    feature_leaves: int = FEATURE_LEAVES
    copies: Ints = field(default_factory=lambda: NO_PAIRS)
    gaps: bool = False

    @property
    def exact(self) -> bool:
        """Whether the distances have no error."""
        return self.n_effective >= EXACT

    @property
    def n_variables(self) -> int:
        """Number of variables, p."""
        return len(self.source.rows)

    @property
    def rho(self) -> Floats:
        """All similarities `(p, p)`, in a new matrix."""
        return self.block(np.arange(self.n_variables))

    def block(self, members: Ints) -> Floats:
        """Similarities between some variables, `(m, m)`."""
        out = np.empty((len(members), len(members)))
        correlation_block(self.source, members, out)
        if len(self.copies):
            number = np.full(self.n_variables, -1)
            number[members] = np.arange(len(members))
            a, b = number[self.copies[(number[self.copies] >= 0).all(axis=1)]].T
            out[a, b] = out[b, a] = 1.0
        return out

    def of_pairs(self, pairs: Ints) -> Floats:
        """Similarities `(m,)` of pairs `(m, 2)`."""
        out = values_of_pairs(self.source, pairs, CORRELATION)
        if len(self.copies):
            place = np.array([self.n_variables, 1])
            known = np.sort(self.copies, axis=1) @ place
            out[np.isin(np.sort(pairs, axis=1) @ place, known)] = 1.0
        return out

    def effective_samples(self, variables: Ints) -> float:
        """Effective samples of the correlations between some variables, see
        `correlations.effective_pair_samples`."""
        return float(effective_pair_samples(self.source, self.n_effective, variables))

    def mst_samples(self) -> Floats:
        """Effective samples of every edge of the spanning tree, `(p - 1,)`."""
        kurtosis = values_of_pairs(self.source, self.mst, KURTOSIS_RATIO)
        inflation = values_of_pairs(self.source, self.mst, VARIANCE_INFLATION)
        return self.n_effective / (kurtosis * inflation)

    @cached_property
    def typical_samples(self) -> float:
        """Median of the effective samples of the edges of the spanning tree."""
        return float(np.median(self.mst_samples())) if len(self.mst) else self.n_effective


def similarity_from_matrix(
    rho: NDArray[Any],
    n_effective: float,
    distance_scale: float = 1.0,
    mst: Ints = NO_PAIRS,
    kurtosis: Float32 | None = None,
) -> Similarity:
    """Similarities given as a matrix `(p, p)`, which is not copied."""
    return Similarity(dense_source(rho, kurtosis), float(n_effective), distance_scale, mst)


def similarity_from_distances(
    distances: NDArray[Any], standard_errors: NDArray[Any] | None = None
) -> Similarity:
    """Similarities of a matrix of distances; `standard_errors=None`: the distances are exact.

    Infinite distances have similarity zero. The effective number of samples is the median over the
    spanning tree's edges, the pairs that matter most, of what their standard errors imply.
    """
    finite = distances[np.isfinite(distances)]
    scale = max(1.0, float(finite.max(initial=0.0)) / LONGEST)
    rho = np.exp(-distances / scale)
    mst = minimum_spanning_tree(distances)
    if standard_errors is None:
        return similarity_from_matrix(rho, EXACT, scale, mst)
    n = _median_samples(rho, standard_errors, scale, mst)
    return similarity_from_matrix(rho, n, scale, mst)


def estimated_similarity(distances: Distances, excluded: Bools | None = None) -> Similarity:
    """Similarities of estimated distances: signed roots of the determinants, oriented. With one
    direction the matrix is not copied.

    Variables `excluded` `(p,)` have similarity zero to all others."""
    mst = strongest_tree(distances.determinants, distances.standard_errors, excluded)
    source = dense_source(
        _signed_roots(distances.determinants, distances.n_directions),
        distances.kurtosis,
        distances.standard_errors,
        n=distances.n_samples,
        n_directions=distances.n_directions,
    )
    return oriented(source, mst, excluded)


def _signed_roots(determinants: NDArray[Any], n_directions: int) -> NDArray[Any]:
    """Signed roots of determinants: the geometric means of `n_directions` correlations."""
    if n_directions == 1:
        return determinants
    roots = np.abs(determinants)
    roots **= 1 / n_directions
    return np.copysign(roots, determinants, out=roots)


def oriented(source: CorrelationSource, mst: Ints, excluded: Bools | None = None) -> Similarity:
    """Similarities of a source whose spanning tree is known: sets the signs of the variables, and
    decides whether kurtosis ratios and variance inflations are used."""
    if excluded is not None and excluded.any():
        sign = np.where(excluded, np.float32(0), np.float32(1))
        source = source._replace(sign=sign)
    source = source._replace(sign=source.sign * orientation(source, mst))
    use_kurtosis, use_inflation = source.use_kurtosis, source.use_inflation
    if use_kurtosis:
        largest = values_of_pairs(source, mst, KURTOSIS_RATIO).max(initial=1.0)
        use_kurtosis = bool(largest >= MIN_RATIO)
    if use_inflation:
        # where only some pairs are near-copies the others decide, and these are Gaussian enough
        inflation = values_of_pairs(source, mst, VARIANCE_INFLATION)
        use_inflation = bool(len(mst) and np.median(inflation) >= MIN_RATIO)
    n, scale = float(source.n * source.n_directions), float(source.n_directions)
    source = source._replace(use_kurtosis=use_kurtosis, use_inflation=use_inflation)
    return Similarity(source, n, scale, mst)


def rarely_known(table: Table) -> Bools:
    """Variables `(p,)` that are known in fewer than `FEWEST_KNOWN` samples and in under a tenth of
    all: their noise would put others in the wrong place. They are joined without support."""
    known = known_weights(table)
    return np.asarray(known < min(FEWEST_KNOWN, 0.1 * table.total_weight))


def mark_copies(whole: Similarity, table: Table) -> Similarity:
    """The same with similarity one for variables that are exact copies of each other.

    Only edges of the spanning tree are compared. Rare variables that happen to coincide are no
    copies: each value needs `COPY_SAMPLES` samples."""
    strong = whole.mst[np.abs(whole.of_pairs(whole.mst)) > 0.8]
    pairs = [(a, b) for a, b in strong.tolist()]
    copies = strong[table.copies(pairs, COPY_SAMPLES)] if pairs else strong
    return replace(whole, copies=copies, gaps=table.has_missing)


def component(whole: Similarity, members: Ints) -> Similarity:
    """The similarities of some variables that the spanning tree connects; no matrix is copied."""
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


def _median_samples(rho: NDArray[Any], errors: NDArray[Any], scale: float, mst: Ints) -> float:
    """Median over the edges of the spanning tree of n in
    `Var(d) = scale^2 (1 - rho^2)^2 / (n rho^2)`."""
    r = np.clip(np.abs(rho[mst[:, 0], mst[:, 1]].astype(np.float64)), 1e-9, 0.999)
    e = np.maximum(errors[mst[:, 0], mst[:, 1]].astype(np.float64), 1e-12)
    known = np.isfinite(e)
    if not known.any():
        return 4.0
    n = (1 - r[known] ** 2) ** 2 * scale**2 / (r[known] * e[known]) ** 2
    return float(np.clip(np.median(n), 4.0, 1e15))
