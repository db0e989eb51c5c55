"""`latenttree compile`: kernels ahead of the first fit."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from latenttree.cli import app, compile
from latenttree.engine.kernels import kernel_folder


@pytest.mark.parametrize("kind", compile.KINDS)
def test_every_kind_is_fitted_and_asked(kind: str) -> None:
    done = CliRunner().invoke(app, ["compile", kind])
    assert done.exit_code == 0, done.output
    assert str(kernel_folder()) in done.output


def test_kinds_that_are_not_known_are_refused_by_name() -> None:
    done = CliRunner().invoke(app, ["compile", "categories", "wrong"])
    assert done.exit_code == 2
    assert "'wrong'" in done.output
    assert "sparse" in done.output


def test_all_kinds_by_default_each_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    monkeypatch.setattr(compile, "_run", compiled.append)
    assert CliRunner().invoke(app, ["compile"]).exit_code == 0
    assert sorted(compiled) == sorted(compile.KINDS)


@pytest.mark.slow
def test_a_process_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(compile.KINDS, "broken", ("no such kind", 2))
    done = CliRunner().invoke(app, ["compile", "categories", "broken"])
    assert done.exit_code == 2
    assert "broken" in done.output
