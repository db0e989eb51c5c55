"""The stage `parameters`: tree + samples -> a model to refine, by moments."""

from __future__ import annotations

from typing import Any

from latenttree.config import FitConfig
from latenttree.data import Table
from latenttree.distances.stage import Measured, States
from latenttree.parameters.estimate import Parameters
from latenttree.parameters.moment_start import moment_start
from latenttree.structure.learn import Structure


def estimate_parameters(
    structure: Structure, table: Table, states: States, measured: Measured, config: FitConfig
) -> Parameters:
    """Every conditional distribution of the tree, by moments of the samples."""
    with config.progress.stage("parameters"):
        return moment_start(structure.tree, table, states.n_states, measured.basis, config)
