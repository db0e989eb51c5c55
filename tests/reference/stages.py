"""Stages of a fit, one after another, for a table or a tree that is given."""

from __future__ import annotations

from typing import Any

import numpy as np

from latenttree.config import FitConfig
from latenttree.data import Table
from latenttree.distances.stage import count_states, measure
from latenttree.estimator import learn_model
from latenttree.parameters.gaussian import gaussian_start
from latenttree.parameters.moment_start import moment_start
from latenttree.refinement.fitted import Fitted
from latenttree.refinement.gaussian.fitting import refine_gaussian
from latenttree.refinement.stage import refine_fully
from latenttree.search.stage import Learned
from latenttree.structure.stage import learn_structures
from latenttree.tree import Tree


def fit_tree(tree: Tree, table: Table, n_states: int, **options: Any) -> Fitted:
    """The model of a given tree: moments, then EM; `options` as those of `FitConfig`."""
    config = FitConfig(**options)
    return refine_fully(moment_start(tree, table, n_states, None, config), table, config)


def fit_gaussian(
    tree: Tree,
    X: Any,
    offsets: Any,
    n_dims: int,
    weights: Any = None,
    *,
    n_jobs: int = 1,
    **options: Any,
) -> Fitted:
    """The Gaussian model of a given tree: closed form, then EM; `options` as those of
    `FitConfig`."""
    w = None if weights is None else np.asarray(weights, dtype=np.float64)
    start = gaussian_start(tree, X, np.asarray(offsets), n_dims, w, n_jobs)
    return refine_gaussian(start, FitConfig(n_jobs=n_jobs, **options))


def fit_table(table: Table, **options: Any) -> Learned:
    """The tree and the model of a table as it is; `options` as those of `FitConfig`."""
    config = FitConfig(**options)
    states = count_states(table, config)
    measured = measure(table, states, config)
    structures = learn_structures(measured, table, config)
    return learn_model(structures, [], table, states, measured, config)
