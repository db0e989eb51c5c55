"""Regions in plain Python: nodes by walking an adjacency, each region solved on its own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from tests.reference.adjacency import Adjacency
from tests.reference.entries import entry

from latenttree.distances.similarity import Similarity
from latenttree.structure import branch_features as kernels
from latenttree.structure import lengths as length_kernels
from latenttree.structure import sweep_regions
from latenttree.structure.branch_features import BranchFeatures
from latenttree.structure.joining import neighbour_joining
from latenttree.structure.lengths import fit_likelihood

feature_correlations = entry(kernels.feature_correlations)
path_matrix = entry(length_kernels.path_matrix)
topology_hash = entry(sweep_regions.topology_hash)


class Region(NamedTuple):
    """Hidden nodes `inside`, and the `(inside, outside)` edges where branches begin."""

    inside: list[int]
    branches: list[tuple[int, int]]


class Proposal(NamedTuple):
    """The region's tree (branches first, then hidden), and whether it is new."""

    edges: NDArray[np.int64]
    lengths: NDArray[np.float64]
    changed: bool


def region_around(tree: Adjacency, centre: int, radius: int = 2, max_branches: int = 8) -> Region:
    """The hidden nodes within `radius` steps, nearest first, while branches stay few."""
    links = tree.links
    inside, ring, n_branches = [centre], [centre], len(links[centre])
    member = {centre}
    for _ in range(radius):
        reached = sorted(
            (links[v][u], u)
            for v in ring
            for u in links[v]
            if tree.is_hidden(u) and u not in member
        )
        ring = []
        for _, u in reached:
            if n_branches + len(links[u]) - 2 <= max_branches:
                n_branches += len(links[u]) - 2
                ring.append(u)
                member.add(u)
        inside += ring
    branches = [(v, u) for v in inside for u in links[v] if u not in member]
    return Region(inside, branches)


def region_arrays(
    tree: Adjacency, features: BranchFeatures, region: Region
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Directed edges to the branches, and edges and lengths of the region's tree with features as
    leaves."""
    links, row = tree.links, {e: i for i, e in enumerate(tree.edges())}
    branches = np.array([2 * row[min(v, u), max(v, u)] + (v > u) for v, u in region.branches])
    m = len(branches)
    number = {v: m + i for i, v in enumerate(region.inside)}
    pairs = [(i, number[v], links[v][u]) for i, (v, u) in enumerate(region.branches)]
    pairs += [
        (number[v], number[u], x)
        for v in region.inside
        for u, x in links[v].items()
        if u in number and number[v] < number[u]
    ]
    edges = np.array([(a, b) for a, b, _ in pairs], dtype=np.int64)
    lengths = np.array([x for _, _, x in pairs])
    return branches, edges, lengths + _offsets(edges, features.load[branches])


def _offsets(edges: NDArray[np.int64], load: NDArray[np.float64]) -> NDArray[np.float64]:
    """A feature is farther away than the node it stands for, by minus the log of its load."""
    m = len(load)
    first, second = edges[:, 0], edges[:, 1]
    extra = -np.log(load)
    return np.asarray(
        np.where(first < m, extra[np.minimum(first, m - 1)], 0.0)
        + np.where(second < m, extra[np.minimum(second, m - 1)], 0.0)
    )


def propose(
    tree: Adjacency, features: BranchFeatures, similarity: Similarity, region: Region
) -> Proposal:
    """Join the region's branches again, and keep the topology of higher likelihood."""
    branches, edges, lengths = region_arrays(tree, features, region)
    r, _ = feature_correlations(branches, features, similarity.source, 1.0)
    heaviest = [int(np.argmax(features.weight[d, : features.size[d]])) for d in branches]
    m, n = len(branches), similarity.effective_samples(features.leaf[branches, heaviest])
    lengths, best, _ = fit_likelihood(r, n, path_matrix(m, edges), lengths, 10)
    seen = {topology_hash(m, edges)}
    changed, resolved = False, len(edges) == 2 * m - 3
    for caution in (1.0, 4.0):
        new, start = neighbour_joining(r, n, caution, False)
        splits = topology_hash(m, new)
        if splits in seen:
            continue
        seen.add(splits)
        fitted, value, _ = fit_likelihood(r, n, path_matrix(m, new), start, 10)
        if value > best + 0.5 or not resolved:
            changed = resolved = True
            edges, lengths, best = new, fitted, value
    return Proposal(edges, lengths - _offsets(edges, features.load[branches]), changed)
