"""`latenttree topics`, `describe`, `groups`, `name` and `export`."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from tests.cli.commands import NAMES, TREE, accepted, read_csv, refused

import latenttree as lt
from latenttree.interpretation.topics import LINES, Topic, Topics
from latenttree.io.exports import EXPORTS
from latenttree.io.treefile import save_tree


def test_topics(fitted: Path) -> None:
    model = lt.load(fitted)
    assert accepted("topics", fitted, "--level", "3", "--words", "3") == f"{model.topics(3, 3)}\n"
    text = accepted("topics", fitted, "--level", "1", "--level", "3")
    assert text == f"{model.topics(level=(1, 3))}\n"


def test_finer_levels_are_asked_for_by_option() -> None:
    topics = [Topic(f"h{i}", "h0", ("x",), (1.0,), (1,), 0.5, 1) for i in range(LINES)]
    found = Topics((tuple(topics[:1]), tuple(topics)))
    text = found.text("--level {}")
    assert text.splitlines()[1:] == [f"({LINES} in more detail: --level {LINES})"]


def test_describe(fitted: Path) -> None:
    assert accepted("describe", fitted, "h0", "-n", "3") == f"{lt.load(fitted).describe('h0', 3)}\n"
    assert "no node 'zz'" in refused("describe", fitted, "zz")


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".xlsx"])
def test_groups(fitted: Path, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"groups{suffix}"
    output = accepted("groups", fitted, "3", "-o", out)
    assert f"3 groups: {out}" in output
    assert "a0  a1  a2" in output
    found = {
        ".csv": pd.read_csv,
        ".tsv": pd.read_table,
        ".parquet": pd.read_parquet,
        ".xlsx": pd.read_excel,
    }[suffix](out)
    expected = lt.load(fitted).variable_groups(3)
    assert found["variable"].tolist() == NAMES
    assert found["group"].tolist() == expected.tolist()


def test_groups_of_a_size(fitted: Path) -> None:
    assert "no more than 3 groups of this size" in accepted(
        "groups", fitted, "5", "--min-size", "3"
    )
    assert "--min-size 10; give a whole number" in refused(
        "groups", fitted, "2", "--min-size", "10"
    )


def test_name(fitted: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.ltree"
    model.write_bytes(fitted.read_bytes())
    assert "h1 is 'sports'" in accepted("name", model, "h1", "sports")
    assert "sports, hidden" in accepted("describe", model, "sports")
    out = tmp_path / "named.ltree"
    accepted("name", model, "-o", out)
    assert lt.load(out).tree_.hidden_names == lt.load(fitted).name_hidden().tree_.hidden_names
    assert "sports" in lt.load(model).tree_.names
    assert lt.load(model).get_params() == lt.load(fitted).get_params()
    assert "'h0' has no new name; write it behind" in refused("name", model, "h0")
    assert "belongs to another node" in refused("name", model, "h0", "a0")


@pytest.mark.parametrize("suffix", EXPORTS)
def test_export(fitted: Path, tmp_path: Path, suffix: str) -> None:
    output = accepted("export", fitted, "-o", tmp_path / f"m{suffix}")
    (tmp_path / "python").mkdir()
    for same in lt.load(fitted).export(tmp_path / "python" / f"m{suffix}"):
        path = tmp_path / same.name
        assert f"written: {path}" in output
        if suffix not in (".xlsx", ".gexf"):  # which hold the time or the day
            assert path.read_bytes() == same.read_bytes()


def test_export_tables(fitted: Path, tmp_path: Path) -> None:
    for suffix in (".csv", ".tsv"):
        accepted("export", fitted, "-o", tmp_path / f"edges{suffix}")
    accepted("export", fitted, "-o", tmp_path / "edges.xlsx")
    header, rows = read_csv(tmp_path / "edges.csv")
    assert header == ["node_a", "node_b", "length", "sign", "support"]
    assert len(rows) == lt.load(fitted).tree_.n_edges
    sheets = pd.read_excel(tmp_path / "edges.xlsx", sheet_name=None)
    edges = pd.read_table(tmp_path / "edges.tsv")  # Excel has no other numbers than floats
    pd.testing.assert_frame_equal(sheets["edges"], edges, check_dtype=False)
    conditionals = pd.read_csv(tmp_path / "edges.conditionals.csv")
    pd.testing.assert_frame_equal(sheets["conditionals"], conditionals)


def test_export_a_tree(tmp_path: Path) -> None:
    save_tree(tmp_path / "tree.json", TREE)
    accepted("export", tmp_path / "tree.json", "-o", tmp_path / "tree.graphml")
    line = refused("export", tmp_path / "tree.json", "-o", tmp_path / "tree.bif")
    assert "has no probabilities" in line
    assert "end it in one of" in refused("export", tmp_path / "tree.json", "-o", tmp_path / "x.doc")
    line = refused("export", tmp_path / "tree.json", "-o", tmp_path / "tree.json")
    assert "is the file that is read" in line
