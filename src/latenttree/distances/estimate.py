"""Information distances between all pairs of variables, with signs and standard errors.

With `C_ab` the cross-covariance of the whitened features of two variables, `n_states - 1`
directions each, `d(a, b) = -log |det C_ab|`: additive along the tree, because the determinant of a
product is the product of the determinants.

Huang, Naresh, Perros, Chen, Sun and Anandkumar, "Guaranteed Scalable Learning of Latent Tree
Models" (UAI 2019), section 4, "Multivariate information distances"; additivity is proved in its
appendix. The paper takes the k largest singular values of `E[y_a y_b^T]`, relative to
`E[y_a y_a^T]` and `E[y_b y_b^T]`, for k states. Whitened by these, the largest is always 1, with
the constant function as its singular vector, and the other k - 1 are the singular values of the
centred features: the product of all k is `|det C_ab|` of k - 1 directions.

The sign of `det C_ab` is multiplicative along the tree too; it is kept so that noise cancels in the
mean over two halves of the samples, and in the test whether two sides of an edge are dependent at
all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from latenttree.data import Table, as_table, check_n_states
from latenttree.data.chunk import Chunk
from latenttree.data.content_order import in_content_order
from latenttree.data.storage import Storage
from latenttree.data.subsets import halves, without_unused
from latenttree.engine import BLOCK, Gathered, resolve_jobs, single_threaded_blas
from latenttree.engine.arrays import Bools, Float32, Floats
from latenttree.errors import DataError, Option, Text
from latenttree.moments import (
    Subspaces,
    continued_subspaces,
    full_subspaces,
    pooled_subspaces,
)
from latenttree.moments.coordinates import coordinate_moments, feature_means, weighted_features
from latenttree.moments.pairs import PairDeterminants, all_pairs

Method = Literal["pooled", "pairwise"]

UNMEASURABLE_ERROR = 0.5
"""Distances with a larger standard error are not measurable: their determinants are within two
standard errors of zero."""


@dataclass(frozen=True, eq=False)
class Distances:
    """Signed determinants of all pairs; distances are minus the logs of their magnitudes.

    Attributes
    ----------
    determinants : (p, p) signed.
    standard_errors : (p, p) of the distances, that is relative ones of the determinants.
    n_directions : directions of each variable, the number of states less one.
    n_samples : total weight of the samples.
    kurtosis : (p, p) kurtosis ratios: a pair's fourth moment over that of a Gaussian pair, at least
        1, over the share of samples that have both variables. Rare categories that occur together
        make a correlation that few samples carry: `n_samples / kurtosis` are the effective ones.
    strengths : (p, n_directions) singular values of the pooled moments, see `Subspaces`.
    n_rounds : rounds in which the directions converged.
    basis : (coordinates, n_directions) directions of each variable.
    """

    determinants: NDArray[Any]
    standard_errors: NDArray[Any]
    n_directions: int
    n_samples: float
    kurtosis: Float32 | None = None
    strengths: Floats | None = None
    n_rounds: int = 0
    basis: Float32 | None = None

    @cached_property
    def values(self) -> NDArray[Any]:
        """Distances `(p, p)`, zero on the diagonal."""
        values = -np.log(np.clip(np.abs(self.determinants), 1e-30, 1.0))
        return np.abs(values, out=values)  # no negative zeros

    @property
    def signs(self) -> NDArray[np.int8]:
        """Signs of the determinants, `(p, p)`."""
        return np.where(self.determinants < 0, -1, 1).astype(np.int8)

    @property
    def measurable(self) -> Bools:
        """Pairs `(p, p)` whose standard error is below `UNMEASURABLE_ERROR`."""
        return np.asarray(self.standard_errors < UNMEASURABLE_ERROR)


def _relative_signs(table: Table, one: Float32, other: Float32, n_jobs: int) -> NDArray[np.int8]:
    """Sign `(p,)` of `det Cov(z, z')` for every variable, z and z' its features by two bases."""
    part = table.thinned(BLOCK)
    mean = coordinate_moments(part, n_jobs)[0]
    z, w = (weighted_features(part, b, feature_means(part, b, mean), n_jobs) for b in (one, other))
    cross = np.einsum("nar,nas->ars", z, w, optimize=True)
    return np.where(np.linalg.det(cross.astype(np.float64)) < 0, -1, 1).astype(np.int8)


@single_threaded_blas()
def estimate_distances(
    table: Table,
    n_states: int,
    *,
    random_state: int | np.random.Generator | None = None,
    n_jobs: int | None = None,
    start: Float32 | None = None,
) -> Distances:
    """Distances by pooled subspaces; cross-fitted unless every variable is used whole.

    `start` `(coordinates, n_directions)`: directions of a larger sample that this one is part of,
    from which one power round is enough."""
    rng = np.random.default_rng(random_state)
    n_directions, jobs = n_states - 1, resolve_jobs(n_jobs)
    whole = full_subspaces(table, n_directions)
    if whole is not None:
        return _distances(all_pairs(table, whole.basis, jobs), table.total_weight, whole)
    small, used = without_unused(table, n_directions)
    if start is not None and used is not None:
        start = start[used]
    distances = _cross_fitted(small, n_directions, int(rng.integers(2**63)), jobs, start)
    if used is None:
        return distances
    basis = np.zeros((int(table.offsets[-1]), n_directions), dtype=np.float32)
    basis[used] = distances.basis
    return replace(distances, basis=basis)


