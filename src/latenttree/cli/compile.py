"""`latenttree compile`: compile ahead what fits and questions need."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import typer

from latenttree.cli.commands import KINDS, Compile
from latenttree.compilation import example
from latenttree.engine import resolve_jobs
from latenttree.engine.kernels import kernel_folder
from latenttree.errors import DataError
from latenttree.estimator import LatentTree


def run(asked: Compile) -> None:
    """Compile in this process for one kind, in others for several."""
    unknown = [kind for kind in asked.kinds or () if kind not in KINDS]
    if unknown:
        remedy = f"choose from {', '.join(KINDS)}"
        raise DataError(f"unknown kind {unknown[0]!r}", remedy, value=unknown[0])
    folder = kernel_folder()
    if folder is None:
        raise DataError("compiled kernels cannot be kept", "set NUMBA_CACHE_DIR to a folder")
    if asked.kinds is not None and len(asked.kinds) == 1:
        _compile(asked.kinds[0])
    else:
        _in_processes(asked.kinds or list(KINDS), resolve_jobs(asked.threads))
    typer.echo(f"kernels are in {folder}")


def _in_processes(kinds: list[str], n_jobs: int) -> None:
    """The first kind alone, since all share its kernels; the others side by side."""
    typer.echo(f"compiling for {', '.join(kinds)}: some minutes")
    with ThreadPoolExecutor(n_jobs) as pool:
        _run(kinds[0])
        list(pool.map(_run, kinds[1:]))


def _run(kind: str) -> None:
    start = time.perf_counter()
    command = [sys.executable, "-P", "-m", "latenttree.cli", "compile", kind]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise DataError(f"compiling for {kind} failed: {done.stderr.strip()[-500:]}")
    typer.echo(f"{kind:<12} {time.perf_counter() - start:6.1f} s")


def _compile(name: str) -> None:
    """Fit a small table, and ask the model everything."""
    kind, n_states = KINDS[name]
    data: Any = example(kind, max(n_states, 2))[0]
    hidden: Any = "gaussian" if name == "gaussian" else "categorical"
    model = LatentTree(n_states, hidden=hidden, random_state=0).fit(data)
    model.score(data)
    model.transform(data)
    model.sample(10)
    if hidden == "categorical":
        model.predict(data)
        model.predict(data, joint=True)
        # numbers have no probabilities, so their model is asked for a hidden variable
        query = model.tree_.names[0 if kind in ("codes", "sparse_binary") else -1]
        model.predict_proba(data, query=query)
