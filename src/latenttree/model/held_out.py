"""Samples to learn from, and samples that are held out."""

from __future__ import annotations

import numpy as np

from latenttree.config import FitConfig
from latenttree.data import Table
from latenttree.data.subsets import draw_weights, n_draws
from latenttree.model.samples import Samples


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
