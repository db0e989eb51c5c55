"""Sweeps: damage is repaired, the truth is left alone, likelihood never falls."""

from __future__ import annotations

import numpy as np
import pytest
from tests.reference import stars as reference
from tests.reference import sweeps as slow
from tests.reference.random_trees import random_tree

from latenttree.distances.similarity import matrix_affinity
from latenttree.structure.branch_features import branch_features, star_correlations
from latenttree.structure.builder import Wiring
from latenttree.structure.flat_tree import Flat
from latenttree.structure.sweeps import Splits, judge_all, sweep, topology_hash
from latenttree.tree import Tree

N = 1e6
SHAPES = ("uniform", "caterpillar", "balanced")
# Edges from 0.2 to 1.0: at n = 1e6 the worst quartet of a binary tree of these is decided by
# hundreds of standard errors, so anything but the truth is a failure of the search.
LENGTHS = (0.2, 1.0)


def binary_tree(seed: int) -> Tree:
    rng = np.random.default_rng(seed)
    p = int(rng.integers(5, 40))
    return random_tree(rng, p, shape=SHAPES[seed % 3], max_degree=3, length_range=LENGTHS)


def wired(tree: Tree) -> Wiring:
    return Wiring.from_edges(tree.n_observed, tree.edges, tree.lengths)


def interchange(wiring: Wiring, rng: np.random.Generator) -> None:
    """Swap a branch on one side of an internal edge with one on the other side."""
    inner = [(a, b) for a, b in wiring.edges() if wiring.is_hidden(a)]
    a, b = inner[int(rng.integers(len(inner)))]
    x = int(rng.choice([u for u in wiring.links[a] if u != b]))
    y = int(rng.choice([u for u in wiring.links[b] if u != a]))
    to_x, to_y = wiring.cut(a, x), wiring.cut(b, y)
    wiring.connect(a, y, to_y)
    wiring.connect(b, x, to_x)


def steps_from(wiring: Wiring, start: int) -> dict[int, int]:
    steps, queue = {start: 0}, [start]
    for v in queue:
        for u in wiring.links[v]:
            if u not in steps:
                steps[u] = steps[v] + 1
                queue.append(u)
    return steps


def move_leaf(wiring: Wiring, rng: np.random.Generator, reach: int = 6) -> None:
    """Prune a leaf with its parent and put it on an edge up to `reach` steps away."""
    leaf = int(rng.integers(wiring.n_observed))
    (parent,) = wiring.links[leaf]
    a, b = (u for u in wiring.links[parent] if u != leaf)
    wiring.connect(a, b, wiring.cut(parent, a) + wiring.cut(parent, b))
    steps = steps_from(wiring, a)
    near = [e for e in wiring.edges() if e != (leaf, parent) and steps[e[0]] < reach]
    c, d = near[int(rng.integers(len(near)))]
    length = wiring.cut(c, d)
    wiring.connect(c, parent, length / 2)
    wiring.connect(parent, d, length / 2)


@pytest.mark.parametrize("damage", [interchange, move_leaf])
def test_damage_is_repaired(damage: object) -> None:
    for seed in range(100):
        tree = binary_tree(seed)
        wiring, rng = wired(tree), np.random.default_rng(seed)
        for _ in range(int(rng.integers(1, 5))):
            damage(wiring, rng)  # type: ignore[operator]
        changes = sweep(wiring, reference.with_samples(tree.path_lengths(), N))
        assert changes[-1] == 0, "sweeps end when nothing changes"
        found = wiring.tree(tree.observed_names)
        assert found.same_topology(tree), f"seed {seed}: {changes}"


def test_the_truth_is_left_alone() -> None:
    for seed in range(30):
        tree = binary_tree(seed)
        wiring = wired(tree)
        assert sweep(wiring, reference.with_samples(tree.path_lengths(), N)) == [0]
        found = wiring.tree(tree.observed_names)
        assert found.same_topology(tree)
        # A fit ends when a step gains under 1e-3 log-likelihood, sqrt(2e-3) = 0.045 standard
        # errors. At n = 1e6 those are below 0.01 here: the farthest leaves of a feature are
        # e^-3 away.
        np.testing.assert_allclose(found.lengths, tree.lengths, atol=1e-3)


