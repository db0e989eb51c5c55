"""Regions of a model replaced by their best alternatives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from latenttree.model.emissions import Emission
from latenttree.model.tree_model import TreeModel, normalised
from latenttree.search.region_em import RegionModel
from latenttree.search.region_model import edge_joints
from latenttree.search.regions import Region
from latenttree.tree import Tree

Floats = NDArray[np.float64]


def replace_regions(model: TreeModel, new: Sequence[tuple[Region, RegionModel]]) -> TreeModel:
    """The whole model with some regions replaced by other models of them, on a canonical tree.

    All edges are described by the joints of their ends, which do not depend on a root."""
    p = model.tree.n_observed
    emissions = dict(model.emissions)
    gone = {v for region, _ in new for v in region.inside}
    joints: dict[tuple[int, int], Floats] = {}
    for v, u in enumerate(model.parents.tolist()):
        if u >= 0 and v not in gone and u not in gone:
            joints[v, u] = model.cpts[v] * model.marginals[u]
    fresh = model.tree.n_nodes
    for region, small in new:
        names = [u for _, u in region.branches] + list(range(fresh, fresh + len(small.parent)))
        fresh += len(small.parent)
        for a, b, joint in edge_joints(small):
            u = names[a]
            if u in emissions:  # its states are now mixtures of those of its old neighbour
                emissions[u] = emissions[u].mixed(normalised(joint))
                joint = joint.sum(axis=0, keepdims=True)
            joints[u, names[b]] = joint
    return from_edge_joints(model.tree.observed_names, joints, p, emissions)


def from_edge_joints(
    observed: tuple[str, ...],
    joints: dict[tuple[int, int], Floats],
    p: int,
    emissions: dict[int, Emission] | None = None,
) -> TreeModel:
    """The model on the canonical tree with joints `(d_u, d_v)` on its edges `(u, v)`.

    Hidden nodes may have any numbers from p on."""
    edges = np.array(list(joints), dtype=np.int64)
    used, compact = np.unique(np.concatenate([np.arange(p), edges.ravel()]), return_inverse=True)
    names = observed + tuple(f"hidden {i}" for i in range(len(used) - p))
    compact = compact[p:].reshape(-1, 2)
    tree, number = Tree(names, p, compact, np.zeros(len(compact))).renumbered()
    by_ends: dict[tuple[int, int], Floats] = {}
    for (a, b), joint in zip(number[compact].tolist(), joints.values(), strict=True):
        by_ends[a, b], by_ends[b, a] = joint, joint.T
    ordered = [by_ends[a, b] for a, b in tree.edges.tolist()]
    moved = {int(number[v]): emission for v, emission in (emissions or {}).items()}
    return TreeModel.from_joints(tree, ordered, emissions=moved)
