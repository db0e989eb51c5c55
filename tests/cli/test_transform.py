"""`latenttree transform`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from tests.cli.commands import (
    as_records,
    bits,
    read_csv,
    refused,
    run,
)

import latenttree as lt


@pytest.mark.parametrize("suffix", [".csv", ".npz", ".parquet"])
def test_transform(fitted: Path, gaps: Path, tmp_path: Path, suffix: str) -> None:
    model, out = lt.load(fitted), tmp_path / f"posteriors{suffix}"
    result = run("transform", fitted, gaps, "-o", out)
    assert result.exit_code == 0, result.stderr
    if suffix == ".csv":
        header, rows = read_csv(out)
        values = np.array(rows, dtype=float)
    elif suffix == ".npz":
        with np.load(out) as archive:
            header, values = archive["names"].tolist(), archive["values"]
    else:
        frame = pytest.importorskip("pyarrow.parquet").read_table(out)
        header, values = frame.column_names, np.column_stack([c.to_numpy() for c in frame.columns])
    assert header == model.get_feature_names_out().tolist()
    np.testing.assert_allclose(values, model.transform(as_records(gaps)), rtol=1e-8)  # 9 digits


def test_arrays_and_matrices(tmp_path: Path) -> None:
    """By position; a column that learning left out keeps its place."""
    X = np.column_stack([np.zeros(4000, dtype=int), bits()])
    table, model, out = (tmp_path / name for name in ("X.npz", "m.ltree", "p.csv"))
    for save, content in ((np.savez, X), (sparse.save_npz, sparse.csr_array(X))):
        save(table, content)
        fit = run("fit", table, "-o", model, "--drop-constant", "--seed", "0", "--no-search")
        assert fit.exit_code == 0, fit.stderr
        result = run("transform", model, table, "-o", out)
        assert (result.exit_code, result.stderr) == (0, "")
        expected = lt.load(model).transform({f"x{j}": X[:, j] for j in range(10)})
        np.testing.assert_allclose(np.array(read_csv(out)[1], dtype=float), expected, rtol=1e-8)
    np.savez(table, np.where(X == 1, np.nan, X.astype(float)))
    assert run("impute", model, table, "-o", out).exit_code == 0
    np.savez(table, X[:, 1:])
    assert "pass --vocab FILE" in refused("score", model, table)