@pytest.mark.parametrize("n", [200, 5000])
def test_no_verdict_lowers_the_likelihood_of_its_region(n: int) -> None:
    """Sampled affinities on a damaged tree: every region, judged by the slow likelihood, and the
    same region and verdict as in plain Python."""
    for seed in range(10):
        tree = binary_tree(seed)
        wiring, rng = wired(tree), np.random.default_rng(seed)
        for _ in range(3):
            interchange(wiring, rng)
        rho = reference.sampled_correlations(rng, np.exp(-tree.path_lengths()), n)
        whole = matrix_affinity(rho, float(n), 1.0, np.empty((0, 2), dtype=np.int64))
        flat = Flat.of(wiring)
        around, centres = flat.around(), flat.hidden()
        features = branch_features(flat, around, whole.source)
        verdicts = judge_all(flat, around, features, whole, centres, 1)
        for c, centre in enumerate(centres.tolist()):
            region = slow.region_around(wiring, centre)
            assert verdicts.inside[c, : verdicts.n_inside[c]].tolist() == region.inside
            if len(region.branches) < 4:
                assert verdicts.n_slots[c] == 0
                continue
            slots, edges, lengths = slow.region_arrays(wiring, features, region)
            assert sorted(verdicts.slots[c, : verdicts.n_slots[c]]) == sorted(slots)
            order = [slots.tolist().index(s) for s in verdicts.slots[c, : verdicts.n_slots[c]]]
            expected = slow.judge(wiring, features, whole, region)
            assert verdicts.changed[c] == expected.changed
            found = np.array(verdicts.edges[c, : verdicts.n_edges[c]])
            number = np.concatenate([order, np.arange(len(slots), found.max() + 1)])
            assert topology_hash(len(slots), number[found]) == topology_hash(
                len(slots), expected.edges
            )
            r = star_correlations(slots, features, whole.source)
            before = reference.log_likelihood(r, float(n), edges, lengths)
            offsets = -np.log(features.load[slots])
            fitted = verdicts.lengths[c, : len(found)].copy()
            for e, (a, b) in enumerate(number[found].tolist()):
                fitted[e] += sum(offsets[v] for v in (a, b) if v < len(slots))
            after = reference.log_likelihood(r, float(n), number[found], fitted)
            # the fit accepts losses of 1e-9 a step; a branch may be nearer than its node by less
            # than the node's error, and is put at zero then
            short = (expected.lengths < 0).any()
            assert short or after >= before - 1e-6
        assert verdicts.changed.any(), "three interchanges must show"


def test_likelihood_of_the_whole_tree_rises_when_sweeping_samples() -> None:
    from latenttree.structure.consensus import log_likelihood

    for seed in range(15):
        tree = binary_tree(seed)
        wiring, rng = wired(tree), np.random.default_rng(seed)
        for _ in range(4):
            interchange(wiring, rng)
        rho = reference.sampled_correlations(rng, np.exp(-tree.path_lengths()), 2000)
        whole = matrix_affinity(rho, 2000.0, 1.0, np.empty((0, 2), dtype=np.int64))
        before = log_likelihood(wiring, whole)
        sweep(wiring, whole)
        assert log_likelihood(wiring, whole) > before


def test_a_star_is_resolved() -> None:
    """A region that is not binary is always joined: all hidden nodes collapsed into one."""
    tree = random_tree(np.random.default_rng(3), 9, length_range=LENGTHS)
    wiring = wired(tree)
    first, *others = wiring.hidden()
    while others:
        drop = next(v for v in wiring.links[first] if v in others)
        wiring.contract(first, drop)
        others.remove(drop)
    assert len(wiring.hidden()) == 1
    sweep(wiring, reference.with_samples(tree.path_lengths(), N))
    assert wiring.tree(tree.observed_names).same_topology(tree)


