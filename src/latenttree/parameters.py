"""Tree + moments of views -> every conditional distribution.

One decomposition for each hidden node gives `E[view | h]` of its three views in one order of the
states. Everything else follows by linear regression in the same order: an observed neighbour from
its moments with the views behind other branches, a hidden neighbour from the moments between the
views of the two ends. With `q` the best linear predictor of the states of `h` from its views,
`E[q | h] = G` known, and `x` any variable on another side: `E[x q^T] = E[x | h] diag(w) G^T`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from latenttree.decomposition import decompose
from latenttree.emissions import Emission
from latenttree.model import TreeModel
from latenttree.moments.triples import Layout, TripleMoments, triple_moments
from latenttree.samples import Chunk, as_chunk
from latenttree.tree import Tree
from latenttree.views import (
    Features,
    Looks,
    Views,
    choose_views,
    leaf_features,
    message_features,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Chunks = Callable[[], Iterable[Chunk | NDArray[Any]]]
"""Calls give all samples, or their codes, chunk by chunk, in the same order every time."""

LEAST_WEIGHT = 1e-3
LEAST_SAMPLES = 20
"""A state is taken to have this probability, or this many samples where that is less, when
something is divided by it."""

LEAST_VARIANCE = 1e-10
LEAST_EIGENVALUE = 1e-6
N_SCALINGS = 30
MAX_ROUNDS = 2
LEAST_TRUST = 1e8
"""A group whose condition is larger counts no less than this."""

WORST_GAIN = 1e3
"""Directions of a predictor whose noise would be amplified more than this, or than `sqrt(N)` where
that is more, are left out; on exact moments none is."""

LEAST_JOINT = 1e-9
"""Two hidden neighbours are at least this share of independent."""


@dataclass(frozen=True, eq=False)
class Parameters:
    """A model from moments, and how far each hidden node's decomposition can be trusted.

    `condition` `(m,)` is by how much errors of the moments grow in the decomposition of a node."""

    model: TreeModel
    condition: Floats


class Pooled(NamedTuple):
    """An observed node that is not categorical: its family, all states alike, and the mean
    statistics `(T,)` of the samples."""

    emission: Emission
    target: Floats

    def fitted(self, sums: Floats, n_samples: float) -> Emission:
        """The family's member with expected statistics `sums` `(T, k)` a sample.

        Statistics of moments are noisy, a variance may come out negative: a share of
        `1 / sqrt(n_samples)` of all samples in every state keeps it in bounds."""
        return self.emission.from_sums(sums, 1 / np.sqrt(n_samples), self.target)


class _Node(NamedTuple):
    """Decompositions of all groups of views, whitened."""

    weights: Floats  # (rows, k)
    factors: Floats  # (rows, 3, k, k) E[(1, z) | h]
    worst_gain: float


def layout_of(tree: Tree, views: Views, dims: Ints) -> Layout:
    """The moments that the edges of a tree need."""
    p = tree.n_observed
    a, b = np.sort(tree.edges, axis=1).T
    both, none = a >= p, b < p
    one = ~both & ~none
    second = np.arange(tree.n_hidden, len(views.view))
    edges = np.column_stack([a[both], b[both]]) - p
    emitted = np.column_stack([b[one] - p, a[one]])
    again = [(r, x) for r in second for x in emitted[emitted[:, 0] == views.owner[r], 1]]
    return Layout(
        views.view,
        len(views.source),
        np.concatenate([edges, np.column_stack([views.owner[second], second])]),
        np.concatenate([emitted, np.array(again, dtype=np.int64).reshape(-1, 2)]),
        np.column_stack([a[none], b[none]]),
        np.asarray(dims, dtype=np.int64),
    )


def solve(
    tree: Tree,
    views: Views,
    layout: Layout,
    moments: TripleMoments,
    families: Mapping[int, Pooled] | None = None,
) -> Parameters:
    """The model that the moments imply; exact where the moments are.

    `families` are the observed nodes that are not categorical."""
    families = families or {}
    whitened = _whiten(views, layout, moments)
    third = whitened.third
    found = decompose(
        third,
        (third[:, :, 0, 0], third[:, 0, :, 0], third[:, 0, 0, :]),
        (third[:, :, :, 0], third[:, :, 0, :], third[:, 0, :, :]),
    )
    weights = np.maximum(found.weights, min(LEAST_WEIGHT, LEAST_SAMPLES / moments.n_samples))
    weights /= weights.sum(axis=1, keepdims=True)
    gain = max(WORST_GAIN, float(np.sqrt(moments.n_samples)))
    node = _Node(weights, np.stack(found.factors, axis=1), gain)
    joints = [np.empty(0)] * len(tree.edges)
    number = {tuple(sorted(e)): i for i, e in enumerate(tree.edges.tolist())}
    p, m = tree.n_observed, tree.n_hidden
    for (i, r), moment in zip(layout.hidden.tolist(), whitened.cross, strict=True):
        if r >= m:
            _align_group(node, views, i, r, moment)
    trust = 1 / np.minimum(found.condition, LEAST_TRUST) ** 2
    told: dict[int, list[tuple[float, Floats]]] = {}
    for (r, a), moment in zip(layout.emitted.tolist(), whitened.emitted, strict=True):
        table = _expectations(node, views, r, a, moment)
        table = table if a in families else project_simplex(table)
        told.setdefault(number[a, p + views.owner[r]], []).append((trust[r], table))
    emissions: dict[int, Emission] = {}
    for e, tables in told.items():
        share = sum(t for t, _ in tables)
        a, w = int(tree.edges[e].min()), node.weights[tree.edges[e].max() - p]
        joints[e] = sum(t * table for t, table in tables) / share * w
        if a in families:
            emissions[a] = families[a].fitted(joints[e], moments.n_samples)
            joints[e] = w[None, :]
    for (i, j), moment in zip(layout.hidden.tolist(), whitened.cross, strict=True):
        if j < m:
            joints[number[p + i, p + j]] = _hidden_joint(node, views, i, j, p, moment)
    for (a, b), joint in zip(layout.counted.tolist(), moments.counted, strict=True):
        joints[number[a, b]] = joint
    oriented = [j if a < b else j.T for (a, b), j in zip(tree.edges.tolist(), joints, strict=True)]
    model = TreeModel.from_joints(tree, oriented, emissions=emissions)
    return Parameters(model, found.condition[:m])


def _align_group(node: _Node, views: Views, i: int, r: int, moment: Floats) -> None:
    """Bring the states of a node's second group `r`, in place, into the order of its reference
    group `i`: the relation of two groups of one hidden node, Procedure "Merging and Alignment
    Correction", by linear assignment."""
    one, other = _predictor(node, views, i, -1), _predictor(node, views, r, -1)
    size = one.linear.shape[1]
    second = one.linear @ moment.reshape(size, size) @ other.linear.T
    order = align(one.inverse @ second @ other.inverse.T)
    node.weights[r] = node.weights[r][order]
    node.factors[r] = node.factors[r][:, :, order]


