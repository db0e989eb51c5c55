"""The stage `learn_structure`: similarities -> a tree with a support for every edge."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from latenttree.config import FitConfig
from latenttree.data import Table
from latenttree.distances.stage import Measured, States, measure, measure_shown
from latenttree.structure.copies import hidden_chow_liu, hidden_copies
from latenttree.structure.given import given_structure
from latenttree.structure.independence import n_independent
from latenttree.structure.leaf_variables import as_leaves
from latenttree.structure.learn import Structure, Structures, structures_of_similarities
from latenttree.structure.residuals import mean_squared_residual
from latenttree.tree import Tree


def measure_dependence(table: Table, states: States, config: FitConfig) -> tuple[States, Measured]:
    """`measure_shown`; in one direction where fewer variables are then independent of all others.

    Two variables that depend on each other in one direction alone have a determinant of several
    directions that is noise."""
    states, measured = measure_shown(table, states, config)
    asked = config.refine is not None and not config.gaussian and measured.similarity is not None
    if not asked or states.n_directions == 1:
        return states, measured
    assert measured.similarity is not None
    n_alone = n_independent(measured.similarity)
    if not n_alone:
        return states, measured
    goal = states.n_states if states.goal is None else states.goal
    one = replace(states, n_states=2, n_directions=1, goal=goal)
    other = measure(table, one, config)
    assert other.similarity is not None
    return (one, other) if n_independent(other.similarity) < n_alone else (states, measured)


def learn_structure(
    measured: Measured, table: Table, config: FitConfig, *, resolved: bool = False
) -> Structure:
    """The tree over the variables of a table; `resolved`: with nothing contracted and no support,
    see `structures_of_similarities`."""
    return learn_structures(measured, table, config, resolved=resolved).supported


def learn_structures(
    measured: Measured, table: Table, config: FitConfig, *, resolved: bool = False
) -> Structures:
    """`learn_structure`, and the same tree with no edge contracted where any was.

    Variables that are not categorical have no states for others to depend on: they become leaves,
    unless all hidden variables are real vectors themselves; so do all with `observed_as_leaves`."""
    if config.given is not None:
        return Structures(given_structure(config.given, table, config.gaussian))
    if table.n_vars < 3:
        return Structures(_of_one_or_two(measured, table))
    found = _learn(measured, table, config, resolved)
    if measured.similarity is not None and not resolved:
        tree, p = found.supported.tree, table.n_vars
        found = found._replace(residual=mean_squared_residual(measured.similarity, tree, p))
    leaves: Collection[int] = ()
    if config.observed_as_leaves:
        leaves = range(table.n_vars)
    elif not config.gaussian:
        leaves = tuple(table.block_widths)
    if not leaves:
        return found
    whole = None if found.whole is None else as_leaves(found.whole, leaves)
    return Structures(as_leaves(found.supported, leaves), whole, found.residual)


def rival_structures(
    found: Structures, measured: Measured, table: Table, config: FitConfig
) -> list[Structure]:
    """Other shapes that may suit a model of many states: hidden copies of the Chow-Liu tree and,
    where variables have values and edges that pay are not searched for, the same tree with no edge
    contracted. All observed nodes are leaves."""
    if measured.similarity is None or table.n_vars < 3:
        return []
    judged = config.min_support != "auto" or not table.has_numbers
    whole = [] if found.whole is None or judged else [hidden_copies(found.whole)]
    return [*whole, hidden_chow_liu(measured.similarity, table, config.n_jobs)]


def _learn(measured: Measured, table: Table, config: FitConfig, resolved: bool) -> Structures:
    similarity, distances = measured.similarity, measured.distances
    if similarity is None:
        assert distances is not None
        assert config.baseline is not None
        with config.progress.stage(str(config.structure)):
            values = distances.values.astype(np.float64)
            tree = config.baseline(values, distances.n_samples, table.names)
            return Structures(Structure.of_tree(tree))
    if not config.hidden_features:
        similarity = replace(similarity, feature_leaves=1)
    return structures_of_similarities(
        similarity,
        table.names,
        sweeps=config.sweeps,
        min_support=config.least_posterior,
        epsilon=config.epsilon,
        resolved=resolved,
        with_whole=not resolved,
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
