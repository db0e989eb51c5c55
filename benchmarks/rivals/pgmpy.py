"""pgmpy: its Chow-Liu tree, and its EM with latent variables on a tree that is given."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.rivals import Answer, Rival, Task, of_model
from latenttree.data import Table
from latenttree.model.tree_model import TreeModel, default_root, normalised
from latenttree.tree import Tree

MOST_ROUNDS = 100
CHANGE = 1e-4
"""Largest change of a probability at which EM has converged; pgmpy's own 1e-8 takes far longer."""


class ChowLiu(Rival):
    """`TreeSearch`, Chow-Liu by mutual information; tables by its Bayesian estimator (BDeu)."""

    name = "pgmpy Chow-Liu"
    needs = ("pgmpy", "pandas")
    install = "pgmpy"

    def fit(self, task: Task) -> Answer:
        """Learn as the class says."""
        data, names = frame(task.table), list(task.table.names)
        search = import_module("pgmpy.estimators").TreeSearch(
            data, root_node=names[0], n_jobs=task.n_jobs
        )
        found = search.estimate("chow-liu", show_progress=False)
        edges = [(names.index(a), names.index(b)) for a, b in found.edges()]
        tree = Tree.build(names, np.array(edges), np.ones(len(edges)))
        network = import_module("pgmpy.models").DiscreteBayesianNetwork(list(found.edges()))
        estimator = import_module("pgmpy.parameter_estimator").DiscreteBayesianEstimator(
            state_names=states(task.table), prior_type="BDeu", equivalent_sample_size=1
        )
        cpds = estimator.fit(network, data).parameters_
        return of_model(_model(tree, 0, cpds), n_jobs=task.n_jobs)


class Em(Rival):
    """`DiscreteEM` from one random start on the true tree, which it cannot find.

    The tree is no part of its answer. It goes through all combinations of hidden states of every
    different sample. Stops by itself, or after the round in which the time is up.
    """

    name = "pgmpy EM"
    needs = ("pgmpy", "pandas")
    install = "pgmpy"
    given = "true tree"

    def suits(self, task: Task) -> bool:
        """A true tree is known."""
        return task.tree is not None

    def fit(self, task: Task) -> Answer:
        """Learn as the class says."""
        task.is_late()  # the clock starts
        assert task.tree is not None
        tree, data = task.tree.reorder(task.table.names), frame(task.table)
        root = default_root(tree)
        network = import_module("pgmpy.models").DiscreteBayesianNetwork(
            [
                (tree.names[u], tree.names[v])
                for v, u in enumerate(tree.rooted(root).parents)
                if u >= 0
            ],
            latents=set(tree.hidden_names),
        )
        cpds: Any = None
        change, rounds = np.inf, 0
        while cpds is None or (change > CHANGE and rounds < MOST_ROUNDS and not task.is_late()):
            estimator = import_module("pgmpy.parameter_estimator").DiscreteEM(
                state_names=states(task.table),
                latent_card=dict.fromkeys(tree.hidden_names, task.n_states),
                max_iter=1,
                seed=task.seed,
                init_cpds=None if cpds is None else {cpd.variable: cpd for cpd in cpds},
                show_progress=False,
            )
            before, cpds = cpds, estimator.fit(network, data).parameters_
            rounds += 1
            change = np.inf if before is None else _change(before, cpds)
        more: dict[str, Any] = {"rounds": rounds}
        if change > CHANGE:
            more["stopped"] = f"stopped after {rounds} rounds"
        return replace(of_model(_model(tree, root, cpds), more, task.n_jobs), tree=None)


def frame(table: Table) -> Any:
    """The samples as pandas has them."""
    codes = table.chunk(0, table.n_samples).codes.astype(np.int64)
    return import_module("pandas").DataFrame(codes, columns=list(table.names))


def states(table: Table) -> dict[str, list[int]]:
    """Categories of each variable, as pgmpy wants them."""
    return {name: list(range(d)) for name, d in zip(table.names, table.dims.tolist(), strict=True)}


def _model(tree: Tree, root: int, cpds: Any) -> TreeModel:
    """Its tables in our form: both are P(child | parent), a column for each state of the parent."""
    of = {cpd.variable: np.asarray(cpd.get_values(), dtype=np.float64) for cpd in cpds}
    return TreeModel(tree, root, tuple(normalised(of[name]) for name in tree.names))


def _change(before: Any, after: Any) -> float:
    old = {cpd.variable: cpd.get_values() for cpd in before}
    return max(float(np.abs(old[cpd.variable] - cpd.get_values()).max()) for cpd in after)


RIVALS = (ChowLiu(), Em())
