"""The stage `choose_structure`: whether edges that the structure stage contracts pay after all.

If the data come from a tree, an edge that is contracted is probably not in it. Data that come from
no tree may still be better described with it. So the tree with all edges is taken where samples
that are held out are clearly more probable under it.

Only tables of categories are judged so. With values a hidden node more is a richer mixture: it is
gained wherever their distribution given a state is not quite of the family, whatever the tree.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from latenttree.config import FitConfig
from latenttree.data import Table
from latenttree.distances.stage import Measured, States
from latenttree.engine import Progress
from latenttree.engine.arrays import Floats
from latenttree.model.held_out import (
    FEW_SAMPLES,
    HELD_OUT,
    clearly_better,
    sample_scores,
    sample_weights,
    split_samples,
)
from latenttree.model.samples import Samples, marginals
from latenttree.parameters.solving import Parameters
from latenttree.parameters.stage import Start, estimate_parameters
from latenttree.refinement.tree_em import run_em
from latenttree.structure.learn import Structure, Structures

MOST_SAMPLES, MOST_VALUES, STEPS = 1 << 15, 1 << 25, 20
"""Samples, values of samples, and steps of EM with nine tenths of them, by which trees are
compared, at most."""

FEWEST_PER_CELL = 100
"""Samples for each cell of the largest CPT, at least. With fewer, the tree with all edges is ahead
because more hidden nodes smooth more, whatever the tree."""

CLEAR = 3.0
"""Standard errors by which the tree with all edges must be better."""


class Chosen(NamedTuple):
    """A structure, and the model by moments from which refinement starts."""

    structure: Structure
    start: Start


def choose_structure(
    found: Structures, table: Table, states: States, measured: Measured, config: FitConfig
) -> Chosen:
    """The tree of the supported edges, or the one with all edges where these pay on held-out
    samples. Cost: moments of both, and EM with a bounded number of samples."""
    start = estimate_parameters(found.supported, table, states, measured, config)
    if found.whole is None or not _compares(table, states, measured, config):
        return Chosen(found.supported, start)
    whole = estimate_parameters(found.whole, table, states, measured, config)
    with config.progress.stage("edges that pay"):
        trial = _Trial.of(table, config)
        if clearly_better(trial.scores(whole), trial.scores(start), trial.weights, CLEAR):
            return Chosen(found.whole, whole)
    return Chosen(found.supported, start)


def _compares(table: Table, states: States, measured: Measured, config: FitConfig) -> bool:
    """Whether edges may come back (`min_support="auto"`), all variables are categories, there are
    samples enough to hold some out and to learn every CPT from, and memory for all pairs: where
    there is none the structure takes minutes, and so would another model."""
    planned = measured.plan is None or measured.plan.mode != "on demand"
    asked = config.min_support == "auto" and config.refine is not None and not config.gaussian
    if not asked or not planned or table.has_numbers or table.total_weight < FEW_SAMPLES:
        return False
    n_train = (1 - HELD_OUT) * min(table.total_weight, _most_samples(table))
    return n_train >= FEWEST_PER_CELL * int(table.dims.max()) * (states.n_directions + 1)


def _most_samples(table: Table) -> int:
    return max(FEW_SAMPLES, min(MOST_SAMPLES, MOST_VALUES // table.n_vars))


class _Trial(NamedTuple):
    """Samples to learn from and to compare on."""

    train: Samples
    held_out: Samples
    weights: Floats
    config: FitConfig

    @classmethod
    def of(cls, table: Table, config: FitConfig) -> _Trial:
        share = config.validation_fraction or HELD_OUT
        some = Samples(table).subsample(_most_samples(table))
        options = replace(config, validation_fraction=share, progress=Progress())
        train, held_out = split_samples(some.table, options)
        assert held_out is not None
        return cls(train, held_out, sample_weights(held_out), options)

    def scores(self, start: Start) -> Floats:
        """Log-likelihood of the held-out samples, after EM with the others."""
        assert isinstance(start, Parameters)
        model = run_em(
            start.model,
            self.train,
            max_steps=min(STEPS, self.config.max_iter),
            tolerance=self.config.tol,
            smoothing=self.config.smoothing,
            marginals=marginals(self.train.table),
            n_jobs=self.config.n_jobs,
        ).model
        return sample_scores(model, self.held_out)
