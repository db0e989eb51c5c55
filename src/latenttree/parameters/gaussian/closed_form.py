"""Tree + second moments -> parameters, in closed form.

Given a hidden node h of covariance I, its branches are independent. With `A_i = Cov[x_i, h]` for
any coordinates `x_i` in branch i, `Cov[x_i, x_j] = A_i A_j^T`, hence for three branches

    Cov[a, b] Cov[c, b]^-1 Cov[c, a] = A_a A_a^T,

for one dimension: `rho_ah^2 = rho_ab rho_ac / rho_bc`. The branches of a node are gathered in three
sets, each projected to the `n_dims` directions that covary most with the others. A few rounds of
weighted least squares over all pairs of branches then refine the loadings. The covariance of two
hidden neighbours follows by regression from the coordinates on the two sides of their edge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from latenttree.engine.arrays import Floats, Ints
from latenttree.model.gaussian.algebra import at_least, limited, root_pair, solve
from latenttree.model.gaussian.distribution import MAX_FULL, NOISE_FLOOR
from latenttree.model.gaussian.model import GaussianTreeModel
from latenttree.model.gaussian.units import rescaled
from latenttree.parameters.gaussian.moments import PairMoments
from latenttree.tree import Tree

MOST_VARIABLES = 8
NODE_VARIABLES = 96
"""Number of observed variables that represent a branch, and all branches of a node; the nearest."""

ENOUGH_COORDINATES = 32
"""A branch with this many coordinates takes no more variables."""

N_ROUNDS = 10
LEAST_UNSHARED = 0.1
"""Lower bound of `1 - rho^2` in the weights of correlations `rho`."""

LARGEST_SHARE = 0.999
"""Upper bound of the share of variance that a hidden neighbour explains of a node. Exact moments
below it are left unchanged."""

CONDITION_FLOOR = 1e-8


class Branch(NamedTuple):
    """A neighbour of a hidden node, and the coordinates beyond it that represent the branch."""

    neighbor: int
    coordinates: Ints


class HiddenNode(NamedTuple):
    """A hidden node with loadings of the observed coordinates in its branches.

    coordinates : (y,) coordinates of all branches, one branch after another.
    owner : (y,) the branch of each coordinate.
    loadings : (y, n_dims) of the standardised coordinates.
    condition : factor by which errors of the moments are amplified.
    """

    branches: list[Branch]
    coordinates: Ints
    owner: Ints
    loadings: Floats
    condition: float

    def number(self, neighbor: int) -> int:
        """Number of the branch that starts at a neighbour."""
        return next(i for i, branch in enumerate(self.branches) if branch.neighbor == neighbor)


class Wide(NamedTuple):
    """Moments of wide leaves beyond those of their projections.

    mean, deviation : (D,) units of all coordinates.
    cross : for each wide leaf `(d, D')` correlations of its coordinates with the reduced ones.
    """

    mean: Floats
    deviation: Floats
    cross: Mapping[int, Floats]


@dataclass(frozen=True, eq=False)
class ClosedForm:
    """The model that the moments imply, and `(m,)` for every hidden node the factor by which errors
    of the moments are amplified."""

    model: GaussianTreeModel
    condition: Floats


def closed_form(
    tree: Tree, moments: PairMoments, offsets: Ints, n_dims: int, wide: Wide | None = None
) -> ClosedForm:
    """Parameters of all nodes by the identity of three branches (see the module).

    Exact for exact moments if every hidden node has three branches with `n_dims` coordinates each.
    Directions of a hidden node that fewer coordinates identify get zero loadings. With `wide`,
    moments and offsets are those of the projections of wide leaves."""
    p, degree = tree.n_observed, tree.degree()
    nodes = [
        solve_node(branches_of(tree, h, offsets), moments, n_dims) for h in range(p, tree.n_nodes)
    ]
    whole = [_own(moments, offsets, v) for v in range(p)] + [np.eye(n_dims)] * tree.n_hidden
    cross = [_edge(a, b, nodes, moments, offsets, whole, wide) for a, b in tree.edges.tolist()]
    own = []
    for v, spread in enumerate(whole):
        if wide is not None and v in wide.cross:
            own.append(np.ones(len(wide.cross[v])))
        else:
            is_flat = v < p and len(spread) > MAX_FULL and degree[v] == 1 and p > 1
            own.append(np.diag(spread).copy() if is_flat else spread)
    means = [np.zeros(len(spread)) for spread in own]
    model = GaussianTreeModel.from_covariances(tree, means, own, cross)
    centre, scale = moments[:2] if wide is None else wide[:2]
    found = rescaled(model, -centre / scale, 1 / scale)
    return ClosedForm(found, np.array([node.condition for node in nodes]))


# ---- one hidden node ------------------------------------------------------------------


def branches_of(tree: Tree, node: int, offsets: Ints) -> list[Branch]:
    """The branches of a hidden node with their nearest observed variables. A variable beyond
    another is left out: it adds no information about the node."""
    neighbors = tree.neighbors(node).tolist()
    most = int(np.clip(NODE_VARIABLES // len(neighbors), 2, MOST_VARIABLES))
    found = []
    for u in neighbors:
        columns: list[int] = []
        for v in nearest(tree, node, u, most):
            if len(columns) < ENOUGH_COORDINATES:
                columns.extend(range(int(offsets[v]), int(offsets[v + 1])))
        found.append(Branch(u, np.array(columns, dtype=np.int64)))
    return found


def nearest(tree: Tree, node: int, first: int, most: int) -> list[int]:
    """At most `most` observed variables nearest to `node` beyond its neighbour `first`, by path
    length, then by number of edges."""
    indptr, indices, edges = tree.adjacency()
    found: list[int] = []
    heap = [(0.0, 0, first, node)]
    while heap and len(found) < most:
        far, steps, v, came = heappop(heap)
        if v < tree.n_observed:
            found.append(v)
            continue
        for i in range(indptr[v], indptr[v + 1]):
            u = int(indices[i])
            if u != came:
                heappush(heap, (far + float(tree.lengths[edges[i]]), steps + 1, u, v))
    return found


def solve_node(branches: list[Branch], moments: PairMoments, n_dims: int) -> HiddenNode:
    """Loadings on one hidden node of the coordinates in its branches."""
    coordinates = np.concatenate([b.coordinates for b in branches])
    owner = np.repeat(np.arange(len(branches)), [len(b.coordinates) for b in branches])
    apart = owner[:, None] != owner
    seen = np.ix_(coordinates, coordinates)
    correlation = np.where(apart, moments.correlation[seen], 0.0)
    unshared = np.maximum(1 - correlation**2, LEAST_UNSHARED)
    weights = np.where(apart, moments.counts[seen], 0.0) / unshared**2
    group = _three_groups(correlation, owner, n_dims)
    start, condition = _from_triple(correlation, group, n_dims)
    loadings = _least_squares(correlation, weights, owner, start)
    padded = np.zeros((len(coordinates), n_dims))
    padded[:, : loadings.shape[1]] = loadings
    return HiddenNode(branches, coordinates, owner, padded, condition)


def _three_groups(correlation: Floats, owner: Ints, n_dims: int) -> Ints:
    """A set 0, 1 or 2 for each coordinate, whole branches together. The strongest branches come
    first; each joins the set with the fewest coordinates (up to n_dims), then the weakest."""
    strength = np.bincount(owner, (correlation**2).sum(axis=1))
    widths = np.bincount(owner)
    width, power = np.zeros(3), np.zeros(3)
    group_of = np.zeros(len(widths), dtype=np.int64)
    for branch in np.argsort(-strength, kind="stable").tolist():
        chosen = min(range(3), key=lambda g: (min(width[g], n_dims), power[g]))
        group_of[branch] = chosen
        width[chosen] += widths[branch]
        power[chosen] += strength[branch]
    return group_of[owner]


def _from_triple(correlation: Floats, group: Ints, n_dims: int) -> tuple[Floats, float]:
    """Loadings `(y, r)` by the identity of three sets, and the condition; `r <= n_dims` is the
    number of directions that each of the three sets has."""
    rank = min(n_dims, *np.bincount(group, minlength=3).tolist())
    parts = [np.flatnonzero(group == g) for g in range(3)]
    views = np.zeros((len(group), 3, rank))
    for g, rows in enumerate(parts):
        others = np.flatnonzero(group != g)
        left = np.linalg.svd(correlation[np.ix_(rows, others)], full_matrices=False)[0]
        views[rows, g] = left[:, :rank]
    flat = views.reshape(len(group), -1)
    seen = correlation @ flat  # every coordinate with the views, but its own group's is partial
    second = (flat.T @ seen).reshape(3, rank, 3, rank)
    values = np.linalg.svd(second[2, :, 1, :], compute_uv=False)
    # A_a A_a^T of the first group's view, then the others by regression on it
    middle = np.linalg.pinv(second[2, :, 1, :], rcond=CONDITION_FLOOR)
    square = second[0, :, 1, :] @ middle @ second[2, :, 0, :]
    first = _positive_root(square, second[0, :, 1, :])
    inverse = np.linalg.pinv(first, rcond=CONDITION_FLOOR)
    views_on = [first, second[1, :, 0, :] @ inverse.T, second[2, :, 0, :] @ inverse.T]
    loadings = np.empty((len(group), rank))
    for g, rows in enumerate(parts):
        rest = [h for h in range(3) if h != g]
        design = np.concatenate([views_on[h] for h in rest])
        target = seen.reshape(-1, 3, rank)[rows][:, rest].reshape(len(rows), -1)
        loadings[rows] = np.linalg.lstsq(design, target.T, rcond=CONDITION_FLOOR)[0].T
    scale = float(np.abs(correlation).max(initial=0)) or 1.0
    return _shortened(loadings), scale / max(float(values[-1]), CONDITION_FLOOR)


def _positive_root(square: Floats, like: Floats) -> Floats:
    """A with `A A^T` the nearest symmetric positive definite matrix."""
    values, vectors = np.linalg.eigh((square + square.T) / 2)
    # sampling noise can make a small eigenvalue negative: it becomes small, not large
    least = CONDITION_FLOOR * max(float(np.abs(like).max()), CONDITION_FLOOR)
    return np.asarray(vectors * np.sqrt(np.maximum(values, least)))


def _least_squares(correlation: Floats, weights: Floats, owner: Ints, start: Floats) -> Floats:
    """Minimise `sum w (r_ij - a_i a_j)^2` over pairs in different branches, one branch at a time.

    A solution is a fixed point. Cost `O(y^2 n_dims^2)` a round."""
    loadings, rank = start.copy(), start.shape[1]
    rows_of = [np.flatnonzero(owner == b) for b in range(int(owner.max()) + 1)]
    ridge = CONDITION_FLOOR * np.eye(rank)
    for _ in range(N_ROUNDS):
        before = loadings.copy()
        for rows in rows_of:
            w = weights[rows]
            outer = (loadings[:, :, None] * loadings[:, None, :]).reshape(-1, rank * rank)
            normal = (w @ outer).reshape(-1, rank, rank)
            size = np.trace(normal, axis1=1, axis2=2)[:, None]
            target = (w * correlation[rows]) @ loadings + (ridge[0, 0] * size) * loadings[rows]
            filled = normal + size[:, :, None] * ridge
            good = size[:, 0] > 0
            solved = np.linalg.solve(filled[good], target[good][:, :, None])[:, :, 0]
            loadings[rows[good]] = _shortened(solved)
        if np.abs(loadings - before).max(initial=0) < 1e-12:
            break
    return loadings


def _shortened(loadings: Floats) -> Floats:
    """Loadings scaled so that they explain at most `LARGEST_SHARE` of each coordinate."""
    share = (loadings**2).sum(axis=1, keepdims=True)
    return loadings * np.sqrt(LARGEST_SHARE / np.maximum(share, LARGEST_SHARE))


# ---- edges ----------------------------------------------------------------------------


def _edge(
    a: int,
    b: int,
    nodes: Sequence[HiddenNode],
    moments: PairMoments,
    offsets: Ints,
    own: Sequence[Floats],
    wide: Wide | None,
) -> Floats:
    """Covariance `(d_a, d_b)` of the ends of an edge, standardised."""
    p = len(offsets) - 1
    if a >= p and b >= p:
        found = _hidden_edge(nodes[a - p], nodes[b - p], a, b, moments)
        return limited(found, LARGEST_SHARE**0.5)
    if a < p and b < p:
        shared = moments.correlation[offsets[a] : offsets[a + 1], offsets[b] : offsets[b + 1]]
        return _whitened(shared, own[a], own[b])
    hidden, seen = (a, b) if a >= p else (b, a)
    node = nodes[hidden - p]
    if wide is not None and seen in wide.cross:
        predictor, rows = _predictor(node, seen, moments)
        found = _shortened(wide.cross[seen][:, rows] @ predictor.T)
    else:
        found = _whitened(node.loadings[node.owner == node.number(seen)], own[seen], own[hidden])
    return found if seen == a else found.T


def _hidden_edge(
    one: HiddenNode, other: HiddenNode, a: int, b: int, moments: PairMoments
) -> Floats:
    """`Cov[a, b]` of hidden neighbours: the covariance of their best linear predictors, each from
    the coordinates on its own side of the edge."""
    predictor_a, rows_a = _predictor(one, b, moments)
    predictor_b, rows_b = _predictor(other, a, moments)
    return np.asarray(predictor_a @ moments.correlation[np.ix_(rows_a, rows_b)] @ predictor_b.T)


def _predictor(node: HiddenNode, without: int, moments: PairMoments) -> tuple[Floats, Ints]:
    """`G^-1 A^T S^-1` with `G = A^T S^-1 A`, over the coordinates in all branches but one: an
    unbiased predictor of the hidden node. S is the covariance that the loadings imply."""
    kept = node.owner != node.number(without)
    rows, owner, loadings = node.coordinates[kept], node.owner[kept], node.loadings[kept]
    own = moments.correlation[np.ix_(rows, rows)]
    unexplained = np.where(owner[:, None] == owner, own - loadings @ loadings.T, 0.0)
    # S = A A^T + unexplained, and either of the two gives the same predictor
    weighed = solve(at_least(unexplained, 1 - LARGEST_SHARE), loadings)
    inverse = np.linalg.pinv(loadings.T @ weighed, rcond=CONDITION_FLOOR, hermitian=True)
    return inverse @ weighed.T, rows


def _whitened(shared: Floats, one: Floats, other: Floats) -> Floats:
    """A cross-covariance of two nodes with covariances `one` and `other`, limited so that neither
    explains more than `LARGEST_SHARE` of the other."""
    a, b = root_pair(one), root_pair(other)
    return np.asarray(a[0] @ limited(a[1] @ shared @ b[1], LARGEST_SHARE**0.5) @ b[0])


def _own(moments: PairMoments, offsets: Ints, v: int) -> Floats:
    """Correlations of one variable's coordinates, made positive definite."""
    here = slice(offsets[v], offsets[v + 1])
    return at_least(moments.correlation[here, here], NOISE_FLOOR)
