"""Tree + moments of views -> every conditional distribution.

One decomposition for each hidden node gives `E[view | h]` of its three views in one order of the
states. Everything else follows by linear regression in the same order: an observed neighbour from
its moments with the views of other branches, a hidden neighbour from the moments between the views
of the two ends. With `q` the best linear predictor of the states of `h` from its views,
`E[q | h] = G` known, and `x` any variable on another side: `E[x q^T] = E[x | h] diag(w) G^T`. `k`
is the number of states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from latenttree.engine.arrays import Bools, Floats, Ints
from latenttree.model.emissions import Emission
from latenttree.model.tree_model import TreeModel
from latenttree.moments.triples import TripleLayout, TripleMoments
from latenttree.parameters.decomposition import Decomposition, decompose
from latenttree.parameters.regressions import (
    TripletFactors,
    align,
    balanced,
    joint_states,
    project_simplex,
    state_predictors,
)
from latenttree.parameters.views import Views
from latenttree.tree import Tree

LEAST_WEIGHT = 1e-3
LEAST_SAMPLES = 20
"""Lower bound of the probability of a state that something is divided by: the smaller of
`LEAST_WEIGHT` and `LEAST_SAMPLES` samples."""

LEAST_VARIANCE = 1e-10
"""Smallest ratio of variances for a direction of a view that is whitened."""

LEAST_TRUST = 1e8
"""Upper bound of the conditions by which triplets of one node are weighted."""

WORST_GAIN = 1e3
"""Directions of a predictor whose noise would be amplified more than this, or than `sqrt(N)` where
that is more, are left out; on exact moments none is."""


@dataclass(frozen=True, eq=False)
class Parameters:
    """A model from moments, and `(m,)` for each hidden node the `condition` of its decomposition:
    the factor by which errors of the moments are amplified."""

    model: TreeModel
    condition: Floats


class Pooled(NamedTuple):
    """An observed node that is not categorical: its emission with equal states, and the mean
    statistics `(T,)` of the samples."""

    emission: Emission
    target: Floats

    def fitted(self, sums: Floats, n_samples: float) -> Emission:
        """The emission with expected statistics `sums` `(T, k)` per sample.

        Statistics from moments are noisy, and a variance may be negative: a share of
        `1 / sqrt(n_samples)` of all samples is added to every state."""
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


def solve_moments(
    tree: Tree,
    views: Views,
    layout: TripleLayout,
    moments: TripleMoments,
    families: Mapping[int, Pooled] | None = None,
) -> Parameters:
    """The model that the moments imply; exact for exact moments.

    `families` are the observed nodes that are not categorical. One decomposition for each triplet
    of views, then regressions over all edges at once."""
    roots = whitening(moments.own)[views.view]  # (rows, 3, k, k)
    parts = decomposed(moments, roots)
    weights = np.maximum(parts.weights, min(LEAST_WEIGHT, LEAST_SAMPLES / moments.n_samples))
    weights /= weights.sum(axis=1, keepdims=True)
    gain = max(WORST_GAIN, float(np.sqrt(moments.n_samples)))
    triplets = TripletFactors(weights, parts.factors.swapaxes(0, 1), gain)
    work = _Regression(tree, views, layout, moments, roots, triplets).aligned()
    trust = 1 / np.minimum(parts.condition, LEAST_TRUST) ** 2
    joints: list[Any] = [None] * len(tree.edges)
    emissions: dict[int, Emission] = {}
    work.hidden(joints)
    work.emitted(trust, families or {}, joints, emissions)
    for e, joint in zip(work.numbers(layout.counted), moments.counted, strict=True):
        joints[e] = joint
    turned = [j.T if a > b else j for j, (a, b) in zip(joints, tree.edges.tolist(), strict=True)]
    model = TreeModel.from_joints(tree, turned, emissions=emissions)
    return Parameters(model, parts.condition[: tree.n_hidden])


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

    def _joint_states(self, chosen: Bools, apart: bool) -> Floats:
        """Joint moments of the states of two triplets; `apart`: of two different nodes, without the
        views in the branches of each other."""
        i, j = self.layout.hidden[chosen].T
        p = self.tree.n_observed
        nowhere = np.full(len(i), -1)
        one = self.state_predictors(i, p + j if apart else nowhere)
        other = self.state_predictors(j, p + i if apart else nowhere)
        return joint_states(one, other, self.moments.cross[chosen])

    def aligned(self) -> _Regression:
        """The states of second triplets in the order of the reference triplet of their node:
        Procedure "Merging and Alignment Correction" of the paper."""
        second = self.layout.hidden[:, 1] >= self.tree.n_hidden
        if not second.any():
            return self
        orders = align(self._joint_states(second, apart=False))
        return self._replace(
            triplets=self.triplets.reordered(self.layout.hidden[second, 1], orders)
        )

    def hidden(self, joints: list[Any]) -> None:
        """Joints `(k, k)` of hidden neighbours, written into `joints`."""
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
        """Joints of observed nodes with hidden neighbours, averaged over the triplets of the
        neighbour by their `trust`, written into `joints`. For `families` the emission, and as joint
        the weights of the neighbour."""
        rows, nodes = self.layout.emitted.T
        if not len(rows):
            return
        edge = self.numbers(np.column_stack([nodes, self.tree.n_observed + self.views.owner[rows]]))
        share = trust[rows] / np.bincount(edge, trust[rows])[edge]
        weights = self.triplets.weights[rows][:, :, None, None]
        predictor = self.state_predictors(rows, nodes) / weights
        sizes = [len(x) for x in self.moments.emitted]
        for chosen in _alike(sizes, np.isin(nodes, list(families))):
            stacked = np.stack([self.moments.emitted[i] for i in chosen])
            cpts = np.einsum("edsa,ejsa->edj", stacked, predictor[chosen], optimize=True)
            if int(nodes[chosen[0]]) not in families:
                cpts = project_simplex(cpts)
            edges, first, which = np.unique(edge[chosen], return_index=True, return_inverse=True)
            total = np.zeros((len(edges), *cpts.shape[1:]))
            np.add.at(total, which, cpts * share[chosen, None, None])
            w = self.triplets.weights[self.views.owner[rows[chosen[first]]]]
            total *= w[:, None, :]
            by_edge = zip(edges.tolist(), nodes[chosen[first]].tolist(), total, w, strict=True)
            for e, a, joint, states in by_edge:
                joints[e] = joint
                if a in families:
                    emissions[a] = families[a].fitted(joint, self.moments.n_samples)
                    joints[e] = states[None, :]


def _alike(sizes: Sequence[int], apart: Bools) -> list[Ints]:
    """Indices of the items grouped by size, and within a size by `apart`."""
    keys = 2 * np.array(sizes, dtype=np.int64) + apart
    order = np.argsort(keys, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(keys[order])) + 1)


def whitening(own: Floats) -> Floats:
    """Whitening matrices of views with second moments `own` `(n_views, k, k)`: `R y = (1, z)` with
    z centred and of unit covariance."""
    mean = own[:, 0, 1:]
    covariance = own[:, 1:, 1:] - mean[:, :, None] * mean[:, None, :]
    values, vectors = np.linalg.eigh(covariance)
    least = LEAST_VARIANCE * np.maximum(values[:, -1:], 1e-300)
    # a direction without variance is dropped: scaling would only amplify rounding errors
    scale = np.where(values > least, 1 / np.sqrt(np.maximum(values, least)), 0.0)
    roots = np.zeros_like(own)
    roots[:, 1:, 1:] = scale[:, :, None] * vectors.transpose(0, 2, 1)
    roots[:, 1:, 0] = -np.einsum("vij,vj->vi", roots[:, 1:, 1:], mean)
    roots[:, 0, 0] = 1.0
    return roots


def decomposed(moments: TripleMoments, roots: Floats) -> Decomposition:
    """The decomposition of every triplet of views, whitened by `roots` `(rows, 3, k, k)`."""
    third = np.einsum("mia,mjb,mlc,mabc->mijl", *roots.swapaxes(0, 1), moments.third, optimize=True)
    return decompose(
        third,
        (third[:, :, 0, 0], third[:, 0, :, 0], third[:, 0, 0, :]),
        (third[:, :, :, 0], third[:, :, 0, :], third[:, 0, :, :]),
    )


def counted_model(
    tree: Tree, layout: TripleLayout, moments: TripleMoments, marginals: Sequence[Floats]
) -> TreeModel:
    """The model of a tree without hidden nodes: frequencies. Variables that are never known in the
    same sample are assumed independent."""
    number = {tuple(e): i for i, e in enumerate(layout.counted.tolist())}
    joints = []
    for a, b in tree.edges.tolist():
        joint = moments.counted[number[min(a, b), max(a, b)]]
        joint = joint if a < b else joint.T
        joints.append(joint if joint.any() else np.outer(marginals[a], marginals[b]))
    return TreeModel.from_joints(tree, joints, marginals[0])
