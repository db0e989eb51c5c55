"""Structure meets likelihood: a local search over the doubtful regions of a fitted model.

Regions whose edges are in doubt are cut out with the messages that come into them; other shapes are
fitted to the messages and judged by likelihood or BIC, the ones that look like gaining by the
likelihood of a Gaussian tree. Changes that do not touch each other are made together, and kept only
if the model is better as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.config import FitConfig
from latenttree.engine import parallel
from latenttree.engine.memory import spare
from latenttree.model.emissions import Emission
from latenttree.model.inference import messages
from latenttree.model.likelihood import total_log_likelihood
from latenttree.model.samples import Chunk, Samples
from latenttree.model.tree_model import TreeModel, default_root, normalised
from latenttree.refinement.em import MANY, refine
from latenttree.search.region_patterns import Branches, as_patterns
from latenttree.search.region_topologies import Shape, other_shapes
from latenttree.search.regions import (
    Alternative,
    Region,
    bic,
    branch_correlations,
    cut_out,
    edge_joints,
    fit_region,
    fit_shape,
    region_around,
)
from latenttree.structure.learn import FARTHEST, Structure
from latenttree.tree import Tree
from latenttree.tree.split_keys import BranchKeys, signatures, split_keys

Floats = NDArray[np.float64]
Judge = Literal["likelihood", "bic"]

MAX_SWEEPS = 12
MESSAGE_BYTES = 1 << 29
MOST_BRANCHES = 16
HOPELESS = 6.0
"""A shape that will end so far below the best is not fitted to the end."""

MAX_WORK = 3_000_000
LEAST_REGIONS = 30
"""Regions times samples that a search may look at; the regions that it may look at whatever."""

GLOBAL_STEPS, FEWER_STEPS = 20, 8
"""Steps of refinement after the changes of a sweep; where all samples will refine it again."""

JUDGED = 1 << 15
"""Samples that regions are judged by, at most."""


class Rules(NamedTuple):
    """How eager a search is.

    The structure stage has looked at all distances, so another topology of the same size must be
    clearly likelier (`min_gain`) before it is believed, and only where there is `doubt`. BIC
    decides by itself."""

    min_gain: float  # log-likelihood, or BIC, that a change must gain
    doubt: float  # edges with more support are not looked at
    wide: bool  # whether to cut out the surroundings of an edge as well
    max_regions: int  # looked at in all, the most doubtful ones first


RULES: dict[Judge, Rules] = {
    "likelihood": Rules(2.0, 0.95, False, 400),
    "bic": Rules(0.5, np.inf, True, 4000),  # BIC may drop an edge that is surely there
}


@dataclass(frozen=True, eq=False)
class Searched:
    """A better model; `values` of the judge before every sweep and at the end, never decreasing.

    `weights` maps the split of an inner edge, as `split_keys` has it, to the weight of those ways
    to resolve its region that have it."""

    model: TreeModel
    values: list[float]
    weights: dict[int, float] = field(default_factory=dict)


class _Verdict(NamedTuple):
    """The best shape of a region, what it gains, and its present shape where that was fitted."""

    region: Region
    best: Alternative
    gain: float
    weights: dict[int, float]
    present: Alternative | None = None


@dataclass(frozen=True)
class Searcher:
    """What a search needs besides the model."""

    samples: Samples
    judge: Judge
    smoothing: float = 1.0
    tol: float = 1e-7
    n_jobs: int = 1

    @property
    def rules(self) -> Rules:
        return RULES[self.judge]

    @cached_property
    def some(self) -> Samples:
        """The samples that regions and models are judged by: fewer where all will refine the model
        again."""
        return self.samples.about(JUDGED // 2 if self.again else JUDGED)

    @property
    def again(self) -> bool:
        return len(self.samples.table) >= MANY

    @property
    def most_regions(self) -> int:
        """Regions looked at in all: a region costs as much as there are samples."""
        n = max(len(self.some.table), 1)
        return min(self.rules.max_regions, max(LEAST_REGIONS, int(MAX_WORK / n)))

    def value(self, model: TreeModel) -> float:
        """Log-likelihood, or BIC, of the whole model: larger is better."""
        total = total_log_likelihood(model, self.some, self.n_jobs)
        return total if self.judge == "likelihood" else bic(model, total, self.some.n_samples)

    def score(self, found: Alternative) -> float:
        return found.log_likelihood - self.price(found.shape, found.model.n_states)

    def price(self, shape: Shape, k: int) -> float:
        """What a shape pays for the parameters of its inner edges: nothing, or half the log of n
        each."""
        if self.judge == "likelihood":
            return 0.0
        return 0.5 * shape.n_hidden * k * (k - 1) * float(np.log(self.some.n_samples))

    def refined(self, model: TreeModel) -> TreeModel:
        return refine(
            model,
            self.some,
            max_steps=FEWER_STEPS if self.again else GLOBAL_STEPS,
            tolerance=self.tol,
            smoothing=self.smoothing,
            n_jobs=self.n_jobs,
        ).model


def search(
    model: TreeModel, searcher: Searcher, doubtful: Callable[[Tree], Iterator[Region]]
) -> Searched:
    """Climb from `model` until no doubtful region has a better shape; a changed model is refined,
    unless it is not looked at again and all samples will refine it.

    With judge "likelihood" only shapes with as many hidden nodes compete."""
    values = [searcher.value(model)]
    weights: dict[int, float] = {}
    regions = doubtful(model.tree)
    left = searcher.most_regions
    for _ in range(MAX_SWEEPS):
        looked_at = list(islice(regions, left))
        if not looked_at:
            break
        left -= len(looked_at)
        verdicts = judge_regions(model, looked_at, searcher)
        for verdict in verdicts:
            weights |= verdict.weights
        wanted = [v for v in verdicts if v.gain > searcher.rules.min_gain]
        chosen = _compatible(model.tree, sorted(wanted, key=lambda v: -v.gain))
        better = _improve(model, chosen, verdicts, searcher, values[-1])
        if better is None:
            break
        before, last = model.tree, searcher.again and not left
        model, value = better if last else _settled(*better, searcher)
        values.append(value)
        regions = _again(before, model.tree, doubtful(model.tree), wanted)
    return Searched(model, values, weights)


def _settled(model: TreeModel, value: float, searcher: Searcher) -> tuple[TreeModel, float]:
    """The model refined, where that is better, and its value."""
    new = searcher.refined(model)
    reached = searcher.value(new)
    return (new, reached) if reached > value else (model, value)


def _again(
    before: Tree, after: Tree, regions: Iterator[Region], deferred: list[_Verdict]
) -> Iterator[Region]:
    """Regions with a hidden node that is new, or that was to change but had to wait."""
    old, new = signatures(before), signatures(after)
    waiting = {old[v] for verdict in deferred for v in verdict.region.inside}
    known = set(old.values()) - waiting
    fresh = {v for v, signature in new.items() if signature not in known}
    for r in regions:
        if not fresh.isdisjoint(r.inside) or not fresh.isdisjoint(u for _, u in r.branches):
            yield r


def judge_regions(model: TreeModel, regions: list[Region], searcher: Searcher) -> list[_Verdict]:
    """The best shape of every region, from messages of the model as it is."""
    found: list[_Verdict] = []
    k = int(model.dims[-1])
    room = max(1, spare(MESSAGE_BYTES) // (4 * k * max(len(searcher.some.table), 1)))
    sides = BranchKeys(model.tree)
    while regions:
        batch, edges = _next_batch(regions, model, room)
        regions = regions[len(batch) :]
        heard = _read(model, batch, edges, searcher)

        def work(
            start: int, stop: int, batch: list[Region] = batch, heard: _Heard = heard
        ) -> list[_Verdict]:
            return [_judge(model, r, heard, searcher, sides) for r in batch[start:stop]]

        for part in parallel(work, len(batch), searcher.n_jobs, 1):
            found += part
    return found


def _next_batch(
    regions: list[Region], model: TreeModel, room: int
) -> tuple[list[Region], list[tuple[int, int]]]:
    """As many regions as have room for their messages, and the edges that these come along."""
    edges: dict[tuple[int, int], None] = {}
    batch: list[Region] = []
    for region in regions:
        needed = [(u, v) for v, u in region.branches if sends(model, u)]
        if batch and len(edges) + sum(e not in edges for e in needed) > room:
            break
        edges.update(dict.fromkeys(needed))
        batch.append(region)
    return batch, list(edges)


def sends(model: TreeModel, u: int) -> bool:
    """Whether a neighbour of a region sends a message, and is not known by its codes."""
    return u >= model.tree.n_observed or u in model.emissions


class _Heard(NamedTuple):
    """All samples as regions see them: codes `(c, n)` of some nodes, messages `(n, e, k)` along
    some edges, and where each stands; weights `(n,)`."""

    codes: NDArray[Any]
    row: dict[int, int]
    sent: NDArray[np.float32]
    along: dict[tuple[int, int], int]
    weights: Floats

    def patterns(self, region: Region) -> Branches:
        """What the branches of a region say."""
        is_sent = np.array([(u, v) in self.along for v, u in region.branches])
        place = [self.along.get((u, v), self.row.get(u, -1)) for v, u in region.branches]
        return as_patterns(self.codes, self.sent, self.weights, np.array(place), is_sent)


def _read(
    model: TreeModel, regions: list[Region], edges: list[tuple[int, int]], searcher: Searcher
) -> _Heard:
    """The codes of the observed neighbours of some regions, and the messages along some edges."""
    nodes = sorted({u for r in regions for _, u in r.branches if not sends(model, u)})
    along = [e for e in edges if e[0] >= model.tree.n_observed]
    emitted = [e for e in edges if e[0] < model.tree.n_observed]
    pairs = np.array(along, dtype=np.int64).reshape(-1, 2)
    codes, sent, weights = [], [], []
    for chunk in searcher.some():
        codes.append(_columns(chunk, nodes).T)
        weights.append(np.ones(len(chunk)) if chunk.weights is None else chunk.weights)
        told = [_likelihoods(model.emissions[u], chunk.arrays[u])[:, None] for u, _ in emitted]
        if along:
            evidence = chunk.evidence(model, searcher.n_jobs)
            told.insert(0, messages(model, evidence, pairs, searcher.n_jobs))
        sent.append(_joined(told or [np.zeros((len(chunk), 0, 1), dtype=np.float32)], axis=1))
    return _Heard(
        np.ascontiguousarray(_joined(codes, axis=1)),
        {u: i for i, u in enumerate(nodes)},
        np.ascontiguousarray(_joined(sent)),
        {e: i for i, e in enumerate(along + emitted)},
        np.ascontiguousarray(_joined(weights), dtype=np.float64),
    )


def _columns(chunk: Chunk, nodes: list[int]) -> NDArray[Any]:
    """(n, len(nodes)) the categories of some nodes."""
    if sparse.issparse(chunk.rows):
        return np.asarray(chunk.rows[:, nodes].toarray() != 0).astype(np.uint8)
    return np.asarray(chunk.rows)[:, nodes]


def _likelihoods(emission: Emission, values: Any) -> NDArray[np.float32]:
    """`P(value | state)` `(n, k)`, scaled to a largest entry of 1."""
    logs = emission.log_likelihood(values)
    top = logs.max(axis=1, keepdims=True)
    return np.exp(logs - np.where(np.isfinite(top), top, 0.0)).astype(np.float32)


def _joined(parts: list[Any], axis: int = 0) -> Any:
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=axis)


def _judge(
    model: TreeModel, region: Region, heard: _Heard, searcher: Searcher, sides: BranchKeys
) -> _Verdict:
    shape, small = cut_out(model, region)
    branches = heard.patterns(region)
    k = small.n_states
    size = shape.n_hidden if searcher.judge == "likelihood" else None
    r = branch_correlations(small, branches)
    others = other_shapes(shape, r, float(searcher.some.n_samples * (k - 1)), size)
    if not others:
        return _Verdict(region, Alternative(shape, small, 0.0), 0.0, {})
    tried = [fit_region(small, shape, branches, searcher.smoothing)]
    best = first = searcher.score(tried[0])
    for other in others:
        bar = best + searcher.price(other, k) - HOPELESS
        tried.append(fit_shape(small, other, branches, searcher.smoothing, bar))
        best = max(best, searcher.score(tried[-1]))
    winner = max(tried, key=searcher.score)
    return _Verdict(region, winner, best - first, _weights(sides, region, tried), tried[0])


def _weights(sides: BranchKeys, region: Region, tried: list[Alternative]) -> dict[int, float]:
    """Share of the likelihood of all most resolved shapes that have each split."""
    most = max(t.shape.n_hidden for t in tried)
    full = [t for t in tried if t.shape.n_hidden == most]
    top = max(t.log_likelihood for t in full)
    share = np.exp([t.log_likelihood - top for t in full])
    total: dict[int, float] = {}
    for t, weight in zip(full, share / share.sum(), strict=True):
        for split in t.shape.splits:
            away = [end for b, end in enumerate(region.branches) if split >> b & 1]
            key = sides.together(away)
            total[key] = total.get(key, 0.0) + float(weight)
    return total


def _compatible(tree: Tree, verdicts: list[_Verdict]) -> list[_Verdict]:
    """Changes that do not touch each other, the first ones first."""
    touched: set[int] = set()
    chosen = []
    for verdict in verdicts:
        region = verdict.region
        nodes = {*region.inside, *(u for _, u in region.branches if u >= tree.n_observed)}
        if touched.isdisjoint(nodes):
            touched |= nodes
            chosen.append(verdict)
    return chosen


def _improve(
    model: TreeModel,
    chosen: list[_Verdict],
    fitted: list[_Verdict],
    searcher: Searcher,
    value: float,
) -> tuple[TreeModel, float] | None:
    """The model with all changes made, or with fewer of them, if it is better as a whole; with all
    of them, regions around that keep their shape take the parameters of its fit as well."""
    least = value + 1e-9 * abs(value)
    kept = [v._replace(best=v.present) for v in fitted if v.present is not None]
    made = _compatible(model.tree, [*chosen, *kept])
    while chosen:
        new = replace_regions(model, made)
        if (reached := searcher.value(new)) > least:  # as a rule the gains add up
            return new, reached
        new = searcher.refined(new)
        if (reached := searcher.value(new)) > least:
            return new, reached
        chosen = made = chosen[: len(chosen) // 2]
    return None


def replace_regions(model: TreeModel, verdicts: list[Any]) -> TreeModel:
    """The whole model with some regions replaced by their best alternatives."""
    p = model.tree.n_observed
    emissions = dict(model.emissions)
    gone = {v for verdict in verdicts for v in verdict.region.inside}
    joints: dict[tuple[int, int], Floats] = {}
    for v, u in enumerate(model.parents.tolist()):
        if u >= 0 and v not in gone and u not in gone:
            joints[v, u] = model.tables[v] * model.marginals[u]
    fresh = model.tree.n_nodes
    for verdict in verdicts:
        small, names = verdict.best.model, [u for _, u in verdict.region.branches]
        n_hidden = len(small.parent)
        names += range(fresh, fresh + n_hidden)
        fresh += n_hidden
        for a, b, joint in edge_joints(small):
            u = names[a]
            if u in emissions:  # in its new place a mixture of what it was
                emissions[u] = emissions[u].mixed(normalised(joint))
                joint = joint.sum(axis=0, keepdims=True)
            joints[u, names[b]] = joint
    return from_edge_joints(model.tree.observed_names, joints, p, emissions)


def from_edge_joints(
    observed: tuple[str, ...],
    joints: dict[tuple[int, int], Floats],
    p: int,
    emissions: dict[int, Emission] | None = None,
) -> TreeModel:
    """The canonical model with the given joints on its edges; hidden nodes may have any numbers."""
    edges = np.array(list(joints), dtype=np.int64)
    used, compact = np.unique(np.concatenate([np.arange(p), edges.ravel()]), return_inverse=True)
    names = observed + tuple(f"hidden {i}" for i in range(len(used) - p))
    compact = compact[p:].reshape(-1, 2)
    tree, number = Tree(names, p, compact, np.zeros(len(compact))).renumbered()
    root = default_root(tree)
    (a, b), parents = number[compact].T, tree.rooted(root).parents
    down = (parents[a] == b).tolist()
    turned = [j if ok else j.T for j, ok in zip(joints.values(), down, strict=True)]
    tables: list[Any] = [None] * tree.n_nodes
    priors = []
    children = np.where(down, a, b).tolist()
    for v, joint, table in zip(children, turned, _all_normalised(turned), strict=True):
        tables[v] = table
        if parents[v] == root:
            priors.append(joint.sum(axis=0) / joint.sum())
    tables[root] = normalised(np.mean(priors, axis=0)[:, None])
    moved = {int(number[v]): emission for v, emission in (emissions or {}).items()}
    return TreeModel.trusted(tree, root, tables, moved)


def _all_normalised(joints: list[Floats]) -> list[Floats]:
    """Columns of all tables divided by their sums, tables of one shape together; read-only."""
    alike: dict[tuple[int, ...], list[int]] = {}
    for e, joint in enumerate(joints):
        alike.setdefault(joint.shape, []).append(e)
    found: list[Any] = [None] * len(joints)
    for edges in alike.values():
        stack = np.stack([joints[e] for e in edges])
        sums = stack.sum(axis=1, keepdims=True)
        stack = np.where(sums > 0, stack / np.where(sums > 0, sums, 1.0), 1 / stack.shape[1])
        stack.flags.writeable = False
        for e, table in zip(edges, stack, strict=True):
            found[e] = table
    return found


def doubtful_regions(
    support: Callable[[Tree], Floats], rules: Rules
) -> Callable[[Tree], Iterator[Region]]:
    """Regions around doubtful inner edges, the most doubtful first: the two ends of the edge, and
    with `rules.wide` also the hidden nodes around them. Edges without any support join parts that
    show no dependence: no likelihood tells where they belong."""

    def regions(tree: Tree) -> Iterator[Region]:
        values, seen = support(tree), set()
        inner = (tree.edges >= tree.n_observed).all(axis=1)
        doubtful = np.flatnonzero(inner & (values < rules.doubt) & (values > 0))
        order = doubtful[np.argsort(np.abs(values[doubtful] - 0.5), kind="stable")]
        for a, b in tree.edges[order].tolist():
            for radius in range(1 + rules.wide):
                region = region_around(tree, (a, b), radius)
                if region not in seen and 4 <= len(region.branches) <= MOST_BRANCHES:
                    seen.add(region)
                    yield region

    return regions


def search_structure(
    structure: Structure, model: TreeModel, searcher: Searcher
) -> tuple[Structure, TreeModel]:
    """A learned structure, and its model, with the doubtful regions settled by likelihood.

    An edge that was there keeps its support; a new one has the weight of the alternatives of its
    region that have it. Lengths of a changed tree are those of its model."""
    known = _by_split(structure.tree, structure.support)

    def support(tree: Tree) -> Floats:
        return np.array([known.get(key, 0.5) for key in split_keys(tree).tolist()])

    found = search(model, searcher, doubtful_regions(support, searcher.rules))
    report = [*structure.search, found.values]
    if found.model is model:
        return replace(structure, search=report), model
    errors = _by_split(structure.tree, structure.standard_errors)
    lengths = model_lengths(found.model)
    before = _by_split(structure.tree, structure.tree.lengths)
    keys = split_keys(found.model.tree).tolist()
    for e, key in enumerate(keys):
        if found.model.tree.edges[e].min() in found.model.emissions:
            lengths[e] = before[key]  # a table of one state tells no length
    tree = found.model.tree.with_lengths(lengths)
    changed = replace(
        structure,
        tree=tree,
        support=np.array([known.get(key, found.weights.get(key, 1.0)) for key in keys]),
        standard_errors=np.array([errors.get(key, 0.0) for key in keys]),
        search=report,
    )
    return changed, replace(found.model, tree=tree)


def search_tree(
    structure: Structure, model: TreeModel, samples: Samples, config: FitConfig
) -> tuple[Structure, TreeModel]:
    """Doubtful regions by likelihood; then, for the most probable tree, by BIC as well."""
    judges: tuple[Judge, ...] = (
        ("likelihood",) if config.tree == "majority" else ("likelihood", "bic")
    )
    for judge in judges:
        searcher = Searcher(samples, judge, config.smoothing, config.tol, config.n_jobs)
        structure, model = search_structure(structure, model, searcher)
    return structure, model


def model_lengths(model: TreeModel) -> Floats:
    """Information length of every edge, `-sum log s_i` over its canonical correlations."""
    rank = int(model.dims[model.tree.n_observed :].min(initial=2))
    joints = [model.joint(a, b) for a, b in model.tree.edges.tolist()]
    lengths = np.empty(len(joints))
    by_shape: dict[tuple[int, ...], list[int]] = {}
    for e, joint in enumerate(joints):
        by_shape.setdefault(joint.shape, []).append(e)
    for edges in by_shape.values():
        lengths[edges] = information_lengths(np.stack([joints[e] for e in edges]), rank)
    return np.minimum(lengths, FARTHEST)


def information_lengths(joints: Floats, rank: int) -> Floats:
    """`simulation.information_length` of many joints `(n, a, b)`."""
    rows, columns = joints.sum(axis=2, keepdims=True), joints.sum(axis=1, keepdims=True)
    scale = np.where(rows > 0, rows, 1) * np.where(columns > 0, columns, 1)
    s = np.linalg.svd(joints / np.sqrt(scale), compute_uv=False)[:, :rank]
    return np.asarray(-np.log(np.maximum(s, 1e-300)).sum(axis=1))


def _by_split(tree: Tree, values: Floats) -> dict[int, float]:
    return dict(zip(split_keys(tree).tolist(), values.tolist(), strict=True))
