"""The stage `search`: edits of the tree and of the numbers of states that likelihood supports."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.config import FitConfig
from latenttree.data import Table
from latenttree.distances.stage import Measured, States
from latenttree.model.held_out import split_samples
from latenttree.model.independence import independent_across
from latenttree.model.samples import marginals
from latenttree.model.tree_model import TreeModel
from latenttree.parameters.moment_start import condition_numbers, moment_start
from latenttree.parameters.solving import Parameters
from latenttree.refinement.fitted import Fitted
from latenttree.refinement.stage import refine_fully
from latenttree.search.driver import Judge
from latenttree.search.state_edits import select_states
from latenttree.search.topology_edits import search_tree
from latenttree.structure.learn import Structure
from latenttree.tree import Tree
from latenttree.tree.split_keys import signatures

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Learned:
    """The final tree, and its model; None where the variables have none. `tried`: the numbers of
    states that were compared on held-out samples, see `Diagnostics.states_tried`."""

    structure: Structure
    fitted: Fitted | None = None
    tried: tuple[dict[str, Any], ...] = ()


def search(
    structure: Structure,
    fitted: Fitted,
    table: Table,
    states: States,
    measured: Measured,
    config: FitConfig,
) -> Learned:
    """The tree whose doubtful regions likelihood prefers, with a number of states at each hidden
    node that BIC supports, where more than one number is allowed. Across edges of support 0 the
    model is one of independence."""
    if config.searches:
        structure, fitted = _search_tree(structure, fitted, table, measured.basis, config)
    most = states.most_states
    if config.refine is not None and most is not None and most > 2:
        fitted = _search_states(fitted, table, states.n_states, most, config)
    joins = np.flatnonzero(structure.support == 0)
    if len(joins):
        fitted = replace(fitted, model=independent_across(fitted.model, joins, table))
    return Learned(structure, fitted)


def _search_tree(
    structure: Structure,
    fitted: Fitted,
    table: Table,
    basis: NDArray[Any] | None,
    config: FitConfig,
) -> tuple[Structure, Fitted]:
    """The structure that likelihood prefers. A changed one is refined again, as is one that was
    only refined roughly."""
    with config.progress.stage("search"):
        train, _ = split_samples(table, config)
        better, model = search_tree(structure, tree_model(fitted), train, config)
        condition = fitted.condition
        if better.tree is not structure.tree:
            condition = _condition_numbers(
                structure, better.tree, model, fitted, table, basis, config
            )
        elif not fitted.rough:
            return better, fitted
    return better, refine_fully(Parameters(model, condition), table, config)


def _condition_numbers(
    structure: Structure,
    tree: Tree,
    model: TreeModel,
    fitted: Fitted,
    table: Table,
    basis: NDArray[Any] | None,
    config: FitConfig,
) -> Floats:
    """(n_hidden,) condition numbers of the hidden nodes of a changed tree; those of new nodes are
    measured."""
    known = condition_numbers_by_node(structure.tree, fitted.condition)
    keys = list(signatures(tree).values())
    condition = np.array([known.get(key, np.nan) for key in keys])
    new = np.array([key not in known for key in keys])
    if new.any():
        n_states = int(model.dims[-1])
        condition[new] = condition_numbers(model, table, n_states, basis, new, config)
    return condition


def condition_numbers_by_node(tree: Tree, condition: Floats) -> dict[int, float]:
    """The condition number of every hidden node, by the splits of its edges."""
    return dict(zip(signatures(tree).values(), condition.tolist(), strict=True))


def _search_states(
    fitted: Fitted, table: Table, n_states: int, most_states: int, config: FitConfig
) -> Fitted:
    """The model with as many states at each hidden node as BIC supports.

    If `most_states` exceeds `n_states`, with which the model was fitted, a model with `most_states`
    at every hidden node is fitted first. States are then merged node by node where BIC gains. The
    result is kept if its BIC is better than that of `fitted`."""
    wide = fitted
    if most_states > n_states:
        with config.progress.stage("parameters"):
            start = moment_start(fitted.model.tree, table, most_states, None, config)
        wide = refine_fully(start, table, config)
    with config.progress.stage("number of states"):
        train, _ = split_samples(table, config)
        merged = select_states(tree_model(wide), train, config, marginals(table))
        if merged.values[-1] <= Judge(train, "bic", config).value(tree_model(fitted)):
            return fitted
    return refine_fully(Parameters(merged.model, wide.condition), table, config)


def tree_model(fitted: Fitted | None) -> TreeModel:
    """The model of a fit whose hidden variables have states."""
    assert fitted is not None
    assert isinstance(fitted.model, TreeModel)
    return fitted.model
