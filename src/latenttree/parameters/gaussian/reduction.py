"""Wide leaves projected to the few directions that covary with other variables.

All covariances of a leaf `x` with other variables share the column space of its loadings, which has
`n_dims` dimensions. It is estimated first from a random sketch of all variables, then from the
projections of the variables nearest in the tree. The closed form uses `n_dims` numbers for each
wide leaf, and the loadings of its coordinates follow by regression. A missing coordinate counts as
zero in a projection, which stays linear in the hidden nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from latenttree.engine import BLOCK, parallel, single_threaded_blas
from latenttree.engine.arrays import Floats, Ints
from latenttree.model.gaussian.distribution import MAX_FULL
from latenttree.parameters.gaussian.closed_form import Wide, nearest
from latenttree.parameters.gaussian.moments import PairMoments, pair_moments
from latenttree.tree import Tree

SKETCH_WIDTH = 32
N_ROUNDS = 2
NEAR = 4
"""Variables of each branch from which the directions are estimated."""


def wide_leaves(tree: Tree, offsets: Ints) -> list[int]:
    """Leaves with more than `MAX_FULL` coordinates whose neighbour is hidden."""
    p, degree, widths = tree.n_observed, tree.degree(), np.diff(offsets)
    leaves = [v for v in range(p) if widths[v] > MAX_FULL and degree[v] == 1]
    return [v for v in leaves if tree.neighbors(v)[0] >= p]


def reduced_moments(
    tree: Tree,
    X: Floats,
    offsets: Ints,
    n_dims: int,
    weights: Floats | None,
    units: tuple[Floats, Floats],
    n_jobs: int = 1,
) -> tuple[PairMoments, Ints, Wide | None]:
    """Moments with wide leaves projected to `n_dims` directions each.

    Returns the moments of the reduced variables, their offsets, and the correlations of all
    coordinates of wide leaves with the reduced variables; None where no leaf is wide. Cost
    `O(n D (SKETCH_WIDTH + p n_dims))`."""
    leaves = wide_leaves(tree, offsets)
    if not leaves:
        return pair_moments(X, weights, units, n_jobs), offsets, None
    root = np.ones(len(X)) if weights is None else np.sqrt(weights)
    with single_threaded_blas():
        bases = _bases(tree, X, offsets, n_dims, leaves, root, units, n_jobs)
        blocks = [
            _filled(X, offsets, v, units) @ bases[v] if v in bases else X[:, _columns(offsets, v)]
            for v in range(tree.n_observed)
        ]
        reduced = np.hstack(blocks)
        at = np.concatenate([[0], np.cumsum([b.shape[1] for b in blocks])]).astype(np.int64)
        moments = pair_moments(reduced, weights, n_jobs=n_jobs)
        standard = (reduced - moments.mean) / moments.deviation
        is_known = ~np.isnan(standard)
        standard = np.nan_to_num(standard, copy=False) * root[:, None]
        cross = {}
        for v in leaves:
            own = X[:, _columns(offsets, v)]
            known = ~np.isnan(own) * root[:, None]
            total = _product(_filled(X, offsets, v, units) * root[:, None], standard, n_jobs)
            count = _product(known, is_known * root[:, None], n_jobs)
            cross[v] = np.divide(total, count, out=np.zeros_like(total), where=count > 0)
    return moments, at, Wide(*units, cross)


def _columns(offsets: Ints, v: int) -> slice:
    return slice(int(offsets[v]), int(offsets[v + 1]))


def _filled(X: Floats, offsets: Ints, v: int, units: tuple[Floats, Floats]) -> Floats:
    """The standardised coordinates of a variable, 0 where missing."""
    here = _columns(offsets, v)
    return np.nan_to_num((X[:, here] - units[0][here]) / units[1][here])


def _product(a: Floats, b: Floats, n_jobs: int) -> Floats:
    """`a^T b`, summed over fixed blocks of samples."""

    def part(start: int, stop: int) -> Any:
        return a[start:stop].T @ b[start:stop]

    return np.asarray(sum(parallel(part, len(a), n_jobs, BLOCK)))


def _bases(
    tree: Tree,
    X: Floats,
    offsets: Ints,
    n_dims: int,
    leaves: list[int],
    root: Floats,
    units: tuple[Floats, Floats],
    n_jobs: int,
) -> Mapping[int, Floats]:
    """Orthonormal directions `(d, n_dims)` of every wide leaf."""
    rng = np.random.default_rng(0)
    p = tree.n_observed
    signs = [rng.choice([-1.0, 1.0], (int(d), SKETCH_WIDTH + n_dims)) for d in np.diff(offsets)]

    def standard(v: int) -> Floats:
        return _filled(X, offsets, v, units) * root[:, None]

    sketches = {v: standard(v) @ signs[v] for v in leaves}
    others = (standard(v) @ signs[v] for v in range(p) if v not in sketches)
    total = sum(sketches.values()) + sum(others)
    bases = {v: _top(_product(standard(v), total - sketches[v], n_jobs), n_dims) for v in leaves}
    for _ in range(N_ROUNDS):
        views = {v: standard(v) @ bases[v] for v in leaves}
        bases = {
            v: _top(_product(standard(v), _nearby(tree, v, views, standard), n_jobs), n_dims)
            for v in leaves
        }
    return bases


def _nearby(tree: Tree, v: int, views: Mapping[int, Floats], standard: Any) -> Floats:
    """Projections, or all coordinates, of the variables nearest to a leaf, in each other branch."""
    hidden = int(tree.neighbors(v)[0])
    branches = [u for u in tree.neighbors(hidden).tolist() if u != v]
    near = [u for b in branches for u in nearest(tree, hidden, b, NEAR)]
    return np.hstack([views[u] if u in views else standard(u) for u in near])


def _top(moment: Floats, n_dims: int) -> Floats:
    """The first `n_dims` left singular vectors."""
    return np.asarray(np.linalg.svd(moment, full_matrices=False)[0][:, :n_dims])
