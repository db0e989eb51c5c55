"""Columns that are no variables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from tests.cli.commands import (
    NAMES,
    bits,
    refused,
    run,
)

import latenttree as lt
from latenttree.io.treefile import load_tree


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """The bits, with what real files have beside them."""
    found = pd.DataFrame(bits(), columns=NAMES)
    found.insert(0, "id", [f"p{i}" for i in range(len(found))])
    return found.assign(w=np.arange(len(found)) % 3, **{"first seen": "2020-01-01"})


def test_rows_that_are_numbered(frame: pd.DataFrame, fitted: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "indexed.csv", tmp_path / "tree.json"
    frame[NAMES].to_csv(path)
    for line in (refused("fit", path, "-o", out), refused("score", fitted, path)):
        assert "the first column has no name and numbers the rows" in line
        assert "index=False, or pass --ignore ''" in line
    result = run("fit", path, "-o", out, "--ignore", "", "--seed", "0", "--no-search")
    assert result.exit_code == 0, result.output + result.stderr
    assert load_tree(out).tree.n_observed == 9


def test_columns_that_are_ignored(frame: pd.DataFrame, tmp_path: Path) -> None:
    path, model, out = tmp_path / "t.csv", tmp_path / "model.ltree", tmp_path / "out.csv"
    frame.to_csv(path, index=False)
    aside = ["--ignore", "id", "--ignore", "first seen"]
    assert "--ignore NAME" in refused("fit", path, "-o", model, "--ignore", "first seen")
    line = refused("fit", path, "-o", model, "--ignore", "ID")
    assert "--ignore ID: t.csv has no such column; the columns are 'id'" in line
    options = [*aside, "--weights", "w", "--seed", "0", "--no-search", "--threads", "1"]
    result = run("fit", path, "-o", model, *options)
    assert result.exit_code == 0, result.output + result.stderr
    assert "2,666 samples (weight 3,999) of 9 variables" in result.output
    assert "stage" not in result.output
    assert "read with --weights w --ignore id --ignore 'first seen'" in run("show", model).output
    plain = tmp_path / "plain.csv"
    frame[[*NAMES, "w"]].query("w > 0").to_csv(plain, index=False)
    again = tmp_path / "again.ltree"
    assert run("fit", plain, "-o", again, *options[len(aside) :]).exit_code == 0
    np.testing.assert_array_equal(lt.load(again).tree_.edges, lt.load(model).tree_.edges)

    frame.assign(other=1).to_csv(plain, index=False)
    line = refused("transform", model, plain, "-o", out)
    assert "does not know: 'other'; drop them, or leave them out here: --ignore other" in line
    for options in ([], [*aside, "--ignore", "w"]):
        for command in ("score", "transform", "impute"):
            result = run(command, model, path, "-o", out, *options)
            assert result.exit_code == 0, result.output + result.stderr
    pd.testing.assert_frame_equal(pd.read_csv(out), frame)  # no gaps: as it was
    repeated = frame.loc[frame.index.repeat(frame["w"]), NAMES]
    repeated.to_csv(plain, index=False)
    weighed = run("score", model, path, *aside, "--weights", "w").output.splitlines()
    assert weighed[0] == "samples               4,000 (weight 3,999)"
    assert weighed[1:] == run("score", model, plain).output.splitlines()[1:]
    again_weighed = run("score", model, path).output.splitlines()
    note = "note: read as in training: --weights w --ignore id --ignore 'first seen'"
    assert again_weighed == [note, *weighed]


def test_only_columns_are_ignored(tmp_path: Path, fitted: Path) -> None:
    sparse.save_npz(tmp_path / "m.npz", sparse.csr_array(bits(50)))
    for command, out in (["fit"], tmp_path / "o.json"), (["score", fitted], tmp_path / "o.csv"):
        line = refused(*command, tmp_path / "m.npz", "-o", out, "--ignore", "x")
        assert "--ignore names a column of a .csv" in line
