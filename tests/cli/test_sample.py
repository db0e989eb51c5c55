"""`latenttree sample`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.commands import (
    NAMES,
    read_csv,
    run,
)

import latenttree as lt


def test_sample(fitted: Path, tmp_path: Path) -> None:
    out, again = tmp_path / "X.csv", tmp_path / "Y.csv"
    for path in (out, again):
        assert run("sample", fitted, "-n", "30", "-o", path, "--seed", "5").exit_code == 0
    assert out.read_bytes() == again.read_bytes()
    header, rows = read_csv(out)
    assert header == NAMES
    assert len(rows) == 30
    assert {row[1] for row in rows} == {"blue", "red, dark"}
    assert run("score", fitted, out).exit_code == 0
    assert run("sample", fitted, "-o", out, "-n", "3", "--hidden").exit_code == 0
    assert read_csv(out)[0] == list(lt.load(fitted).tree_.names)
