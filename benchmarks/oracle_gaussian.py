"""Gaussian trees: error of the loadings, the oracle's, and the largest likelihood near the truth.

Error of a leaf: `||L - L_hat Q||_F` with the loadings on its hidden neighbour (of covariance I) in
units of the leaf's deviation, and one orthogonal `Q` for all the leaves of a hidden node, because
nothing observed says how it is turned. The oracle regresses on the hidden values themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.engine import resolve_jobs
from latenttree.evaluation.datasets import LatentTreeData
from latenttree.model.gaussian import GaussianTreeModel
from latenttree.model.gaussian.layout import GaussianLayout
from latenttree.model.gaussian.model import model_in_units
from latenttree.model.gaussian.units import linear_of
from latenttree.parameters.gaussian.moments import standardisation
from latenttree.refinement.em import Limits, em_loop, visit
from latenttree.refinement.gaussian.condensed_rows import training_blocks
from latenttree.refinement.gaussian.problem import GaussianProblem

Floats = NDArray[np.float64]


def loading_error(data: LatentTreeData, found: GaussianTreeModel) -> float:
    """Mean over the leaves; `found` may be any tree over the same names."""
    place = [found.tree.index(name) for name in data.tree.observed_names]
    return _error(data, [found.loadings[v] for v in place])


def oracle_error(data: LatentTreeData) -> float:
    """The error of regressions on the hidden values; as they are, so nothing is to be turned."""
    loadings = []
    for v in range(data.tree.n_observed):
        hidden = data.hidden[:, int(data.model.parents[v]) - data.tree.n_observed]
        design = np.column_stack([np.ones(len(hidden)), hidden])
        values = np.asarray(data.values(v)).reshape(len(hidden), -1)
        loadings.append(np.linalg.lstsq(design, values, rcond=None)[0][1:].T)
    return _error(data, loadings, turn=False)


def _error(data: LatentTreeData, loadings: list[Floats], turn: bool = True) -> float:
    truth, p = data.model, data.tree.n_observed
    unit = [np.sqrt(truth.variances(v))[:, None] for v in range(p)]
    errors = []
    for h in np.unique(truth.parents[:p]).tolist():
        leaves = np.flatnonzero(truth.parents[:p] == h).tolist()
        true = [truth.loadings[v] / unit[v] for v in leaves]
        near = [loadings[v] / unit[v] for v in leaves]
        axes = _turn(np.concatenate(near), np.concatenate(true)) if turn else np.eye(len(true[0].T))
        errors += [float(np.linalg.norm(a @ axes - b)) for a, b in zip(near, true, strict=True)]
    return float(np.mean(errors))


def _turn(near: Floats, true: Floats) -> Floats:
    """The orthogonal matrix that brings `near` closest to `true`."""
    left, _, right = np.linalg.svd(near.T @ true)
    return np.asarray(left @ right)


def maximum_near_truth(data: LatentTreeData, max_steps: int = 200) -> GaussianTreeModel:
    """EM on the true tree, started at the truth."""
    truth, jobs = data.model, resolve_jobs(None)
    X = _columns(data)
    layout = GaussianLayout.for_tree(data.tree, truth.offsets, int(truth.dims[-1]))
    units = standardisation(X, None)
    blocks = training_blocks(X, layout, *units, None, 1.0, jobs)
    problem = GaussianProblem(layout, blocks, jobs)
    start = visit(problem, problem.opened(linear_of(truth, layout, *units)))
    found = em_loop(problem, start, Limits(max_steps, 1e-4 * truth.n_parameters))
    return model_in_units(found.theta, layout, *units)


def _columns(data: LatentTreeData) -> Floats:
    parts: list[Any] = [data.values(v) for v in range(data.tree.n_observed)]
    return np.column_stack(parts)
