"""Local search: the doubtful regions of a fitted tree, changed where likelihood or BIC gains.

Regions whose edges are in doubt are cut out with the messages into them, and other topologies are
fitted to the messages (`region_proposals`). Changes that do not touch each other are made together,
and kept only if the model as a whole gains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from latenttree.config import FitConfig
from latenttree.model.samples import Samples
from latenttree.model.tree_model import TreeModel
from latenttree.search.edge_lengths import model_lengths
from latenttree.search.region_proposals import Proposal, propose_changes
from latenttree.search.region_replacement import replace_regions
from latenttree.search.regions import Region, region_around
from latenttree.search.search_config import Criterion, SearchConfig, SearchRules
from latenttree.structure.learn import Structure
from latenttree.tree import Tree
from latenttree.tree.split_keys import signatures, split_keys

Floats = NDArray[np.float64]

MAX_ROUNDS = 12
"""Rounds of proposals and changes, at most."""

MOST_BRANCHES = 16
"""Larger regions are not examined."""


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The model that a search ended with.

    Attributes
    ----------
    values : the criterion before every round and at the end; never decreasing.
    weights : for the split of an inner edge (see `split_keys`) the share of likelihood of the
        resolutions of its region that contain it.
    """

    model: TreeModel
    values: list[float]
    weights: dict[int, float] = field(default_factory=dict)


def search_model(
    model: TreeModel, config: SearchConfig, doubtful: Callable[[Tree], Iterator[Region]]
) -> SearchResult:
    """Hill climbing from `model` until no doubtful region has a better topology.

    A changed model is refined, unless this was the last round and all samples will refine it later.
    With the criterion "likelihood" only topologies with as many hidden nodes compete."""
    values = [config.value(model)]
    weights: dict[int, float] = {}
    regions = doubtful(model.tree)
    left = config.most_regions
    for _ in range(MAX_ROUNDS):
        examined = list(islice(regions, left))
        if not examined:
            break
        left -= len(examined)
        proposals = propose_changes(model, examined, config)
        for proposal in proposals:
            weights |= proposal.weights
        gaining = [q for q in proposals if q.gain > config.rules.min_gain]
        chosen = _compatible(model.tree, sorted(gaining, key=lambda q: -q.gain))
        better = _improve(model, chosen, proposals, config, values[-1])
        if better is None:
            break
        before, last = model.tree, config.is_refined_again and not left
        model, value = better if last else _refined_if_better(*better, config)
        values.append(value)
        regions = _regions_to_revisit(before, model.tree, doubtful(model.tree), gaining)
    return SearchResult(model, values, weights)


def _refined_if_better(
    model: TreeModel, value: float, config: SearchConfig
) -> tuple[TreeModel, float]:
    """The refined model if its value is larger, else the model as it is; and its value."""
    new = config.refined(model)
    reached = config.value(new)
    return (new, reached) if reached > value else (model, value)


def _regions_to_revisit(
    before: Tree, after: Tree, regions: Iterator[Region], deferred: list[Proposal]
) -> Iterator[Region]:
    """Regions with a hidden node that is new, or whose change was proposed but not made."""
    old, new = signatures(before), signatures(after)
    waiting = {old[v] for proposal in deferred for v in proposal.region.inside}
    known = set(old.values()) - waiting
    fresh = {v for v, signature in new.items() if signature not in known}
    for r in regions:
        if not fresh.isdisjoint(r.inside) or not fresh.isdisjoint(u for _, u in r.branches):
            yield r


def _compatible(tree: Tree, proposals: list[Proposal]) -> list[Proposal]:
    """Proposals whose regions share no hidden node, inside or next to them; greedily in order."""
    touched: set[int] = set()
    chosen = []
    for proposal in proposals:
        region = proposal.region
        nodes = {*region.inside, *(u for _, u in region.branches if u >= tree.n_observed)}
        if touched.isdisjoint(nodes):
            touched |= nodes
            chosen.append(proposal)
    return chosen


