"""The stage `refine`: a model from moments -> the model of largest penalised likelihood."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from latenttree.config import FitConfig
from latenttree.data import Table
from latenttree.model.held_out import split_samples
from latenttree.model.likelihood import smoothed
from latenttree.model.samples import Samples, marginals
from latenttree.model.signs import ordered_variables
from latenttree.parameters.gaussian import GaussianStart
from latenttree.parameters.solving import Parameters
from latenttree.parameters.stage import Start
from latenttree.refinement.evidence import canonical_states, effective_samples
from latenttree.refinement.fitted import Fitted
from latenttree.refinement.gaussian.fitting import refine_gaussian
from latenttree.refinement.tree_em import MANY_SAMPLES, Refinement, run_em

ROUGH_SAMPLES, ROUGH_STEPS = 1 << 14, 12
"""Samples and steps of a refinement before the search, where there are many samples."""


@singledispatch
def refine(start: Start, table: Table, config: FitConfig) -> Fitted:
    """The model after EM; how depends on its hidden variables."""
    raise TypeError(f"a start of type {type(start).__name__}")


@refine.register
def _refine_states(start: Parameters, table: Table, config: FitConfig) -> Fitted:
    """Hidden variables with states: on some of many samples where a search will change the model
    anyway."""
    if config.searches and table.n_samples >= MANY_SAMPLES:
        return _refine_roughly(start, table, config)
    return refine_fully(start, table, config)


@refine.register
def _refine_gaussian(start: GaussianStart, table: Table, config: FitConfig) -> Fitted:
    """Gaussian hidden variables."""
    with config.progress.stage("refinement"):
        return refine_gaussian(start, config)


def refine_fully(start: Parameters, table: Table, config: FitConfig) -> Fitted:
    """The model after EM on all samples, or only smoothed without EM, with its states in
    canonical order and the evidence behind them."""
    train, held_out = split_samples(table, config)
    if config.refine is None:
        usable = smoothed(start.model, train.n_samples, config.smoothing, marginals(table))
        refinement = Refinement(usable, converged=True)
    else:
        with config.progress.stage("refinement"):
            refinement = run_em(
                start.model,
                train,
                max_steps=config.max_iter,
                tolerance=config.tol,
                smoothing=config.smoothing,
                held_out=held_out,
                marginals=marginals(table),
                n_jobs=config.n_jobs,
            )
    with config.progress.stage("evidence"):
        ordered = ordered_variables(table.families, table.dims)
        model = canonical_states(refinement.model, ordered)
        samples = effective_samples(model, Samples(table), config.n_jobs)
    return Fitted(
        model,
        start.condition,
        samples,
        refinement.trace,
        refinement.held_out,
        refinement.converged,
    )


def _refine_roughly(start: Parameters, table: Table, config: FitConfig) -> Fitted:
    """The model after a few steps of EM on some of the samples."""
    with config.progress.stage("refinement"):
        refinement = run_em(
            start.model,
            split_samples(table, config)[0].subsample(ROUGH_SAMPLES),
            max_steps=min(config.max_iter, ROUGH_STEPS),
            tolerance=config.tol,
            smoothing=config.smoothing,
            marginals=marginals(table),
            n_jobs=config.n_jobs,
        )
    unknown = np.full(start.model.tree.n_hidden, np.nan)
    return Fitted(refinement.model, start.condition, unknown, refinement.trace, rough=True)
