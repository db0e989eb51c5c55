"""Regions of a tree, and the evidence of all samples on their borders.

The likelihood of a sample depends on what is outside a region only through the messages into it,
which do not depend on the region.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.chunk import Chunk
from latenttree.model.emissions import Emission
from latenttree.model.samples import Samples, evidence_of
from latenttree.model.tree_model import TreeModel
from latenttree.tree import Tree

Floats = NDArray[np.float64]

MAX_BRANCHES = 8


class Region(NamedTuple):
    """Hidden nodes `inside`, and the `(inside, outside)` edges where branches begin."""

    inside: tuple[int, ...]
    branches: tuple[tuple[int, int], ...]


def region_around(
    tree: Tree, centre: Sequence[int], radius: int, max_branches: int = MAX_BRANCHES
) -> Region:
    """The hidden nodes within `radius` steps of `centre`, as long as the region has at most
    `max_branches` branches."""
    inside = list(centre)
    ring = list(centre)
    count = sum(len(tree.neighbors(v)) for v in inside) - 2 * (len(inside) - 1)
    for _ in range(radius):
        near = {u for v in ring for u in tree.neighbors(v)} - set(inside)
        ring = []
        for u in sorted(int(u) for u in near if u >= tree.n_observed):
            if count + len(tree.neighbors(u)) - 2 <= max_branches:
                count += len(tree.neighbors(u)) - 2
                inside.append(u)
                ring.append(u)
    members = set(inside)
    branches = [
        (v, int(u)) for v in inside for u in sorted(tree.neighbors(v)) if int(u) not in members
    ]
    return Region(tuple(inside), tuple(branches))


def sends_message(model: TreeModel, u: int) -> bool:
    """Whether the evidence behind a neighbour of a region is a message, and not its codes."""
    return u >= model.tree.n_observed or u in model.emissions


class ChunkEvidence(NamedTuple):
    """The evidence of some samples on the borders of some regions.

    Attributes
    ----------
    codes : (c, n) categories of observed nodes, -1 where unknown.
    messages : (n, e, n_states) messages along directed edges, with a largest entry of 1.
    values : the values of nodes with emissions.
    weights : (n,) sample weights.
    """

    codes: NDArray[Any]
    messages: NDArray[np.float32]
    values: Mapping[int, Any]
    weights: Floats


class RegionEvidence(NamedTuple):
    """The evidence of all samples on the borders of some regions, by chunks of samples; the row of
    each observed node among the codes, and the place of each directed edge among the messages."""

    chunks: list[ChunkEvidence]
    row: dict[int, int]
    place: dict[tuple[int, int], int]


@dataclass(frozen=True, eq=False)
class GatherEvidence:
    """The pass that brings home the evidence on the borders of regions.

    Attributes
    ----------
    nodes, edges : the observed nodes whose categories are needed, and the directed edges along
        which messages are; those of nodes with emissions are the likelihoods of their values.
    valued : nodes with emissions whose values are needed.
    every : one of so many samples is read.
    """

    model: TreeModel
    nodes: list[int]
    edges: list[tuple[int, int]]
    valued: list[int]
    every: int = 1

    def start(self) -> list[ChunkEvidence]:
        """No samples."""
        return []

    def add(self, total: list[ChunkEvidence], chunk: Chunk, n_jobs: int = 1) -> None:
        """Append the evidence of a chunk."""
        if self.every > 1:
            chunk = chunk.take(slice(-chunk.start % self.every, None, self.every))
        weights = np.ones(len(chunk)) if chunk.weights is None else chunk.weights
        values = {u: chunk.arrays[u] for u in self.valued}
        total.append(
            ChunkEvidence(self._codes(chunk), self._messages(chunk, n_jobs), values, weights)
        )

    def _codes(self, chunk: Chunk) -> NDArray[Any]:
        if sparse.issparse(chunk.rows):
            some = np.asarray(chunk.rows[:, self.nodes].toarray() != 0).astype(np.uint8)
        else:
            some = np.asarray(chunk.rows)[:, self.nodes]
        return some.T

    def _messages(self, chunk: Chunk, n_jobs: int) -> NDArray[np.float32]:
        p = self.model.tree.n_observed
        inner = np.array([e for e in self.edges if e[0] >= p], dtype=np.int64).reshape(-1, 2)
        emitted = [u for u, _ in self.edges if u < p]
        parts = [_likelihoods(self.model.emissions[u], chunk.arrays[u])[:, None] for u in emitted]
        if len(inner):
            evidence = evidence_of(chunk, self.model, n_jobs)
            parts.insert(0, self.model.messages(evidence, inner, n_jobs))
        return concatenated(parts or [np.zeros((len(chunk), 0, 1), dtype=np.float32)], axis=1)


def gather_evidence(
    model: TreeModel,
    regions: Iterable[Region],
    samples: Samples,
    emissions_change: bool = False,
    every: int = 1,
    n_jobs: int = 1,
) -> RegionEvidence:
    """The evidence on the borders of some regions, in one pass over the samples. Of neighbours with
    emissions it has the values where their emissions may change; else it has the likelihoods, and
    all samples are one chunk."""
    ends = [(u, v) for r in regions for v, u in r.branches]
    p, emissions = model.tree.n_observed, model.emissions
    nodes = sorted({u for u, _ in ends if u < p and u not in emissions})
    edges = list(dict.fromkeys(e for e in ends if e[0] >= p))
    emitted = list(dict.fromkeys(e for e in ends if e[0] in emissions))
    valued = [u for u, _ in emitted] if emissions_change else []
    edges += [] if emissions_change else emitted
    gather = GatherEvidence(model, nodes, edges, valued, every)
    total = samples.run(gather, n_jobs)
    if not emissions_change:
        total = [_all_chunks(total)]
    row = {u: i for i, u in enumerate(nodes)}
    return RegionEvidence(total, row, {e: i for i, e in enumerate(edges)})


def _all_chunks(chunks: list[ChunkEvidence]) -> ChunkEvidence:
    """The codes and messages of all chunks in one, contiguous."""
    codes, incoming, _, weights = zip(*chunks, strict=True)
    return ChunkEvidence(
        np.ascontiguousarray(concatenated(codes, axis=1)),
        np.ascontiguousarray(concatenated(incoming)),
        {},
        np.ascontiguousarray(concatenated(weights), dtype=np.float64),
    )


def _likelihoods(emission: Emission, values: Any) -> NDArray[np.float32]:
    """`P(value | state)` `(n, n_states)`, scaled to a largest entry of 1."""
    logs = emission.log_likelihood(values)
    top = logs.max(axis=1, keepdims=True)
    return np.exp(logs - np.where(np.isfinite(top), top, 0.0)).astype(np.float32)


def concatenated(parts: Sequence[Any], axis: int = 0) -> Any:
    """Arrays concatenated; a single one is not copied."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=axis)
