"""The README's examples in an environment installed as the README says, and no more."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from tests import readme
from tests.environment import Environment


@pytest.mark.slow
def test_installation_brings_all_that_the_examples_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One test, so that workers in parallel do not each install an environment."""
    monkeypatch.chdir(tmp_path)
    environment = Environment(tmp_path / "venv")
    commands = readme.commands("pip")
    assert commands, "the README does not say how to install"
    for command in commands:
        environment.check(command, readme.ROOT)
    where = environment.check(
        ["python", "-c", "import latenttree; print(latenttree.__file__)"], tmp_path
    )
    assert Path(where.strip()).is_relative_to(tmp_path)
    environment.check(["python", "-P", readme.__file__], tmp_path)
    readme.write_files()
    for command in [*readme.commands("latenttree"), ["latenttree", "demo"]]:
        environment.check(command, tmp_path)
    for extra in re.findall(r"`(pip install '\.\[.*?)`", readme.README.read_text("utf-8")):
        environment.check([*shlex.split(extra), "--dry-run"], readme.ROOT)
