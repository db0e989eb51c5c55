"""Rivals: other methods on the same data, judged by the same metric in the same run.

One adapter file for each, in this folder, with a tuple `RIVALS` of objects of classes like this; a
new file is found by itself. A library that an adapter needs is imported inside `fit` only, so that
none has to be installed:

    class Neighbours(Rival):
        name = "scikit-bio NJ"
        needs = ("skbio",)
        install = "scikit-bio"

        def fit(self, task: Task) -> Answer:
            ...
            return Answer(tree=tree)

    RIVALS = (Neighbours(),)
"""

from __future__ import annotations

import pkgutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.data import Table
from latenttree.errors import DataError
from latenttree.model.tree_model import TreeModel
from latenttree.tree import Tree

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Task:
    """What everyone is given.

    table : the training samples. n_states : of a hidden variable.
    tree, layers : the true tree, and its hidden nodes level by level from the leaves, for methods
        that need them; None where nobody knows.
    seconds : after which a method that can stop early should; None: whenever it is done.
    """

    table: Table
    n_states: int = 2
    seed: int = 0
    n_jobs: int = 1
    tree: Tree | None = None
    layers: tuple[int, ...] | None = None
    seconds: float | None = None

    @cached_property
    def started(self) -> float:
        """When the clock was first asked."""
        return time.perf_counter()

    def is_late(self) -> bool:
        """Whether `seconds` have passed since this was first asked."""
        return self.seconds is not None and time.perf_counter() - self.started > self.seconds

    def distances(self) -> Floats:
        """Our (p, p) information distances, for methods that start from some. Finite and not
        negative: what cannot be measured is as far as the farthest."""
        from latenttree.distances.estimate import estimate_distances

        found = estimate_distances(
            self.table, self.n_states, random_state=self.seed, n_jobs=self.n_jobs
        )
        return measurable(found.values)


def measurable(D: Any) -> Floats:
    """Distances with those that cannot be measured at the largest that can, negative ones at 0."""
    D = np.asarray(D, dtype=np.float64)
    known = np.isfinite(D)
    return np.maximum(np.where(known, D, D[known].max(initial=0.0)), 0.0)


@dataclass(frozen=True)
class Answer:
    """What a rival found; None where it has no such thing.

    tree : over the variables of the task. groups : (p,) label of each variable.
    log_likelihood : of each of some samples (a `Table` of the same variables).
    n_parameters : free parameters of its model, for BIC.
    more : anything worth a note in the JSON file.
    """

    tree: Tree | None = None
    groups: tuple[int, ...] | None = None
    log_likelihood: Callable[[Table], Floats] | None = None
    n_parameters: int | None = None
    more: dict[str, Any] = field(default_factory=dict)


class Rival:
    """One method of one library.

    needs : what it imports. install : what pip calls that.
    given : what it is given of the truth, because it cannot do without.
    """

    name: str
    needs: tuple[str, ...] = ()
    install: str = ""
    given: str = ""

    def available(self) -> bool:
        """Whether what it needs is installed."""
        return installed(*self.needs)

    def suits(self, task: Task) -> bool:
        """Whether it is made for such data, and is given what it needs."""
        return True

    def fit(self, task: Task) -> Answer:
        """Learn from the samples of a task."""
        raise NotImplementedError


def installed(*packages: str) -> bool:
    """Whether all of these packages can be imported."""
    return all(find_spec(package) is not None for package in packages)


def rivals() -> dict[str, Rival]:
    """All adapters of this folder by name, installed or not."""
    found: dict[str, Rival] = {}
    for module in pkgutil.iter_modules(__path__):
        for rival in getattr(import_module(f"{__name__}.{module.name}"), "RIVALS", ()):
            found[rival.name] = rival
    return found


def versions() -> dict[str, str | None]:
    """Of the libraries that adapters need, as pip calls them; None where one is not installed."""
    names = {part for rival in rivals().values() for part in rival.install.split()}
    found: dict[str, str | None] = {}
    for name in sorted(names):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def named(name: str) -> Rival:
    """The adapter of that name, installed or not."""
    known = rivals()
    if name not in known:
        raise DataError(f"no rival is called {name!r}; choose of {', '.join(sorted(known))}")
    return known[name]


def rival(name: str) -> Rival:
    """The adapter of that name, ready for use."""
    found = named(name)
    if not found.available():
        raise DataError(f"rival {name!r} is not installed; run: pip install {found.install}")
    return found


def of_model(model: TreeModel, more: dict[str, Any] | None = None, n_jobs: int = 1) -> Answer:
    """The answer of a method whose result is a tree with its probabilities: all likelihoods are
    computed by the same exact inference."""
    return Answer(
        model.tree, None, lambda table: likelihoods(model, table, n_jobs), model.n_parameters,
        more or {},
    )  # fmt: skip


def likelihoods(model: TreeModel, table: Table, n_jobs: int = 1) -> Floats:
    """(n,) log-likelihood of each sample of a table over the variables of the model."""
    from latenttree.engine import blocks
    from latenttree.model.inference import Evidence

    own = table if table.names == model.tree.observed_names else table.select(
        list(model.tree.observed_names)
    )  # fmt: skip
    parts = [
        model.log_likelihood(Evidence(own.chunk(start, stop).rows), n_jobs)
        for start, stop in blocks(own.n_samples, 2**16)
    ]
    return np.concatenate(parts) if parts else np.empty(0)