def _whiten(views: Views, layout: Layout, moments: TripleMoments) -> TripleMoments:
    """Moments of `R y`, `R` such that `R y = (1, z)` with z centred and of unit covariance."""
    roots = _roots(moments.own)
    r = roots[views.view]  # (m, 3, k, k)
    third = np.einsum(
        "mia,mjb,mlc,mabc->mijl", r[:, 0], r[:, 1], r[:, 2], moments.third, optimize=True
    )
    one, other = r[layout.hidden[:, 0]], r[layout.hidden[:, 1]]
    cross = np.einsum("hsia,hsatb,htjb->hsitj", one, moments.cross, other, optimize=True)
    emitted = tuple(
        np.einsum("sia,dsa->dsi", r[i], moment)
        for (i, _), moment in zip(layout.emitted.tolist(), moments.emitted, strict=True)
    )
    return moments._replace(third=third, cross=cross, emitted=emitted)


def _roots(own: Floats) -> Floats:
    """Whitening matrices of views with second moments `own` `(n_views, k, k)`."""
    mean = own[:, 0, 1:]
    covariance = own[:, 1:, 1:] - mean[:, :, None] * mean[:, None, :]
    values, vectors = np.linalg.eigh(covariance)
    least = LEAST_VARIANCE * np.maximum(values[:, -1:], 1e-300)
    # a direction without variance says nothing; scaling it up would make its rounding loud
    scale = np.where(values > least, 1 / np.sqrt(np.maximum(values, least)), 0.0)
    roots = np.zeros_like(own)
    roots[:, 1:, 1:] = scale[:, :, None] * vectors.transpose(0, 2, 1)
    roots[:, 1:, 0] = -np.einsum("vij,vj->vi", roots[:, 1:, 1:], mean)
    roots[:, 0, 0] = 1.0
    return roots


