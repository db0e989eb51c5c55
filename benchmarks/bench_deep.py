"""Deep trees: what hidden nodes as features are worth.

256 binary leaves at depth 8 of a tree in which every hidden node has two children, every edge with
correlation s. A leaf knows `s^8` of the root, almost nothing; but all leaves together keep a share
of it however deep the tree is, as long as `2 s^2 > 1` (Kesten and Stigum). Each data set is fitted
with `hidden_features` on and off (then the nearest leaf stands for a branch), without search and
EM, by moments alone: RF, parameter error of the leaves as a ratio to
the oracle that knows the hidden states, and time. The leaves hang on hidden nodes that they know
well; what comes from below matters for the edges between hidden nodes. So the same ratio for these:
mean over them of `||P(a | b) - P_hat(a | b)||_F`, parameters fitted on the true tree.
"""

from __future__ import annotations

import argparse
import time
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

import latenttree as lt
from benchmarks.common import (
    console,
    fit_tree,
    mean_and_error,
    n_seeds,
    options,
    save,
    table,
    warm_up,
)
from benchmarks.oracle import oracle
from latenttree.data import Table, as_table
from latenttree.engine import resolve_jobs
from latenttree.evaluation.datasets import LatentTreeData
from latenttree.evaluation.metrics import model_of, parameter_error, robinson_foulds
from latenttree.model.tree_model import TreeModel

DEPTH, K = 8, 2
CORRELATIONS = (0.75, 0.8, 0.85)
SAMPLES = (1_000, 2_000, 5_000, 10_000, 20_000)
FEATURES = {"with": True, "without": False}


class Cell(NamedTuple):
    s: float
    n: int
    depth: int = DEPTH


def cells(args: argparse.Namespace) -> list[Cell]:
    if args.quick:
        return [Cell(s, 2_000, 5) for s in CORRELATIONS]
    return [Cell(s, n) for s, n in product(args.correlations, args.samples)]


def simulate(cell: Cell, seed: int) -> LatentTreeData:
    return lt.datasets.make_latent_tree(
        2**cell.depth,
        K,
        arity=2,
        edge_length=-float(np.log(cell.s)),
        n_samples=cell.n,
        random_state=seed,
    )


def run(cell: Cell, seed: int) -> dict[str, Any]:
    """One data set with and without hidden-node features."""
    data = simulate(cell, seed)
    data_table = as_table(data.X)
    best = oracle(data)
    row: dict[str, Any] = {**cell._asdict(), "seed": seed}
    row["oracle"] = {"leaf": parameter_error(best, data), "hidden": hidden_error(best, data)}
    for name, features in FEATURES.items():
        model = lt.LatentTree(K, random_state=seed, refine=None, hidden_features=features)
        start = time.perf_counter()
        model.fit(data.X.astype(np.uint8))
        seconds = time.perf_counter() - start
        given = on_true_tree(data, data_table, features, seed)
        row[name] = {
            "rf": robinson_foulds(data.tree, model.tree_, normalized=True),
            "splits": lt.metrics.split_errors(data.tree, model.tree_)._asdict(),
            "leaf": parameter_error(model, data),
            "leaf_true_tree": parameter_error(given, data),
            "hidden_true_tree": hidden_error(given, data),
            "seconds": seconds,
        }
    return row


def on_true_tree(data: LatentTreeData, data_table: Table, features: bool, seed: int) -> TreeModel:
    """Moments alone with the structure given, so that only the views differ."""
    jobs = resolve_jobs(None)
    return fit_tree(
        data.tree, data_table, K, refine=None, hidden_features=features, seed=seed, n_jobs=jobs
    ).model


def hidden_error(model: TreeModel, data: LatentTreeData) -> float:
    """Mean over the edges between hidden nodes of `||P(a | b) - P_hat(a | b)||_F`.

    Labels of each hidden node as they agree best with the truth along the tree, from the leaves up:
    a node's states are matched by those of a child that is matched already."""
    true, p = model_of(data), data.tree.n_observed
    parents, order = data.tree.rooted(data.root)
    match: dict[int, NDArray[np.int64]] = {v: np.arange(int(true.dims[v])) for v in range(p)}
    total, count = 0.0, 0
    for v in reversed(order.tolist()):
        u = int(parents[v])
        if u < 0:
            continue
        found = model.conditional(v, u)[match[v]]
        if u not in match:
            cost = ((true.conditional(v, u)[:, :, None] - found[:, None, :]) ** 2).sum(axis=0)
            match[u] = linear_sum_assignment(cost)[1]
        if v >= p:
            total += float(np.linalg.norm(true.conditional(v, u) - found[:, match[u]]))
            count += 1
    return total / max(count, 1)


def show(rows: dict[Cell, list[dict[str, Any]]], seeds: int) -> None:
    first = next(iter(rows))
    made = table(
        f"{2**first.depth} binary leaves, depth {first.depth}, {seeds} seeds; moments alone; "
        "errors are ratios to the oracle's; with and without hidden-node features",
        "s, 2 s²|leaf knows|N|RF with|without|paired gain|leaves with|without"
        "|hidden edges, true tree: with|without|s with|without",
    )
    for i, (cell, found) in enumerate(rows.items()):
        if i and cell.s != list(rows)[i - 1].s:
            made.add_section()
        rf = {m: np.array([r[m]["rf"] for r in found]) for m in FEATURES}
        made.add_row(
            f"{cell.s}, {2 * cell.s**2:.2f}",
            f"{cell.s**cell.depth:.2f}",
            f"{cell.n:,}",
            *(_text(*mean_and_error(rf[m])) for m in FEATURES),
            _text(*mean_and_error(rf["without"] - rf["with"])),
            *(f"{ratio(found, m, 'leaf', 'leaf'):.2f}" for m in FEATURES),
            *(f"{ratio(found, m, 'hidden_true_tree', 'hidden'):.2f}" for m in FEATURES),
            *(f"{np.median([r[m]['seconds'] for r in found]):.2f}" for m in FEATURES),
        )
    console.print(made)


def ratio(found: list[dict[str, Any]], method: str, key: str, base: str) -> float:
    return float(np.mean([r[method][key] / r["oracle"][base] for r in found]))


def _text(mean: float, error: float) -> str:
    return f"{mean:.3f} ± {error:.3f}"


def parse() -> argparse.Namespace:
    parser = options(__doc__, seeds=5)
    parser.add_argument("--samples", type=int, nargs="+", default=SAMPLES)
    parser.add_argument("--correlations", type=float, nargs="+", default=CORRELATIONS)
    return parser.parse_args()


def main() -> None:
    args = parse()
    seeds = n_seeds(args)
    warm_up(n_states=K, n_categories=K)
    rows: dict[Cell, list[dict[str, Any]]] = {}
    for cell in cells(args):
        rows[cell] = [run(cell, seed) for seed in range(seeds)]
        means = {m: float(np.mean([r[m]["rf"] for r in rows[cell]])) for m in FEATURES}
        console.print(f"s = {cell.s}, N = {cell.n:,}: RF {means}", style="dim")
    show(rows, seeds)
    save("deep", args, {"runs": [row for found in rows.values() for row in found]})


if __name__ == "__main__":
    main()
