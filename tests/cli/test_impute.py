"""`latenttree impute`."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from tests.cli.commands import (
    NAMES,
    accepted,
    as_records,
    bits,
    read_csv,
    run,
    write_csv,
)

import latenttree as lt


def test_impute_changes_nothing_but_gaps(fitted: Path, gaps: Path, tmp_path: Path) -> None:
    out = tmp_path / "filled.csv"
    result = run("impute", fitted, gaps, "-o", out)
    header, rows = read_csv(gaps)
    found, filled = read_csv(out)
    n_gaps = sum(cell == "" for row in rows for cell in row)
    assert f"filled {n_gaps} gaps" in result.output
    assert found == header
    model = lt.load(fitted)
    for record, row, complete in zip(as_records(gaps), rows, filled, strict=True):
        for name, cell, value in zip(header, row, complete, strict=True):
            if cell:
                assert value == cell
            else:
                best = model.predict_proba(record, name)[0].argmax()
                assert value == str(model.classes_of(name)[best])


def test_impute_draws_on_request(fitted: Path, gaps: Path, tmp_path: Path) -> None:
    outs = [tmp_path / f"{i}.csv" for i in range(3)]
    for out, seed in zip(outs, ("1", "1", "2"), strict=True):
        assert run("impute", fitted, gaps, "-o", out, "--method", "sample", "--seed", seed)
    assert outs[0].read_bytes() == outs[1].read_bytes() != outs[2].read_bytes()


def test_columns_dropped_in_training_may_come_or_stay_away(tmp_path: Path) -> None:
    rows, model = bits(1000).tolist(), tmp_path / "m.ltree"
    path = write_csv(tmp_path / "t.csv", [*NAMES, "same"], [[*row, 4] for row in rows])
    result = run("fit", path, "-o", model, "--drop-constant", "--seed", "0", "--no-search")
    assert result.exit_code == 0, result.stderr
    plain = write_csv(tmp_path / "plain.csv", NAMES, rows)
    assert run("score", model, path).output == run("score", model, plain).output
    out = tmp_path / "filled.csv"
    assert run("impute", model, path, "-o", out).exit_code == 0
    assert read_csv(out) == read_csv(path)


def test_models_of_files_fill_dataframes(fitted: Path, gaps: Path, tmp_path: Path) -> None:
    out = tmp_path / "filled.csv"
    accepted("impute", fitted, gaps, "-o", out)
    found = lt.load(fitted).impute(pd.read_csv(gaps))
    assert list(found.columns) == NAMES[::-1]
    pd.testing.assert_frame_equal(found, pd.read_csv(out))
