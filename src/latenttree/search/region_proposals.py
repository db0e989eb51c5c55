"""The best topology of every region, from the messages into it.

The topologies of largest Gaussian likelihood are fitted to the messages by EM and compared by
likelihood or BIC. The messages do not depend on the region, so they are computed once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.engine import parallel
from latenttree.engine.memory import spare
from latenttree.model.emissions import Emission
from latenttree.model.inference import messages
from latenttree.model.samples import Chunk, evidence_of
from latenttree.model.tree_model import TreeModel
from latenttree.search.region_patterns import Branches, as_patterns
from latenttree.search.region_topologies import other_topologies
from latenttree.search.regions import (
    Alternative,
    Region,
    branch_correlations,
    cut_out,
    fit_region,
    fit_topology,
)
from latenttree.search.search_config import SearchConfig
from latenttree.tree.split_keys import BranchKeys

Floats = NDArray[np.float64]

MESSAGE_BYTES = 1 << 29
"""Memory for the messages of one batch of regions."""

HOPELESS = 6.0
"""A fit that will end this much log-likelihood below the best is stopped early."""


class Proposal(NamedTuple):
    """The best topology of a region.

    Attributes
    ----------
    gain : criterion gained over the current topology.
    weights : see `SearchResult`.
    current : the current topology as fitted; None where there was nothing to compare it with.
    """

    region: Region
    best: Alternative
    gain: float
    weights: dict[int, float]
    current: Alternative | None = None


def propose_changes(
    model: TreeModel, regions: list[Region], config: SearchConfig
) -> list[Proposal]:
    """The best topology of every region, given the messages of the current model.

    Regions are processed in batches whose messages fit into `MESSAGE_BYTES`."""
    proposals: list[Proposal] = []
    n_states = int(model.dims[-1])
    room = max(1, spare(MESSAGE_BYTES) // (4 * n_states * max(len(config.scored_samples.table), 1)))
    sides = BranchKeys(model.tree)
    while regions:
        batch, edges = _next_batch(regions, model, room)
        regions = regions[len(batch) :]
        evidence = read_evidence(model, batch, edges, config)

        def work(
            start: int, stop: int, batch: list[Region] = batch, evidence: RegionEvidence = evidence
        ) -> list[Proposal]:
            return [_propose(model, r, evidence, config, sides) for r in batch[start:stop]]

        for part in parallel(work, len(batch), config.n_jobs, 1):
            proposals += part
    return proposals


def _next_batch(
    regions: list[Region], model: TreeModel, room: int
) -> tuple[list[Region], list[tuple[int, int]]]:
    """As many regions as need at most `room` messages, and the directed edges of these."""
    edges: dict[tuple[int, int], None] = {}
    batch: list[Region] = []
    for region in regions:
        needed = [(u, v) for v, u in region.branches if sends_message(model, u)]
        if batch and len(edges) + sum(e not in edges for e in needed) > room:
            break
        edges.update(dict.fromkeys(needed))
        batch.append(region)
    return batch, list(edges)


def sends_message(model: TreeModel, u: int) -> bool:
    """Whether the evidence behind a neighbour of a region is a message, and not its codes."""
    return u >= model.tree.n_observed or u in model.emissions


class RegionEvidence(NamedTuple):
    """The evidence of all samples on the borders of some regions.

    Attributes
    ----------
    codes, row : (c, n) states of observed nodes; the row of each node.
    messages, place : (n, e, n_states) messages along directed edges; the place of each edge.
    weights : (n,) sample weights.
    """

    codes: NDArray[Any]
    row: dict[int, int]
    messages: NDArray[np.float32]
    place: dict[tuple[int, int], int]
    weights: Floats

    def patterns(self, region: Region) -> Branches:
        """The evidence of the branches of a region, as patterns."""
        is_message = np.array([(u, v) in self.place for v, u in region.branches])
        source = [self.place.get((u, v), self.row.get(u, -1)) for v, u in region.branches]
        return as_patterns(self.codes, self.messages, self.weights, np.array(source), is_message)


def read_evidence(
    model: TreeModel, regions: list[Region], edges: list[tuple[int, int]], config: SearchConfig
) -> RegionEvidence:
    """The codes of the observed neighbours of some regions, and the messages along some edges."""
    nodes = sorted({u for r in regions for _, u in r.branches if not sends_message(model, u)})
    along = [e for e in edges if e[0] >= model.tree.n_observed]
    emitted = [e for e in edges if e[0] < model.tree.n_observed]
    pairs = np.array(along, dtype=np.int64).reshape(-1, 2)
    codes, incoming, weights = [], [], []
    for chunk in config.scored_samples():
        codes.append(_columns(chunk, nodes).T)
        weights.append(np.ones(len(chunk)) if chunk.weights is None else chunk.weights)
        parts = [_likelihoods(model.emissions[u], chunk.arrays[u])[:, None] for u, _ in emitted]
        if along:
            evidence = evidence_of(chunk, model, config.n_jobs)
            parts.insert(0, messages(model, evidence, pairs, config.n_jobs))
        incoming.append(_joined(parts or [np.zeros((len(chunk), 0, 1), dtype=np.float32)], axis=1))
    return RegionEvidence(
        np.ascontiguousarray(_joined(codes, axis=1)),
        {u: i for i, u in enumerate(nodes)},
        np.ascontiguousarray(_joined(incoming)),
        {e: i for i, e in enumerate(along + emitted)},
        np.ascontiguousarray(_joined(weights), dtype=np.float64),
    )


def _columns(chunk: Chunk, nodes: list[int]) -> NDArray[Any]:
    """(n, len(nodes)) the categories of some nodes."""
    if sparse.issparse(chunk.rows):
        return np.asarray(chunk.rows[:, nodes].toarray() != 0).astype(np.uint8)
    return np.asarray(chunk.rows)[:, nodes]


def _likelihoods(emission: Emission, values: Any) -> NDArray[np.float32]:
    """`P(value | state)` `(n, n_states)`, scaled to a largest entry of 1."""
    logs = emission.log_likelihood(values)
    top = logs.max(axis=1, keepdims=True)
    return np.exp(logs - np.where(np.isfinite(top), top, 0.0)).astype(np.float32)


def _joined(parts: list[Any], axis: int = 0) -> Any:
    """Arrays concatenated; a single one is not copied."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=axis)


def _propose(
    model: TreeModel,
    region: Region,
    evidence: RegionEvidence,
    config: SearchConfig,
    sides: BranchKeys,
) -> Proposal:
    """The best topology of one region."""
    topology, small = cut_out(model, region)
    branches = evidence.patterns(region)
    n_states = small.n_states
    size = topology.n_hidden if config.criterion == "likelihood" else None
    r = branch_correlations(small, branches)
    others = other_topologies(
        topology, r, float(config.scored_samples.n_samples * (n_states - 1)), size
    )
    if not others:
        return Proposal(region, Alternative(topology, small, 0.0), 0.0, {})
    tried = [fit_region(small, topology, branches, config.smoothing)]
    best = first = config.score(tried[0])
    for other in others:
        bar = best + config.penalty(other, n_states) - HOPELESS
        tried.append(fit_topology(small, other, branches, config.smoothing, bar))
        best = max(best, config.score(tried[-1]))
    winner = max(tried, key=config.score)
    return Proposal(region, winner, best - first, _weights(sides, region, tried), tried[0])


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
