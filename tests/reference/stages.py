"""Stages of a fit, one after another, for a tree that is given."""

from __future__ import annotations

from typing import Any

from latenttree.config import FitConfig
from latenttree.data import Table
from latenttree.parameters.moment_start import moment_start
from latenttree.refinement.stage import Fitted, refine_fully
from latenttree.tree import Tree


def fit_tree(tree: Tree, table: Table, n_states: int, **options: Any) -> Fitted:
    """The model of a given tree: moments, then EM; `options` as those of `FitConfig`."""
    config = FitConfig(**options)
    return refine_fully(moment_start(tree, table, n_states, None, config), table, config)
