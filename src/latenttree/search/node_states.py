"""Number of states of each hidden node: fewer where BIC supports fewer.

A tree is fitted with as many states everywhere as it needs somewhere. The messages into a hidden
node do not depend on the node, so every candidate with one state less is compared and refitted from
the messages alone. Changes of nodes that are not neighbours are made together, the whole model is
refined, and kept only if its BIC rises.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.engine import parallel, single_threaded_blas
from latenttree.engine.memory import spare
from latenttree.model.inference import messages
from latenttree.model.likelihood import bic_score, total_log_likelihood
from latenttree.model.samples import Chunk, Chunks, InMemory, Samples, as_chunk, evidence_of
from latenttree.model.tree_model import TreeModel
from latenttree.refinement.tree_em import run_em
from latenttree.refinement.tree_problem import mean_statistics
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
from latenttree.tree import Tree

Floats = NDArray[np.float64]

LEAST_STATES = 2
"""A node with a single state would cut the tree."""

TRIED = 2
"""Candidates of a node that are refitted: those that are best before refitting. Where a superfluous
state is a different mixture of others in every branch, merging costs much before EM has moved the
others, and little after. So only a refit tells whether a state is needed."""

FEW = 5_000
"""Samples on which candidates are tried first: a state needed for these is needed for all."""

GLOBAL_STEPS = 20
"""EM steps after the changes of a round."""

MAX_ROUNDS = 100
MESSAGE_BYTES = 1 << 29
"""Memory for the messages of one batch of nodes."""

SHOWN = 3
"""Nodes that a sentence names."""


@dataclass(frozen=True, eq=False)
class SelectedStates:
    """A model whose hidden nodes have as many states as the data support.

    Attributes
    ----------
    model : the same tree and hidden nodes.
    n_merged : states that are gone, over all hidden nodes.
    states : (m,) states of every hidden node.
    bic : `log-likelihood - parameters / 2 log n` at first and after every round that was kept;
        larger is better, never decreasing.
    """

    model: TreeModel
    n_merged: int
    states: NDArray[np.int64]
    bic: list[float]


class _Proposal(NamedTuple):
    """A neighbourhood with one state less, and the gain of BIC with the rest of the tree fixed."""

    gain: float
    neighbourhood: Neighbourhood


@dataclass(frozen=True)
class StatesConfig:
    """Configuration of the selection of numbers of states.

    `marginals` are the frequencies of the categories of observed nodes, the distribution of
    pseudo-samples; the model's own by default."""

    samples: Samples | InMemory
    smoothing: float = 1.0
    tol: float = 1e-7
    max_steps: int = GLOBAL_STEPS
    marginals: Sequence[Floats] = ()
    n_jobs: int = 1

    def n_samples(self) -> float:
        """Total weight of the samples."""
        return float(sum(_weights(as_chunk(part)).sum() for part in self.samples()))

    def bic(self, model: TreeModel, n: float) -> float:
        """`log-likelihood - n_parameters / 2 log n`: larger is better."""
        return bic_score(model, total_log_likelihood(model, self.samples, self.n_jobs), n)

    def refined(self, model: TreeModel) -> TreeModel:
        """The model after a few EM steps."""
        return run_em(
            model,
            self.samples,
            max_steps=self.max_steps,
            tolerance=self.tol,
            smoothing=self.smoothing,
            marginals=self.marginals,
            n_jobs=self.n_jobs,
        ).model


def select_states(model: TreeModel, config: StatesConfig) -> SelectedStates:
    """The model after removing states of hidden nodes, one at a time, while its BIC rises.

    Each round changes nodes that are not neighbours. After the first round only nodes that changed,
    their neighbours, and nodes whose proposal was not carried out are examined."""
    n, p = config.n_samples(), model.tree.n_observed
    values = [config.bic(model, n)]
    before, todo = model.dims[p:], _reducible(model, range(p, model.tree.n_nodes))
    for _ in range(MAX_ROUNDS):
        proposals = propose(model, todo, config, n)
        chosen = _apart(model.tree, proposals)
        if not chosen:
            break
        model, value, changed = _improve(model, chosen, config, n, values[-1])
        again = {q.neighbourhood.node for q in proposals} - {chosen[0].neighbourhood.node}
        if changed:
            values.append(value)
            again |= {u for v in changed for u in (v, *map(int, model.tree.neighbors(v)))}
        todo = _reducible(model, sorted(again))
    states = model.dims[p:].copy()
    return SelectedStates(model, int((before - states).sum()), states, values)