def _cross_fitted(
    table: Table, n_directions: int, seed: int, jobs: int, start: Float32 | None
) -> Distances:
    """The subspace from one half, the moments from the other: neither fits the other's noise."""

    def subspaces(half: Table) -> Subspaces:
        if start is not None:
            return continued_subspaces(half, start, n_directions, jobs)
        return pooled_subspaces(half, n_directions, np.random.default_rng(seed), jobs)

    parts = halves(table)
    one, other = map(subspaces, parts)
    first = all_pairs(parts[1], one.basis, jobs)
    second = all_pairs(parts[0], other.basis, jobs)
    sign = _relative_signs(table, one.basis, other.basis, jobs)
    return _distances(_average(first, second, sign), table.total_weight, one)


def _average(
    first: PairDeterminants, second: PairDeterminants, sign: NDArray[np.int8]
) -> PairDeterminants:
    """Mean of two estimates of signed determinants; relative errors combined."""
    other = second.determinant * (sign[:, None] * sign[None, :]).astype(np.float32)
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.sqrt((first.determinant * first.error) ** 2 + (other * second.error) ** 2)
        det = (first.determinant + other) / np.float32(2)
        error = np.where(det != 0, error / (2 * np.abs(det)), np.inf).astype(np.float32)
    error[~np.isfinite(error)] = np.inf
    np.fill_diagonal(error, 0.0)
    return PairDeterminants(det, error, np.maximum(first.kurtosis, second.kurtosis))


def _distances(pairs: PairDeterminants, n_samples: float, subspaces: Subspaces) -> Distances:
    """`Distances` from moments of pairs in the directions of subspaces."""
    return Distances(
        pairs.determinant,
        pairs.error,
        subspaces.basis.shape[1],
        n_samples,
        pairs.kurtosis,
        subspaces.strengths,
        subspaces.n_rounds,
        subspaces.basis,
    )


def pairwise_distances(table: Table, n_states: int) -> Distances:
    """The paper's estimator: an SVD of every pair's scaled moment, truncated at the number of
    states. Slow, p^2 of them, and biased, because directions fit the noise."""
    if table.has_missing:
        raise DataError(
            Text(Option("distances", "pairwise"), " takes no missing values"),
            Text("use ", Option("distances", "pooled")),
            option="distances",
        )
    p, n_directions, n = table.n_vars, n_states - 1, table.total_weight
    det = np.eye(p)
    errors = np.zeros((p, p))
    columns = [_centred_block(table, a) for a in range(p)]
    for a in range(p):
        for b in range(a):
            s = np.linalg.svd(columns[a].T @ columns[b], compute_uv=False)[:n_directions]
            s = np.clip(s, 1e-15, 1.0)
            det[a, b] = det[b, a] = s.prod()
            errors[a, b] = errors[b, a] = np.sqrt(((1 - s**2) ** 2 / s**2).sum() / n)
    return Distances(det, errors, n_directions, n)


def _block(storage: Storage, variable: int, chunk: Chunk, n_jobs: int) -> Floats:
    """The coordinates of a variable, `(n, d)`."""
    return storage.block(chunk, variable)


def _centred_block(table: Table, a: int) -> Floats:
    """Orthonormal columns that span a variable's centred samples times the roots of their weights,
    `(n, free dimensions)`."""
    x = np.concatenate(table.run(Gathered(partial(_block, table.storage, a))))
    weights = np.ones(len(x)) if table.weights is None else table.weights
    x = np.sqrt(weights)[:, None] * (x - np.average(x, axis=0, weights=weights))
    u, s, _ = np.linalg.svd(x, full_matrices=False)
    return np.asarray(u[:, s > 1e-9 * max(s[0], 1e-300)])


def information_distances(
    X: Any,
    n_states: int = 2,
    *,
    method: Method = "pooled",
    family: Any = "auto",
    groups: Any = None,
    sample_weight: Any = None,
    random_state: int | np.random.Generator | None = None,
    n_jobs: int | None = None,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Information distances between all variables of a table, and their standard errors.

    Parameters
    ----------
    X : anything `LatentTree.fit` takes.
    n_states : states of the hidden variables.
    method : "pooled" (one subspace for each variable, cross-fitted) or "pairwise" (the paper's SVD
        of every pair; slow, and biased where a variable has many categories).
    family, groups, sample_weight : as in `LatentTree`.

    Returns
    -------
    distances, standard_errors : `(p, p)` arrays. Pairs with a standard error above 0.5 are not
        measurable: their distance is noise.
    """
    table = as_table(X, groups=groups, family=family, sample_weight=sample_weight)
    k = check_n_states(table, n_states)
    if isinstance(k, str):
        raise DataError(
            Text(Option("n_states", k), " is for LatentTree"),
            "give information_distances a number",
            value=n_states,
            option="n_states",
        )
    table = in_content_order(table)
    if method == "pairwise":
        distances = pairwise_distances(table, k)
    elif method == "pooled":
        distances = estimate_distances(table, k, random_state=random_state, n_jobs=n_jobs)
    else:
        raise DataError(
            Text(Option("method", method), " is unknown"),
            "choose 'pooled' or 'pairwise'",
            value=method,
            option="method",
        )
    return distances.values, distances.standard_errors
