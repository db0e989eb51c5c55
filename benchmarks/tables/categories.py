"""Many categories: bias of the edge lengths, and what is refused below the detection limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from benchmarks.data.simulated import Balanced
from benchmarks.grids import LABEL, N_RUNS, Column, Grid, Row, largest, make_grid, mean, values
from benchmarks.grids import plus_minus as text_of
from benchmarks.registry import Table
from benchmarks.runs import Run, run_cases
from benchmarks.settings import Settings
from benchmarks.timing import timed
from latenttree.distances.detection import DetectionLimitError
from latenttree.estimator import LatentTree
from latenttree.evaluation.metrics import robinson_foulds

ABOUT = """p = 9, k = 3, d up to 100,000. RF, and the bias of the edges between hidden nodes in
percent, mean over those edges and seeds (estimated over true length, less one; only trees of the
right topology have edges to compare). A fit that is refused has no tree, which counts as RF 1. The
last row is below the detection limit and must be refused."""
P, K = 9, 3


class Categories(NamedTuple):
    """A row."""

    label: str
    source: Balanced


def cases(quick: bool) -> list[Categories]:
    """The rows; the last is below the detection limit."""
    below = Categories("20,000 uniform, N = 5,000", Balanced(P, 20_000, 5_000, K, "uniform"))
    if quick:
        n = 20_000
        return [
            Categories("1,000, 200 in use", Balanced(P, 1_000, n, K, n_used=200)),
            Categories("1,000 uniform", Balanced(P, 1_000, n, K, "uniform")),
            Categories("10,000 Zipf", Balanced(P, 10_000, n, K, "zipf")),
            below,
        ]
    n = 50_000
    return [
        *(
            Categories(f"{d:,}, 200 in use", Balanced(P, d, n, K, n_used=200))
            for d in (1_000, 10_000, 100_000)
        ),
        *(Categories(f"{d:,} uniform", Balanced(P, d, n, K, "uniform")) for d in (5_000, 10_000)),
        *(Categories(f"{d:,} Zipf", Balanced(P, d, n, K, "zipf")) for d in (10_000, 100_000)),
        below,
    ]


def measure(settings: Settings) -> dict[str, Any]:
    """All rows."""
    return {"rows": run_cases(fit, cases(settings.quick), settings, 10, quick_seeds=2)}


def fit(case: Categories, seed: int) -> Run:
    """Fit one data set."""
    data = case.source.sample(seed)

    def attempt() -> LatentTree | DetectionLimitError:
        try:
            return LatentTree(n_states=K, random_state=seed).fit(data.X)
        except DetectionLimitError as error:
            return error

    model, seconds = timed(attempt)
    run: Run = {"n_samples": case.source.n_samples, "seconds": seconds, "refused": None}
    if isinstance(model, DetectionLimitError):
        return run | {"rf": 1.0, "refused": str(model)}
    run["rf"] = robinson_foulds(data.tree, model.tree_, normalized=True)
    run["stages"] = model.diagnostics_.stage_seconds
    if model.tree_.same_topology(data.tree):
        hidden = (data.tree.edges >= P).all(axis=1)
        relative = model.tree_.lengths / data.tree.lengths - 1
        run["bias"] = float(100 * relative[hidden].mean())
        run["pendant_bias"] = float(100 * relative[~hidden].mean())
        run["n_rounds"] = model.diagnostics_.n_rounds
    return run


def _percent(key: str) -> Any:
    def text(row: Row) -> str | None:
        found = text_of(values(row, key), 1)
        return None if found is None else f"{found} %"

    return text


COLUMNS = (
    LABEL._replace(heading="categories"),
    Column("N", mean("n_samples", 0)),
    N_RUNS,
    Column("RF max", largest("rf")),
    Column("mean", mean("rf")),
    Column("refused", lambda row: str(sum(run["refused"] is not None for run in row["runs"]))),
    Column("bias of hidden edges", _percent("bias")),
    Column("of pendant edges", _percent("pendant_bias")),
    Column("rounds", mean("n_rounds", 1)),
    Column("s mean", mean("seconds", 2)),
)


def body(record: Mapping[str, Any]) -> list[Grid | str]:
    """The rows, and what a refusal says."""
    rows = record["rows"]
    texts = dict.fromkeys(run["refused"] for row in rows for run in row["runs"] if run["refused"])
    return [make_grid(rows, COLUMNS), *(f"Refused: {text}" for text in list(texts)[:1])]


TABLES = (
    Table(
        name="categories",
        shows="up to 100,000 categories: RF, bias of lengths, refusals below the detection limit",
        duration="10 min",
        title="Many categories: bias of edge lengths, p = 9, k = 3",
        about=ABOUT,
        measure=measure,
        body=body,
    ),
)
