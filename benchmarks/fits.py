"""Whole fits: the data drawn in one process, fitted in another, compared with the truth."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bounds import Shape, lower_bound
from benchmarks.figures.fits import times_figure
from benchmarks.grids import (
    Column,
    Grid,
    Row,
    make_grid,
    mean_stages,
    mebibytes,
    number,
    seconds,
    stage_grid,
    times,
)
from benchmarks.machine import Peaks, describe_peaks, measure_peaks
from benchmarks.registry import Record, Table
from benchmarks.settings import Settings
from benchmarks.sources import Target, Truth, Work
from benchmarks.timing import in_fresh_process, peak_memory, timed, warm_up
from benchmarks.trees import restricted
from latenttree.estimator import LatentTree
from latenttree.evaluation.metrics import parameter_error, robinson_foulds, structure_error
from latenttree.tree import Tree

SHORT = 15.0
"""Seconds below which a fit is repeated: the first one of a process loads its kernels."""


def fits_table(
    works: Callable[[Settings], list[Work]],
    *,
    name: str,
    shows: str,
    duration: str,
    title: str,
    about: str,
    draw: Callable[[Record], Any] = times_figure,
) -> Table:
    """A table whose rows are whole fits of `works`."""

    def measure_rows(settings: Settings) -> dict[str, Any]:
        return {"rows": measure_all(works(settings), settings)}

    return Table(name, shows, duration, title, about, measure_rows, body=body_of_fits, draw=draw)


def measure_all(works: Iterable[Work], settings: Settings, seeds: int = 1) -> list[dict[str, Any]]:
    """The records of all rows that were asked for; a row that fails says why and stops nothing."""
    chosen = [work for work in works if settings.wants(work.label)]
    if not chosen:
        return []
    in_fresh_process(warm_up)
    peaks = peaks_of(settings)
    return [measure(work, settings, peaks, seeds) for work in chosen]


def peaks_of(settings: Settings) -> Peaks:
    """Measured in a process of its own, whose memory goes with it."""
    found: Peaks = in_fresh_process(measure_peaks, settings.n_jobs, 0.05 if settings.quick else 1.0)
    return found


def measure(work: Work, settings: Settings, peaks: Peaks, seeds: int) -> dict[str, Any]:
    """One row over its seeds: the record of the table."""
    runs: list[dict[str, Any]] = []
    failure = None
    for seed in settings.seed_range(seeds):
        try:
            runs.append(measure_seed(work, seed, settings.n_jobs))
        except (ValueError, MemoryError, BrokenProcessPool) as error:
            failure = f"{type(error).__name__}: {error}"
            break
        settings.say(f"{work.label}, seed {seed}: {_summary(runs[-1])}")
    row = summary(work, runs, peaks, failure)
    if failure:
        settings.say(f"{work.label}: {failure}")
    return row


def _summary(run: dict[str, Any]) -> str:
    parts = [f"{run['seconds']:.2f} s"]
    if run["rf"] is not None:
        parts.append(f"RF {run['rf']:.4f}")
    if run["ratio"] is not None:
        parts.append(f"{run['ratio']:.3f} x the oracle's error")
    return ", ".join([*parts, f"peak {run['peak_bytes'] / 2**20:,.0f} MiB"])


def measure_seed(work: Work, seed: int, n_jobs: int) -> dict[str, Any]:
    """Draw and fit, each in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="latenttree-bench-") as name:
        folder = Path(name)
        in_fresh_process(work.source.draw, folder, seed)
        found: dict[str, Any] = in_fresh_process(fit_drawn, work, folder, seed, n_jobs)
    return {"seed": seed, **found}


def fit_drawn(work: Work, folder: Path, seed: int, n_jobs: int) -> dict[str, Any]:
    """Load, fit, and only then look at the truth: the peak is that of data and fit."""
    data, loading = timed(lambda: work.source.load(folder))
    loaded = peak_memory()
    taken: list[float] = []
    while not taken or (len(taken) < 2 and taken[0] < SHORT):
        model = LatentTree(n_states=work.n_states, random_state=seed, n_jobs=n_jobs, **work.options)
        taken.append(timed(lambda model=model: model.fit(data)).seconds)
    return {
        "seconds": min(taken),
        "seconds_first": taken[0],
        "seconds_loading": loading,
        "stages": dict(model.diagnostics_.stage_seconds),
        "n_iter": int(getattr(model, "n_iter_", 0)),
        "n_rounds": model.diagnostics_.n_rounds,
        "n_hidden": model.tree_.n_hidden,
        "peak_bytes": peak_memory(),
        "peak_bytes_loaded": loaded,
        "shape": work.source.shape(data, work.n_states)._asdict(),
        **errors(model, work.source.truth(folder)),
        **_described(work, model),
    }


def _described(work: Work, model: Any) -> dict[str, Any]:
    """What the source has to say about the fitted model, if it has: neighbourhoods of words."""
    describe = getattr(work.source, "describe", None)
    return {} if describe is None else {"described": describe(model)}


def errors(model: Any, truth: Truth | None) -> dict[str, float | None]:
    """Robinson-Foulds (normalised), the paper's structure error, parameter error, the oracle's."""
    if truth is None:
        names = ("rf", "rf_frequent", "structure_error", "parameter_error", "oracle_error", "ratio")
        return dict.fromkeys(names)
    true, found, oracle = truth.known.tree, model.tree_, truth.oracle_error
    if set(found.observed_names) != set(true.observed_names):  # constant columns are left out
        true = restricted(true, found.observed_names)
    known = set(found.observed_names)
    kept = [name for name in truth.frequent if name in known]
    a, b = (restricted(true, kept), restricted(found, kept)) if kept else (true, found)
    same = true is truth.known.tree
    error = parameter_error(model, truth.known) if same and truth.known.model is not None else None
    return {
        "rf": robinson_foulds(true, found, normalized=True),
        "rf_frequent": robinson_foulds(a, b, normalized=True),
        "n_frequent": len(kept),
        "structure_error": structure_error(true, found),
        "parameter_error": error,
        "oracle_error": oracle,
        "ratio": error / oracle if error is not None and oracle else None,
        **length_bias(true, found),
    }


