"""`Channels`: a model as matrices along the directed edges of its tree, which multiply along paths.

A matrix `T[w, u]` carries what is known of `u` to its neighbour `w`: `P(w | u)` of nodes with
states, `E[w | u]` of a number, and `Cov[w, u]` in units where both have covariance I in a Gaussian
tree. The matrix of a path is the product of those of its edges. A variable that is a vector (a
group of codes, a block of numbers) is taken apart into leaves, its *coordinates*; a code is a leaf
of two states.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import singledispatch
from itertools import pairwise
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from latenttree.engine.arrays import Bools, Floats, Ints
from latenttree.model.emissions import Emission, MultiHot
from latenttree.model.gaussian.algebra import root_pair
from latenttree.model.gaussian.distribution import GaussianDistribution
from latenttree.model.signs import state_scores
from latenttree.model.tree_model import TreeModel

STATES, NUMBER, WHITENED = 0, 1, 2
"""Kinds of nodes: with states, a number that is known by its mean in each state of others, and
a vector of covariance I."""


class Link(NamedTuple):
    """A directed edge: what is known of `source` goes to `target` by `matrix`, `(dims[target],
    dims[source])`."""

    source: int
    target: int
    matrix: Floats


@dataclass(frozen=True, eq=False)
class Channels:
    """The nodes of a tree, numbered as there, then the coordinates of variables that are vectors.

    Attributes
    ----------
    kinds, dims : (n,) kind of each node, and its number of states or dimensions.
    indptr, targets, starts : neighbours of node v are `targets[indptr[v]:indptr[v + 1]]`, and the
        matrix from v to each begins in `matrices` at the same place of `starts`, row by row.
    own, own_starts : of node v from `own_starts[v]` on: `P(v)`, or the variance of a number.
    scores : in the same places as `own` the score of each state or dimension, by which directions
        are told; all 0 where the values have no order.
    variables, coordinates : (n,) the observed variable that a node is (-1 for hidden nodes), and
        its place in the vector, -1 for a whole variable.
    is_item : (n,) whether a node is a variable, or a coordinate of one that is a vector.
    """

    kinds: Ints
    dims: Ints
    indptr: Ints
    targets: Ints
    starts: Ints
    matrices: Floats
    own: Floats
    own_starts: Ints
    scores: Floats
    variables: Ints
    coordinates: Ints
    is_item: Bools

    def matrix(self, source: int, target: int) -> Floats:
        """`T[target, source]` of two neighbours."""
        first, last = self.indptr[source], self.indptr[source + 1]
        e = int(first + np.flatnonzero(self.targets[first:last] == target)[0])
        shape = int(self.dims[target]), int(self.dims[source])
        return self.matrices[self.starts[e] : self.starts[e] + shape[0] * shape[1]].reshape(shape)

    def neighbors(self, node: int) -> list[int]:
        """Nodes that matrices lead to from a node."""
        found: list[int] = self.targets[self.indptr[node] : self.indptr[node + 1]].tolist()
        return found

    def path_matrix(self, path: Sequence[int]) -> Floats:
        """`T[last, first]` of the ends of a path."""
        found = np.eye(int(self.dims[path[0]]))
        for u, w in pairwise(path):
            found = self.matrix(u, w) @ found
        return found

    def of_own(self, node: int) -> Floats:
        """`P(node)` of a node with states, the variance of a number."""
        return self.own[self.own_starts[node] :][: self.dims[node]]

    def score(self, node: int) -> Floats:
        """The score of each state or dimension of a node."""
        return self.scores[self.own_starts[node] :][: self.dims[node]]

    def neighbor_of_leaf(self, leaf: int) -> int:
        """The node that a leaf hangs from."""
        e = int(np.flatnonzero(self.targets == leaf)[0])
        return int(np.searchsorted(self.indptr, e, side="right")) - 1

    def items_of(self, variable: int) -> list[int]:
        """The nodes of a variable: itself, or its coordinates."""
        return [int(v) for v in np.flatnonzero(self.is_item & (self.variables == variable))]


@dataclass
class _Parts:
    """Channels in the making; nodes are added as rows."""

    kinds: list[int]
    own: list[Floats]
    scores: list[Floats]
    variables: list[int]
    coordinates: list[int]
    links: list[Link]
    split: set[int]  # variables that are taken apart

    def add_coordinate(self, v: int, c: int, kind: int, own: Floats, score: Floats) -> int:
        """A new leaf for coordinate c of variable v; its number."""
        self.kinds.append(kind)
        self.own.append(own)
        self.scores.append(score)
        self.variables.append(v)
        self.coordinates.append(c)
        self.split.add(v)
        return len(self.kinds) - 1

    def finish(self) -> Channels:
        """All parts as arrays."""
        n = len(self.kinds)
        links = sorted(self.links, key=lambda link: link[:2])
        sizes = [link.matrix.size for link in links]
        dims = np.array([len(own) for own in self.own], dtype=np.int64)
        sources = np.array([link.source for link in links], dtype=np.int64)
        variables = np.array(self.variables, dtype=np.int64)
        whole = np.array([v not in self.split for v in self.variables[:n]], dtype=bool)
        coordinates = np.array(self.coordinates, dtype=np.int64)
        return Channels(
            np.array(self.kinds, dtype=np.int64),
            dims,
            np.searchsorted(sources, np.arange(n + 1)).astype(np.int64),
            np.array([link.target for link in links], dtype=np.int64),
            _starts(sizes),
            np.concatenate([np.empty(0), *(link.matrix.ravel() for link in links)]),
            np.concatenate(self.own),
            _starts(dims),
            np.concatenate(self.scores),
            variables,
            coordinates,
            (variables >= 0) & (whole | (coordinates >= 0)),
        )


@singledispatch
def channels_of(model: Any, ordered: Bools) -> Channels:
    """The channels of a model; `ordered` `(p,)`: whether the categories of a variable have an
    order. O(size of all CPTs)."""
    raise TypeError(f"a model of type {type(model).__name__}")


@channels_of.register
def _of_states(model: TreeModel, ordered: Bools) -> Channels:
    p, n, dims = model.tree.n_observed, model.tree.n_nodes, model.dims.tolist()
    ranked = [v >= p or bool(ordered[v]) for v in range(n)]
    scores = [np.arange(float(d)) if r else np.zeros(d) for d, r in zip(dims, ranked, strict=True)]
    marginals = list(model.marginals)
    variables = [v if v < p else -1 for v in range(n)]
    parts = _Parts([STATES] * n, marginals, scores, variables, [-1] * n, [], set())
    for v, u in enumerate(model.parents.tolist()):
        if v in model.emissions:
            _add_emission(parts, v, u, model.emissions[v], marginals[u])
        elif u >= 0:
            up = model.cpts[v] * marginals[u]
            back = np.divide(up, marginals[v][:, None], where=marginals[v][:, None] > 0, out=up)
            parts.links += [Link(u, v, model.cpts[v]), Link(v, u, back.T)]
    return parts.finish()


def _add_emission(parts: _Parts, v: int, u: int, emission: Emission, weight: Floats) -> None:
    """The coordinates of a variable with an emission as leaves of its neighbour u."""
    means, within = emission.value_moments()
    for c, (mean, noise) in enumerate(zip(means, within, strict=True)):
        if isinstance(emission, MultiHot):
            table = np.array([1 - mean, mean])
            leaf = parts.add_coordinate(v, c, STATES, table @ weight, np.arange(2.0))
        else:
            table = (mean - mean @ weight)[None]
            variance = np.array([float(weight @ (table[0] ** 2 + noise))])
            if len(means) == 1:  # a number is its own leaf
                leaf, parts.kinds[v], parts.own[v] = v, NUMBER, variance
                parts.scores[v] = np.ones(1)
            else:
                leaf = parts.add_coordinate(v, c, NUMBER, variance, np.ones(1))
        parts.links.append(Link(u, leaf, table))


@channels_of.register
def _of_vectors(model: GaussianDistribution, ordered: Bools) -> Channels:
    p, n = model.tree.n_observed, model.tree.n_nodes
    parents = model.parents.tolist()
    inner = {model.root, *parents} - {-1}
    roots = {v: root_pair(model.marginal_covariance(v)) for v in inner}
    dims, known = model.dims.tolist(), state_scores(model)
    variables = [v if v < p else -1 for v in range(n)]
    ones = [np.ones(d) for d in dims]
    scores = [
        np.ones(1) if d == 1 else roots[v][0] @ known[v] if v in roots and v in known else 0 * one
        for v, (d, one) in enumerate(zip(dims, ones, strict=True))
    ]
    parts = _Parts([WHITENED] * n, ones, scores, variables, [-1] * n, [], set())
    for v, u in enumerate(parents):
        if v in roots:
            if v < p and dims[v] > 1:
                parts.links += _coordinates(parts, v, v, roots[v][0], model)
            if u >= 0:
                both = roots[v][1] @ model.loadings[v] @ roots[u][0]
                parts.links += [Link(u, v, both), Link(v, u, both.T)]
        elif u >= 0:
            shared = model.loadings[v] @ roots[u][0]
            if dims[v] > 1:
                parts.links += _coordinates(parts, v, u, shared, model)
            else:
                both = shared / np.sqrt(model.variances(v))
                parts.links += [Link(u, v, both), Link(v, u, both.T)]
    return parts.finish()


def _coordinates(
    parts: _Parts, v: int, u: int, shared: Floats, model: GaussianDistribution
) -> Iterator[Link]:
    """Leaves of node u for the coordinates of v, with `shared` `(d, dims[u])` the covariance of
    each with the whitened u."""
    for c, row in enumerate(shared / np.sqrt(model.variances(v))[:, None]):
        yield Link(u, parts.add_coordinate(v, c, WHITENED, np.ones(1), np.ones(1)), row[None])


def _starts(sizes: Sequence[int] | Ints) -> Ints:
    """Where arrays of these sizes begin that lie one after another."""
    ends = np.cumsum(np.asarray(sizes, dtype=np.int64))
    return np.asarray(ends - np.asarray(sizes, dtype=np.int64))


_KNOWN: WeakKeyDictionary[Any, tuple[bytes, Channels]] = WeakKeyDictionary()


def known_channels(model: Any, ordered: Bools) -> Channels:
    """`channels_of`, kept as long as the model."""
    key = ordered.tobytes()
    known = _KNOWN.get(model)
    if known is None or known[0] != key:
        known = _KNOWN[model] = key, channels_of(model, ordered)
    return known[1]
