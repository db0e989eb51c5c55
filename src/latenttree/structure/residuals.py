"""Whether pairs of variables are as dependent as the tree says.

If the data come from a tree, the posterior probabilities of its edges can be believed; they suppose
it. If they do not, residuals of pairs are larger than sampling noise.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from latenttree.distances.correlations import KURTOSIS_RATIO, values_of_pairs
from latenttree.distances.similarity import Similarity
from latenttree.engine.arrays import Floats, Ints
from latenttree.tree import Tree

MANY_VARIABLES, SOME, WINDOW = 400, 200, 25
"""With more variables, pairs of some of them are taken, which lie side by side in the tree: most
pairs of random ones are independent and show nothing."""

TREE_FITS, SOME_PAIRS_FIT = 1.4, 1.0
"""Mean squared residual up to which the data may come from a tree (`make bench TABLE=replication`
prints it for simulated trees and for real tables); and where only some of the variables are looked
at, which tells less."""

COPIES = 0.999
"""Implied similarities beyond this are of copies, whose residuals have no known noise."""

MEASURED = 5.0
"""Standard errors of zero above which a similarity of several directions has Gaussian noise."""

SHORTEST = 1e-12
"""Stands for lengths of zero, which sparse graphs cannot hold."""


def mean_squared_residual(whole: Similarity, tree: Tree, n_vars: int) -> float:
    """The mean over pairs of `n (rho - q)^2 / (1 - q^2)^2`, with `q = exp(-d / distance_scale)`
    what the tree implies and `n` the effective samples of the pair, fewer where rare values carry
    its correlation: about 1 if the data come from the tree. NaN where errors are not known.

    With several directions only clearly dependent pairs are taken: noise of a determinant near zero
    is not Gaussian. Cost: O(n log n) for each of the variables taken, at most `MANY_VARIABLES`."""
    if whole.exact or whole.source.n <= 1:
        return float("nan")
    chosen = np.arange(n_vars)
    if n_vars > MANY_VARIABLES:
        order = tree.edge_intervals()[0]  # of a walk through the tree: neighbours are near
        starts = np.linspace(0, n_vars - WINDOW, SOME // WINDOW).astype(np.int64)
        chosen = np.sort(order[(starts[:, None] + np.arange(WINDOW)).ravel()])
    i, j = np.triu_indices(len(chosen), 1)
    implied = np.exp(-_lengths_between(tree, chosen)[i, j] / whole.distance_scale)
    residual = whole.block(chosen)[i, j] - implied
    pairs = np.column_stack([chosen[i], chosen[j]])
    n = whole.n_effective / values_of_pairs(whole.source, pairs, KURTOSIS_RATIO)
    usable = implied < COPIES
    if whole.source.n_directions > 1:
        usable &= implied > MEASURED / np.sqrt(whole.source.n)
    if not usable.any():
        return float("nan")
    z = residual[usable] / (1 - implied[usable] ** 2)
    return float(np.mean(n[usable] * z**2))


def may_be_noise(residual: float, n_vars: int) -> bool:
    """Whether residuals are as small as those of data from a tree; not if they are unknown."""
    return residual < (TREE_FITS if n_vars <= MANY_VARIABLES else SOME_PAIRS_FIT)


def _lengths_between(tree: Tree, nodes: Ints) -> Floats:
    """Lengths of the paths between some nodes, `(m, m)`."""
    lengths = np.maximum(tree.lengths, SHORTEST)
    graph = coo_array((lengths, tree.edges.T), shape=(tree.n_nodes, tree.n_nodes)).tocsr()
    return np.asarray(dijkstra(graph, directed=False, indices=nodes)[:, nodes])
