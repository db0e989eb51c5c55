"""`latenttree show`."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from tests.cli.commands import (
    TREE,
    accepted,
    refused,
    run,
)

import latenttree as lt
from latenttree.io.treefile import SavedTree, save_tree
from latenttree.tree import Tree


@pytest.mark.parametrize("suffix", [".json", ".ltree", ".nwk"])
def test_show(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"tree{suffix}"
    save_tree(path, TREE)
    result = run("show", path)
    assert result.exit_code == 0, result.output
    assert "4 observed variables, 2 hidden variables" in result.output
    assert TREE.draw() in result.output
    assert re.search(r"h1 +2 +c  \[d\]", result.output)


def test_show_says_what_the_support_is_and_how_many_states_there_are(tmp_path: Path) -> None:
    support = np.ones(TREE.n_edges)
    support[TREE.internal_edges()] = 0.75
    report = SavedTree(TREE, support, {}, 16, (), (4, 16), "bootstrap", 7)
    save_tree(tmp_path / "tree.json", TREE, report)
    output = accepted("show", tmp_path / "tree.json")
    assert "4 observed variables, 2 hidden variables with 4 to 16 states, 5 edges" in output
    assert "support of 1 internal edge (share of 7 trees of bootstrap samples): median" in output


def test_show_draws_large_trees_only_on_request(tmp_path: Path) -> None:
    star = Tree.build([f"x{i}" for i in range(300)], [(i, 300) for i in range(300)], [1.0] * 300)
    path = tmp_path / "star.json"
    save_tree(path, star)
    assert "x299" not in run("show", path).output
    assert "x299" in run("show", path, "--draw").output


def test_show_plots(tmp_path: Path) -> None:
    save_tree(tmp_path / "tree.json", TREE)
    for layout in ("radial", "top_down"):
        picture = tmp_path / f"{layout}.svg"
        result = run("show", tmp_path / "tree.json", "--plot", picture, "--layout", layout)
        assert result.exit_code == 0, result.output
        assert "<svg" in picture.read_text()


def test_show_refuses(tmp_path: Path) -> None:
    assert "nothing.json: No such file" in refused("show", tmp_path / "nothing.json")
    (tmp_path / "bad.json").write_text("{}")
    assert "bad.json holds no valid tree" in refused("show", tmp_path / "bad.json")
    save_tree(tmp_path / "tree.json", TREE)
    line = refused("show", tmp_path / "tree.json", "--plot", tmp_path / "tree.doc")
    assert "'tree.doc' is no picture file; end it in .png, .pdf or .svg" in line


def test_show_draws_the_support(fitted: Path) -> None:
    result = run("show", fitted)
    model = lt.load(fitted)
    assert f"a whole model: {model.model_.n_parameters} parameters" in result.output
    # simulated from the tree, so that its edges have their posterior probabilities
    assert len(re.findall(r"h\d \[1\.00\]", result.output)) == 3
    assert "in brackets: support of the edge above" in result.output


def test_show_a_node(fitted: Path) -> None:
    model = lt.load(fitted)
    hidden = model.tree_.names[int(model.tree_.neighbors("a0")[0])]
    text = run("show", fitted, "--node", hidden).output
    assert f"{hidden}, hidden, 2 states" in text
    assert len(re.findall(rf"P\(\w+ \| {hidden}\)", text)) == len(model.tree_.neighbors(hidden))
    low, high = model.conditional("a1", hidden)[1]
    assert re.search(rf"red, dark +{low:.4f} +{high:.4f}", text)
    leaf = run("show", fitted, "--node", "a1").output
    assert "a1, observed, 2 states" in leaf
    assert re.search(rf"red, dark +{low:.4f} +{high:.4f}", leaf)
    assert "no node 'zz'; it has the variables 'a0'" in refused("show", fitted, "--node", "zz")


def test_show_says_how_well_the_tree_describes_pairs(tmp_path: Path) -> None:
    data = lt.datasets.make_latent_tree(6, 2, n_samples=500, random_state=0)
    model = lt.LatentTree(2, random_state=0).fit(data.X)
    model.save(tmp_path / "m.ltree")
    output = accepted("show", tmp_path / "m.ltree")
    assert model.diagnostics_.fit is not None
    assert model.diagnostics_.fit.summary() in output
    assert "of the pairwise dependence explained; SRMR" in output
