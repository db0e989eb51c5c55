"""Print an interpreter of the first of the given versions that this machine has.

    python tools/find_python.py 3.12 3.11

PYTHON3_12=/path/to/python names one; otherwise `python3.12` and those of pyenv are tried.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path


def find_python(version: str) -> str | None:
    """Path of an interpreter that is of this version when it is asked."""
    named = os.environ.get(f"PYTHON{version.replace('.', '_')}")
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    others = sorted(map(str, pyenv.glob(f"{version}.*/bin/python")))
    candidates = [named] if named else [shutil.which(f"python{version}"), *others]
    return next((path for path in candidates if path and version_of(path) == version), None)


def version_of(python: str) -> str:
    """`3.12`, or nothing where it does not start, as a shim of pyenv may not."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        return subprocess.run([python, "-c", code], capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""


if __name__ == "__main__":
    found = next(filter(None, map(find_python, sys.argv[1:])), None)
    if found is None:
        variable = "PYTHON" + sys.argv[1].replace(".", "_")
        sys.exit(f"no Python {' or '.join(sys.argv[1:])} here; {variable}=/path/to/it names one")
    print(found)
