"""Intervals of conditional distributions, by resampling rows while the tree stays.

Rows are drawn with replacement as weights, and a few steps of EM lead from the fitted model to the
best one for the drawn rows: all its parameters change together, and the states keep their order.
The quantiles of the differences to the same steps with all rows make the interval. That the tree
itself, or the number of states, might have been another is not in it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from latenttree.config import FitConfig
from latenttree.data.chunk import Chunk
from latenttree.data.schema.new_data import Rows
from latenttree.engine.arrays import Floats
from latenttree.model.gaussian import GaussianTreeModel
from latenttree.model.pair_moments import Model
from latenttree.model.samples import InMemory
from latenttree.model.tree_model import TreeModel
from latenttree.parameters.gaussian import GaussianStart
from latenttree.parameters.gaussian.moments import standardisation
from latenttree.refinement.gaussian.fitting import refine_gaussian
from latenttree.refinement.tree_em import run_em

STEPS, TOLERANCE = 50, 1e-9
"""Steps of EM from the fitted model, at most, and their tolerance: a hundredth of that of a fit,
since what they leave out would be missing from the width of the interval."""

NEVER = 1 << 62
"""Samples from which on EM in batches would come first."""

Quantity = Callable[[Any], Floats]
"""Numbers that follow from a model."""

Refit = Callable[[Floats], Model]
"""The model of the rows with weights."""


def bootstrap_interval(
    refit: Refit,
    quantity: Quantity,
    model: Model,
    weights: Floats,
    level: float,
    n_resamples: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Lower and upper ends of a quantity of the model, in its shape.

    With `q_b` of resample b, `q_0` of all rows and `q` of the model: `q` plus the quantiles
    `(1 - level) / 2` and `(1 + level) / 2` of `q_b - q_0`."""
    centre = quantity(refit(weights))
    n, share = round(float(weights.sum())), weights / weights.sum()
    draws = (rng.multinomial(n, share).astype(np.float64) for _ in range(n_resamples))
    found = np.stack([_aligned(quantity(refit(drawn)), centre) for drawn in draws])
    ends = np.quantile(found - centre, [(1 - level) / 2, (1 + level) / 2], axis=0)
    lower, upper = quantity(model) + ends
    return lower, upper


def _aligned(found: Floats, centre: Floats) -> Floats:
    """Slopes turned round where a resample has the hidden number the other way round."""
    slopes = bool((centre < 0).any() or (found < 0).any())
    turned = slopes and found.size == 1 and float((found * centre).sum()) < 0
    return -found if turned else found


def refit_of(model: Model, rows: Rows, smoothing: float, n_jobs: int) -> Refit:
    """How a model of samples is fitted to weights of them, from the model itself."""
    if isinstance(model, GaussianTreeModel):
        arrays = (np.asarray(rows.arrays[v]) for v in range(model.tree.n_observed))
        return partial(_refit_gaussian, model, np.column_stack(list(arrays)), smoothing, n_jobs)
    return partial(_refit_states, model, rows, smoothing, n_jobs)


def _refit_states(
    model: TreeModel, rows: Rows, smoothing: float, n_jobs: int, weights: Floats
) -> TreeModel:
    used = np.flatnonzero(weights)
    codes: Any = rows.matrix
    if codes is None or (codes.data < 0).any():  # of a matrix, -1 is missing
        codes = rows.take(0, rows.n_samples)
    arrays = {v: values[used] for v, values in rows.arrays.items()}
    samples = InMemory([Chunk(codes[used], arrays, weights[used])])
    return run_em(
        model,
        samples,
        max_steps=STEPS,
        tolerance=TOLERANCE,
        smoothing=smoothing,
        online_from=NEVER,
        n_jobs=n_jobs,
    ).model


def _refit_gaussian(
    model: GaussianTreeModel, X: Floats, smoothing: float, n_jobs: int, weights: Floats
) -> GaussianTreeModel:
    config = FitConfig(
        hidden="gaussian", max_iter=STEPS, tol=TOLERANCE, smoothing=smoothing, n_jobs=n_jobs
    )
    used = weights > 0
    unknown = np.full(model.tree.n_hidden, np.nan)
    units = standardisation(X[used], weights[used])
    start = GaussianStart(model, unknown, X[used], weights[used], units)
    found = refine_gaussian(start, config).model
    assert isinstance(found, GaussianTreeModel)
    return found
