"""A Gaussian model by moments, refined by EM and brought to the canonical gauge."""

from __future__ import annotations

import numpy as np

from latenttree.config import FitConfig
from latenttree.engine import single_threaded_blas
from latenttree.model.gaussian.gauge import canonical_gauge
from latenttree.model.gaussian.layout import GaussianLayout
from latenttree.model.gaussian.model import model_in_units
from latenttree.model.gaussian.units import linear_of
from latenttree.parameters.gaussian import GaussianStart
from latenttree.refinement.em import GAIN_PER_TOL, Limits, em_loop, visit
from latenttree.refinement.fitted import Fitted
from latenttree.refinement.gaussian.condensed_rows import training_blocks
from latenttree.refinement.gaussian.problem import GaussianProblem

SLOWEST_RATIO = 500 / 501
"""Gains are taken to shrink this slowly. A few directions of a Gaussian tree are far slower than
the others and show late: with the ratio of the last gains, EM ended up to 0.14 of log-likelihood
for each parameter below the maximum, where 0.05 are allowed, and the loss on held-out samples
was up to a tenth larger (30 trees of 9 to 120 variables)."""

VALUES_PER_PARAMETER = 1000
"""With fewer known values for each parameter, the tolerance is smaller in proportion."""


def refine_gaussian(start: GaussianStart, config: FitConfig) -> Fitted:
    """The model after EM, or as it is without, in the canonical gauge.

    `smoothing` is the number of pseudo-samples in which all coordinates are independent."""
    model, trace, converged = start.model, list[float](), True
    if config.refine is not None:
        X, weights, units = start.X, start.weights, start.units
        n_dims = int(model.dims[-1]) if model.tree.n_hidden else 1
        layout = GaussianLayout.for_tree(model.tree, model.offsets, n_dims)
        blocks = training_blocks(X, layout, *units, weights, config.smoothing, config.n_jobs)
        problem = GaussianProblem(layout, blocks, config.n_jobs)
        limits = _limits(model.n_parameters, problem, config)
        with single_threaded_blas():
            first = visit(problem, problem.opened(linear_of(model, layout, *units)))
            end = em_loop(problem, first, limits)
        # densities of standardised values become densities of the data
        per_column = (~np.isnan(X)).T @ (np.ones(len(X)) if weights is None else weights)
        shift = float(per_column @ np.log(units[1]))
        trace, converged = [value - shift for value in end.trace], end.converged
        model = model_in_units(end.theta, layout, *units)
    model = canonical_gauge(model)
    samples = model.effective_samples(start.X, start.weights, n_jobs=config.n_jobs)
    return Fitted(model, start.condition, samples, trace, converged=converged)


def _limits(n_parameters: int, problem: GaussianProblem, config: FitConfig) -> Limits:
    """The stopping rule of all EM, for gains that shrink slowly."""
    n_values = sum(float((block.known @ block.count).sum()) for block in problem.blocks)
    n_free = min(n_parameters, n_values / VALUES_PER_PARAMETER)
    return Limits(config.max_iter, config.tol * GAIN_PER_TOL * n_free, ratio=SLOWEST_RATIO)
