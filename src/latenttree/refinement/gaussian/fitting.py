"""A Gaussian model by moments, refined by EM and brought to the canonical gauge."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from latenttree.model.gaussian.gauge import canonical_gauge
from latenttree.model.gaussian.inference import effective_samples
from latenttree.model.gaussian.layout import GaussianLayout
from latenttree.model.gaussian.model import GaussianTreeModel
from latenttree.model.gaussian.units import linear_of, model_in_units
from latenttree.parameters.gaussian import GaussianStart
from latenttree.refinement.gaussian.condensed_rows import training_blocks
from latenttree.refinement.gaussian.em import run_gaussian_em

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FittedGaussian:
    """A fitted model with diagnostics of its hidden nodes, in the order of the tree.

    Attributes
    ----------
    model : in the canonical gauge, on the tree as given.
    condition : (m,) factor by which errors of the moments are amplified at a hidden node.
    effective_samples : (m,) `N (1 - mean posterior variance)`, the effective number of
        samples in which the hidden node is observed.
    trace : log-likelihood of the training samples before each EM step (with smoothing, plus that
        of the pseudo-samples); never decreasing. Empty without refinement.
    converged : whether EM stopped by its tolerance.
    """

    model: GaussianTreeModel
    condition: Floats
    effective_samples: Floats
    trace: list[float] = field(default_factory=list)
    converged: bool = True


def refine_gaussian(
    start: GaussianStart,
    *,
    refine: bool = True,
    max_iter: int = 200,
    tol: float = 1e-7,
    smoothing: float = 1.0,
    accelerate: bool = True,
    n_jobs: int = 1,
) -> FittedGaussian:
    """The model after EM (with `refine=False`: as it is), in the canonical gauge.

    Parameters
    ----------
    max_iter, tol, accelerate : see `run_gaussian_em`.
    smoothing : number of pseudo-samples in which all coordinates are independent.
    """
    if not refine:
        return _finished(start, start.model, [], True, n_jobs)
    X, weights, units, tree = start.X, start.weights, start.units, start.model.tree
    n_dims = int(start.model.dims[-1]) if tree.n_hidden else 1
    layout = GaussianLayout.for_tree(tree, start.model.offsets, n_dims)
    maximum = run_gaussian_em(
        linear_of(start.model, layout, *units),
        layout,
        training_blocks(X, layout, *units, weights, smoothing, n_jobs),
        max_steps=max_iter,
        tolerance=tol,
        accelerate=accelerate,
        n_parameters=start.model.n_parameters,
        n_jobs=n_jobs,
    )
    # densities of standardised values become densities of the data
    per_column = (~np.isnan(X)).T @ (np.ones(len(X)) if weights is None else weights)
    shift = float(per_column @ np.log(units[1]))
    trace = [value - shift for value in maximum.trace]
    model = model_in_units(maximum.linear, layout, *units)
    return _finished(start, model, trace, maximum.converged, n_jobs)


def _finished(
    start: GaussianStart,
    model: GaussianTreeModel,
    trace: list[float],
    converged: bool,
    n_jobs: int,
) -> FittedGaussian:
    """The result, its model in the canonical gauge."""
    model = canonical_gauge(model)
    samples = effective_samples(model, start.X, start.weights, n_jobs=n_jobs)
    return FittedGaussian(model, start.condition, samples, trace, converged)
