"""Trees whose hidden nodes differ in their numbers of states, and states merged slowly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from tests.reference.enumeration import joint, onto

from latenttree.evaluation.simulation.channels import base_marginal, information_length
from latenttree.model.inference import Evidence
from latenttree.model.tree_model import TreeModel, default_root
from latenttree.tree import Tree

Floats = NDArray[np.float64]


def slow_merged(model: TreeModel, v: int, i: int, j: int) -> TreeModel:
    """From the joint distribution of all nodes, with states `i` and `j` of `v` added up."""
    whole = joint(model, Evidence.nothing(model), 0)
    low, high = min(i, j), max(i, j)
    both = whole.take([low], axis=v) + whole.take([high], axis=v)
    parts = np.split(whole, whole.shape[v], axis=v)
    parts[low] = both
    whole = np.concatenate(parts[:high] + parts[high + 1 :], axis=v)
    joints = [onto(whole, a, b) for a, b in model.tree.edges.tolist()]
    return TreeModel.from_joints(model.tree, joints)


def slow_log_likelihood(model: TreeModel, codes: NDArray[np.int64], weights: Floats) -> float:
    """Sample by sample, over all states of all nodes."""
    values = [np.log(joint(model, Evidence(codes), s).sum()) for s in range(len(codes))]
    return float(weights @ np.array(values))


def mixed_model(
    tree: Tree, states: Sequence[int], n_categories: int, rng: np.random.Generator
) -> TreeModel:
    """A model of hidden nodes with the given numbers of states; edges have the tree's lengths."""
    root = default_root(tree)
    parents, order = tree.rooted(root)
    via = tree.parent_edges(root).tolist()
    dims = [n_categories] * tree.n_observed + list(states)
    cpts: list[Floats] = [np.empty(0)] * tree.n_nodes
    marginals = cpts.copy()
    for v in order.tolist():
        base = base_marginal(dims[v], dims[v], "random", rng)
        u = int(parents[v])
        length = float(tree.lengths[via[v]])
        cpts[v] = base[:, None] if u < 0 else channel(marginals[u], base, length, rng)
        marginals[v] = base if u < 0 else cpts[v] @ marginals[u]
    return TreeModel(tree, root, tuple(cpts))


def channel(parent: Floats, base: Floats, length: float, rng: np.random.Generator) -> Floats:
    """`P(child | parent)`, about `base`, of a given information length over as many correlations as
    the smaller of the two can have."""
    d, k = len(base), len(parent)
    sharp = np.zeros((d, k))
    if d >= k:
        sharp[np.arange(d), rng.permutation(np.arange(d) % k)] = base * rng.uniform(0.5, 1.5, d)
    else:
        sharp[rng.permutation(np.arange(k) % d), np.arange(k)] = 1.0
    sharp /= sharp.sum(axis=0)
    noise = base[:, None] * rng.uniform(0.7, 1.3, (d, k))
    noise /= noise.sum(axis=0)

    def blend(t: float) -> Floats:
        return np.asarray(t * sharp + (1 - t) * (t * noise + (1 - t) * base[:, None]))

    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        far = information_length(blend(middle) * parent, min(d, k)) > length
        low, high = (middle, high) if far else (low, middle)
    return blend(high)
