"""Gaussian trees of given lengths: hidden vectors of unit covariance, observed ones of any."""

from __future__ import annotations

import numpy as np

from latenttree.engine.arrays import Floats
from latenttree.model.gaussian.model import GaussianTreeModel
from latenttree.tree import Tree


def make_model(tree: Tree, k: int, d: int, rng: np.random.Generator) -> GaussianTreeModel:
    """A model of `k` hidden and `d` observed dimensions, its edges as long as those of the tree.

    Hidden: `child = A parent + noise` with `A = Q diag(s) R'`, orthogonal Q and R, and noise of
    covariance `I - A A'`. Observed: `x = mean + L parent + noise` with `L' Psi^-1 L` of eigenvalues
    `s^2 / (1 - s^2)`. Both have canonical correlations `s` with `-sum log s` the length."""
    root = tree.n_observed
    means: list[Floats] = [np.zeros(k)] * tree.n_nodes
    loadings: list[Floats] = [np.zeros((k, 0))] * tree.n_nodes
    noise: list[Floats] = [np.eye(k)] * tree.n_nodes
    for v, e in enumerate(tree.parent_edges(root).tolist()):
        if e < 0:  # the root
            continue
        length = float(tree.lengths[e])
        parts = _observed(k, d, length, rng) if v < root else _hidden(k, length, rng)
        means[v], loadings[v], noise[v] = parts
    return GaussianTreeModel(tree, root, tuple(means), tuple(loadings), tuple(noise))


def _correlations(k: int, length: float, rng: np.random.Generator) -> Floats:
    """k numbers with `-sum log s = length`, not quite equal."""
    shares = rng.uniform(0.7, 1.3, k)
    return np.exp(-length * shares / shares.sum())


def _turn(d: int, k: int, rng: np.random.Generator) -> Floats:
    """k orthonormal columns of d coordinates at random."""
    q, r = np.linalg.qr(rng.standard_normal((d, k)))
    return np.asarray(q * np.sign(np.diag(r)))


def _hidden(k: int, length: float, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    s, left = _correlations(k, length, rng), _turn(k, k, rng)
    loading = (left * s) @ _turn(k, k, rng).T
    noise = (left * (1 - s**2)) @ left.T
    return np.zeros(k), loading, (noise + noise.T) / 2


def _observed(
    k: int, d: int, length: float, rng: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    s, psi = _correlations(k, length, rng), rng.uniform(0.5, 2.0, d)
    gain = np.sqrt(s**2 / (1 - s**2))
    loading = np.sqrt(psi)[:, None] * (_turn(d, k, rng) * gain) @ _turn(k, k, rng).T
    return rng.normal(0.0, 2.0, d), loading, psi


def draw(model: GaussianTreeModel, n: int, rng: np.random.Generator) -> list[Floats]:
    """`(n, d_v)` samples of every node, parents before children."""
    drawn: list[Floats] = [np.empty(0)] * model.tree.n_nodes
    for v in model.order.tolist():
        u, noise = int(model.parents[v]), model.noise[v]
        factor = np.diag(np.sqrt(noise)) if noise.ndim == 1 else np.linalg.cholesky(noise)
        drawn[v] = model.means[v] + rng.standard_normal((n, len(factor))) @ factor.T
        if u >= 0:
            drawn[v] += (drawn[u] - model.means[u]) @ model.loadings[v].T
    return drawn
