"""`latenttree query`."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.cli.commands import (
    bits,
    refused,
    rows_of,
    run,
    write_csv,
)

import latenttree as lt


def test_query(fitted: Path) -> None:
    model = lt.load(fitted)
    result = run("query", fitted, "--given", "a0=yes,a1=red, dark,b0=3", "h0", "c1")
    lines = rows_of(result)
    known = {"a0": "yes", "a1": "red, dark", "b0": 3}
    assert f"probability of what is given: {np.exp(model.score(known)):.4g}" in result.output
    assert lines[1] == ["node", "value", "given this", "without"]
    for name, first in (("h0", 2), ("c1", 4)):
        after, before = model.predict_proba(known, name)[0], model.marginal(name)
        labels = model.classes_of(name)
        assert lines[first] == [name, str(labels[0]), f"{after[0]:.4f}", f"{before[0]:.4f}"]
        assert lines[first + 1] == [str(labels[1]), f"{after[1]:.4f}", f"{before[1]:.4f}"]


def test_query_soft_evidence_and_hidden_nodes(fitted: Path) -> None:
    model = lt.load(fitted)
    result = run("query", fitted, "--given", "h1=1", "--given", "a0=yes:0.8/no:0.2", "a1", "a0")
    known = {"h1": 1, "a0": {"yes": 0.8, "no": 0.2}}
    for name in ("a0", "a1"):
        expected = model.predict_proba(known, name)[0, 0]
        assert re.search(rf"{name} +\w+ +{expected:.4f} ", result.output)


def test_query_without_evidence_lists_the_most_probable_values(fitted: Path) -> None:
    lines = rows_of(run("query", fitted, "a0", "--top", "1"))
    high = lt.load(fitted).marginal("a0").max()
    assert lines[0] == ["node", "value", "P"]
    assert lines[1][2] == f"{high:.4f}"
    assert lines[2] == ["1 other", f"{1 - high:.4f}"]


@pytest.mark.parametrize(
    ("given", "asked", "message"),
    [
        ("a0", "b0", "--given 'a0' is not NAME=VALUE"),
        ("zz=1", "b0", "no node 'zz'; it has the variables"),
        ("a0=yes,zz=1", "b0", "no node 'zz'; it has the variables"),
        ("a0=maybe", "b0", "'a0' has the values 'no', 'yes'; use one"),
        ("a0=yes:-1", "b0", "'a0' has the values 'no', 'yes'; use one"),
        ("a0=yes,a0=no", "b0", "--given names 'a0' twice"),
        ("a0=yes", "a0", "'a0' is given ('yes'), so there is nothing to ask"),
        ("a0=yes", "zz", "no node 'zz'"),
        ("a0=yes:0", "b0", "probability zero under the model"),
    ],
)
def test_query_refuses(fitted: Path, given: str, asked: str, message: str) -> None:
    assert message in refused("query", fitted, "--given", given, asked)


def test_names_with_commas_are_found(tmp_path: Path) -> None:
    """Pixels are named "0,3"; a comma ends a value only where a node is named after it."""
    names = [f"{j},{j}" for j in range(9)]
    table, out = write_csv(tmp_path / "t.csv", names, bits().tolist()), tmp_path / "m.ltree"
    assert run("fit", table, "-o", out, "--seed", "0", "--no-search").exit_code == 0
    result = run("query", out, "--given", "0,0=1,1,1=0", "2,2")
    expected = lt.load(out).predict_proba({"0,0": 1, "1,1": 0}, "2,2")[0, 0]
    assert re.search(rf"2,2 +0 +{expected:.4f}", result.output), result.output + result.stderr


def test_columns_with_integers_as_names(tmp_path: Path) -> None:
    """A model of a pandas table whose columns are numbered out of order."""
    rng = np.random.default_rng(0)
    hidden = rng.integers(0, 2, (500, 1))
    X = (hidden ^ (rng.random((500, 5)) < 0.2)) * np.array([1, 2, 3, 4, 5])
    model = lt.LatentTree(random_state=0, search=False, n_jobs=1).fit(
        pd.DataFrame(X, columns=[4, 3, 1, 0, 2])
    )
    model.save(tmp_path / "model.ltree")
    result = run("query", tmp_path / "model.ltree", "--given", "3=2", "4", "1")
    assert result.exit_code == 0, result.output + result.stderr
    for name, label in (("4", 1), ("1", 3)):
        p = model.predict_proba({3: 2}, int(name))[0]
        assert re.search(rf"^ *{name} +0 +{p[0]:.4f}.*\n +{label} +{p[1]:.4f}", result.output, re.M)
    out = tmp_path / "drawn.csv"
    assert run("sample", tmp_path / "model.ltree", "-n", "50", "-o", out).exit_code == 0
    drawn = pd.read_csv(out)
    assert {name: set(drawn[name]) for name in drawn} == {
        name: {0, i + 1} for i, name in enumerate("43102")
    }
