"""The line that shows what a long fit does, without being asked."""

from __future__ import annotations

import re
import sys
import time
from typing import Any

import pytest

from latenttree.engine import Progress, progress_line


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal, and little patience."""
    monkeypatch.setattr("latenttree.engine.progress.someone_looks", lambda: True)
    monkeypatch.setattr(progress_line, "PATIENCE", 0.05)
    monkeypatch.setattr(progress_line, "TICK", 0.01)


def test_the_running_stage_shows_and_vanishes(watched: None, capsys: Any) -> None:
    progress = Progress("auto")
    with progress.stage("distances"):
        time.sleep(0.1)
        progress._line.compiling = True  # type: ignore[union-attr]
        time.sleep(0.1)
    with progress.stage("search"):
        time.sleep(0.1)
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = [line.strip() for line in captured.err.split("\r")]
    assert any(re.fullmatch(r"latenttree: 0 s, distances", line) for line in lines)
    assert any("compiling kernels" in line for line in lines)
    assert any("0 s, search" in line for line in lines)
    assert max(map(len, lines)) <= progress_line.WIDTH
    assert lines[-1] == lines[-2] == ""  # erased
    assert list(progress.seconds) == ["distances", "search"]


def test_what_is_quick_shows_nothing(watched: None, capsys: Any) -> None:
    with Progress("auto").stage("quick"):
        pass
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("verbose", [False, "auto"])
def test_nothing_shows_where_nobody_looks(
    verbose: Any, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_line, "PATIENCE", 0.0)
    with Progress(verbose).stage("unseen"):
        time.sleep(0.05)
    assert capsys.readouterr().err == ""


def test_who_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not progress_line.someone_looks()  # pytest takes standard error
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert progress_line.someone_looks()
    monkeypatch.setattr(sys, "stderr", None)
    assert not progress_line.someone_looks()


def test_notebooks_are_known_by_their_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    class Shell:
        kernel = object()

    class IPython:
        get_ipython = staticmethod(Shell)

    monkeypatch.setitem(sys.modules, "IPython", IPython)  # type: ignore[arg-type]
    assert progress_line.someone_looks()
