"""Questionnaire: 25 items, 2,800 people, answers 1 to 6 with gaps; five factors as truth.

Scores: factors whose paths between items meet no path of another factor (a subtree of their own);
factors that are exactly one side of an edge (which the one in the middle of an unrooted tree need
not be); Jaccard index of a factor with the side of an edge that fits it best, mean over the five;
adjusted Rand index to the factors of the best cut (which knows them, the same search for all
methods) and of the plain cut into at most five pieces whose longest path is shortest. Rivals see
Pearson correlations over the people who answered both items. Answers are categories, ordered
categories, or numbers of a Gaussian tree; a reversed item ("-A1") needs no turning in any of them,
and rivals take the size of the correlation.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import latenttree as lt
from benchmarks.clusters import best_clade, best_cut, diameter_cut, own_subtrees
from benchmarks.common import console, data_file, options, save, table
from benchmarks.rivals_trees import correlation_rivals

OURS: dict[str, dict[str, Any]] = {
    "ours, categorical, k = 2": {"n_states": 2},
    "ours, categorical, k = 3": {"n_states": 3},
    "ours, ordinal, k = 2": {"n_states": 2, "family": "ordinal"},
    "ours, ordinal, k = 3": {"n_states": 3, "family": "ordinal"},
    "ours, categorical, k = auto": {"n_states": "auto"},
    "ours, Gaussian tree": {"hidden": "gaussian"},
}

QUICK_ROWS = 1_000


def read(answers: Path, keys: Path) -> tuple[pd.DataFrame, dict[str, list[str]]]:
    """The items `(2800, 25)` and the items of each factor, without the signs of their keys."""
    factors = {
        factor: [item.lstrip("-") for item in items]
        for factor, items in json.loads(keys.read_text()).items()
    }
    items = [item for members in factors.values() for item in members]
    return pd.read_csv(answers)[items], factors


def scores(tree: lt.Tree, factors: dict[str, list[str]]) -> dict[str, Any]:
    factor_of = {item: factor for factor, items in factors.items() for item in items}
    labels = [factor_of[name] for name in tree.observed_names]
    clades = {factor: best_clade(tree, items) for factor, items in factors.items()}
    best, plain = best_cut(tree, labels), diameter_cut(tree, len(factors), labels)
    return {
        "own": len(own_subtrees(tree, labels)),
        "exact": sum(clade.jaccard == 1 for clade in clades.values()),
        "jaccard": float(np.mean([clade.jaccard for clade in clades.values()])),
        "best_cut": best.score,
        "best_clusters": best.n_clusters,
        "plain_cut": plain.score,
        "n_hidden": tree.n_hidden,
        "inexact": {f: " ".join(c.members) for f, c in clades.items() if c.jaccard < 1},
        "newick": tree.to_newick(),
    }


def run(answers: pd.DataFrame, factors: dict[str, list[str]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for method, chosen in OURS.items():
        start = time.perf_counter()
        model = lt.LatentTree(random_state=0, **chosen).fit(answers)
        seconds = time.perf_counter() - start
        found[method] = scores(model.tree_, factors) | {"seconds": seconds}
    correlation = answers.corr().to_numpy()
    names = [str(name) for name in answers.columns]
    for rival, tree in correlation_rivals(correlation, names).items():
        found[rival] = scores(tree, factors)
    return found


def show(found: dict[str, Any], answers: pd.DataFrame) -> None:
    gaps = int(answers.isna().sum().sum())
    made = table(
        f"Questionnaire: {len(answers):,} people, 25 items, {gaps} answers missing, 5 factors",
        "method|own subtree|side of an edge|mean Jaccard|ARI, best cut|clusters|ARI, plain cut"
        "|hidden|s",
    )
    for method, row in found.items():
        made.add_row(
            method,
            str(row["own"]),
            str(row["exact"]),
            f"{row['jaccard']:.3f}",
            f"{row['best_cut']:.3f}",
            str(row["best_clusters"]),
            f"{row['plain_cut']:.3f}",
            str(row["n_hidden"]),
            f"{row['seconds']:.1f}" if "seconds" in row else "",
        )
    console.print(made)
    made = table(
        "Factors that are no side of an edge: the side that fits best", "method|factor|items"
    )
    for method, row in found.items():
        for factor, members in row["inexact"].items():
            made.add_row(method, factor, members)
    console.print(made)


def main() -> None:
    args = options(__doc__, seeds=1).parse_args()
    answers, keys = data_file("bfi25/bfi.csv.gz"), data_file("bfi25/bfi_keys.json")
    if answers is None or keys is None:
        return
    items, factors = read(answers, keys)
    items = items.iloc[:QUICK_ROWS] if args.quick else items
    found = run(items, factors)
    show(found, items)
    save("questionnaire", args, found)


if __name__ == "__main__":
    main()
