"""Stocks: a Gaussian tree over 452 stocks from 1,257 daily log-returns, sectors as truth.

Scores: share of stocks whose nearest other stock along the tree has the same sector; adjusted Rand
index to the 10 sectors of the best cut (which knows the sectors, the same search for all methods),
of the best cut into at most 10 pieces ("best of few"), and of the plain cut into at most 10 pieces
whose longest path is shortest (for a dendrogram the horizontal one). Rivals see the same
correlations.

A Gaussian tree takes its structure from normal scores (normal quantiles of ranks). The table that
compares methods is therefore "normal scores", where all see the same numbers. In the other two the
rivals see Pearson correlations and ours still sees ranks: they show what a user gets from the
returns, and mix the gain of ranks with that of the tree. The prices are not adjusted for splits
(a 2-for-1 split reads as a return of -69%): "as given" leaves that in, "gaps" takes moves beyond
+-0.35 as missing.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import latenttree as lt
from benchmarks.clusters import best_cut, diameter_cut, nearest_share
from benchmarks.common import console, data_file, options, save, table
from benchmarks.rivals_trees import correlation_rivals

JUMP = 0.35
"""Log-returns beyond this are splits, mergers or errors."""

N_SECTORS = 10
QUICK_STOCKS = 80


def read(prices: Path, info: Path) -> tuple[pd.DataFrame, list[str]]:
    """Daily log-returns `(1257, 452)` and the sector of each stock."""
    closes = pd.read_csv(prices)
    returns = np.log(closes).diff().iloc[1:].reset_index(drop=True)
    sectors = pd.read_csv(info).set_index("ticker")["sector"]
    return returns, sectors.loc[list(returns.columns)].tolist()


def normal_scores(returns: pd.DataFrame) -> pd.DataFrame:
    from scipy.stats import norm

    return (returns.rank() / (len(returns) + 1)).apply(norm.ppf)


def prepared(returns: pd.DataFrame) -> dict[str, pd.DataFrame]:
    return {
        "normal scores": normal_scores(returns),
        "as given": returns,
        "gaps": returns.where(returns.abs() <= JUMP),
    }


def scores(tree: lt.Tree, sectors: list[str]) -> dict[str, Any]:
    best, plain = best_cut(tree, sectors), diameter_cut(tree, N_SECTORS, sectors)
    return {
        "n_hidden": tree.n_hidden,
        "nearest": nearest_share(tree, sectors),
        "best_cut": best.score,
        "best_clusters": best.n_clusters,
        "few_cut": best_cut(tree, sectors, len(set(sectors))).score,
        "plain_cut": plain.score,
    }


def fit(returns: pd.DataFrame, **changes: Any) -> tuple[lt.LatentTree, float]:
    start = time.perf_counter()
    model = lt.LatentTree(n_states=1, hidden="gaussian", random_state=0, **changes).fit(returns)
    return model, time.perf_counter() - start


def run(how: str, returns: pd.DataFrame, sectors: list[str], out: Path) -> dict[str, Any]:
    """Ours and the rivals on one preparation of the returns."""
    names = [str(name) for name in returns.columns]
    model, seconds = fit(returns)
    resolved, more = fit(returns, min_support=0.0)
    found = {
        "ours": scores(model.tree_, sectors) | {"seconds": seconds},
        "ours, fully resolved": scores(resolved.tree_, sectors) | {"seconds": more},
    }
    correlation = returns.corr().to_numpy()
    for rival, tree in correlation_rivals(correlation, names, signed=True).items():
        found[rival] = scores(tree, sectors)
    draw(model, out / f"stocks_{how.replace(' ', '_')}.png")
    return {
        "missing": int(returns.isna().sum().sum()),
        "stages": model.diagnostics_.stage_seconds,
        "diagnostics": str(model.diagnostics_),
        "scores": found,
    }


def draw(model: lt.LatentTree, path: Path) -> None:
    """The tree, large enough to read the names."""
    import matplotlib

    matplotlib.use("Agg")
    axes = model.plot()
    axes.figure.set_size_inches(24, 24)
    path.parent.mkdir(parents=True, exist_ok=True)
    axes.figure.savefig(path, dpi=100)
    console.print(f"picture: {path}")


def show(how: str, found: dict[str, Any]) -> None:
    seen = "the same for all" if how == "normal scores" else "ours by ranks, rivals by Pearson"
    made = table(
        f"Stocks, {how} ({seen}; {found['missing']} values missing)",
        "method|nearest has the same sector|ARI, best cut|clusters|best of few|plain cut|hidden|s",
    )
    for method, row in found["scores"].items():
        seconds = f"{row['seconds']:.1f}" if "seconds" in row else ""
        made.add_row(
            method,
            f"{row['nearest']:.3f}",
            f"{row['best_cut']:.3f}",
            str(row["best_clusters"]),
            f"{row['few_cut']:.3f}",
            f"{row['plain_cut']:.3f}",
            str(row["n_hidden"]),
            seconds,
        )
    console.print(made)


def main() -> None:
    args = options(__doc__, seeds=1).parse_args()
    prices, info = data_file("stocks/close_prices.csv.gz"), data_file("stocks/info.csv")
    if prices is None or info is None:
        return
    returns, sectors = read(prices, info)
    if args.quick:
        returns, sectors = returns.iloc[:, :QUICK_STOCKS], sectors[:QUICK_STOCKS]
    results = {}
    for how, values in prepared(returns).items():
        results[how] = run(how, values, sectors, args.out)
        show(how, results[how])
    save("stocks", args, results)


if __name__ == "__main__":
    main()
