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
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from latenttree.model.emissions import Emission
from latenttree.model.samples import Chunk, as_chunk
from latenttree.model.tree_model import TreeModel, default_root
from latenttree.moments.sparse_triples import sparse_triple_moments
from latenttree.moments.triples import TripleLayout, TripleMoments, triple_moments
from latenttree.parameters.decomposition import Decomposition, decompose
from latenttree.parameters.regressions import (
    TripletFactors,
    align,
    balanced,
    joint_states,
    project_simplex,
    state_predictors,
)
from latenttree.parameters.sparse_views import sparse_features
from latenttree.parameters.views import (
    Projections,
    VectorProjections,
    Views,
    choose_views,
    leaf_features,
    message_features,
    only_of,
)
from latenttree.tree import Tree

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Chunks = Callable[[], Iterable[Chunk | NDArray[Any]]]
"""Calls give all samples, or their codes, chunk by chunk, in the same order every time."""

LEAST_WEIGHT = 1e-3
LEAST_SAMPLES = 20
"""A state is taken to have this probability, or this many samples where that is less, when
something is divided by it."""

LEAST_VARIANCE = 1e-10
MAX_ROUNDS = 2
LEAST_TRUST = 1e8
"""A group whose condition is larger counts no less than this."""

WORST_GAIN = 1e3
"""Directions of a predictor whose noise would be amplified more than this, or than `sqrt(N)` where
that is more, are left out; on exact moments none is."""


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


def layout_of(tree: Tree, views: Views, dims: Ints) -> TripleLayout:
    """The moments that the edges of a tree need."""
    p = tree.n_observed
    a, b = np.sort(tree.edges, axis=1).T
    both, none = a >= p, b < p
    one = ~both & ~none
    second = np.arange(tree.n_hidden, len(views.view))
    edges = np.column_stack([a[both], b[both]]) - p
    emitted = np.column_stack([b[one] - p, a[one]])
    order = np.argsort(emitted[:, 0], kind="stable")
    begin, end = (
        np.searchsorted(emitted[order, 0], views.owner[second], side) for side in ("left", "right")
    )
    count = end - begin
    within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    again = emitted[order[np.repeat(begin, count) + within], 1]
    return TripleLayout(
        views.view,
        len(views.source),
        np.concatenate([edges, np.column_stack([views.owner[second], second])]),
        np.concatenate([emitted, np.column_stack([np.repeat(second, count), again])]),
        np.column_stack([a[none], b[none]]),
        np.asarray(dims, dtype=np.int64),
    )


def solve(
    tree: Tree,
    views: Views,
    layout: TripleLayout,
    moments: TripleMoments,
    families: Mapping[int, Pooled] | None = None,
) -> Parameters:
    """The model that the moments imply; exact where the moments are.

    `families` are the observed nodes that are not categorical."""
    roots = _roots(moments.own)[views.view]  # (rows, 3, k, k)
    found = _decomposed(moments, roots)
    weights = np.maximum(found.weights, min(LEAST_WEIGHT, LEAST_SAMPLES / moments.n_samples))
    weights /= weights.sum(axis=1, keepdims=True)
    gain = max(WORST_GAIN, float(np.sqrt(moments.n_samples)))
    triplets = TripletFactors(weights, np.stack(found.factors, axis=1), gain)
    work = _Regression(tree, views, layout, moments, roots, triplets).aligned()
    trust = 1 / np.minimum(found.condition, LEAST_TRUST) ** 2
    joints: list[Any] = [None] * len(tree.edges)
    emissions: dict[int, Emission] = {}
    work.hidden(joints)
    work.emitted(trust, families or {}, joints, emissions)
    for e, joint in zip(work.numbers(layout.counted), moments.counted, strict=True):
        joints[e] = joint
    model = _model_of(tree, joints, emissions)
    return Parameters(model, found.condition[: tree.n_hidden])


