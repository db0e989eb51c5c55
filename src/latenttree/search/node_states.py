"""Fewer states where the data support fewer: hidden nodes of one fit, each with its own number.

A tree is fitted with as many states everywhere as it needs somewhere. What the branches around a
hidden node say about it does not change when the node does, so every way to do with one state less
is judged from messages alone, and refitted to them where it is close; changes of nodes that are not
neighbours are made together, the whole model is refined, and kept only if its BIC rose.
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
from latenttree.model.likelihood import total_log_likelihood
from latenttree.model.samples import Chunk, Chunks, as_chunk
from latenttree.model.tree_model import Node, TreeModel
from latenttree.refinement.em import refine
from latenttree.refinement.em_steps import mean_statistics
from latenttree.search.neighbourhood import (
    Heard,
    Hub,
    Targets,
    fewer_states,
    hub_of,
    log_likelihood,
    merging,
    mixed,
    refit,
    with_hubs,
)
from latenttree.tree import Tree

Floats = NDArray[np.float64]

LEAST_STATES = 2
"""A node with a single state would cut the tree."""

TRIED = 2
"""Ways of a node that are refitted, the best before refitting. Where a state too many is a mixture
of others, another one in every branch, merging costs much before EM has put the others in place,
and little after; so only a refit says whether a state is needed."""

FEW = 5_000
"""Samples on which ways are tried first: a state that these cannot do without, all cannot."""

GLOBAL_STEPS = 20
"""Steps of refinement after the changes of a round."""

MAX_ROUNDS = 100
MESSAGE_BYTES = 1 << 29
SHOWN = 3


@dataclass(frozen=True, eq=False)
class Pruned:
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
    """A hub with one state less, and what BIC gains by it with the rest of the tree as it is."""

    gain: float
    hub: Hub


@dataclass(frozen=True)
class Pruner:
    """What pruning needs besides the model.

    `marginals` are the frequencies of the categories of observed nodes, where pseudo-samples go;
    the model's own by default."""

    samples: Chunks
    smoothing: float = 1.0
    tol: float = 1e-7
    max_steps: int = GLOBAL_STEPS
    marginals: Sequence[Floats] = ()
    n_jobs: int = 1

    def n_samples(self) -> float:
        """Samples, each as often as it counts."""
        return float(sum(_weights(as_chunk(part)).sum() for part in self.samples()))

    def bic(self, model: TreeModel, n: float) -> float:
        """Log-likelihood less what the parameters cost: larger is better."""
        total = total_log_likelihood(model, self.samples, self.n_jobs)
        return total - 0.5 * model.n_parameters * float(np.log(n))

    def refined(self, model: TreeModel) -> TreeModel:
        return refine(
            model,
            self.samples,
            max_steps=self.max_steps,
            tolerance=self.tol,
            smoothing=self.smoothing,
            marginals=self.marginals,
            n_jobs=self.n_jobs,
        ).model


def prune(model: TreeModel, pruner: Pruner) -> Pruned:
    """Take states from hidden nodes, one at a time, while the BIC of the whole model rises.

    Round by round; after the first only nodes that changed, their neighbours, and those that had
    to wait are looked at again."""
    n, p = pruner.n_samples(), model.tree.n_observed
    values = [pruner.bic(model, n)]
    before, todo = model.dims[p:], _prunable(model, range(p, model.tree.n_nodes))
    for _ in range(MAX_ROUNDS):
        found = propose(model, todo, pruner, n)
        chosen = _apart(model.tree, found)
        if not chosen:
            break
        model, value, changed = _improve(model, chosen, pruner, n, values[-1])
        again = {q.hub.node for q in found} - {chosen[0].hub.node}
        if changed:
            values.append(value)
            again |= {u for v in changed for u in (v, *map(int, model.tree.neighbors(v)))}
        todo = _prunable(model, sorted(again))
    states = model.dims[p:].copy()
    return Pruned(model, int((before - states).sum()), states, values)


def _prunable(model: TreeModel, nodes: Iterable[int]) -> list[int]:
    p = model.tree.n_observed
    return [v for v in nodes if v >= p and model.dims[v] > LEAST_STATES]


def _apart(tree: Tree, proposals: list[_Proposal]) -> list[_Proposal]:
    """Proposals for nodes that are not neighbours, best first."""
    touched: set[int] = set()
    chosen = []
    for proposal in sorted(proposals, key=lambda q: (-q.gain, q.hub.node)):
        v = proposal.hub.node
        if v not in touched:
            touched |= {v, *map(int, tree.neighbors(v))}
            chosen.append(proposal)
    return chosen


