"""Regions cut out and solved again: the same as in plain Python, and never less likely."""

from __future__ import annotations

import numpy as np
import pytest
from tests.reference import joining as reference
from tests.reference import sweeps as slow
from tests.reference.adjacency import Adjacency, interchange, steps_from
from tests.reference.entries import entry
from tests.reference.random_trees import random_tree

from latenttree.distances.similarity import similarity_from_matrix
from latenttree.structure import branch_features as features_kernels
from latenttree.structure import sweep_regions
from latenttree.structure.branch_features import branch_features
from latenttree.structure.builder import TreeBuilder
from latenttree.structure.sweep_regions import propose_regions
from latenttree.tree import Tree

feature_correlations = entry(features_kernels.feature_correlations)
topology_hash = entry(sweep_regions.topology_hash)

SHAPES = ("uniform", "caterpillar", "balanced")


def binary_tree(seed: int) -> Tree:
    rng = np.random.default_rng(seed)
    p = int(rng.integers(5, 40))
    return random_tree(rng, p, shape=SHAPES[seed % 3], max_degree=3, length_range=(0.2, 1.0))


@pytest.mark.parametrize("n", [200, 5000])
def test_no_proposal_lowers_the_likelihood_of_its_region(n: int) -> None:
    """Sampled similarities on a damaged tree: every region, judged by the slow likelihood, and the
    same region and proposal as in plain Python."""
    for seed in range(10):
        tree = binary_tree(seed)
        adjacency, rng = Adjacency.of(tree), np.random.default_rng(seed)
        for _ in range(3):
            interchange(adjacency, rng)
        rho = reference.sampled_correlations(rng, np.exp(-tree.path_lengths()), n)
        whole = similarity_from_matrix(rho, float(n), 1.0, np.empty((0, 2), dtype=np.int64))
        builder = adjacency.builder()
        incidence, centres = builder.incidence(), builder.hidden()
        features = branch_features(builder, incidence, whole.source)
        proposals = propose_regions(builder, incidence, features, whole, centres, 1)
        for c, centre in enumerate(centres.tolist()):
            region = slow.region_around(adjacency, centre)
            assert proposals.hidden[c, : proposals.n_hidden[c]].tolist() == region.inside
            if len(region.branches) < 4:
                assert proposals.n_branches[c] == 0
                continue
            branches, edges, lengths = slow.region_arrays(adjacency, features, region)
            assert sorted(proposals.branches[c, : proposals.n_branches[c]]) == sorted(branches)
            order = [
                branches.tolist().index(s) for s in proposals.branches[c, : proposals.n_branches[c]]
            ]
            expected = slow.propose(adjacency, features, whole, region)
            assert proposals.changed[c] == expected.changed
            found = np.array(proposals.edges[c, : proposals.n_edges[c]])
            number = np.concatenate([order, np.arange(len(branches), found.max() + 1)])
            assert topology_hash(len(branches), number[found]) == topology_hash(
                len(branches), expected.edges
            )
            r, _ = feature_correlations(branches, features, whole.source, 1.0)
            before = reference.log_likelihood(r, float(n), edges, lengths)
            offsets = -np.log(features.load[branches])
            fitted = proposals.lengths[c, : len(found)].copy()
            for e, (a, b) in enumerate(number[found].tolist()):
                fitted[e] += sum(offsets[v] for v in (a, b) if v < len(branches))
            after = reference.log_likelihood(r, float(n), number[found], fitted)
            # the fit accepts losses of 1e-9 a step; a branch may be nearer than its node by less
            # than the node's error, and is put at zero then
            short = (expected.lengths < 0).any()
            assert short or after >= before - 1e-6
        assert proposals.changed.any(), "three interchanges must show"


def relabelled(rng: np.random.Generator, m: int, edges: np.ndarray) -> np.ndarray:
    """The same tree with its hidden nodes, edges and their ends in another order."""
    number = np.concatenate([np.arange(m), m + rng.permutation(len(edges) + 1 - m)])
    return rng.permuted(number[edges], axis=1)[rng.permutation(len(edges))]


def test_hashes_tell_topologies_apart() -> None:
    """Equal exactly where the sets of splits are: 300 random trees of 105 topologies."""
    rng = np.random.default_rng(0)
    names = [str(i) for i in range(6)]
    by_hash: dict[int, Tree] = {}
    for _ in range(300):
        edges = reference.random_binary(rng, 6)
        tree = Tree.build(names, edges, np.ones(len(edges)))
        found = int(topology_hash(6, edges))
        assert found == int(topology_hash(6, relabelled(rng, 6, edges)))
        assert by_hash.setdefault(found, tree).same_topology(tree)
    distinct = {t.splits()[np.lexsort(t.splits().T)].tobytes() for t in by_hash.values()}
    assert len(distinct) == len(by_hash) > 60


def test_a_polytomy_has_another_hash_than_its_resolutions() -> None:
    star = np.array([[i, 5] for i in range(5)])
    assert topology_hash(5, star) == 0
    assert topology_hash(5, reference.random_binary(np.random.default_rng(0), 5)) != 0


# ---- regions -------------------------------------------------------------------------


def check_region(adjacency: Adjacency, region: slow.Region, max_branches: int) -> None:
    inside = set(region.inside)
    assert all(adjacency.is_hidden(v) for v in inside)
    assert len(inside) == len(region.inside)
    assert all(v in inside and u not in inside for v, u in region.branches)
    assert all(u in adjacency.links[v] for v, u in region.branches)
    cut = sum(1 for v in inside for u in adjacency.links[v] if u not in inside)
    assert len(region.branches) == cut
    degree = len(adjacency.links[region.inside[0]])
    assert len(region.branches) <= max(max_branches, degree)


@pytest.mark.parametrize("max_branches", [4, 6, 10])
def test_regions_are_connected_and_small(max_branches: int) -> None:
    for seed in range(10):
        adjacency = Adjacency.of(random_tree(np.random.default_rng(seed), 50, max_degree=6))
        for centre in adjacency.hidden():
            region = slow.region_around(adjacency, centre, 2, max_branches)
            assert region.inside[0] == centre
            check_region(adjacency, region, max_branches)
            steps = steps_from(adjacency, centre)
            assert max(steps[v] for v in region.inside) <= 2


def test_the_nearest_hidden_nodes_come_first() -> None:
    """
    0 1       2 3       Node 8 in the middle with arms of length 0.1, 0.2, 0.3 to 9, 10, 11:
     9 ---8--- 10       room for five branches is room for two of the three arms.
          |
         11
         4 5
    """
    edges = [(0, 9), (1, 9), (2, 10), (3, 10), (4, 11), (5, 11), (8, 9), (8, 10), (8, 11)]
    adjacency = Adjacency.of(TreeBuilder(6, edges, [1.0] * 6 + [0.3, 0.1, 0.2]))
    assert slow.region_around(adjacency, 8, radius=1, max_branches=5).inside == [8, 10, 11]
