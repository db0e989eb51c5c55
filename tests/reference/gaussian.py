"""Gaussian trees by writing the whole joint covariance down, and random models."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import multivariate_normal
from tests.reference.random_trees import random_tree

from latenttree.model.gaussian import GaussianTreeModel
from latenttree.model.gaussian.gauge import canonical_gauge
from latenttree.model.tree_model import default_root
from latenttree.tree import Tree

Floats = NDArray[np.float64]


def joint_covariance(model: GaussianTreeModel) -> tuple[Floats, Floats]:
    """Mean and covariance of all nodes: `x = B x + e` gives `(I - B)^-1 Psi (I - B)^-T`."""
    at = np.concatenate([[0], np.cumsum(model.dims)])
    total = int(at[-1])
    arrows, noise = np.zeros((total, total)), np.zeros((total, total))
    for v, u in enumerate(model.parents.tolist()):
        here = slice(at[v], at[v + 1])
        noise[here, here] = model.noise[v] if model.noise[v].ndim == 2 else np.diag(model.noise[v])
        if u >= 0:
            arrows[here, at[u] : at[u + 1]] = model.loadings[v]
    solved = np.linalg.inv(np.eye(total) - arrows)
    return np.concatenate(model.means), solved @ noise @ solved.T


def canonical(model: GaussianTreeModel) -> GaussianTreeModel:
    """The same distribution in the canonical gauge on the canonical tree, from its root."""
    tree, number = model.tree.renumbered()
    root = default_root(tree)
    turned = canonical_gauge(model.rerooted(int(np.flatnonzero(number == root)[0])))
    source = np.argsort(number)
    arrays = (turned.means, turned.loadings, turned.noise)
    return GaussianTreeModel(tree, root, *(tuple(a[v] for v in source) for a in arrays))


def log_density(model: GaussianTreeModel, X: Floats) -> Floats:
    """`log p(known part)` of every sample by SciPy."""
    mean, covariance = joint_covariance(model)
    unit = np.sqrt(np.diag(covariance))  # SciPy takes what is small for singular
    correlation = covariance / np.outer(unit, unit)
    found = np.zeros(len(X))
    for i, x in enumerate(X):
        o = np.flatnonzero(~np.isnan(x))
        if len(o):
            density = multivariate_normal(cov=correlation[np.ix_(o, o)])
            found[i] = density.logpdf((x[o] - mean[o]) / unit[o]) - np.log(unit[o]).sum()
    return found


def conditional_moments(model: GaussianTreeModel, x: Floats) -> tuple[Floats, Floats]:
    """`E` and `Cov` of all coordinates of all nodes given the known part of one sample."""
    mean, covariance = joint_covariance(model)
    o = np.flatnonzero(~np.isnan(x))
    gain = np.linalg.solve(covariance[np.ix_(o, o)], covariance[o]).T
    return mean + gain @ (x[o] - mean[o]), covariance - gain @ covariance[o]


def random_gaussian(
    rng: np.random.Generator,
    tree: Tree,
    dims: NDArray[np.int64],
    *,
    root: int | None = None,
    diagonal: bool = False,
    strength: tuple[float, float] = (0.4, 0.9),
) -> GaussianTreeModel:
    """Random loadings on a tree: singular values of standardised loadings within `strength`,
    observed variables of any mean and scale."""
    root = default_root(tree) if root is None else root
    means, loadings, noise = [], [], []
    parents = tree.rooted(root).parents
    scale = [
        10.0 ** rng.uniform(-2, 2, d) if v < tree.n_observed else np.ones(d)
        for v, d in enumerate(dims.tolist())
    ]
    for v, (d, u) in enumerate(zip(dims.tolist(), parents.tolist(), strict=True)):
        is_observed = v < tree.n_observed
        means.append(rng.standard_normal(d) * 3 * scale[v] if is_observed else np.zeros(d))
        loading = np.empty((d, 0))
        if u >= 0:
            raw = rng.standard_normal((d, dims[u]))
            left, _, right = np.linalg.svd(raw, full_matrices=False)
            loading = left * rng.uniform(*strength, len(right)) @ right
        spread = np.eye(d) - loading @ loading.T
        if is_observed and d > 1:
            mixed = rng.standard_normal((d, d)) / np.sqrt(d)
            spread = np.diag(rng.uniform(0.2, 1, d)) if diagonal else mixed @ mixed.T + spread
        loadings.append(loading * scale[v][:, None] / (scale[u] if u >= 0 else 1.0))
        spread = spread * np.outer(scale[v], scale[v])
        noise.append(np.diag(spread) if diagonal and is_observed and d > 1 else spread)
    return GaussianTreeModel(tree, root, tuple(means), tuple(loadings), tuple(noise))


def random_case(
    rng: np.random.Generator,
    *,
    k: int | None = None,
    p: int | None = None,
    width: int = 3,
    inside: float | None = None,
    **options: object,
) -> GaussianTreeModel:
    """A small model of any shape: scalars and vectors, observed nodes inside, any root."""
    p = int(rng.integers(1, 9)) if p is None else p
    tree = random_tree(
        rng,
        p,
        shape=str(rng.choice(["uniform", "caterpillar", "star", "balanced"])),
        max_degree=int(rng.integers(3, 6)),
        internal_observed_fraction=float(rng.choice([0, 0.4])) if inside is None else inside,
    )
    k = int(rng.integers(1, 4)) if k is None else k
    dims = np.where(np.arange(tree.n_nodes) < p, rng.integers(1, width + 1, tree.n_nodes), k)
    return random_gaussian(rng, tree, dims, **options)  # type: ignore[arg-type]


def with_gaps(rng: np.random.Generator, X: Floats, share: float) -> Floats:
    return np.where(rng.random(X.shape) < share, np.nan, X)


def slow_step(model: GaussianTreeModel, X: Floats) -> GaussianTreeModel:
    """One EM step, sample by sample: every node regressed on its parent by products expected under
    the whole joint distribution. A leaf of which nothing is known is left out of its own sum."""
    at = np.concatenate([[0], np.cumsum(model.dims)])
    parents = model.parents.tolist()
    sums = [
        np.zeros((1 + d + max(e, 0),) * 2) for d, e in zip(model.dims, _above(model), strict=True)
    ]
    for x in X:
        m, c = conditional_moments(model, x)
        for v, u in enumerate(parents):
            here = np.arange(at[v], at[v + 1])
            is_leaf = v < model.tree.n_observed and v not in parents and u >= 0
            if is_leaf and np.isnan(x[here]).all():
                continue
            both = np.concatenate([here, np.arange(at[u], at[u + 1])]) if u >= 0 else here
            z = np.concatenate([[1.0], m[both]])
            sums[v] += np.outer(z, z)
            sums[v][1:, 1:] += c[np.ix_(both, both)]
    means = [np.empty(0)] * len(parents)
    fitted = [_regressed(s, int(d)) for s, d in zip(sums, model.dims, strict=True)]
    for v in model.order.tolist():
        offset, loading, _ = fitted[v]
        means[v] = offset if parents[v] < 0 else offset + loading @ means[parents[v]]
    loadings = [loading for _, loading, _ in fitted]
    noise = [left for _, _, left in fitted]
    return GaussianTreeModel(model.tree, model.root, tuple(means), tuple(loadings), tuple(noise))


def _above(model: GaussianTreeModel) -> list[int]:
    return [int(model.dims[u]) if u >= 0 else 0 for u in model.parents.tolist()]


def _regressed(sums: Floats, d: int) -> tuple[Floats, Floats, Floats]:
    """Offset, loading and noise of the first d entries after the constant, given the others."""
    n = sums[0, 0]
    average = sums / n
    mean, second = average[0, 1:], average[1:, 1:]
    spread = second - np.outer(mean, mean)
    loading = np.linalg.solve(spread[d:, d:], spread[d:, :d]).T
    noise = spread[:d, :d] - loading @ spread[d:, :d]
    return mean[:d] - loading @ mean[d:], loading, (noise + noise.T) / 2