class _Regression(NamedTuple):
    """From triplets of views to the joints of all edges, the end of smaller number first."""

    tree: Tree
    views: Views
    layout: TripleLayout
    moments: TripleMoments
    roots: Floats
    triplets: TripletFactors

    def numbers(self, pairs: Ints) -> Ints:
        """Numbers of the edges between pairs of nodes, the smaller one first."""
        keys = np.sort(self.tree.edges, axis=1) @ [self.tree.n_nodes, 1]
        order = np.argsort(keys)
        wanted = pairs @ [self.tree.n_nodes, 1]
        return np.asarray(order[np.searchsorted(keys, wanted, sorter=order)])

    def state_predictors(self, rows: Ints, without: Ints) -> Floats:
        """See `regressions.state_predictors`; for moments of the views before whitening."""
        found = state_predictors(self.triplets, self.views.branch, rows, without)
        return np.asarray(np.einsum("ejsi,esia->ejsa", found, self.roots[rows], optimize=True))

    def _joint_states(self, chosen: NDArray[np.bool_], apart: bool) -> Floats:
        """Moments of the states of two triplets; `apart`: of two nodes, which are no views of each
        other."""
        i, j = self.layout.hidden[chosen].T
        p = self.tree.n_observed
        nowhere = np.full(len(i), -1)
        one = self.state_predictors(i, p + j if apart else nowhere)
        other = self.state_predictors(j, p + i if apart else nowhere)
        return joint_states(one, other, self.moments.cross[chosen])

    def aligned(self) -> _Regression:
        """The states of second triplets in the order of the reference group of their node:
        Procedure "Merging and Alignment Correction"."""
        second = self.layout.hidden[:, 1] >= self.tree.n_hidden
        if not second.any():
            return self
        orders = align(self._joint_states(second, apart=False))
        return self._replace(
            triplets=self.triplets.reordered(self.layout.hidden[second, 1], orders)
        )

    def hidden(self, joints: list[Any]) -> None:
        """Joints `(k, k)` of hidden neighbours."""
        edges = self.layout.hidden[:, 1] < self.tree.n_hidden
        i, j = self.layout.hidden[edges].T
        w = self.triplets.weights
        found = balanced(self._joint_states(edges, apart=True), w[i], w[j])
        numbers = self.numbers(self.tree.n_observed + self.layout.hidden[edges])
        for e, joint in zip(numbers.tolist(), found, strict=True):
            joints[e] = joint

    def emitted(
        self,
        trust: Floats,
        families: Mapping[int, Pooled],
        joints: list[Any],
        emissions: dict[int, Emission],
    ) -> None:
        """Joints of observed nodes with hidden neighbours: what the triplets of the neighbour say,
        by their `trust`. Of families, emissions, and joints that are the neighbour's weights."""
        rows, nodes = self.layout.emitted.T
        if not len(rows):
            return
        edge = self.numbers(np.column_stack([nodes, self.tree.n_observed + self.views.owner[rows]]))
        share = trust[rows] / np.bincount(edge, trust[rows])[edge]
        reading = self.state_predictors(rows, nodes) / self.triplets.weights[rows][:, :, None, None]
        for chosen in _alike(
            [len(x) for x in self.moments.emitted], np.isin(nodes, list(families))
        ):
            stacked = np.stack([self.moments.emitted[i] for i in chosen])
            tables = np.einsum("edsa,ejsa->edj", stacked, reading[chosen], optimize=True)
            if int(nodes[chosen[0]]) not in families:
                tables = project_simplex(tables)
            edges, first, which = np.unique(edge[chosen], return_index=True, return_inverse=True)
            total = np.zeros((len(edges), *tables.shape[1:]))
            np.add.at(total, which, tables * share[chosen, None, None])
            w = self.triplets.weights[self.views.owner[rows[chosen[first]]]]
            total *= w[:, None, :]
            told = zip(edges.tolist(), nodes[chosen[first]].tolist(), total, w, strict=True)
            for e, a, joint, states in told:
                joints[e] = joint
                if a in families:
                    emissions[a] = families[a].fitted(joint, self.moments.n_samples)
                    joints[e] = states[None, :]


