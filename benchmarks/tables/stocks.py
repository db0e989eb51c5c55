"""Stocks: a Gaussian tree over 452 stocks, sectors as truth."""

from __future__ import annotations

from typing import Any

from benchmarks.data.stocks import FILES, prepared, read_stocks
from benchmarks.figures.trees import trees_figure
from benchmarks.grids import Column, field
from benchmarks.registry import Table
from benchmarks.rivals.correlations import correlation_rivals
from benchmarks.scores import GROUP_COLUMNS, group_scores
from benchmarks.settings import Settings, data_files
from benchmarks.stages import timed_fit
from benchmarks.trees import arrays_of

ABOUT = """452 stocks, 1,257 daily log-returns. Scores: share of stocks whose nearest other stock
along the tree has the same sector; adjusted Rand index to the 10 sectors of the best cut (which
knows the sectors, the same search for all methods), of the best cut into at most 10 pieces ("best
of few"), and of the plain cut into at most 10 pieces whose longest path is shortest (for a
dendrogram the horizontal one). Rivals see the same correlations. A Gaussian tree takes its
structure from normal scores (normal quantiles of ranks). The rows that compare methods are
therefore "normal scores", where all see the same numbers. In the others rivals see Pearson
correlations and ours still sees ranks: they show what a user gets from the returns, and mix the
gain of ranks with that of the tree. The prices are not adjusted for splits (a 2-for-1 split reads
as a return of -69%): "as given" leaves that in, "gaps" takes moves beyond +-0.35 as missing."""
N_SECTORS, QUICK_STOCKS = 10, 80


def measure(settings: Settings) -> dict[str, Any]:
    """All preparations and methods; the trees of ours."""
    files = data_files(settings, *FILES)
    if not files:
        return {"rows": []}
    returns, sectors = read_stocks(*files)
    if settings.quick:
        returns, sectors = returns.iloc[:, :QUICK_STOCKS], sectors[:QUICK_STOCKS]
    rows: list[dict[str, Any]] = []
    drawn = {}
    for how, values in prepared(returns).items():
        if not settings.wants(how):
            continue
        names = [str(name) for name in values.columns]
        trees: dict[str, Any] = {}
        for method, options in {"ours": {}, "ours, fully resolved": {"min_support": 0.0}}.items():
            model, seconds = timed_fit(values, 1, hidden="gaussian", **options)
            trees[method] = model.tree_, seconds
            if method == "ours":
                drawn[how] = {"tree": arrays_of(model.tree_), "support": model.diagnostics_.support,
                              "groups": dict(zip(names, sectors, strict=True)),
                              "diagnostics": str(model.diagnostics_)}  # fmt: skip
        for rival, tree in correlation_rivals(values.corr().to_numpy(), names, signed=True).items():
            trees[rival] = tree, None
        for method, (tree, seconds) in trees.items():
            scores = group_scores(tree, sectors, N_SECTORS)
            row = {"label": f"{how}: {method}", "part": how, "method": method}
            rows.append(row | {"seconds": seconds, **scores})
        settings.say(f"{how}: done")
    return {"rows": rows, "drawn": drawn}


COLUMNS = (
    Column("returns", field("part")),
    Column("method", field("method")),
    *GROUP_COLUMNS,
)

TABLES = (
    Table(
        name="stocks",
        shows="a Gaussian tree of 452 stocks: sectors; clustering, neighbour joining, Chow-Liu",
        duration="5 min",
        title="Stocks: 452 stocks, 10 sectors",
        about=ABOUT,
        measure=measure,
        columns=COLUMNS,
        draw=trees_figure,
    ),
)
