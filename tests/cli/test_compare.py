"""`latenttree compare`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.commands import accepted, refused

import latenttree as lt
from latenttree.cli.side_by_side import matching_roots, side_by_side
from latenttree.evaluation.comparison import compare_trees, restricted, smaller_sides
from latenttree.io.treefile import save_tree
from latenttree.tree import Tree

#   a   b   c          a   c   b
#    \ /   /            \ /   /
#     x---y---z---e      x---y---z---e
#         d    f             d    f
EDGES = [(0, 6), (1, 6), (2, 7), (3, 7), (4, 8), (5, 8), (6, 7), (7, 8)]
FIRST = Tree.build("abcdef", EDGES, [1.0] * 8)
SECOND = Tree.build("acbdef", EDGES, [1.0] * 8)


def files(folder: Path, second: Tree = SECOND) -> list[Path]:
    paths = [folder / "first.json", folder / "second.json"]
    for path, tree in zip(paths, (FIRST, second), strict=True):
        save_tree(path, tree)
    return paths


def split_sets(tree: Tree) -> set[frozenset[str]]:
    """Slow and obvious: of each edge the side without the first name in alphabetical order."""
    found = set()
    for e in range(tree.n_edges):
        order, begin, end = tree.edge_intervals()
        side = {tree.names[v] for v in order[begin[e] : end[e]]}
        other = set(tree.observed_names) - side
        found.add(frozenset(other if min(tree.observed_names) in side else side))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_splits_of_random_trees(seed: int) -> None:
    first, second = (
        lt.datasets.make_latent_tree(9, n_samples=0, shape="random", random_state=s).tree
        for s in (seed, seed + 100)
    )
    found = compare_trees(first, second)
    own, other = split_sets(first), split_sets(second)
    assert int(np.sum(found.match >= 0)) == int(np.sum(found.back >= 0)) == len(own & other)
    assert found.distance == lt.metrics.robinson_foulds(first, second)
    assert found.normalized == pytest.approx(lt.metrics.robinson_foulds(first, second, True))


@pytest.mark.parametrize("seed", range(20))
def test_paths_stay_where_variables_are_left_out(seed: int) -> None:
    tree = lt.datasets.make_latent_tree(10, n_samples=0, shape="random", random_state=seed).tree
    kept = np.random.default_rng(seed).permutation(10)[:6]
    names = [tree.names[v] for v in kept]
    expected = tree.path_lengths()[np.ix_(kept, kept)]
    small = restricted(tree, names)
    assert small.observed_names == tuple(names)
    np.testing.assert_allclose(small.path_lengths(), expected, rtol=1e-12)  # sums of lengths


def test_smaller_sides() -> None:
    assert smaller_sides(FIRST, FIRST.internal_edges()) == [["a", "b"], ["e", "f"]]


def test_compare(tmp_path: Path) -> None:
    first, second = files(tmp_path)
    output = accepted("compare", first, second)
    assert "first  3 hidden variables, 2 inner edges: " in output
    assert "shared inner splits 1; Robinson-Foulds distance 2 (0.50 of" in output
    assert "only in the first: a  b\n" in output
    assert "only in the second: a  c\n" in output


DRAWN = """\
one          two
h1           h1
├── h0 *     ├── h0 *
│   ├── a    │   ├── a
             │   └── c
│   └── b    ├── b
├── c
├── d        ├── d
└── h2 [1]   └── h2 [1]
    ├── e        ├── e
    └── f        └── f"""


def test_what_is_shared_stands_side_by_side() -> None:
    found = compare_trees(FIRST, SECOND)
    assert "\n".join(side_by_side(found, ["one", "two"], 100)) == DRAWN
    assert [found.first.names[found.first.index(v)] for v in matching_roots(found)] == ["h1", "h1"]
    narrow = side_by_side(found, ["one", "two"], 10)
    assert narrow[0] == "one"
    assert "two" in narrow


def test_variables_of_one_tree_alone(tmp_path: Path) -> None:
    edges = [(0, 5), (1, 5), (2, 6), (3, 6), (4, 6), (5, 6)]
    first, second = files(tmp_path, Tree.build("abcdz", edges, [1.0] * 6))
    assert "note: without 3 variables of one tree alone" in accepted("compare", first, second)
    save_tree(second, Tree.build("xyz", [(0, 3), (1, 3), (2, 3)], [1.0] * 3))
    assert "have 0 variables in common" in refused("compare", first, second)


def test_edges_of_little_support(tmp_path: Path) -> None:
    first, second = files(tmp_path, FIRST)
    weak = np.ones(FIRST.n_edges)
    weak[FIRST.internal_edges()[0]] = 0.2
    save_tree(first, FIRST.with_evidence(support=weak))
    output = accepted("compare", first, second)
    assert "note: without 1 inner edge of little support in the first; --min-support 0" in output
    assert "distance 1 " in output
    assert "distance 0 " in accepted("compare", first, second, "--min-support", "0")


def test_models_newick_and_pictures(fitted: Path, tmp_path: Path) -> None:
    newick, picture = tmp_path / "tree.nwk", tmp_path / "both.svg"
    accepted("export", fitted, "-o", newick)
    output = accepted("compare", fitted, newick, "--plot", picture, "--no-draw")
    assert "Robinson-Foulds distance 0 " in output
    assert "<svg" in picture.read_text()
    found = json.loads(accepted("compare", fitted, newick, "--json"))
    assert (found["robinson_foulds"], found["group_agreement"], found["n_left_out"]) == (0, 1, 0)
    assert found["only_first"] == found["only_second"] == []