class _Predictor(NamedTuple):
    """`q = L y`, the best linear predictor of a hidden node's states from its views, stacked.

    `E[q | h] = G`; `inverse = G^-1`, without directions that are noise."""

    linear: Floats  # (k, 3 k)
    inverse: Floats  # (k, k)


def _predictor(node: _Node, views: Views, i: int, without: int) -> _Predictor:
    """The predictor of hidden node `i` from its views, but the one behind neighbour `without`.

    `L = diag(w) B^T S^-1` with `B = E[y | h]` and `S = E[y y^T]` as the model has it: views are
    whitened, and independent given h."""
    k = node.weights.shape[1]
    kept = [s for s in range(3) if views.branch[i, s] != without]
    w, factors = node.weights[i], node.factors[i, kept]
    b = np.concatenate([np.ones((1, k)), *(f[1:] for f in factors)])
    second = (b * w) @ b.T
    for s in range(len(kept)):
        block = slice(1 + s * (k - 1), 1 + (s + 1) * (k - 1))
        second[block, block] = np.eye(k - 1)
    values, vectors = np.linalg.eigh(second)
    values = np.maximum(values, LEAST_EIGENVALUE)
    linear = (b * w).T @ (vectors / values) @ vectors.T
    spread = np.zeros((k, 3 * k))
    for s, slot in enumerate(kept):
        spread[:, slot * k + 1 : (slot + 1) * k] = linear[
            :, 1 + s * (k - 1) : 1 + (s + 1) * (k - 1)
        ]
    spread[:, kept[0] * k] = linear[:, 0]
    return _Predictor(spread, np.linalg.pinv(linear @ b, rcond=1 / node.worst_gain))


def _expectations(node: _Node, views: Views, i: int, a: int, moment: Floats) -> Floats:
    """`E[t(a) | i]`, `(T, k)`, of an observed node and its hidden neighbour, by one group of views;
    of a categorical node `P(a | i)`, up to noise."""
    q = _predictor(node, views, i, a)
    joint = moment.reshape(len(moment), -1) @ q.linear.T @ q.inverse.T
    return np.asarray(joint / node.weights[i])


def _hidden_joint(node: _Node, views: Views, i: int, j: int, p: int, moment: Floats) -> Floats:
    """Joint `(k, k)` of two hidden neighbours."""
    one, other = _predictor(node, views, i, p + j), _predictor(node, views, j, p + i)
    size = one.linear.shape[1]
    second = one.linear @ moment.reshape(size, size) @ other.linear.T
    joint = one.inverse @ second @ other.inverse.T
    return balanced(joint, node.weights[i], node.weights[j])


def balanced(joint: Floats, rows: Floats, columns: Floats) -> Floats:
    """The nearest joint with all entries positive and, as far as they go together, the given
    marginals: clipped, then scaled in turns (Sinkhorn)."""
    joint = np.maximum(joint, LEAST_JOINT * np.outer(rows, columns))  # no row is empty
    for _ in range(N_SCALINGS):
        joint = joint * (rows / joint.sum(axis=1))[:, None]
        joint = joint * (columns / joint.sum(axis=0))
    return joint / joint.sum()


