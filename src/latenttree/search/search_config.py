"""Options of the local search: the criterion, its thresholds, and the samples it is measured on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from latenttree.model.likelihood import bic_score, total_log_likelihood
from latenttree.model.samples import Samples
from latenttree.model.tree_model import TreeModel
from latenttree.refinement.tree_em import MANY_SAMPLES, run_em
from latenttree.search.region_topologies import Topology
from latenttree.search.regions import Alternative

Criterion = Literal["likelihood", "bic"]

MAX_WORK = 3_000_000
LEAST_REGIONS = 30
"""Regions times samples that a search may examine; regions that it may examine in any case."""

GLOBAL_STEPS, FEWER_STEPS = 20, 8
"""EM steps after the changes of a sweep; the same where all samples will refine the model later."""

SCORED_SAMPLES = 1 << 15
"""Upper bound of the number of samples that regions and models are scored on."""


class SearchRules(NamedTuple):
    """Thresholds of a search.

    The structure was learned from all distances, so another topology of the same size must be
    clearly likelier (`min_gain`) to replace it, and only around doubtful edges. BIC has a penalty
    of its own."""

    min_gain: float  # log-likelihood, or BIC, that a change must gain
    doubt: float  # edges with more support are not examined
    wide: bool  # whether to examine larger regions around an edge as well
    max_regions: int  # examined in all, the most doubtful ones first


RULES: dict[Criterion, SearchRules] = {
    "likelihood": SearchRules(2.0, 0.95, False, 400),
    "bic": SearchRules(0.5, np.inf, True, 4000),  # BIC may drop an edge that is surely there
}


@dataclass(frozen=True)
class SearchConfig:
    """Configuration of a search by one criterion."""

    samples: Samples
    criterion: Criterion
    smoothing: float = 1.0
    tol: float = 1e-7
    n_jobs: int = 1

    @property
    def rules(self) -> SearchRules:
        """The thresholds of the criterion."""
        return RULES[self.criterion]

    @cached_property
    def scored_samples(self) -> Samples:
        """The samples that regions and models are scored on: fewer where all samples will refine
        the model later."""
        return self.samples.subsample(
            SCORED_SAMPLES // 2 if self.is_refined_again else SCORED_SAMPLES
        )

    @property
    def is_refined_again(self) -> bool:
        """Whether the model will be refined on all samples after the search."""
        return len(self.samples.table) >= MANY_SAMPLES

    @property
    def most_regions(self) -> int:
        """Number of regions to examine in all, as a region costs time proportional to samples."""
        n = max(len(self.scored_samples.table), 1)
        return min(self.rules.max_regions, max(LEAST_REGIONS, int(MAX_WORK / n)))

    def value(self, model: TreeModel) -> float:
        """Log-likelihood, or BIC as in `bic_score`, of the whole model: larger is better."""
        total = total_log_likelihood(model, self.scored_samples, self.n_jobs)
        return (
            total
            if self.criterion == "likelihood"
            else bic_score(model, total, self.scored_samples.n_samples)
        )

    def score(self, alternative: Alternative) -> float:
        """Log-likelihood less the penalty of the topology."""
        n_states = alternative.model.n_states
        return alternative.log_likelihood - self.penalty(alternative.topology, n_states)

    def penalty(self, topology: Topology, n_states: int) -> float:
        """`log(n) / 2` for each parameter of the inner edges by BIC, zero by likelihood."""
        if self.criterion == "likelihood":
            return 0.0
        return (
            0.5
            * topology.n_hidden
            * n_states
            * (n_states - 1)
            * float(np.log(self.scored_samples.n_samples))
        )

    def refined(self, model: TreeModel) -> TreeModel:
        """The model after a few EM steps on the scored samples."""
        return run_em(
            model,
            self.scored_samples,
            max_steps=FEWER_STEPS if self.is_refined_again else GLOBAL_STEPS,
            tolerance=self.tol,
            smoothing=self.smoothing,
            n_jobs=self.n_jobs,
        ).model
