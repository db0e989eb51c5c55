"""`--json`: one object on stdout, whose keys the help lists."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.commands import NAMES, TREE, accepted, run

import latenttree as lt
from latenttree.cli.commands import JSON_KEYS
from latenttree.cli.json_output import plain
from latenttree.io.treefile import save_tree


def printed(*arguments: str | Path) -> dict[str, Any]:
    """The object that a command prints; all of stdout is one."""
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output + result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    for key in found:
        assert key in JSON_KEYS[str(arguments[0])] + JSON_KEYS["show"], key
    return found


def test_all_commands_that_print_results_have_it() -> None:
    for command in JSON_KEYS:
        assert "--json" in accepted(command, "--help")


def test_fit_and_show(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "model.ltree"
    found = printed("fit", table, "-o", out, "--states", "2", "--threads", "1", "--no-search")
    model = lt.load(out)
    assert found["n_samples"] == 4000
    assert found["model"] == str(out)
    assert found["hidden_states"] == dict.fromkeys(model.tree_.hidden_names, 2)
    assert found["n_parameters"] == model.model_.n_parameters
    assert found["fit"]["explained"] == pytest.approx(model.diagnostics_.fit.explained)  # type: ignore[union-attr]
    assert printed("show", out) == {k: found[k] for k in found if k in printed("show", out)}
    edges = model.edges()
    assert [e["length"] for e in found["edges"]] == edges["length"].tolist()
    assert [e["support"] for e in found["edges"]] == edges["support"].tolist()


def test_show_a_tree_and_a_node(fitted: Path, tmp_path: Path) -> None:
    save_tree(tmp_path / "tree.json", TREE)
    found = printed("show", tmp_path / "tree.json")
    assert found["n_parameters"] is None
    assert {edge["support"] for edge in found["edges"]} == {None}
    model = lt.load(fitted)
    node = printed("show", fitted, "--node", "a0")
    (edge,) = node["neighbors"]
    np.testing.assert_array_equal(
        edge["conditional"]["values"], model.conditional("a0", edge["node"])
    )
    assert node["values"] == edge["conditional"]["rows"] == ["no", "yes"]


def test_topics_and_describe(fitted: Path) -> None:
    model = lt.load(fitted)
    (level,) = printed("topics", fitted, "--level", "3", "--words", "2")["levels"]
    assert [topic["topic"] for topic in level] == [t.name for t in model.topics(2, 3)]
    assert all(len(topic["words"]) == 2 for topic in level)
    found = printed("describe", fitted, "h0", "-n", "4")
    assert [v["name"] for v in found["variables"]] == [
        x.name for x in model.describe("h0").related
    ][:4]
    assert sum(found["shares"]) == pytest.approx(1)


def test_groups(fitted: Path) -> None:
    groups = printed("groups", fitted, "3")["groups"]
    assert sorted(map(sorted, groups)) == [NAMES[:3], NAMES[3:6], NAMES[6:]]


def test_query_and_score(fitted: Path, gaps: Path) -> None:
    model = lt.load(fitted)
    found = printed("query", fitted, "b0", "h0", "--given", "a0=yes")
    assert found["given"] == {"a0": "yes"}
    assert found["log_likelihood"] == pytest.approx(model.score({"a0": "yes"}))
    first = found["answers"][0]
    np.testing.assert_allclose(first["given"], model.predict_proba({"a0": "yes"}, "b0")[0])
    assert first["values"] == ["3", "7"]
    assert printed("query", fitted, "b0")["answers"][0]["given"] is None
    scored = printed("score", fitted, gaps)
    assert scored["n_samples"] == 40
    assert scored["n_parameters"] == model.model_.n_parameters


def test_numbers_that_are_not_finite_are_null() -> None:
    assert plain({"a": [float("inf"), np.float64("nan")], "b": np.bool_(True)}) == {
        "a": [None, None],
        "b": True,
    }