def length_bias(true: Tree, found: Tree) -> dict[str, float]:
    """Percent by which edges between hidden nodes, and to leaves, are too long on average; nothing
    of trees of different topologies."""
    if not found.same_topology(true):
        return {}
    relative = 100 * (found.lengths / true.lengths - 1)
    hidden = (true.edges >= true.n_observed).all(axis=1)
    parts = {"bias": relative[hidden], "pendant_bias": relative[~hidden]}
    return {name: float(part.mean()) for name, part in parts.items() if len(part)}


# ---- over the seeds ------------------------------------------------------------------------------


def summary(
    work: Work, runs: Sequence[dict[str, Any]], peaks: Peaks, failure: str | None
) -> dict[str, Any]:
    """Means of errors and times, the largest RF and memory, the bound, targets reached."""
    row: dict[str, Any] = {
        "label": work.label,
        "part": work.part,
        "x": work.x,
        "paper": work.paper._asdict(),
        "target": work.target._asdict(),
        "failure": failure,
        "is_refused": work.is_refused,
        "runs": list(runs),
        "peaks": peaks._asdict(),
    }
    if not runs:
        return row | {"seconds": None, "reached": {}, "bound": None, "bound_ratio": None}
    for name in ("seconds", "structure_error", "parameter_error", "oracle_error", "ratio"):
        row[name] = _mean([run[name] for run in runs])
    for name in ("rf", "rf_frequent", "peak_bytes"):
        row[name] = _largest([run[name] for run in runs])
    row["n_frequent"] = runs[0].get("n_frequent", 0)
    row["stages"] = mean_stages([run["stages"] for run in runs])
    bound = lower_bound(Shape(**runs[0]["shape"]), peaks)
    row["bound"] = bound._asdict()
    row["bound_ratio"] = row["seconds"] / bound.seconds if bound.seconds > 0 else None
    row["reached"] = reached(work.target, row)
    row["speed_up_on_paper"] = _ratio(work.paper.seconds, row["seconds"])
    return row


def _ratio(a: float | None, b: float | None) -> float | None:
    return None if a is None or not b else a / b


def _mean(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None and not math.isnan(v)]
    return float(np.mean(known)) if known else None


def _largest(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None and not math.isnan(v)]
    return float(max(known)) if known else None


def reached(target: Target, row: Mapping[str, Any]) -> dict[str, bool]:
    """Which of the targets a row meets; those that it could be judged by."""
    measured = {
        "seconds": row.get("seconds"),
        "rf": row.get("rf"),
        "ratio": row.get("ratio"),
        "memory": row.get("peak_bytes"),
    }
    return {
        name: bool(measured[name] <= goal)
        for name, goal in target._asdict().items()
        if goal is not None and measured[name] is not None
    }


# ---- as text -------------------------------------------------------------------------------------


def _paper_errors(row: Row) -> str | None:
    paper = row["paper"]
    if paper["structure_error"] is None:
        return None
    return f"{paper['structure_error']:g} / {paper['parameter_error']:g}"


def _parameter(row: Row) -> str | None:
    error, ratio = row.get("parameter_error"), row.get("ratio")
    if error is None:
        return None
    return f"{error:.4f}" + ("" if ratio is None else f" ({ratio:.2f} x)")


def _reached(row: Row) -> str | None:
    if row.get("failure"):
        is_expected = row.get("is_refused") and row["failure"].startswith("DetectionLimitError")
        return "yes: refused" if is_expected else "failed"
    found = row.get("reached") or {}
    if not found:
        return None
    missed = [WORDS[name] for name, is_met in found.items() if not is_met]
    return "no: " + ", ".join(missed) if missed else "yes"


WORDS = {"seconds": "time", "rf": "RF", "ratio": "parameters", "memory": "memory"}

COLUMNS = (
    Column("work", lambda row: row["label"]),
    Column("paper: errors", _paper_errors),
    Column("paper, s (64 cores)", lambda row: seconds(row["paper"]["seconds"])),
    Column("structure error", lambda row: number(row.get("structure_error"))),
    Column("RF", lambda row: number(row.get("rf"))),
    Column(
        "RF, frequent",
        lambda row: number(row["rf_frequent"]) if row.get("n_frequent") else None,
    ),
    Column("parameter error (x oracle)", _parameter),
    Column("s", lambda row: seconds(row["seconds"])),
    Column("faster than paper", lambda row: times(row.get("speed_up_on_paper"))),
    Column("to reach, s", lambda row: seconds(row["target"]["seconds"])),
    Column("reached", _reached),
    Column("bound, s", lambda row: seconds(row["bound"]["seconds"]) if row.get("bound") else None),
    Column("x bound", lambda row: times(row.get("bound_ratio"))),
    Column("peak memory", lambda row: mebibytes(row.get("peak_bytes"))),
)


def body_of_fits(record: Mapping[str, Any]) -> list[Grid | str]:
    """Rows of whole fits, their stages, the machine, and why a row has no result."""
    rows = record["rows"]
    peaks = next((row["peaks"] for row in rows if row.get("peaks")), None)
    return [
        make_grid(rows, COLUMNS),
        stage_grid(rows),
        describe_peaks(peaks) if peaks else "",
        *(f"{row['label']}: {row['failure']}" for row in rows if row["failure"]),
    ]