def _reducible(model: TreeModel, nodes: Iterable[int]) -> list[int]:
    """The hidden nodes among `nodes` with more than `LEAST_STATES` states."""
    p = model.tree.n_observed
    return [v for v in nodes if v >= p and model.dims[v] > LEAST_STATES]


def _apart(tree: Tree, proposals: list[_Proposal]) -> list[_Proposal]:
    """Proposals for nodes that are not neighbours, best first."""
    touched: set[int] = set()
    chosen = []
    for proposal in sorted(proposals, key=lambda q: (-q.gain, q.neighbourhood.node)):
        v = proposal.neighbourhood.node
        if v not in touched:
            touched |= {v, *map(int, tree.neighbors(v))}
            chosen.append(proposal)
    return chosen


def _improve(
    model: TreeModel, chosen: list[_Proposal], config: StatesConfig, n: float, value: float
) -> tuple[TreeModel, float, list[int]]:
    """The model with the chosen changes, its BIC and the changed nodes, if BIC is larger; else the
    model as it is. The number of changes is halved until BIC rises."""
    while chosen:
        new = config.refined(with_neighbourhoods(model, (q.neighbourhood for q in chosen)))
        reached = config.bic(new, n)
        if reached > value + 1e-9 * abs(value):
            return new, reached, [q.neighbourhood.node for q in chosen]
        chosen = chosen[: len(chosen) // 2]
    return model, value, []


# ---- proposals ------------------------------------------------------------------------


def propose(model: TreeModel, nodes: list[int], config: StatesConfig, n: float) -> list[_Proposal]:
    """For each node its best candidate with one state less, where BIC gains by it: tried on a few
    samples, then on all."""
    if not nodes:
        return []
    scorer = _StatesScorer(model, mean_statistics(model, config.samples), config, n)
    few = _few(config.samples)
    if not few:
        return _collect(model, nodes, config.samples, config.n_jobs, scorer.tried)
    hopeful = _collect(model, nodes, lambda: few, config.n_jobs, scorer.tried)
    starts = {q.neighbourhood.node: q.neighbourhood for q in hopeful}

    def again(v: int, parts: list[BranchEvidence]) -> _Proposal | None:
        return scorer.fitted(
            v, starts[v], log_likelihood_at(neighbourhood_of(model, v), parts), parts
        )

    return _collect(model, list(starts), config.samples, config.n_jobs, again)


def _few(samples: Chunks) -> list[Chunk]:
    """About `FEW` samples spread over all; none where there are less than twice as many."""
    step = _n_rows(samples) // FEW
    if step < 2:
        return []
    every = slice(None, None, step | 1)  # odd, so that even and odd samples are both there
    return [as_chunk(part).take(every) for part in samples()]


def _n_rows(samples: Chunks) -> int:
    return sum(len(as_chunk(part)) for part in samples())


def _collect(
    model: TreeModel,
    nodes: list[int],
    samples: Chunks,
    n_jobs: int,
    ask: Callable[[int, list[BranchEvidence]], _Proposal | None],
) -> list[_Proposal]:
    """The proposals of `ask` for each node, given the evidence of its branches, in batches whose
    messages fit into `MESSAGE_BYTES`."""
    found: list[_Proposal] = []
    n_states = int(model.dims[nodes].max(initial=1))
    room = max(1, spare(MESSAGE_BYTES) // (4 * n_states * max(_n_rows(samples), 1)))
    for batch in _batches(model.tree, nodes, room):
        incoming = [ChunkMessages(model, as_chunk(part), batch, n_jobs) for part in samples()]

        def work(
            start: int,
            stop: int,
            batch: list[int] = batch,
            incoming: list[ChunkMessages] = incoming,
        ) -> list[_Proposal | None]:
            return [ask(v, [part.to(v) for part in incoming]) for v in batch[start:stop]]

        with single_threaded_blas():
            for part in parallel(work, len(batch), n_jobs, 1):
                found += [q for q in part if q is not None]
    return found


def _batches(tree: Tree, nodes: list[int], room: int) -> Iterator[list[int]]:
    """Nodes in batches that need at most `room` messages; at least one node each."""
    batch: list[int] = []
    used = 0
    for v in nodes:
        needed = sum(int(u) >= tree.n_observed for u in tree.neighbors(v))
        if batch and used + needed > room:
            yield batch
            batch, used = [], 0
        batch.append(v)
        used += needed
    if batch:
        yield batch


def _weights(chunk: Chunk) -> Floats:
    return np.ones(len(chunk)) if chunk.weights is None else chunk.weights


class ChunkMessages:
    """A chunk of samples with the messages into some hidden nodes."""

    def __init__(self, model: TreeModel, chunk: Chunk, nodes: list[int], n_jobs: int) -> None:
        self.model, self.chunk = model, chunk
        p = model.tree.n_observed
        edges = [(int(u), v) for v in nodes for u in model.tree.neighbors(v) if u >= p]
        along = np.array(edges, dtype=np.int64).reshape(-1, 2)
        values = messages(model, evidence_of(chunk, model), along, n_jobs)
        self.messages = {e: values[:, i, : model.dims[e[0]]] for i, e in enumerate(edges)}

    def to(self, v: int) -> BranchEvidence:
        """The evidence of the branches of `v`.

        Where the value of an observed neighbour is unknown, the evidence beyond it is left out.
        This only affects the proposals: changes are accepted by the likelihood of the whole
        model."""
        by_branch: dict[int, Any] = {}
        for u in map(int, self.model.tree.neighbors(v)):
            if u >= self.model.tree.n_observed:
                by_branch[u] = self.messages[u, v].astype(np.float64)
            elif u in self.model.emissions:
                by_branch[u] = self.chunk.arrays[u]
            else:
                by_branch[u] = self.chunk.codes[:, u].astype(np.int64)
        return BranchEvidence(by_branch, _weights(self.chunk))


@dataclass(frozen=True)
class _StatesScorer:
    """Compares candidates with a state less, by the BIC of `n` samples."""

    model: TreeModel
    means: Mapping[int, Floats]
    config: StatesConfig
    n: float

    def tried(self, v: int, parts: list[BranchEvidence]) -> _Proposal | None:
        """The best candidate after refitting; None where BIC gains by none."""
        neighbourhood = neighbourhood_of(self.model, v)
        before, candidates = fewer_states(neighbourhood, parts)
        starts = (
            mixed(neighbourhood, candidate.matrix, candidate.weights)
            for candidate in candidates[:TRIED]
        )
        found = [self.fitted(v, start, before, parts) for start in starts]
        return max((q for q in found if q is not None), key=lambda q: q.gain, default=None)

    def fitted(
        self, v: int, start: Neighbourhood, before: float, parts: list[BranchEvidence]
    ) -> _Proposal | None:
        """A neighbourhood with a state less, refitted from `start`; None where its BIC is below
        that of the log-likelihood `before` with the present states."""
        saved = neighbourhood_of(self.model, v).n_parameters - start.n_parameters
        bar = before - 0.5 * saved * float(np.log(self.n))
        new, value = refit(start, parts, self._targets(v), bar)
        return _Proposal(value - bar, new) if value > bar else None

    def _targets(self, v: int) -> Targets:
        """As in `refine`: marginals of observed neighbours, uniform over states of hidden ones."""
        model, observed = self.model, self.config.marginals or self.model.marginals
        spread: dict[int, Floats] = {}
        for u in map(int, model.tree.neighbors(v)):
            if u in self.means:
                spread[u] = self.means[u]
            elif u < model.tree.n_observed:
                spread[u] = observed[u]
            else:
                spread[u] = np.full(model.dims[u], 1 / model.dims[u])
        return Targets(self.config.smoothing, spread)


# ---- report ---------------------------------------------------------------------------


def states_summary(model: TreeModel) -> list[str]:
    """Which hidden nodes have fewer states than the others, in sentences; none where all have as
    many."""
    states = model.dims[model.tree.n_observed :]
    most = int(states.max(initial=0))
    counts = Counter(states.tolist())
    lines = []
    for k in sorted(counts, reverse=True)[1:]:
        names = [model.tree.names[model.tree.n_observed + i] for i in np.flatnonzero(states == k)]
        lines.append(
            f"{_listed(names)} {'has' if len(names) == 1 else 'have'} {k} states of {most}: the "
            "data do not tell more apart there"
        )
    return lines


def _listed(names: list[str]) -> str:
    """ "h1", "h1 and h2", "h1, h2, h3 and 4 others"."""
    left = len(names) - SHOWN
    shown = names if left <= 0 else [*names[:SHOWN], f"{left} other{'s' if left > 1 else ''}"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
