"""Edits of the tree: other topologies of the regions around doubtful edges.

The topologies of largest Gaussian likelihood are fitted to the messages by EM and compared by
likelihood or BIC.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.config import FitConfig
from latenttree.model.samples import Samples
from latenttree.model.tree_model import TreeModel
from latenttree.refinement.tree_em import MANY_SAMPLES
from latenttree.search.driver import Criterion, Edit, Judge, Rules, search_edits
from latenttree.search.edge_lengths import model_lengths
from latenttree.search.region_model import (
    Alternative,
    branch_correlations,
    cut_out,
    fit_region,
    start_of,
)
from latenttree.search.region_patterns import Branches, as_patterns
from latenttree.search.region_replacement import replace_regions
from latenttree.search.region_topologies import Topology, other_topologies
from latenttree.search.regions import Region, RegionEvidence, region_around
from latenttree.structure.learn import Structure
from latenttree.tree import Tree
from latenttree.tree.split_keys import BranchKeys, signatures, split_keys

Floats = NDArray[np.float64]

MAX_WORK = 3_000_000
LEAST_REGIONS = 30
"""Regions times samples that a search may examine; regions that it may examine in any case."""

GLOBAL_STEPS, FEWER_STEPS = 20, 8
"""EM steps after the edits of a round; the same where all samples will refine the model later."""

SCORED_SAMPLES = 1 << 15
"""Upper bound of the number of samples that regions and models are scored on; half of it where all
samples will refine the model later."""

MOST_BRANCHES = 16
"""Larger regions are not examined."""

HOPELESS = 6.0
"""A fit that will end this much log-likelihood below the best is stopped early."""


class Doubts(NamedTuple):
    """Where other topologies are looked for, by one criterion.

    The structure was learned from all distances, so another topology of the same size must be
    clearly likelier (`min_gain`) to replace it, and only around doubtful edges. BIC has a penalty
    of its own."""

    min_gain: float  # log-likelihood, or BIC, that a change must gain
    doubt: float  # edges with more support are not examined
    wide: bool  # whether to examine larger regions around an edge as well
    max_regions: int  # examined in all, the most doubtful ones first


DOUBTS: dict[Criterion, Doubts] = {
    "likelihood": Doubts(2.0, 0.95, False, 400),
    "bic": Doubts(0.5, np.inf, True, 4000),  # BIC may drop an edge that is surely there
}


class Resolution(NamedTuple):
    """The best topology of a region.

    Attributes
    ----------
    weights : for the split of an inner edge (see `split_keys`) the share of likelihood of the
        resolutions of the region that contain it.
    current : the current topology as fitted; None where there was nothing to compare it with.
    """

    best: Alternative
    weights: dict[int, float]
    current: Alternative | None = None


TopologyEdit = Edit[Resolution]


@dataclass(frozen=True)
class TopologyEdits:
    """Topologies of regions around edges of little `support`, by splits; edges of unknown splits
    have a support of 0.5. With the criterion "likelihood" only topologies with as many hidden nodes
    compete."""

    judge: Judge
    rules: Rules
    support: dict[int, float]

    def regions(self, model: TreeModel) -> Iterator[Region]:
        """The regions around doubtful edges, the most doubtful first."""
        keys = split_keys(model.tree).tolist()
        support = np.array([self.support.get(key, 0.5) for key in keys])
        return doubtful_regions(model.tree, support, DOUBTS[self.judge.criterion])

    def proposer(self, model: TreeModel) -> Callable[..., TopologyEdit]:
        """What fits the topologies of a region of the model."""
        sides = BranchKeys(model.tree)

        def propose(region: Region, evidence: RegionEvidence, _: object) -> TopologyEdit:
            tried = self._alternatives(model, region, evidence)
            best = max(tried, key=self._score)
            if len(tried) == 1:
                return Edit(region, 0.0, Resolution(best, {}))
            gain = self._score(best) - self._score(tried[0])
            return Edit(region, gain, Resolution(best, _weights(sides, region, tried), tried[0]))

        return propose

    def _alternatives(
        self, model: TreeModel, region: Region, evidence: RegionEvidence
    ) -> list[Alternative]:
        """The current topology of a region and others, fitted; the current one alone, not fitted,
        where there is none to compare it with."""
        topology, small = cut_out(model, region)
        branches = patterns(region, evidence)
        size = topology.n_hidden if self.judge.criterion == "likelihood" else None
        r = branch_correlations(small, branches)
        n = float(self.judge.samples.n_samples * (small.n_states - 1))
        others = other_topologies(topology, r, n, size)
        smoothing = self.judge.config.smoothing
        if not others:
            return [Alternative(topology, small, 0.0)]
        tried = [fit_region(small, topology, branches, smoothing)]
        for other in others:
            best = max(map(self._score, tried))
            bar = best + self._penalty(other, small.n_states) - HOPELESS
            tried.append(fit_region(start_of(small, other), other, branches, smoothing, bar))
        return tried

    def _score(self, alternative: Alternative) -> float:
        """Log-likelihood less the penalty of the topology."""
        n_states = alternative.model.n_states
        return alternative.log_likelihood - self._penalty(alternative.topology, n_states)

    def _penalty(self, topology: Topology, n_states: int) -> float:
        """The penalty of the parameters of the inner edges, up to a constant."""
        return self.judge.penalty(topology.n_hidden * n_states * (n_states - 1))

    def refits(self, edits: Sequence[TopologyEdit]) -> list[TopologyEdit]:
        """Regions of the current topology, as fitted."""
        fitted = ((q.region, q.change.current) for q in edits)
        return [Edit(r, 0.0, Resolution(model, {})) for r, model in fitted if model is not None]

    def applied(self, model: TreeModel, edits: Sequence[TopologyEdit]) -> TreeModel:
        """The model with some regions replaced by their best topologies, on a canonical tree."""
        return replace_regions(model, [(q.region, q.change.best.model) for q in edits])

    def revisited(
        self,
        before: TreeModel,
        after: TreeModel,
        made: Sequence[TopologyEdit],
        waiting: Sequence[TopologyEdit],
    ) -> Iterator[Region]:
        """Regions with a hidden node that is new, or whose edit was proposed but not made."""
        old, new = signatures(before.tree), signatures(after.tree)
        known = set(old.values()) - {old[v] for q in waiting for v in q.region.inside}
        fresh = {v for v, signature in new.items() if signature not in known}
        for r in self.regions(after):
            if not fresh.isdisjoint(r.inside) or not fresh.isdisjoint(u for _, u in r.branches):
                yield r


def topology_edits(
    samples: Samples, criterion: Criterion, config: FitConfig, support: dict[int, float]
) -> TopologyEdits:
    """The search for topologies by one criterion: of bounded work, on some of the samples. Fewer
    where all samples will refine the model after the search."""
    refined_again = len(samples.table) >= MANY_SAMPLES
    scored = samples.subsample(SCORED_SAMPLES // 2 if refined_again else SCORED_SAMPLES)
    doubts = DOUBTS[criterion]
    affordable = max(LEAST_REGIONS, int(MAX_WORK / max(len(scored.table), 1)))
    rules = Rules(
        doubts.min_gain,
        most_regions=min(doubts.max_regions, affordable),
        refines_last=not refined_again,
    )
    steps = FEWER_STEPS if refined_again else GLOBAL_STEPS
    return TopologyEdits(Judge(scored, criterion, config, steps), rules, support)


def doubtful_regions(tree: Tree, support: Floats, doubts: Doubts) -> Iterator[Region]:
    """Regions around doubtful inner edges, the most doubtful first: the two ends of the edge, and
    with `doubts.wide` also the hidden nodes next to them. Edges without any support join parts
    without dependence, whose place no likelihood determines: they are left out."""
    yielded = set()
    inner = (tree.edges >= tree.n_observed).all(axis=1)
    doubtful = np.flatnonzero(inner & (support < doubts.doubt) & (support > 0))
    order = doubtful[np.argsort(np.abs(support[doubtful] - 0.5), kind="stable")]
    for a, b in tree.edges[order].tolist():
        for radius in range(1 + doubts.wide):
            region = region_around(tree, (a, b), radius)
            if region not in yielded and 4 <= len(region.branches) <= MOST_BRANCHES:
                yielded.add(region)
                yield region


def patterns(region: Region, evidence: RegionEvidence) -> Branches:
    """The evidence of the branches of a region, as patterns."""
    (chunk,) = evidence.chunks
    is_message = np.array([(u, v) in evidence.place for v, u in region.branches])
    source = [evidence.place.get((u, v), evidence.row.get(u, -1)) for v, u in region.branches]
    return as_patterns(chunk.codes, chunk.messages, chunk.weights, np.array(source), is_message)


def _weights(sides: BranchKeys, region: Region, tried: list[Alternative]) -> dict[int, float]:
    """For each split its share of likelihood among the most resolved topologies."""
    most = max(t.topology.n_hidden for t in tried)
    full = [t for t in tried if t.topology.n_hidden == most]
    top = max(t.log_likelihood for t in full)
    share = np.exp([t.log_likelihood - top for t in full])
    total: dict[int, float] = {}
    for t, weight in zip(full, share / share.sum(), strict=True):
        for split in t.topology.splits:
            away = [end for b, end in enumerate(region.branches) if split >> b & 1]
            key = sides.together(away)
            total[key] = total.get(key, 0.0) + float(weight)
    return total


# ---- structures -----------------------------------------------------------------------


def search_tree(
    structure: Structure, model: TreeModel, samples: Samples, config: FitConfig
) -> tuple[Structure, TreeModel]:
    """A local search by likelihood; then, for the most probable tree, by BIC as well."""
    structure, model = search_structure(structure, model, samples, "likelihood", config)
    if config.tree == "majority":
        return structure, model
    return search_structure(structure, model, samples, "bic", config)


def search_structure(
    structure: Structure,
    model: TreeModel,
    samples: Samples,
    criterion: Criterion,
    config: FitConfig,
) -> tuple[Structure, TreeModel]:
    """A structure and its model after a local search by one criterion.

    An old edge keeps its support; a new one has the weight of the alternatives of its region that
    contain it. Lengths of a changed tree are those of its model."""
    support, errors, before = (
        _by_split(structure.tree, x)
        for x in (structure.support, structure.standard_errors, structure.tree.lengths)
    )
    result = search_edits(model, topology_edits(samples, criterion, config, support))
    report = [*structure.search, result.values]
    if result.model is model:
        return replace(structure, search=report), model
    weights: dict[int, float] = {}
    for edit in result.proposed:
        weights |= edit.change.weights
    keys = split_keys(result.model.tree).tolist()
    lengths = model_lengths(result.model)
    for e, key in enumerate(keys):
        if result.model.tree.edges[e].min() in result.model.emissions:
            lengths[e] = before[key]  # the CPT of a single state has no length
    tree = result.model.tree.with_lengths(lengths)
    changed = replace(
        structure,
        tree=tree,
        support=np.array([support.get(key, weights.get(key, 1.0)) for key in keys]),
        standard_errors=np.array([errors.get(key, 0.0) for key in keys]),
        search=report,
    )
    return changed, replace(result.model, tree=tree)


def _by_split(tree: Tree, values: Floats) -> dict[int, float]:
    """Values of edges, by their splits."""
    return dict(zip(split_keys(tree).tolist(), values.tolist(), strict=True))
