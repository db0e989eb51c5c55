"""`latenttree score`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tests.cli.commands import (
    as_records,
    bits,
    read_csv,
    refused,
    run,
    write_csv,
)

import latenttree as lt
from latenttree.model.tree_model import TreeModel
from latenttree.tree import Tree


def test_score(fitted: Path, gaps: Path, tmp_path: Path) -> None:
    model, records, out = lt.load(fitted), as_records(gaps), tmp_path / "scores.csv"
    result = run("score", fitted, gaps, "-o", out)
    assert f"mean log-likelihood   {model.score(records):.6g}" in result.output
    assert f"BIC                   {model.bic(records):.8g}" in result.output
    header, rows = read_csv(out)
    assert header == ["log_likelihood"]
    # Nine digits are written.
    np.testing.assert_allclose(
        [float(row[0]) for row in rows], model.score_samples(records), rtol=1e-8
    )


def test_impossible_samples(tmp_path: Path) -> None:
    tree = Tree.build(["a", "b", "c"], [(0, 3), (1, 3), (2, 3)], [1.0] * 3)
    copy = np.eye(2)
    model = lt.LatentTree(2, random_state=0).fit(bits(500)[:, :3])
    model.tree_ = Tree.build(["x0", "x1", "x2"], tree.edges, [1.0] * 3)
    model.model_ = TreeModel(model.tree_, 3, (copy, copy, copy, np.full((2, 1), 0.5)))
    model.diagnostics_.support = np.ones(3)
    path, out = tmp_path / "m.ltree", tmp_path / "o.csv"
    model.save(path)
    new = write_csv(tmp_path / "new.csv", ["x0", "x1", "x2"], [[1, 1, 1], [0, 1, ""]])
    scored = run("score", path, new)
    assert "1 sample of probability zero under the model, the first of them sample 2" in (
        scored.output
    )
    for command in ("transform", "impute"):
        assert "sample 2 has probability zero" in refused(command, path, new, "-o", out)
        assert not out.exists()
    assert "correct it, or leave out" in refused("query", path, "--given", "x0=1,x1=0", "x2")
