"""Topologies of a region as sets of branches."""

from __future__ import annotations

import numpy as np
import pytest
from tests.reference.entries import entry

import latenttree as lt
from latenttree.search.region_topologies import (
    Topology,
    contracted,
    contractions,
    interchanges,
    joined_topology,
    other_topologies,
    paths,
    splits_in_two,
    star,
    topology_of,
)
from latenttree.structure import lengths as length_kernels
from latenttree.tree import Tree

path_matrix = entry(length_kernels.path_matrix)

#   1   2   3
#    \  |  /
#  0--*-*-*--4
CATERPILLAR = topology_of(5, [0b11100, 0b11000])
QUARTET = topology_of(4, [0b0011])


def edges_of(topology: Topology) -> np.ndarray:
    """Edges over branches 0..m-1 and hidden nodes m, m + 1, ...: branches first, then inner."""
    up, at = topology.parents()
    inner = [(topology.m + i, topology.m + u) for i, u in enumerate(up)][1:]
    return np.array([*((b, topology.m + u) for b, u in enumerate(at)), *inner])


def correlations(tree: Tree, noise: float = 0.0, seed: int = 0) -> np.ndarray:
    p = tree.n_observed
    rng = np.random.default_rng(seed)
    r = np.exp(-tree.path_lengths()[:p, :p] + np.triu(rng.normal(0, noise, (p, p)), 1))
    return np.triu(r, 1) + np.triu(r, 1).T + np.eye(p)


def random_topology(m: int, seed: int) -> tuple[Topology, Tree]:
    data = lt.datasets.make_latent_tree(
        m, 2, shape="random", edge_length=(0.2, 0.6), n_samples=2, random_state=seed
    )
    sets = np.unpackbits(data.tree.splits(), axis=1, count=m)[data.tree.internal_edges()]
    return topology_of(
        m, [int(sum(1 << b for b in np.flatnonzero(row))) for row in sets]
    ), data.tree


def as_tree(topology: Topology) -> Tree:
    names = tuple(f"x{i}" for i in range(topology.m))
    edges = edges_of(topology)
    return Tree.build(names, edges, np.ones(len(edges)))


def test_either_side_of_an_edge_names_it() -> None:
    assert Topology(4, (0b1100,)) == QUARTET
    assert CATERPILLAR.parents() == ([-1, 0, 1], [0, 0, 1, 2, 2])
    assert star(3).parents() == ([-1], [0, 0, 0])


@pytest.mark.parametrize("seed", range(10))
def test_a_shape_is_its_tree(seed: int) -> None:
    topology, tree = random_topology(9, seed)
    built = as_tree(topology)
    assert built.n_hidden == topology.n_hidden == tree.n_hidden
    assert built.same_topology(Tree.build(built.observed_names, tree.edges, tree.lengths))


@pytest.mark.parametrize("seed", range(5))
def test_paths_are_those_of_the_edges(seed: int) -> None:
    topology, _ = random_topology(7, seed)
    np.testing.assert_array_equal(paths([topology])[0], path_matrix(7, edges_of(topology)))


def test_splits_in_two_are_all_and_different() -> None:
    """n branches: 2^(n-1) - n - 1 ways to part them with two or more on either side."""
    for m in (4, 5, 6):
        found = list(splits_in_two(m))
        assert len({topology_of(m, s.splits) for s in found}) == len(found) == 2 ** (m - 1) - m - 1


def test_interchanges_of_a_quartet_are_the_two_other_trees() -> None:
    assert set(interchanges(QUARTET, *QUARTET.splits)) == set(splits_in_two(4)) - {QUARTET}


@pytest.mark.parametrize("seed", range(5))
def test_interchanges_swap_two_branches_of_an_edge(seed: int) -> None:
    """Against trees whose edges are changed by hand."""
    topology, _ = random_topology(8, seed)
    m, edges = topology.m, edges_of(topology)
    for i, split in enumerate(topology.splits):
        a, b = edges[m + i]
        expected = set()
        for one in np.flatnonzero((edges == a).any(axis=1) & ~(edges == b).any(axis=1)):
            for two in np.flatnonzero((edges == b).any(axis=1) & ~(edges == a).any(axis=1)):
                new = edges.copy()
                new[one][new[one] == a] = b
                new[two][new[two] == b] = a
                names = tuple(f"x{j}" for j in range(m))
                expected.add(Tree.build(names, new, np.ones(len(new))).splits().tobytes())
        found = {as_tree(s).splits().tobytes() for s in interchanges(topology, split)}
        assert found == expected


def test_contractions_end_in_the_star() -> None:
    lengths = {0b11100: 0.3, 0b11000: 0.2}
    first, last = contractions(CATERPILLAR, lengths)
    assert first == contracted(CATERPILLAR, 0b11000) == Topology(5, (0b11100,))
    assert last == star(5)


@pytest.mark.parametrize("seed", range(10))
def test_exact_correlations_join_to_their_tree(seed: int) -> None:
    truth, tree = random_topology(9, seed)
    topology, lengths = joined_topology(correlations(tree), 1e4, 1.0)
    assert set(truth.splits) <= set(topology.splits)
    assert set(lengths) == set(topology.splits)


@pytest.mark.parametrize("size", [None, 0])
def test_other_shapes_are_others(size: int | None) -> None:
    for seed in range(10):
        current, tree = random_topology(7, seed)
        r = correlations(tree, 0.05, seed)
        found = other_topologies(current, r, 3000.0, None if size is None else current.n_hidden)
        assert current not in found
        assert len(set(found)) == len(found)
        for topology in found:
            assert topology == topology_of(7, topology.splits)
            assert size is None or topology.n_hidden == current.n_hidden


def test_the_true_shape_is_proposed() -> None:
    """From a wrong interchange, with correlations that are nearly exact."""
    for seed in range(10):
        truth, tree = random_topology(7, seed)
        wrong = next(iter(interchanges(truth, truth.splits[0])))
        r = correlations(tree, 0.005, seed)
        assert truth in other_topologies(wrong, r, 3000.0, truth.n_hidden)
