"""Tree + samples -> the Gaussian model that the moments imply."""

from __future__ import annotations

from dataclasses import dataclass

from latenttree.engine.arrays import Floats, Ints
from latenttree.model.gaussian.model import GaussianTreeModel
from latenttree.parameters.gaussian.closed_form import closed_form
from latenttree.parameters.gaussian.moments import standardisation
from latenttree.parameters.gaussian.reduction import reduced_moments
from latenttree.tree import Tree


@dataclass(frozen=True, eq=False)
class GaussianStart:
    """A model by moments, and the samples it was estimated from.

    Attributes
    ----------
    model : the model that the second moments imply.
    condition : (m,) for every hidden node the factor by which errors of the moments are amplified.
    X : (n, D) samples, NaN where a value is missing.
    weights : (n,) sample weights; None: all one.
    units : mean and standard deviation of each column, `(D,)` each.
    """

    model: GaussianTreeModel
    condition: Floats
    X: Floats
    weights: Floats | None
    units: tuple[Floats, Floats]


def gaussian_start(
    tree: Tree, X: Floats, offsets: Ints, n_dims: int, weights: Floats | None, n_jobs: int = 1
) -> GaussianStart:
    """Parameters of a Gaussian tree in closed form, see `closed_form`.

    Parameters
    ----------
    X : (n, D) observed variables side by side, NaN where a value is missing.
    offsets : (p + 1,) variable v is columns offsets[v]:offsets[v + 1].
    n_dims : dimensions of each hidden node.
    weights : (n,) sample weights; None: all one.
    """
    units = standardisation(X, weights)
    moments, at, wide = reduced_moments(tree, X, offsets, n_dims, weights, units, n_jobs)
    implied = closed_form(tree, moments, at, n_dims, wide)
    return GaussianStart(implied.model, implied.condition, X, weights, units)
