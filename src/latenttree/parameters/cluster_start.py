"""Tree + table -> a model of many states to refine, from clusters of the samples.

Third moments determine at most as many states as the variables have directions. For more states,
the samples are clustered at every hidden node by the variables near it, and the clusters are taken
for its states: every conditional distribution is then a matter of counting. Liu, Zhang and Van den
Broeck (2023) start other models with many states from clusters too ("latent variable
distillation"). With few samples, clusters by all variables, the same at every node, are the better
start: they are estimated from more.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.vq import kmeans2
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from latenttree.data import Table
from latenttree.data.chunk import Chunk
from latenttree.engine import Gathered, parallel
from latenttree.engine.arrays import Float32, Floats, Ints
from latenttree.model.emissions import Emission, pooled, target_of
from latenttree.model.inference.evidence import dense_codes
from latenttree.model.samples import Samples, marginals, spread_places
from latenttree.model.tree_model import TreeModel, default_root, normalised
from latenttree.moments.coordinates import coordinate_moments, feature_means, weighted_features
from latenttree.tree import Tree

MAX_ROWS = 6_000
"""Samples that are clustered, at most."""

N_NEAR = 20
"""Variables by which the samples are clustered at a node: those nearest to it in the tree."""

N_STEPS = 10
"""Steps of k-means."""

KEPT_NEAR, KEPT_COMMON = 0.9, 0.5
"""Weight of the counts in a first CPT; the rest is the marginal, since EM never leaves a zero, and
nodes with the same clusters must become able to differ."""

SHORTEST = 0.05
"""Edges count as at least this long, so that the nearest variables lie on all sides of a node."""


def cluster_start(
    tree: Tree, samples: Samples, n_states: Ints, basis: NDArray[Any], seed: int, n_jobs: int
) -> TreeModel:
    """A model of `tree` with `n_states` `(n_hidden,)`; observed nodes with numbers are leaves.

    `basis` are the directions of the distances: a sample is clustered by its coordinates in these,
    each divided by its standard deviation and weighted by `exp(-distance)` to the node.

    Cost: `O(n_hidden n k N_NEAR N_STEPS)` with n at most `MAX_ROWS`."""
    some = _some(samples)
    features = standard_features(some, basis, n_jobs)
    near, weights = nearby(tree)

    def labels(start: int, stop: int) -> list[Ints]:
        return [
            clusters(features[:, near[h]] * weights[h][:, None], int(n_states[h]), seed + h)
            for h in range(start, stop)
        ]

    with _empty_clusters():
        found = [x for part in parallel(labels, tree.n_hidden, n_jobs, 1) for x in part]
    return counted_model(tree, samples.table, some, found, n_states, KEPT_NEAR)


def common_start(
    tree: Tree, samples: Samples, n_states: Ints, basis: NDArray[Any], seed: int, n_jobs: int
) -> TreeModel:
    """As `cluster_start`, with the same clusters at every hidden node, by all variables alike.
    Where a node has fewer states than there are clusters, several clusters are one state."""
    some = _some(samples)
    features = standard_features(some, basis, n_jobs)
    with _empty_clusters():
        labels = clusters(features, int(n_states.max()), seed)
    found = [labels % int(k) for k in n_states]
    return counted_model(tree, samples.table, some, found, n_states, KEPT_COMMON)


def _some(samples: Samples) -> Table:
    """At most `MAX_ROWS` of the samples."""
    draws = samples.draws()
    if len(draws) > MAX_ROWS:
        draws = draws[spread_places(len(draws), MAX_ROWS)]
    return samples.of_draws(draws).table


def standard_features(table: Table, basis: NDArray[Any], n_jobs: int) -> Float32:
    """Coordinates `(n, p, r)` of all samples with mean 0 and variance 1, 0 where missing."""
    directions = np.asarray(basis, dtype=np.float32)
    offset = feature_means(table, directions, coordinate_moments(table)[0])
    z = weighted_features(table, directions, offset, n_jobs)
    if table.weights is not None:
        z = z / np.sqrt(table.weights).astype(np.float32)[:, None, None]
    return np.asarray(z / np.maximum(z.std(axis=0), 1e-3), dtype=np.float32)


def nearby(tree: Tree) -> tuple[Ints, Float32]:
    """The `N_NEAR` observed nodes nearest to each hidden node, and `exp(-distance)` of each."""
    a, b = tree.edges.T.astype(np.int32)  # dijkstra takes no wider indices before SciPy 1.15
    lengths = np.maximum(tree.lengths, SHORTEST)
    graph = coo_array((lengths, (a, b)), shape=(tree.n_nodes,) * 2)
    hidden = np.arange(tree.n_observed, tree.n_nodes)
    distance = dijkstra(graph, directed=False, indices=hidden)[:, : tree.n_observed]
    near = np.argsort(distance, axis=1, kind="stable")[:, :N_NEAR]
    weights = np.exp(-np.take_along_axis(distance, near, axis=1))
    return near, weights.astype(np.float32)


def clusters(features: Float32, k: int, seed: int) -> Ints:
    """(n,) the cluster of every sample, by k-means from random samples; some may be empty."""
    points = features.reshape(len(features), -1)
    _, labels = kmeans2(points, min(k, len(points)), iter=N_STEPS, minit="points", seed=seed)
    return np.asarray(labels, dtype=np.int64)


@contextmanager
def _empty_clusters() -> Iterator[None]:
    """No warnings of empty clusters, which are unused states. Around all threads: filters of
    warnings are those of the process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def counted_model(
    tree: Tree, whole: Table, some: Table, labels: list[Ints], n_states: Ints, kept: float
) -> TreeModel:
    """The model of largest likelihood if the hidden states of the samples `some` were `labels`,
    with a weight `kept`, else the marginals. These, and the units of the variables, are those of
    the `whole` table."""
    weights = np.ones(some.n_samples) if some.weights is None else some.weights
    root, p = default_root(tree), tree.n_observed
    parents = tree.rooted(root).parents.tolist()
    codes = np.concatenate(some.run(Gathered(_codes), 1))
    shares = marginals(whole)
    numbers = set() if whole.values is None else set(whole.values.arrays)
    sizes = [*map(len, shares), *n_states.tolist()]
    k_above = [1 if u < 0 else sizes[u] for u in parents]
    nothing = np.zeros(len(weights), dtype=np.int64)
    cpts: list[Floats] = []
    for v, u in enumerate(parents):
        above = nothing if u < 0 else labels[u - p] if u >= p else codes[:, u].astype(np.int64)
        if v in numbers:
            cpts.append(np.ones((1, k_above[v])))
        elif v < p:
            cpts.append(_counted(codes[:, v], above, weights, k_above[v], shares[v], kept))
        else:
            own, k = labels[v - p], int(n_states[v - p])
            share = normalised(np.bincount(own, weights, k).astype(np.float64)[:, None] + 1.0)[:, 0]
            cpts.append(_counted(own, above, weights, k_above[v], share, kept))
    emissions = {
        v: _emission(whole, some, v, labels[parents[v] - p], k_above[v]) for v in sorted(numbers)
    }
    return TreeModel(tree, root, tuple(cpts), emissions)


def _codes(chunk: Chunk, n_jobs: int) -> NDArray[Any]:
    return dense_codes(chunk.rows)


def _counted(
    own: NDArray[Any], above: Ints, weights: Floats, k_above: int, marginal: Floats, kept: float
) -> Floats:
    """A CPT by counting, mixed with the marginal; samples whose own state is unknown, -1, are left
    out, as are those whose state above is."""
    known, d = (own >= 0) & (above >= 0), len(marginal)
    cells = own[known].astype(np.int64) * k_above + above[known]
    counts = np.bincount(cells, weights[known], d * k_above).astype(np.float64)
    counts = counts.reshape(d, k_above)
    return kept * normalised(counts, marginal) + (1 - kept) * marginal[:, None]


def _emission(whole: Table, some: Table, v: int, labels: Ints, k: int) -> Emission:
    """The emission of a variable, given the states of some samples."""
    values, weights = whole.numbers(v), whole.weights
    start = pooled(whole.families[v], values, k, weights)
    own = np.ones(some.n_samples) if some.weights is None else some.weights
    sums = start.sums(some.numbers(v), np.eye(k)[labels] * own[:, None])
    return start.from_sums(sums, 1.0, target_of(start, values, weights))
