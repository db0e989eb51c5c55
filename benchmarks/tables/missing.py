"""Missing values: RF, parameters, and how well gaps are filled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from benchmarks.grids import LABEL, N_RUNS, Column, judged, largest, mean, values
from benchmarks.oracle import oracle
from benchmarks.registry import Table
from benchmarks.runs import Run, run_cases
from benchmarks.settings import Choice, Settings
from benchmarks.stages import timed_fit
from latenttree.data import Table as DataTable
from latenttree.data import as_table
from latenttree.engine import resolve_jobs
from latenttree.evaluation.datasets import LatentTreeData, make_latent_tree
from latenttree.evaluation.metrics import parameter_error, robinson_foulds
from latenttree.model.samples import Chunk, evidence_of
from latenttree.model.tree_model import TreeModel

ABOUT = """30% of all entries are taken out, each by itself. Balanced 3-ary tree, p = 81,
N = 50,000, k = 3, edges of information length 0.5: categories (d = 10), numbers, and a mixed tree.
Scores: RF (target 0); parameter error as a ratio to that of the oracle, which sees the same gaps
and the hidden states; mean log-loss `-log P(x | what is known of its sample)` of the missing values
under the fitted model as a ratio to the true model's (target 1.02). The log-density of numbers has
no zero, so for them the difference is the measure, in nats. "Marginal" is the loss of a model that
knows the frequencies only. The default is three seeds; the claim is for `--seeds 10`."""
K, SHARE, TARGET = 3, 0.3, 1.02
N_JUDGED = 10_000
"""Samples whose gaps are judged: 240,000 values at p = 81."""

KINDS: dict[str, dict[str, Any]] = {
    "categorical": {"n_categories": 10},
    "gaussian": {"family": "gaussian"},
    "mixed": {"family": "mixed", "n_categories": 6, "dim": 6},
}
Gaps = NDArray[np.bool_]


class WithGaps(NamedTuple):
    """A row."""

    label: str
    n_vars: int
    n_samples: int


def measure(settings: Settings) -> dict[str, Any]:
    """All kinds of data."""
    n_samples = 20_000 if settings.quick else 50_000
    cases = [WithGaps(label, settings.choices["n_vars"], n_samples) for label in KINDS]
    return {"rows": run_cases(fit, cases, settings, 3)}


def simulate(case: WithGaps, seed: int) -> tuple[LatentTreeData, Any, Gaps]:
    """Data without gaps, the samples with gaps, and where those are, `(n, p)`."""
    data = make_latent_tree(
        case.n_vars, K, edge_length=0.5, n_samples=case.n_samples, random_state=seed,
        **KINDS[case.label],
    )  # fmt: skip
    gaps = np.random.default_rng([seed, 1]).random((case.n_samples, case.n_vars)) < SHARE
    if not isinstance(data.X, dict):
        return data, np.where(gaps, np.nan, data.X), gaps
    X = {}
    for v, (name, x) in enumerate(data.X.items()):
        X[name] = np.where(gaps[:, v] if x.ndim == 1 else gaps[:, v, None], np.nan, x)
    return data, X, gaps


def fit(case: WithGaps, seed: int) -> Run:
    """One data set."""
    data, X, gaps = simulate(case, seed)
    model, seconds = timed_fit(X, K, seed, family=data.family)
    full, seen = (as_table(x, family=data.family) for x in (data.X, X))
    n, fitted = min(N_JUDGED, case.n_samples), model.model_
    assert isinstance(fitted, TreeModel)
    losses = {
        "ours": log_losses(fitted, seen, full, gaps, n),
        "truth": log_losses(data.model, seen, full, gaps, n),
        "marginal": log_losses(data.model, seen, full, gaps, n, use=False),
    }
    loss = {name: float(found.mean()) for name, found in losses.items()}
    counted = oracle(replace(data, X=X))
    errors = [float(parameter_error(m, data)) for m in (counted, model)]
    difference = losses["ours"] - losses["truth"]
    return {
        "rf": robinson_foulds(data.tree, model.tree_),
        "loss": loss,
        "ratio": loss["ours"] / loss["truth"],
        "excess": loss["ours"] - loss["truth"],
        "excess_error": float(difference.std() / np.sqrt(len(difference))),
        "parameter_ratio": errors[1] / errors[0],
        "seconds": seconds,
        "stages": model.diagnostics_.stage_seconds,
    }


def log_losses(
    model: TreeModel, seen: DataTable, full: DataTable, gaps: Gaps, n: int, use: bool = True
) -> NDArray[np.float64]:
    """`-log P(x | what is known of its sample)` of every missing value of the first n samples;
    `-log P(x)` if what is known is not used."""
    p = model.tree.n_observed
    nodes = [int(model.parents[v]) if v in model.emissions else v for v in range(p)]
    asked = sorted(set(nodes))
    chunk, true = seen.chunk(0, n), full.chunk(0, n)
    nothing = Chunk(np.full((n, p), -1, dtype=np.int32))
    evidence = evidence_of(chunk if use else nothing, model)
    answer = model.posteriors(evidence, asked, resolve_jobs(None))
    posterior = dict(zip(asked, answer.values, strict=True))
    parts = []
    for v, node in enumerate(nodes):
        at = np.flatnonzero(gaps[:n, v])
        q = np.log(np.maximum(posterior[node][at], 1e-300))
        if v in model.emissions:
            density = model.emissions[v].log_likelihood(true.arrays[v][at])
            parts.append(-logsumexp(q + density, axis=1))
        else:
            parts.append(-q[np.arange(len(at)), true.codes[at, v]])
    return np.concatenate(parts)


COLUMNS = (
    LABEL._replace(heading="data"),
    N_RUNS,
    Column("RF > 0", lambda row: str(int((values(row, "rf") > 0).sum()))),
    Column("RF max", largest("rf", 0)),
    Column("parameters / oracle", mean("parameter_ratio")),
    Column("loss", mean("loss.ours", 4)),
    Column("true model's", mean("loss.truth", 4)),
    Column("marginal", mean("loss.marginal", 4)),
    Column("ratio mean", lambda row: judged(float(values(row, "ratio").mean()), TARGET, 4)),
    Column("max", lambda row: judged(float(values(row, "ratio").max()), TARGET, 4)),
    Column("excess in nats", mean("excess", 5)),
    Column("s", mean("seconds", 1)),
)


TABLES = (
    Table(
        name="missing",
        shows="30% of the values missing: RF, parameters, log-loss of the gaps to the true model's",
        duration="15 min",
        title="30% of the values missing, k = 3",
        about=ABOUT,
        measure=measure,
        columns=COLUMNS,
        choices={"n_vars": Choice(81, "p", quick=27)},
    ),
)
