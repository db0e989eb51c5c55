"""Edits of the numbers of states: one state less at a hidden node, where BIC supports fewer.

A tree is fitted with as many states everywhere as it needs somewhere. Every candidate with one
state less is compared and refitted from the messages into the node alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.config import FitConfig
from latenttree.model.samples import Samples
from latenttree.model.tree_model import TreeModel
from latenttree.refinement.tree_problem import mean_statistics
from latenttree.search.driver import Edit, Judge, Rules, SearchResult, search_edits
from latenttree.search.neighbourhood import (
    BranchEvidence,
    Neighbourhood,
    Targets,
    fewer_states,
    log_likelihood_at,
    mixed,
    neighbourhood_of,
    refit,
    with_neighbourhoods,
)
from latenttree.search.regions import ChunkEvidence, Region, RegionEvidence, region_around

Floats = NDArray[np.float64]

LEAST_STATES = 2
"""A node with a single state would cut the tree."""

TRIED = 2
"""Candidates of a node that are refitted: those that are best before refitting. Where a superfluous
state is a different mixture of others in every branch, merging costs much before EM has moved the
others, and little after. So only a refit tells whether a state is needed."""

FEW = 5_000
"""Samples on which candidates are tried first: a state needed for these is needed for all."""

MAX_ROUNDS = 100


StateEdit = Edit[Neighbourhood]
"""A hidden node with one state less."""


@dataclass(frozen=True)
class StateEdits:
    """One state less at hidden nodes with more than `LEAST_STATES`."""

    judge: Judge
    rules: Rules

    def regions(self, model: TreeModel) -> Iterator[Region]:
        """All hidden nodes."""
        return self._reducible(model, range(model.tree.n_observed, model.tree.n_nodes))

    def proposer(self, model: TreeModel) -> Callable[..., StateEdit | None]:
        """What compares the candidates of a node of the model, or refits the best of them on more
        samples."""
        means = mean_statistics(model, self.judge.samples)

        def propose(
            region: Region, evidence: RegionEvidence, first: StateEdit | None
        ) -> StateEdit | None:
            (v,) = region.inside
            present = neighbourhood_of(model, v)
            parts = branch_evidence(model, region, evidence)
            if first is None:
                before, candidates = fewer_states(present, parts)
                starts = [mixed(present, c.matrix, c.weights) for c in candidates[:TRIED]]
            else:
                before, starts = log_likelihood_at(present, parts), [first.change]
            best = None
            for start in starts:
                saved = present.n_parameters - start.n_parameters
                bar = before - self.judge.penalty(saved)
                new, value = refit(start, parts, self._targets(model, v, means), bar)
                if value > bar and (best is None or value - bar > best.gain):
                    best = Edit(region, value - bar, new)
            return best

        return propose

    def _targets(self, model: TreeModel, v: int, means: Mapping[int, Floats]) -> Targets:
        """As in `refine`: marginals of observed neighbours, uniform over states of hidden ones."""
        observed = self.judge.marginals or model.marginals
        spread: dict[int, Floats] = {}
        for u in map(int, model.tree.neighbors(v)):
            if u in means:
                spread[u] = means[u]
            elif u < model.tree.n_observed:
                spread[u] = observed[u]
            else:
                spread[u] = np.full(model.dims[u], 1 / model.dims[u])
        return Targets(self.judge.config.smoothing, spread)

    def refits(self, edits: Sequence[StateEdit]) -> list[StateEdit]:
        """None: nodes that keep their states are not refitted."""
        return []

    def applied(self, model: TreeModel, edits: Sequence[StateEdit]) -> TreeModel:
        """The model with some neighbourhoods replaced."""
        return with_neighbourhoods(model, [q.change for q in edits])

    def revisited(
        self,
        before: TreeModel,
        after: TreeModel,
        made: Sequence[StateEdit],
        waiting: Sequence[StateEdit],
    ) -> Iterator[Region]:
        """Nodes that changed, their neighbours, and nodes whose edit was not made."""
        nodes = {q.change.node for q in waiting}
        nodes |= {u for q in made for _, u in q.region.branches}
        return self._reducible(after, sorted(nodes))

    @staticmethod
    def _reducible(model: TreeModel, nodes: Iterable[int]) -> Iterator[Region]:
        """The hidden nodes among `nodes` with more than `LEAST_STATES` states."""
        for v in nodes:
            if v >= model.tree.n_observed and model.dims[v] > LEAST_STATES:
                yield region_around(model.tree, (v,), 0)


def branch_evidence(
    model: TreeModel, region: Region, evidence: RegionEvidence
) -> list[BranchEvidence]:
    """The evidence of the branches of a node, for each chunk of samples.

    Where the value of an observed neighbour is unknown, the evidence beyond it is left out. This
    only affects the proposals: edits are accepted by the likelihood of the whole model."""

    def of(chunk: ChunkEvidence, v: int, u: int) -> Any:
        if (u, v) in evidence.place:
            values = chunk.messages[:, evidence.place[u, v], : model.dims[u]]
            return values.astype(np.float64)
        if u in model.emissions:
            return chunk.values[u]
        return chunk.codes[evidence.row[u]].astype(np.int64)

    return [
        BranchEvidence({u: of(chunk, v, u) for v, u in region.branches}, chunk.weights)
        for chunk in evidence.chunks
    ]


def select_states(
    model: TreeModel, samples: Samples, config: FitConfig, marginals: Sequence[Floats] = ()
) -> SearchResult[Neighbourhood]:
    """The model after removing states of hidden nodes, one at a time, while its BIC rises.

    Each round changes nodes that are not neighbours. Candidates are tried on a few samples first,
    where there are many."""
    n_rows = len(samples.table) if samples.keep is None else int(samples.keep.sum())
    step = n_rows // FEW
    rules = Rules(
        most_rounds=MAX_ROUNDS,
        screens=(1,) if step < 2 else (step | 1, 1),  # odd: even and odd samples are both there
        emissions_change=True,
        borders_change=False,
        judged_refined=True,
        persistent=True,
    )
    judge = Judge(samples, "bic", config, marginals=marginals)
    return search_edits(model, StateEdits(judge, rules))
