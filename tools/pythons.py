"""Install into every supported Python that this machine has, and run tests there.

python tools/pythons.py 3.11 3.12 3.13 -- [arguments of pytest]
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from find_python import find_python
from reporting import run_tests


def main(versions: list[str], arguments: list[str]) -> bool:
    """Whether the tests passed in every version that was found; there must be one."""
    passed = []
    for version in versions:
        python = find_python(version)
        if python is None:
            print(f"{'Python ' + version:28} not here", flush=True)
            continue
        folder = Path(f".venv-{version}").absolute()
        install(python, folder)
        cache = {"NUMBA_CACHE_DIR": str(folder / "numba")}
        log = Path("out", "pythons", f"{version}.log")
        passed.append(
            run_tests(f"Python {version}", str(folder / "bin/python"), arguments, cache, log)
        )
    return bool(passed) and all(passed)


def install(python: str, folder: Path) -> None:
    """The package and what its tests need, as new as this Python takes them."""
    if not (folder / "bin/python").exists():
        subprocess.run([python, "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin/python"), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, "--disable-pip-version-check", "-e", ".[test]"], check=True)


if __name__ == "__main__":
    split = sys.argv.index("--")
    sys.exit(not main(sys.argv[1:split], sys.argv[split + 1 :]))
