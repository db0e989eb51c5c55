"""Single stages of a fit, for tables that compare a fit with and without one of them."""

from __future__ import annotations

from typing import Any

from benchmarks.timing import timed
from latenttree.config import FitConfig
from latenttree.data import Table, as_table
from latenttree.distances.estimate import Distances
from latenttree.distances.similarity import estimated_similarity
from latenttree.engine import resolve_jobs
from latenttree.estimator import LatentTree
from latenttree.evaluation.datasets import LatentTreeData
from latenttree.model.samples import Samples
from latenttree.model.tree_model import TreeModel
from latenttree.parameters.moment_start import moment_start
from latenttree.refinement.stage import refine_fully
from latenttree.refinement.tree_em import run_em
from latenttree.structure.learn import structure_of_similarities
from latenttree.tree import Tree


def timed_fit(
    X: Any, n_states: Any = "auto", seed: int = 0, **options: Any
) -> tuple[LatentTree, float]:
    """A fitted model and its seconds."""
    return timed(lambda: LatentTree(n_states=n_states, random_state=seed, **options).fit(X))


def tree_from(found: Distances, names: tuple[str, ...], *, sweeps: bool = True) -> Tree:
    """The tree that `LatentTree` makes of estimated distances before it searches."""
    similarity = estimated_similarity(found)
    return structure_of_similarities(similarity, names, sweeps=sweeps, n_jobs=1).tree


def parameters_on(
    tree: Tree, table: Table, n_states: int, basis: Any, config: FitConfig
) -> TreeModel:
    """Parameters on a tree that is given, by moments, refined if the configuration says so."""
    start = moment_start(tree, table, n_states, basis, config)
    model = refine_fully(start, table, config).model
    assert isinstance(model, TreeModel)
    return model


def moments_on(tree: Tree, X: Any, n_states: int, basis: Any, seed: int, **options: Any) -> Any:
    """Parameters on a tree that is given, by moments alone: what `refine=None` gives."""
    config = FitConfig(refine=None, seed=seed, n_jobs=resolve_jobs(None), **options)
    return parameters_on(tree, as_table(X), n_states, basis, config)


def maximum_near_truth(data: LatentTreeData) -> TreeModel:
    """EM on the true tree, started at the truth: the maximum of the likelihood near it, below
    whose error no refinement can get."""
    samples = Samples(as_table(data.X, family=families_of(data)))
    return run_em(data.model, samples, max_steps=200, n_jobs=resolve_jobs(None)).model


def families_of(data: LatentTreeData) -> dict[str, str]:
    """What a user would say: 0/1 columns are categorical."""
    return {
        name: "categorical" if family == "binary" else family
        for name, family in data.family.items()
    }
