"""A chain deeper than Python's recursion limit, through everything that takes a tree."""

from __future__ import annotations

import copy
import pickle
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from tests.reference.layouts import radial, top_down

from latenttree.evaluation.metrics import group_rand_index, robinson_foulds
from latenttree.io.graphml import to_graphml
from latenttree.io.treefile import load_tree, save_tree
from latenttree.tree import Tree

P = 5000


@pytest.fixture(scope="module")
def chain() -> Tree:
    """Hidden nodes P..2P-3 in a row, each with a leaf, those at the ends with two."""
    inner = np.arange(P, 2 * P - 2)
    row = np.column_stack([inner[:-1], inner[1:]])
    leaves = np.column_stack([np.arange(P), np.concatenate([inner[:1], inner, inner[-1:]])])
    edges = np.concatenate([row, leaves])
    return Tree.build([f"v{i}" for i in range(P)], edges, np.ones(len(edges)))


def test_texts_are_short(chain: Tree) -> None:
    tracemalloc.start()
    drawing, text = chain.draw(), repr(chain)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert drawing.count("\n") < 1000
    assert "more nodes below" in drawing
    assert len(text) < 200
    assert peak < 30e6  # lists over 10,000 nodes; the whole drawing would be 100 MB


def test_newick_and_back(chain: Tree) -> None:
    text = chain.to_newick()
    assert len(text) < 100 * P
    back = Tree.from_newick(text)
    assert back == chain
    assert robinson_foulds(back, chain) == 0
    assert group_rand_index(back, chain) == 1


@pytest.mark.parametrize("suffix", [".nwk", ".json", ".ltree"])
def test_files(chain: Tree, suffix: str, tmp_path: Path) -> None:
    save_tree(tmp_path / f"chain{suffix}", chain)
    assert load_tree(tmp_path / f"chain{suffix}").tree == chain


def test_graphs(chain: Tree) -> None:
    assert chain.to_networkx().number_of_edges() == chain.n_edges
    assert to_graphml(chain).count("<edge ") == chain.n_edges


def test_copies(chain: Tree) -> None:
    assert pickle.loads(pickle.dumps(chain)) == chain
    assert copy.deepcopy(chain) == chain


def test_places_and_paths(chain: Tree) -> None:
    for place in (radial, top_down):
        assert np.isfinite(place(chain)).all()
    assert len(chain.path(0, P - 1)) == P
    assert chain.contract(chain.internal_edges()).n_hidden == 1