def _improve(
    model: TreeModel, chosen: list[_Proposal], pruner: Pruner, n: float, value: float
) -> tuple[TreeModel, float, list[int]]:
    """The model with all changes made, or with fewer of them, if its BIC is larger, and the nodes
    that changed; else the model as it is."""
    while chosen:
        new = pruner.refined(with_hubs(model, (q.hub for q in chosen)))
        reached = pruner.bic(new, n)
        if reached > value + 1e-9 * abs(value):
            return new, reached, [q.hub.node for q in chosen]
        chosen = chosen[: len(chosen) // 2]
    return model, value, []


def merged(model: TreeModel, node: Node, i: int, j: int) -> TreeModel:
    """The model with two states of a hidden node as one, in the place of the first: in every
    branch the mixture of the two, by their probabilities."""
    v = model.tree.index(node)
    k = int(model.dims[v])
    if v < model.tree.n_observed or i == j or not (0 <= i < k and 0 <= j < k):
        raise ValueError(
            f"states {i} and {j} of node {model.tree.names[v]!r} with {k} states: give two "
            "different states of a hidden node"
        )
    hub = hub_of(model, v)
    return with_hubs(model, [mixed(hub, *merging(hub.weights, i, j))])


# ---- proposals ------------------------------------------------------------------------


def propose(model: TreeModel, nodes: list[int], pruner: Pruner, n: float) -> list[_Proposal]:
    """For each node its best way to do with one state less, where BIC gains by it: tried on a few
    samples, then on all."""
    if not nodes:
        return []
    judge = _Judge(model, mean_statistics(model, pruner.samples), pruner, n)
    few = _few(pruner.samples)
    if not few:
        return _collect(model, nodes, pruner.samples, pruner.n_jobs, judge.tried)
    hopeful = _collect(model, nodes, lambda: few, pruner.n_jobs, judge.tried)
    starts = {q.hub.node: q.hub for q in hopeful}

    def again(v: int, parts: list[Heard]) -> _Proposal | None:
        return judge.fitted(v, starts[v], log_likelihood(hub_of(model, v), parts), parts)

    return _collect(model, list(starts), pruner.samples, pruner.n_jobs, again)


def _few(samples: Chunks) -> list[Chunk]:
    """About `FEW` samples spread over all; none where all are hardly more."""
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
    ask: Callable[[int, list[Heard]], _Proposal | None],
) -> list[_Proposal]:
    """What `ask` answers for each node, given what its branches say in the samples."""
    found: list[_Proposal] = []
    k = int(model.dims[nodes].max(initial=1))
    room = max(1, spare(MESSAGE_BYTES) // (4 * k * max(_n_rows(samples), 1)))
    for batch in _batches(model.tree, nodes, room):
        spoken = [_Spoken(model, as_chunk(part), batch, n_jobs) for part in samples()]

        def work(
            start: int, stop: int, batch: list[int] = batch, spoken: list[_Spoken] = spoken
        ) -> list[_Proposal | None]:
            return [ask(v, [part.to(v) for part in spoken]) for v in batch[start:stop]]

        with single_threaded_blas():
            for part in parallel(work, len(batch), n_jobs, 1):
                found += [q for q in part if q is not None]
    return found


def _batches(tree: Tree, nodes: list[int], room: int) -> Iterator[list[int]]:
    """Nodes whose messages have room together; one node at least."""
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


class _Spoken:
    """A chunk of samples with the messages into some hidden nodes."""

    def __init__(self, model: TreeModel, chunk: Chunk, nodes: list[int], n_jobs: int) -> None:
        self.model, self.chunk = model, chunk
        p = model.tree.n_observed
        edges = [(int(u), v) for v in nodes for u in model.tree.neighbors(v) if u >= p]
        along = np.array(edges, dtype=np.int64).reshape(-1, 2)
        sent = messages(model, chunk.evidence(model), along, n_jobs)
        self.sent = {e: sent[:, i, : model.dims[e[0]]] for i, e in enumerate(edges)}

    def to(self, v: int) -> Heard:
        """What the neighbours of `v` say to it.

        Where the value of an observed neighbour is unknown, what is behind it is left out: less
        than all that is known, but the whole model has the last word."""
        said: dict[int, Any] = {}
        for u in map(int, self.model.tree.neighbors(v)):
            if u >= self.model.tree.n_observed:
                said[u] = self.sent[u, v].astype(np.float64)
            elif u in self.model.emissions:
                said[u] = self.chunk.arrays[u]
            else:
                said[u] = self.chunk.codes[:, u].astype(np.int64)
        return Heard(said, _weights(self.chunk))


@dataclass(frozen=True)
class _Judge:
    """Judges ways to do with a state less, by the BIC of `n` samples."""

    model: TreeModel
    means: Mapping[int, Floats]
    pruner: Pruner
    n: float

    def tried(self, v: int, parts: list[Heard]) -> _Proposal | None:
        """The best way, refitted; None where BIC gains by none."""
        hub = hub_of(self.model, v)
        before, ways = fewer_states(hub, parts)
        starts = (mixed(hub, way.matrix, way.weights) for way in ways[:TRIED])
        found = [self.fitted(v, start, before, parts) for start in starts]
        return max((q for q in found if q is not None), key=lambda q: q.gain, default=None)

    def fitted(self, v: int, start: Hub, before: float, parts: list[Heard]) -> _Proposal | None:
        """A hub with a state less refitted; None where its BIC is below that of `before`."""
        saved = hub_of(self.model, v).n_parameters - start.n_parameters
        bar = before - 0.5 * saved * float(np.log(self.n))
        new, value = refit(start, parts, self._targets(v), bar)
        return _Proposal(value - bar, new) if value > bar else None

    def _targets(self, v: int) -> Targets:
        """As `refine` has them: marginals of observed neighbours, evenly over states of hidden."""
        model, observed = self.model, self.pruner.marginals or self.model.marginals
        spread: dict[int, Floats] = {}
        for u in map(int, model.tree.neighbors(v)):
            if u in self.means:
                spread[u] = self.means[u]
            elif u < model.tree.n_observed:
                spread[u] = observed[u]
            else:
                spread[u] = np.full(model.dims[u], 1 / model.dims[u])
        return Targets(self.pruner.smoothing, spread)


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
