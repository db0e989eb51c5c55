"""The model of a region, and fits of its topologies to the messages into it.

A small model over the branches is fitted by EM to the patterns of all samples.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.model.tree_model import TreeModel, normalised
from latenttree.search.region_em import RegionModel, fit_region_model
from latenttree.search.region_patterns import Branches
from latenttree.search.region_topologies import Topology
from latenttree.search.regions import Region
from latenttree.tree import Tree

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

STICKY = 0.7
"""Weight of the identity in the CPT between two new nodes that start from the same old one."""

FIT_STEPS = 60
FIT_GAIN = 0.02
"""A fit ends when a step gains less log-likelihood."""


class Alternative(NamedTuple):
    """A topology fitted to the region's messages."""

    topology: Topology
    model: RegionModel
    log_likelihood: float


def current_topology(tree: Tree, region: Region) -> tuple[Topology, list[int]]:
    """The topology of a region, and its hidden nodes in the order of the topology: the one next to
    branch 0 first, then the far ends of its splits."""
    below = dict.fromkeys(region.inside, 0)
    for b, (v, _) in enumerate(region.branches):
        below[v] |= 1 << b
    up = {region.branches[0][0]: -1}
    order = list(up)
    for v in order:
        for u in tree.neighbors(v).tolist():
            if u in below and u not in up:
                up[u] = v
                order.append(u)
    for v in order[:0:-1]:
        below[up[v]] |= below[v]
    rest = sorted(order[1:], key=lambda v: (-below[v].bit_count(), below[v]))
    return Topology(len(region.branches), tuple(below[v] for v in rest)), [order[0], *rest]


def cut_out(model: TreeModel, region: Region) -> tuple[Topology, RegionModel]:
    """The topology of a region, and its model over the branches with the CPTs of the whole
    model."""
    topology, hidden = current_topology(model.tree, region)
    up, at = topology.parents()
    cpts = [model.marginals[hidden[0]][:, None]]
    cpts += [_given(model, v, hidden[i]) for v, i in zip(hidden[1:], up[1:], strict=True)]
    cpts += [_given(model, u, v) for v, u in region.branches]
    return topology, RegionModel(np.array(up), np.array(at), cpts)


def _given(model: TreeModel, v: int, u: int) -> Floats:
    """`P(v | u)` of an edge. A node with an emission is represented by the states of the neighbour
    that it was learned with: next to another node it is a mixture of them."""
    if v in model.emissions:
        return np.eye(len(model.cpts[u]))
    if model.parents[v] == u:
        return model.cpts[v]
    return normalised((model.cpts[u] * model.marginals[v]).T, model.marginals[v])


def branch_correlations(model: RegionModel, branches: Branches) -> Floats:
    """`|det C_ab|^(1 / n_directions)` between the branches of a cut-out model, `(m, m)`.

    A branch is represented by the posterior of its neighbour inside given the branch alone."""
    share = branches.weights / max(float(branches.weights.sum()), 1e-300)
    marginals, n_directions, n_hidden = model.marginals(), model.n_states - 1, len(model.parent)
    features = np.empty((len(branches.codes) * n_directions, len(share)))
    for b, v in enumerate(model.branch_parent.tolist()):
        cpt = model.cpts[n_hidden + b]
        own = marginals[n_hidden + b]
        given = (cpt * marginals[v])[:, 1:].T / np.maximum(own, 1e-300)  # (n_directions, d)
        if branches.is_message[b]:
            weighted = branches.messages[b] * own[:, None]
            y = given @ (weighted / np.maximum(weighted.sum(axis=0), 1e-30))
        else:
            # the last for a missing value
            y = np.hstack([given, marginals[v][1:, None]])[:, branches.codes[b]]
        features[b * n_directions : (b + 1) * n_directions] = y
    features -= (features @ share)[:, None]
    m = len(branches.codes)
    return _correlations(
        ((features * share) @ features.T).reshape(m, n_directions, m, n_directions).swapaxes(1, 2)
    )


