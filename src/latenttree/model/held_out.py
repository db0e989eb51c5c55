"""Samples to learn from, samples that are held out, and models compared on these."""

from __future__ import annotations

from functools import partial

import numpy as np

from latenttree.config import FitConfig
from latenttree.data import Table
from latenttree.data.chunk import Chunk
from latenttree.data.subsets import draw_weights, n_draws
from latenttree.engine import Gathered
from latenttree.engine.arrays import Floats
from latenttree.model.samples import Samples, evidence_of
from latenttree.model.tree_model import TreeModel

HELD_OUT = 0.1
"""Share of the samples that models are compared on."""

FEW_SAMPLES = 200
"""With fewer samples, a tenth of them tells models apart no longer."""


def split_samples(table: Table, config: FitConfig) -> tuple[Samples, Samples | None]:
    """Samples to learn from, and those to stop refinement by: None without
    `validation_fraction`, else at least one of each."""
    n, fraction = n_draws(table), config.validation_fraction
    if not fraction or config.refine is None:
        return Samples(table), None
    n_held = min(max(round(fraction * n), 1), n - 1)
    held = draw_weights(table, n_held, np.random.default_rng(config.seed))
    if table.weights is None:
        return Samples(table, held == 0), Samples(table, held > 0)
    rest = table.weights - held
    return Samples(table, rest > 0, rest), Samples(table, held > 0, held)


def sample_scores(model: TreeModel, samples: Samples) -> Floats:
    """(n,) log-likelihood of each sample."""
    return np.concatenate(samples.run(Gathered(partial(_log_likelihoods, model)), 1))


def sample_weights(samples: Samples) -> Floats:
    """(n,) weight of each sample."""
    return np.concatenate(samples.run(Gathered(_weights_of), 1))


def clearly_better(one: Floats, other: Floats, weights: Floats, clear: float) -> bool:
    """Whether the mean difference of log-likelihoods, `one` less `other`, is more than `clear`
    standard errors above 0."""
    difference, n = one - other, weights.sum()
    mean = float(difference @ weights) / n
    spread = float(weights @ (difference - mean) ** 2)
    return bool(mean * n > clear * np.sqrt(spread))


def _log_likelihoods(model: TreeModel, chunk: Chunk, n_jobs: int) -> Floats:
    return model.log_likelihood(evidence_of(chunk, model, n_jobs), n_jobs)


def _weights_of(chunk: Chunk, n_jobs: int) -> Floats:
    return np.ones(len(chunk)) if chunk.weights is None else chunk.weights
