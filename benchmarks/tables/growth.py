"""Growth: fitted exponents of time in N, p, d and k, beside the paper's complexity."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.data.simulated import Balanced
from benchmarks.exponents import fit_exponent, worse_than_stored
from benchmarks.figures.fits import growth_figure
from benchmarks.grids import Grid
from benchmarks.registry import Table
from benchmarks.settings import Choice, Settings
from benchmarks.timing import in_fresh_process, warm_up
from latenttree.estimator import LatentTree

ABOUT = """Whole fits on one thread, CPU seconds, the best of the repetitions; balanced trees with
edges of 0.5. One size grows, the others stay. The exponent is the slope of log time on log size,
with its standard error. The paper's worst case for all steps together, groups of bounded
size: p^2 (N z + d + k^3) for distances, p (k^3 + d k^2) for decompositions."""
STORED = Path(__file__).with_name("growth_exponents.json")
STAGES = ("distances", "parameters", "refinement", "sweeps")
REPEATS = 2


class Sweep(NamedTuple):
    """One size grows: `sizes` of `name`, the others as in `at`; the paper's exponent."""

    name: str
    sizes: tuple[int, ...]
    at: Mapping[str, int]
    paper: float


SWEEPS = (
    Sweep("N", (6_250, 12_500, 25_000, 50_000, 100_000), {"p": 81, "d": 20, "k": 3}, 1.0),
    Sweep("p", (81, 162, 243, 486, 729), {"N": 10_000, "d": 20, "k": 3}, 2.0),
    Sweep("d", (10, 100, 1_000, 10_000, 100_000), {"p": 9, "N": 50_000, "k": 3}, 1.0),
    Sweep("k", (2, 3, 4, 6, 8), {"p": 27, "N": 20_000, "d": 30}, 3.0),
)
QUICK = (
    Sweep("N", (1_000, 2_000, 4_000), {"p": 9, "d": 5, "k": 3}, 1.0),
    Sweep("p", (9, 12, 18), {"N": 2_000, "d": 5, "k": 3}, 2.0),
)


def measure(settings: Settings) -> dict[str, Any]:
    """All sweeps, their exponents, and those that got worse."""
    in_fresh_process(warm_up)
    rows: list[dict[str, Any]] = []
    exponents: dict[str, dict[str, float]] = {}
    for sweep in (s for s in (QUICK if settings.quick else SWEEPS) if settings.wants(s.name)):
        points = [
            in_fresh_process(fit_size, sweep, size, settings.n_seeds(REPEATS))
            for size in sweep.sizes
        ]
        rows += points
        exponents |= exponents_of(sweep, points)
        whole = exponents[sweep.name]
        settings.say(f"{sweep.name}: exponent {whole['slope']:.2f} ± {whole['error']:.2f}")
    stored = load_stored(settings.quick)
    worse = worse_than_stored(exponents, stored)
    if settings.choices["store"]:
        store(exponents, settings.quick)
    return {
        "rows": rows,
        "exponents": exponents,
        "stored": stored,
        "worse": worse,
        "failed": worse if settings.choices["check"] else [],
    }


def fit_size(sweep: Sweep, size: int, repeats: int) -> dict[str, Any]:
    """CPU seconds of a fit on one thread, the best of the repetitions after one that loads."""
    n = {**sweep.at, sweep.name: size}
    source = Balanced(n["p"], n["d"], n["N"], n["k"], n_used=min(n["d"], 200))
    with tempfile.TemporaryDirectory(prefix="latenttree-bench-") as name:
        source.draw(Path(name), 0)
        X = source.load(Path(name))
    best: dict[str, float] = {}
    with threadpool_limits(limits=1):
        for i in range(repeats + 1):
            model = LatentTree(n_states=n["k"], random_state=0, n_jobs=1)
            start = time.process_time()
            model.fit(X)
            found = {"whole fit": time.process_time() - start, **model.diagnostics_.stage_seconds}
            if i:
                best = {s: min(x, best.get(s, np.inf)) for s, x in found.items()}
    whole = best.pop("whole fit")
    label = f"{sweep.name} = {size:,}"
    return {"label": label, "sweep": sweep.name, "size": size, "seconds": whole, "stages": best}


def exponents_of(sweep: Sweep, points: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Of the whole fit as `N`, of its stages as `N: distances`; the paper's for the whole."""
    sizes = [point["size"] for point in points]
    found = {sweep.name: _as_dict(sizes, [point["seconds"] for point in points])}
    found[sweep.name]["paper"] = sweep.paper
    for stage in STAGES:
        seconds = [point["stages"].get(stage, 0.0) for point in points]
        if min(seconds) > 0:
            found[f"{sweep.name}: {stage}"] = _as_dict(sizes, seconds)
    return found


def _as_dict(sizes: list[int], seconds: list[float]) -> dict[str, float]:
    return fit_exponent(sizes, seconds)._asdict()


# ---- stored exponents ----------------------------------------------------------------------------


def load_stored(quick: bool) -> dict[str, dict[str, float]]:
    """The exponents to compare with; of quick runs there are others. Empty before the first."""
    if not STORED.is_file():
        return {}
    found: dict[str, Any] = json.loads(STORED.read_text())
    return dict(found.get("quick" if quick else "full", {}))


def store(exponents: Mapping[str, Mapping[str, float]], quick: bool) -> None:
    """Only those of whole fits: a stage may grow while the whole gets better."""
    known = json.loads(STORED.read_text()) if STORED.is_file() else {}
    known["quick" if quick else "full"] = {
        name: {"slope": round(e["slope"], 4), "error": round(e["error"], 4)}
        for name, e in exponents.items()
        if ":" not in name
    }
    STORED.write_text(json.dumps(known, indent=1) + "\n")


# ---- shown ---------------------------------------------------------------------------------------


def body(record: Mapping[str, Any]) -> list[Grid | str]:
    """Exponents of whole fits and of their stages, beside the paper's and the stored ones."""
    cells = []
    for name, found in record["exponents"].items():
        if ":" in name:
            continue
        stages = {
            k.split(": ")[1]: v for k, v in record["exponents"].items() if k[:3] == name + ": "
        }
        stored = record["stored"].get(name)
        is_worse = any(line.startswith(name + ":") for line in record["worse"])
        cells.append(
            [
                name,
                _text(found),
                f"{found['paper']:g}",
                _text(stored) if stored else "-",
                ("no: worse" if is_worse else "yes") if stored else "-",
                *(_text(stages[s]) if s in stages else "-" for s in STAGES),
            ]
        )
    heads = ["size", "exponent, whole fit", "paper", "stored", "holds", *STAGES]
    return [Grid(heads, cells), *record["worse"]]


def _text(exponent: Mapping[str, float]) -> str:
    return f"{exponent['slope']:.2f} ± {exponent['error']:.2f}"


TABLES = (
    Table(
        name="growth",
        shows="exponents of time in N, p, d and k, against the paper's and the stored ones",
        duration="10 min",
        title="Growth of time with N, p, d and k",
        about=ABOUT,
        measure=measure,
        body=body,
        draw=growth_figure,
        choices={
            "check": Choice(False, "fail where an exponent got worse"),
            "store": Choice(False, "keep the exponents for later checks"),
        },
    ),
)
