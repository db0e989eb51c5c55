"""Scores of the benchmarks on real data: cuts, nearest neighbours, groups as subtrees."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.cluster.hierarchy import cophenet, fcluster, linkage
from scipy.spatial.distance import squareform
from sklearn.metrics import adjusted_rand_score

from benchmarks import scores
from benchmarks.rivals.hierarchies import from_groups, from_linkage
from latenttree.evaluation.datasets import make_latent_tree
from latenttree.evaluation.metrics import split_errors
from latenttree.tree import Tree

# a   c   e        pendant edges 1, hidden edges 3
#  \  |  /
#  h0-h1-h2
#  /  |  \
# b   d   f
EDGES = [(0, 6), (1, 6), (2, 7), (3, 7), (4, 8), (5, 8), (6, 7), (7, 8)]
TREE = Tree.build("abcdef", np.array(EDGES), np.array([1.0] * 6 + [3.0] * 2))
PAIRS = "112233"


def dendrogram(seed: int, p: int = 12) -> tuple[Any, Tree]:
    points = np.random.default_rng(seed).normal(size=(p, 3))
    found = linkage(points, method="average")
    return found, from_linkage(found, [f"x{i}" for i in range(p)])


@pytest.mark.parametrize("seed", range(5))
def test_paths_in_a_dendrogram_are_the_heights_at_which_leaves_join(seed: int) -> None:
    found, tree = dendrogram(seed)
    np.testing.assert_allclose(tree.path_lengths(), squareform(cophenet(found)), atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("m", [2, 4, 7])
def test_diameter_cut_of_a_dendrogram_is_the_horizontal_one(seed: int, m: int) -> None:
    found, tree = dendrogram(seed)
    cut = scores.diameter_cut(tree, m, list(range(12)))
    assert cut.n_clusters == m
    assert adjusted_rand_score(cut.labels, fcluster(found, m, "maxclust")) == 1


@pytest.mark.parametrize("seed", range(10))
def test_diameter_cut_has_the_shortest_longest_path(seed: int) -> None:
    tree = make_latent_tree(
        6, shape="random", edge_length=(0.2, 2.0), n_samples=1, random_state=seed
    ).tree
    paths = tree.path_lengths()

    def diameter(labels: Any) -> float:
        return max(paths[np.ix_(labels == c, labels == c)].max() for c in np.unique(labels))

    every = [labels for labels in all_cuts(tree) if len(np.unique(labels)) <= 3]
    found = scores.diameter_cut(tree, 3, list(range(6))).labels
    assert diameter(found) == pytest.approx(min(map(diameter, every)), abs=1e-12)


def all_cuts(tree: Tree) -> list[Any]:
    """Labels of the observed nodes for every set of removed edges, each partition once."""
    cuts = itertools.product([False, True], repeat=tree.n_edges)
    labels = (scores._pieces(tree, np.array(cut))[: tree.n_observed] for cut in cuts)
    return list({np.unique(x, return_inverse=True)[1].tobytes(): x for x in labels}.values())


def test_best_cut_of_a_tree_that_has_the_groups() -> None:
    cut = scores.best_cut(TREE, PAIRS)
    assert cut.score == 1
    assert cut.n_clusters == 3


def test_best_cut_is_close_to_the_best_of_all() -> None:
    # steepest ascent may end below the best; over these trees it must hardly ever do so
    gaps = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        tree = make_latent_tree(6, shape="random", n_samples=1, random_state=seed).tree
        labels = rng.integers(0, 3, 6).tolist()
        best = max(adjusted_rand_score(labels, cut) for cut in all_cuts(tree))
        gaps.append(best - scores.best_cut(tree, labels).score)
    assert min(gaps) >= -1e-12
    assert np.mean(gaps) < 0.02


@pytest.mark.parametrize("seed", range(5))
def test_steps_of_the_climb_are_scored_as_scikit_learn_does(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tree = make_latent_tree(9, shape="random", n_samples=1, random_state=seed).tree
    codes = rng.integers(0, 3, 9)
    removed = rng.random(tree.n_edges) < 0.3
    now, after, size, sizes = scores._Climb(tree, codes)._scores(removed)
    assert now == pytest.approx(score(tree, removed, codes), abs=1e-12)
    assert size == scores._n_clusters(tree, removed)
    for edge in range(tree.n_edges):
        changed = removed.copy()
        changed[edge] = not changed[edge]
        assert after[edge] == pytest.approx(score(tree, changed, codes), abs=1e-12)
        assert sizes[edge] == scores._n_clusters(tree, changed)


def score(tree: Tree, removed: Any, codes: Any) -> float:
    labels = scores._pieces(tree, removed)[: tree.n_observed]
    return float(adjusted_rand_score(codes, labels))


def test_nearest_share_counts_ties_by_parts() -> None:
    assert scores.nearest_share(TREE, PAIRS) == 1
    star = Tree.build("abcd", np.array([(0, 4), (1, 4), (2, 4), (3, 4)]), np.ones(4))
    assert scores.nearest_share(star, "1122") == pytest.approx(1 / 3)


def test_best_clade_looks_at_both_sides_of_an_edge() -> None:
    exact = scores.best_clade(TREE, "abcd")
    assert exact.jaccard == exact.f1 == 1
    assert exact.members == tuple("abcd")
    part = scores.best_clade(TREE, "abc")
    assert part.jaccard == pytest.approx(3 / 4)
    assert part.f1 == pytest.approx(6 / 7)


def test_groups_as_a_tree() -> None:
    groups = [set("ab"), set("abc"), set("a"), set("abcdef"), set("de"), set("ab")]
    tree = from_groups("abcdef", groups)
    assert scores.best_clade(tree, "abc").jaccard == 1
    assert scores.best_clade(tree, "de").jaccard == 1
    assert len(tree.internal_edges()) == 3


def test_a_group_and_its_complement_are_one_split() -> None:
    tree = from_groups("abcd", [set("ab"), set("cd")])
    assert len(tree.internal_edges()) == 1


def test_inner_errors_do_not_see_whether_a_node_is_a_leaf() -> None:
    chain = Tree.build("abcd", np.array([(0, 1), (1, 2), (2, 3)]), np.ones(3))
    quartet = from_groups("abcd", [set("ab")])
    assert scores.inner_errors(quartet, chain) == (1, 0, 0)
    assert split_errors(quartet, chain) != (0, 0)
    assert scores.inner_errors(quartet, from_groups("dcba", [set("ac")])) == (0, 1, 1)


def test_groups_with_a_subtree_of_their_own() -> None:
    assert scores.own_subtrees(TREE, "112233") == ["1", "2", "3"]
    assert scores.own_subtrees(TREE, "112213") == ["3"]  # 1 runs through the middle
    assert scores.own_subtrees(TREE, "111222") == []


@pytest.mark.parametrize("seed", range(10))
def test_groups_with_a_subtree_of_their_own_are_those_whose_paths_meet_no_others(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tree = make_latent_tree(9, shape="random", n_samples=1, random_state=seed).tree
    labels = rng.integers(0, 4, tree.n_observed).tolist()
    spans = {
        label: {
            node
            for a, b in itertools.product(np.flatnonzero(np.array(labels) == label), repeat=2)
            for node in tree.path(int(a), int(b))
        }
        for label in dict.fromkeys(labels)
    }
    alone = [a for a in spans if all(a == b or not spans[a] & spans[b] for b in spans)]
    assert scores.own_subtrees(tree, labels) == alone


@pytest.mark.parametrize("seed", range(5))
def test_best_cut_into_few_clusters_is_the_best_of_all_of_them(seed: int) -> None:
    """The climb may miss the best cut; on trees this small it does not."""
    rng = np.random.default_rng(seed)
    tree = make_latent_tree(6, shape="random", n_samples=1, random_state=seed).tree
    labels = rng.integers(0, 3, 6).tolist()
    cut = scores.best_cut(tree, labels, most=3)
    every = [-1.0]
    for n_removed in range(tree.n_edges + 1):
        for removed in itertools.combinations(range(tree.n_edges), n_removed):
            gone = np.isin(np.arange(tree.n_edges), removed)
            found = scores._cut(tree, gone, labels)
            if found.n_clusters <= 3:
                every.append(found.score)
    assert cut.n_clusters <= 3
    assert cut.score == pytest.approx(max(every))


def test_a_star_has_no_clusters_where_their_number_is_bounded() -> None:
    p = 60
    star = from_groups([f"x{i}" for i in range(p)], [])
    labels = ["big"] * 30 + list(range(30))
    assert scores.best_cut(star, labels).score > 0.9
    assert scores.best_cut(star, labels, most=10).score < 0.5
