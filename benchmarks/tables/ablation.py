"""What sweeps and EM add: errors of a fit with the defaults, and without one of them."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.data.simulated import Balanced
from benchmarks.grids import (
    LABEL,
    N_RUNS,
    Column,
    Grid,
    Row,
    judged,
    largest,
    make_grid,
    mean,
    stage_grid,
    values,
)
from benchmarks.oracle import oracle
from benchmarks.registry import Table
from benchmarks.runs import Run, run_cases
from benchmarks.settings import Choice, Settings
from benchmarks.stages import maximum_near_truth, moments_on, timed_fit, tree_from
from latenttree.evaluation.metrics import (
    parameter_error,
    robinson_foulds,
    split_errors,
    structure_error,
)
from latenttree.tree import Tree

ABOUT = """Balanced 3-ary trees, k = 3, N = 50,000, all edges of information length 0.5. RF and the
paper's structure error of the tree as it comes, and of the one without sweeps from the same
distances. Parameter error is `||A - A_hat Pi||_F`, mean over leaves, as a ratio to the oracle's,
which counts with the hidden states known: of moments alone on the learned tree, and after EM.
Targets: RF 0, moments at most 1.5, after EM at most 1.15. With `--set from_truth=yes` also EM
started at the truth on the true tree: the maximum of the likelihood near it, below which no
refinement can get. Times are of warm fits on all cores."""
K, MOMENTS_TARGET, EM_TARGET = 3, 1.5, 1.15


class Size(NamedTuple):
    """A row, and the seconds to reach for its whole fit on 2 cores."""

    source: Balanced
    seconds: float | None = None

    @property
    def label(self) -> str:
        """Variables, categories, and how they are used."""
        s = self.source
        zipf = ", Zipf" if s.marginal == "zipf" else ""
        return f"p = {s.p}, d = {s.d:,}{f', {s.n_used} in use' if s.n_used else zipf}"


def sizes(quick: bool) -> list[Size]:
    """The rows."""
    n = 20_000 if quick else 50_000
    rows = [
        Size(Balanced(9, 10, n), 1.0),
        Size(Balanced(9, 100, n), 1.5),
        Size(Balanced(9, 1_000, n, n_used=200), 2.0),
        Size(Balanced(9, 1_000, n, marginal="zipf"), 2.0),
        Size(Balanced(81, 10, n)),
        Size(Balanced(81, 100, n), 5.0),
        Size(Balanced(729, 10, n)),
        Size(Balanced(729, 100, n), 40.0),
    ]
    return rows[:3] if quick else rows


def measure(settings: Settings) -> dict[str, Any]:
    """All sizes; with the seconds to reach."""
    cases = sizes(settings.quick)
    run = partial(fit, from_truth=settings.choices["from_truth"])
    rows = run_cases(run, cases, settings, 10)
    goals = {case.label: case.seconds for case in cases}
    return {"rows": [row | {"target": goals[row["label"]]} for row in rows]}


def fit(case: Size, seed: int, from_truth: bool) -> Run:
    """One fit with the defaults; the tree without sweeps and the moments alone beside it."""
    data = case.source.sample(seed)
    X = data.X.astype(np.uint16)
    model, seconds = timed_fit(X, K, seed, keep_distances=True)
    # what LatentTree(sweeps=False) learns
    merged = tree_from(model.distances_, model.tree_.observed_names, sweeps=False)
    alone = copy(model)
    alone.model_ = moments_on(model.tree_, X, K, model.distances_.basis, seed)
    estimates = {"oracle": oracle(data), "moments": alone, "em": model}
    if from_truth:
        estimates["truth"] = maximum_near_truth(data)
    leaf = {name: parameter_error(m, data, per_leaf=True) for name, m in estimates.items()}
    error = {name: float(np.nanmean(found)) for name, found in leaf.items()}
    condition = getattr(model.diagnostics_, "condition", None)
    return {
        "rf": robinson_foulds(data.tree, model.tree_, normalized=True),
        "rf_no_sweeps": robinson_foulds(data.tree, merged, normalized=True),
        "split_errors": split_errors(data.tree, model.tree_)._asdict(),
        "structure_error": structure_error(data.tree, model.tree_),
        "structure_error_no_sweeps": structure_error(data.tree, merged),
        "hidden_length": float(np.median(_hidden_lengths(model.tree_))),
        "n_sweeps": model.diagnostics_.n_sweeps,
        "error": error,
        "ratio": {name: error[name] / error["oracle"] for name in error},
        "worst_leaf": float(np.nanmax(leaf["em"] / leaf["oracle"].mean())),
        "condition": float(np.max(condition)) if condition is not None and len(condition) else None,
        "n_iter": model.n_iter_,
        "seconds": seconds,
        "stages": model.diagnostics_.stage_seconds,
    }


def _hidden_lengths(tree: Tree) -> NDArray[np.float64]:
    """Lengths of the edges between hidden nodes; zero if there are none."""
    lengths = tree.lengths[(tree.edges >= tree.n_observed).all(axis=1)]
    return np.asarray(lengths if len(lengths) else np.zeros(1))


def _judged(key: str, target: float, reduce: Any) -> Any:
    def text(row: Row) -> str | None:
        found = values(row, key)
        return judged(float(reduce(found)), target) if len(found) else None

    return text


STRUCTURE = (
    LABEL,
    N_RUNS,
    Column("RF max", largest("rf", 4)),
    Column("mean", mean("rf", 4)),
    Column("without sweeps: RF max", largest("rf_no_sweeps", 4)),
    Column("mean", mean("rf_no_sweeps", 4)),
    Column("structure error max", largest("structure_error", 4)),
    Column("without sweeps", largest("structure_error_no_sweeps", 4)),
    Column("hidden length", mean("hidden_length")),
    Column("s mean", mean("seconds", 2)),
    Column("max", largest("seconds", 2)),
    Column("to reach", lambda row: None if row["target"] is None else f"{row['target']:g}"),
)
PARAMETERS = (
    LABEL._replace(heading="parameter error / oracle's"),
    Column("oracle", mean("error.oracle", 4)),
    Column("moments mean", _judged("ratio.moments", MOMENTS_TARGET, np.mean)),
    Column("max", _judged("ratio.moments", MOMENTS_TARGET, np.max)),
    Column("EM mean", _judged("ratio.em", EM_TARGET, np.mean)),
    Column("max", _judged("ratio.em", EM_TARGET, np.max)),
    Column("from truth mean", mean("ratio.truth")),
    Column("max", largest("ratio.truth")),
    Column("worst leaf", largest("worst_leaf", 2)),
    Column("steps", mean("n_iter", 0)),
)


def body(record: Mapping[str, Any]) -> list[Grid | str]:
    """Errors and times of the rows, and their stages."""
    rows = record["rows"]
    return [make_grid(rows, STRUCTURE), make_grid(rows, PARAMETERS), stage_grid(rows)]


TABLES = (
    Table(
        name="ablation",
        shows="what sweeps add to the tree and EM to the parameters; ratios to the oracle",
        duration="40 min",
        title="With and without sweeps and EM: balanced trees, k = 3",
        about=ABOUT,
        measure=measure,
        body=body,
        choices={"from_truth": Choice(False, "also EM started at the truth")},
    ),
)
