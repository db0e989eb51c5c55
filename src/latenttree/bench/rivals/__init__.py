"""Rivals: other methods on the same data, judged by the same metric in the same run.

One adapter file for each, in this folder, with a tuple `RIVALS` of objects that look like `Rival`;
a new file is found by itself. A library that an adapter needs is imported inside `available` and
`fit` only, so that none has to be installed:

    class Neighbours:
        name = "scikit-bio NJ"

        def available(self) -> bool:
            return installed("skbio")

        def fit(self, task: Task) -> Answer:
            ...
            return Answer(tree=tree)

    RIVALS = (Neighbours(),)
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol

from latenttree.data import Table
from latenttree.errors import DataError
from latenttree.tree import Tree


@dataclass(frozen=True)
class Task:
    """What everyone is given.

    table : the training samples. n_states : of a hidden variable.
    n_hidden, layers : of the true tree, all of them and level by level from the leaves, for methods
        that must be told; None where nobody knows.
    """

    table: Table
    n_states: int = 2
    seed: int = 0
    n_jobs: int = 1
    n_hidden: int | None = None
    layers: tuple[int, ...] | None = None

    def distances(self) -> Any:
        """Our (p, p) information distances, for methods that start from some. Finite and not
        negative: what cannot be measured is as far as the farthest."""
        import numpy as np

        from latenttree.distances import estimate_distances

        found = estimate_distances(
            self.table, self.n_states, random_state=self.seed, n_jobs=self.n_jobs
        )
        D = found.values.astype(np.float64)
        known = np.isfinite(D)
        return np.maximum(np.where(known, D, D[known].max(initial=0.0)), 0.0)


@dataclass(frozen=True)
class Answer:
    """What a rival found; None where it has no such thing.

    tree : over the variables of the task. groups : (p,) label of each variable.
    log_likelihood : of new samples (a `Table` of the same variables), the sum over them.
    n_parameters : free parameters of its model, for BIC.
    more : anything worth a note in the JSON file.
    """

    tree: Tree | None = None
    groups: tuple[int, ...] | None = None
    log_likelihood: Callable[[Table], float] | None = None
    n_parameters: int | None = None
    more: dict[str, Any] = field(default_factory=dict)


class Rival(Protocol):
    """One method of one library."""

    name: str

    def available(self) -> bool:
        """Whether what it needs is installed."""
        ...

    def fit(self, task: Task) -> Answer: ...


def installed(*packages: str) -> bool:
    return all(find_spec(package) is not None for package in packages)


def rivals() -> dict[str, Rival]:
    """All adapters of this folder by name, installed or not."""
    found: dict[str, Rival] = {}
    for module in pkgutil.iter_modules(__path__):
        for rival in import_module(f"{__name__}.{module.name}").RIVALS:
            found[rival.name] = rival
    return found


def rival(name: str) -> Rival:
    known = rivals()
    if name not in known:
        raise DataError(f"no rival is called {name!r}; choose of {', '.join(sorted(known))}")
    if not known[name].available():
        raise DataError(f"rival {name!r} needs a library that is not installed")
    return known[name]
