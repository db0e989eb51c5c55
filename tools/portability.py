"""Run the tests as on other machines: kernels for any x86-64, and OpenBLAS for other cores.

    python tools/portability.py [arguments of pytest]

Sums round differently there, so that a test which supposes how they round fails. Every setting has
a cache of kernels of its own, and a log, in out/portability.
"""

from __future__ import annotations

import sys
from pathlib import Path

from reporting import run_tests

OUT = Path("out", "portability").absolute()
SETTINGS: dict[str, dict[str, str]] = {
    "native": {},
    "generic": {"NUMBA_CPU_NAME": "generic"},
    "haswell": {"OPENBLAS_CORETYPE": "Haswell"},
    "zen": {"OPENBLAS_CORETYPE": "Zen"},
}


def main(arguments: list[str]) -> bool:
    """Whether all settings passed."""
    passed = []
    for name, variables in SETTINGS.items():
        title = " ".join(f"{k}={v}" for k, v in variables.items()) or name
        cache = {"NUMBA_CACHE_DIR": str(OUT / name)}
        log = OUT / f"{name}.log"
        passed.append(run_tests(title, sys.executable, arguments, variables | cache, log))
    return all(passed)


if __name__ == "__main__":
    sys.exit(not main(sys.argv[1:]))
