"""Speed-up by threads: the whole fit, and stage by stage."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latenttree.bench.columns import Grid
from latenttree.bench.machine import in_fresh_process
from latenttree.bench.measure import warm_up
from latenttree.bench.rare_sources import RareCodes
from latenttree.bench.record import make_record
from latenttree.bench.settings import Settings
from latenttree.bench.show import show_grid
from latenttree.bench.simulated import Balanced
from latenttree.bench.works import Work

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console

TITLE = "Speed-up by threads"
ABOUT = """The same fit on 1, 2, 4, ... threads, BLAS limited to as many; runs alternate, so that
what else the machine does falls on all, and the best of each counts. The paper's figure is of
1,083 binary variables (MIMIC2); p = 729, d = 100 is the largest row of its synthetic table. The
results must be the same on any number of threads, and are compared."""
PAPER = {1: 1.0, 8: 7.9, 16: 14.7565, 32: 26.4474, 64: 45.2037}
TARGET_AT_16 = 14.0
REPEATS = 2
LEAST_SHARE = 0.02
"""Stages below this share of the fit on one thread are not shown."""


def run(settings: Settings) -> dict[str, Any]:
    counts = thread_counts(settings.n_jobs)
    in_fresh_process(warm_up)
    rows: list[dict[str, Any]] = []
    for work in (w for w in works(settings.quick) if settings.wants(w.label)):
        with tempfile.TemporaryDirectory(prefix="latenttree-bench-") as name:
            in_fresh_process(work.source.draw, Path(name), 0)
            repeats = settings.n_seeds(REPEATS)
            found = in_fresh_process(alternate, work, Path(name), counts, repeats)
        rows += [{"label": f"{work.label}, {row['threads']} thread(s)", **row} for row in found]
        settings.say(f"{work.label}: " + ", ".join(f"{row['speed_up']:.2f} x" for row in found))
    return make_record("threads", TITLE, ABOUT, settings, rows, paper=_paper())


def _paper() -> list[list[float]]:
    return [[float(n), x] for n, x in PAPER.items()]


def works(quick: bool) -> list[Work]:
    if quick:
        return [Work("p = 27, d = 10", Balanced(27, 10, 3_000), 3)]
    return [
        Work("p = 729, d = 100, N = 50,000", Balanced(729, 100, 50_000), 3),
        Work("1,083 binary, 29,862 patients", RareCodes(1_083, 29_862, 10.5, with_oracle=False), 2),
    ]


def thread_counts(most: int) -> list[int]:
    """1, 2, 4, ... and all."""
    counts = [n for n in (1, 2, 4, 8, 16, 32, 64, 128) if n < most]
    return [*counts, most]


def alternate(
    work: Work, folder: Path, counts: Sequence[int], repeats: int
) -> list[dict[str, Any]]:
    """Best seconds of each stage for each number of threads, and whether results are the same."""
    data = work.source.load(folder)
    runs: dict[int, list[dict[str, float]]] = {n: [] for n in counts}
    marks = set()
    fit_once(work, data, counts[-1])  # kernels are loaded
    for _ in range(repeats):
        for n in counts:
            seconds, mark = fit_once(work, data, n)
            runs[n].append(seconds)
            marks.add(mark)
    best = {n: {s: min(r[s] for r in found) for s in found[0]} for n, found in runs.items()}
    one = best[counts[0]]
    return [
        {
            "work": work.label,
            "threads": n,
            "seconds": found["whole fit"],
            "stages": {s: x for s, x in found.items() if s != "whole fit"},
            "speed_up": one["whole fit"] / found["whole fit"],
            "stage_speed_up": {s: one[s] / x for s, x in found.items() if x > 0},
            "same_result": len(marks) == 1,
        }
        for n, found in best.items()
    ]


def fit_once(work: Work, data: Any, n_jobs: int) -> tuple[dict[str, float], bytes]:
    """Seconds of the stages and of the whole; the tree to the last bit."""
    from threadpoolctl import threadpool_limits

    from latenttree.estimator import LatentTree

    with threadpool_limits(limits=n_jobs, user_api="blas"):
        start = time.perf_counter()
        model = LatentTree(n_states=work.n_states, random_state=0, n_jobs=n_jobs).fit(data)
        whole = time.perf_counter() - start
    stages = dict(model.diagnostics_.stage_seconds)
    mark = model.tree_.edges.tobytes() + model.tree_.lengths.tobytes()
    return {**stages, "whole fit": whole}, mark


# ---- shown ---------------------------------------------------------------------------------------


def heavy_stages(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Stages that count, of the rows on one thread."""
    first = [row for row in rows if row["threads"] == 1]
    names = dict.fromkeys(s for row in first for s in row["stages"])
    return [
        s
        for s in names
        if any(row["stages"].get(s, 0.0) > LEAST_SHARE * row["seconds"] for row in first)
    ]


def grid(record: Mapping[str, Any]) -> Grid:
    """Seconds and speed-ups, the whole and by stage; the paper's beside."""
    rows = record["rows"]
    stages = heavy_stages(rows)
    paper = {int(n): x for n, x in record["paper"]}
    cells = []
    for row in rows:
        known = paper.get(row["threads"])
        cells.append(
            [
                row["label"],
                f"{row['seconds']:.2f}",
                f"{row['speed_up']:.2f} x",
                f"{known:.1f} x" if known else "-",
                "yes" if row["same_result"] else "no: results differ",
                *(_stage_cell(row, s) for s in stages),
            ]
        )
    return Grid(["work", "s", "speed-up", "paper", "same result", *stages], cells)


def _stage_cell(row: Mapping[str, Any], stage: str) -> str:
    if stage not in row["stages"]:
        return "-"
    return f"{row['stages'][stage]:.2f} ({row['stage_speed_up'].get(stage, 1.0):.1f} x)"


def show(record: Mapping[str, Any], console: Console) -> None:
    show_grid(record["title"], grid(record), console)


def draw(record: Mapping[str, Any]) -> Figure:
    from latenttree.bench.figures import threads_figure

    return threads_figure(record)
