"""Structure + samples -> a model: parameters, the search of doubtful regions, states of each node.

One function for trees whose hidden variables have states, one for Gaussian trees.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from latenttree.data import Table
from latenttree.engine import Progress
from latenttree.model.gaussian.fitting import fit_gaussian
from latenttree.model.samples import marginals
from latenttree.model.tree_model import TreeModel
from latenttree.refinement.distinct_rows import distinct
from latenttree.refinement.em import MANY
from latenttree.refinement.fitting import Fitted, Options, conditions, fit_model, polish, split
from latenttree.search.local_search import settle
from latenttree.search.node_states import Pruner, prune
from latenttree.structure.leaf_variables import as_leaves
from latenttree.structure.learn import Structure
from latenttree.tree import Tree
from latenttree.tree.split_keys import signatures

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Lesson:
    """How a model is learned, whatever the tree.

    `tree` says which tree the search is for; None for no search. `most_states` is above the number
    of states of the structure where hidden nodes may have more, and are to have as many as BIC
    supports; 0 where all have the same number."""

    options: Options
    tree: Literal["majority", "most_probable"] | None
    most_states: int
    seed: int
    n_jobs: int
    progress: Progress


def learn_model(
    structure: Structure, table: Table, n_states: int, basis: NDArray[Any] | None, lesson: Lesson
) -> tuple[Structure, Fitted | None]:
    """The model of a tree, its doubtful regions settled by likelihood.

    None for one or two variables that are not categorical: without a hidden variable there is
    nothing for numbers to depend on."""
    emitted = () if table.values is None else tuple(table.values.arrays)
    if emitted and table.n_vars < 3:
        return structure, None
    structure = as_leaves(structure, emitted)
    options, seed, jobs, progress = lesson.options, lesson.seed, lesson.n_jobs, lesson.progress
    if not options.validation_fraction:
        table = distinct(table)
    rough = options.refine and lesson.tree is not None and table.n_samples >= MANY
    fitted = fit_model(structure.tree, table, n_states, basis, options, seed, jobs, progress, rough)
    if not options.refine:
        return structure, fitted
    if lesson.tree is not None:
        structure, fitted = _searched(structure, fitted, table, basis, lesson, rough)
    if lesson.most_states > 2:
        fitted = _pruned(fitted, table, n_states, lesson)
    return structure, fitted


def _searched(
    structure: Structure,
    fitted: Fitted,
    table: Table,
    basis: NDArray[Any] | None,
    lesson: Lesson,
    rough: bool,
) -> tuple[Structure, Fitted]:
    """The structure that likelihood prefers; a changed one with its model refined again, as is one
    that was only refined roughly."""
    options, seed, jobs, progress = lesson.options, lesson.seed, lesson.n_jobs, lesson.progress
    assert lesson.tree is not None
    with progress.stage("search"):
        train, _ = split(table, options, seed)
        better, model = settle(structure, tree_model(fitted), train, options, lesson.tree, jobs)
        condition = fitted.condition
        if better.tree is not structure.tree:
            condition = _conditions(structure, better.tree, model, fitted, table, lesson, basis)
        elif not rough:
            return better, fitted
    return better, polish(model, condition, table, options, seed, jobs, progress)


def _conditions(
    structure: Structure,
    tree: Tree,
    model: TreeModel,
    fitted: Fitted,
    table: Table,
    lesson: Lesson,
    basis: NDArray[Any] | None,
) -> Floats:
    """Conditions of the hidden nodes of a changed tree, measured where a node is new."""
    known = conditions_by_node(structure.tree, fitted.condition)
    keys = list(signatures(tree).values())
    condition = np.array([known.get(key, np.nan) for key in keys])
    new = np.array([key not in known for key in keys])
    if new.any():
        k, (options, seed, jobs) = int(model.dims[-1]), (lesson.options, lesson.seed, lesson.n_jobs)
        condition[new] = conditions(model, table, k, basis, options, seed, new, jobs)
    return condition


def conditions_by_node(tree: Tree, condition: Floats) -> dict[int, float]:
    """What is known about every hidden node, by the splits of its edges."""
    return dict(zip(signatures(tree).values(), condition.tolist(), strict=True))


def _pruned(fitted: Fitted, table: Table, n_states: int, lesson: Lesson) -> Fitted:
    """As many states at each hidden node as BIC supports: at first as many everywhere as some part
    of the tree needs, though the structure was found with fewer."""
    options, seed, jobs, progress = lesson.options, lesson.seed, lesson.n_jobs, lesson.progress
    wide, tree = fitted, fitted.model.tree
    if lesson.most_states > n_states:
        wide = fit_model(tree, table, lesson.most_states, None, options, seed, jobs, progress)
    with progress.stage("pruning"):
        pruner = Pruner(
            split(table, options, seed)[0],
            smoothing=options.smoothing,
            tol=options.tol,
            marginals=marginals(table),
            n_jobs=jobs,
        )
        found = prune(tree_model(wide), pruner)
        n = pruner.n_samples()
        better = pruner.bic(found.model, n) > pruner.bic(tree_model(fitted), n)
    if not better:
        return fitted
    return polish(found.model, wide.condition, table, options, seed, jobs, progress)


def tree_model(fitted: Fitted) -> TreeModel:
    """The model of a fit whose hidden variables have states."""
    assert isinstance(fitted.model, TreeModel)
    return fitted.model


def learn_gaussian(structure: Structure, table: Table, k: int, lesson: Lesson) -> Fitted:
    """Parameters of a Gaussian tree with hidden vectors of `k` dimensions."""
    assert table.values is not None
    blocks = [table.values.arrays[v] for v in range(table.n_vars)]
    columns = [x.toarray() if hasattr(x, "toarray") else np.asarray(x) for x in blocks]
    widths = [1 if x.ndim == 1 else x.shape[1] for x in columns]
    options = lesson.options
    found = fit_gaussian(
        structure.tree,
        np.column_stack(columns),
        np.concatenate([[0], np.cumsum(widths)]),
        k,
        weights=table.weights,
        refine=options.refine,
        max_iter=options.max_iter,
        tol=options.tol,
        smoothing=options.smoothing,
        n_jobs=lesson.n_jobs,
        progress=lesson.progress,
    )
    return Fitted(
        found.model, found.condition, found.samples, found.trace, converged=found.converged
    )
