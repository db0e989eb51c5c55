"""A tree as arrays: slots, walks and numbers against the wiring it was made of."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from tests.reference.features import behind
from tests.reference.random_trees import trees

from latenttree.structure.builder import Wiring
from latenttree.structure.flat_tree import GONE, Flat
from latenttree.tree import Tree


def wired(tree: Tree) -> Wiring:
    return Wiring.from_edges(tree.n_observed, tree.edges, tree.lengths)


@settings(deadline=None, derandomize=True)
@given(trees(min_observed=1, max_observed=25))
def test_a_wiring_goes_in_and_comes_out(tree: Tree) -> None:
    wiring, back = wired(tree), Wiring(tree.n_observed)
    Flat.of(wiring).into(back)
    assert (back.links, back.fresh) == (wiring.links, wiring.fresh)


@settings(deadline=None, derandomize=True)
@given(trees(min_observed=1, max_observed=25, max_degree=6))
def test_slots_are_the_directed_edges(tree: Tree) -> None:
    """Every node has the slots to its neighbours, parents come first on the walk, and observed
    nodes behind a slot are those found by walking."""
    wiring = wired(tree)
    flat = Flat.of(wiring)
    around, tails = flat.around(), flat.ends.ravel()
    assert sorted(around.order.tolist()) == list(range(tree.n_nodes))
    position = np.argsort(around.order)
    for v, near in wiring.links.items():
        slots = around.slot[around.first[v] : around.first[v + 1]]
        assert (tails[slots] == v).all()
        heads = tails[slots ^ 1].tolist()
        assert dict(zip(heads, flat.length[slots >> 1].tolist(), strict=True)) == near
        for s, u in zip(slots.tolist(), heads, strict=True):
            assert around.behind[s] == len(behind(wiring, v, u))
        if v == 0:
            assert around.up[v] == -1
        else:
            assert around.up[v] in slots
            assert position[tails[around.up[v] ^ 1]] < position[v]


def test_edges_that_are_gone_are_in_nobodys_slots() -> None:
    """0 and 4 are one node: the edge between them keeps its number, and nothing else."""
    edges = np.array([[0, 4], [1, 4], [2, 5], [3, 5], [4, 5]])
    flat = Flat(4, edges.copy(), np.ones(5), 6)
    flat.ends[0] = GONE
    flat.ends[flat.ends == 4] = 0
    around = flat.around()
    assert sorted(around.slot[around.first[0] : around.first[1]] >> 1) == [1, 4]
    assert around.first[4] == around.first[5]
    assert around.order.tolist() == [0, 1, 5, 2, 3]
    assert flat.hidden().tolist() == [5]
    wiring = Wiring(4)
    flat.into(wiring)
    assert wiring.edges() == [(0, 1), (0, 5), (2, 5), (3, 5)]
