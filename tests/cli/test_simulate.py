"""`latenttree simulate`, and fixed seeds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.cli.commands import accepted, refused, run

import latenttree as lt
from latenttree.io.treefile import load_tree


def test_simulate(tmp_path: Path) -> None:
    out, again = tmp_path / "drawn.csv", tmp_path / "again.csv"
    for path in (out, again):
        accepted("simulate", "-o", path, "--variables", "6", "-n", "50", "--with-hidden")
    assert out.read_bytes() == again.read_bytes()
    data = lt.datasets.make_latent_tree(6, n_samples=50, random_state=0)
    tree = load_tree(tmp_path / "drawn.tree.json").tree
    assert tree == data.tree
    frame = pd.read_csv(out)
    assert tuple(frame.columns) == data.tree.names
    np.testing.assert_array_equal(frame, np.hstack([data.X, data.hidden]))


@pytest.mark.parametrize("suffix", [".parquet", ".xlsx", ".tsv"])
def test_simulate_gaps_and_families(tmp_path: Path, suffix: str) -> None:
    out, tree = tmp_path / f"drawn{suffix}", tmp_path / "true.nwk"
    families = ["--family", "gaussian", "--family", "poisson", "--family", "categorical"]
    options = [*families, "--missing", "0.2", "-n", "40", "--tree", tree]
    accepted("simulate", "-o", out, *options)
    read = {".parquet": pd.read_parquet, ".xlsx": pd.read_excel, ".tsv": pd.read_table}[suffix]
    frame = read(out)
    assert frame.shape == (40, 9)
    assert 0.1 < frame.isna().to_numpy().mean() < 0.3
    assert (frame["x1"].dropna() % 1 == 0).all()
    assert load_tree(tree).tree.n_observed == 9


def test_a_gaussian_tree(tmp_path: Path) -> None:
    out = tmp_path / "drawn.csv"
    accepted("simulate", "-o", out, "--hidden", "gaussian", "--with-hidden")
    frame, tree = pd.read_csv(out), load_tree(tmp_path / "drawn.tree.json").tree
    assert tuple(frame.columns) == tree.names
    line = refused("simulate", "-o", out, "--hidden", "gaussian", "--states", "3")
    assert "have 1 dimension here; leave it out" in line


def test_what_cannot_be_simulated(tmp_path: Path) -> None:
    out = ["-o", tmp_path / "x.csv"]
    assert "--family multihot; choose of" in refused("simulate", *out, "--family", "multihot")
    assert "would be a model" in refused("simulate", *out, "--tree", tmp_path / "t.ltree")
    assert "--missing" in refused("simulate", *out, "--missing", "1")
    assert run("simulate", *out, "--shape", "ring").exit_code == 2


def test_four_fits_without_a_seed_give_one_model(tmp_path: Path) -> None:
    table = tmp_path / "drawn.csv"
    accepted("simulate", "-o", table, "--variables", "8", "-n", "300", "--length", "0.9")
    found = set()
    for i in range(4):
        out = tmp_path / f"m{i}.ltree"
        accepted("fit", table, "-o", out, "--threads", str(1 + i % 2))
        accepted("export", out, "-o", tmp_path / "m.json")
        found.add((tmp_path / "m.json").read_bytes())
    assert len(found) == 1
