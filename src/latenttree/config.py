"""`FitConfig`: every option of a fit, checked once and handed from stage to stage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from sklearn.utils import check_random_state

from latenttree.engine import Progress, resolve_jobs
from latenttree.engine.memory import memory_bytes
from latenttree.errors import check_option
from latenttree.tree import Tree
from latenttree.tree.matching import is_newick, tree_over

FLAGS = ("sweeps", "search", "hidden_features", "drop_constant", "keep_distances")
"""Options that are True or False."""

OWN_TREE = {
    "structure": "a tree: a Tree, Newick text that ends in ';', or lt.tree_from_distances(D)",
    "distances": "structure=lt.tree_from_distances(D, names=...) for distances of your own",
}
"""What else options of fixed values may be meant to be."""

HALF = 0.5
"""Edges that are more probably absent than real are contracted by default."""

Baseline = Callable[..., Tree]
"""A structure learner `(D, n_samples, names) -> Tree`."""


@dataclass(frozen=True)
class FitConfig:
    """Options of a fit, under the names and with the meaning that `LatentTree` documents.

    `seed`, `n_jobs` and `progress` are what `random_state`, `n_jobs` and `verbose` come to.
    `baseline` is the structure learner that `structure` names, None for latenttree's own; `given`
    the tree that `structure` is, over the variables of the table, see `over`."""

    n_states: Any = "auto"
    hidden: Literal["categorical", "gaussian"] = "categorical"
    structure: str | Tree = "lrg"
    baseline: Baseline | None = None
    given: Tree | None = None
    sweeps: bool = True
    distances: Literal["pooled", "pairwise"] = "pooled"
    epsilon: float | None = None
    min_support: float | Literal["auto"] = "auto"
    support: Literal["auto", "subsample", "bootstrap", "model"] = "auto"
    n_resamples: int | None = None
    search: bool = True
    tree: Literal["majority", "most_probable"] = "majority"
    refine: Literal["em"] | None = "em"
    hidden_features: bool = True
    observed_as_leaves: bool = False
    max_iter: int = 200
    tol: float = 1e-7
    smoothing: float = 1.0
    validation_fraction: float = 0.0
    family: Any = "auto"
    groups: Any = None
    names: Any = None
    drop_constant: bool = False
    handle_unknown: Literal["missing", "error"] = "missing"
    keep_distances: bool = False
    memory_limit: Any = None
    seed: int = 0
    n_jobs: int = 1
    progress: Progress = field(default_factory=Progress)

    def __post_init__(self) -> None:
        check_choice("distances", self.distances, ("pooled", "pairwise"))
        check_choice("hidden", self.hidden, ("categorical", "gaussian"))
        check_choice("refine", self.refine, ("em", None))
        check_choice("handle_unknown", self.handle_unknown, ("missing", "error"))
        check_choice("tree", self.tree, ("majority", "most_probable"))
        check_choice("support", self.support, ("auto", "subsample", "bootstrap", "model"))
        for name in FLAGS:
            possible = isinstance(getattr(self, name), bool | int | np.bool_)
            check_option(name, getattr(self, name), possible, "give True or False")
        check_structure_options(self.min_support, self.epsilon, automatic=True)
        check_resamples(self.n_resamples)
        memory_bytes(self.memory_limit)
        check_refinement_options(self.max_iter, self.tol, self.smoothing, self.validation_fraction)

    @classmethod
    def from_params(cls, params: dict[str, Any], baselines: dict[str, Baseline]) -> FitConfig:
        """The configuration of an estimator with these parameters (`get_params`)."""
        chosen, structure = dict(params), params["structure"]
        check_verbose(chosen["verbose"])
        if is_newick(structure):
            Tree.from_newick(structure)  # raises where the text is damaged, before any work
        elif not isinstance(structure, Tree):
            check_choice("structure", structure, ("lrg", *baselines))
        return cls(
            baseline=baselines.get(structure) if isinstance(structure, str) else None,
            seed=seed_of(chosen.pop("random_state")),
            n_jobs=resolve_jobs(chosen.pop("n_jobs")),
            progress=Progress(chosen.pop("verbose")),
            **chosen,
        )

    def over(self, names: Sequence[str]) -> FitConfig:
        """The configuration of a fit to these variables: a tree that is given has them as its
        observed nodes, in this order. Raises `DataError` where it has others."""
        if isinstance(self.structure, Tree) or is_newick(self.structure):
            return replace(self, given=tree_over(self.structure, names))
        return self

    @property
    def least_posterior(self) -> float:
        """Edges of a smaller posterior probability are contracted."""
        return HALF if self.min_support == "auto" else float(self.min_support)

    @property
    def gaussian(self) -> bool:
        """Whether hidden variables are real vectors."""
        return self.hidden == "gaussian"

    @property
    def searches(self) -> bool:
        """Whether likelihood may change the tree. Trees of baselines, given trees and Gaussian
        trees stay."""
        learned = self.baseline is None and self.given is None and not self.gaussian
        return self.search and learned and self.refine is not None


def check_choice(name: str, value: Any, allowed: tuple[Any, ...]) -> None:
    """Raise where an option is none of those allowed."""
    remedy = f"choose one of {list(allowed)}"
    if name in OWN_TREE:
        remedy += f", or pass {OWN_TREE[name]}"
    possible = (value is None or isinstance(value, str)) and value in allowed
    check_option(name, value, possible, remedy, " is unknown")


def check_verbose(verbose: Any) -> None:
    """Raise where `verbose` says nothing."""
    known = isinstance(verbose, Integral | np.bool_)
    known |= isinstance(verbose, str) and verbose == "auto"
    check_option("verbose", verbose, known, "choose 'auto', True or False", " is unknown")


def check_structure_options(min_support: Any, epsilon: Any, *, automatic: bool = False) -> None:
    """Raise where an option of structure learning is out of range; `automatic`: `min_support` may
    be "auto"."""
    possible = isinstance(min_support, Real) and 0 <= float(min_support) <= 1
    possible |= automatic and isinstance(min_support, str) and min_support == "auto"
    remedy = "give a number from 0 to 1" + (", or 'auto'" if automatic else "")
    check_option("min_support", min_support, possible, remedy, " is no probability")
    possible = epsilon is None or (isinstance(epsilon, Real) and float(epsilon) > 0)
    check_option("epsilon", epsilon, possible, "give a number above 0, or None", " is no distance")


def check_resamples(n_resamples: Any) -> None:
    """Raise where a number of resamples is none."""
    possible = n_resamples is None or (isinstance(n_resamples, Integral) and int(n_resamples) >= 1)
    remedy, problem = "give an integer, 1 or more, or None", " is no number of resamples"
    check_option("n_resamples", n_resamples, possible, remedy, problem)


def check_refinement_options(
    max_iter: Any, tol: Any, smoothing: Any, validation_fraction: Any
) -> None:
    """Raise where an option of refinement is out of range."""
    possible = isinstance(max_iter, Integral) and int(max_iter) >= 1
    remedy, problem = "give an integer, 1 or more", " is no number of steps"
    check_option("max_iter", max_iter, possible, remedy, problem)
    for name, value, most, remedy in (
        ("tol", tol, np.inf, "give a number, 0 or more"),
        ("smoothing", smoothing, np.inf, "give a number, 0 or more"),
        ("validation_fraction", validation_fraction, 1, "give a share from 0 to less than 1"),
    ):
        possible = isinstance(value, Real) and 0 <= float(value) < most
        check_option(name, value, possible, remedy, " is out of range")


def seed_of(random_state: Any) -> int:
    """One integer from whatever scikit-learn accepts as random state."""
    if isinstance(random_state, (int, np.integer)) and random_state >= 0:
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))
