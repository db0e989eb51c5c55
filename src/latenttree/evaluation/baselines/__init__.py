"""Baselines: structure learners, distances in, tree out; and EM from random starts.

`BASELINES` maps a name to a function `(D, n_samples, names) -> Tree`; `D` is the matrix of
information distances, `n_samples` the number of samples behind it. Methods that do not
need the number of samples ignore it. `random_em` and `clrg_em` take the data and return a model:
the controls for parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from numpy.typing import ArrayLike

from latenttree.evaluation.baselines.chow_liu import chow_liu
from latenttree.evaluation.baselines.clnj import clnj
from latenttree.evaluation.baselines.clrg import clrg
from latenttree.evaluation.baselines.clrg_em import clrg_em
from latenttree.evaluation.baselines.neighbor_joining import (
    best_contraction,
    contract_short_edges,
    neighbor_joining,
    neighbor_joining_edges,
)
from latenttree.evaluation.baselines.random_em import RandomEM, random_em
from latenttree.evaluation.baselines.recursive_grouping import recursive_grouping
from latenttree.tree import Tree


def _chow_liu(D: ArrayLike, n_samples: float, names: Sequence[str] | None = None) -> Tree:
    return chow_liu(D, names)


def _neighbor_joining(D: ArrayLike, n_samples: float, names: Sequence[str] | None = None) -> Tree:
    return neighbor_joining(D, names)


BASELINES: dict[str, Callable[..., Tree]] = {
    "chow_liu": _chow_liu,
    "neighbor_joining": _neighbor_joining,
    "recursive_grouping": recursive_grouping,
    "clrg": clrg,
    "clnj": clnj,
}

__all__ = [
    "BASELINES",
    "RandomEM",
    "best_contraction",
    "chow_liu",
    "clnj",
    "clrg",
    "clrg_em",
    "contract_short_edges",
    "neighbor_joining",
    "neighbor_joining_edges",
    "random_em",
    "recursive_grouping",
]
