"""Help, and how commands end."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from tests.cli.commands import (
    TREE,
    accepted,
    run,
)
from typer import Exit

from latenttree import __version__
from latenttree.cli import exits
from latenttree.cli.commands import COMMANDS
from latenttree.io.treefile import save_tree


def test_help_names_the_commands() -> None:
    result = run("--help")
    assert result.exit_code == 0
    for command in ["demo", "fit", "show", "query", "score", "transform", "impute", "sample"]:
        assert command in result.output
        assert run(command, "--help").exit_code == 0


def test_version() -> None:
    assert run("--version").output == f"latenttree {__version__}\n"


def test_unknown_command_is_a_usage_error() -> None:
    assert run("learn").exit_code == 2


def test_long_errors_and_warnings_take_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> None:
        with exits.clean_exit():
            warnings.warn("first\n second", stacklevel=1)
            raise ValueError("what\n  and why")

    with pytest.raises(Exit) as caught:
        work()
    assert caught.value.exit_code == 2
    assert capsys.readouterr().err == "warning: first second\nerror: what and why\n"


def test_installed_command_and_closed_pipe(tmp_path: Path) -> None:
    save_tree(tmp_path / "tree.json", TREE)
    command = f"{sys.executable} -m latenttree.cli show {tmp_path / 'tree.json'}"
    done = subprocess.run(f"{command} | head -1", shell=True, capture_output=True, text=True)
    assert "4 observed variables" in done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("typed", "offered"), [("to", "topics"), ("fit --st", "--states")])
def test_shell_completion(typed: str, offered: str) -> None:
    words = f"latenttree {typed}"
    setting = {
        "_LATENTTREE_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    code = "import sys; sys.argv[0] = 'latenttree'; from latenttree.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | setting, capture_output=True, text=True
    )
    assert offered in done.stdout.split()


def test_every_command_shows_an_example() -> None:
    for options in COMMANDS:
        name = options.__name__.lower()
        assert f"Example: latenttree {name}" in accepted(name, "--help")
