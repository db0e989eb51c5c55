"""Structure meets likelihood: a local search over the doubtful regions of a fitted model.

Regions whose edges are in doubt are cut out with the messages that come into them; other shapes are
fitted to the messages and judged by likelihood or BIC, the ones that look like gaining by the
likelihood of a Gaussian tree. Changes that do not touch each other are made together, and kept only
if the model is better as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.emissions import Emission
from latenttree.engine import parallel
from latenttree.fitting import Options
from latenttree.inference import messages
from latenttree.model import TreeModel, normalised
from latenttree.refine import MANY, refine, total_log_likelihood
from latenttree.regions import (
    Alternative,
    Region,
    bic,
    branch_correlations,
    cut_out,
    fit_region,
    fit_shape,
    incoming,
    other_shapes,
    present_shape,
    region_around,
)
from latenttree.samples import Samples
from latenttree.small_em import as_branches
from latenttree.structure import FARTHEST, Structure
from latenttree.tree import Tree

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

    `weights` maps the split of an inner edge, as `Tree.splits` has it, to the weight of those ways
    to resolve its region that have it."""

    model: TreeModel
    values: list[float]
    weights: dict[bytes, float] = field(default_factory=dict)


class _Verdict(NamedTuple):
    region: Region
    best: Alternative
    gain: float
    weights: dict[bytes, float]


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
        return found.log_likelihood - self.price(found.model.n_parameters)

    def price(self, n_parameters: int) -> float:
        """What a model pays for its parameters: nothing, or half the log of n each."""
        if self.judge == "likelihood":
            return 0.0
        return 0.5 * n_parameters * float(np.log(self.some.n_samples))

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
    model: TreeModel, searcher: Searcher, doubtful: Callable[[Tree], list[Region]]
) -> Searched:
    """Climb from `model` until no doubtful region has a better shape; a changed model is refined.

    With judge "likelihood" only shapes with as many hidden nodes compete."""
    values = [searcher.value(model)]
    weights: dict[bytes, float] = {}
    regions = doubtful(model.tree)
    left = searcher.most_regions
    for _ in range(MAX_SWEEPS):
        regions = regions[:left]
        if not regions:
            break
        left -= len(regions)
        verdicts = judge_regions(model, regions, searcher)
        for verdict in verdicts:
            weights |= verdict.weights
        wanted = [v for v in verdicts if v.gain > searcher.rules.min_gain]
        better = _improve(model, _compatible(model.tree, wanted), searcher, values[-1])
        if better is None:
            break
        before, (model, value) = model.tree, _settled(*better, searcher)
        values.append(value)
        regions = _again(before, model.tree, doubtful(model.tree), wanted)
    return Searched(model, values, weights)


def _settled(model: TreeModel, value: float, searcher: Searcher) -> tuple[TreeModel, float]:
    """The model refined, where that is better, and its value."""
    new = searcher.refined(model)
    reached = searcher.value(new)
    return (new, reached) if reached > value else (model, value)


def _again(
    before: Tree, after: Tree, regions: list[Region], deferred: list[_Verdict]
) -> list[Region]:
    """Regions with a hidden node that is new, or that was to change but had to wait."""
    old, new = signatures(before), signatures(after)
    waiting = {old[v] for verdict in deferred for v in verdict.region.inside}
    known = set(old.values()) - waiting
    fresh = {v for v, signature in new.items() if signature not in known}
    return [
        r
        for r in regions
        if not fresh.isdisjoint(r.inside) or not fresh.isdisjoint(u for _, u in r.branches)
    ]


def signatures(tree: Tree) -> dict[int, frozenset[bytes]]:
    """Every hidden node by the splits of its edges, which renumbering does not change."""
    splits = [row.tobytes() for row in tree.splits()]
    around: dict[int, set[bytes]] = {v: set() for v in range(tree.n_observed, tree.n_nodes)}
    for split, ends in zip(splits, tree.edges.tolist(), strict=True):
        for v in ends:
            if v >= tree.n_observed:
                around[v].add(split)
    return {v: frozenset(found) for v, found in around.items()}