def project_simplex(columns: Floats) -> Floats:
    """Euclidean projection of every column onto the simplex (sort and threshold)."""
    d = len(columns)
    ordered = -np.sort(-columns, axis=0)
    excess = (np.cumsum(ordered, axis=0) - 1) / np.arange(1, d + 1)[:, None]
    last = (ordered > excess).sum(axis=0) - 1
    return np.maximum(columns - excess[last, np.arange(columns.shape[1])], 0.0)


def align(joint: Floats) -> Ints:
    """Order of the states of one decomposition of a hidden node that matches another's.

    `joint[a, b]` is the probability of state a in the first order and b in the second (the
    reference-group relation of the paper, from views behind different branches), all of it on a
    permuted diagonal; `order[a] = b` by linear assignment."""
    return np.asarray(linear_sum_assignment(-joint)[1])


def estimate_parameters(
    tree: Tree,
    looks: Looks,
    dims: Ints,
    marginals: Sequence[Floats],
    chunks: Chunks,
    n_states: int,
    *,
    families: Mapping[int, Pooled] | None = None,
    hidden_features: bool = True,
    judge: Callable[[TreeModel], float] | None = None,
    n_jobs: int = 1,
) -> Parameters:
    """All conditional distributions of a tree from moments of its views.

    First with observed variables as views; then, with `hidden_features`, again with messages out
    of the branches, once for every level at which a single variable no longer tells enough. The
    last is returned, or the one that `judge` values most."""
    if not tree.n_hidden:
        layout = layout_of(tree, choose_views(tree, 1, hidden=False), dims)
        moments = triple_moments(_read(chunks), _no_views, layout, 1, n_jobs)
        return Parameters(counted_model(tree, layout, moments, marginals[0]), np.empty(0))
    views = choose_views(tree, n_states - 1, hidden=False)
    work = _Work(tree, dims, chunks, n_states, families or {}, n_jobs)
    found = [work.round(views, leaf_features(views, looks))]
    if hidden_features:
        views = choose_views(tree, n_states - 1, hidden=True)
        for _ in range(min(MAX_ROUNDS, _depth(tree) - 1)):
            look_up = message_features(views, looks, found[-1].model, n_jobs)
            found.append(work.round(views, look_up))
    return found[-1] if judge is None else max(found, key=lambda f: judge(f.model))


def _read(chunks: Chunks) -> Iterator[Chunk]:
    yield from map(as_chunk, chunks())


def _no_views(chunk: Chunk) -> NDArray[np.float32]:
    return np.empty((len(chunk), 0, 1), dtype=np.float32)


class _Work(NamedTuple):
    """What every round of views shares."""

    tree: Tree
    dims: Ints
    chunks: Chunks
    k: int
    families: Mapping[int, Pooled]
    n_jobs: int

    def round(self, views: Views, features: Features) -> Parameters:
        layout = layout_of(self.tree, views, self.dims)
        statistics = {a: family.emission for a, family in self.families.items()}
        moments = triple_moments(
            _read(self.chunks), features, layout, self.k, self.n_jobs, statistics
        )
        return solve(self.tree, views, layout, moments, self.families)


def _depth(tree: Tree) -> int:
    """Steps from the hidden node that is farthest from all observed nodes to the nearest."""
    steps = np.zeros(tree.n_nodes, dtype=np.int64)
    ring = list(range(tree.n_observed))
    seen = set(ring)
    depth = 0
    while ring:
        ring = sorted({u for v in ring for u in tree.neighbors(v)} - seen)
        seen.update(ring)
        depth += bool(ring)
        steps[ring] = depth
    return int(steps.max(initial=0))


def counted_model(tree: Tree, layout: Layout, moments: TripleMoments, prior: Floats) -> TreeModel:
    """The model of a tree without hidden nodes: frequencies."""
    number = {tuple(e): i for i, e in enumerate(layout.counted.tolist())}
    joints = [
        moments.counted[number[a, b]] if a < b else moments.counted[number[b, a]].T
        for a, b in tree.edges.tolist()
    ]
    return TreeModel.from_joints(tree, joints, prior)
