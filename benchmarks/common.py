"""What the runners share: options, paths, machine, tables, peak memory, fresh processes."""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table as RichTable

import latenttree as lt
from latenttree.config import FitConfig
from latenttree.distances.estimate import Distances
from latenttree.distances.similarity import estimated_similarity
from latenttree.parameters.moment_start import moment_start
from latenttree.refinement.stage import Fitted, refine_fully
from latenttree.structure.learn import structure_of_similarities

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))  # tests.reference has the random trees

# Wide enough for the largest table when the output goes to a file.
console = Console(width=None if sys.stdout.isatty() else 160, highlight=False)


def options(description: str | None, seeds: int) -> argparse.ArgumentParser:
    """The options that every runner has."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=None, help=f"repetitions (default {seeds})")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "benchmarks", metavar="DIR")
    parser.set_defaults(full_seeds=seeds)
    return parser


def n_seeds(args: argparse.Namespace, quick: int = 2) -> int:
    """Repetitions: what was asked for, else the default of the full or the quick run."""
    if args.seeds is not None:
        return int(args.seeds)
    return quick if args.quick else int(args.full_seeds)


def data_file(relative: str) -> Path | None:
    """A file of the shared data, or None after saying that it is not there."""
    path = DATA / relative
    if path.is_file():
        return path
    console.print(f"[yellow]skipped[/]: no {path}; put the data there to run this benchmark")
    return None


def source_hash() -> str:
    """A digest of the package's source, so that results of different code are never mixed."""
    digest = hashlib.sha1(usedforsecurity=False)
    for path in sorted((ROOT / "src" / "latenttree").rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def environment() -> dict[str, Any]:
    """Versions and machine, for the record."""
    packages = ["latenttree", "numpy", "scipy", "scikit-learn", "numba", "rich"]
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "commit": _commit(),
        "source": source_hash(),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in packages},
        "platform": platform.platform(),
        "cpu": _from_file("/proc/cpuinfo", r"model name\s*:\s*(.+)"),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "memory": _from_file("/proc/meminfo", r"MemTotal:\s*(.+)"),
        "load_average": os.getloadavg() if hasattr(os, "getloadavg") else None,
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit() -> str | None:
    found = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    )
    return found.stdout.strip() or None


def _from_file(path: str, pattern: str) -> str | None:
    """First match of a pattern in a file of /proc, None on other systems."""
    try:
        match = re.search(pattern, Path(path).read_text())
    except OSError:
        return None
    return match.group(1).strip() if match else None


def save(name: str, args: argparse.Namespace, results: Any) -> Path:
    """Write results with the environment as `DIR/NAME.json` (`NAME_quick.json` after --quick)."""
    args.out.mkdir(parents=True, exist_ok=True)
    path: Path = args.out / f"{name}{'_quick' if args.quick else ''}.json"
    record = {
        "benchmark": name,
        "environment": environment(),
        "options": {k: str(v) if isinstance(v, Path) else v for k, v in vars(args).items()},
        "results": results,
    }
    path.write_text(json.dumps(record, indent=1, default=_plain) + "\n")
    console.print(f"results: {path}")
    return path


def _plain(value: Any) -> Any:
    """NumPy values as JSON knows them."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"cannot write {type(value).__name__} as JSON")


def table(title: str, columns: str) -> RichTable:
    """An empty table; columns are cut at "|", the first goes to the left, numbers to the right."""
    made = RichTable(title=title, title_justify="left", min_width=min(len(title) + 1, 150))
    for i, column in enumerate(columns.split("|")):
        made.add_column(column, justify="left" if i == 0 else "right")
    return made


def stage_table(title: str, stages: dict[str, float]) -> RichTable:
    """Seconds of every stage, and their sum."""
    made = table(title, "stage|s")
    for stage, seconds in stages.items():
        made.add_row(stage, f"{seconds:.2f}")
    made.add_section()
    made.add_row("total", f"{sum(stages.values()):.2f}")
    return made


def mean_stages(runs: Sequence[dict[str, float]]) -> dict[str, float]:
    """Mean seconds of each stage over runs."""
    names = dict.fromkeys(stage for run in runs for stage in run)
    return {stage: float(np.mean([run.get(stage, 0.0) for run in runs])) for stage in names}


def mean_and_error(values: Sequence[float] | NDArray[np.float64]) -> tuple[float, float]:
    """Mean and its standard error; the error is NaN where there is one value."""
    x = np.asarray(values, dtype=np.float64)
    error = float(x.std(ddof=1) / np.sqrt(len(x))) if len(x) > 1 else float("nan")
    return float(x.mean()), error


def learn(
    found: Distances, names: tuple[str, ...], *, sweeps: bool = True, n_jobs: int = 1
) -> lt.Tree:
    """Estimated distances to a tree, as `LatentTree` does it, so that distances can be reused."""
    return structure_of_similarities(
        estimated_similarity(found), names, sweeps=sweeps, n_jobs=n_jobs
    ).tree


def warm_up(n_states: int = 3, n_categories: int = 10) -> None:
    """Compile and load the kernels, so that the first timed fit does not pay for it."""
    for d in (n_states, n_categories):
        data = lt.datasets.make_latent_tree(9, n_states, d, n_samples=5_000, random_state=0)
        lt.LatentTree(n_states=n_states, random_state=0).fit(data.X.astype(np.uint8))


def peak_memory() -> int:
    """Largest resident memory of this process so far, in bytes.

    Linux: VmHWM, which `exec` resets; `ru_maxrss` would carry over what the parent held when it
    started this process.
    """
    text = _from_file("/proc/self/status", r"VmHWM:\s*(\d+) kB")
    if text:
        return int(text) * 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else peak * 1024)


def in_fresh_process(work: Callable[..., Any], *arguments: Any) -> Any:
    """`work(*arguments)` in a new interpreter, whose memory is its own from the start."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=spawn) as pool:
        return pool.submit(work, *arguments).result()


def mib(n_bytes: float) -> str:
    """Bytes as text."""
    return f"{n_bytes / 2**20:,.0f} MiB"


def fit_tree(tree: lt.Tree, table: Any, n_states: int, basis: Any = None, **options: Any) -> Fitted:
    """The model of a given tree: moments, then EM; `options` as those of `FitConfig`."""
    config = FitConfig(**options)
    return refine_fully(moment_start(tree, table, n_states, basis, config), table, config)
