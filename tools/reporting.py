"""Run the tests in some setting, and say in one line how they ended."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path


def run_tests(
    title: str, python: str, arguments: Sequence[str], variables: Mapping[str, str], log: Path
) -> bool:
    """Whether pytest passed; all that it printed is in `log`, its summary on the screen."""
    log.parent.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    with log.open("w") as file:
        call = [python, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
        done = subprocess.run(
            call, env={**os.environ, **variables}, stdout=file, stderr=subprocess.STDOUT
        )
    lines = log.read_text().strip().splitlines() or ["no output"]
    result = lines[-1].strip("= ") if done.returncode == 0 else f"FAILED: {lines[-1].strip('= ')}"
    print(f"{title:28} {result} ({time.monotonic() - begun:.0f} s, {log})", flush=True)
    return done.returncode == 0