def _alike(sizes: Sequence[int], apart: NDArray[np.bool_]) -> list[Ints]:
    """Numbers of the items of each size, and of those the ones that are apart by themselves."""
    keys = 2 * np.array(sizes, dtype=np.int64) + apart
    order = np.argsort(keys, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(keys[order])) + 1)


def _model_of(tree: Tree, joints: Sequence[Floats], emissions: dict[int, Emission]) -> TreeModel:
    """`TreeModel.from_joints`, of each edge the end of smaller number first, for tables of a shape
    together; columns without weight are even."""
    root = default_root(tree)
    parents = tree.rooted(root).parents
    ends = np.sort(tree.edges, axis=1)
    down = parents[ends[:, 1]] == ends[:, 0]  # the end of smaller number is the parent
    child = np.where(down, ends[:, 1], ends[:, 0])
    turned = [j.T if d else j for j, d in zip(joints, down.tolist(), strict=True)]
    tables: list[Any] = [None] * tree.n_nodes
    by_shape: dict[tuple[int, ...], list[int]] = {}
    for e, joint in enumerate(turned):
        by_shape.setdefault(joint.shape, []).append(e)
    for edges in by_shape.values():
        stacked = np.maximum(np.stack([turned[e] for e in edges]), 0.0)
        sums = stacked.sum(axis=1, keepdims=True)
        stacked = np.where(sums > 0, stacked, 1.0)
        stacked /= stacked.sum(axis=1, keepdims=True)
        for v, table in zip(child[edges].tolist(), stacked, strict=True):
            tables[v] = table
    below = [turned[e] for e in np.flatnonzero(parents[child] == root)]
    prior = np.maximum(np.mean([j.sum(axis=0) / j.sum() for j in below], axis=0), 0.0)
    tables[root] = (prior / prior.sum())[:, None]
    return TreeModel.trusted(tree, root, tables, emissions)


def _roots(own: Floats) -> Floats:
    """Whitening matrices of views with second moments `own` `(n_views, k, k)`: `R y = (1, z)` with
    z centred and of unit covariance."""
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


def estimate_by_moments(
    tree: Tree,
    projections: Projections,
    dims: Ints,
    marginals: Sequence[Floats],
    chunks: Chunks,
    n_states: int,
    *,
    families: Mapping[int, Pooled] | None = None,
    hidden_features: bool = True,
    fewer: Chunks | None = None,
    judge: Callable[[TreeModel], float] | None = None,
    n_jobs: int = 1,
) -> Parameters:
    """All conditional distributions of a tree from moments of its views.

    First with observed variables as views; then, with `hidden_features`, again with messages out
    of the branches, once for every level at which a single variable no longer tells enough. The
    last is returned, or the one that `judge` values most.

    Rounds before the last only make features, and any function of a branch is one: for a start of
    EM they may see `fewer` samples, and one of messages is enough."""
    if not tree.n_hidden:
        layout = layout_of(tree, choose_views(tree, 1, hidden=False), dims)
        moments = triple_moments(_read(chunks), _no_views, layout, 1, n_jobs)
        return Parameters(counted_model(tree, layout, moments, marginals), np.empty(0))
    views = choose_views(tree, n_states - 1, hidden=False)
    most = MAX_ROUNDS if fewer is None else 1
    rounds = min(most, _depth(tree) - 1) if hidden_features else 0
    work = _Work(tree, dims, projections, n_states, families or {}, n_jobs)
    some = chunks if fewer is None else fewer
    found = [work.round(views, None, some if rounds else chunks)]
    if rounds:
        views = choose_views(tree, n_states - 1, hidden=True)
        for left in range(rounds, 0, -1):
            found.append(work.round(views, found[-1].model, some if left > 1 else chunks))
    return found[-1] if judge is None else max(found, key=lambda f: judge(f.model))