def _improve(
    model: TreeModel,
    chosen: list[Proposal],
    fitted: list[Proposal],
    config: SearchConfig,
    value: float,
) -> tuple[TreeModel, float] | None:
    """A changed model whose value exceeds `value`, with its value; None if there is none.

    First all `chosen` changes are made together, and regions of `fitted` whose topology stays take
    their new parameters too. If the whole model does not gain, even refined, only the better half
    of the changes is made, then a quarter, and so on."""
    least = value + 1e-9 * abs(value)
    kept = [q._replace(best=q.current) for q in fitted if q.current is not None]
    made = _compatible(model.tree, [*chosen, *kept])
    while chosen:
        new = replace_regions(model, made)
        if (reached := config.value(new)) > least:  # as a rule the gains add up
            return new, reached
        new = config.refined(new)
        if (reached := config.value(new)) > least:
            return new, reached
        chosen = made = chosen[: len(chosen) // 2]
    return None


def doubtful_regions(
    support: Callable[[Tree], Floats], rules: SearchRules
) -> Callable[[Tree], Iterator[Region]]:
    """Regions around doubtful inner edges, the most doubtful first: the two ends of the edge, and
    with `rules.wide` also the hidden nodes next to them. Edges without any support join parts
    without dependence, whose place no likelihood determines: they are left out."""

    def regions(tree: Tree) -> Iterator[Region]:
        values, yielded = support(tree), set()
        inner = (tree.edges >= tree.n_observed).all(axis=1)
        doubtful = np.flatnonzero(inner & (values < rules.doubt) & (values > 0))
        order = doubtful[np.argsort(np.abs(values[doubtful] - 0.5), kind="stable")]
        for a, b in tree.edges[order].tolist():
            for radius in range(1 + rules.wide):
                region = region_around(tree, (a, b), radius)
                if region not in yielded and 4 <= len(region.branches) <= MOST_BRANCHES:
                    yielded.add(region)
                    yield region

    return regions


def search_structure(
    structure: Structure, model: TreeModel, config: SearchConfig
) -> tuple[Structure, TreeModel]:
    """A structure and its model after a local search by one criterion.

    An old edge keeps its support; a new one has the weight of the alternatives of its region that
    contain it. Lengths of a changed tree are those of its model."""
    known = _by_split(structure.tree, structure.support)

    def support(tree: Tree) -> Floats:
        return np.array([known.get(key, 0.5) for key in split_keys(tree).tolist()])

    result = search_model(model, config, doubtful_regions(support, config.rules))
    report = [*structure.search, result.values]
    if result.model is model:
        return replace(structure, search=report), model
    errors = _by_split(structure.tree, structure.standard_errors)
    lengths = model_lengths(result.model)
    before = _by_split(structure.tree, structure.tree.lengths)
    keys = split_keys(result.model.tree).tolist()
    for e, key in enumerate(keys):
        if result.model.tree.edges[e].min() in result.model.emissions:
            lengths[e] = before[key]  # the CPT of a single state has no length
    tree = result.model.tree.with_lengths(lengths)
    changed = replace(
        structure,
        tree=tree,
        support=np.array([known.get(key, result.weights.get(key, 1.0)) for key in keys]),
        standard_errors=np.array([errors.get(key, 0.0) for key in keys]),
        search=report,
    )
    return changed, replace(result.model, tree=tree)


def search_tree(
    structure: Structure, model: TreeModel, samples: Samples, config: FitConfig
) -> tuple[Structure, TreeModel]:
    """A local search by likelihood; then, for the most probable tree, by BIC as well."""
    criteria: list[Criterion] = (
        ["likelihood"] if config.tree == "majority" else ["likelihood", "bic"]
    )
    for criterion in criteria:
        search_config = SearchConfig(
            samples, criterion, config.smoothing, config.tol, config.n_jobs
        )
        structure, model = search_structure(structure, model, search_config)
    return structure, model


def _by_split(tree: Tree, values: Floats) -> dict[int, float]:
    """Values of edges, by their splits."""
    return dict(zip(split_keys(tree).tolist(), values.tolist(), strict=True))
