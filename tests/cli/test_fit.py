"""`latenttree fit`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.cli.commands import (
    NAMES,
    TREE,
    accepted,
    bits,
    refused,
    run,
)

import latenttree as lt
from latenttree.cli import fit
from latenttree.io.treefile import load_tree
from latenttree.tree import Tree


def test_fit(table: Path, tmp_path: Path) -> None:
    out, picture = tmp_path / "model.ltree", tmp_path / "tree.png"
    result = run("fit", table, "-o", out, "--seed", "0", "--threads", "1", "--plot", picture)
    assert result.exit_code == 0, result.output + result.stderr
    assert "4,000 samples of 9 variables" in result.output
    assert "9 observed variables, 4 hidden variables with 2 states, 12 edges" in result.output
    assert "internal edges (posterior probability): " in result.output
    assert picture.read_bytes().startswith(b"\x89PNG")
    saved = load_tree(out)
    for group in "abc":
        (parent,) = {int(saved.tree.neighbors(f"{group}{i}")[0]) for i in range(3)}
        assert parent >= saved.tree.n_observed
    assert saved.n_states == 2
    assert saved.stage_seconds
    assert run("show", out).exit_code == 0
    model = lt.load(out)
    assert f"model of {model.model_.n_parameters} parameters" in result.output
    assert model.schema_.names == tuple(NAMES)


def test_fit_hands_its_options_on(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "model.ltree"
    options = [
        "--no-search",
        "--no-refine",
        "--smoothing",
        "0.5",
        "--max-iter",
        "7",
        "--tree",
        "most_probable",
        "--seed",
        "3",
    ]
    assert run("fit", table, "-o", out, *options).exit_code == 0
    model = lt.load(out)
    chosen = (model.search, model.refine, model.smoothing, model.tree, model.random_state)
    assert chosen == (False, None, 0.5, "most_probable", 3)
    assert model.max_iter == 7
    assert run("fit", table, "-o", out, "--max-iter", "0").exit_code == 2


def test_fit_hands_on_how_support_is_estimated(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "model.ltree"
    quick = ["--states", "2", "--no-search", "--no-refine"]
    accepted("fit", table, "-o", out, *quick, "--support", "bootstrap", "--resamples", "3")
    report = lt.load(out).diagnostics_
    assert (report.support_method, report.n_resamples) == ("bootstrap", 3)
    accepted("fit", table, "-o", out, *quick, "--support", "model")
    report = lt.load(out).diagnostics_
    assert (report.support_method, report.n_resamples) == ("model", 0)


def test_fit_finds_the_number_of_states_if_it_is_left_out(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[object] = []

    def learn(*_: object, n_states: object, **__: object) -> None:
        given.append(n_states)
        raise KeyboardInterrupt

    monkeypatch.setattr(fit, "learn", learn)
    for options in ([], ["--states", "auto"], ["--states", "16"]):
        run("fit", table, "-o", tmp_path / "tree.json", *options)
    assert given == ["auto", "auto", 16]


def test_fit_says_on_one_line_that_refinement_was_cut_short(table: Path, tmp_path: Path) -> None:
    result = run("fit", table, "-o", tmp_path / "model.ltree", "--max-iter", "1", "--no-search")
    assert result.exit_code == 0
    assert result.output.count("still gaining after 1 steps; raise --max-iter") == 1
    assert result.stderr == ""


def test_fit_keeps_the_tree_alone_where_there_are_no_probabilities(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Bare:
        """What a fit without parameters leaves: a tree, and no `model_`."""

        hidden, min_support = "categorical", 0.5
        tree_ = TREE
        diagnostics_ = lt.LatentTree(2, random_state=0).fit(bits(50)[:, :4]).diagnostics_

    Bare.diagnostics_.support = np.ones(TREE.n_edges)
    monkeypatch.setattr(fit, "learn", lambda *_, **__: Bare)
    out = tmp_path / "tree.ltree"
    result = run("fit", table, "-o", out)
    assert result.exit_code == 0, result.output + result.stderr
    assert "the file holds the tree alone" in result.output
    assert load_tree(out).tree.names == TREE.names
    assert "holds a tree without parameters" in refused("query", out, "a")
    assert "a tree without probabilities" in refused("show", out, "--node", "a")


def test_fit_reads_other_delimiters(tmp_path: Path) -> None:
    path, out = tmp_path / "table.csv", tmp_path / "tree.nwk"
    for mark, option in ((";", ";"), ("\t", "tab")):
        lines = [NAMES, *bits(500).tolist()]
        path.write_text("\n".join(mark.join(map(str, line)) for line in lines))
        assert f"pass --delimiter {option if mark != ';' else repr(mark)}" in refused(
            "fit", path, "-o", out
        )
        assert run("fit", path, "-o", out, "--delimiter", option).exit_code == 0
    assert "--delimiter is 'ab'" in refused("fit", path, "-o", out, "--delimiter", "ab")


def test_fit_writes_newick_and_finds_the_number_of_states(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "tree.nwk"
    result = run("fit", table, "-o", out, "--states", "auto", "--seed", "0")
    assert result.exit_code == 0, result.output + result.stderr
    assert Tree.from_newick(out.read_text()).n_observed == 9


def test_fit_checks_before_it_works(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fit, "learn", lambda *_, **__: pytest.fail("the work has begun"))
    out = tmp_path / "tree.json"
    for states in ("1", "-2", "2.5", "many"):
        line = refused("fit", table, "-o", out, "--states", states)
        assert f"--states is '{states}'; pass 'auto', 'bic' or a whole number from 2 on" in line
    line = refused("fit", table, "-o", out, "--support", "model", "--resamples", "9")
    assert "--resamples is 9, but --support model learns no further trees; leave out" in line
    assert run("fit", table, "-o", out, "--resamples", "0").exit_code == 2
    assert run("fit", table, "-o", out, "--support", "jackknife").exit_code == 2
    assert "end it in .json" in refused("fit", table, "-o", tmp_path / "tree.xml")
    assert "does not exist" in refused("fit", table, "-o", tmp_path / "no" / "tree.json")
    assert "no file" in refused("fit", tmp_path / "none.csv", "-o", out)
    line = refused("fit", table, "-o", out, "--plot", tmp_path / "no" / "tree.png")
    assert "does not exist; create it first" in line
    assert not out.exists()


def test_fit_refuses_a_constant_column_and_drops_it_on_request(tmp_path: Path, table: Path) -> None:
    rows = table.read_text().splitlines()
    path, out = tmp_path / "constant.csv", tmp_path / "tree.json"
    path.write_text("\n".join([rows[0] + ",same"] + [row + ",7" for row in rows[1:]]))
    assert "same" in refused("fit", path, "-o", out)
    result = run("fit", path, "-o", out, "--drop-constant", "--seed", "0")
    assert result.exit_code == 0, result.output + result.stderr
    assert load_tree(out).tree.n_observed == 9


def test_interrupt_leaves_nothing_behind(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr(fit, "learn", interrupted)
    result = run("fit", table, "-o", tmp_path / "tree.json")
    assert (result.exit_code, result.stderr) == (130, "interrupted\n")
    assert sorted(tmp_path.iterdir()) == before
