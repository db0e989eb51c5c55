"""The order of hidden states, and the sign of every edge.

A *score* of a node is a number for each of its states (a direction, where it is a real vector).
Ordered categories have their ranks, single numbers have themselves. A hidden node has the
expectation of its strongest neighbour's score given its state,

    score_h(j) = E[score_u | h = j],

where strength is the share of the variance of `score_u` that the state explains; an observed
neighbour goes before a hidden one. Scores thus spread from observed nodes along the strongest edges
first. The sign of an edge is that of the covariance of the scores of its ends.

With two states, or one dimension, the product of the signs along a path is exactly the sign of the
correlation of its ends under the model: correlations multiply. With more it is so where the states
of a node are passed in the same order by all its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from heapq import heappop, heappush
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latenttree.engine.arrays import Bools, Floats, Ints
from latenttree.model.emissions import Emission, FullGaussian, Gaussian
from latenttree.model.gaussian.algebra import solve
from latenttree.model.gaussian.distribution import GaussianDistribution
from latenttree.model.tree_model import TreeModel
from latenttree.tree import Tree

LEAST_CORRELATION = 1e-9
"""Scores that correlate less have no sign: it would be that of rounding."""

Scores = dict[int, Floats]


class Explained(NamedTuple):
    """The score of a node given by a neighbour, and the share of the neighbour's variance that it
    explains."""

    score: Floats
    share: float


class _Edges(Protocol):
    """What the order of states needs of a model."""

    tree: Tree

    def known(self) -> Scores:
        """The scores of nodes whose order is given."""

    def explain(self, h: int, u: int, score: Floats) -> Explained:
        """`E[score of u | state of h]` and its share of the variance."""

    def correlation(self, a: int, b: int, scores: Scores) -> float:
        """Of the scores of the two ends of an edge; 0 where one has none."""


def ordered_variables(families: Sequence[str], dims: ArrayLike) -> Bools:
    """(p,) whether the categories of a variable have an order: ordinal ones, and any two."""
    ordinal = np.array([family == "ordinal" for family in families], dtype=bool)
    return np.asarray(ordinal | (np.asarray(dims) == 2))


def state_scores(model: Any, ordered: Bools | None = None) -> Scores:
    """Scores of all nodes whose values have an order.

    ordered : (p,) whether the categories of each observed variable are in order; by default where
        there are two. Single numbers always are."""
    return _spread(_edges_of(model, ordered))


def state_orders(model: TreeModel, ordered: Bools | None = None) -> dict[int, Ints]:
    """For every hidden node its states in canonical order: by increasing score, so that a higher
    state has more of its strongest neighbour; by decreasing probability where it has no score."""
    scores = state_scores(model, ordered)
    orders = {}
    for v in range(model.tree.n_observed, model.tree.n_nodes):
        weight = model.marginals[v]
        orders[v] = np.lexsort((-weight, scores.get(v, np.zeros(len(weight)))))
    return orders


def edge_signs(model: Any, ordered: Bools | None = None) -> NDArray[np.int8]:
    """(E,) sign of the correlation of the two ends of every edge, 0 where one has no order; see
    `state_scores`."""
    edges = _edges_of(model, ordered)
    scores = _spread(edges)
    found = [edges.correlation(a, b, scores) for a, b in edges.tree.edges.tolist()]
    large = [0.0 if abs(x) < LEAST_CORRELATION else x for x in found]
    return np.sign(np.array(large)).astype(np.int8)


def _spread(edges: _Edges) -> Scores:
    """Scores of hidden nodes, from observed neighbours, then along the strongest edges first."""
    tree, scores = edges.tree, edges.known()
    heap: list[tuple[bool, float, int, int]] = []
    explained: dict[tuple[int, int], Floats] = {}

    def offer(u: int) -> None:
        for h in tree.neighbors(u).tolist():
            if h >= tree.n_observed and h not in scores:
                found = edges.explain(h, u, scores[u])
                explained[h, u] = found.score
                heappush(heap, (u >= tree.n_observed, -found.share, h, u))

    for u in sorted(scores):
        offer(u)
    while heap:
        _, _, h, u = heappop(heap)
        if h not in scores:
            scores[h] = explained[h, u]
            offer(h)
    return scores


@singledispatch
def _edges_of(model: Any, ordered: Bools | None) -> _Edges:
    raise TypeError(f"a model of type {type(model).__name__}")


# ---- hidden nodes with states -------------------------------------------------------------


class _StateEdges:
    """A `TreeModel`. An observed node with an emission is a number; as a score it has a single
    entry, which stands for the number itself."""

    def __init__(self, model: TreeModel, ordered: Bools | None) -> None:
        self.model, self.tree = model, model.tree
        p = model.tree.n_observed
        self.ordered = model.dims[:p] == 2 if ordered is None else np.asarray(ordered)

    def known(self) -> Scores:
        emissions = self.model.emissions
        return {
            v: np.arange(float(self.model.dims[v]))
            for v in range(self.tree.n_observed)
            if (len(emissions[v].mean()) == 1 if v in emissions else self.ordered[v])
        }

    def explain(self, h: int, u: int, score: Floats) -> Explained:
        weight = self.model.marginals[h]
        if u in self.model.emissions:
            found, within = number_moments(self.model.emissions[u])
            total = _variance(found, weight) + float(within @ weight)
        else:
            found = score @ self.model.conditional(u, h)
            total = _variance(score, self.model.marginals[u])
        share = _variance(found, weight) / total if total > 0 else 0.0
        return Explained(np.asarray(found), share)

    def correlation(self, a: int, b: int, scores: Scores) -> float:
        if a not in scores or b not in scores:
            return 0.0
        u, h = (a, b) if self.model.parents[a] == b else (b, a)
        given, share = self.explain(h, u, scores[u])
        weight, score = self.model.marginals[h], scores[h]
        covariance = float(((given - given @ weight) * weight) @ score)
        size = np.sqrt(_variance(score, weight) * _variance(given, weight))
        return 0.0 if size <= 0 else covariance / size * np.sqrt(share)


def number_moments(emission: Emission) -> tuple[Floats, Floats]:
    """Mean and variance of a single number in each state, `(k,)`."""
    mean = emission.mean()[0]
    if isinstance(emission, Gaussian):
        return mean, np.broadcast_to(emission.variance()[0], mean.shape)
    if isinstance(emission, FullGaussian):
        return mean, np.broadcast_to(emission.covariance()[:, 0, 0], mean.shape)
    return mean, mean  # a Poisson distribution


def _variance(score: Floats, weight: Floats) -> float:
    return float(weight @ (score - weight @ score) ** 2)


@_edges_of.register
def _of_states(model: TreeModel, ordered: Bools | None) -> _Edges:
    return _StateEdges(model, ordered)


# ---- real hidden vectors ------------------------------------------------------------------


class _GaussianEdges:
    """A Gaussian tree: the score of a node is a direction `(d,)`, that of a single number is 1, so
    that the sign of an edge is that of its loading."""

    def __init__(self, model: GaussianDistribution) -> None:
        self.model, self.tree = model, model.tree

    def known(self) -> Scores:
        return {v: np.ones(1) for v, d in enumerate(self.model.dims.tolist()) if d == 1}

    def explain(self, h: int, u: int, score: Floats) -> Explained:
        shared = self._shared(h, u) @ score
        found = solve(self.model.marginal_covariance(h), shared[:, None])[:, 0]
        total = float(score @ self.model.marginal_covariance(u) @ score)
        return Explained(found, float(found @ shared) / total)

    def correlation(self, a: int, b: int, scores: Scores) -> float:
        if a not in scores or b not in scores:
            return 0.0
        x, y = scores[a], scores[b]
        size = (x @ self.model.marginal_covariance(a) @ x) * (
            y @ self.model.marginal_covariance(b) @ y
        )
        return float(x @ self._shared(a, b) @ y / np.sqrt(size)) if size > 0 else 0.0

    def _shared(self, a: int, b: int) -> Floats:
        """`Cov[a, b]` of the two ends of an edge."""
        if self.model.parents[a] == b:
            return np.asarray(self.model.loadings[a] @ self.model.marginal_covariance(b))
        return np.asarray(self.model.marginal_covariance(a) @ self.model.loadings[b].T)


@_edges_of.register
def _of_vectors(model: GaussianDistribution, ordered: Bools | None) -> _Edges:
    return _GaussianEdges(model)
