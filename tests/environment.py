"""A virtual environment that knows nothing of the one that runs the tests."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

LONGEST = 1200
"""Seconds for one command; a first fit compiles, and a cold index takes its time."""


class Environment:
    def __init__(self, folder: Path) -> None:
        """Skips the test where there is no index to install from."""
        self.bin = folder / ("Scripts" if os.name == "nt" else "bin")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "NUMBA"))}
        self.variables = kept | {
            "MPLBACKEND": "Agg",
            "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}",
            "VIRTUAL_ENV": str(folder),
        }
        call = [sys.executable, "-m", "venv", str(folder)]
        subprocess.run(call, check=True, env=self.variables, timeout=LONGEST)
        self.skip_without_index(folder)

    def skip_without_index(self, folder: Path) -> None:
        """Any installation asks the index at least for what builds the package."""
        probe = ["pip", "download", "--no-deps", "--retries", "1", "--timeout", "20", "hatchling"]
        done = self.run(probe, folder)
        if done.returncode:
            pytest.skip(f"no package index to install from: {done.stderr.strip().splitlines()[-1]}")

    def run(self, command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.bin / command[0]), *command[1:]],
            cwd=folder,
            env=self.variables,
            capture_output=True,
            text=True,
            timeout=LONGEST,
        )

    def check(self, command: list[str], folder: Path) -> str:
        """What the command prints; it must end well."""
        done = self.run(command, folder)
        assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}\n{done.stderr}"
        return done.stdout
