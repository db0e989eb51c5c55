"""Kernels compiled beside a fit, by a child that never outlives it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import latenttree as lt
from latenttree import compilation
from latenttree.compilation import (
    Compiler,
    compile_edges,
    compile_model,
    compile_sweeps,
    done_file,
    end_child,
    example,
    mark_done,
    start_child,
)
from latenttree.config import FitConfig
from latenttree.data import as_table
from latenttree.engine import Progress, kernels

SOURCE = Path(compilation.__file__).parents[1]
KINDS = ("codes", "sparse_binary", "values", "blocks")


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that nothing was compiled into, for this process and its children."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compilation, "kernel_folder", lambda: tmp_path)
    return tmp_path


def table() -> Any:
    return as_table(example("codes", 2)[0])


def gone(pid: int, within: float = 20.0) -> bool:
    """Whether a process ends within some seconds; a zombie has ended."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("kind", KINDS)
def test_examples_are_of_their_kind(kind: str) -> None:
    data, tree = example(kind, 2)
    assert as_table(data).kernels == kind
    assert tree.n_observed == 9


@pytest.mark.parametrize(("kind", "n_states"), [("codes", 3), ("sparse_binary", 2), ("values", 2)])
def test_a_fit_after_the_stages_compiles_nothing_of_theirs(kind: str, n_states: int) -> None:
    """The stages run the kernels that a fit of the kind runs, with arguments of the same types."""
    from latenttree.structure.branch_features import _update
    from latenttree.structure.contraction import _refit
    from latenttree.structure.edge_evidence import _test
    from latenttree.structure.sweep_regions import _propose
    from latenttree.structure.sweeps import _choose

    compile_sweeps(kind, n_states)
    compile_edges(kind, n_states)
    compile_model(kind, n_states)
    kernels_of_structure = (_propose, _choose, _update, _test, _refit)
    known = [len(kernel.signatures) for kernel in kernels_of_structure]
    assert all(known)
    lt.LatentTree(n_states, random_state=0, n_jobs=1).fit(example(kind, n_states)[0])
    assert [len(kernel.signatures) for kernel in kernels_of_structure] == known


def test_one_child_for_what_was_never_compiled(empty: Path) -> None:
    with Compiler(table(), 2, FitConfig(n_jobs=1)) as alone:
        assert not alone.running  # one thread means one process
    with Compiler(table(), 2, FitConfig(n_jobs=2)) as first:
        assert first.running
        assert first.stage == "structure"
    assert not first.running
    mark_done("structure", "codes", 2)
    with Compiler(table(), 2, FitConfig(n_jobs=2)) as second:
        assert second.stage == "model"
    mark_done("model", "codes", 2)
    with Compiler(table(), 2, FitConfig(n_jobs=2)) as third:
        assert not third.running


def test_structures_share_their_kernels() -> None:
    assert done_file("structure", "codes", 2) == done_file("structure", "values", 5)
    assert done_file("model", "codes", 2) != done_file("model", "values", 2)


@pytest.mark.parametrize("executable", [None, "", "/usr/bin/application"])
def test_no_interpreter_no_child(
    empty: Path, monkeypatch: pytest.MonkeyPatch, executable: str | None
) -> None:
    monkeypatch.setattr(sys, "executable", executable)
    assert start_child("structure", "codes", 2) is None


def test_no_folder_no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "kernel_folder", lambda: None)
    assert start_child("structure", "codes", 2) is None


def test_an_exception_ends_the_child(empty: Path) -> None:
    pids = []

    def interrupted() -> None:
        with Compiler(table(), 2, FitConfig(n_jobs=2)) as compiler:
            assert compiler._child is not None
            pids.append(compiler._child.pid)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert gone(pids[0])


def test_a_hung_child_is_ended_after_one_wait(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "compile_model", lambda *_: None)
    monkeypatch.setattr(compilation, "compile_edges", lambda *_: None)
    monkeypatch.setattr(compilation, "LONGEST_WAIT", 0.1)
    with Compiler(table(), 2, FitConfig(n_jobs=2)) as compiler:
        assert compiler._child is not None
        pid = compiler._child.pid
        compiler.wait("structure")
        assert not compiler.running
        assert gone(pid)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").exists(), reason="looks processes up in /proc")
def test_a_killed_fit_takes_its_child_along(tmp_path: Path) -> None:
    code = (
        "from latenttree.compilation import start_child; import time; "
        "print(start_child('structure', 'codes', 2).pid, flush=True); time.sleep(600)"
    )
    environment = {"PYTHONPATH": str(SOURCE), "NUMBA_CACHE_DIR": str(tmp_path)}
    parent = subprocess.Popen(
        [sys.executable, "-c", code], env=os.environ | environment, stdout=subprocess.PIPE
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    assert gone(child)


@pytest.mark.slow
def test_a_child_executes_nothing_from_the_current_folder(
    empty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    for name in ("numpy", "numba", "json"):
        (folder / f"{name}.py").write_text(f"open({str(folder / 'executed')!r}, 'w')")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    child = start_child("no such stage", "codes", 2)
    assert child is not None
    assert child.wait(120) == 1  # having imported the package
    end_child(child)
    assert not (folder / "executed").exists()


def test_compilation_is_announced_once(capsys: pytest.CaptureFixture[str]) -> None:
    @kernels.kernel(cache=False)
    def one_more(x):  # type: ignore[no-untyped-def]
        return x + 1

    one_more.py_func.__module__ = "latenttree.test"
    with Progress().announcing_compilation():
        assert one_more(1) == 2
        assert one_more(1.0) == 2.0
    assert capsys.readouterr().err.count("compiling") == 1
    with Progress().announcing_compilation():
        assert one_more(np.int64(3)) == 4
    assert capsys.readouterr().err == ""