def node_conditions(
    model: TreeModel,
    projections: Projections,
    chunks: Chunks,
    nodes: NDArray[np.bool_],
    *,
    hidden_features: bool = True,
    n_jobs: int = 1,
) -> Floats:
    """`Parameters.condition` of the hidden nodes that `nodes` `(m,)` marks; views are messages of a
    model that is known."""
    tree, k = model.tree, int(model.dims[-1])
    views = only_of(choose_views(tree, k - 1, hidden=hidden_features), nodes)
    nothing = np.empty((0, 2), dtype=np.int64)
    dims = model.dims[: tree.n_observed]
    layout = TripleLayout(views.view, len(views.source), nothing, nothing, nothing, dims)
    moments = _Work(tree, dims, projections, k, {}, n_jobs).moments(views, layout, model, chunks)
    return _decomposed(moments, _roots(moments.own)[views.view]).condition


def _decomposed(moments: TripleMoments, roots: Floats) -> Decomposition:
    """The decomposition of every group of views, whitened by `roots` `(rows, 3, k, k)`."""
    third = np.einsum("mia,mjb,mlc,mabc->mijl", *roots.swapaxes(0, 1), moments.third, optimize=True)
    return decompose(
        third,
        (third[:, :, 0, 0], third[:, 0, :, 0], third[:, 0, 0, :]),
        (third[:, :, :, 0], third[:, :, 0, :], third[:, 0, :, :]),
    )


def _read(chunks: Chunks) -> Iterator[Chunk]:
    yield from map(as_chunk, chunks())


def _no_views(chunk: Chunk) -> NDArray[np.float32]:
    return np.empty((0, 1, len(chunk)), dtype=np.float32)


class _Work(NamedTuple):
    """What every round of views shares."""

    tree: Tree
    dims: Ints
    projections: Projections
    k: int
    families: Mapping[int, Pooled]
    n_jobs: int

    def round(self, views: Views, model: TreeModel | None, chunks: Chunks) -> Parameters:
        """Parameters by views of observed nodes, or of messages of a model."""
        layout = layout_of(self.tree, views, self.dims)
        moments = self.moments(views, layout, model, chunks)
        return solve(self.tree, views, layout, moments, self.families)

    def moments(
        self, views: Views, layout: TripleLayout, model: TreeModel | None, chunks: Chunks
    ) -> TripleMoments:
        """The moments of a layout."""
        if _is_present(chunks) and not self.families:
            assert not isinstance(self.projections, VectorProjections)
            look_up = sparse_features(views, self.projections, model, self.n_jobs)
            return sparse_triple_moments(_read(chunks), look_up, layout, self.k, self.n_jobs)
        if model is None:
            look_up = leaf_features(views, self.projections, self.n_jobs)
        else:
            look_up = message_features(views, self.projections, model, self.n_jobs)
        statistics = {a: family.emission for a, family in self.families.items()}
        return triple_moments(_read(chunks), look_up, layout, self.k, self.n_jobs, statistics)


def _is_present(chunks: Chunks) -> bool:
    """Whether samples say which variables are present."""
    return any(issparse(chunk.rows) for chunk in islice(_read(chunks), 1))


def _depth(tree: Tree) -> int:
    """Steps from the hidden node that is farthest from all observed nodes to the nearest."""
    one, other = np.concatenate([tree.edges, tree.edges[:, ::-1]]).T
    seen = np.arange(tree.n_nodes) < tree.n_observed
    depth = 0
    while not seen.all():
        seen[other[seen[one]]] = True
        depth += 1
    return depth


def counted_model(
    tree: Tree, layout: TripleLayout, moments: TripleMoments, marginals: Sequence[Floats]
) -> TreeModel:
    """The model of a tree without hidden nodes: frequencies. Variables that no sample has together
    are taken to be independent: nothing says otherwise."""
    number = {tuple(e): i for i, e in enumerate(layout.counted.tolist())}
    joints = []
    for a, b in tree.edges.tolist():
        joint = moments.counted[number[min(a, b), max(a, b)]]
        joint = joint if a < b else joint.T
        joints.append(joint if joint.any() else np.outer(marginals[a], marginals[b]))
    return TreeModel.from_joints(tree, joints, marginals[0])
