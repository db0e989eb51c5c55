"""The README's examples run here: python blocks as scripts, pycon as doctests, and commands, with
those of the page on the command line."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from tests import readme
from typer.testing import CliRunner

from latenttree.cli import app


def test_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    readme.run_examples()


def test_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after another in a folder with the files that they name."""
    monkeypatch.chdir(tmp_path)
    readme.write_files()
    commands = readme.commands("latenttree") + readme.page_commands()
    assert len(commands) >= 8
    for command in commands:
        result = CliRunner().invoke(app, command[1:])
        assert result.exit_code == 0, f"{shlex.join(command)}: {result.output}{result.stderr}"


def test_targets_of_make_exist() -> None:
    """`make test` runs this very test, so that targets are looked up and not run."""
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    named = set(re.findall(r"`?\bmake ([a-z]+)\b", code_of(readme.README.read_text("utf-8"))))
    assert named >= {"demo", "test"}
    for target in sorted(named):
        call = ["make", "--dry-run", target]
        done = subprocess.run(call, cwd=readme.ROOT, capture_output=True, text=True)
        assert done.returncode == 0, f"make {target}: {done.stderr}"


def code_of(text: str) -> str:
    """What stands in blocks and between backticks."""
    return "\n".join(re.findall(r"```.*?```|`[^`]+`", text, re.DOTALL))
