"""Drawings of large trees: bounded, and true about what they leave out."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.random_trees import random_tree, trees

from latenttree.tree import Tree


def star(p: int) -> Tree:
    return Tree.build([f"x{i}" for i in range(p)], [(i, p) for i in range(p)], np.ones(p))


def test_ascii() -> None:
    edges = [(0, 4), (1, 4), (4, 5), (2, 5), (3, 5)]
    tree = Tree.build(list("abcd"), edges, np.ones(5))
    assert tree.draw(style="ascii").splitlines() == [
        "h0",
        "|-- a",
        "|-- b",
        "`-- h1",
        "    |-- c",
        "    `-- d",
    ]
    assert tree.draw(style="ascii", root="c").isascii()


def test_nodes_near_the_root_come_first_and_the_others_are_counted() -> None:
    tree = star(1500)
    lines = tree.draw().splitlines()
    assert len(lines) == 1000
    assert lines[-1] == "└── ... 502 more nodes below h0"
    assert tree.draw(max_lines=None).count("\n") == 1500
    chain = random_tree(np.random.default_rng(0), 200, shape="caterpillar", max_degree=3)
    deep = chain.draw(max_depth=3).splitlines()
    assert max(line.count("   ") for line in deep) <= 4
    assert re.search(r"\.\.\. [\d,]+ more nodes below h\d+$", deep[-1])


def test_one_node_is_left_out() -> None:
    """Three lines hold h0, one leaf of three and the rest."""
    assert star(3).draw(max_lines=3).splitlines() == [
        "h0",
        "├── x0",
        "└── ... 2 more nodes below h0",
    ]
    line = Tree.build(list("abc"), [(0, 1), (1, 2)], [1.0, 1.0])
    assert line.draw(root="a", max_depth=1).splitlines()[-1] == "    └── ... 1 more node below b"


@settings(max_examples=100, deadline=None, derandomize=True)
@given(trees(max_observed=40), st.integers(2, 30), st.integers(1, 10))
def test_every_node_is_drawn_or_counted(tree: Tree, max_lines: int, max_depth: int) -> None:
    lines = tree.draw(max_lines=max_lines, max_depth=max_depth).splitlines()
    assert len(lines) <= max_lines
    counts = [int(m.group(1)) for line in lines if (m := re.search(r"\.\.\. (\d+) more", line))]
    assert len(lines) - len(counts) + sum(counts) == tree.n_nodes


def test_wrong_options_are_refused() -> None:
    with pytest.raises(ValueError, match="style='dots'"):
        star(3).draw(style="dots")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_lines=1"):
        star(3).draw(max_lines=1)
    with pytest.raises(ValueError, match=r"max_depth=1\.5"):
        star(3).draw(max_depth=1.5)  # type: ignore[arg-type]
