"""Questionnaire: 25 items, answers 1 to 6 with gaps; five factors as truth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.data.questionnaire import FILES, read_questionnaire
from benchmarks.grids import Column, Grid, field, make_grid
from benchmarks.registry import Table
from benchmarks.rivals.correlations import correlation_rivals
from benchmarks.scores import GROUP_COLUMNS, best_clade, group_scores, own_subtrees
from benchmarks.settings import Settings, data_files
from benchmarks.stages import timed_fit
from latenttree.tree import Tree

ABOUT = """2,800 people. Scores: factors whose paths between items meet no path of another factor (a
subtree of their own); factors that are exactly one side of an edge (which the one in the middle of
an unrooted tree need not be); Jaccard index of a factor with the side of an edge that fits it best,
mean over the five; adjusted Rand index to the factors of the best cut (which knows them, the same
search for all methods) and of the plain cut into at most five pieces whose longest path is
shortest. Rivals see Pearson correlations over the people who answered both items. Answers are
categories, ordered categories, or numbers of a Gaussian tree; a reversed item ("-A1") needs no
turning in any of them, and rivals take the size of the correlation."""
OURS: dict[str, dict[str, Any]] = {
    "ours, categorical, k = 2": {"n_states": 2},
    "ours, categorical, k = 3": {"n_states": 3},
    "ours, ordinal, k = 2": {"n_states": 2, "family": "ordinal"},
    "ours, ordinal, k = 3": {"n_states": 3, "family": "ordinal"},
    "ours, categorical, k = auto": {"n_states": "auto"},
    "ours, Gaussian tree": {"hidden": "gaussian"},
}
QUICK_ROWS = 1_000


def measure(settings: Settings) -> dict[str, Any]:
    """All methods."""
    files = data_files(settings, *FILES)
    if not files:
        return {"rows": []}
    answers, factors = read_questionnaire(*files)
    answers = answers.iloc[:QUICK_ROWS] if settings.quick else answers
    names = [str(name) for name in answers.columns]
    rows = []
    for method, options in OURS.items():
        if settings.wants(method):
            model, seconds = timed_fit(answers, **options)
            rows.append({"label": method, "seconds": seconds, **scores(model.tree_, factors)})
            settings.say(f"{method}: {seconds:.1f} s")
    for rival, tree in correlation_rivals(answers.corr().to_numpy(), names).items():
        if settings.wants(rival):
            rows.append({"label": rival, "seconds": None, **scores(tree, factors)})
    return {"rows": rows, "n_people": len(answers), "n_missing": int(answers.isna().sum().sum())}


def scores(tree: Tree, factors: Mapping[str, list[str]]) -> dict[str, Any]:
    """Factors as subtrees and as clusters."""
    factor_of = {item: factor for factor, items in factors.items() for item in items}
    labels = [factor_of[name] for name in tree.observed_names]
    clades = {factor: best_clade(tree, items) for factor, items in factors.items()}
    return {
        "own": len(own_subtrees(tree, labels)),
        "exact": sum(clade.jaccard == 1 for clade in clades.values()),
        "jaccard": float(np.mean([clade.jaccard for clade in clades.values()])),
        **group_scores(tree, labels, len(factors)),
        "inexact": {f: " ".join(c.members) for f, c in clades.items() if c.jaccard < 1},
        "newick": tree.to_newick(),
    }


COLUMNS = (
    Column("method", field("label")),
    Column("own subtree", field("own")),
    Column("side of an edge", field("exact")),
    Column("mean Jaccard", field("jaccard", ".3f")),
    *GROUP_COLUMNS,
)


def body(record: Mapping[str, Any]) -> list[Grid | str]:
    """Scores, and what fits the other factors best."""
    said = f"{record['n_people']:,} people, {record['n_missing']} answers missing."
    others = [
        [row["label"], factor, members]
        for row in record["rows"]
        for factor, members in row["inexact"].items()
    ]
    title = "Factors that are no side of an edge: the side that fits best"
    return [make_grid(record["rows"], COLUMNS), said, Grid(["method", "factor", "items"], others,
                                                           title)]  # fmt: skip


TABLES = (
    Table(
        name="questionnaire",
        shows="25 items of a questionnaire: five factors as subtrees, and the same rivals",
        duration="1 min",
        title="Questionnaire: 25 items, 5 factors",
        about=ABOUT,
        measure=measure,
        body=body,
    ),
)
