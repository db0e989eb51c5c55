"""The stage `estimate_parameters`: tree + samples -> a model to refine, by moments."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from latenttree.config import FitConfig
from latenttree.data import Table
from latenttree.data.chunk import Chunk
from latenttree.distances.stage import Measured, States
from latenttree.engine import Gathered
from latenttree.parameters.gaussian import GaussianStart, gaussian_start
from latenttree.parameters.moment_start import moment_start
from latenttree.parameters.solving import Parameters
from latenttree.structure.learn import Structure
from latenttree.tree import Tree

Start = Parameters | GaussianStart
"""A model by moments, with hidden variables of either kind."""


def estimate_parameters(
    structure: Structure, table: Table, states: States, measured: Measured, config: FitConfig
) -> Start:
    """Every conditional distribution of the tree, by moments of the samples."""
    with config.progress.stage("parameters"):
        if config.gaussian:
            return _gaussian_start(structure.tree, table, states.n_states, config.n_jobs)
        return moment_start(structure.tree, table, states.n_states, measured.basis, config)


def _gaussian_start(tree: Tree, table: Table, n_dims: int, n_jobs: int) -> GaussianStart:
    parts = table.run(Gathered(partial(_numbers, table.n_vars)), n_jobs)
    X = np.concatenate([np.column_stack(columns) for columns in parts], dtype=np.float64)
    widths = [1 if x.ndim == 1 else x.shape[1] for x in parts[0]]
    offsets = np.concatenate([[0], np.cumsum(widths)])
    return gaussian_start(tree, X, offsets, n_dims, table.weights, n_jobs)


def _numbers(n_vars: int, chunk: Chunk, n_jobs: int) -> list[NDArray[Any]]:
    """The values of all variables."""
    columns = (chunk.arrays[v] for v in range(n_vars))
    return [x.toarray() if issparse(x) else x for x in columns]