def judge_regions(model: TreeModel, regions: list[Region], searcher: Searcher) -> list[_Verdict]:
    """The best shape of every region, from messages of the model as it is."""
    found: list[_Verdict] = []
    k = int(model.dims[-1])
    room = max(1, MESSAGE_BYTES // (4 * k * max(len(searcher.some.table), 1)))
    sides = _Sides(model.tree)
    while regions:
        batch, edges = _next_batch(regions, model, room)
        regions = regions[len(batch) :]
        heard = _read(model, edges, searcher)

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
    p = model.tree.n_observed
    edges: dict[tuple[int, int], None] = {}
    batch: list[Region] = []
    for region in regions:
        needed = [(u, v) for v, u in region.branches if u >= p or u in model.emissions]
        if batch and len(edges | dict.fromkeys(needed)) > room:
            break
        edges |= dict.fromkeys(needed)
        batch.append(region)
    return batch, list(edges)


class _Heard(NamedTuple):
    """All samples as regions see them: codes `(n, p)`, messages `(n, k)` by edge, weights."""

    codes: NDArray[Any]
    sent: dict[tuple[int, int], NDArray[np.float32]]
    weights: Floats | None


def _read(model: TreeModel, edges: list[tuple[int, int]], searcher: Searcher) -> _Heard:
    """All codes, and the messages along some edges."""
    along = [e for e in edges if e[0] >= model.tree.n_observed]
    codes, weights = [], []
    sent: dict[tuple[int, int], list[NDArray[np.float32]]] = {e: [] for e in edges}
    pairs = np.array(along, dtype=np.int64).reshape(-1, 2)
    for chunk in searcher.some():
        codes.append(chunk.codes)
        weights.append(chunk.weights)
        found = messages(model, chunk.evidence(model, searcher.n_jobs), pairs, searcher.n_jobs)
        for i, edge in enumerate(along):
            sent[edge].append(found[:, i])
        for u, v in edges:
            if u in model.emissions:
                sent[u, v].append(_likelihoods(model.emissions[u], chunk.arrays[u]))
    return _Heard(
        _joined(codes),
        {edge: np.ascontiguousarray(_joined(parts)) for edge, parts in sent.items()},
        None if weights[0] is None else _joined(weights),
    )


def _likelihoods(emission: Emission, values: Any) -> NDArray[np.float32]:
    """`P(value | state)` `(n, k)`, scaled to a largest entry of 1."""
    logs = emission.log_likelihood(values)
    top = logs.max(axis=1, keepdims=True)
    return np.exp(logs - np.where(np.isfinite(top), top, 0.0)).astype(np.float32)


def _joined(parts: list[Any]) -> Any:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _judge(
    model: TreeModel, region: Region, heard: _Heard, searcher: Searcher, sides: _Sides
) -> _Verdict:
    small = cut_out(model, region)
    evidence = incoming(region, heard.codes, heard.sent)
    shape = present_shape(model.tree, region)
    rank, m = int(model.dims[-1]) - 1, len(region.branches)
    size = len(region.inside) if searcher.judge == "likelihood" else None
    r = branch_correlations(small, evidence, heard.weights)
    others = other_shapes(shape, r, float(searcher.some.n_samples * rank), size)
    if not others:
        return _Verdict(region, Alternative(shape, small, 0.0), 0.0, {})
    branches = as_branches(evidence, rank + 1, heard.weights)
    tried = [fit_region(small, shape, branches, searcher.smoothing)]
    best = first = searcher.score(tried[0])
    for other in others:
        more = (other.n_hidden(m) - shape.n_hidden(m)) * rank * (rank + 1)
        bar = best + searcher.price(small.n_parameters + more) - HOPELESS
        tried.append(fit_shape(small, other, branches, searcher.smoothing, bar))
        best = max(best, searcher.score(tried[-1]))
    winner = max(tried, key=searcher.score)
    return _Verdict(region, winner, best - first, _weights(sides, region, tried))


class _Sides:
    """Observed nodes behind every directed edge of a tree, as bits in the order of `splits`."""

    def __init__(self, tree: Tree) -> None:
        self.n_bytes = (tree.n_observed + 7) // 8
        packed = np.packbits(np.ones(tree.n_observed, dtype=np.uint8)).tobytes()
        self.everything = int.from_bytes(packed, "big")
        self.first = 1 << (8 * self.n_bytes - 1)  # node 0
        self.parents = tree.rooted(0).parents
        below = (int.from_bytes(row.tobytes(), "big") for row in tree.splits())
        ends = tree.edges.tolist()
        self.below = {
            (b if self.parents[b] == a else a): bits
            for (a, b), bits in zip(ends, below, strict=True)
        }

    def behind(self, v: int, u: int) -> int:
        """Observed nodes on the side of `u` when its edge to `v` is cut."""
        if self.parents[u] == v:
            return self.below[u]
        return self.everything ^ self.below[v]

    def row(self, bits: int) -> bytes:
        """A set of observed nodes as the row of `splits` that parts it from the rest."""
        away = self.everything ^ bits if bits & self.first else bits
        return away.to_bytes(self.n_bytes, "big")


def _weights(sides: _Sides, region: Region, tried: list[Alternative]) -> dict[bytes, float]:
    """Share of the likelihood of all most resolved shapes that have each split."""
    most = max(len(t.shape.edges) for t in tried)
    full = [t for t in tried if len(t.shape.edges) == most]
    top = max(t.log_likelihood for t in full)
    share = np.exp([t.log_likelihood - top for t in full])
    leaves = [sides.behind(v, u) for v, u in region.branches]
    total: dict[bytes, float] = {}
    for t, weight in zip(full, share / share.sum(), strict=True):
        for split in _inner_splits(t.model.tree, leaves, sides):
            total[split] = total.get(split, 0.0) + float(weight)
    return total


def _inner_splits(small: Tree, leaves: list[int], sides: _Sides) -> list[bytes]:
    """The splits of the inner edges of a region's tree."""
    m = small.n_observed
    parents, order = small.rooted(0)
    below = [*leaves, *[0] * small.n_hidden]
    found = []
    for v in order[:0:-1].tolist():
        if v >= m and parents[v] >= m:
            found.append(sides.row(below[v]))
        below[parents[v]] |= below[v]
    return found


def _compatible(tree: Tree, verdicts: list[_Verdict]) -> list[_Verdict]:
    """Changes that do not touch each other, best first."""
    touched: set[int] = set()
    chosen = []
    for verdict in sorted(verdicts, key=lambda v: -v.gain):
        region = verdict.region
        nodes = {*region.inside, *(u for _, u in region.branches if u >= tree.n_observed)}
        if touched.isdisjoint(nodes):
            touched |= nodes
            chosen.append(verdict)
    return chosen


def _improve(
    model: TreeModel, chosen: list[_Verdict], searcher: Searcher, value: float
) -> tuple[TreeModel, float] | None:
    """The model with all changes made, or with fewer of them, if it is better as a whole."""
    least = value + 1e-9 * abs(value)
    while chosen:
        new = replace_regions(model, chosen)
        if (reached := searcher.value(new)) > least:  # as a rule the gains add up
            return new, reached
        new = searcher.refined(new)
        if (reached := searcher.value(new)) > least:
            return new, reached
        chosen = chosen[: len(chosen) // 2]
    return None


def replace_regions(model: TreeModel, verdicts: list[Any]) -> TreeModel:
    """The whole model with some regions replaced by their best alternatives."""
    p = model.tree.n_observed
    emissions = dict(model.emissions)
    gone = {v for verdict in verdicts for v in verdict.region.inside}
    joints: dict[tuple[int, int], Floats] = {}
    for a, b in model.tree.edges.tolist():
        if a not in gone and b not in gone:
            joints[a, b] = model.joint(a, b)
    fresh = model.tree.n_nodes
    for verdict in verdicts:
        small = verdict.best.model
        m = len(verdict.region.branches)
        names = [u for _, u in verdict.region.branches]
        names += [fresh + i for i in range(small.tree.n_hidden)]
        fresh += small.tree.n_hidden
        for a, b in small.tree.edges.tolist():
            u = names[min(a, b)]
            joint = small.joint(min(a, b), max(a, b))
            if u in emissions:  # in its new place a mixture of what it was
                emissions[u] = emissions[u].mixed(normalised(joint))
                joint = joint.sum(axis=0, keepdims=True)
            joints[u, names[max(a, b)]] = joint
        assert len(names) == m + small.tree.n_hidden
    return from_edge_joints(model.tree.observed_names, joints, p, emissions)


def from_edge_joints(
    observed: tuple[str, ...],
    joints: dict[tuple[int, int], Floats],
    p: int,
    emissions: dict[int, Emission] | None = None,
) -> TreeModel:
    """The canonical model with the given joints on its edges; hidden nodes may have any numbers."""
    edges = np.array(list(joints), dtype=np.int64)
    used = np.unique(edges[edges >= p])
    place = {v: v for v in range(p)} | {int(v): p + i for i, v in enumerate(used)}
    names = observed + tuple(f"hidden {i}" for i in range(len(used)))
    compact = np.array([[place[a], place[b]] for a, b in joints], dtype=np.int64)
    tree = Tree(names, p, compact, np.zeros(len(compact)))
    return TreeModel.from_joints(tree, list(joints.values()), emissions=emissions).canonical()


def doubtful_regions(
    support: Callable[[Tree], Floats], rules: Rules
) -> Callable[[Tree], list[Region]]:
    """Regions around doubtful inner edges, the most doubtful first: the two ends of the edge, and
    with `rules.wide` also the hidden nodes around them. Edges without any support join parts that
    show no dependence: no likelihood tells where they belong."""

    def regions(tree: Tree) -> list[Region]:
        values = support(tree)
        inner = (tree.edges >= tree.n_observed).all(axis=1)
        doubtful = np.flatnonzero(inner & (values < rules.doubt) & (values > 0))
        order = doubtful[np.argsort(np.abs(values[doubtful] - 0.5), kind="stable")]
        found: dict[Region, None] = {}
        for a, b in tree.edges[order].tolist():
            for radius in range(1 + rules.wide):
                found[region_around(tree, (a, b), radius)] = None
        return [r for r in found if 4 <= len(r.branches) <= MOST_BRANCHES]

    return regions


def search_structure(
    structure: Structure, model: TreeModel, searcher: Searcher
) -> tuple[Structure, TreeModel]:
    """A learned structure, and its model, with the doubtful regions settled by likelihood.

    An edge that was there keeps its support; a new one has the weight of the alternatives of its
    region that have it. Lengths of a changed tree are those of its model."""
    known = _by_split(structure.tree, structure.support)

    def support(tree: Tree) -> Floats:
        return np.array([known.get(row.tobytes(), 0.5) for row in tree.splits()])

    found = search(model, searcher, doubtful_regions(support, searcher.rules))
    report = [*structure.search, found.values]
    if found.model is model:
        return replace(structure, search=report), model
    errors = _by_split(structure.tree, structure.standard_errors)
    lengths = model_lengths(found.model)
    before = _by_split(structure.tree, structure.tree.lengths)
    for e, row in enumerate(found.model.tree.splits()):
        if found.model.tree.edges[e].min() in found.model.emissions:
            lengths[e] = before[row.tobytes()]  # a table of one state tells no length
    tree = found.model.tree.with_lengths(lengths)
    rows = [row.tobytes() for row in tree.splits()]
    changed = replace(
        structure,
        tree=tree,
        support=np.array([known.get(row, found.weights.get(row, 1.0)) for row in rows]),
        standard_errors=np.array([errors.get(row, 0.0) for row in rows]),
        search=report,
    )
    return changed, replace(found.model, tree=tree)


def settle(
    structure: Structure,
    model: TreeModel,
    samples: Samples,
    options: Options,
    tree: Literal["majority", "most_probable"],
    n_jobs: int,
) -> tuple[Structure, TreeModel]:
    """Doubtful regions by likelihood; then, for the most probable tree, by BIC as well."""
    judges: tuple[Judge, ...] = ("likelihood",) if tree == "majority" else ("likelihood", "bic")
    for judge in judges:
        searcher = Searcher(
            samples,
            judge,
            smoothing=options.smoothing,
            tol=options.tol,
            n_jobs=n_jobs,
        )
        structure, model = search_structure(structure, model, searcher)
    return structure, model


def in_doubt(support: Floats, tree: Literal["majority", "most_probable"] | None) -> bool:
    """Whether a search for this tree would look at some edge; None for no search."""
    if tree is None:
        return False
    doubt = RULES["likelihood" if tree == "majority" else "bic"].doubt
    return bool(((support > 0) & (support < doubt)).any())


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


def _by_split(tree: Tree, values: Floats) -> dict[bytes, float]:
    return {row.tobytes(): x for row, x in zip(tree.splits(), values.tolist(), strict=True)}
