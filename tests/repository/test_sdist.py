"""The source distribution holds all that its tests import."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from tests.environment import Environment

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_its_tests_can_be_collected(tmp_path: Path) -> None:
    environment = Environment(tmp_path / "venv")
    environment.check(["pip", "install", "--quiet", "hatchling"], tmp_path)
    environment.check(["hatchling", "build", "-t", "sdist", "-d", str(tmp_path)], ROOT)
    with tarfile.open(next(tmp_path.glob("latenttree-*.tar.gz"))) as archive:
        archive.extractall(tmp_path, filter="data")
    folder = next(path for path in tmp_path.glob("latenttree-*") if path.is_dir())
    # The packages of this environment, the sources of that folder: pyproject.toml puts them first.
    call = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    variables = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(call, cwd=folder, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "parameters/test_estimate.py" in done.stdout
