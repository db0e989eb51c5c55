"""Moments, distances and errors from dense one-hot matrices, a pair at a time, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.data import Table

Floats = NDArray[np.float64]


def dense(table: Table) -> list[Floats]:
    """Every variable as the matrix `(n, width)` of its coordinates, one-hot where it has codes;
    zeros where it is missing."""
    rows: Any = table.rows(0, table.n_samples)
    if table.kind == "codes":
        with_gap = [np.vstack([np.eye(int(d)), np.zeros(int(d))]) for d in table.dims]
        return [one_hot[rows[:, a]] for a, one_hot in enumerate(with_gap)]  # -1 is the last row
    whole = rows.toarray().astype(np.float64)
    return [whole[:, low:high] for low, high in ranges(table)]


def ranges(table: Table) -> list[tuple[int, int]]:
    return list(zip(table.offsets[:-1].tolist(), table.offsets[1:].tolist(), strict=True))


def centred(x: Floats) -> Floats:
    return x - x.mean(axis=0)


def covariance(x: Floats, y: Floats) -> Floats:
    return centred(x).T @ centred(y) / len(x)


def project(table: Table, basis: NDArray[Any]) -> Floats:
    """`z[n, a, q] = sum_c x_a[n, c] basis_a[c, q]`."""
    parts = [
        np.einsum("nc,cq->nq", x, basis[low:high].astype(np.float64))
        for x, (low, high) in zip(dense(table), ranges(table), strict=True)
    ]
    return np.stack(parts, axis=1)


def cross_moments(table: Table, basis: NDArray[Any], near: NDArray[np.int64]) -> Floats:
    """`Cov(x_a, z_b)` for b in `near[a]`, side by side; variables one under the other."""
    z = project(table, basis)
    rows = [
        np.hstack([covariance(x, z[:, b]) for b in near[a]]) for a, x in enumerate(dense(table))
    ]
    return np.vstack(rows)


def rest_moments(table: Table, basis: NDArray[Any]) -> Floats:
    """`Cov(x_a, sum of z_b over all b but a)`."""
    z = project(table, basis)
    rows = []
    for a, x in enumerate(dense(table)):
        others = [b for b in range(table.n_vars) if b != a]
        rows.append(covariance(x, z[:, others].sum(axis=1)))
    return np.vstack(rows)


def whitened(z: Floats) -> Floats:
    """Centred features with identity covariance: by eigenvectors, not by Cholesky."""
    values, vectors = np.linalg.eigh(covariance(z, z))
    return centred(z) @ vectors / np.sqrt(values)


def determinant_distances(features: list[Floats]) -> tuple[Floats, NDArray[np.int8]]:
    """`-log |det M_ab| + (log det M_aa + log det M_bb) / 2` and the sign of `det M_ab`."""
    p = len(features)
    values, signs = np.zeros((p, p)), np.ones((p, p), dtype=np.int8)
    half = [np.linalg.slogdet(covariance(z, z)).logabsdet / 2 for z in features]
    for a in range(p):
        for b in range(p):
            if a != b:
                sign, log = np.linalg.slogdet(covariance(features[a], features[b]))
                values[a, b] = half[a] + half[b] - log
                signs[a, b] = sign
    return values, signs


def canonical_correlations(x: Floats, y: Floats) -> Floats:
    """Singular values of the cross-moment of two whitened variables."""
    return np.linalg.svd(covariance(whitened(x), whitened(y)), compute_uv=False)


def gaussian_error(x: Floats, y: Floats) -> float:
    """`sqrt(sum (1 - s^2)^2 / s^2 / n)`: the error of the distance if features were Gaussian."""
    s = canonical_correlations(x, y)
    return float(np.sqrt(((1 - s**2) ** 2 / s**2).sum() / len(x)))


def influence_error(x: Floats, y: Floats) -> float:
    """Standard error of the distance by its influence function, right for any distribution.

    The derivative of the distance in the direction of one sample is
    `-v^T C^-1 u + |u|^2 / 2 + |v|^2 / 2`, u and v whitened, C their cross-moment.
    """
    u, v = whitened(x), whitened(y)
    inverse = np.linalg.inv(covariance(u, v))
    influence = (u**2).sum(1) / 2 + (v**2).sum(1) / 2 - np.einsum("ni,ij,nj->n", v, inverse, u)
    return float(influence.std() / np.sqrt(len(x)))


def all_pairs(features: list[Floats], error: Any) -> Floats:
    """A symmetric matrix of `error(x, y)`, zero on the diagonal."""
    p = len(features)
    out = np.zeros((p, p))
    for a in range(p):
        for b in range(a):
            out[a, b] = out[b, a] = error(features[a], features[b])
    return out


def without_last(table: Table) -> list[Floats]:
    """One-hot variables without their last category: the same space, of full rank once centred."""
    return [x[:, :-1] if x.shape[1] > 1 else x for x in dense(table)]


def damping_length(x: Floats, damping: float) -> float:
    """What `damping`, added to every coordinate's variance, adds to a pendant edge."""
    own = covariance(x, x)
    damped = own + damping * np.eye(len(own))
    return float(np.linalg.slogdet(damped).logabsdet - np.linalg.slogdet(own).logabsdet) / 2


