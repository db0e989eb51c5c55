"""Kernels compiled ahead, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import latenttree as lt
from latenttree import warming as module
from latenttree.data import as_table
from latenttree.warming import Warming, compile_model, compile_search, compile_structure, warming


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that nothing was compiled into."""
    monkeypatch.setattr(module, "cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "cache"


@pytest.mark.parametrize(("kind", "n_states"), [("codes", 3), ("presence", 2), ("codes", 2)])
def test_what_the_processes_run(kind: str, n_states: int) -> None:
    compile_structure(kind, n_states)
    compile_model(kind, n_states)
    compile_search(kind, n_states)


def test_begins_once_for_each_kind(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[list[str]] = []

    class Process:
        def __init__(self, call: list[str], **_: object) -> None:
            begun.append(call)

        def wait(self, timeout: float | None = None) -> int:
            return 0

        def kill(self) -> None:
            pass

    monkeypatch.setattr(module.subprocess, "Popen", Process)
    table = as_table(lt.datasets.make_latent_tree(9, 2, 2, n_samples=50, random_state=0).X)
    with warming(table, 2, 1) as none:
        assert not none.running
        assert not begun
    with warming(table, 2, 2) as first:
        assert set(first.running) == {"structure", "model", "search"}
        first.wait("structure")
        assert set(first.running) == {"model", "search"}
    assert len(begun) == 3
    assert begun[0][0] == sys.executable
    with warming(table, 2, 2) as second:
        assert not second.running
        assert len(begun) == 3


def test_nowhere_to_write_is_no_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setattr(module, "cache_folder", lambda: blocked / "below")
    table = as_table(lt.datasets.make_latent_tree(9, 2, 2, n_samples=50, random_state=0).X)
    assert not warming(table, 2, 2).running


def test_leaving_ends_the_processes() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    with pytest.raises(KeyboardInterrupt), Warming({"model": process}):
        raise KeyboardInterrupt
    assert process.poll() is not None


def test_kernels_older_than_a_source_are_forgotten(tmp_path: Path) -> None:
    (tmp_path / "__pycache__").mkdir()
    old, new = (tmp_path / "__pycache__" / name for name in ("a.f-1.nbi", "b.g-1.nbi"))
    source = tmp_path / "c.py"
    for path, when in ((old, 100), (source, 200), (new, 300)):
        path.touch()
        os.utime(path, (when, when))
    module.drop_stale(tmp_path)
    assert not old.exists()
    assert new.exists()
