"""Speed-up by threads: the whole fit, and stage by stage; and how far from the lower bound."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks.bounds import lower_bound
from benchmarks.data.rare_sources import RareCodes
from benchmarks.data.simulated import Balanced
from benchmarks.figures.fits import threads_figure
from benchmarks.grids import Grid, seconds, times
from benchmarks.machine import measure_peaks
from benchmarks.registry import Table
from benchmarks.settings import Settings
from benchmarks.sources import Work
from benchmarks.timing import in_fresh_process, timed, warm_up
from latenttree.estimator import LatentTree

ABOUT = """The same fit on 1, 2, 4, ... threads, BLAS limited to as many; runs alternate, so that
what else the machine does falls on all, and the best of each counts. The paper's figure is of
1,083 binary variables (MIMIC2); p = 729, d = 100 is the largest row of its synthetic table. The
results must be the same on any number of threads, and are compared. The bound is that of the
moments at the rates of as many threads; distances and whole fits are given as multiples of it."""
PAPER = {1: 1.0, 8: 7.9, 16: 14.7565, 32: 26.4474, 64: 45.2037}
REPEATS = 2
LEAST_SHARE = 0.02
"""Stages below this share of the fit on one thread are not shown."""


def measure(settings: Settings) -> dict[str, Any]:
    """Rows of all works, a row for each number of threads."""
    counts = thread_counts(settings.n_jobs)
    in_fresh_process(warm_up)
    rows: list[dict[str, Any]] = []
    for work in (w for w in works(settings.quick) if settings.wants(w.label)):
        with tempfile.TemporaryDirectory(prefix="latenttree-bench-") as name:
            in_fresh_process(work.source.draw, Path(name), 0)
            repeats = settings.n_seeds(REPEATS)
            scale = 0.05 if settings.quick else 1.0
            found = in_fresh_process(alternate, work, Path(name), counts, repeats, scale)
        rows += [{"label": f"{work.label}, {row['threads']} thread(s)", **row} for row in found]
        settings.say(f"{work.label}: " + ", ".join(f"{row['speed_up']:.2f} x" for row in found))
    return {"rows": rows, "paper": [[float(n), x] for n, x in PAPER.items()]}


def works(quick: bool) -> list[Work]:
    """Categories and sparse binary variables."""
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
    work: Work, folder: Path, counts: Sequence[int], repeats: int, scale: float
) -> list[dict[str, Any]]:
    """Best seconds of each stage for each number of threads, the bound, and whether results are
    the same."""
    data = work.source.load(folder)
    runs: dict[int, list[dict[str, float]]] = {n: [] for n in counts}
    results = set()
    fit_once(work, data, counts[-1])  # kernels are loaded
    for _ in range(repeats):
        for n in counts:
            taken, result = fit_once(work, data, n)
            runs[n].append(taken)
            results.add(result)
    best = {n: {s: min(r[s] for r in found) for s in found[0]} for n, found in runs.items()}
    shape, one = work.source.shape(data, work.n_states), best[counts[0]]
    bounds = {n: lower_bound(shape, measure_peaks(n, scale)).seconds for n in counts}
    return [
        {
            "work": work.label,
            "threads": n,
            "seconds": found["whole fit"],
            "stages": {s: x for s, x in found.items() if s != "whole fit"},
            "speed_up": one["whole fit"] / found["whole fit"],
            "stage_speed_up": {s: one[s] / x for s, x in found.items() if x > 0},
            "same_result": len(results) == 1,
            "bound": bounds[n],
            "bound_ratio": found["whole fit"] / bounds[n],
            "distances_ratio": found.get("distances", 0.0) / bounds[n],
        }
        for n, found in best.items()
    ]


def fit_once(work: Work, data: Any, n_jobs: int) -> tuple[dict[str, float], bytes]:
    """Seconds of the stages and of the whole; the tree to the last bit."""
    estimator = LatentTree(n_states=work.n_states, random_state=0, n_jobs=n_jobs)
    with threadpool_limits(limits=n_jobs, user_api="blas"):
        model, whole = timed(lambda: estimator.fit(data))
    stages = dict(model.diagnostics_.stage_seconds)
    return {
        **stages,
        "whole fit": whole,
    }, model.tree_.edges.tobytes() + model.tree_.lengths.tobytes()


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


def body(record: Mapping[str, Any]) -> list[Grid | str]:
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
                seconds(row["bound"]) or "-",
                times(row["distances_ratio"]) or "-",
                times(row["bound_ratio"]) or "-",
                *(_stage_cell(row, s) for s in stages),
            ]
        )
    heads = ["work", "s", "speed-up", "paper", "same result", "bound, s", "distances / bound"]
    return [Grid([*heads, "whole / bound", *stages], cells)]


def _stage_cell(row: Mapping[str, Any], stage: str) -> str:
    if stage not in row["stages"]:
        return "-"
    return f"{row['stages'][stage]:.2f} ({row['stage_speed_up'].get(stage, 1.0):.1f} x)"


def draw(record: Mapping[str, Any]) -> Any:
    """Speed-ups over threads."""
    return threads_figure(record, heavy_stages)


TABLES = (
    Table(
        name="threads",
        shows="speed-up by threads, stage by stage, and the lower bound of the moments",
        duration="5 min",
        title="Speed-up by threads",
        about=ABOUT,
        measure=measure,
        body=body,
        draw=draw,
    ),
)
