"""Density estimation: held-out likelihood of six 0/1 tables, by the number of hidden states."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.data.random_halves import read_bits
from benchmarks.grids import LABEL, Column, mean
from benchmarks.registry import Table
from benchmarks.runs import Run, run_cases
from benchmarks.settings import Settings, data_files
from benchmarks.stages import timed_fit
from latenttree.config import FitConfig
from latenttree.data import as_table
from latenttree.data.distinct_rows import distinct_rows
from latenttree.distances.stage import count_states
from latenttree.distances.stage import measure as measure_distances
from latenttree.model.inference import Evidence
from latenttree.search.growth import grow_shapes
from latenttree.search.stage import tree_model
from latenttree.structure.copies import hidden_chow_liu

ABOUT = """Mean log-likelihood of the published test rows, learned from the published training and
validation rows in one table: a tenth of it is held out to choose the number of states, the shape of
the tree and the number of passes. "Training rows alone" leaves the validation rows out. Columns
that are constant in what is learned from are independent, with one pseudo-sample. "States": those
of the hidden variable that has most. Copies: a hidden copy of every variable joined by the Chow-Liu
tree, with the same EM. Target: the best latent tree that was measured before with as many states,
with plain EM from random starts on the training rows, stopped by the validation rows; of the
default the best one at all. Seconds of the default at most 60."""

FEW, MANY = 16, 64
TARGETS: dict[str, dict[int, float]] = {
    "nltcs": {FEW: -6.00, MANY: -6.00},
    "plants": {FEW: -13.08, MANY: -12.71},
    "jester": {FEW: -52.40, MANY: -52.41},
    "accidents": {FEW: -27.14, MANY: -26.48},
    "dna": {FEW: -79.65, MANY: -79.71},
    "bbc": {FEW: -249.06},
}
SLACK = 0.005
"""Targets were printed with two digits."""


class Density(NamedTuple):
    """A row: a table, its file, and how its hidden states are chosen."""

    name: str
    file: Path
    setting: str

    @property
    def label(self) -> str:
        """All of it."""
        return f"{self.name}, {self.setting}"


ALONE = "default, training rows alone"
SETTINGS = ("default", ALONE, *(f"{k}{s}" for s in (" states", ", copies") for k in (FEW, MANY)))


def measure(settings: Settings) -> dict[str, Any]:
    """All tables with all settings."""
    cases = []
    for name in TARGETS:
        found = data_files(settings, f"debd/{name}.npz")
        if found:
            cases += [Density(name, found[0], setting) for setting in SETTINGS]
    return {"rows": run_cases(fit, cases, settings, 1)}


def fit(case: Density, seed: int) -> Run:
    """One table with one setting."""
    train, test = read_bits(case.file), read_bits(case.file, "test")
    if case.setting != ALONE:
        train = np.concatenate([train, read_bits(case.file, "valid")])
    varied = train.min(axis=0) < train.max(axis=0)
    constant = of_constants(train[:, ~varied], test[:, ~varied])
    train, test = train[:, varied], test[:, varied]
    word, _, kind = case.setting.partition(", ")
    n_states: str | int = "auto" if word == "default" else int(word.split()[0])
    if kind == "copies":
        return {"test": copies(train, test, int(n_states), seed) + constant, "name": case.name}
    model, seconds = timed_fit(train, seed=seed, n_states=n_states)
    p, target = model.tree_.n_observed, target_of(case.name, n_states)
    return ({} if target is None else {"target": target}) | {
        "name": case.name,
        "test": float(model.score(test)) + constant,
        "states": int(model.model_.dims[p:].max(initial=0)),
        "hidden": model.tree_.n_hidden,
        "seconds": seconds,
    }


def target_of(name: str, n_states: int | str) -> float | None:
    """What a row is to reach, where it was measured."""
    known = TARGETS[name]
    return max(known.values()) if isinstance(n_states, str) else known.get(n_states)


def of_constants(train: NDArray[Any], test: NDArray[Any]) -> float:
    """Mean log-likelihood of columns that are constant in the training rows."""
    n = len(train)
    same = np.log((n + 0.5) / (n + 1))
    other = np.log(0.5 / (n + 1))
    return float(np.where(test == train[:1], same, other).sum(axis=1).mean())


def copies(train: NDArray[Any], test: NDArray[Any], n_states: int, seed: int) -> float:
    """Test likelihood of the hidden Chow-Liu tree."""
    config = FitConfig(n_states=n_states, seed=seed)
    table = as_table(train)
    states = count_states(table, config)
    measured = measure_distances(table, states, config)
    assert measured.similarity is not None
    shape = hidden_chow_liu(measured.similarity, table)
    learned = grow_shapes([shape], n_states, distinct_rows(table), states, measured.basis, config)
    assert learned.fitted is not None
    return float(tree_model(learned.fitted).log_likelihood(Evidence(test)).mean())


def _verdict(row: dict[str, Any]) -> str | None:
    run = row["runs"][0]
    if "target" not in run:
        return None
    return "" if run["test"] >= run["target"] - SLACK else f"{run['test'] - run['target']:.2f}"


COLUMNS = (
    LABEL._replace(heading="table, states"),
    Column("test", mean("test", 3)),
    Column("target", mean("target", 2)),
    Column("short by", _verdict),
    Column("hidden", mean("hidden", 0)),
    Column("states", mean("states", 0)),
    Column("s", mean("seconds", 1)),
)


TABLES = (
    Table(
        name="density",
        shows="held-out likelihood of six 0/1 tables at the default, 16 and 64 states",
        duration="20 min",
        title="Density estimation",
        about=ABOUT,
        measure=measure,
        columns=COLUMNS,
    ),
)
