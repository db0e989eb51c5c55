"""The stage `learn_structure`: similarities -> a tree with a support for every edge."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from latenttree.config import FitConfig
from latenttree.data import Table
from latenttree.distances.stage import Measured
from latenttree.engine import Progress
from latenttree.structure.copies import hidden_chow_liu, hidden_copies
from latenttree.structure.leaf_variables import as_leaves
from latenttree.structure.learn import Structure, structure_of_similarities
from latenttree.tree import Tree


def learn_structure(
    measured: Measured, table: Table, config: FitConfig, *, resolved: bool = False
) -> Structure:
    """The tree over the variables of a table; `resolved`: with nothing contracted and no support,
    see `structure_of_similarities`.

    Variables that are not categorical have no states for others to depend on: they become leaves,
    unless all hidden variables are real vectors themselves."""
    if table.n_vars < 3:
        return _of_one_or_two(measured, table)
    structure = _learn(measured, table, config, resolved)
    if config.gaussian or table.values is None:
        return structure
    return as_leaves(structure, tuple(table.values.arrays))


def rival_structures(measured: Measured, table: Table, config: FitConfig) -> list[Structure]:
    """Other shapes that may suit a model of many states: the same tree with no edge contracted, and
    hidden copies of the Chow-Liu tree. All observed nodes are leaves."""
    if measured.similarity is None or table.n_vars < 3:
        return []
    quiet = replace(config, progress=Progress())
    whole = _learn(measured, table, replace(quiet, min_support=0.0), resolved=False)
    return [hidden_copies(whole), hidden_chow_liu(measured.similarity, table, config.n_jobs)]


def _learn(measured: Measured, table: Table, config: FitConfig, resolved: bool) -> Structure:
    similarity, distances = measured.similarity, measured.distances
    if similarity is None:
        assert distances is not None
        assert config.baseline is not None
        with config.progress.stage(config.structure):
            values = distances.values.astype(np.float64)
            return Structure.of_tree(config.baseline(values, distances.n_samples, table.names))
    if not config.hidden_features:
        similarity = replace(similarity, feature_leaves=1)
    return structure_of_similarities(
        similarity,
        table.names,
        sweeps=config.sweeps,
        min_support=config.min_support,
        epsilon=config.epsilon,
        resolved=resolved,
        n_jobs=config.n_jobs,
        progress=config.progress,
    )


def _of_one_or_two(measured: Measured, table: Table) -> Structure:
    """The tree over one or two variables, which has no hidden node."""
    distances = measured.distances
    if distances is None:
        return Structure.of_tree(Tree.build(table.names, np.empty((0, 2), int), np.empty(0)))
    length = distances.values[0, 1:2].astype(np.float64)
    edge = Structure.of_tree(Tree.build(table.names, np.array([[0, 1]]), length))
    measurable = bool(distances.measurable[0, 1])
    return replace(
        edge,
        support=np.array([1.0 if measurable else 0.0]),
        standard_errors=distances.standard_errors[0, 1:2].astype(np.float64),
        n_components=1 if measurable else 2,
    )