def pendant_parts(change: NDArray[Any]) -> tuple[Floats, Floats]:
    """Least squares `change[a, b] = u_a + u_b`, a != b: u, and what is left over, `(p, p)`."""
    p = len(change)
    rows, columns = np.triu_indices(p, 1)
    design = np.zeros((len(rows), p))
    design[np.arange(len(rows)), rows] = 1
    design[np.arange(len(rows)), columns] = 1
    u = np.linalg.lstsq(design, change[rows, columns], rcond=None)[0]
    left = change - np.add.outer(u, u)
    np.fill_diagonal(left, 0.0)
    return u, left


def internal_length(d: NDArray[Any], a: int, b: int, c: int, e: int) -> float:
    """Four-point length of the path between {a, b} and {c, e}; pendant lengths cancel."""
    return float(d[a, c] + d[b, e] + d[a, e] + d[b, c] - 2 * d[a, b] - 2 * d[c, e]) / 4


# ---- gaps and weights ----------------------------------------------------------------------


def weights_of(table: Table) -> Floats:
    return np.ones(table.n_samples) if table.weights is None else table.weights


def known_of(table: Table) -> NDArray[np.bool_]:
    """(n, p) which samples have which variables."""
    known = table.storage.known(table.chunk(0, table.n_samples))
    return np.ones((table.n_samples, table.n_vars), dtype=bool) if known is None else known


def coordinate_moments(table: Table) -> tuple[Floats, Floats]:
    """Weighted mean and variance of all coordinates, each over the samples that have it."""
    means, variances = [], []
    for x, known in zip(dense(table), known_of(table).T, strict=True):
        w = weights_of(table)[known]
        mean = np.average(x[known], axis=0, weights=w)
        means.append(mean)
        variances.append(np.average((x[known] - mean) ** 2, axis=0, weights=w))
    return np.concatenate(means), np.concatenate(variances)


def available_covariance(x: Floats, y: Floats, weights: Floats, both: Any) -> Floats:
    """Weighted covariance over the samples that have both, centred there."""
    x, y, w = x[both], y[both], weights[both] / weights[both].sum()
    return np.einsum("n,ni,nj->ij", w, x - w @ x, y - w @ y)


def available_second(table: Table, basis: NDArray[Any]) -> tuple[Floats, Floats, Floats]:
    """Covariances `(p, r, p, r)` of the features of all pairs, the weight of the samples that have
    both, `(p, p)`, and the means of the features of one over them, `(p, r, p)`."""
    z, known, w = project(table, basis), known_of(table), weights_of(table)
    p, r = table.n_vars, basis.shape[1]
    second, weight, beside = np.zeros((p, r, p, r)), np.zeros((p, p)), np.zeros((p, r, p))
    for a in range(p):
        for b in range(p):
            both = known[:, a] & known[:, b]
            second[a, :, b] = available_covariance(z[:, a], z[:, b], w, both)
            weight[a, b] = w[both].sum()
            beside[a, :, b] = np.average(z[both, a], axis=0, weights=w[both])
    return second, weight, beside


def available_correlations(x: Floats, y: Floats, weights: Floats, both: Any) -> Floats:
    """Canonical correlations over the samples that have both."""
    own = [available_covariance(z, z, weights, both) for z in (x, y)]
    one, other = (np.linalg.inv(np.linalg.cholesky(c)) for c in own)
    cross = available_covariance(x, y, weights, both)
    return np.linalg.svd(one @ cross @ other.T, compute_uv=False)


def available_cross_moments(table: Table, basis: NDArray[Any], near: NDArray[np.int64]) -> Floats:
    """`sum w (x_a - mean) (z_b - mean)` over samples that have both, means over those that have
    each, divided by the weight that would have both if gaps were independent."""
    z, known, w, mean = (f(table) for f in (_by(basis), known_of, weights_of, coordinate_moments))
    share = w @ known / w.sum()
    rows = []
    for a, (x, (low, high)) in enumerate(zip(dense(table), ranges(table), strict=True)):
        beside = []
        for b in near[a]:
            both = known[:, a] & known[:, b]
            away = z[:, b] - np.average(z[known[:, b], b], axis=0, weights=w[known[:, b]])
            own = x - mean[0][low:high]
            total = np.einsum("n,nc,nq->cq", w * both, own, away)
            beside.append(total / (w.sum() * share[a] * share[b]))
        rows.append(np.hstack(beside))
    return np.vstack(rows)


def available_rest_moments(table: Table, basis: NDArray[Any]) -> Floats:
    """`E[(x_a - mean) sum_b (z_b - mean)]` over the samples that have a, the sum over the other
    variables that a sample has."""
    z, known, w, mean = (f(table) for f in (_by(basis), known_of, weights_of, coordinate_moments))
    away = np.zeros_like(z)
    for b in range(table.n_vars):
        has = known[:, b]
        away[has, b] = z[has, b] - np.average(z[has, b], axis=0, weights=w[has])
    rows = []
    for a, (x, (low, high)) in enumerate(zip(dense(table), ranges(table), strict=True)):
        rest = np.delete(away, a, axis=1).sum(axis=1)
        own = x - mean[0][low:high]
        total = np.einsum("n,nc,nq->cq", w * known[:, a], own, rest)
        rows.append(total / (w * known[:, a]).sum())
    return np.vstack(rows)


def _by(basis: NDArray[Any]) -> Any:
    return lambda table: project(table, basis)


def repeated(table: Table) -> Table:
    """The same table with every row as often as its weight says."""
    times = weights_of(table).astype(np.int64)
    return table.replace(weights=None).subset_rows(np.repeat(np.arange(table.n_samples), times))
