"""Groups: label-free cuts of trees into K groups, beside clustering of correlations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import phecodes, questionnaire, stocks
from benchmarks.grids import Column, field
from benchmarks.registry import Table
from benchmarks.rivals.clusters import CLUSTERINGS
from benchmarks.settings import Choice, Settings, data_files
from benchmarks.stages import timed_fit

ABOUT = """Adjusted Rand index of groups to known ones (5 factors of a questionnaire, 10 sectors of
stocks, categories of phecodes). Methods know nothing but the number K of groups. Ours cuts the
learned tree, `tree_.cut(K)`: "signed" keeps variables apart whose path is negative, "unsigned"
takes an item and its opposite as alike, as the factors of the questionnaire do, which hold reversed
items. "fully resolved" is the tree with nothing contracted (`min_support=0`). Rivals cluster the
same correlations (of stocks: of normal scores): SciPy's linkages, and spectral clustering of
scikit-learn. "largest" is the share of the variables in the largest group, "single" counts groups
of one variable. The rule of `cut` (which lengths count, and their scale) was chosen on these same
three sets with their labels in view, so the rows of ours are not a test of it."""
QUICK_ROWS, QUICK_STOCKS, QUICK_PATIENTS = 1_000, 60, 20_000
MIN_PATIENTS, QUICK_MIN = 100, 200


class Case(NamedTuple):
    """Data, options of ours by name, correlations for rivals, and the known groups."""

    name: str
    X: Any
    options: dict[str, dict[str, Any]]
    correlation: NDArray[np.float64]
    labels: Sequence[str]


def cases(settings: Settings) -> Iterator[Case]:
    """The data that are there."""
    for read in (_questionnaire, _stocks, _diagnoses):
        if settings.wants(read.__name__.lstrip("_")):
            yield from read(settings)


def _questionnaire(settings: Settings) -> Iterator[Case]:
    if not (files := data_files(settings, *questionnaire.FILES)):
        return
    answers, factors = questionnaire.read_questionnaire(*files)
    answers = answers.iloc[:QUICK_ROWS] if settings.quick else answers
    factor_of = {item: factor for factor, items in factors.items() for item in items}
    labels = [factor_of[str(name)] for name in answers.columns]
    options: dict[str, dict[str, Any]] = {
        "ordinal, k = 2": {"n_states": 2, "family": "ordinal"},
        "ordinal, k = 3": {"n_states": 3, "family": "ordinal"},
        "Gaussian tree": {"n_states": 1, "hidden": "gaussian"},
    }
    yield Case("questionnaire", answers, options, answers.corr().to_numpy(), labels)


def _stocks(settings: Settings) -> Iterator[Case]:
    if not (files := data_files(settings, *stocks.FILES)):
        return
    returns, sectors = stocks.read_stocks(*files)
    if settings.quick:
        returns, sectors = returns.iloc[:, :QUICK_STOCKS], sectors[:QUICK_STOCKS]
    scores = stocks.prepared(returns)["normal scores"]
    gaussian: dict[str, Any] = {"n_states": 1, "hidden": "gaussian"}
    options = {"Gaussian tree": gaussian, "fully resolved": {**gaussian, "min_support": 0.0}}
    yield Case("stocks", scores, options, scores.corr().to_numpy(), sectors)


def _diagnoses(settings: Settings) -> Iterator[Case]:
    if not (files := data_files(settings, *phecodes.FILES)):
        return
    small = (QUICK_PATIENTS, QUICK_MIN) if settings.quick else (None, MIN_PATIENTS)
    form = phecodes.binary(*phecodes.read_phecodes(files, *small))
    steps = {"n_states": 2, "names": form.names, "max_iter": settings.choices["max_iter"]}
    options = {"k = 2": steps, "fully resolved": {**steps, "min_support": 0.0}}
    correlation = phecodes.correlations(form.sparse_binary)
    yield Case("diagnoses", form.X, options, correlation, form.labels)


def measure(settings: Settings) -> dict[str, Any]:
    """All data, all methods."""
    rows: list[dict[str, Any]] = []
    for case in cases(settings):
        n_groups = len(set(case.labels))
        for how, options in case.options.items():
            model, seconds = timed_fit(case.X, n_jobs=settings.threads, **options)
            for signed in (True, False):
                method = f"ours, {how}, {'signed' if signed else 'unsigned'}"
                found = model.tree_.cut(n_groups, signed=signed)
                rows.append(_row(case, method, found, seconds))
            settings.say(f"{case.name}, {how}: {seconds:.1f} s")
        for rival, clustered in CLUSTERINGS.items():
            rows.append(_row(case, rival, clustered(case.correlation, n_groups), None))
    return {"rows": rows}


def _row(
    case: Case, method: str, groups: NDArray[np.integer[Any]], seconds: float | None
) -> dict[str, Any]:
    from sklearn.metrics import adjusted_rand_score

    sizes = np.unique(groups, return_counts=True)[1]
    return {
        "label": f"{case.name}: {method}",
        "part": case.name,
        "method": method,
        "seconds": seconds,
        "n_groups": len(sizes),
        "ari": float(adjusted_rand_score(case.labels, groups)),
        "largest": float(sizes.max() / sizes.sum()),
        "single": int((sizes == 1).sum()),
    }


COLUMNS = (
    Column("data", field("part")),
    Column("method", field("method")),
    Column("K", field("n_groups")),
    Column("ARI", field("ari", ".3f")),
    Column("largest", field("largest", ".2f")),
    Column("single", field("single")),
    Column("s", field("seconds", ".1f")),
)

TABLES = (
    Table(
        name="groups",
        shows="cuts into K groups that know no labels, signed and not: items, stocks, diagnoses",
        duration="5 min",
        title="Groups: label-free cuts into K",
        about=ABOUT,
        measure=measure,
        columns=COLUMNS,
        choices={"max_iter": Choice(60, "steps of EM for the diagnoses", quick=10)},
    ),
)
