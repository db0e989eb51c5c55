"""Replication: is an edge of stated support s in the tree of the other half with probability s?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from benchmarks.data.random_halves import SETS, random_halves
from benchmarks.grids import Column, Grid, Row, make_grid, mean
from benchmarks.registry import Table
from benchmarks.runs import Run, run_cases
from benchmarks.settings import Choice, Settings, data_files
from benchmarks.stages import timed_fit
from latenttree.evaluation.datasets import make_latent_tree
from latenttree.structure.learn import Structure
from latenttree.structure.resampling import inner_splits, part_splits
from latenttree.tree import Tree

ABOUT = """Every table is cut in two random halves, ten times. The tree of one half states a support
for each inner edge; "replicated" is the share of them whose split the tree of the other half
contains, with nothing contracted there (min_support=0). Splits are those of the part of the tree in
which an edge lies. Parameters are left at their moments (refine=None), which also switches off the
search by likelihood: what is judged is the support of the structure stage's edges. Simulated trees:
balanced and random ones of 27 variables, where "true" is the share of edges that are in the true
tree. "Residual": of pairs from the tree, in units of their noise; up to 1.4 the support is the
posterior. "Support / rest": seconds of the resampling over those of the rest of such a fit. Bins
with at least 50 edges count; the target is a difference of .07 at most."""
BINS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97, 1.0)
ENOUGH, TARGET = 50, 0.07
SIMULATED: dict[str, dict[str, Any]] = {
    "simulated, balanced": {"shape": "balanced", "edge_length": 0.5},
    "simulated, random": {"shape": "random", "arity": 3, "edge_length": (0.15, 1.0)},
}


class Halved(NamedTuple):
    """A row: a table, its files, and how supports are computed."""

    label: str
    files: tuple[Any, ...]
    method: str


def measure(settings: Settings) -> dict[str, Any]:
    """All tables."""
    method = settings.choices["support"]
    cases = [Halved(label, (), method) for label in SIMULATED]
    for name, (files, _, _) in SETS.items():
        found = data_files(settings, *files) if settings.wants(name) else None
        if found:
            cases.append(Halved(name, tuple(found), method))
    return {"rows": run_cases(replicate, cases, settings, 10, quick_seeds=1, in_processes=True)}


def replicate(case: Halved, seed: int) -> Run:
    """One cut of one table."""
    one, other, options, truth = _data(case, seed)
    options = {"refine": None, **options}
    model, seconds = timed_fit(one, seed=seed, support=case.method, **options)
    second, _ = timed_fit(other, seed=seed, support="model", min_support=0.0, **options)
    report = model.diagnostics_
    stated, found = found_in(model.tree_, report.support, second.tree_)
    own = report.stage_seconds.get("resampled support", 0.0)
    return {
        "stated": stated,
        "found": found,
        "true": found_in(model.tree_, report.support, truth)[1] if truth is not None else None,
        "seconds": seconds,
        "residual": report.residual,
        "cost": own / max(seconds - own, 1e-9),
    }


def _data(case: Halved, seed: int) -> tuple[Any, Any, dict[str, Any], Tree | None]:
    if case.label in SIMULATED:
        n = 1000
        data = make_latent_tree(27, n_samples=2 * n, random_state=seed, **SIMULATED[case.label])
        return data.X[:n], data.X[n:], {"n_states": 2}, data.tree
    _, read, options = SETS[case.label]
    return *random_halves(read(*case.files), seed), options, None


def found_in(tree: Tree, support: Any, other: Tree) -> tuple[list[float], list[bool]]:
    """The support of every inner edge, and whether its split is in another tree."""
    stated: list[float] = []
    found: list[bool] = []
    for members, edges, keys in inner_splits(replace(Structure.of_tree(tree), support=support)):
        if len(edges):
            stated += support[edges].tolist()
            found += np.isin(keys, part_splits(other, members)[0]).tolist()
    return stated, found


COLUMNS = (
    Column("data", lambda row: row["label"]),
    Column("edges", lambda row: str(sum(len(run["stated"]) for run in row["runs"]))),
    Column("mean support", lambda row: _mean(row, "stated")),
    Column("replicated", lambda row: _mean(row, "found")),
    Column("residual", mean("residual", 1)),
    Column("support / rest", mean("cost", 2)),
    Column("s", mean("seconds", 1)),
)


def _mean(row: Row, name: str) -> str | None:
    values = [x for run in row["runs"] for x in run[name]]
    return f"{np.mean(values):.3f}" if values else None


def body(record: Mapping[str, Any]) -> list[Grid | str]:
    """Tables one by one, and bins of support over all real ones, and over the simulated ones."""
    rows = record["rows"]
    real = [run for row in rows if row["label"] not in SIMULATED for run in row["runs"]]
    made = [run for row in rows if row["label"] in SIMULATED for run in row["runs"]]
    parts: list[Grid | str] = [make_grid(rows, COLUMNS)]
    if real:
        parts.append(bins_grid(real, "found", "Real tables: found in the other half"))
    if made:
        parts.append(bins_grid(made, "found", "Simulated trees: found in the other half"))
        parts.append(bins_grid(made, "true", "Simulated trees: true"))
    return parts


def bins_grid(runs: list[Run], against: str, title: str) -> Grid:
    """Edges, mean support and share found, by stated support."""
    stated = np.array([x for run in runs for x in run["stated"]])
    found = np.array([x for run in runs for x in run[against]], dtype=float)
    cells = []
    for low, high in pairwise(BINS):
        inside = (stated >= low) & ((stated < high) | (high == BINS[-1]))
        if inside.any():
            said, came = float(stated[inside].mean()), float(found[inside].mean())
            far = inside.sum() >= ENOUGH and abs(said - came) > TARGET
            text = [f"{low:g} to {high:g}", f"{inside.sum():,}", f"{said:.3f}", f"{came:.3f}"]
            cells.append([*text, "off" if far else ""])
    return Grid(["support", "edges", "mean", "found", ""], cells, title)


TABLES = (
    Table(
        name="replication",
        shows="random halves of real tables: is an edge of support s in the other half's tree with "
        "probability s",
        duration="1 h",
        title="Replication: stated support against the other half",
        about=ABOUT,
        measure=measure,
        body=body,
        choices={"support": Choice("auto", "auto, subsample, bootstrap or model")},
    ),
)