def test_threads_do_not_matter() -> None:
    tree = binary_tree(4)
    whole = reference.with_samples(tree.path_lengths(), N)
    found = []
    for n_jobs in (1, 2):
        wiring, rng = wired(tree), np.random.default_rng(0)
        for _ in range(6):
            interchange(wiring, rng)
        changes = sweep(wiring, whole, n_jobs)
        found.append((changes, wiring.links))
    assert found[0] == found[1]


def test_the_number_of_sweeps_is_bounded() -> None:
    tree = binary_tree(4)
    wiring, rng = wired(tree), np.random.default_rng(0)
    for _ in range(6):
        interchange(wiring, rng)
    assert len(sweep(wiring, reference.with_samples(tree.path_lengths(), N), max_sweeps=1)) == 1
    assert sweep(wiring, reference.with_samples(tree.path_lengths(), N), max_sweeps=0) == []


def test_nothing_to_sweep_without_hidden_nodes() -> None:
    wiring = Wiring.from_edges(2, np.array([[0, 1]]), np.array([0.5]))
    assert sweep(wiring, reference.with_samples(np.array([[0, 0.5], [0.5, 0]]), N)) == []


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


def test_splits_are_counted_when_they_come_again() -> None:
    tree = binary_tree(7)
    flat = Flat.of(wired(tree))
    around = flat.around()
    splits = Splits.of(flat, around)
    assert len(splits.number) == len(flat.ends), "every edge is a split of its own"
    assert len(np.unique(around.mark[::2] + around.mark[1::2])) == 1, "all observed nodes"
    again = splits.and_also(np.array([splits.number[3], 12345], dtype=np.uint64))
    assert again.times[np.searchsorted(again.number, splits.number[3])] == 2
    assert again.times.sum() == len(flat.ends) + 2


def test_sweeps_of_what_fits_no_tree_come_to_an_end() -> None:
    """Correlations of nine factors at once: many trees are as good, none is right. The likelihood
    of the whole rises all the same, and nothing goes in circles."""
    from latenttree.structure.consensus import log_likelihood

    for seed in range(5):
        rng = np.random.default_rng(seed)
        loads = rng.uniform(0.1, 1.0, (60, 9)) ** 2
        cover = loads @ loads.T + np.diag(rng.uniform(0.5, 2.0, 60))
        root = np.sqrt(np.diag(cover))
        whole = matrix_affinity(cover / np.outer(root, root), 1e5)
        wiring = wired(random_tree(rng, 60, max_degree=3, length_range=LENGTHS))
        before = log_likelihood(wiring, whole)
        assert sweep(wiring, whole, max_sweeps=200)[-1] == 0
        assert log_likelihood(wiring, whole) > before


# ---- regions -------------------------------------------------------------------------


def check_region(wiring: Wiring, region: slow.Region, max_branches: int) -> None:
    inside = set(region.inside)
    assert all(wiring.is_hidden(v) for v in inside)
    assert len(inside) == len(region.inside)
    assert all(v in inside and u not in inside for v, u in region.branches)
    assert all(u in wiring.links[v] for v, u in region.branches)
    cut = sum(1 for v in inside for u in wiring.links[v] if u not in inside)
    assert len(region.branches) == cut
    degree = len(wiring.links[region.inside[0]])
    assert len(region.branches) <= max(max_branches, degree)


@pytest.mark.parametrize("max_branches", [4, 6, 10])
def test_regions_are_connected_and_small(max_branches: int) -> None:
    for seed in range(10):
        wiring = wired(random_tree(np.random.default_rng(seed), 50, max_degree=6))
        for centre in wiring.hidden():
            region = slow.region_around(wiring, centre, 2, max_branches)
            assert region.inside[0] == centre
            check_region(wiring, region, max_branches)
            steps = steps_from(wiring, centre)
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
    wiring = Wiring.from_edges(6, np.array(edges), np.array([1.0] * 6 + [0.3, 0.1, 0.2]))
    assert slow.region_around(wiring, 8, radius=1, max_branches=5).inside == [8, 10, 11]
