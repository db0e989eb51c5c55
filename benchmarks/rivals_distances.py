"""Rival structure learners behind one signature, for the benchmarks.

`estimate(name, D, se, n_samples, names, truth)` gives every rival the same distances. What a
rival does not use it ignores; only the ones called "oracle" look at the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from latenttree.evaluation.baselines import best_contraction, clrg, neighbor_joining
from latenttree.tree import Tree

Matrix = NDArray[np.float64]


def estimate(
    name: str,
    D: Matrix,
    se: Matrix | None,
    n_samples: int,
    names: Sequence[str],
    truth: Tree,
) -> Tree:
    """Return the tree that rival `name` learns.

    Parameters
    ----------
    name : one of `RIVALS`.
    D, se : (p, p) distances and their standard errors; distances that are not finite are
        unmeasurable.
    n_samples : number of samples behind `D`.
    names : names of the observed variables.
    truth : the true tree, for the oracles.
    """
    if name not in RIVALS:
        raise ValueError(f"no rival is called {name!r}; choose from {sorted(RIVALS)}")
    return RIVALS[name](_measurable(np.asarray(D, dtype=np.float64)), n_samples, names, truth)


def _measurable(D: Matrix) -> Matrix:
    """Return `D` with unmeasurable distances at the largest measured one, negative ones at 0."""
    measured = np.isfinite(D)
    largest = D[measured].max(initial=0.0)
    return np.maximum(np.where(measured, D, largest), 0.0)


def _nj_oracle(D: Matrix, n_samples: int, names: Sequence[str], truth: Tree) -> Tree:
    """Neighbour joining with the contraction threshold that is best knowing the truth."""
    return best_contraction(neighbor_joining(D, names), truth)[0]


def _clrg(D: Matrix, n_samples: int, names: Sequence[str], truth: Tree) -> Tree:
    """CLGrouping with the constants of its authors."""
    return clrg(D, n_samples, names)


RIVALS: dict[str, Callable[[Matrix, int, Sequence[str], Tree], Tree]] = {
    "nj_oracle": _nj_oracle,
    "clrg": _clrg,
}
