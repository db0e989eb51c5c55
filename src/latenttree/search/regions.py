"""A small region of the tree, cut out with the messages that come into it, and fits of its shapes.

What the branches around a region say about it does not change when the region does. So another
topology of the region is judged from the messages alone: a small model over the branches, fitted by
EM to the patterns of all samples, at a cost that does not depend on the size of the tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.model.tree_model import TreeModel, normalised
from latenttree.search.region_em import Small, fit_small
from latenttree.search.region_patterns import Branches
from latenttree.search.region_topologies import Shape
from latenttree.tree import Tree

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_BRANCHES = 8

STICKY = 0.7
"""How much two new nodes that start from the same old one agree."""

FIT_STEPS = 60
FIT_GAIN = 0.02
"""Log-likelihood below which a further step is not worth it."""


class Region(NamedTuple):
    """Hidden nodes `inside`, and the `(inside, outside)` edges where branches begin."""

    inside: tuple[int, ...]
    branches: tuple[tuple[int, int], ...]


class Alternative(NamedTuple):
    """A shape fitted to the region's messages."""

    shape: Shape
    model: Small
    log_likelihood: float


def region_around(
    tree: Tree, centre: Sequence[int], radius: int, max_branches: int = MAX_BRANCHES
) -> Region:
    """The hidden nodes within `radius` steps of `centre`, while branches stay few."""
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


def present_shape(tree: Tree, region: Region) -> tuple[Shape, list[int]]:
    """The region as it is, and its hidden nodes in the order of the shape: the one next to branch 0
    first, then the far ends of its splits."""
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
    return Shape(len(region.branches), tuple(below[v] for v in rest)), [order[0], *rest]


def cut_out(model: TreeModel, region: Region) -> tuple[Shape, Small]:
    """The model of a region over its branches: the whole model's tables on its edges."""
    shape, hidden = present_shape(model.tree, region)
    up, at = shape.parents()
    tables = [model.marginals[hidden[0]][:, None]]
    tables += [_given(model, v, hidden[i]) for v, i in zip(hidden[1:], up[1:], strict=True)]
    tables += [_given(model, u, v) for v, u in region.branches]
    return shape, Small(np.array(up), np.array(at), tables)


def _given(model: TreeModel, v: int, u: int) -> Floats:
    """`P(v | u)` of an edge. A node with an emission is taken for the states that it was learned
    with, which are those of its neighbour: in another place it is a mixture of them."""
    if v in model.emissions:
        return np.eye(len(model.tables[u]))
    if model.parents[v] == u:
        return model.tables[v]
    return normalised((model.tables[u] * model.marginals[v]).T, model.marginals[v])


def branch_correlations(model: Small, branches: Branches) -> Floats:
    """`|det C_ab|^(1 / (k - 1))` between the branches of a cut-out model, `(m, m)`.

    A branch is seen as the posterior of its neighbour inside given the branch alone."""
    share = branches.weights / max(float(branches.weights.sum()), 1e-300)
    marginals, rank, n_hidden = model.marginals(), model.n_states - 1, len(model.parent)
    seen = np.empty((len(branches.codes) * rank, len(share)))
    for b, v in enumerate(model.branch_parent.tolist()):
        table = model.tables[n_hidden + b]
        own = marginals[n_hidden + b]
        given = (table * marginals[v])[:, 1:].T / np.maximum(own, 1e-300)  # (k - 1, d)
        if branches.is_sent[b]:
            told = branches.sent[b] * own[:, None]
            y = given @ (told / np.maximum(told.sum(axis=0), 1e-30))
        else:
            # the last for a missing value
            y = np.hstack([given, marginals[v][1:, None]])[:, branches.codes[b]]
        seen[b * rank : (b + 1) * rank] = y
    seen -= (seen @ share)[:, None]
    m = len(branches.codes)
    return _correlations(((seen * share) @ seen.T).reshape(m, rank, m, rank).swapaxes(1, 2))


