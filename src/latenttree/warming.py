"""The first fit on a machine compiles its kernels: side by side, in processes of their own.

Compiling takes some ten times as long as a small fit and holds Python's global lock, so threads do
not help. While the fit measures distances, further processes compile what the structure, the model
and the search will need, on a tiny table of the same kind, and leave the result in Numba's cache;
each stage waits for its process, and one that no stage needed goes on to its end. A stamp in the
cache says that this was done for these sources.
"""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import TracebackType

import numba
import numpy as np
from numba.core import config

from latenttree.affinity import estimated_affinity
from latenttree.data import Table, as_table
from latenttree.distances import Distances
from latenttree.engine import Progress
from latenttree.fitting import Options
from latenttree.learning import Lesson, learn_model
from latenttree.patterns import as_patterns
from latenttree.regions import Region, cut_out
from latenttree.samples import Samples
from latenttree.simulation import make_latent_tree
from latenttree.small_em import fit_small
from latenttree.structure import Structure, learn_structure

STAGES = {"structure": 0, "model": 5, "search": 10}
"""Processes, and how far they stand back for others: what is needed first goes first."""
LONGEST = 120.0
"""Seconds to wait for a process; then the stage compiles for itself."""


_left: list[subprocess.Popen[bytes]] = []
"""Processes that may outlast the fit that began them."""


class Warming:
    """Processes that compile what a stage needs. Leaving the context by an exception ends those
    still at work."""

    def __init__(self, running: dict[str, subprocess.Popen[bytes]]) -> None:
        self.running = running

    def wait(self, stage: str) -> None:
        """Until the stage's kernels are compiled; at once where nothing was begun."""
        process = self.running.pop(stage, None)
        if process is not None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(LONGEST)

    def __enter__(self) -> Warming:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            _left.extend(self.running.values())
            return
        for process in self.running.values():
            process.kill()
            process.wait()


def warming(table: Table, n_states: int, n_jobs: int) -> Warming:
    """Begin to compile for tables like this one, where that was never done; else nothing.

    One thread means one process: then the stages compile for themselves."""
    drop_stale(Path(__file__).parent)
    kind = table.kind if table.values is None else "values"
    if n_jobs == 1 or kind in ("blocks", "values") or not _first(kind, n_states):
        return Warming({})
    running = {}
    for stage, back in STAGES.items():
        call = (
            f"import os; hasattr(os, 'nice') and os.nice({back}); "
            f"from latenttree.warming import compile_{stage} as f; f({kind!r}, {n_states})"
        )
        with suppress(OSError):
            running[stage] = subprocess.Popen(
                [sys.executable, "-c", call],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
    return Warming(running)


@cache
def drop_stale(package: Path) -> None:
    """Forget kernels beside the sources that are older than any of these: Numba looks at the file
    of a kernel alone, not at those of the kernels it calls, and one compiled for how they were may
    read where nothing is."""
    newest = max(path.stat().st_mtime for path in package.rglob("*.py"))
    for index in package.rglob("*.nbi"):
        with suppress(OSError):
            if index.stat().st_mtime < newest:
                index.unlink()


def _first(kind: str, n_states: int) -> bool:
    """Whether no fit of this kind was begun with these sources; from now on one has."""
    stamp = cache_folder() / f"latenttree-{_sources()}-{kind}-{min(n_states, 3)}.warm"
    try:
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.open("x").close()
    except OSError:  # there already, or nowhere to write
        return False
    return True


def cache_folder() -> Path:
    """Where compiled kernels are kept: beside the sources, unless Numba is told otherwise."""
    elsewhere = str(getattr(config, "CACHE_DIR", ""))
    return Path(elsewhere or Path(__file__).parent / "__pycache__")


def _sources() -> str:
    """A digest of the times of all sources and of what compiles them."""
    digest = hashlib.sha1(usedforsecurity=False)
    digest.update(f"{numba.__version__} {sys.version} {platform.node()}".encode())
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(f"{path.name} {os.stat(path).st_mtime_ns}".encode())
    return digest.hexdigest()[:12]


def compile_structure(kind: str, n_states: int) -> None:
    """Run the structure stage on the distances of a small tree with some noise."""
    p, rank = 16, n_states - 1
    rng = np.random.default_rng(0)
    tree = make_latent_tree(p, 2, 2, n_samples=2, random_state=0).tree
    noise = np.triu(rng.normal(0, 0.02, (p, p)), 1)
    found = np.exp(-rank * tree.path_lengths()[:p, :p] + noise + noise.T).astype(np.float32)
    np.fill_diagonal(found, 1.0)
    errors = np.full((p, p), 0.02, dtype=np.float32)
    tails = np.full((p, p), 3.0, dtype=np.float32)
    whole = estimated_affinity(Distances(found, errors, rank, 2000, tails))
    learn_structure(whole, [f"x{i}" for i in range(p)], n_jobs=1)


def compile_model(kind: str, n_states: int) -> None:
    """Run the parameters and the refinement on a small table of the kind."""
    d = 2 if kind == "presence" else max(n_states, 3)
    drawn = make_latent_tree(9, n_states, d, n_samples=500, random_state=0)
    table = as_table(_sparse(drawn.X) if kind == "presence" else drawn.X)
    lesson = Lesson(Options(max_iter=3), None, 0, 0, 1, Progress())
    learn_model(Structure.of_tree(drawn.tree), table, n_states, None, lesson)


def compile_search(kind: str, n_states: int) -> None:
    """Run a fit of the search; what else it needs the other two compile."""
    drawn = make_latent_tree(
        4, n_states, max(n_states, 2), shape="star", n_samples=50, random_state=0
    )
    assert drawn.model is not None
    table = as_table(_sparse(drawn.X) if kind == "presence" else drawn.X)
    (chunk,) = Samples(table)()
    codes, is_sent = np.ascontiguousarray(chunk.codes.T), np.array([False, False, False, True])
    sent = np.ones((50, 1, n_states), dtype=np.float32)
    branches = as_patterns(codes, sent, np.ones(50), np.array([0, 1, 2, 0]), is_sent)
    region = Region((4,), tuple((4, b) for b in range(4)))
    fit_small(cut_out(drawn.model, region)[1], branches, 1.0, 2, 0.0)


def _sparse(codes: np.ndarray) -> object:
    from scipy.sparse import csr_array

    return csr_array(codes.astype(np.int32))
