"""Three views of a hidden variable in plain NumPy: moments by their definition, the eigenvectors of
one slice, the objective of the fit by loops, samples with the hidden state kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from latenttree.parameters.decomposition import Decomposition, decompose

Array = NDArray[np.float64]
PAIRS = ((0, 1), (0, 2), (1, 2))


class Moments(NamedTuple):
    third: Array
    first: list[Array]
    second: list[Array]


class Truth(NamedTuple):
    weights: Array
    factors: list[Array]


def moments_of(weights: Array, factors: Sequence[Array]) -> Moments:
    """Sums over the states, one by one."""
    a, b, c = factors
    third = np.zeros((len(a), len(b), len(c)))
    first = [np.zeros(len(f)) for f in factors]
    second = [np.zeros((len(factors[u]), len(factors[v]))) for u, v in PAIRS]
    for j, w in enumerate(weights):
        third += w * np.multiply.outer(np.outer(a[:, j], b[:, j]), c[:, j])
        for v in range(3):
            first[v] += w * factors[v][:, j]
        for i, (u, v) in enumerate(PAIRS):
            second[i] += w * np.outer(factors[u][:, j], factors[v][:, j])
    return Moments(third, first, second)


def decompose_views(
    third: Array, means: Sequence[Array], seconds: Sequence[Array], k: int
) -> Decomposition:
    """One hidden variable of k states from three views of dimensions `d_1, d_2, d_3 >= k`.

    third: (d_1, d_2, d_3); means: three (d_b,); seconds: (d_1, d_2), (d_1, d_3), (d_2, d_3).
    Each view is projected to k dimensions by the leading left singular vectors of its two pair
    moments, side by side, and brought to a common scale, so that the units of the views do not
    matter."""
    a, b, c = bases = _bases(seconds, k)
    result = decompose(
        np.einsum("ijl,ia,jb,lc->abc", third, a, b, c, optimize=True)[None],
        [(u.T @ x)[None] for u, x in zip(bases, means, strict=True)],
        [(bases[i].T @ x @ bases[j])[None] for (i, j), x in zip(PAIRS, seconds, strict=True)],
    )
    d, e, f = (np.linalg.pinv(u.T) @ x for u, x in zip(bases, result.factors, strict=True))
    return replace(result, factors=(d, e, f))


def _bases(second: Sequence[Array], k: int) -> list[Array]:
    """Three (d_b, k): directions in which a view covaries with the others, over the view's scale.

    The scale `s_1 = sqrt(|M_12| |M_13| / |M_23|)` is in the units of view 1."""
    size = [float(np.linalg.norm(x)) or 1.0 for x in second]
    sides = [x / n for x, n in zip(second, size, strict=True)]
    ab, ac, bc = size
    scales = np.sqrt([ab * ac / bc, ab * bc / ac, ac * bc / ab])
    joined = ((sides[0], sides[1]), (sides[0].T, sides[2]), (sides[1].T, sides[2].T))
    u = [np.linalg.svd(np.hstack(x), full_matrices=False)[0][:, :k] for x in joined]
    return [basis / scale for basis, scale in zip(u, scales, strict=True)]


def one_slice(moments: Moments, eta: Array) -> Truth:
    """Exact moments only: `T(eta) M_12^-1 = A_1 diag(A_3^T eta) A_1^-1`, for square factors."""
    values, vectors = np.linalg.eig(moments.third @ eta @ np.linalg.inv(moments.second[0]))
    assert np.abs(values.imag).max() < 1e-6
    a = vectors.real
    shares = np.linalg.solve(a, moments.first[0])  # w_j over the unknown length of column j
    rows = np.linalg.solve(a, moments.second[0]), np.linalg.solve(a, moments.second[1])
    b, c = ((x / shares[:, None]).T for x in rows)  # a_j w_j b_j^T: the length cancels
    weights = np.linalg.solve(b, moments.first[1])
    return Truth(weights, [a * (shares / weights), b, c])


def objective(
    moments: Moments,
    weights: Array,
    factors: Sequence[Array],
    orders: Sequence[float],
    prior: float,
) -> float:
    """`n log(weighted squared error) - 2 prior sum_j (log w_j - k w_j)`."""
    fitted = moments_of(weights, factors)
    loss = orders[0] * (1 - weights.sum()) ** 2
    for x, y in zip(moments.first, fitted.first, strict=True):
        loss += orders[1] * np.sum((x - y) ** 2)
    for x, y in zip(moments.second, fitted.second, strict=True):
        loss += orders[2] * np.sum((x - y) ** 2)
    loss += orders[3] * np.sum((moments.third - fitted.third) ** 2)
    q, k = factors[0].shape
    n = q**3 + 3 * q**2
    return float(n * np.log(loss) - 2 * prior * sum(np.log(w) - k * w for w in weights))


def random_truth(rng: np.random.Generator, k: int, dims: Sequence[int], spread: float) -> Truth:
    """Columns of random orthonormal matrices, mixed by a matrix of condition about `1 + spread`."""
    weights = rng.dirichlet(np.full(k, 5.0))
    weights = 0.7 * weights + 0.3 / k
    factors = []
    for d in dims:
        basis = np.linalg.qr(rng.normal(size=(d, k)))[0]
        turn, other = (np.linalg.qr(rng.normal(size=(k, k)))[0] for _ in range(2))
        stretch = 1 + spread * rng.random(k)
        factors.append(basis @ (turn * stretch) @ other)
    return Truth(weights, factors)


def random_tables(rng: np.random.Generator, k: int, strengths: Sequence[float]) -> list[Array]:
    """Three `P(x | h)`, (k, k); state j emits category j with at least the given probability."""
    noise = (rng.dirichlet(np.ones(k), size=k).T for _ in strengths)
    return [s * np.eye(k) + (1 - s) * table for s, table in zip(strengths, noise, strict=True)]


class Sample(NamedTuple):
    moments: Moments
    truth: Truth  # in the coordinates of the sample's features
    oracle: Truth  # counted with the hidden states known
    likely: Truth  # maximum likelihood, by EM from the truth


def sampled(rng: np.random.Generator, weights: Array, tables: Sequence[Array], n: int) -> Sample:
    """Moments of n samples of three categorical views as `y = (1, whitened centred one-hot)`."""
    k = len(weights)
    h = rng.choice(k, size=n, p=weights)
    views, truth, codes, maps = [], [], [], []
    for table in tables:
        x = (rng.random(n)[:, None] > np.cumsum(table, axis=0).T[h]).sum(axis=1).clip(0, k - 1)
        share = np.bincount(x, minlength=k) / n
        covariance = np.diag(share) - np.outer(share, share)
        root = np.linalg.cholesky(covariance[:-1, :-1] + 1e-12 * np.eye(k - 1))
        z = np.linalg.solve(root, (np.eye(k) - share[:, None])[:-1])
        features = np.vstack([np.ones(k), z])
        codes.append(x)
        maps.append(features)
        views.append(features[:, x])
        truth.append(features @ table)
    third = np.einsum("an,bn,cn->abc", *views, optimize=True) / n
    first = [v.mean(axis=1) for v in views]
    second = [views[a] @ views[b].T / n for a, b in PAIRS]
    counted = [np.stack([v[:, h == j].mean(axis=1) for j in range(k)], axis=1) for v in views]
    oracle = Truth(np.bincount(h, minlength=k) / n, counted)
    counts = np.zeros((k, k, k))
    np.add.at(counts, tuple(codes), 1.0)
    likely = expectation_maximisation(counts, weights, tables, 100)
    likely = Truth(likely.weights, [f @ t for f, t in zip(maps, likely.factors, strict=True)])
    return Sample(Moments(third, first, second), Truth(weights, truth), oracle, likely)


def expectation_maximisation(
    counts: Array, weights: Array, tables: Sequence[Array], steps: int
) -> Truth:
    """EM on the table of counts of three categorical views."""
    for _ in range(steps):
        joint = np.einsum("j,aj,bj,cj->abcj", weights, *tables, optimize=True)
        total = joint.sum(axis=3, keepdims=True)
        share = counts[..., None] * np.divide(
            joint, total, out=np.zeros_like(joint), where=total > 0
        )
        weights = share.sum(axis=(0, 1, 2)) / counts.sum()
        sums = [share.sum(axis=axes) for axes in ((1, 2), (0, 2), (0, 1))]
        tables = [x / x.sum(axis=0) for x in sums]
    return Truth(weights, list(tables))


def error(weights: Array, factors: Sequence[Array], truth: Truth) -> float:
    """Root of `sum_j (w_j sum_b |A_b[:, j] - truth|^2 + (w_j - truth)^2 / w_j)`, best order."""
    cost = (weights[:, None] - truth.weights) ** 2 / truth.weights
    for found, true in zip(factors, truth.factors, strict=True):
        cost = cost + truth.weights * ((found[:, :, None] - true[:, None, :]) ** 2).sum(axis=0)
    return float(np.sqrt(cost[linear_sum_assignment(cost)].sum()))