def _correlations(second: Floats) -> Floats:
    """`|det C_ij|^(1 / r)` with `C_ij` whitened, from second moments `(m, m, r, r)`."""
    m, rank = len(second), second.shape[2]
    own = second[np.arange(m), np.arange(m)]
    scale = np.maximum(np.trace(own, axis1=1, axis2=2), 1e-300)
    own = np.linalg.det(own + 1e-9 * scale[:, None, None] * np.eye(rank))
    size = np.sqrt(np.maximum(own[:, None] * own[None, :], 1e-300))
    r = np.minimum((np.abs(np.linalg.det(second)) / size) ** (1 / rank), 1.0)
    np.fill_diagonal(r, 1.0)
    return np.asarray((r + r.T) / 2)


def fit_shape(
    present: Small,
    shape: Shape,
    branches: Branches,
    smoothing: float,
    bar: float = -np.inf,
) -> Alternative:
    """EM over a region of another shape, each new node started from the old one most like it."""
    return fit_region(start_of(present, shape), shape, branches, smoothing, bar)


def fit_region(
    start: Small, shape: Shape, branches: Branches, smoothing: float, bar: float = -np.inf
) -> Alternative:
    """EM over a region from a model of the given shape; given up where `bar` is out of reach."""
    model, value = fit_small(start, branches, smoothing, FIT_STEPS, FIT_GAIN, bar)
    return Alternative(shape, model, value)


def start_of(present: Small, shape: Shape) -> Small:
    """A model of another shape with the tables that the present model has between its nodes."""
    up, at = (np.array(x) for x in shape.parents())
    old, new = _hops(present.parent, present.branch_parent), _hops(up, at)
    like = np.abs(old[None] - new[:, None]).sum(axis=2).argmin(axis=1).tolist()
    marginals, between = present.marginals(), _between(present)
    tables = [marginals[like[0]][:, None]]
    for v, u in zip(like[1:], up[1:].tolist(), strict=True):
        w = marginals[v][:, None]
        sticky = STICKY * np.eye(len(w)) + (1 - STICKY) * w
        tables.append(sticky if v == like[u] else between[v, like[u]])
    branches = zip(present.branch_parent.tolist(), at.tolist(), strict=True)
    for table, (v, u) in zip(present.tables[len(present.parent) :], branches, strict=True):
        tables.append(table @ between[v, like[u]])
    return Small(up, at, tables)


def _between(model: Small) -> Floats:
    """`P(v | u)` of all hidden nodes along the path between them, `(H, H, k, k)`."""
    n_hidden, k = len(model.parent), model.n_states
    found = np.empty((n_hidden, n_hidden, k, k))
    marginals = model.marginals()
    found[0, 0] = np.eye(k)
    for v in range(1, n_hidden):
        u, table = int(model.parent[v]), model.tables[v]
        back = normalised((table * marginals[u]).T, marginals[u])
        found[v, v] = np.eye(k)
        found[v, :v] = table @ found[u, :v]
        found[:v, v] = found[:v, u] @ back
    return found


def _hops(up: Ints, at: Ints) -> Ints:
    """Steps from every hidden node to every branch, `(H, m)`."""
    steps = np.zeros((len(up), len(up)), dtype=np.int64)
    for v in range(1, len(up)):
        steps[v, :v] = steps[:v, v] = steps[up[v], :v] + 1
    return np.asarray(steps[:, at] + 1)


def edge_joints(model: Small) -> list[tuple[int, int, Floats]]:
    """Hidden nodes `m + i` and branches b with the parent `m + j` and the joint of the two."""
    n_hidden, m = len(model.parent), len(model.branch_parent)
    marginals = model.marginals()
    above = [*model.parent.tolist(), *model.branch_parent.tolist()]
    nodes = [*range(m, m + n_hidden), *range(m)]
    return [
        (nodes[i], m + above[i], model.tables[i] * marginals[above[i]])
        for i in range(1, n_hidden + m)
    ]


def bic(model: TreeModel, log_likelihood: float, n: float) -> float:
    """`log-likelihood - parameters / 2 log n`: larger is better."""
    return log_likelihood - 0.5 * model.n_parameters * float(np.log(n))