def _correlations(second: Floats) -> Floats:
    """`|det C_ij|^(1 / r)` with `C_ij` whitened, from second moments `(m, m, r, r)`."""
    m, n_directions = len(second), second.shape[2]
    own = second[np.arange(m), np.arange(m)]
    scale = np.maximum(np.trace(own, axis1=1, axis2=2), 1e-300)
    own = np.linalg.det(own + 1e-9 * scale[:, None, None] * np.eye(n_directions))
    size = np.sqrt(np.maximum(own[:, None] * own[None, :], 1e-300))
    r = np.minimum((np.abs(np.linalg.det(second)) / size) ** (1 / n_directions), 1.0)
    np.fill_diagonal(r, 1.0)
    return np.asarray((r + r.T) / 2)


def fit_region(
    start: RegionModel,
    topology: Topology,
    branches: Branches,
    smoothing: float,
    bar: float = -np.inf,
) -> Alternative:
    """EM over a region from a model of the given topology; stopped early where the log-likelihood
    `bar` is out of reach."""
    model, value = fit_region_model(start, branches, smoothing, FIT_STEPS, FIT_GAIN, bar)
    return Alternative(topology, model, value)


def start_of(current: RegionModel, topology: Topology) -> RegionModel:
    """A model of another topology: each new node is identified with the old one of the most similar
    distances to the branches, and takes the distributions of the current model between them."""
    up, at = (np.array(x) for x in topology.parents())
    old, new = _hops(current.parent, current.branch_parent), _hops(up, at)
    like = np.abs(old[None] - new[:, None]).sum(axis=2).argmin(axis=1).tolist()
    marginals, between = current.marginals(), _between(current)
    cpts = [marginals[like[0]][:, None]]
    for v, u in zip(like[1:], up[1:].tolist(), strict=True):
        w = marginals[v][:, None]
        sticky = STICKY * np.eye(len(w)) + (1 - STICKY) * w
        cpts.append(sticky if v == like[u] else between[v, like[u]])
    branches = zip(current.branch_parent.tolist(), at.tolist(), strict=True)
    for cpt, (v, u) in zip(current.cpts[len(current.parent) :], branches, strict=True):
        cpts.append(cpt @ between[v, like[u]])
    return RegionModel(up, at, cpts)


def _between(model: RegionModel) -> Floats:
    """`P(v | u)` of all hidden nodes along the path between them, `(H, H, k, k)`."""
    n_hidden, k = len(model.parent), model.n_states
    found = np.empty((n_hidden, n_hidden, k, k))
    marginals = model.marginals()
    found[0, 0] = np.eye(k)
    for v in range(1, n_hidden):
        u, cpt = int(model.parent[v]), model.cpts[v]
        back = normalised((cpt * marginals[u]).T, marginals[u])
        found[v, v] = np.eye(k)
        found[v, :v] = cpt @ found[u, :v]
        found[:v, v] = found[:v, u] @ back
    return found


def _hops(up: Ints, at: Ints) -> Ints:
    """Steps from every hidden node to every branch, `(H, m)`."""
    steps = np.zeros((len(up), len(up)), dtype=np.int64)
    for v in range(1, len(up)):
        steps[v, :v] = steps[:v, v] = steps[up[v], :v] + 1
    return np.asarray(steps[:, at] + 1)


def edge_joints(model: RegionModel) -> list[tuple[int, int, Floats]]:
    """Edges as (node, parent, joint): branches are nodes 0..m-1, hidden node i is node `m + i`."""
    n_hidden, m = len(model.parent), len(model.branch_parent)
    marginals = model.marginals()
    above = [*model.parent.tolist(), *model.branch_parent.tolist()]
    nodes = [*range(m, m + n_hidden), *range(m)]
    return [
        (nodes[i], m + above[i], model.cpts[i] * marginals[above[i]])
        for i in range(1, n_hidden + m)
    ]
