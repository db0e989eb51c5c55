"""Numbers for splits, against the splits themselves."""

from __future__ import annotations

import pytest

import latenttree as lt
from latenttree.tree import Tree
from latenttree.tree.split_keys import BranchKeys, signatures, split_keys


def drawn(seed: int, p: int = 30) -> Tree:
    return lt.datasets.make_latent_tree(p, 2, shape="random", n_samples=2, random_state=seed).tree


@pytest.mark.parametrize("seed", range(5))
def test_equal_splits_have_equal_numbers(seed: int) -> None:
    one, other = drawn(seed), drawn(seed + 100)
    number: dict[bytes, int] = {}
    for tree in (one, other, one.contract(one.internal_edges()[:3])):
        for row, key in zip(tree.splits(), split_keys(tree).tolist(), strict=True):
            assert number.setdefault(row.tobytes(), key) == key
    assert len(set(number.values())) == len(number)


def test_nodes_are_known_by_their_splits() -> None:
    tree = drawn(0)
    found = signatures(tree)
    assert list(found) == list(range(tree.n_observed, tree.n_nodes))
    assert len(set(found.values())) == tree.n_hidden
    again, number = tree.renumbered()
    assert {int(number[v]): key for v, key in found.items()} == signatures(again)


def test_branches_together_are_the_split_of_an_edge() -> None:
    """All other edges at the end of an edge, taken together, part what the edge parts."""
    tree = drawn(1)
    sides, keys = BranchKeys(tree), split_keys(tree).tolist()
    for (a, b), key in zip(tree.edges.tolist(), keys, strict=True):
        for v, u in ((a, b), (b, a)):
            assert sides.together([(v, u)]) == key
            if u >= tree.n_observed:
                others = [(u, int(w)) for w in tree.neighbors(u) if w != v]
                assert sides.together(others) == key
