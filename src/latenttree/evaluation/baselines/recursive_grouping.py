"""Recursive grouping (Choi, Tan, Anandkumar, Willsky 2011, JMLR 12, "RG").

In each round every active node is put into a family: nodes that are leaf siblings, or a
parent with its leaf children. Both show in the differences

    Phi(i, j; k) = d(i, k) - d(j, k),    k another active node,

which do not depend on k exactly when i and j belong to one family; Phi = -d(i, j) for all k
says that i is j's parent. A family without a parent gets a hidden one. The parents are the
active nodes of the next round.

Two sets of rules, as in that paper:

- exact distances (`n_samples=inf`): all k count, a family is where Phi is constant;
- distances from samples: only near k count, families come from clustering by the spread of
  Phi, as many as the silhouette likes best, and lengths are kept away from zero and short
  edges merged. The constants are those of the authors' program, made for binary variables,
  where exp(-d) is the correlation. They are not adapted to other data here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import connected_components

from latenttree.engine.arrays import Floats, Ints
from latenttree.engine.kernels import kernel
from latenttree.evaluation.baselines._shared import (
    EdgeList,
    as_edge_list,
    check_distances,
    merge_short_edges,
    tidy_hidden,
)
from latenttree.tree import Tree

# Rounding error of sums along a path, relative to the largest distance, with room to spare.
EXACT_TOLERANCE = 1e-10
# Up to this many active nodes, all of them are witnesses; beyond, at least so many.
N_WITNESSES = 5
# The spread given to pairs too far apart to be a family.
FAR_SPREAD = 10.0
# The spread below which all nodes are one family, unless the silhouette finds better.
ONE_FAMILY_SPREAD = -math.log(0.5)
N_RANDOM_STARTS = 2
N_CLUSTER_ROUNDS = 5


@dataclass(frozen=True)
class GroupingRules:
    """Thresholds of one run, all of them distances.

    Attributes
    ----------
    reach : a witness k counts for (i, j) when d(i, k) and d(j, k) are below it.
    far : pairs farther apart than this are in different families.
    shortest : lengths and distances of a new hidden node are at least this.
    merge_below : shorter edges are merged; a parent may be wrong by twice this a child.
    family_spread : nodes whose Phi spreads no more than this are a family; None: cluster.
    """

    reach: float
    far: float
    shortest: float
    merge_below: float
    family_spread: float | None


def rules_for(n_samples: float, largest_distance: float) -> GroupingRules:
    """Return the rules for distances from `n_samples` samples, inf for exact ones."""
    if not n_samples >= 1:
        raise ValueError(
            f"n_samples is {n_samples}; pass the number of samples behind the distances, or "
            "math.inf when they are exact"
        )
    if math.isinf(n_samples):
        tolerance = EXACT_TOLERANCE * largest_distance
        return GroupingRules(math.inf, math.inf, 0.0, tolerance, tolerance)
    return GroupingRules(
        reach=-math.log(0.05) + 0.1 * math.log(n_samples),
        far=-2 * math.log(0.1),
        shortest=-math.log(0.95),
        merge_below=-math.log(0.9),
        family_spread=None,
    )


def recursive_grouping(
    D: ArrayLike,
    n_samples: float = math.inf,
    names: Sequence[str] | None = None,
    *,
    random_state: int = 0,
) -> Tree:
    """Return the tree that recursive grouping finds from all pairwise distances.

    Parameters
    ----------
    D : (n_vars, n_vars) distances, finite and not negative.
    n_samples : number of samples behind `D`; `math.inf` when the distances are exact.
    names : names of the variables; x0, x1, ... by default.
    random_state : seed of the random starts of the clustering.

    With exact additive distances the result is exact. Cost O(p^3) a round; with samples up to
    p / 2 rounds, so beyond some 200 variables prefer `clrg`.
    """
    distances, names = check_distances(D, names)
    rules = rules_for(n_samples, float(distances.max()))
    edges, lengths = group_edges(distances, rules, np.random.default_rng(random_state))
    return Tree.build(names, *tidy_hidden(len(distances), edges, lengths))


def group_edges(D: Floats, rules: GroupingRules, rng: np.random.Generator) -> EdgeList:
    """Run the rounds on `D` (m, m); nodes from m on are new hidden nodes."""
    n_given = len(D)
    edges: list[tuple[int, int]] = []
    lengths: list[float] = []
    active = list(range(n_given))
    next_hidden = n_given
    current = D
    while len(active) > 2:
        spread, mean_phi = family_statistics(current, rules.reach, rules.far)
        families = _partition(spread, rules, rng)
        # Row f: how the next active node f is made of the present ones.
        weights = np.zeros((len(families), len(active)))
        offsets = np.zeros(len(families))
        parents = []
        for f, family in enumerate(families):
            parent = _parent_in(family, current, mean_phi, 2 * rules.merge_below)
            if parent is None:
                to_children = _lengths_to_children(family, current, mean_phi)
                weights[f, family] = 1 / len(family)
                offsets[f] = to_children.mean()
                children, to_children = family, np.maximum(to_children, rules.shortest)
                parents.append(next_hidden)
                next_hidden += 1
            else:
                weights[f, parent] = 1
                children = family[family != parent]
                to_children = current[parent, children]
                parents.append(active[parent])
            edges += [(parents[f], active[child]) for child in children]
            lengths += to_children.tolist()
        current = _next_distances(current, weights, offsets, rules.shortest)
        active = parents
    if len(active) == 2:
        edges.append((active[0], active[1]))
        lengths.append(float(current[0, 1]))
    return merge_short_edges(n_given, *as_edge_list(edges, lengths), rules.merge_below)


@kernel
def family_statistics(D: Floats, reach: float, far: float) -> tuple[Floats, Floats]:
    """Return Lambda (m, m), the spread of Phi, and its mean (m, m), over the witnesses.

        Lambda(i, j) = max_k Phi(i, j; k) - min_k Phi(i, j; k),
        k in K_ij = {k: max(d(i, k), d(j, k)) < reach}.

    `reach` grows by log 2 until K_ij has enough nodes (i and j counted, as the authors do).
    Lambda has a zero diagonal and is a constant for pairs farther apart than `far`; the
    mean is antisymmetric. O(m^3).
    """
    m = D.shape[0]
    spread = np.zeros((m, m))
    mean_phi = np.zeros((m, m))
    for i in range(m):
        for j in range(i + 1, m):
            limit = reach if m > N_WITNESSES else np.inf
            while limit < np.inf:
                n_near = 0
                for k in range(m):
                    n_near += max(D[i, k], D[j, k]) < limit
                if n_near > N_WITNESSES:
                    break
                limit += np.log(2.0)
            low, high, total, n_witnesses = np.inf, -np.inf, 0.0, 0
            for k in range(m):
                if k != i and k != j and max(D[i, k], D[j, k]) < limit:
                    phi = D[i, k] - D[j, k]
                    low, high = min(low, phi), max(high, phi)
                    total += phi
                    n_witnesses += 1
            spread[i, j] = high - low if D[i, j] <= far else FAR_SPREAD
            spread[j, i] = spread[i, j]
            mean_phi[i, j] = total / n_witnesses
            mean_phi[j, i] = -mean_phi[i, j]
    return spread, mean_phi


def _partition(spread: Floats, rules: GroupingRules, rng: np.random.Generator) -> list[Ints]:
    """Return the families: arrays of positions, at least one family of two or more."""
    if rules.family_spread is None:
        labels = _cluster(spread, rng)
    else:
        labels = _linked(spread, rules.family_spread)
    return [np.flatnonzero(labels == label) for label in np.unique(labels)]


def _linked(spread: Floats, family_spread: float) -> Ints:
    """Label the connected components of the pairs with a spread up to `family_spread`.

    With exact distances there is such a pair in every round. Should rounding say otherwise,
    the closest pair keeps the recursion going.
    """
    smallest = spread[np.triu_indices(len(spread), 1)].min()
    labels = connected_components(spread <= max(family_spread, smallest), directed=False)[1]
    return np.asarray(labels, dtype=np.int64)


def _cluster(spread: Floats, rng: np.random.Generator) -> Ints:
    """Cluster by spread into 2..m-2 clusters, or 1: the labels of the best silhouette.

    Starts for each number of clusters: the nodes most remote from their nearest, the same
    with the least remote node in place of the last, and random ones. One cluster has the
    silhouette log 2 / (largest spread): groups within which Phi spreads less than log 2
    (a single inner edge below 0.35) are never divided.
    """
    m = len(spread)
    best_labels = np.zeros(m, dtype=np.int64)
    widest = spread.max()
    best = ONE_FAMILY_SPREAD / widest if widest > 0 else np.inf
    to_nearest = (spread + np.diag(np.full(m, np.inf))).min(axis=0)
    remote = np.argsort(-to_nearest, kind="stable")
    for n_clusters in range(2, m - 1):
        starts = [np.append(remote[: n_clusters - 1], remote[-1]), remote[:n_clusters]]
        starts += [rng.permutation(m)[:n_clusters] for _ in range(N_RANDOM_STARTS)]
        for start in starts:
            labels = _cluster_around(spread, start)
            quality = _mean_silhouette(spread, labels, n_clusters)
            if quality > best:
                best, best_labels = quality, labels
    return best_labels


@kernel
def _cluster_around(spread: Floats, start: Ints) -> Ints:
    """Return labels (m,) of the clusters around centres, which start at `start` (k,).

    A node goes to the centre with the least spread; then the centre of a cluster is the
    member whose largest spread within the cluster is least. O(m k + m^2) a round.
    """
    m, n_clusters = spread.shape[0], start.shape[0]
    centres = start.copy()
    labels = np.empty(m, dtype=np.int64)
    for _ in range(N_CLUSTER_ROUNDS):
        for i in range(m):
            labels[i] = 0
            for c in range(1, n_clusters):
                if spread[i, centres[c]] < spread[i, centres[labels[i]]]:
                    labels[i] = c
        for c in range(n_clusters):
            # Ties at zero spread must not empty a cluster.
            labels[centres[c]] = c
        least = np.full(n_clusters, np.inf)
        moved = centres.copy()
        for i in range(m):
            c = labels[i]
            radius = 0.0
            for j in range(m):
                if labels[j] == c and spread[i, j] > radius:
                    radius = spread[i, j]
            if radius < least[c]:
                least[c] = radius
                moved[c] = i
        if np.array_equal(np.sort(moved), np.sort(centres)):
            break
        centres = moved
    return labels


@kernel
def _mean_silhouette(spread: Floats, labels: Ints, n_clusters: int) -> float:
    """Mean over nodes of (b - a) / max(a, b).

    a is the mean spread to the rest of the node's cluster, b the least mean spread to
    another cluster. A node alone has for a the largest spread inside any cluster. O(m^2).
    """
    m = spread.shape[0]
    size = np.zeros(n_clusters)
    total = np.zeros((m, n_clusters))
    widest = 0.0
    for i in range(m):
        size[labels[i]] += 1
        for j in range(m):
            total[i, labels[j]] += spread[i, j]
            if labels[i] == labels[j]:
                widest = max(widest, spread[i, j])
    score = 0.0
    for i in range(m):
        c = labels[i]
        inside = total[i, c] / (size[c] - 1) if size[c] > 1 else widest
        outside = np.inf
        for other in range(n_clusters):
            if other != c:
                outside = min(outside, total[i, other] / size[other])
        if max(inside, outside) > 0:
            score += (outside - inside) / max(inside, outside)
    return score / m


def _parent_in(family: Ints, D: Floats, mean_phi: Floats, tolerance: float) -> int | None:
    """Return the member that is the parent of the others, if one is.

    The candidate i has the least sum over j of |mean Phi(i, j) + d(i, j)|, which is zero for
    a parent; it is the parent when the sum is below `tolerance` a child.
    """
    if len(family) == 1:
        return int(family[0])
    block = np.ix_(family, family)
    misfit = np.abs(mean_phi[block] + D[block]).sum(axis=1)
    best = int(misfit.argmin())
    return int(family[best]) if misfit[best] <= tolerance * (len(family) - 1) else None


def _lengths_to_children(family: Ints, D: Floats, mean_phi: Floats) -> Floats:
    """Return d(i, h) for the children i of a new hidden node h:

    d(i, h) = 1 / (2 (c - 1)) sum over the other children j of (d(i, j) + mean Phi(i, j)).
    """
    block = np.ix_(family, family)
    return (D[block] + mean_phi[block]).sum(axis=1) / (2 * (len(family) - 1))


def _next_distances(D: Floats, weights: Floats, offsets: Floats, shortest: float) -> Floats:
    """Return the distances between the next active nodes.

    d(g, h) = mean of d(i, j) - d(i, g) - d(j, h) over the children i of g and j of h; a node
    that was active before stands for itself, with offset zero.
    """
    distances = weights @ D @ weights.T - offsets[:, None] - offsets[None, :]
    distances = np.maximum(0.5 * (distances + distances.T), shortest)
    np.fill_diagonal(distances, 0.0)
    return distances
